"""Models of several inputs and outputs with a port each: compared with executors, simulated, and proven."""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import ort
import pytest
from certified import messages, sign
from certified_cpp import problems
from end_cases import (
    CASES,
    FLOAT,
    INT8,
    ORACLES,
    REFERENCE,
    Case,
    inner_output,
    node,
    outputs_of,
    quantized,
    unlike_types,
)
from host_code import self_tested
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from typer.testing import CliRunner

import hlsgen
from hlsgen import cli
from hlsgen.certify.port_wiring import labels_of
from hlsgen.cycle_model import processes, simulate
from hlsgen.cycle_model.beat_network import BeatNetwork
from hlsgen.cycle_model.timing_models import exact, fewest_beats
from hlsgen.driver.compile import Build
from hlsgen.passes.multiple_ports import port_names
from hlsgen.simulation.cpp_headers import include_folders
from hlsgen.simulation.verify_verilog import ends_of
from hlsgen.verilog.unit_table import latency

pytestmark = pytest.mark.sim

BUS = {"bus_width": "32", "tkeep": True}


def mixed() -> Case:
    """float32 at one port, codes at the other: nothing that one port could carry."""
    nodes = [
        *quantized("x", "s", "z", "xd"),
        node("DequantizeLinear", "u s z", "ud"),
        node("Add", "xd ud", "t"),
        *quantized("t", "s2", "z", "y"),
    ]
    constants = {"s": np.float32(0.125), "s2": np.float32(0.25), "z": np.int8(3)}
    return Case(
        {"x": (FLOAT, [1, 6]), "u": (INT8, [1, 6])},
        {"y": (FLOAT, [1, 6])},
        nodes,
        constants,
        {"input": {"x": "float32"}},
    )


def added() -> Case:
    """Two inputs and the one operation that joins them: side by side in one word, but for ports of their own."""
    names = ["a", "sa", "z", "b", "sb", "z", "sc", "z"]
    nodes = [helper.make_node("QLinearAdd", names, ["c"], domain="com.microsoft")]
    constants = {"sa": np.float32(0.5), "sb": np.float32(0.25), "sc": np.float32(0.5), "z": np.int8(0)}
    return Case({"a": (INT8, [1, 4]), "b": (INT8, [1, 4])}, {"c": (INT8, [1, 4])}, nodes, constants, {})


def named_like_nets() -> Case:
    """Inputs and outputs whose names are those of a net of another port."""
    nodes = [
        node("Cast", "a", "aw", to=TensorProto.INT16),
        node("Cast", "a_fork_0", "bw", to=TensorProto.INT16),
        node("Sub", "aw bw", "c"),
        node("Add", "aw bw", "c_slice"),
    ]
    small = [1, 5]
    outputs = {"c": (TensorProto.INT16, small), "c_slice": (TensorProto.INT16, small)}
    return Case({"a": (INT8, small), "a_fork_0": (INT8, small)}, outputs, nodes, {}, {})


ALL = {**CASES, "mixed": mixed, "added": added, "named_like_nets": named_like_nets}


#: Cases that onnxruntime does not run, or not exactly.
UNSUPPORTED = {*REFERENCE, "named_like_nets"}
RUNTIMES = {**ORACLES, "named_like_nets": "onnx"}


def proto_of(case: Case) -> onnx.ModelProto:
    proto = case.proto()
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return proto


def built(case: Case, folder: Path, **options: Any) -> tuple[Build, Path]:
    onnx.save(proto_of(case), folder / "m.onnx")
    chosen = hlsgen.Options(ports="separate", **case.options, **options)
    return hlsgen.build(folder / "m.onnx", folder / "build", chosen), folder / "build"


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", ALL)
def test_results_and_proof(tmp_path: Path, name: str) -> None:
    """The integers equal the file's, and the top level is proven."""
    case = ALL[name]()
    build, folder = built(case, tmp_path, **(BUS if name == "three_inputs" else {}))
    frames = case.frames(4)
    runs: Any = ReferenceEvaluator(case.proto()) if name in UNSUPPORTED else ort.session(proto_of(case))
    expected = [dict(zip(case.outputs, runs.run(list(case.outputs), frame), strict=True)) for frame in frames]
    arrays = {k: np.concatenate([frame[k] for frame in frames]) for k in case.inputs}
    x = arrays if len(arrays) > 1 else next(iter(arrays.values()))
    backends = ("reference", "verilator") if name in ("mixed", "named_like_nets") else ("reference",)
    for backend in backends:
        outputs = outputs_of(case, hlsgen.run(folder, x, backend))
        for output in case.outputs:
            expected_array = np.concatenate([frame[output] for frame in expected])
            assert np.allclose(outputs[output], expected_array, rtol=0, atol=1e-6 if output == "g" else 0), (
                backend,
                output,
            )
    certified = hlsgen.certify(folder)
    assert certified.ok, [str(d) for d in certified.problems]
    labels = [port.label for port in (*build.network.inputs, *build.network.outputs)]
    wanted_names = [f"_{x}" if len(ends) > 1 else "" for ends in (case.inputs, case.outputs) for x in ends]
    assert labels == wanted_names


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ALL)
def test_verified(tmp_path: Path, name: str) -> None:
    """Values, cycles, pauses of every port, resets, tlast and tkeep of each in simulation."""
    _, folder = built(
        ALL[name](), tmp_path, **({**BUS, "control": True} if name in ("unlike_types", "inner_output") else {})
    )
    verdict = hlsgen.verify(folder, ["verilator"], frames=6, oracle=RUNTIMES.get(name, "auto"))
    assert verdict.ok, verdict.simulators["verilator"].failures
    coverage = verdict.simulators["verilator"].coverage
    assert coverage is not None
    assert not any(stream.startswith("port_") for stream in (*coverage["never_stalled"], *coverage["never_starved"]))


@pytest.mark.parametrize("name", ["inner_output", "unlike_types", "three_inputs"])
def test_beat_by_beat_and_in_runs(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both simulations give the same times, at all ports."""
    build, _ = built(ALL[name](), tmp_path)
    slow = simulate.simulate(build.network.nodes, 6, latency)
    monkeypatch.setattr(simulate, "SMALL", 0)
    fast = simulate.simulate(build.network.nodes, 6, latency)
    assert slow.ends == fast.ends
    assert set(slow.consumed) == set(fast.consumed)
    assert all((slow.consumed[wire] == fast.consumed[wire]).all() for wire in slow.consumed)
    assert (slow.latency, ends_of(build.network, 6)) == (build.timing.latency, [end - slow.begin for end in slow.ends])


@pytest.mark.parametrize("name", ["inner_output", "fixed_inputs"])
def test_no_pauses_of_any_port_stop_the_core(tmp_path: Path, name: str) -> None:
    """Each port has bursts of beats after long pauses; no deadlock occurs at any capacity of the units."""
    build, _ = built(ALL[name](), tmp_path)
    rng = np.random.default_rng(5)
    frames = 5
    for trial in range(8):
        network = BeatNetwork(simulate.split_ports(build.network.nodes), (exact(latency), fewest_beats())[trial % 2])
        ends = len(network.nodes) + len(network.wiring.inputs)
        for n, (wire, _) in enumerate(network.wiring.sinks):
            ready = rng.random(int(rng.integers(2, 900))) < rng.choice([0.01, 0.5])
            ready[0] = True
            network.steps[ends + n] = processes.sink(wire, ready.tolist()).__next__
        for wire, beats in network.wiring.inputs:
            pauses = rng.integers(0, 2, frames * beats) * rng.integers(0, 3000, frames * beats)
            wire.due.extend(np.cumsum(pauses).tolist())
        network.frames = frames
        network._settle()
        assert len(network.ends()) == frames, network.blocked()


def test_names() -> None:
    """Legal and different names for any names of tensors; the checker derives the same names by its own rule."""
    odd = ["a", "A", "/b/c.0", "b c 0", "é", "", "__x", "x_", "a_2", "a", "s_axis", "b_c_0_2"]
    names = port_names(odd)
    assert names == ["a", "A_2", "b_c_0", "b_c_0_2", "x", "x_2", "x_3", "x_4", "a_2_2", "a_3", "s_axis", "b_c_0_2_2"]
    rng, letters = np.random.default_rng(1), list("aAb_.2é/")
    for _ in range(300):
        tensors = ["".join(rng.choice(letters, int(rng.integers(0, 5)))) for _ in range(int(rng.integers(2, 9)))]
        assert labels_of(tensors, separate=True) == tuple(f"_{name}" for name in port_names(tensors))
    assert labels_of(["a", "b"], separate=False) == labels_of(["a"], separate=True) == ("",)


#: (text in the top level, its replacement) -> message of the checker.
SWAPS = {
    ("s_axis_tdata(s_axis_a_tdata)", "s_axis_tdata(s_axis_b_tdata)"): "has wrong connections",
    ("frame_error(frame_error_a)", "frame_error(frame_error_b)"): "has wrong connections",
    (
        ".m_data(s_axis_a_data), .m_valid(s_axis_a_valid), .m_ready(s_axis_a_ready)",
        ".m_data(s_axis_b_data), .m_valid(s_axis_b_valid), .m_ready(s_axis_b_ready)",
    ): "it gets element 32 of the input",
    ("m_axis_tlast(m_axis_s_tlast)", "m_axis_tlast(m_axis_p_tlast)"): "has wrong connections",
    ("s_axis_a:s_axis_b:", "s_axis_a:"): "has attribute",
    ("s_axis_a TDATA", "s_axis_b TDATA"): "has attribute",
    ("// Input   s_axis_a:", "// Input   s_axis_b:"): "expected is",
}
#: Changes in the manifest, in its first input or output.
CLAIMS = [
    ("inputs", "port", "s_axis_b"),
    ("inputs", "tensor", "b"),
    ("outputs", "instance", "s_axis_a"),
    ("outputs", "beats", 9),
    ("outputs", "meaning", "real = code"),
    ("inputs", "range", [0, 1]),
]


def test_the_certificate_covers_every_port(tmp_path: Path) -> None:
    """A port that is wired or named like another one is found, and so are wrong statements on ports in the manifest."""
    build, folder = built(inner_output(), tmp_path)
    path, certificate, manifest = (
        folder / name for name in (f"rtl/{build.design.top}.v", "certificate.json", "manifest.json")
    )
    text, stated, stated_manifest = path.read_text(), certificate.read_text(), manifest.read_text()
    for (old, new), message in SWAPS.items():
        assert old in text
        path.write_text(text.replace(old, "@").replace(new, old).replace("@", new))
        changed = json.loads(stated)
        changed["rtl"][f"rtl/{path.name}"] = hashlib.sha256(path.read_bytes()).hexdigest()
        certificate.write_text(json.dumps(changed))
        assert any(message in d.message for d in hlsgen.certify(folder).problems), old
    path.write_text(text)
    certificate.write_text(stated)
    claims = json.loads(stated_manifest)
    for end, key, value in CLAIMS:
        claims[end][0][key] = value
    manifest.write_text(json.dumps(claims))
    problems = [d.message for d in hlsgen.certify(folder).problems]
    assert all(any(f"{end}[0].{key}" in text for text in problems) for end, key, _ in CLAIMS), problems


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["inner_output", *(name for name in ALL if name != "inner_output")])
def test_cpp(tmp_path: Path, name: str) -> None:
    """The ports of the C++: C simulation, its own bench by its Makefile, and proof. Exchanged ports are found."""
    _, folder = built(ALL[name](), tmp_path, target="hls")
    verdict = hlsgen.verify(folder, ["ac_types"], 12, oracle=RUNTIMES.get(name, "auto"))
    assert verdict.ok, verdict
    assert problems(folder) == []
    (include,) = include_folders("ac")
    command = ["make", "-s", "csim_ac", f"AC_INCLUDE={include}", "CXXFLAGS=-O1 -Werror"]
    ended = subprocess.run(command, cwd=folder / "hls", capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.endswith(" 0 wrong beats\n")
    path = folder / "hls" / "m.cpp"
    text = path.read_text()
    for calls in (r"    take_frame_\w+\((\w+), \w+\);", r"    send_frame_\w+\(\w+, (\w+)\);"):
        ports = re.findall(calls, text)
        for a, b in itertools.pairwise(ports):
            head, body = text.split("#pragma HLS DATAFLOW")
            swapped = re.sub(rf"\b{a}\b", "@", body)
            swapped = re.sub(rf"\b{b}\b", a, swapped).replace("@", b)
            path.write_text(f"{head}#pragma HLS DATAFLOW{swapped}")
            assert problems(folder) != [], (a, b)
    path.write_text(text)


def test_what_is_refused(tmp_path: Path) -> None:
    onnx.save(inner_output().proto(), tmp_path / "m.onnx")
    _, folder = built(inner_output(), tmp_path)
    for wrong in (b"", {"m_axis_s": bytes(32)}, {"m_axis_s": bytes(32), "m_axis_p": bytes(36)}):
        with pytest.raises(hlsgen.HlsgenError, match="HG054"):
            hlsgen.unpack(folder, wrong)


def test_control_watches_all_ports(tmp_path: Path) -> None:
    """The counters' ports are wired to all streams in order; each other wiring is found."""
    _, folder = built(inner_output(), tmp_path, control=True)
    assert hlsgen.certify(folder).ok
    top = folder / "rtl" / "m.v"
    text = top.read_text()
    for old, new in [
        (".in_last({s_axis_b_tlast, s_axis_a_tlast})", ".in_last({s_axis_a_tlast, s_axis_b_tlast})"),
        (".out_valid({m_axis_p_tvalid, m_axis_s_tvalid})", ".out_valid({m_axis_s_tvalid, m_axis_s_tvalid})"),
        (".INPUTS(2)", ".INPUTS(1)"),
    ]:
        assert old in text
        top.write_text(text.replace(old, new))
        sign(folder, "rtl/m.v")
        assert messages(folder), old


@pytest.mark.parametrize("name", ["unlike_types", "mixed", "three_inputs"])
def test_host_code(tmp_path: Path, name: str) -> None:
    """Python and C have a buffer for each port, with the bytes that hlsgen has."""
    case = ALL[name]()
    build, folder = built(case, tmp_path)
    top = build.design.top
    spec = importlib.util.spec_from_file_location(f"separate_{name}", folder / "host" / f"{top}.py")
    assert spec is not None
    assert spec.loader is not None
    host = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(host)
    assert host.self_test() == 0
    frames = case.frames(3)
    x = {k: np.concatenate([frame[k] for frame in frames]) for k in case.inputs}
    packed = hlsgen.pack(folder, x)
    assert host.encode(x) == packed
    assert {port: len(data) for port, data in packed.items()} == {p: 3 * size for p, size in host.INPUT_BYTES.items()}
    rng = np.random.default_rng(1)
    sizes = {port.name: port.layout.frame_bytes for port in build.network.outputs}
    bytes_ = {port: rng.integers(0, 2, size).astype(np.uint8).tobytes() for port, size in sizes.items()}
    data = bytes_ if len(bytes_) > 1 else next(iter(bytes_.values()))
    host_outputs, expected = (outputs_of(case, decoded) for decoded in (host.decode(data), hlsgen.unpack(folder, data)))
    assert all((host_outputs[output].ravel() == expected[output].ravel()).all() for output in case.outputs)
    self_tested(folder, top)


def test_command_line(tmp_path: Path) -> None:
    """A file of bytes for each port, and the ports in manifest and report."""
    runner, case = CliRunner(), unlike_types()
    onnx.save(case.proto(), tmp_path / "m.onnx")
    ran = runner.invoke(cli.app, ["build", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "b"), "--ports", "separate"])
    assert ran.exit_code == 0, ran.output
    frames = case.frames(2)
    np.savez(tmp_path / "x.npz", **{k: np.concatenate([frame[k] for frame in frames]) for k in frames[0]})
    x, y = str(tmp_path / "x.npz"), str(tmp_path / "y.npz")
    ran = runner.invoke(cli.app, ["pack", str(tmp_path / "b"), x, "-o", str(tmp_path / "in.bin")])
    assert ran.exit_code == 0, ran.output
    sizes = [len((tmp_path / f"in_{name}.bin").read_bytes()) for name in case.inputs]
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text())
    assert sizes == [2 * port["bus"]["words"] * port["bus"]["width"] // 8 for port in manifest["inputs"]]
    assert sizes[0] == 2 * 6
    assert [port["port"] for port in manifest["inputs"]] == ["s_axis_x", "s_axis_u"]
    assert "input" not in manifest
    for port in manifest["outputs"]:
        name = port["port"].removeprefix("m_axis_")
        (tmp_path / f"out_{name}.bin").write_bytes(bytes(3 * port["bus"]["words"] * port["bus"]["width"] // 8))
    ran = runner.invoke(cli.app, ["unpack", str(tmp_path / "b"), str(tmp_path / "out.bin"), "-o", y])
    assert ran.exit_code == 0, ran.output
    assert {name: array.shape for name, array in np.load(y).items()} == {"r": (3, 3), "cd_q": (3, 10), "y": (3, 3)}
    report = (tmp_path / "b" / "report.html").read_text()
    assert all(port["port"] in report for port in (*manifest["inputs"], *manifest["outputs"]))
    ran = runner.invoke(cli.app, ["run", str(tmp_path / "b"), "--input", x, "--output", y])
    assert ran.exit_code == 0, ran.output
