"""The clock model of the benchmarks: timing of the registers in a DSP block."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import pytest
from paths import ROOT

SPEC = importlib.util.spec_from_file_location("block_timing", ROOT / "benchmarks" / "synthesis" / "timing.py")
assert SPEC is not None
assert SPEC.loader is not None
timing = importlib.util.module_from_spec(SPEC)
sys.modules[SPEC.name] = timing  # its dataclass looks its module up
SPEC.loader.exec_module(timing)


def netlist(port: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """A register that drives a port of a DSP block."""
    cells = {
        "register": {
            "type": "FDRE",
            "parameters": {},
            "port_directions": {"C": "input", "D": "input", "Q": "output"},
            "connections": {"C": [2], "D": ["0"], "Q": [3]},
        },
        "block": {
            "type": "DSP48E1",
            "parameters": parameters,
            "port_directions": {"CLK": "input", port: "input", "P": "output"},
            "connections": {"CLK": [2], port: [3], "P": [4]},
        },
    }
    return {"ports": {"clk": {"direction": "input", "bits": [2]}}, "cells": cells, "netnames": {"q": {"bits": [3]}}}


@pytest.mark.parametrize(
    "port, parameters, setup",
    [
        ("A", {"AREG": 1}, 0.36),
        ("A", {"AREG": 0, "USE_DPORT": "TRUE"}, 1.7),
        ("A", {"AREG": 0, "USE_DPORT": "TRUE", "ADREG": 0}, 2.6),
        ("A", {"AREG": 0, "USE_DPORT": "FALSE"}, 2.6),
        ("A", {"AREG": 0, "USE_DPORT": "FALSE", "MREG": 0}, 3.6),
        ("B", {"BREG": 0, "USE_DPORT": "TRUE"}, 2.6),
        ("D", {"DREG": 1, "USE_DPORT": "TRUE"}, 0.36),
        ("D", {"DREG": 0, "USE_DPORT": "TRUE"}, 1.7),
    ],
)
def test_registers_of_dsp_blocks(port: str, parameters: dict[str, Any], setup: float) -> None:
    """The path runs from the clock through one net to the first register in the DSP block."""
    path = timing.longest_path(netlist(port, parameters))
    assert (path.ns, path.start) == (round(0.456 + 0.5 + setup, 2), "q[0]")
