"""Cell counts of netlists written by hand, and passes that make netlists without DSP blocks."""

from __future__ import annotations

from typing import Any

import pytest

from hlsgen.devices import devices
from hlsgen.synthesis.netlist import Size, size
from hlsgen.synthesis.yosys import passes


def netlist(*cells: tuple[str, dict[str, list[Any]]]) -> dict[str, Any]:
    named = {f"c{n}": {"type": kind, "connections": connections} for n, (kind, connections) in enumerate(cells)}
    return {"top": {"cells": named}}


@pytest.mark.parametrize(
    ("family", "kinds", "expected"),
    [
        ("ecp5", "LUT4 LUT4 CCU2C TRELLIS_FF DP16KD MULT18X18D PFUMX $scopeinfo", Size(8, 1, 1, 1)),
        ("machxo", "LUT4 CCU2D TRELLIS_FF DP8KC PFUMX TRELLIS_DPR16X4", Size(1 + 6 + 6, 1, 1, 0)),
        ("gatemate", "CC_LUT1 CC_L2T4 CC_L2T5 CC_MX4 CC_ADDF CC_DFF CC_BRAM_20K CC_BRAM_40K CC_BUFG", Size(7, 1, 3, 0)),
        ("ice40", "SB_LUT4 SB_DFF SB_DFFESR SB_CARRY SB_RAM40_4K SB_MAC16", Size(1, 2, 1, 1)),
        ("gowin", "LUT3 LUT4 ALU DFFRE SDPB pROMX9 MULT18X18 MULT9X9 MULT9X9 MUX2_LUT5", Size(3, 1, 2, 2)),
        ("xc7", "LUT1 LUT6 SRL16E RAM64M FDRE FDSE RAMB18E1 RAMB36E1 DSP48E1 MUXF7", Size(7, 2, 3, 1)),
        ("xcup", "LUT6 RAM32M16 FDRE RAMB18E2 RAMB36E2 DSP48E2", Size(9, 1, 3, 1)),
        (
            "cyclonev",
            "MISTRAL_ALUT6 MISTRAL_ALUT3 MISTRAL_ALUT_ARITH MISTRAL_FF MISTRAL_M10K MISTRAL_MUL18X18",
            Size(2, 1, 1, 1),
        ),
        ("max10", "fiftyfivenm_lcell_comb dffeas altsyncram", Size(1, 1, 1, 0)),
    ],
)
def test_counts(family: str, kinds: str, expected: Size) -> None:
    cells = ((kind, {"O": [n]} if kind.startswith("LUT") else {}) for n, kind in enumerate(kinds.split()))
    assert size(netlist(*cells), "top", family) == expected


def test_carry_inputs_that_cost_a_lut() -> None:
    """Two inputs S cost one: wire 9 without a LUT, and the second use of LUT 8. Constants cost none."""
    cells = netlist(
        ("LUT2", {"O": [7]}),
        ("LUT2", {"O": [8]}),
        ("CARRY4", {"S": [7, 8, 9, "0"]}),
        ("CARRY4", {"S": [8, "0", "0", "0"]}),
    )
    assert size(cells, "top", "xc7").lut == 2 + 2


def test_ends_of_ecp5_carry_chains_are_counted() -> None:
    """The netlist has a chain of two cells, a chain of one, and a memory with its write port."""
    cells = netlist(
        ("CCU2C", {"CIN": ["0"], "COUT": [5]}),
        ("CCU2C", {"CIN": [5], "COUT": [6]}),
        ("CCU2C", {"CIN": [7], "COUT": []}),
        ("TRELLIS_DPR16X4", {}),
        ("LUT4", {}),
    )
    assert size(cells, "top", "ecp5").lut == 3 * 2 + 2 * 4 + 6 + 1


@pytest.mark.parametrize("name", devices())
def test_dsp_blocks_are_used_or_not(name: str) -> None:
    """Yosys uses DSP blocks of the iCE40 only if an option says so. For other families an option forbids them.

    The GateMate has none, and its option forbids cells for multipliers of tables.
    """
    device = devices()[name]
    with_, without = (passes(device, ["a.v", "b.v"], "core", dsp=dsp)[-2:] for dsp in (True, False))
    assert ("-dsp" in " ".join(with_).split()) == (device.family.name == "ice40")
    forbids = {"ice40": [], "gatemate": ["-nomult"]}.get(device.family.name, ["-nodsp"])
    assert [word for word in " ".join(without).split() if word in ("-nodsp", "-nomult")] == forbids
    assert "-nodsp" not in " ".join(with_)
    assert " ".join(without).split()[-1] in ("core", "netlist.json")


def test_files_come_first() -> None:
    device = devices()["ecp5-25k"]
    assert passes(device, ["a.v", "b.v"], "core", dsp=False)[:2] == [
        "read_verilog -defer a.v",
        "read_verilog -defer b.v",
    ]
