"""Recorded reports of nextpnr: counts, the clock frequency, the slowest path by instance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hlsgen.devices import device, devices
from hlsgen.synthesis.nextpnr import ROUTED, arguments, constraints, instance_of, read_report

REPORTS = Path(__file__).with_name("reports")
#: Counts and MHz that nextpnr printed for the build of hardtanh_po2_outq.onnx in its harness.
PRINTED = {
    "ecp5": ((1469, 944, 0, 0), 144.80),
    "ice40": ((1721, None, 0, 0), 45.31),
    "gowin": ((722 + 924, 944, 0, None), 210.30),
}


def recorded(family: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((REPORTS / f"{family}.json").read_text())
    return report


@pytest.mark.parametrize("family", PRINTED)
def test_counts_and_frequency(family: str) -> None:
    used, mhz = PRINTED[family]
    routed = read_report(json.dumps(recorded(family)), family)
    assert routed.used == used
    assert routed.fmax_mhz == pytest.approx(mhz, abs=0.005)


@pytest.mark.parametrize("family", PRINTED)
def test_the_slowest_path_takes_the_period(family: str) -> None:
    """Its pieces add up to the period, and all lie in the instance that begins the cells' names."""
    routed = read_report(json.dumps(recorded(family)), family)
    assert sum(part.delay_ns for part in routed.path) == pytest.approx(1000 / PRINTED[family][1], abs=0.01)
    assert {part.instance for part in routed.path} == {"mv0"}
    steps = next(p["path"] for p in recorded(family)["critical_paths"] if p["from"] == p["to"])
    wires = sum(step["delay"] for step in steps if step["type"] == "routing")
    assert sum(part.routing_ns for part in routed.path) == pytest.approx(wires, abs=0.002)


def test_steps_of_a_path_are_merged_by_instance() -> None:
    """A wire counts for the cell that drives it, and a cell of the placer for the instance before it."""
    steps = [
        ("clk-to-q", "a.x_FF", 0.5),
        ("routing", "a.x_FF", 1.0),
        ("logic", "b.y_LUT", 0.25),
        ("routing", "b.y_LUT", 2.0),
        ("logic", "$PACKER_VCC", 0.125),
        ("logic", "port_LUT", 0.25),
        ("setup", "a.z_FF", 0.0),
    ]

    def path(added_delay: float) -> dict[str, Any]:
        cells = [{"type": t, "delay": d + added_delay, "from": {"cell": c}, "to": {"cell": c}} for t, c, d in steps]
        return {"from": "posedge clk", "to": "posedge clk", "path": cells}

    unrelated = {**path(9.0), "from": "<async>"}
    report = {
        "fmax": {"clk": {"achieved": 50.0}},
        "utilization": {},
        "critical_paths": [path(-0.1), path(0), unrelated],
    }
    segments = read_report(json.dumps(report), "ecp5").path
    assert [(p.instance, p.delay_ns, p.routing_ns) for p in segments] == [
        ("a", 1.5, 1.0),
        ("b", 2.375, 2.0),
        ("", 0.25, 0.0),
        ("a", 0.0, 0.0),
    ]


@pytest.mark.parametrize("text", ["", "[]", '{"fmax": {}}', '{"fmax": 3, "utilization": {}, "critical_paths": []}'])
def test_other_texts_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"report|Expecting|number"):
        read_report(text, "ecp5")


def test_a_core_without_registers_has_no_frequency() -> None:
    routed = read_report('{"fmax": {}, "utilization": {}, "critical_paths": []}', "gowin")
    assert (routed.fmax_mhz, routed.path) == (None, ())


def test_names_of_instances() -> None:
    assert instance_of("core.mv0.x[3].y_LUT4_Z") == "mv0"
    assert instance_of("mv0.x") == "mv0"
    assert instance_of("core.s_axis_tready_LUT4_Z") == ""
    assert instance_of("so") == ""


@pytest.mark.parametrize("name", [name for name, one in devices().items() if one.place])
def test_the_routed_design_is_written(name: str) -> None:
    """Where a package has it: `make` would place a core again each time without the file."""
    one = device(name)
    words = arguments(one, 50, 1, bitstream=bool(one.family.pack))
    assert any(word.split("=")[-1] == ROUTED for word in words)


def test_arguments() -> None:
    """The device names the pins of the harness if they are needed. Without a bitstream, nothing of one is written."""
    words = arguments(device("ecp5-45k"), 80, 3, bitstream=False)
    assert words[:5] == ["--45k", "--package", "CABGA381", "--speed", "6"]
    assert {"--lpf-allow-unconstrained", "--timing-allow-fail"} <= set(words)
    assert "--textcfg" not in words
    assert words[words.index("--seed") + 1] == "3"
    assert words[words.index("--freq") + 1] == "80"
    assert "--textcfg" in arguments(device("ecp5-45k"), 80, 3, bitstream=True)
    assert constraints(device("gowin-gw2a-18"), ("clk", "si")) == 'IO_LOC "clk" 4;\nIO_LOC "si" 88;\n'
    assert constraints(device("ecp5-45k"), ("clk", "si")) == ""
