"""Pieces of a function's interval on which it is monotone, by what is known of each operation.

An operation that is monotone on the values that reach it keeps a monotone piece monotone. Rounding is
monotone, so a float operation by a constant is. Where an operation turns, makes a NaN, or wraps, the
piece is cut at the input at which the value in front of it passes that point, found by bisection. What
is not known is left to be evaluated on every input.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hlsgen.certify.monotone_ops import ACTIVATIONS, NEAR, decode_known, quantizer_known, requantize_fits
from hlsgen.ir import Encoding, FloatKey, IntegerEncoding
from hlsgen.ir.evaluate import KEY_NEG_INF, KEY_POS_INF, decoding, minifloat_argument, minifloat_exponent, quantize
from hlsgen.ir.ops import (
    QUANTIZERS,
    Activation,
    Add,
    Cast,
    Convention,
    Dequantize,
    Div,
    Elementwise,
    FloatQuant,
    Fma,
    Max,
    Min,
    Mul,
    Quantizer,
    Requantize,
    Slope,
)
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import Array

#: Crossings of an integer's range that are cut one by one.
_MAX_WRAPS = 64


@dataclass(frozen=True, eq=False)
class Pieces:
    """Piece i: inputs lo[i]..hi[i] of set s[i]; monotone there, or, if every[i], not known to be."""

    s: Array
    lo: Array
    hi: Array
    every: Array


def pieces(f: StepFunction) -> Pieces:
    """All inputs of all sets, in pieces."""
    walk = _Walk(f)
    for position, op in enumerate((*f.ops, f.quantizer)):
        walk.step(position, op)
    return Pieces(walk.s, walk.lo, walk.hi, walk.every)


class _Walk:
    """The pieces in front of operation `position`. Where `same`, the value is one for the whole piece."""

    def __init__(self, f: StepFunction) -> None:
        self.f, self.position = f, 0
        self.s = np.arange(f.sets)
        self.lo, self.hi = f.lo.astype(np.int64), f.hi.astype(np.int64)
        if isinstance(f.source, FloatKey):
            low = np.array([0, KEY_NEG_INF, KEY_NEG_INF + 1, KEY_POS_INF])
            high = np.array([0, KEY_NEG_INF, KEY_POS_INF - 1, KEY_POS_INF])
            s = np.repeat(self.s, 4)
            first, last = np.maximum(np.tile(low, f.sets), self.lo[s]), np.minimum(np.tile(high, f.sets), self.hi[s])
            some = first <= last
            self.s, self.lo, self.hi = s[some], first[some], last[some]
        self.every = np.zeros(len(self.s), np.bool_)
        self.same = np.zeros(len(self.s), np.bool_)
        self._source(f.source)

    def _source(self, source: Encoding) -> None:
        if isinstance(source, IntegerEncoding) and np.dtype(source.dtype).kind in "iu":
            # Crossings of the dtype's range, in codes.
            info, offset = np.iinfo(source.dtype), np.broadcast_to(source.offset, self.f.sets)
            first = (int((self.f.lo + offset).min()) - int(info.min)) >> info.bits
            last = (int((self.f.hi + offset).max()) - int(info.min)) >> info.bits
            if last - first > _MAX_WRAPS:
                self.every[:] = True
                return
            for crossing in range(first + 1, last + 1):
                self._cut_at((crossing << info.bits) + int(info.min) - offset)
        elif not decode_known(source):
            self.every[:] = True

    def _cut_at(self, start: Array) -> None:
        """Cuts in front of inputs, one for each set."""
        start = start[self.s]
        self._insert((self.lo < start) & (start <= self.hi), start)

    def _insert(self, where: Array, start: Array) -> None:
        number = np.repeat(np.arange(len(self.s)), 1 + where)
        second = np.append(False, number[1:] == number[:-1])
        first = np.append(second[1:], False)
        start = start[number]
        self.lo = np.where(second, start, self.lo[number])
        self.hi = np.where(first, start - 1, self.hi[number])
        self.s, self.every, self.same = self.s[number], self.every[number], self.same[number]

    def _values(self, position: int, codes: Array, chosen: Array | slice = slice(None)) -> Array:
        """In front of operation `position`, at one input of each (chosen) piece."""
        function = self.f.take(self.s[chosen], self.lo[chosen], self.hi[chosen])
        return np.asarray(function.after_ops(position, codes[None])[0])

    def _open(self) -> Array:
        return ~self.every & (self.lo < self.hi) & ~self.same

    def cut(self, value: Array, strict: bool = False) -> None:
        """Cuts where the value in front of the operation becomes >= `value` (sets,), or > if strict."""

        def side(codes: Array, chosen: Array) -> Array:
            x = self._values(self.position, codes, chosen)
            x = x.astype(np.float64 if x.dtype.kind == "f" else np.int64)
            limit = value[self.s[chosen]]
            return np.asarray(x > limit if strict else x >= limit)

        self._cut(side)

    def _cut(self, side: Callable[[Array, Array], Array]) -> None:
        """Cuts where `side` of inputs, one in each of some pieces, changes; at most once in a piece."""
        chosen = np.flatnonzero(self._open())
        start = side(self.lo[chosen], chosen)
        passes = start != side(self.hi[chosen], chosen)
        chosen, start = chosen[passes], start[passes]
        low, high = self.lo[chosen], self.hi[chosen]
        while (high - low > 1).any():
            middle = low + ((high - low) >> 1)
            same = side(middle, chosen) == start
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        where, place = np.zeros(len(self.s), np.bool_), self.hi.copy()
        where[chosen], place[chosen] = True, high
        self._insert(where, place)

    def _around(self, value: float) -> None:
        """Three pieces: less than the value, equal to it, greater."""
        limit = np.full(self.f.sets, value)
        self.cut(limit)
        self.cut(limit, strict=True)
        if value != 0:  # there are two zeros
            low, high = self.ends()
            self._constant((low == value) & (high == value))

    def _constant(self, chosen: Array) -> None:
        """The operation gives one value in each of these pieces."""
        self.same |= chosen & ~self.every

    def ends(self) -> tuple[Array, Array]:
        """The values in front of the operation at both ends of each piece."""
        return self._values(self.position, self.lo), self._values(self.position, self.hi)

    def within(self, lo: int, hi: int) -> Array:
        """Pieces whose values lie in lo..hi."""
        a, b = self.ends()
        return np.asarray((a >= lo) & (a <= hi) & (b >= lo) & (b <= hi))

    # ----------------------------------------------------------------------- operations

    def step(self, position: int, op: Elementwise) -> None:
        self.position = position
        integers = self.ends()[0].dtype.kind in "iub"
        match op:
            case Mul() | Add() | Div() | Max() | Min():
                self._arithmetic(op, integers)
            case Fma(factor, value):
                known = np.isfinite(factor) & (factor != 0) & np.isfinite(value)
                self.every |= self._open() & ~np.broadcast_to(known, self.f.sets)[self.s]
            case Cast(dtype):
                if np.dtype(dtype).kind in "iu":
                    info = np.iinfo(dtype)
                    self.every |= self._open() & ~self.within(int(info.min), int(info.max))
                elif np.dtype(dtype).kind != "f":
                    self.every |= self._open()
            case Dequantize(scale, zero):
                known = np.isfinite(scale) & (scale != 0) & (abs(zero) < 1 << 40)
                self.every |= self._open() & ~(known[self.s] & integers)
            case Activation():
                self._activation(op)
            case Slope(value):
                self._slope(np.broadcast_to(value, self.f.sets))
            case _ if isinstance(op, QUANTIZERS):
                self._quantizer(op, integers, last=position == len(self.f.ops))
            case _:  # nothing is known: every input is evaluated
                self.every |= self._open()
        if position < len(self.f.ops):
            a, b = self._values(position + 1, self.lo), self._values(position + 1, self.hi)
            self.every |= self._open() & ((a != a) | (b != b))

    def _arithmetic(self, op: Mul | Add | Div | Max | Min, integers: bool) -> None:
        value = np.broadcast_to(op.value, self.f.sets)
        if integers and value.dtype.kind in "iu":
            dtype = np.result_type(self.ends()[0].dtype, value.dtype)
            info = np.iinfo(dtype)
            if isinstance(op, Add) and info.bits == 64:
                a, b = (x.astype(object) + value[self.s].astype(object) for x in self.ends())
                outside = [min(p) < int(info.min) or max(p) > int(info.max) for p in zip(a, b, strict=True)]
                self.every |= self._open() & np.array(outside)
            elif isinstance(op, Add):
                wide = value.astype(np.int64)
                self.cut(int(info.max) + 1 - wide)
                self.cut(int(info.min) - wide)
            elif isinstance(op, Mul):
                a, b = (abs(x.astype(object) * value[self.s].astype(object)) for x in self.ends())
                self.every |= self._open() & np.array([max(p) > int(info.max) for p in zip(a, b, strict=True)])
            return
        known = ~np.isnan(value) if isinstance(op, Max | Min) else np.isfinite(value)
        if isinstance(op, Div):
            known = known & (value != 0)
        self.every |= self._open() & ~known[self.s]
        if isinstance(op, Mul) and (value == 0).any():
            # 0 times infinity is NaN, and the sign of a zero is that of x.
            zero = value == 0
            nothing = np.nan
            for limit, strict in ((-np.inf, True), (0.0, False), (0.0, True), (np.inf, False)):
                self.cut(np.where(zero, limit, nothing), strict)
            self._constant(zero[self.s] & (self.ends()[0] != 0))

    def _slope(self, value: Array) -> None:
        """LeakyRelu with a slope of each set."""
        self.every |= self._open() & ~np.isfinite(value)[self.s]
        self._around(-np.inf)
        self._around(np.inf)
        if (value <= 0).any():
            self.cut(np.zeros(self.f.sets))

    def _activation(self, op: Activation) -> None:
        if self.ends()[0].dtype.kind != "f":
            self.every |= self._open()
            return
        turns = ACTIVATIONS[op.kind]
        if turns is None or not np.isfinite([op.alpha, op.beta]).all():
            self.every |= self._open()
            return
        for argument in turns.apart:
            self._around(argument)
        for argument in turns.at:
            self.cut(np.full(self.f.sets, argument))
        for argument in turns.near:
            for limit in (argument - NEAR, argument + NEAR):
                self.cut(np.full(self.f.sets, limit))
            low = self.ends()[0]
            self.every |= self._open() & (low >= argument - NEAR) & (low < argument + NEAR)
        self._special(op)

    def _special(self, op: Activation) -> None:
        """What depends on alpha, is NaN on a side, or turns on a whole side. The pieces are cut already."""
        low, high = self.ends()
        match op.kind:
            case "Celu":
                self.every |= self._open() & (op.alpha <= 0)
            case "HardSigmoid" if op.alpha <= 0:
                self.cut(np.zeros(self.f.sets))
            case "Sqrt" | "Log":
                self._constant(high < 0)  # NaN
            case "Reciprocal" | "Pow":
                if op.kind == "Pow" and op.alpha != int(op.alpha):
                    self._constant(high < 0)  # NaN
                self.every |= self._open() & (low == 0)  # the two zeros may give two infinities
            case "HardSwish":
                self.every |= self._open() & (low < 0)
            case _:
                pass

    def _quantizer(self, op: Quantizer, integers: bool, last: bool) -> None:
        known = np.broadcast_to(quantizer_known(op), self.f.sets)[self.s]
        if isinstance(op, Requantize):
            known = known & (integers or op.convention is Convention.FLOOR) & self._fits(op)
        if isinstance(op, FloatQuant):
            self._binades(op)
            known = np.broadcast_to(quantizer_known(op), self.f.sets)[self.s]
        if not last:
            meaning = decoding(op)
            known = known & decode_known(meaning)
            if isinstance(meaning, IntegerEncoding) and np.dtype(meaning.dtype).kind in "iu":
                info = np.iinfo(meaning.dtype)
                chosen = self.f.take(self.s, self.lo, self.hi).ops[self.position]
                for x in self.ends():
                    codes = quantize(chosen, x[None])[0]  # type: ignore[arg-type]
                    known = known & (codes >= info.min) & (codes <= info.max)
        self.every |= self._open() & ~known

    def _binades(self, op: FloatQuant) -> None:
        """Cuts at zero and where the exponent changes: between, a minifloat is rounding to one step."""
        self._around(0.0)
        top = int(np.frexp(op.largest)[1]) + 1
        for exponent in range(op.minimum_exponent + 1, top + 1):

            def side(codes: Array, chosen: Array, exponent: int = exponent) -> Array:
                x = self._values(self.position, codes, chosen)
                scaled = self.f.take(self.s[chosen], self.lo[chosen], self.hi[chosen])
                item = (*scaled.ops, scaled.quantizer)[self.position]
                assert isinstance(item, FloatQuant)
                return np.asarray(minifloat_exponent(item, minifloat_argument(item, x)) >= exponent)

            self._cut(side)

    def _fits(self, op: Requantize) -> Array:
        constants = (op.multiplier, op.add, op.shift)
        low, high = self.ends()
        fits = requantize_fits(op.convention, [np.broadcast_to(v, self.f.sets)[self.s] for v in constants], (low, high))
        return fits & np.isfinite(low) & np.isfinite(high)
