"""The devices: what the data file has, and what the vendors' documents say of some of them."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from hlsgen import HlsgenError
from hlsgen.cli import app
from hlsgen.devices import device, devices

#: Tables, registers, block memories in bits, multipliers: of the data sheets, in Kbit where they say that.
SHEETS = {
    "ecp5-85k": (83640, 83640, 3744 * 1024, 156),
    "ice40-up5k": (5280, 5280, 120 * 1024, 8),
    "ice40-hx8k": (7680, 7680, 128 * 1024, 0),
    "gowin-gw1n-9": (8640, 6480, 468 * 1024, 20),
    "gowin-gw2a-18": (20736, 15552, 828 * 1024, 48),
    "gowin-gw5a-25": (23040, 23040, 1008 * 1024, 28),
    "machxo2-1200": (1280, 1280, 63 * 1024, 0),
    "machxo3-6900": (6864, 6864, 234 * 1024, 0),
    "gatemate-a1": (40960, 40960, 1280 * 1024, 0),
    "xc7a35t": (20800, 41600, 1800 * 1024, 90),
    "xc7k325t": (203800, 407600, 16020 * 1024, 840),
    "xc7z020": (53200, 106400, 140 * 36 * 1024, 220),
    "zu3eg": (70560, 141120, 216 * 36 * 1024, 360),
    "cyclonev-5csema5": (32070, 128280, 3970 * 1024, 174),
    "max10-10m50": (49760, 49760, 1638 * 1024, 144),
}


@pytest.mark.parametrize("name", SHEETS)
def test_counts_are_those_of_the_data_sheet(name: str) -> None:
    one = device(name)
    assert (one.lut, one.ff, one.bram * one.family.bram_bits, one.dsp) == SHEETS[name]


@pytest.mark.parametrize("name", devices())
def test_every_device_is_whole(name: str) -> None:
    one = devices()[name]
    assert one.part
    assert one.sheet
    assert 1 <= one.clock_mhz <= 500
    assert 0.5 <= one.family.lut_per_counted <= 3
    assert bool(one.place) == bool(one.family.place)
    assert one.family.place or not one.family.pack
    assert len(one.pins) == (3 if one.family.name == "gowin" else 0)


def test_listed() -> None:
    shown = CliRunner().invoke(app, ["devices"])
    assert shown.exit_code == 0
    assert [line.split()[0] for line in shown.stdout.splitlines()[1:]] == list(devices())
    found = json.loads(CliRunner().invoke(app, ["devices", "--json"]).stdout)
    assert found["ok"]
    assert [one["device"] for one in found["devices"]] == list(devices())
    assert found["devices"][1]["lut"] == {"kind": "LUT4", "inputs": 4, "count": 24288}


def test_unknown() -> None:
    with pytest.raises(HlsgenError, match=r"HG040 --device: 'xc7a36t' is not known. Supported: ecp5-12k"):
        device("xc7a36t")
