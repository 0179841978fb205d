"""--device: what fits is built, what does not is refused before anything is written; clock and estimate are the
device's.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from models import mlp, save
from paths import ROOT
from typer.testing import CliRunner

import hlsgen
from hlsgen import HlsgenError, Options
from hlsgen.cli import app
from hlsgen.dataflow.resources import Budget, Cost
from hlsgen.devices import device
from hlsgen.driver.fit import SHARE, Needs, allowed, in_kinds, too_large

DIGITS = ROOT / "examples" / "digits" / "digits_mlp.onnx"


def call(*arguments: object, code: int = 0) -> dict[str, Any]:
    shown = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert shown.exit_code == code, shown.output
    data: dict[str, Any] = json.loads(shown.stdout)
    return data


def test_kinds() -> None:
    """A family that was measured has its own kinds; of another one 18 Kbit are two blocks of 10, tables by its
    factor.
    """
    cost = Cost(100.0, 3, 1)
    ice40, cyclone, xc7 = device("ice40-up5k"), device("cyclonev-5csema5"), device("xc7a35t")
    assert in_kinds(cost, ice40) == {"lut": 100, "ff": round(cost.ff), "bram": 1, "dsp": 3}
    assert in_kinds(cost, cyclone) == {
        "lut": round(100 * cyclone.family.lut_per_counted),
        "ff": round(cost.ff),
        "bram": 2,
        "dsp": 3,
    }
    assert in_kinds(cost, xc7) == {"lut": 100, "ff": round(cost.ff), "bram": 1, "dsp": 3}


def test_what_the_search_may_spend() -> None:
    """80 % of the device, or less if less was asked for, in the device's kinds."""
    xc7, ice40, cyclone = device("xc7a35t"), device("ice40-hx8k"), device("cyclonev-5csema5")
    assert allowed(Budget(), xc7, SHARE) == Budget(16640, 72, 80, 33280)
    assert allowed(Budget(lut=10000, bram=90), xc7, SHARE) == Budget(10000, 72, 80, 33280)
    assert allowed(Budget(bram=9), ice40, SHARE).bram == 9
    assert allowed(Budget(bram=9), cyclone, SHARE).bram == 5
    assert allowed(Budget(lut=5), None, SHARE) == Budget(lut=5)


@pytest.mark.parametrize(
    ("cost", "search", "codes"),
    [
        (Cost(16640, 72, 80), True, []),
        (Cost(16641, 0, 0), True, ["HG070"]),
        (Cost(0, 0, 81), True, ["HG070"]),
        (Cost(16640, 72, 80), False, []),
        (Cost(20800, 90, 100), False, ["HG090"]),
        (Cost(20801, 0, 0), False, ["HG070"]),
        (Cost(0, 91, 0), False, ["HG070"]),
        (Cost(0, 0, 0, 41601), False, ["HG070"]),
    ],
)
def test_limits(cost: Cost, search: bool, codes: list[str]) -> None:
    found = too_large(Needs(cost), Budget(), device("xc7a35t"), searched_for=search, smallest="it")
    assert [d.code for d in found] == codes
    assert all((d.severity == "error") == (d.code == "HG070") for d in found)


def test_what_a_device_lacks_is_said_with_what_is_taken() -> None:
    (found,) = too_large(Needs(Cost(0, 0, 0, 41601)), Budget(), device("xc7a35t"), searched_for=False, smallest="it")
    assert "needs about 0 LUT6, 41601 FF, 0 DSP48E1, 0 RAMB18; xc7a35t has 41600 FF" in found.message


@pytest.mark.sweep
def test_faster_devices_are_faster_and_none_is_too_full() -> None:
    rates = []
    for name in ("ice40-up5k", "gowin-gw1n-9", "ecp5-25k"):
        found = call("check", DIGITS, "--device", name)
        one = device(name)
        rates.append(found["rate"]["frames_per_second"])
        assert found["rate"]["clock_mhz"] == one.clock_mhz
        assert found["device"]["device"] == name
        assert 0.1 * one.lut < found["estimate"]["lut"] <= 0.8 * one.lut
        assert found["estimate"]["bram"] <= 0.8 * one.bram
        assert not found["diagnostics"]
    assert rates == sorted(rates)
    assert rates[0] < rates[-1] / 10


@pytest.mark.sweep
def test_a_clock_that_is_given(tmp_path: Path) -> None:
    path = save(mlp().model(), tmp_path / "m.onnx")
    assert call("check", path, "--device", "ecp5-25k", "--clock-mhz", "75")["rate"]["clock_mhz"] == 75
    assert call("check", path)["rate"]["clock_mhz"] == 200
    slow = ("--device", "ecp5-25k")
    cycles = {clock: call("check", DIGITS, "--fps", "1e6", *clock)["cycles"]["interval"] for clock in [(), slow]}
    assert (cycles[()], cycles[slow]) == (192, 80)  # of 200 and of 80 cycles a frame


@pytest.mark.parametrize(
    "arguments",
    [["--fps", "1e6", "--device", "ice40-up5k"], ["--target-cycles", "5", "--device", "xc7a35t"], ["--max-lut", "100"]],
)
def test_what_does_not_fit_is_not_written(arguments: list[str], tmp_path: Path) -> None:
    found = call("build", DIGITS, "-o", tmp_path / "out", *arguments, code=1)
    assert [d["code"] for d in found["diagnostics"]] == ["HG070"]
    assert not (tmp_path / "out").exists()


def test_the_smallest_network_is_tried_before_it_is_said_that_none_fits(tmp_path: Path) -> None:
    """A budget that the smallest folding meets exactly is met."""
    path = save(mlp().model(), tmp_path / "m.onnx")
    smallest = hlsgen.check(path, Options(target_cycles=10**6))
    need = call("check", path, "--target-cycles", str(10**6))["estimate"]["lut"]
    found = hlsgen.check(path, Options(max_lut=need + 1))
    assert found.network.folding == smallest.network.folding
    with pytest.raises(HlsgenError, match="HG070"):
        hlsgen.check(path, Options(max_lut=need - 1))


def test_the_device_is_in_the_manifest_and_certified(tmp_path: Path) -> None:
    path = save(mlp().model(), tmp_path / "m.onnx")
    hlsgen.build(path, tmp_path / "out", Options(device="xc7z020"))
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["options"]["device"] == "xc7z020"
    assert hlsgen.certify(tmp_path / "out").ok
