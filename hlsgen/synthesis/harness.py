"""A top level of three pins around a core: for timing, and to show that a flow ends with a bitstream. No product."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from hlsgen.library import render

#: The module that it is, and its file.
TOP, FILE = "hg_harness", "hg_harness.v"
#: Its ports: clock, data in, data out.
PORTS = ("clk", "si", "so")
_PORT = re.compile(
    r"^\s*(?:\(\*.*\*\)\s*)*(input|output)\s+(?:wire|reg)?\s*(?:\[(\d+):0\]\s*)?(\w+)\s*,?\s*$", re.MULTILINE
)


def harness(top: str, text: str, clock: str) -> str:
    """The Verilog of a harness for module `top`, whose source is `text`; `clock` is its clock port.

    Raises ValueError if the module's ports cannot be read, or there is no input or output beside the clock.
    """
    ports = ports_of(top, text)
    inputs, ins = _placed((width, name) for kind, width, name in ports if kind == "input" and name != clock)
    outputs, outs = _placed((width, name) for kind, width, name in ports if kind == "output")
    if not (ins and outs and any(name == clock for _, _, name in ports)):
        raise ValueError(f"no ports of module {top} found")
    levels: list[dict[str, Any]] = []
    width = outs
    while width > 1:
        terms = [f"{min(at + 3, width - 1)}:{at}" for at in range(0, width, 4)]
        levels.append({"number": len(levels) + 1, "terms": terms})
        width = len(terms)
    return render(
        "verilog/harness.v.j2", top=top, clock=clock, inputs=inputs, outputs=outputs, inputs_width=ins,
        outputs_width=outs, levels=levels, shifted="si" if ins == 1 else f"{{hg_pins_in[{ins - 2}:0], si}}",
    )  # fmt: skip


def ports_of(top: str, text: str) -> list[tuple[str, int, str]]:
    """("input" or "output", bits, name) of every port of module `top`, whose source is `text`; none if they cannot be read."""
    head = re.search(rf"^module {re.escape(top)} \((.*?)\n\);", text, re.DOTALL | re.MULTILINE)
    return [(kind, int(high or 0) + 1, name) for kind, high, name in _PORT.findall(head[1])] if head else []


def _placed(ports: Iterable[tuple[int, str]]) -> tuple[list[tuple[str, str]], int]:
    """(port, bits) one behind the other, and how many bits they are."""
    found, at = [], 0
    for width, name in ports:
        found.append((name, f"{at + width - 1}:{at}"))
        at += width
    return found, at


def own_cells(module: Mapping[str, Any]) -> tuple[int, int]:
    """(tables, registers) of the harness in a mapped netlist: registers of its names, and the exclusive ors in front."""
    own = {
        bit
        for name, net in module["netnames"].items()
        if re.match(r"hg_(pins_in|fold\d+)\b", name)
        for bit in net["bits"]
        if isinstance(bit, int)
    }
    registers = sum(
        bool(re.fullmatch(r"TRELLIS_FF|SB_DFF\w*|DFF\w*", cell["type"]) and own & _output(cell))
        for cell in module["cells"].values()
    )
    folds = {
        bit
        for name, net in module["netnames"].items()
        if re.match(r"hg_fold[1-9]\d*\b", name)
        for bit in net["bits"]
        if isinstance(bit, int)
    }
    return len(folds), registers


def _output(cell: Mapping[str, Any]) -> set[int]:
    return {bit for bit in cell["connections"].get("Q", ()) if isinstance(bit, int)}
