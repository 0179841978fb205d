"""Proves pipelines of float32 units: they are the model's operations, one by one, with constants equal to the last bit.

Each unit is an IEEE-754 float32 operation that rounds once (tests hold it against numpy and exact integers). So a
pipeline with the model's operations in the model's order computes what the model computes. A unit may be missing if
it does nothing: adding zero, multiplying or dividing by one. (Adding zero turns -0.0 into 0.0. No other unit,
comparison or rounding to a code tells these apart.)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlsgen.certify.models.float_cells import ADD, MAX, MIN, MUL, SIGN_BIT, Cells, Uses
from hlsgen.certify.models.float_from_integer import EXACT
from hlsgen.certify.models.float_from_integer import IntegerRange as Integers
from hlsgen.certify.netlist_reader import Cell, Memories, broken
from hlsgen.ir import Accumulator, Affine, Encoding, Fixed, FloatKey, IntegerEncoding, ThresholdCount
from hlsgen.ir.evaluate import UNCLAMPED, code_type, decoding
from hlsgen.ir.ops import (
    Add,
    Bipolar,
    Cast,
    Dequantize,
    Div,
    Elementwise,
    IntQuant,
    Max,
    Min,
    Mul,
    MultiThreshold,
    QuantizeLinear,
    Quantizer,
    SignedBit,
    Trunc,
)
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import Array, IntType, Rounding


def check(f: StepFunction, cells: list[Cell], memories: Memories, uses_of: dict[int, Uses], places: list[str]) -> int:
    """Proves that a pipeline computes f. `uses_of`: number of folds -> (fold, lane) -> sets. Raises HG055.

    Returns how many inputs of comparisons were evaluated.
    """
    walk = _Walk(f, cells, memories, uses_of, places)
    walk.decode(f.source, f.input_type, f.lo, f.hi)
    for op in f.ops:
        walk.operation(op)
    walk.quantize(f.quantizer)
    if walk.at != len(cells):
        raise broken(f.name, f"{cells[walk.at].name} ({cells[walk.at].module}) is none of the model's operations.")
    return walk.evaluated


def check_values(
    f: StepFunction, cells: list[Cell], memories: Memories, uses_of: dict[int, Uses], places: list[str]
) -> None:
    """Proves that a pipeline gives the float32 number in front of the quantizer of f. Arguments as of `check`."""
    walk = _Walk(f, cells, memories, uses_of, places)
    walk.decode(f.source, f.input_type, f.lo, f.hi)
    for op in f.ops:
        walk.operation(op)
    if walk.whole is not None:
        raise broken(f.name, "its integers never become float32 numbers.")
    if walk.at != len(cells):
        raise broken(f.name, f"{cells[walk.at].name} ({cells[walk.at].module}) is none of the model's operations.")


class _Walk(Cells):
    """The model's operations, each of which takes its units."""

    whole: Integers | None = None

    def operation(self, op: Elementwise) -> None:
        if self.whole is not None:
            self.integers(op, self.whole)
            return
        match op:
            case Mul(value):
                self.arithmetic(MUL, value, "Mul", 1)
            case Add(value):
                self.arithmetic(ADD, value, "Add", 0)
            case Div(value):
                self.divide(value, "Div")
            case Max(value):
                self.arithmetic(MAX, value, "Max")
            case Min(value):
                self.arithmetic(MIN, value, "Min")
            case Cast("float32"):
                pass
            case IntQuant() | Bipolar() | SignedBit() | Trunc() | MultiThreshold() | QuantizeLinear():
                self.quantize(op)
                type_, zero = code_type(op), np.zeros(self.f.sets, np.int64)
                self.decode(decoding(op), type_, zero + type_.lo, zero + type_.hi)
            case _:
                raise broken(self.f.name, f"there is no float32 unit for {type(op).__name__}.")

    def integers(self, op: Elementwise, x: Integers) -> None:
        """An operation on integers: sums join the conversion, which rounds once; the others follow it."""
        wide = (
            np.broadcast_to(op.value, self.f.sets).astype(np.int64) if isinstance(op, Add | Max | Min | Mul) else None
        )
        units: dict[type, tuple[int, float | None]] = {
            Add: (ADD, 0),
            Mul: (MUL, 1),
            Max: (MAX, None),
            Min: (MIN, None),
        }
        match op:
            case Cast("float32"):
                self.converted(x, large=True)
                self.whole = None
                return
            case Dequantize(scale, zero):
                less = x.plus(-np.broadcast_to(zero, self.f.sets))
                if x.codes is None:
                    self.arithmetic(ADD, (-zero).astype(np.float32), "the zero point of DequantizeLinear", 0)
                elif x.fits:
                    self.converted(less, large=True)
                if not (x.fits and (x.codes is not None or less.small)):
                    raise broken(self.f.name, "the integers in front of DequantizeLinear wrap, or float32 rounds them.")
                self.arithmetic(MUL, scale, "the scale of DequantizeLinear", 1)
                self.whole = None
                return
            case Cast(kind) if np.dtype(kind).kind in "iu":
                x = replace(x, dtype=kind)
            case Add() if wide is not None and x.codes is not None:
                x = x.plus(wide)
            case Add() | Max() | Min() | Mul() if wide is not None and np.abs(wide).max() <= EXACT:
                x = self.converted(x)
                self.arithmetic(units[type(op)][0], wide.astype(np.float32), type(op).__name__, units[type(op)][1])
                x = x.after(op, wide)
            case _:
                raise broken(self.f.name, f"there is no float32 unit for {type(op).__name__} of integers.")
        if not x.fits:
            raise broken(self.f.name, f"the integers behind {type(op).__name__} wrap, or float32 rounds them.")
        self.whole = x

    def converted(self, x: Integers, large: bool = False) -> Integers:
        """Integers as float32, each rounded once; only `large` ones may be."""
        if x.codes is None:
            return x
        if not (large or x.small):
            raise broken(self.f.name, "float32 rounds the integers that it computes with.")
        self.to_float(x.codes, 1, x.offset, np.ones(self.f.sets))
        return replace(x, codes=None, offset=0 * x.offset)

    def quantize(self, op: Quantizer) -> None:
        if self.whole is not None:
            raise broken(self.f.name, f"there is no float32 unit for {type(op).__name__} of integers.")
        match op:
            case QuantizeLinear():
                self.divide(op.scale, "the division by the scale")
                self.zero_behind(op)
            case IntQuant():
                self.divide(op.scale, "the division by the scale")
                self.arithmetic(ADD, op.zero_point, "the zero point", 0)
                self.to_code(op.mode, op.type, op.type)
            case Bipolar():
                self.divide(op.divisor, "the division by the scale")
                self.to_code(SIGN_BIT, IntType(0, 1), IntType(0, 1))
            case SignedBit():
                self.divide(op.scale, "the division by the scale")
                self.arithmetic(ADD, op.zero_point, "the zero point", 0)
                ones = np.ones(self.f.sets, np.float32)
                self.compare(replace(op, scale=ones, zero_point=np.zeros_like(ones)))
            case Trunc():
                self.divide(op.scale, "the division by the scale")
                self.arithmetic(ADD, op.zero_point, "the zero point", 0)
                cell = self.take("hg_f32_round_unit", "rounding", "MODE LANES")
                if cell.number("MODE") != Rounding.ROUND:
                    raise broken(self.f.name, f"MODE of {cell.name} is {cell.number('MODE')}, not half to even.")
                self.divide(self._divisor(op), "the division by the divisor")
                self.to_code(op.mode, op.type, op.type or UNCLAMPED)
            case MultiThreshold():
                self.compare(op)
            case _:
                raise broken(self.f.name, f"there is no float32 unit for {type(op).__name__}.")

    def zero_behind(self, op: QuantizeLinear) -> None:
        """Rounding, then the zero point: a sum that is exact below 2^24 and saturates above."""
        zero = np.broadcast_to(op.zero_point, self.f.sets)
        if max(abs(op.type.lo), abs(op.type.hi)) + int(np.abs(zero).max()) > EXACT >> 1:
            raise broken(self.f.name, f"codes of {op.type} and their zero points are no exact float32 numbers.")
        if not zero.any():
            self.to_code(op.mode, op.type, op.type)
            return
        cell = self.take("hg_f32_round_unit", "rounding", "MODE LANES")
        if cell.number("MODE") != op.mode:
            raise broken(self.f.name, f"MODE of {cell.name} is {cell.number('MODE')}, not {int(op.mode)}.")
        self.arithmetic(ADD, zero.astype(np.float32), "the zero point", 0)
        self.to_code(Rounding.ROUND, op.type, op.type)

    def _divisor(self, op: Trunc) -> Array:
        """The divisor as float32. A power of two divides whole numbers alike in float64."""
        if op.divisor.dtype == np.float32:
            return op.divisor
        single = op.divisor.astype(np.float32)
        halves = op.mode in (Rounding.HALF_UP, Rounding.HALF_DOWN)
        if halves or (single != op.divisor).any() or (np.abs(np.frexp(single)[0]) != 0.5).any():
            raise broken(self.f.name, f"the divisor is of type {op.divisor.dtype}: the units compute in float32.")
        return single

    def decode(self, meaning: Encoding, type_: IntType, lo: Array, hi: Array) -> None:
        ones = np.ones(self.f.sets, np.float32)
        match meaning:
            case FloatKey():
                pass
            case Fixed(fraction):
                self.to_float(type_, 1, 0 * ones, ones * 0.5**fraction)
            case Affine(scale, zero):
                self.to_float(type_, 1, 0 * ones, ones)
                self.arithmetic(ADD, -zero, "the input's zero point", 0)
                self.arithmetic(MUL, scale, "the input's scale", 1)
            case ThresholdCount(scale_, bias):
                self.to_float(type_, 1, 0 * ones, ones)
                self.arithmetic(MUL, ones * np.float32(scale_), "the input's scale", 1)
                self.arithmetic(ADD, ones * np.float32(bias), "the input's bias", 0)
            case IntegerEncoding(dtype, offset):
                start = np.broadcast_to(offset, self.f.sets)
                self.whole = Integers(dtype, lo + start, hi + start, start, type_)
                if not self.whole.fits:
                    raise broken(self.f.name, f"its integers leave {dtype}.")
            case Accumulator():
                self.to_float(type_, meaning.factor, meaning.offset, meaning.scale)
            case _:
                raise broken(self.f.name, f"there is no float32 unit for {type(meaning).__name__}.")
