"""Pipelines of float32 units: the model's operations, one by one, with constants equal to the last bit.

The units are IEEE-754 float32 with one rounding each (tested against numpy and exact integers), so a
pipeline of the model's own operations in the model's order computes what the model computes. A unit may
be missing if it does nothing: adding zero, multiplying or dividing by one. (Adding zero turns -0.0 into
0.0, which no other unit, comparison or rounding to a code tells apart.)
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from hlsgen.certify.arithmetic import Threshold
from hlsgen.certify.proof import prove
from hlsgen.certify.verilog import Cell, Memories, broken, two_complement
from hlsgen.certify.wholes import EXACT
from hlsgen.certify.wholes import Whole as Integers
from hlsgen.fixed import Array, IntType, Rounding
from hlsgen.ir import (
    Accumulator,
    Affine,
    CountScale,
    Decode,
    Fixed,
    FloatBits,
    Whole,
)
from hlsgen.operations import (
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
from hlsgen.rescale.step import StepFunction
from hlsgen.semantics import KEY_POS_INF, UNCLAMPED, code_type, decoding

Uses = dict[tuple[int, int], list[int]]
_ADD, _MUL, _DIV, _MAX, _MIN = range(5)
_SIGN_BIT = 7


def check(f: StepFunction, cells: list[Cell], memories: Memories, uses_of: dict[int, Uses], places: list[str]) -> int:
    """Holds a pipeline against f. `uses_of`: number of folds -> (fold, lane) -> sets. Raises HG055.

    Gives how many inputs of comparisons were evaluated.
    """
    walk = _Walk(f, cells, memories, uses_of, places)
    walk.decode(f.source, f.input_type, f.lo, f.hi)
    for op in f.ops:
        walk.operation(op)
    walk.quantize(f.quantizer)
    if walk.at != len(cells):
        raise broken(f.name, f"{cells[walk.at].name} ({cells[walk.at].module}) is none of the model's operations.")
    return walk.evaluated


class _Walk:
    def __init__(
        self, f: StepFunction, cells: list[Cell], memories: Memories, uses_of: dict[int, Uses], places: list[str]
    ) -> None:
        self.f, self.cells, self.memories, self.uses_of, self.places = f, cells, memories, uses_of, places
        self.at = self.evaluated = 0
        self.whole: Integers | None = None

    def take(self, module: str, what: str, names: str) -> Cell:
        """The next unit, which must be that module."""
        cell = self.cells[self.at] if self.at < len(self.cells) else None
        if cell is None or cell.module != module:
            found = "nothing" if cell is None else f"{cell.name} ({cell.module})"
            raise broken(self.f.name, f"{found} stands where {module} is expected, for {what}.")
        if set(cell.parameters) != set(names.split()):
            raise broken(cell.name, f"{module} has other parameters than its model.")
        self.at += 1
        return cell

    def uses(self, cell: Cell) -> Uses:
        folds = cell.number("FOLDS", 1)
        if folds not in self.uses_of:
            raise broken(cell.name, f"FOLDS is {folds}, which does not divide the beats of a frame.")
        return self.uses_of[folds]

    def single(self, value: Array, what: str) -> Array:
        """A float32 constant of each set."""
        if np.asarray(value).dtype != np.float32:
            raise broken(self.f.name, f"{what} is of type {np.asarray(value).dtype}: the units compute in float32.")
        return np.broadcast_to(value, self.f.sets)

    def arithmetic(self, op: int, value: Array, what: str, nothing: float | None = None) -> None:
        """A unit with one constant a set; it may be missing if the constant is `nothing` everywhere."""
        value = self.single(value, what)
        cell = self.cells[self.at] if self.at < len(self.cells) else None
        same = cell is not None and cell.module == "hg_f32_unit" and cell.parameters.get("OP") == op
        if nothing is not None and (value == nothing).all() and not (same and self._equal(self.at, value)):
            return
        cell = self.take("hg_f32_unit", what, "OP LANES FOLDS FILE")
        if cell.number("OP") != op:
            raise broken(self.f.name, f"OP of {cell.name} is {cell.number('OP')}, for {what} it must be {op}.")
        found = self.constants(cell)
        for (fold, lane), sets in self.uses(cell).items():
            for s in sets:
                if found[fold, lane] != value[s].view(np.uint32):
                    raise broken(
                        self.f.name, f"{self.places[s]}, {what}: the model's constant is {value[s]!r}, that of "
                        f"{cell.name} has the bits {int(found[fold, lane]):08x}, not {int(value[s].view(np.uint32)):08x}.",
                    )  # fmt: skip

    def constants(self, cell: Cell) -> Array:
        return self.memories.fields(cell.file, cell.number("FOLDS", 1), cell.number("LANES", 1), 32)

    def _equal(self, at: int, value: Array) -> bool:
        cell = self.cells[at]
        found = self.constants(cell)
        bits = value.view(np.uint32) if value.flags.c_contiguous else np.ascontiguousarray(value).view(np.uint32)
        return all(found[at] == bits[s] for at, sets in self.uses(cell).items() for s in sets)

    # ----------------------------------------------------------------------- operations

    def operation(self, op: Elementwise) -> None:
        if self.whole is not None:
            self.integers(op, self.whole)
            return
        match op:
            case Mul(value):
                self.arithmetic(_MUL, value, "Mul", 1)
            case Add(value):
                self.arithmetic(_ADD, value, "Add", 0)
            case Div(value):
                self.divide(value, "Div")
            case Max(value):
                self.arithmetic(_MAX, value, "Max")
            case Min(value):
                self.arithmetic(_MIN, value, "Min")
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
            Add: (_ADD, 0),
            Mul: (_MUL, 1),
            Max: (_MAX, None),
            Min: (_MIN, None),
        }
        match op:
            case Cast("float32"):
                self.converted(x, large=True)
                self.whole = None
                return
            case Dequantize(scale, zero):
                less = x.plus(-np.broadcast_to(zero, self.f.sets))
                if x.codes is None:
                    self.arithmetic(_ADD, (-zero).astype(np.float32), "the zero point of DequantizeLinear", 0)
                elif x.fits:
                    self.converted(less, large=True)
                if not (x.fits and (x.codes is not None or less.small)):
                    raise broken(self.f.name, "the integers in front of DequantizeLinear wrap, or float32 rounds them.")
                self.arithmetic(_MUL, scale, "the scale of DequantizeLinear", 1)
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

    def divide(self, value: Array, what: str) -> None:
        """x / value, or, the same to the last bit, x times its reciprocal where that is exact."""
        value = self.single(value, what)
        cell = self.cells[self.at] if self.at < len(self.cells) else None
        with np.errstate(all="ignore"):
            inverse = (np.float32(1) / value).astype(np.float32)
        exact = all(
            np.isfinite([v, i]).all() and Fraction(float(v)) * Fraction(float(i)) == 1
            for v, i in zip(value, inverse, strict=True)
        )
        times = cell is not None and cell.module == "hg_f32_unit" and cell.parameters.get("OP") == _MUL
        if exact and times and not (value == 1).all():
            self.arithmetic(_MUL, inverse, what)
        else:
            self.arithmetic(_DIV, value, what, 1)

    def quantize(self, op: Quantizer) -> None:
        if self.whole is not None:
            raise broken(self.f.name, f"there is no float32 unit for {type(op).__name__} of integers.")
        match op:
            case QuantizeLinear():
                self.divide(op.scale, "the division by the scale")
                self.zero_behind(op)
            case IntQuant():
                self.divide(op.scale, "the division by the scale")
                self.arithmetic(_ADD, op.zero_point, "the zero point", 0)
                self.to_code(op.mode, op.type, op.type)
            case Bipolar():
                self.divide(op.divisor, "the division by the scale")
                self.to_code(_SIGN_BIT, IntType(0, 1), IntType(0, 1))
            case SignedBit():
                self.divide(op.scale, "the division by the scale")
                self.arithmetic(_ADD, op.zero_point, "the zero point", 0)
                ones = np.ones(self.f.sets, np.float32)
                self.compare(replace(op, scale=ones, zero_point=np.zeros_like(ones)))
            case Trunc():
                self.divide(op.scale, "the division by the scale")
                self.arithmetic(_ADD, op.zero_point, "the zero point", 0)
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
        self.arithmetic(_ADD, zero.astype(np.float32), "the zero point", 0)
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

    def to_code(self, mode: int, bounds: IntType | None, type_: IntType) -> None:
        """Clamp to the bounds as float32 has them, round, saturate."""
        cell = self.take("hg_f32_encode", "the conversion to a code", "MODE OUT_W OUT_SIGNED LANES FOLDS FILE")
        width, signed = cell.number("OUT_W", 1), cell.number("OUT_SIGNED")
        if cell.number("MODE") != mode or (width, signed) != (type_.bits, int(type_.signed)):
            raise broken(self.f.name, f"{cell.name} does not round with mode {int(mode)} to {type_}.")
        if mode == _SIGN_BIT:
            self.memories.fields(cell.file, cell.number("FOLDS", 1), cell.number("LANES", 1), 64)
            return
        low, high = (-np.inf, np.inf) if bounds is None else (bounds.lo, bounds.hi)
        wanted = np.array([low, high]).astype(np.float32)
        # What the model cuts behind the rounding, the width of the code has to cut.
        least, most = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
        if (wanted[0] < type_.lo and type_.lo != least) or (wanted[1] > type_.hi and type_.hi != most):
            raise broken(self.f.name, f"{cell.name} does not saturate at {type_}.")
        words = self.memories.fields(cell.file, cell.number("FOLDS", 1), 2 * cell.number("LANES", 1), 32)
        bits = wanted.view(np.uint32)
        for fold, lane in self.uses(cell):
            found = words[fold, 2 * lane : 2 * lane + 2]
            if (found != bits).any():
                raise broken(
                    self.f.name, f"{cell.name}, lane {lane}, fold {fold}: the model clamps to {low}..{high}, the bounds' "
                    f"bits are {int(found[0]):08x}, {int(found[1]):08x}, not {int(bits[0]):08x}, {int(bits[1]):08x}.",
                )  # fmt: skip

    def compare(self, op: Quantizer) -> None:
        """Order keys and a search over thresholds: a step function of the key, proven as any other."""
        self.take("hg_float_key", "the order key", "LANES")
        cell = self.take("hg_threshold", "the thresholds", "LANES FOLDS IN_W IN_SIGNED BITS OUT_W OFFSET FALLING FILE")
        zero = np.zeros(self.f.sets, np.int64)
        keys = IntType(0, KEY_POS_INF)
        g = replace(
            self.f, source=FloatBits(), ops=(), quantizer=op, lo=zero, hi=zero + KEY_POS_INF, input_type=keys,
            output_type=code_type(op),
        )  # fmt: skip
        module = Threshold(cell, self.memories)
        if module.in_bits != 32 or module.signed or module.out_bits != g.output_type.bits:
            raise broken(self.f.name, f"{cell.name} does not compare keys of 32 bits.")
        self.evaluated += prove(g, module, self.uses(cell), cell.name, self.places).evaluated

    def decode(self, meaning: Decode, type_: IntType, lo: Array, hi: Array) -> None:
        ones = np.ones(self.f.sets, np.float32)
        match meaning:
            case FloatBits():
                pass
            case Fixed(fraction):
                self.to_float(type_, 1, 0 * ones, ones * 0.5**fraction)
            case Affine(scale, zero):
                self.to_float(type_, 1, 0 * ones, ones)
                self.arithmetic(_ADD, -zero, "the input's zero point", 0)
                self.arithmetic(_MUL, scale, "the input's scale", 1)
            case CountScale(scale_, bias):
                self.to_float(type_, 1, 0 * ones, ones)
                self.arithmetic(_MUL, ones * np.float32(scale_), "the input's scale", 1)
                self.arithmetic(_ADD, ones * np.float32(bias), "the input's bias", 0)
            case Whole(dtype, offset):
                start = np.broadcast_to(offset, self.f.sets)
                self.whole = Integers(dtype, lo + start, hi + start, start, type_)
                if not self.whole.fits:
                    raise broken(self.f.name, f"its integers leave {dtype}.")
            case Accumulator():
                self.to_float(type_, meaning.factor, meaning.offset, meaning.scale)
            case _:
                raise broken(self.f.name, f"there is no float32 unit for {type(meaning).__name__}.")

    def to_float(self, type_: IntType, factor: int, offset: Array, scale: Array) -> None:
        """(x * factor + offset) * scale, rounded once, against ((x << SHIFT) + B) * M * 2^E."""
        cell = self.take(
            "hg_f32_decode", "the conversion to float32", "IN_W IN_SIGNED SHIFT B_W M_W LANES FOLDS FILE"
        )  # fmt: skip
        shift, b_bits, m_bits = cell.number("SHIFT"), cell.number("B_W", 1), cell.number("M_W", 1)
        if (cell.number("IN_W"), cell.number("IN_SIGNED")) != (type_.bits, int(type_.signed)) or m_bits > 48:
            raise broken(self.f.name, f"{cell.name} does not take {type_}.")
        width = b_bits + m_bits + 12
        words = self.memories.fields(cell.file, cell.number("FOLDS", 1), cell.number("LANES", 1), width).astype(object)
        b = two_complement(words & ((1 << b_bits) - 1), b_bits)
        m = words >> b_bits & ((1 << m_bits) - 1)
        e = two_complement(words >> (b_bits + m_bits), 12)
        offset, scale = np.broadcast_to(offset, self.f.sets), np.broadcast_to(scale, self.f.sets)
        for at, sets in self.uses(cell).items():
            unit = Fraction(int(m[at])) * Fraction(2) ** int(e[at])
            for s in sets:
                real = Fraction(float(scale[s]))
                if unit * (1 << shift) != real * factor or unit * int(b[at]) != real * int(offset[s]):
                    raise broken(
                        self.f.name, f"{self.places[s]}: the model's input is (x * {factor} + {int(offset[s])}) * "
                        f"{float(scale[s])!r}, that of {cell.name} (x * 2^{shift} + {int(b[at])}) * {int(m[at])} * "
                        f"2^{int(e[at])}.",
                    )  # fmt: skip
