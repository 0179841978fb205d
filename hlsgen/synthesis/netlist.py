"""Counts the device resources of a mapped Yosys netlist: LUTs, registers, block RAMs, DSP blocks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

#: LUTs, registers, block RAMs and DSP blocks of one cell.
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
#: LUTs that nextpnr spends on the two ends of a carry chain of the ECP5 and the MachXO. Measured for the ECP5: with
#: these, and 2 LUTs for constants, the count equals nextpnr's exactly for cores of 0, 6, 10, 21 and 54 chains.
_CHAIN_ENDS = 4
#: By family: the size of a cell, by a pattern that matches the whole cell type.
_CELLS: dict[str, dict[str, _Sizes]] = {
    "ecp5": {
        r"LUT4": _LUT,
        r"CCU2C": (2, 0, 0, 0),
        r"TRELLIS_DPR16X4": (6, 0, 0, 0),  # its write port occupies a whole slice
        r"TRELLIS_FF": _FF,
        r"DP16KD|PDPW16KD": _BRAM,
        r"MULT18X18D": _DSP,
    },
    "machxo": {
        r"LUT4": _LUT,
        r"CCU2D": (2, 0, 0, 0),
        r"TRELLIS_DPR16X4": (6, 0, 0, 0),
        r"TRELLIS_FF": _FF,
        r"(DP|PDPW|SP)8KC": _BRAM,
    },
    # nextpnr adds CPEs through which signals pass: 13 % were measured.
    "gatemate": {
        r"CC_(LUT[12]|L2T4|MX2|ADDF)": _LUT,
        r"CC_(L2T5|MX4)": (2, 0, 0, 0),
        r"CC_DFF": _FF,
        r"CC_BRAM_20K": _BRAM,
        r"CC_BRAM_40K": (0, 0, 2, 0),
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
    # An ALM holds two LUTs of fewer than six inputs.
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
    """Counts of LUTs, registers, block RAMs and DSP blocks, in the family's own kinds."""

    lut: int
    ff: int
    bram: int
    dsp: int


def size(modules: Mapping[str, Any], top: str, family: str) -> Size:
    """Resources of module `top`, which is flat. The count includes LUTs that placement spends on carry chains."""
    cells = modules[top]["cells"]
    cell_counts = Counter(str(cell["type"]) for cell in cells.values())
    total = [0.0, 0.0, 0.0, 0.0]
    for pattern, cell_size in _CELLS[family].items():
        count = sum(n for cell_type, n in cell_counts.items() if re.fullmatch(pattern, cell_type))
        total = [subtotal + count * per_cell for subtotal, per_cell in zip(total, cell_size, strict=True)]
    if _CELLS[family] is _XILINX:
        total[0] += sum(1 for _ in _carry_inputs_that_cost_a_lut(cells))
    if family in ("ecp5", "machxo"):
        total[0] += _CHAIN_ENDS * _carry_chains(cells)
    lut, ff, bram, dsp = (ceil(number) for number in total)
    return Size(lut, ff, bram, dsp)


def _carry_chains(cells: Mapping[str, Any]) -> int:
    """The number of carry chains of a Lattice netlist: carry cells whose carry input no other cell drives."""
    carries = [cell["connections"] for cell in cells.values() if cell["type"] in ("CCU2C", "CCU2D")]
    carry_outputs = {bit for pins in carries for bit in pins.get("COUT", ())}
    return sum(not carry_outputs.intersection(pins.get("CIN", ())) for pins in carries)


def _carry_inputs_that_cost_a_lut(cells: Mapping[str, Any]) -> Iterator[int]:
    """Inputs S of Xilinx carry chains without a LUT of their own: placement spends a LUT on each."""
    lut_by_output = {
        cell["connections"]["O"][0]: name for name, cell in cells.items() if re.fullmatch("LUT[1-6]", cell["type"])
    }
    used_luts = set()
    for cell in cells.values():
        if cell["type"] in ("CARRY4", "CARRY8"):
            for bit in cell["connections"]["S"]:
                if isinstance(bit, int):
                    lut = lut_by_output.get(bit)
                    if lut is None or lut in used_luts:
                        yield bit
                    used_luts.add(lut)
