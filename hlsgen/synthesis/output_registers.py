"""Moves registers that directly follow an ECP5 block RAM into the output register of the block RAM.

Yosys (0.70) never uses this output register. A word then takes more than 5 ns from the clock to the first register.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: A module of a netlist, as Yosys writes it in JSON.
Module = dict[str, Any]
Bits = tuple[Any, ...]

#: Parameters of a register that loads its input at the rising edge, with or without an enable, and has no reset.
_PLAIN = {"CLKMUX": {"CLK"}, "CEMUX": {"CE", "1"}, "REGSET": {"RESET"}, "GSR": {"DISABLED"}}


@dataclass(frozen=True)
class _Port:
    """Outputs of a block RAM that share a clock.

    clock: letter of the clock. data: pattern of the output names. halves: halves of the block RAM whose registers the
    outputs use.
    """

    clock: str
    data: str
    halves: str


def absorb(module: Module) -> int:
    """Moves registers into the block RAMs that drive them; returns the number of registers moved.

    The registers of a port move only if each bit of its word drives one register and nothing else, and all of these
    registers have the same enable.
    """
    cells, moved = module["cells"], 0
    blocks = [cell for cell in cells.values() if cell["type"] == "DP16KD"]
    readers = _readers(module) if blocks else {}
    for block in blocks:
        for port in _ports(block):
            register_by_output = _registers(block, port, cells, readers)
            if not register_by_output:
                continue
            nets = block["connections"]
            enable = _enable(cells[next(iter(register_by_output.values()))])
            for half in port.halves:
                block["parameters"][f"REGMODE_{half}"] = "OUTREG"
                nets[f"OCE{half}"] = list(enable)
            for name, register in register_by_output.items():
                nets[name] = cells.pop(register)["connections"]["Q"]
            moved += len(register_by_output)
    return moved


def _ports(block: Mapping[str, Any]) -> Iterator[_Port]:
    """The read ports of a block RAM that have no output register and no reset.

    A port of 36 bits uses both halves, with the clock of half B.
    """
    parameters, nets = block["parameters"], block["connections"]
    uses_both_halves = 36 in (int(parameters[f"DATA_WIDTH_{half}"], 2) for half in "AB")
    ports = [_Port("B", r"DO[AB]\d+", "AB")] if uses_both_halves else [_Port(h, rf"DO{h}\d+", h) for h in "AB"]
    for port in ports:
        unregistered = all(
            parameters[f"REGMODE_{half}"] == "NOREG" and nets.get(f"RST{half}", ["0"]) == ["0"] for half in port.halves
        )
        if unregistered and parameters[f"CLK{port.clock}MUX"] == f"CLK{port.clock}":
            yield port


def _registers(
    block: Mapping[str, Any], port: _Port, cells: Mapping[str, Any], readers: Mapping[Any, list[tuple[str, str]]]
) -> dict[str, str]:
    """The register after each used output of a port, by output name. Empty if the registers cannot move."""
    nets, register_by_output = block["connections"], dict[str, str]()
    for name, bits in nets.items():
        output_readers = readers.get(bits[0], []) if re.fullmatch(port.data, name) and bits else []
        if output_readers:
            cell, pin = output_readers[0]
            if len(output_readers) > 1 or pin != "DI" or not _plain(cells[cell], nets[f"CLK{port.clock}"]):
                return {}
            register_by_output[name] = cell
    return register_by_output if len({_enable(cells[cell]) for cell in register_by_output.values()}) == 1 else {}


def _plain(register: Mapping[str, Any], clock: Any) -> bool:
    """True if a register has this clock, loads at the rising edge, and has no reset."""
    nets, parameters = register["connections"], register["parameters"]
    return bool(
        register["type"] == "TRELLIS_FF"
        and nets["CLK"] == clock
        and nets.get("LSR", ["0"]) == ["0"]
        and all(parameters.get(name) in legal for name, legal in _PLAIN.items())
    )


def _enable(register: Mapping[str, Any]) -> Bits:
    """The enable of a register; constant "1" if it has none."""
    return tuple(register["connections"]["CE"]) if register["parameters"]["CEMUX"] == "CE" else ("1",)


def _readers(module: Module) -> dict[Any, list[tuple[str, str]]]:
    """The readers of each wire as (cell, pin). A module output is a reader with pin ""."""
    readers = defaultdict[Any, list[tuple[str, str]]](list)
    for name, cell in module["cells"].items():
        for pin, bits in cell["connections"].items():
            if cell["port_directions"][pin] != "output":
                for bit in bits:
                    readers[bit].append((name, pin))
    for name, port in module["ports"].items():
        for bit in port["bits"]:
            readers[bit].append((name, ""))
    return dict(readers)
