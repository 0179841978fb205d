"""Registers that move into a block of the ECP5: netlists of one block, and changes that must prevent the move."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ecp5_netlists import ADDRESS, CLOCK, ENABLE, OTHER, REGISTERED, WORD, module

from hlsgen.synthesis import output_registers
from hlsgen.synthesis.output_registers import absorb


@pytest.mark.parametrize("width", [18, 36])
def test_registers_move(width: int) -> None:
    """Words of 36 bits use registers and enables of both halves, words of 18 bits only the half that is read."""
    netlist = module(width)
    assert absorb(netlist) == 3
    assert set(netlist["cells"]) == {"memory", "lut"}
    block = netlist["cells"]["memory"]
    halves = "AB" if width == 36 else "B"
    for half in "AB":
        moved = half in halves
        assert block["parameters"][f"REGMODE_{half}"] == ("OUTREG" if moved else "NOREG")
        assert block["connections"][f"OCE{half}"] == ([ENABLE] if moved else ["0"])
    names = ("DOA0", "DOB0", "DOB17") if width == 36 else ("DOB0", "DOB1", "DOB17")
    assert [block["connections"][name] for name in names] == [[bit] for bit in REGISTERED]
    assert absorb(netlist) == 0


def test_registers_without_enable_move() -> None:
    netlist = module(18)
    for n in range(3):
        netlist["cells"][f"r{n}"]["parameters"]["CEMUX"] = "1"
    assert absorb(netlist) == 3
    assert netlist["cells"]["memory"]["connections"]["OCEB"] == ["1"]


def reader(netlist: dict[str, Any]) -> None:
    netlist["cells"]["lut"]["connections"]["A"] = [WORD[1]]


def port(netlist: dict[str, Any]) -> None:
    netlist["ports"]["out"]["bits"].append(WORD[1])


def inverted(netlist: dict[str, Any]) -> None:
    for n in range(3):
        netlist["cells"][f"r{n}"]["parameters"]["CEMUX"] = "INV"


def bypassed(netlist: dict[str, Any]) -> None:
    """The other data input of the register has the word's bit."""
    netlist["cells"]["r1"]["connections"] |= {"DI": [OTHER], "M": [WORD[1]]}
    netlist["cells"]["r1"]["port_directions"]["M"] = "input"


def nets(cell: str, **changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda netlist: netlist["cells"][cell]["connections"].update(changes)


def parameters(cell: str, **changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda netlist: netlist["cells"][cell]["parameters"].update(changes)


#: Changes of registers and of their readers that prevent any move.
CHANGES = [
    reader,
    port,
    inverted,
    nets("r1", LSR=[OTHER]),
    nets("r1", CE=[OTHER]),
    nets("r1", CLK=[OTHER]),
    bypassed,
    parameters("r1", CEMUX="INV"),
    parameters("r1", CEMUX="1"),
    parameters("r1", CLKMUX="INV"),
    parameters("r1", REGSET="SET"),
    parameters("r1", GSR="ENABLED"),
]


@pytest.mark.parametrize("width", [18, 36])
@pytest.mark.parametrize(
    "change",
    [
        *CHANGES,
        nets("memory", RSTB=[OTHER]),
        parameters("memory", CLKBMUX="INV"),
        parameters("memory", REGMODE_B="OUTREG"),
    ],
)
def test_other_registers_stay(change: Callable[[dict[str, Any]], None], width: int) -> None:
    netlist = module(width)
    change(netlist)
    original = copy.deepcopy(netlist)
    assert absorb(netlist) == 0
    assert netlist == original


def product() -> dict[str, Any]:
    """A multiplier whose product has three used bits, with registers after them, and a LUT after the first register."""
    netlist = module(18)
    nets: dict[str, list[Any]] = {"P0": [10], "P1": [11], "P2": [12], "P3": [13], "A0": [ADDRESS], "SIGNEDA": ["1"]}
    netlist["cells"]["memory"] = {
        "type": "MULT18X18D",
        "parameters": {},
        "port_directions": {name: "output" if name[0] == "P" else "input" for name in nets},
        "connections": nets,
    }
    return netlist


def test_registers_move_into_a_multiplier() -> None:
    netlist = product()
    assert absorb(netlist) == 3
    assert set(netlist["cells"]) == {"memory", "lut"}
    block = netlist["cells"]["memory"]
    assert block["parameters"] == {"REG_OUTPUT_CLK": "CLK0", "REG_OUTPUT_CE": "CE0", "REG_OUTPUT_RST": "RST0"}
    nets = block["connections"]
    assert (nets["CLK0"], nets["CE0"], nets["RST0"]) == ([CLOCK], [ENABLE], ["0"])
    assert [nets[f"P{n}"] for n in range(4)] == [[20], [21], [22], [13]]
    assert {block["port_directions"][name] for name in ("CLK0", "CE0", "RST0")} == {"input"}
    assert absorb(netlist) == 0


def without_enable(netlist: dict[str, Any]) -> None:
    for n in range(3):
        netlist["cells"][f"r{n}"]["parameters"]["CEMUX"] = "1"


@pytest.mark.parametrize("change", [*CHANGES, without_enable, parameters("memory", REG_INPUTA_CLK="CLK0")])
def test_other_registers_of_products_stay(change: Callable[[dict[str, Any]], None]) -> None:
    netlist = product()
    change(netlist)
    original = copy.deepcopy(netlist)
    assert absorb(netlist) == 0
    assert netlist == original


def test_a_netlist_is_rewritten(tmp_path: Path) -> None:
    """As packages do it: by the file itself, without the rest of hlsgen."""
    (tmp_path / "netlist.json").write_text(json.dumps({"modules": {"top": module(18)}}))
    (tmp_path / output_registers.FILE).write_bytes(output_registers.source())
    command = [sys.executable, "-I", "-S", output_registers.FILE, "netlist.json", "top"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "3 registers moved into block RAMs and multipliers\n"
    moved = module(18)
    absorb(moved)
    assert json.loads((tmp_path / "netlist.json").read_text()) == {"modules": {"top": moved}}
