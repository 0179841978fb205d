"""A top level with three pins around a core, for timing and for a trial bitstream. It is no product."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hlsgen.library import render

#: Name of the harness module, and of its file.
TOP, FILE = "hg_harness", "hg_harness.v"
#: Its ports: clock, data in, data out.
PORTS = ("clk", "si", "so")
_PORT = re.compile(
    r"^\s*(?:\(\*.*\*\)\s*)*(input|output)\s+(?:wire|reg)?\s*(?:\[(\d+):0\]\s*)?(\w+)\s*,?\s*$", re.MULTILINE
)


#: Direction ("input" or "output"), bits and name of a port.
PortBits = tuple[str, int, str]


def harness(top: str, ports: Sequence[PortBits], clock: str) -> str:
    """The Verilog of a harness for module `top` with these ports; `clock` is its clock port.

    Raises ValueError if there is no clock, or no input or no output besides it.
    """
    inputs, inputs_width = _concatenated(
        (width, name) for direction, width, name in ports if direction == "input" and name != clock
    )
    outputs, outputs_width = _concatenated((width, name) for direction, width, name in ports if direction == "output")
    if not (inputs_width and outputs_width and any(name == clock for _, _, name in ports)):
        raise ValueError(f"the ports of module {top} cannot be read")
    levels: list[dict[str, Any]] = []
    width = outputs_width
    while width > 1:
        terms = [f"{min(low + 3, width - 1)}:{low}" for low in range(0, width, 4)]
        levels.append({"number": len(levels) + 1, "terms": terms})
        width = len(terms)
    return render(
        "verilog/harness.v.j2",
        top=top,
        clock=clock,
        inputs=inputs,
        outputs=outputs,
        inputs_width=inputs_width,
        outputs_width=outputs_width,
        levels=levels,
        shifted="si" if inputs_width == 1 else f"{{hg_pins_in[{inputs_width - 2}:0], si}}",
    )


def ports_of(top: str, text: str) -> list[PortBits]:
    """Every port of module `top`, whose source is `text`. Empty if the ports cannot be read."""
    head = re.search(rf"^module {re.escape(top)} \((.*?)\n\);", text, re.DOTALL | re.MULTILINE)
    return [(direction, int(high or 0) + 1, name) for direction, high, name in _PORT.findall(head[1])] if head else []


def _concatenated(ports: Iterable[tuple[int, str]]) -> tuple[list[tuple[str, str]], int]:
    """(port, bit range) of each port in one vector that concatenates them, and the width of the vector."""
    ranges, low = [], 0
    for width, name in ports:
        ranges.append((name, f"{low + width - 1}:{low}"))
        low += width
    return ranges, low


def harness_cells(module: Mapping[str, Any]) -> tuple[int, int]:
    """(LUTs, registers) of the harness in a mapped netlist.

    The registers are recognized by the names of their nets. Each exclusive or before a fold register is one LUT.
    """
    harness_bits = _bits_named(module, r"hg_(pins_in|fold\d+)\b")
    registers = sum(
        bool(re.fullmatch(r"TRELLIS_FF|SB_DFF\w*|(CC_)?DFF\w*", cell["type"]) and harness_bits & _output(cell))
        for cell in module["cells"].values()
    )
    return len(_bits_named(module, r"hg_fold[1-9]\d*\b")), registers


def _bits_named(module: Mapping[str, Any], pattern: str) -> set[int]:
    """Numbers of the wires whose net name begins with a pattern."""
    return {
        bit
        for name, net in module["netnames"].items()
        if re.match(pattern, name)
        for bit in net["bits"]
        if isinstance(bit, int)
    }


def _output(cell: Mapping[str, Any]) -> set[int]:
    """Numbers of the wires at a register's output Q."""
    return {bit for bit in cell["connections"].get("Q", ()) if isinstance(bit, int)}
