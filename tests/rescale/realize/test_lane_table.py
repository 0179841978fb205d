"""hlsgen.rescale.realize.lane_table: a table of the bits that matter for each channel, or the reason why there is none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hlsgen
from hlsgen.certify.models.arithmetic import CascadeModel
from hlsgen.certify.models.lane_table import LaneTableModel
from hlsgen.certify.netlist_reader import Cell, Memories, SizedConstant
from hlsgen.certify.proof import prove
from hlsgen.ir.encoding import Fixed
from hlsgen.ir.ops import Activation, Add, IntQuant, Mul
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import IntType, Rounding, int_type
from hlsgen.rescale.realize import lane_table
from hlsgen.rescale.realize.lane_table import LaneTable, find
from hlsgen.verilog.binding.lane_table import bind
from hlsgen.verilog.binding.memory_files import Bits

Array = Any
SETS = 5


def function(rng: np.random.Generator, source: IntType, rounding: str = "Floor") -> StepFunction:
    """Steps of a power of two of each channel, and a curve over them."""
    step = np.exp2(rng.integers(1, 4, SETS)).astype(np.float32)
    half = np.full(SETS, 0.5 if rounding == "Floor" else 0.0, np.float32)
    slope = rng.uniform(-0.4, 0.4, SETS).astype(np.float32)
    inner = (Mul((1 / step).astype(np.float32)), Add(half), Activation(rounding), Mul(slope), Activation("Tanh"))
    zero = np.zeros(SETS, np.float32)
    quantizer = IntQuant(np.full(SETS, 0.15, np.float32), zero, int_type(4, True), Rounding.ROUND)
    lo, hi = rng.integers(source.lo, source.lo + 30, SETS), np.full(SETS, source.hi)
    return StepFunction("test", Fixed(0), inner, quantizer, np.arange(SETS), lo, hi, source, quantizer.type)


def codes_of(f: StepFunction) -> tuple[Array, Array]:
    """All inputs of all sets, and their codes."""
    x = np.clip(np.arange(f.lo.min(), f.hi.max() + 1)[:, None], f.lo, f.hi)
    return x, f.evaluate(x)


@pytest.mark.parametrize("rounding", ["Floor", "Ceil", "Round"])
@pytest.mark.parametrize("signed", [False, True])
def test_random_channels(rounding: str, signed: bool) -> None:
    f = function(np.random.default_rng(len(rounding) + signed), int_type(8, signed), rounding)
    tables = find(f)
    assert isinstance(tables, LaneTable), tables
    x, codes = codes_of(f)
    assert (tables.apply(x) == codes).all()


def smallest(codes: Array, lo: int) -> tuple[int, int, list[int]]:
    """(offset, shift, values) of the table for codes of lo, lo + 1, ..."""
    found = lane_table.smallest_table(codes, lo)
    assert found is not None
    return found[0], found[1], found[2].tolist()


def test_bits_that_do_not_matter() -> None:
    """Of x mod 8 these are high bits, of floor(x / 4) low ones; rounding to nearest adds before; a constant has none."""
    x = np.arange(-100, 100)
    assert smallest(x % 8, -100) == (0, 0, list(range(8)))
    assert smallest(x // 4 % 4, -100) == (0, 2, list(range(4)))
    assert smallest(np.full(50, 3), 7) == (0, 0, [3])
    curve = np.random.default_rng(0).integers(0, 16, 64)
    assert smallest(curve[(np.arange(1024) + 8) // 16 % 64], 0) == (8, 4, curve.tolist())


def test_entries_without_input_have_the_code_of_the_nearest_one() -> None:
    assert smallest(np.array([4, 9, 2]), 2) == (0, 0, [2, 4, 4, 9])
    assert smallest(np.array([4, 9, 2, 5, 5]), 2) == (0, 0, [4, 4, 4, 9, 2, 5, 5, 5])


def test_what_is_too_large() -> None:
    f = function(np.random.default_rng(1), int_type(9, True))
    assert "too many to list" in str(find(replace(f, lo=np.full(SETS, -(1 << 20)), hi=np.full(SETS, 1 << 20))))
    zero, wide = np.zeros(SETS, np.float32), int_type(12, True)
    every = IntQuant(np.ones(SETS, np.float32), zero, wide, Rounding.ROUND)
    ends = {"lo": np.full(SETS, wide.lo), "hi": np.full(SETS, wide.hi)}
    f = replace(f, ops=(), quantizer=every, input_type=wide, output_type=wide, **ends)
    assert find(f) == "channel set 0 depends on more than 10 bits of its input"


@pytest.mark.sweep
def test_certify_proves_the_lanes_and_sees_every_changed_entry() -> None:
    """A changed bit of a constant of the first lane is found, or changes no code that an input gives."""
    f = function(np.random.default_rng(5), int_type(7, True))
    tables = find(f)
    assert isinstance(tables, LaneTable)
    bound = bind(tables, np.arange(SETS)[None], f.input_type, f.output_type)
    right = {name: value if isinstance(value, int) else sized(value) for name, value in bound.parameters.items()}
    places = [str(s) for s in range(SETS)]
    x = np.arange(f.lo[0], f.hi[0] + 1)
    codes, caught = f.evaluate(np.clip(x[:, None], f.lo, f.hi))[:, 0], set()
    entries = [("TABLES", bit) for bit in range(f.output_type.bits << int(tables.bits[0]))]
    for name, bit in [("", 0), ("SHIFTS", 0), ("SHIFTS", 1), ("BITS", 0), ("OFFSETS", 1), *entries]:
        parameters = dict(right)
        if name:
            value = right[name]
            assert isinstance(value, SizedConstant)
            parameters[name] = SizedConstant(value.width, value.value ^ 1 << bit)
        try:
            model = LaneTableModel(Cell("hg_lane_table", "q0", parameters, {}), Memories(Path()))
            prove(f, CascadeModel([model]), {(0, s): [s] for s in range(SETS)}, "q0", places)
        except hlsgen.HlsgenError:
            caught.add((name, bit))
        else:
            assert ((model.apply(0, 0, x) - codes) & 15 == 0).all(), (name, bit)
    assert ("", 0) not in caught
    assert {name for name, _ in caught} == {"SHIFTS", "BITS", "OFFSETS", "TABLES"}


def sized(value: object) -> SizedConstant:
    assert isinstance(value, Bits)
    return SizedConstant(value.width, value.value)
