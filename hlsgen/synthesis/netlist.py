"""Counts what a mapped netlist of Yosys takes of a device: tables, registers, block memories, multiplier blocks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

#: Tables, registers, block memories and multiplier blocks of a cell, by a pattern that its whole type fits.
_Sizes = tuple[float, float, float, float]
_LUT, _FF, _BRAM, _DSP = (1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)
_XILINX: dict[str, _Sizes] = {
    r"LUT[1-6]|SRL16E?|SRLC16E?|SRLC32E|RAM(32|64)X1S": _LUT,
    r"RAM(32|64)X1D|RAM128X1S|RAM32X2S": (2, 0, 0, 0),
    r"RAM32M|RAM64M|RAM128X1D|RAM256X1S": (4, 0, 0, 0),
    r"RAM32M16|RAM64M8|RAM256X1D|RAM512X1S": (8, 0, 0, 0),
    r"FD[RSCP]E(_1)?|LD[CP]E": _FF,
    r"RAMB18E[12]": _BRAM,
    r"RAMB36E[12]": (0, 0, 2, 0),
    r"DSP48E[12]": _DSP,
}
_INTEL_LE: dict[str, _Sizes] = {
    r"\w+_lcell_comb": _LUT,
    r"dffeas": _FF,
    r"altsyncram": _BRAM,
    r"\w+_mac_mult|MUL18|MUL9": _DSP,
}
#: Tables that nextpnr spends on the ends of a carry chain of the ECP5. So measured: with it, and with 2 for constants, the
#: count is that of nextpnr for cores of 0, 6, 10, 21 and 54 chains, to the table.
_CHAIN_ENDS = 4
_CELLS: dict[str, dict[str, _Sizes]] = {
    "ecp5": {
        r"LUT4": _LUT,
        r"CCU2C": (2, 0, 0, 0),
        r"TRELLIS_DPR16X4": (6, 0, 0, 0),  # a slice of its own is its write port
        r"TRELLIS_FF": _FF,
        r"DP16KD|PDPW16KD": _BRAM,
        r"MULT18X18D": _DSP,
    },
    "ice40": {r"SB_LUT4": _LUT, r"SB_DFF\w*": _FF, r"SB_RAM40_4K\w*": _BRAM, r"SB_MAC16": _DSP},
    "gowin": {
        r"LUT[1-4]|ALU": _LUT,
        r"RAM16S\w*": (4, 0, 0, 0),
        r"DFF\w*": _FF,
        r"S?DP(B|X9B)|SP|SPX9|pROM|pROMX9": _BRAM,
        r"MULT9X9": (0, 0, 0, 0.5),
        r"MULT18X18|MULTADDALU18X18|MULTALU18X18|MULT27X36": _DSP,
        r"MULT36X36|MULTALU36X18": (0, 0, 0, 4),
    },
    "xc7": _XILINX,
    "xcu": _XILINX,
    "xcup": _XILINX,
    # An ALM holds two tables of less than six inputs.
    "cyclonev": {
        r"MISTRAL_ALUT6": _LUT,
        r"MISTRAL_(ALUT[2-5]|ALUT_ARITH|NOT|MLAB)": (0.5, 0, 0, 0),
        r"MISTRAL_FF": _FF,
        r"MISTRAL_M10K": _BRAM,
        r"MISTRAL_MUL9X9": (0, 0, 0, 2 / 3),
        r"MISTRAL_MUL18X18": _DSP,
        r"MISTRAL_MUL27X27": (0, 0, 0, 2),
    },
    "cyclone10lp": _INTEL_LE,
    "max10": _INTEL_LE,
}


@dataclass(frozen=True)
class Size:
    """Counts, in the kinds of a family."""

    lut: int
    ff: int
    bram: int
    dsp: int


def size(modules: Mapping[str, Any], top: str, family: str) -> Size:
    """What a flat module of a netlist takes; of carry chains also the tables that only lead into them."""
    cells = modules[top]["cells"]
    kinds = Counter(str(cell["type"]) for cell in cells.values())
    total = [0.0, 0.0, 0.0, 0.0]
    for pattern, each in _CELLS[family].items():
        count = sum(n for kind, n in kinds.items() if re.fullmatch(pattern, kind))
        total = [have + count * more for have, more in zip(total, each, strict=True)]
    if _CELLS[family] is _XILINX:
        total[0] += sum(1 for _ in _ways_into_carry_chains(cells))
    if family == "ecp5":
        total[0] += _CHAIN_ENDS * _carry_chains(cells)
    lut, ff, bram, dsp = (ceil(number) for number in total)
    return Size(lut, ff, bram, dsp)


def _carry_chains(cells: Mapping[str, Any]) -> int:
    """Carry chains of the ECP5: cells that no other one hands its carry to."""
    carries = [cell["connections"] for cell in cells.values() if cell["type"] == "CCU2C"]
    handed = {bit for ends in carries for bit in ends.get("COUT", ())}
    return sum(not handed.intersection(ends.get("CIN", ())) for ends in carries)


def _ways_into_carry_chains(cells: Mapping[str, Any]) -> Iterator[int]:
    """Inputs S of Xilinx carry chains that no table of their own drives: placement spends a table on each."""
    driver = {
        cell["connections"]["O"][0]: name for name, cell in cells.items() if re.fullmatch("LUT[1-6]", cell["type"])
    }
    used = set()
    for cell in cells.values():
        if cell["type"] in ("CARRY4", "CARRY8"):
            for bit in cell["connections"]["S"]:
                if isinstance(bit, int):
                    table = driver.get(bit)
                    if table is None or table in used:
                        yield bit
                    used.add(table)
