"""`hlsgen certify`: cores without handshake. Each change of the wiring is found, and no unit may wait."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from certified import CASES, messages, sign, with_changed_top
from paths import DATA

import hlsgen
from hlsgen.certify.latencies import LATENCIES
from hlsgen.cycle_model.simulate import measure
from hlsgen.library import library_text
from hlsgen.verilog.unit_table import latency


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("builds") / "core"
    hlsgen.build(DATA / "bin_tern.onnx", path, hlsgen.Options(ports="plain", top="core"))
    assert messages(path) == []
    return path


CHANGES = {
    "valid of the input": (r"\.in_valid\(in_valid\)", ".in_valid(out_valid)"),
    "data of the output": (r"\.out_data\(out_data\)", ".out_data(in_data)"),
    "ready of the output": (r"\.s_ready\((\w+)\),\n        \.out_valid", r".s_ready(rst_core),\n        .out_valid"),
    "bits of the input": (r"\.WIDTH\(24\)", ".WIDTH(25)"),
    "more parameters": (r"\.WIDTH\(24\)", ".WIDTH(24), .BEATS(1)"),
    "bits of the port": (r"\[23:0\] in_data", "[24:0] in_data"),
    "a port of a stream": ("core_hg_plain_out #", "core_hg_axis_out #"),
    "the other port": ("core_hg_plain_out #", "core_hg_plain_in #"),
    "reset": (r"\.reset_in\(rst\)", ".reset_in(in_valid)"),
    "no input port": (r"    core_hg_plain_in #\((?s:.*?)\);\n", ""),
    "latency in the head": ("exactly 12 cycles", "exactly 11 cycles"),
    "interface of a stream": ("ASSOCIATED_RESET", "ASSOCIATED_BUSIF in, ASSOCIATED_RESET"),
    "attribute of data": ("    input  wire in_valid", '    (* X_INTERFACE_INFO = "a" *)\n    input  wire in_valid'),
}


@pytest.mark.parametrize("name", CHANGES)
def test_every_change_is_detected(built: Path, tmp_path: Path, name: str) -> None:
    assert messages(with_changed_top(built, tmp_path, *CHANGES[name]))


def test_a_unit_that_may_wait_is_refused(built: Path, tmp_path: Path) -> None:
    """A slice would keep the integers and the order; only the latency is not proven then."""
    core = tmp_path / "core"
    shutil.copytree(built, core)
    top, certificate = core / "rtl" / "core.v", core / "certificate.json"
    text = top.read_text()
    last = re.search(r"\) port_out \(\n        \.s_data\((\w+)_data\)", text)
    assert last is not None
    stream = last[1]
    bits = re.search(rf"wire \[(\d+):0\] {stream}_data;", text)
    assert bits is not None
    width = int(bits[1]) + 1
    wires = f"    wire [{bits[1]}:0] extra_data;\n    wire extra_valid;\n    wire extra_ready;\n"
    cell = (
        f"    // slice\n    core_hg_slice #(\n        .WIDTH({width}),\n        .FULL(1)\n    ) extra (\n"
        f"        .clk(clk), .rst(rst_core),\n        .s_data({stream}_data),\n        .s_valid({stream}_valid),\n"
        f"        .s_ready({stream}_ready),\n        .m_data(extra_data),\n        .m_valid(extra_valid),\n"
        "        .m_ready(extra_ready)\n    );\n\n"
    )
    before, port = text.split("    core_hg_plain_out #(")
    before = before.replace(f"    wire {stream}_ready;\n", f"    wire {stream}_ready;\n{wires}")
    port = port.replace(f"{stream}_", "extra_")
    top.write_text(f"{before}{cell}    core_hg_plain_out #({port}")
    prefixed = library_text("rtl", "hg_slice.v").replace("hg_slice", "core_hg_slice")
    (core / "rtl" / "core_hg_slice.v").write_text(prefixed)
    entries = json.loads(certificate.read_text())
    parameters = {"WIDTH": width, "FULL": 1}
    entries["layers"][-1]["instances"].append(
        {"instance": "extra", "module": "hg_slice", "parameters": parameters, "memories": []}
    )
    certificate.write_text(json.dumps(entries))
    sign(core, "rtl/core.v")
    assert any("hg_slice may wait while its consumer does not" in text for text in messages(core))


def enable(module: str) -> str:
    """The ready of a module as a function of m_ready; that of the module inside which has its control."""
    text = re.sub(r"//.*", "", library_text("rtl", f"{module}.v"))
    ready = re.search(r"assign\s+s_ready\s*=\s*(.+);", text)
    if ready is None:
        inside = re.search(r"(hg_stages|hg_eltwise_add) #\([^;]*\.s_ready\(s_ready\)[^;]*\.m_ready\(m_ready\)", text)
        assert inside is not None
        return enable(inside[1])
    value = re.search(rf"(?:wire|assign)\s+{ready[1]}\s*=\s*(.+);", text) if ready[1] == "en" else ready
    assert value is not None
    return value[1]


@pytest.mark.parametrize("module", [*sorted(LATENCIES), "hg_stages"])
def test_units_that_take_a_beat_whenever_their_consumer_does(module: str) -> None:
    """Ready is 1 if m_ready is: the enable of a pipeline, or m_ready itself."""
    busy = r"!m_valid\w*|!valid_reg(\[[\w-]+\])?|\(JOINED == 0 && !m_valid\)"
    assert re.fullmatch(rf"m_ready( \|\| ({busy}))?", enable(module)), enable(module)


#: Cases that need several instances of a loop of beats, which a frame in each cycle does not have.
FOLDED = ("shared table", "shared indexed")


@pytest.mark.sweep
@pytest.mark.cases(6)
@pytest.mark.parametrize("name", [name for name in CASES if name not in FOLDED])
def test_every_kind_of_unit(name: str, tmp_path: Path) -> None:
    """The proof knows all units of such cores, and the cycle model has the same latency."""
    case = CASES[name]
    options = hlsgen.Options(ports="plain", input=case.options.input, realize=case.options.realize, top="top")
    directory = replace(case, options=options).build(tmp_path / "core")
    assert messages(directory) == []
    build = hlsgen.check(directory / "model.onnx", options)
    assert measure(build.network.nodes, latency) == (build.timing.latency, 1)


def test_cores_with_a_handshake_are_not_proven_as_plain(built: Path, tmp_path: Path) -> None:
    """The option is part of the manifest: another value asks for other ports."""
    core = tmp_path / "core"
    shutil.copytree(built, core)
    manifest = json.loads((core / "manifest.json").read_text())
    manifest["options"]["ports"] = "packed"
    (core / "manifest.json").write_text(json.dumps(manifest))
    assert messages(core)
    statements = [statement.name for statement in hlsgen.certify(built).proven]
    assert "no-waiting" in statements


@pytest.mark.parametrize("entry, value", [("interval", 2), ("fixed", False), ("latency", 11)])
def test_cycles_of_the_manifest(built: Path, tmp_path: Path, entry: str, value: object) -> None:
    core = tmp_path / "core"
    shutil.copytree(built, core)
    manifest = json.loads((core / "manifest.json").read_text())
    manifest["cycles"][entry] = value
    (core / "manifest.json").write_text(json.dumps(manifest))
    assert messages(core)


def test_a_wrong_latency(built: Path, tmp_path: Path) -> None:
    """Head and manifest agree on it; the sum of the latencies is another one."""
    core = with_changed_top(built, tmp_path, "exactly 12 cycles", "exactly 11 cycles")
    manifest = json.loads((core / "manifest.json").read_text())
    manifest["cycles"]["latency"] = 11
    (core / "manifest.json").write_text(json.dumps(manifest))
    assert any("cycles.latency is 11, the model and the files give 12" in text for text in messages(core))
