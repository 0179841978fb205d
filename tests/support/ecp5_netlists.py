"""Netlists of one block of an ECP5, as Yosys writes them."""

from __future__ import annotations

from typing import Any

CLOCK, ENABLE, OTHER, ADDRESS = 2, 3, 4, 5
#: Outputs of the block RAM, and of the registers after them.
WORD, REGISTERED = (10, 11, 12), (20, 21, 22)


def register(source: int, output: int) -> dict[str, Any]:
    return {
        "type": "TRELLIS_FF",
        "parameters": {"CLKMUX": "CLK", "CEMUX": "CE", "LSRMUX": "LSR", "REGSET": "RESET", "GSR": "DISABLED"},
        "port_directions": {"CLK": "input", "CE": "input", "LSR": "input", "DI": "input", "Q": "output"},
        "connections": {"CLK": [CLOCK], "CE": [ENABLE], "LSR": ["0"], "DI": [source], "Q": [output]},
    }


def module(width: int) -> dict[str, Any]:
    """A block RAM, registers after it, and a LUT. Words have 36 bits in both halves, or 18 bits at the second port."""
    names = ("DOA0", "DOB0", "DOB17") if width == 36 else ("DOB0", "DOB1", "DOB17")
    nets: dict[str, list[Any]] = {name: [bit] for name, bit in zip(names, WORD, strict=True)}
    nets |= {"DOB9": [], "DOA9": [19], "CLKA": ["0"], "CLKB": [CLOCK], "CEB": [OTHER], "ADB5": [ADDRESS]}
    nets |= {"OCEA": ["0"], "OCEB": ["1"], "RSTA": ["0"], "RSTB": ["0"]}
    block = {
        "type": "DP16KD",
        "parameters": {
            "DATA_WIDTH_A": f"{width:032b}",
            "DATA_WIDTH_B": f"{width:032b}",
            "REGMODE_A": "NOREG",
            "REGMODE_B": "NOREG",
            "CLKAMUX": "CLKA",
            "CLKBMUX": "CLKB",
        },
        "port_directions": {name: "output" if name.startswith("DO") else "input" for name in nets},
        "connections": nets,
    }
    lut = {
        "type": "LUT4",
        "parameters": {},
        "port_directions": {"A": "input", "Z": "output"},
        "connections": {"A": [20], "Z": [30]},
    }
    cells = {"memory": block, **{f"r{n}": register(*bits) for n, bits in enumerate(zip(WORD, REGISTERED, strict=True))}}
    ports = {"out": {"direction": "output", "bits": [21, 22, 30]}}
    return {"cells": {**cells, "lut": lut}, "ports": ports}
