"""Registers right behind a block memory of the ECP5 become the register that the block has at its output.

Yosys (0.70) maps every block without it, and a word then takes more than 5 ns from the clock to the first register.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: A module of a netlist as Yosys writes it.
Module = dict[str, Any]
Bits = tuple[Any, ...]

#: Parameters of a register that follows its input at each rising edge with its enable, or without one; it has no reset.
_PLAIN = {"CLKMUX": {"CLK"}, "CEMUX": {"CE", "1"}, "REGSET": {"RESET"}, "GSR": {"DISABLED"}}


@dataclass(frozen=True)
class _Port:
    """Outputs of a block that have one clock: their names, and the halves of the block whose registers they go through."""

    clock: str
    data: str
    halves: str


def absorb(module: Module) -> int:
    """Moves such registers into their blocks; how many of them. A register moves where all bits of a word that are read go
    to registers with one enable, and to nothing else."""
    cells, moved = module["cells"], 0
    blocks = [cell for cell in cells.values() if cell["type"] == "DP16KD"]
    readers = _readers(module) if blocks else {}
    for block in blocks:
        for port in _ports(block):
            found = _registers(block, port, cells, readers)
            if not found:
                continue
            nets = block["connections"]
            enable = _enable(cells[next(iter(found.values()))])
            for half in port.halves:
                block["parameters"][f"REGMODE_{half}"] = "OUTREG"
                nets[f"OCE{half}"] = list(enable)
            for name, register in found.items():
                nets[name] = cells.pop(register)["connections"]["Q"]
            moved += len(found)
    return moved


def _ports(block: Mapping[str, Any]) -> Iterator[_Port]:
    """The ports that words are read at: of 36 bits both halves together, by the clock of the second."""
    parameters, nets = block["parameters"], block["connections"]
    wide = 36 in (int(parameters[f"DATA_WIDTH_{half}"], 2) for half in "AB")
    for port in [_Port("B", r"DO[AB]\d+", "AB")] if wide else [_Port(h, rf"DO{h}\d+", h) for h in "AB"]:
        plain = all(
            parameters[f"REGMODE_{half}"] == "NOREG" and nets.get(f"RST{half}", ["0"]) == ["0"] for half in port.halves
        )
        if plain and parameters[f"CLK{port.clock}MUX"] == f"CLK{port.clock}":
            yield port


def _registers(
    block: Mapping[str, Any], port: _Port, cells: Mapping[str, Any], readers: Mapping[Any, list[tuple[str, str]]]
) -> dict[str, str]:
    """The register behind each output of a port that is read; empty if they cannot move."""
    nets, found = block["connections"], dict[str, str]()
    for name, bits in nets.items():
        taken = readers.get(bits[0], []) if re.fullmatch(port.data, name) and bits else []
        if taken:
            cell, pin = taken[0]
            if len(taken) > 1 or pin != "DI" or not _plain(cells[cell], nets[f"CLK{port.clock}"]):
                return {}
            found[name] = cell
    return found if len({_enable(cells[cell]) for cell in found.values()}) == 1 else {}


def _plain(register: Mapping[str, Any], clock: Any) -> bool:
    nets, parameters = register["connections"], register["parameters"]
    return bool(
        register["type"] == "TRELLIS_FF"
        and nets["CLK"] == clock
        and nets.get("LSR", ["0"]) == ["0"]
        and all(parameters.get(name) in legal for name, legal in _PLAIN.items())
    )


def _enable(register: Mapping[str, Any]) -> Bits:
    return tuple(register["connections"]["CE"]) if register["parameters"]["CEMUX"] == "CE" else ("1",)


def _readers(module: Module) -> dict[Any, list[tuple[str, str]]]:
    """Who reads each wire: cell and pin, the module's own outputs among them."""
    found = defaultdict[Any, list[tuple[str, str]]](list)
    for name, cell in module["cells"].items():
        for pin, bits in cell["connections"].items():
            if cell["port_directions"][pin] != "output":
                for bit in bits:
                    found[bit].append((name, pin))
    for name, port in module["ports"].items():
        for bit in port["bits"]:
            found[bit].append((name, ""))
    return dict(found)
