"""What a search among thresholds is expected to take."""

from __future__ import annotations

import numpy as np
import pytest

from hlsgen.dataflow.units import Node, RescaleUnit, Stream
from hlsgen.numerics.fixed import IntType
from hlsgen.rescale import Choice, Thresholds
from hlsgen.verilog.resource_model import cost_of
from hlsgen.verilog.unit_table import node_parts


def luts(folds: int, lanes: int, bits: int, low: int, high: int) -> float:
    """Estimated Xilinx 7 series LUTs of a search for 3-bit codes: thresholds low..high in sums of `bits` bits."""
    sets = folds * lanes
    steps = np.sort(np.random.default_rng(1).integers(low, high, (7, sets)), axis=0)
    found = Thresholds(steps, np.zeros(sets, bool), 0)
    unit = RescaleUnit(found, np.arange(sets).reshape(folds, lanes))
    source = Stream(IntType(-(1 << (bits - 1)), (1 << (bits - 1)) - 1), lanes, folds, sets)
    node = Node("q", unit, ("x",), (source,), ("y",), Stream(IntType(0, 7), lanes, folds, sets), "act")
    choices = {"act": Choice("thresholds", found, None, ())}
    return cost_of(node_parts(node, choices, set(), dsp=0, style=0)).lut


@pytest.mark.parametrize(("folds", "lanes", "bits", "measured"), [(43, 6, 19, 944), (64, 4, 12, 456), (64, 4, 13, 437)])
def test_thresholds_all_over_the_sums(folds: int, lanes: int, bits: int, measured: int) -> None:
    """Those of three layers of KWS w3a3, as Yosys made them: their thresholds have bits that vary, all of them."""
    assert 0.8 * measured < luts(folds, lanes, bits, -1 << (bits - 1), 1 << (bits - 1)) < 1.2 * measured


def test_bits_that_never_change_are_no_memory() -> None:
    assert luts(64, 4, 19, 0, 1 << 7) < 0.7 * luts(64, 4, 19, 0, 1 << 18)
