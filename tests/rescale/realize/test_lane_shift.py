"""hlsgen.rescale.realize.lane_shift: a proven shift for each channel, or the reason why there is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hlsgen
from hlsgen.certify.models.arithmetic import CascadeModel
from hlsgen.certify.models.lane_shift import LaneShiftModel
from hlsgen.certify.netlist_reader import Cell, Memories, SizedConstant
from hlsgen.certify.proof import prove
from hlsgen.ir.encoding import Fixed
from hlsgen.ir.ops import Add, IntQuant, Max, Min
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import IntType, Rounding, int_type
from hlsgen.rescale.realize import lane_shift
from hlsgen.rescale.realize.lane_shift import LaneShift, find
from hlsgen.verilog.binding.lane_shift import bind
from hlsgen.verilog.binding.memory_files import Bits

Array = Any
SETS = 6
CONSTANTS = ("WIDTHS", "LEFTS", "SHIFTS", "MODES", "FLAGS", "OFFSETS", "LOWS", "HIGHS")


def function(rng: np.random.Generator, mode: Rounding, source: IntType) -> StepFunction:
    """A scale, a bias and bounds for each channel; the scales are powers of two, larger and smaller than 1."""
    scale = np.exp2(rng.integers(-2, 6, SETS)).astype(np.float32)
    # A fraction of a step of the input is rounded away, but for the roundings that turn at zero.
    fraction = 1 if mode in (Rounding.UP, Rounding.DOWN, Rounding.HALF_UP, Rounding.HALF_DOWN) else 8
    bias = (rng.integers(-300, 300, SETS) / fraction).astype(np.float32)
    low = (scale * rng.integers(-20, 2, SETS)).astype(np.float32)
    high = (low + scale * rng.integers(0, 24, SETS)).astype(np.float32)
    quantizer = IntQuant(scale, np.zeros(SETS, np.float32), int_type(6, True), mode)
    lo = rng.integers(source.lo, source.lo + 30, SETS)
    return StepFunction(
        "test",
        Fixed(0),
        (Add(bias), Min(high), Max(low)),
        quantizer,
        np.arange(SETS),
        lo,
        np.full(SETS, source.hi),
        source,
        quantizer.type,
    )


def check_every_input(f: StepFunction, shifts: LaneShift) -> None:
    """Compare on all inputs of all sets."""
    x = np.clip(np.arange(f.lo.min(), f.hi.max() + 1)[:, None], f.lo, f.hi)
    assert (shifts.apply(x) == f.evaluate(x)).all()
    low, high = shifts.ends
    assert (high < 1 << (shifts.width - ~shifts.unsigned)).all()
    assert (shifts.unsigned | (low >= -(1 << (shifts.width - 1)))).all()


@pytest.mark.parametrize("mode", list(Rounding))
@pytest.mark.parametrize("signed", [False, True])
def test_every_rounding_of_random_channels(mode: Rounding, signed: bool) -> None:
    rng = np.random.default_rng(10 * int(mode) + signed)
    for _ in range(2):
        f = function(rng, mode, int_type(10, signed))
        shifts = find(f)
        assert isinstance(shifts, LaneShift), shifts
        check_every_input(f, shifts)


def test_a_channel_whose_scale_is_no_power_of_two() -> None:
    f = function(np.random.default_rng(3), Rounding.ROUND, int_type(10, True))
    scale = np.array([1, 2, 4, 3, 8, 16], np.float32)
    free = (Add(np.zeros(SETS, np.float32)),)
    f = replace(f, ops=free, quantizer=replace(f.quantizer, scale=scale))
    assert find(f) == "no power of two with any of the seven roundings reproduces set 3"


def test_the_proof_catches_a_wrong_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    f = function(np.random.default_rng(4), Rounding.FLOOR, int_type(10, True))
    right = lane_shift._with_mode

    def wrong(*arguments: Any) -> LaneShift:
        shifts = right(*arguments)
        return replace(shifts, offset=shifts.offset + 1)

    monkeypatch.setattr(lane_shift, "_with_mode", wrong)
    assert "no power of two" in str(find(f))


def test_bits_and_bounds_that_a_lane_needs() -> None:
    """x + 3 of 0..60 is a number of six bits; its codes 0..7 never leave 0..9, but leave 0..5."""
    ones = np.ones(2, np.int64)
    shifts = LaneShift(0 * ones, 3 * ones, 2 * ones, 3 * ones, 0 * ones, np.array([9, 5]), 0 * ones, 60 * ones)
    assert shifts.width.tolist() == [6, 6]
    assert shifts.unsigned.all()
    assert [bounds.tolist() for bounds in shifts.clamps] == [[False, False], [False, True]]
    assert shifts.latency == 1
    assert replace(shifts, every=1).latency == 2
    assert replace(shifts, mode=np.array([2, 0])).latency == 2


def test_certify_proves_the_lanes_and_sees_a_changed_bit() -> None:
    """Every bit of the constants of the first lane: most change the function, and none escapes that does."""
    f = function(np.random.default_rng(5), Rounding.HALF_UP, int_type(10, True))
    shifts = find(f)
    assert isinstance(shifts, LaneShift)
    lanes = np.arange(SETS)[None]
    bound = bind(shifts, lanes, f.input_type, f.output_type)
    right = {name: value if isinstance(value, int) else sized(value) for name, value in bound.parameters.items()}
    places = [str(s) for s in range(SETS)]
    x = np.arange(f.lo[0], f.hi[0] + 1)
    codes, caught = f.evaluate(np.clip(x[:, None], f.lo, f.hi))[:, 0], set()
    for name, bit in [("", 0), *((name, bit) for name in CONSTANTS for bit in range(4))]:
        parameters = dict(right)
        if name:
            value = right[name]
            assert isinstance(value, SizedConstant)
            parameters[name] = SizedConstant(value.width, value.value ^ 1 << bit)
        try:
            model = LaneShiftModel(Cell("hg_lane_shift", "q0", parameters, {}), Memories(Path()))
            prove(f, CascadeModel([model]), {(0, s): [s] for s in range(SETS)}, "q0", places)
        except hlsgen.HlsgenError:
            caught.add(name)
        else:
            assert ((model.apply(0, 0, x) - codes) & 63 == 0).all()
    assert "" not in caught
    assert caught >= {"WIDTHS", "LEFTS", "SHIFTS", "OFFSETS"}


def sized(value: object) -> SizedConstant:
    assert isinstance(value, Bits)
    return SizedConstant(value.width, value.value & ((1 << value.width) - 1))
