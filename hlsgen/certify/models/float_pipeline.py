"""Proves pipelines of float32 units: they are the model's operations, in order, with constants equal to the last bit.

Each unit is an IEEE-754 float32 operation that rounds once; tests compare it with numpy and exact integers. A
pipeline with these operations in the model's order therefore computes the model.

A unit may be missing if it does nothing: adding zero, multiplying or dividing by one. Adding zero turns -0.0 into 0.0,
but no other unit, comparison or rounding to a code distinguishes these.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlsgen.certify.models.float_cells import ADD, MAX, MIN, MUL, SIGN_BIT, Cells, Uses
from hlsgen.certify.models.float_from_integer import EXACT
from hlsgen.certify.models.float_from_integer import IntegerRange as Integers
from hlsgen.certify.netlist_reader import Cell, Memories, broken
from hlsgen.ir import Accumulator, Affine, Encoding, Fixed, FloatKey, IntegerEncoding, ThresholdCount, ops
from hlsgen.ir.evaluate import UNCLAMPED, code_type, decoding
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import Array, IntType, Rounding


def check(f: StepFunction, cells: list[Cell], memories: Memories, uses_of: dict[int, Uses], places: list[str]) -> int:
    """Prove that a pipeline computes f. Raises HG055.

    `uses_of`: number of folds -> (fold, lane) -> sets of channel parameters. Returns how many inputs of comparisons
    were evaluated.
    """
    walk = _Walk(f, cells, memories, uses_of, places)
    walk.decode(f.source, f.input_type, f.lo, f.hi)
    for op in f.ops:
        walk.operation(op)
    walk.quantize(f.quantizer)
    if walk.at != len(cells):
        raise broken(f.name, f"{cells[walk.at].name} ({cells[walk.at].module}) is not an operation of the model.")
    return walk.evaluated


def check_values(
    f: StepFunction, cells: list[Cell], memories: Memories, uses_of: dict[int, Uses], places: list[str]
) -> None:
    """Prove that a pipeline computes the float32 number before the quantizer of f. Arguments as in `check`."""
    walk = _Walk(f, cells, memories, uses_of, places)
    walk.decode(f.source, f.input_type, f.lo, f.hi)
    for op in f.ops:
        walk.operation(op)
    if walk.integer_range is not None:
        raise broken(f.name, "its integers never become float32 numbers.")
    if walk.at != len(cells):
        raise broken(f.name, f"{cells[walk.at].name} ({cells[walk.at].module}) is not an operation of the model.")


class _Walk(Cells):
    """The model's operations; each one consumes its units."""

    integer_range: Integers | None = None

    def operation(self, op: ops.Elementwise) -> None:
        if self.integer_range is not None:
            self.integers(op, self.integer_range)
            return
        match op:
            case ops.Mul(value):
                self.arithmetic(MUL, value, "Mul", 1)
            case ops.Add(value):
                self.arithmetic(ADD, value, "Add", 0)
            case ops.Div(value):
                self.divide(value, "Div")
            case ops.Max(value):
                self.arithmetic(MAX, value, "Max")
            case ops.Min(value):
                self.arithmetic(MIN, value, "Min")
            case ops.Cast("float32"):
                pass
            case (
                ops.IntQuant()
                | ops.Bipolar()
                | ops.SignedBit()
                | ops.Trunc()
                | ops.MultiThreshold()
                | ops.QuantizeLinear()
            ):
                self.quantize(op)
                type_, zero = code_type(op), np.zeros(self.f.sets, np.int64)
                self.decode(decoding(op), type_, zero + type_.lo, zero + type_.hi)
            case _:
                raise broken(self.f.name, f"there is no float32 unit for {type(op).__name__}.")

    def integers(self, op: ops.Elementwise, x: Integers) -> None:
        """Check an operation on integers. Sums join the conversion, which rounds once; other operations follow it."""
        integer_value = (
            np.broadcast_to(op.value, self.f.sets).astype(np.int64)
            if isinstance(op, ops.Add | ops.Max | ops.Min | ops.Mul)
            else None
        )
        units: dict[type, tuple[int, float | None]] = {
            ops.Add: (ADD, 0),
            ops.Mul: (MUL, 1),
            ops.Max: (MAX, None),
            ops.Min: (MIN, None),
        }
        match op:
            case ops.Cast("float32"):
                self.converted(x, large=True)
                self.integer_range = None
                return
            case ops.Dequantize(scale, zero):
                shifted = x.plus(-np.broadcast_to(zero, self.f.sets))
                if x.codes is None:
                    self.arithmetic(ADD, (-zero).astype(np.float32), "the zero point of DequantizeLinear", 0)
                elif x.fits:
                    self.converted(shifted, large=True)
                if not (x.fits and (x.codes is not None or shifted.small)):
                    raise broken(self.f.name, "the integers before DequantizeLinear wrap, or float32 rounds them.")
                self.arithmetic(MUL, scale, "the scale of DequantizeLinear", 1)
                self.integer_range = None
                return
            case ops.Cast(kind) if np.dtype(kind).kind in "iu":
                x = replace(x, dtype=kind)
            case ops.Add() if integer_value is not None and x.codes is not None:
                x = x.plus(integer_value)
            case ops.Add() | ops.Max() | ops.Min() | ops.Mul() if (
                integer_value is not None and np.abs(integer_value).max() <= EXACT
            ):
                x = self.converted(x)
                self.arithmetic(
                    units[type(op)][0], integer_value.astype(np.float32), type(op).__name__, units[type(op)][1]
                )
                x = x.after(op, integer_value)
            case _:
                raise broken(self.f.name, f"there is no float32 unit for {type(op).__name__} of integers.")
        if not x.fits:
            raise broken(self.f.name, f"the integers after {type(op).__name__} wrap, or float32 rounds them.")
        self.integer_range = x

    def converted(self, x: Integers, large: bool = False) -> Integers:
        """Check the conversion of integers to float32, each rounded once; only `large` ones may be rounded."""
        if x.codes is None:
            return x
        if not (large or x.small):
            raise broken(self.f.name, "float32 rounds the integers that it computes with.")
        self.to_float(x.codes, 1, x.offset, np.ones(self.f.sets))
        return replace(x, codes=None, offset=0 * x.offset)

    def quantize(self, op: ops.Quantizer) -> None:
        if self.integer_range is not None:
            raise broken(self.f.name, f"there is no float32 unit for {type(op).__name__} of integers.")
        match op:
            case ops.QuantizeLinear():
                self.divide(op.scale, "the division by the scale")
                self.add_zero_point(op)
            case ops.IntQuant():
                self.divide(op.scale, "the division by the scale")
                self.arithmetic(ADD, op.zero_point, "the zero point", 0)
                self.to_code(op.mode, op.type, op.type)
            case ops.Bipolar():
                self.divide(op.divisor, "the division by the scale")
                self.to_code(SIGN_BIT, IntType(0, 1), IntType(0, 1))
            case ops.SignedBit():
                self.divide(op.scale, "the division by the scale")
                self.arithmetic(ADD, op.zero_point, "the zero point", 0)
                ones = np.ones(self.f.sets, np.float32)
                self.compare(replace(op, scale=ones, zero_point=np.zeros_like(ones)))
            case ops.Trunc():
                self.divide(op.scale, "the division by the scale")
                self.arithmetic(ADD, op.zero_point, "the zero point", 0)
                cell = self.take("hg_f32_round_unit", "rounding", "MODE LANES")
                if cell.number("MODE") != Rounding.ROUND:
                    raise broken(self.f.name, f"MODE of {cell.name} is {cell.number('MODE')}, not half to even.")
                self.divide(self._divisor(op), "the division by the divisor")
                self.to_code(op.mode, op.type, op.type or UNCLAMPED)
            case ops.MultiThreshold():
                self.compare(op)
            case _:
                raise broken(self.f.name, f"there is no float32 unit for {type(op).__name__}.")

    def add_zero_point(self, op: ops.QuantizeLinear) -> None:
        """Check rounding and then the zero point: a sum that is exact below 2^24 and saturates above."""
        zero = np.broadcast_to(op.zero_point, self.f.sets)
        if max(abs(op.type.lo), abs(op.type.hi)) + int(np.abs(zero).max()) > EXACT >> 1:
            raise broken(self.f.name, f"codes of {op.type} and their zero points are not exact in float32.")
        if not zero.any():
            self.to_code(op.mode, op.type, op.type)
            return
        cell = self.take("hg_f32_round_unit", "rounding", "MODE LANES")
        if cell.number("MODE") != op.mode:
            raise broken(self.f.name, f"MODE of {cell.name} is {cell.number('MODE')}, not {int(op.mode)}.")
        self.arithmetic(ADD, zero.astype(np.float32), "the zero point", 0)
        self.to_code(Rounding.ROUND, op.type, op.type)

    def _divisor(self, op: ops.Trunc) -> Array:
        """The divisor as float32. A power of two divides integers equally in float64."""
        if op.divisor.dtype == np.float32:
            return op.divisor
        single = op.divisor.astype(np.float32)
        rounds_halves = op.mode in (Rounding.HALF_UP, Rounding.HALF_DOWN)
        if rounds_halves or (single != op.divisor).any() or (np.abs(np.frexp(single)[0]) != 0.5).any():
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
                self.integer_range = Integers(dtype, lo + start, hi + start, start, type_)
                if not self.integer_range.fits:
                    raise broken(self.f.name, f"its integers leave {dtype}.")
            case Accumulator():
                self.to_float(type_, meaning.factor, meaning.offset, meaning.scale)
            case _:
                raise broken(self.f.name, f"there is no float32 unit for {type(meaning).__name__}.")
