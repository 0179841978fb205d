"""Moves registers that directly follow an ECP5 block RAM or multiplier into the output register of that block.

Yosys (0.70) never uses these output registers. A word then takes more than 5 ns from the clock to the first register,
and a product 3.9 ns besides the wires to and from its block.

    python output_registers.py NETLIST TOP   # rewrites a JSON netlist of Yosys

Packages have a copy of this file, so it needs nothing but Python.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Name of the copy of this file in packages.
FILE = "output_registers.py"
#: A module of a netlist, as Yosys writes it in JSON.
Module = dict[str, Any]
Bits = tuple[Any, ...]
#: The readers of each wire, see `_readers`.
Readers = dict[Any, list[tuple[str, str]]]

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
    """Moves registers into the block RAMs and multipliers that drive them; returns the number of registers moved.

    The registers of a port move only if each bit of its word drives one register and nothing else. All of these
    registers must have the same clock and enable.
    """
    cells, moved = module["cells"], 0
    blocks = [cell for cell in cells.values() if cell["type"] in ("DP16KD", "MULT18X18D")]
    readers = _readers(module) if blocks else {}
    for block in blocks:
        if block["type"] == "MULT18X18D":
            moved += _absorb_product(block, cells, readers)
            continue
        for port in _ports(block):
            register_by_output = _registers(block, port.data, block["connections"][f"CLK{port.clock}"], cells, readers)
            if not register_by_output:
                continue
            enable = _enable(cells[next(iter(register_by_output.values()))])
            for half in port.halves:
                block["parameters"][f"REGMODE_{half}"] = "OUTREG"
                block["connections"][f"OCE{half}"] = list(enable)
            moved += _move(block, register_by_output, cells)
    return moved


def _absorb_product(block: dict[str, Any], cells: dict[str, Any], readers: Readers) -> int:
    """Moves the registers after a multiplier without registers, if they have an enable; returns their number."""
    parameters, nets = block["parameters"], block["connections"]
    if any(name.startswith("REG_") and value != "NONE" for name, value in parameters.items()):
        return 0
    products = [bits[0] for name, bits in nets.items() if re.fullmatch(r"P\d+", name) and bits]
    users = [cells[cell] for bit in products for cell, pin in readers.get(bit, []) if pin == "DI"]
    register_by_output = _registers(block, r"P\d+", users[0]["connections"]["CLK"], cells, readers) if users else {}
    if not register_by_output or _enable(users[0]) == ("1",):
        return 0
    parameters |= {"REG_OUTPUT_CLK": "CLK0", "REG_OUTPUT_CE": "CE0", "REG_OUTPUT_RST": "RST0"}
    nets |= {"CLK0": users[0]["connections"]["CLK"], "CE0": list(_enable(users[0])), "RST0": ["0"]}
    block["port_directions"] |= dict.fromkeys(("CLK0", "CE0", "RST0"), "input")
    return _move(block, register_by_output, cells)


def _move(block: dict[str, Any], register_by_output: Mapping[str, str], cells: dict[str, Any]) -> int:
    """Gives the wires of the registers to the outputs of a block; returns the number of registers."""
    for name, register in register_by_output.items():
        block["connections"][name] = cells.pop(register)["connections"]["Q"]
    return len(register_by_output)


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
    block: Mapping[str, Any], outputs: str, clock: Any, cells: Mapping[str, Any], readers: Readers
) -> dict[str, str]:
    """The register after each used output of a port, by output name. Empty if the registers cannot move.

    outputs: pattern of the names of the port's outputs.
    """
    nets, register_by_output = block["connections"], dict[str, str]()
    for name, bits in nets.items():
        output_readers = readers.get(bits[0], []) if re.fullmatch(outputs, name) and bits else []
        if output_readers:
            cell, pin = output_readers[0]
            if len(output_readers) > 1 or pin != "DI" or not _plain(cells[cell], clock):
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


def _readers(module: Module) -> Readers:
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


def source() -> bytes:
    """The text of this file."""
    return Path(__file__).read_bytes()


def main() -> None:
    """Moves the registers of the module that is named on the command line, in the netlist of that file."""
    path = Path(sys.argv[1])
    netlist = json.loads(path.read_text(encoding="utf-8"))
    moved = absorb(netlist["modules"][sys.argv[2]])
    path.write_text(json.dumps(netlist), encoding="utf-8")
    print(f"{moved} registers moved into block RAMs and multipliers")


if __name__ == "__main__":
    main()
