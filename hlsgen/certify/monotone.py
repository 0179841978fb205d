"""Pieces of a function's interval on which it is monotone, derived from each of its operations.

A monotone operation on the values of a monotone piece keeps the piece monotone. Rounding is monotone, so a float
operation with a constant is too. If an operation turns, gives a NaN, or wraps, the piece is cut at the input at which
the operation's argument passes that point. Bisection finds this input. Other pieces are left to be evaluated on every
input.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hlsgen.certify.monotone_ops import ACTIVATIONS, NEAR, decode_known, quantizer_known, requantize_fits
from hlsgen.ir import Encoding, FloatKey, IntegerEncoding, ops
from hlsgen.ir.evaluate import KEY_NEG_INF, KEY_POS_INF, decoding, minifloat_argument, minifloat_exponent, quantize
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import Array

#: Maximum number of crossings of an integer's range that are cut one by one.
_MAX_WRAPS = 64


@dataclass(frozen=True, eq=False)
class Pieces:
    """Piece i: inputs lo[i]..hi[i] of set s[i]; monotone, or not known to be if every[i]."""

    s: Array
    lo: Array
    hi: Array
    unknown: Array


def pieces(f: StepFunction) -> Pieces:
    """All inputs of all sets, in pieces."""
    walk = _Walk(f)
    for position, op in enumerate((*f.ops, f.quantizer)):
        walk.step(position, op)
    return Pieces(walk.s, walk.lo, walk.hi, walk.unknown)


class _Walk:
    """The pieces before operation `position`. `constant`: the value is the same in the entire piece."""

    def __init__(self, f: StepFunction) -> None:
        self.f, self.position = f, 0
        self.s = np.arange(f.sets)
        self.lo, self.hi = f.lo.astype(np.int64), f.hi.astype(np.int64)
        if isinstance(f.source, FloatKey):
            low = np.array([0, KEY_NEG_INF, KEY_NEG_INF + 1, KEY_POS_INF])
            high = np.array([0, KEY_NEG_INF, KEY_POS_INF - 1, KEY_POS_INF])
            s = np.repeat(self.s, 4)
            first, last = np.maximum(np.tile(low, f.sets), self.lo[s]), np.minimum(np.tile(high, f.sets), self.hi[s])
            nonempty = first <= last
            self.s, self.lo, self.hi = s[nonempty], first[nonempty], last[nonempty]
        self.unknown = np.zeros(len(self.s), np.bool_)
        self.constant = np.zeros(len(self.s), np.bool_)
        self._source(f.source)

    def _source(self, source: Encoding) -> None:
        if isinstance(source, IntegerEncoding) and np.dtype(source.dtype).kind in "iu":
            # Crossings of the dtype's range, as codes.
            info, offset = np.iinfo(source.dtype), np.broadcast_to(source.offset, self.f.sets)
            first = (int((self.f.lo + offset).min()) - int(info.min)) >> info.bits
            last = (int((self.f.hi + offset).max()) - int(info.min)) >> info.bits
            if last - first > _MAX_WRAPS:
                self.unknown[:] = True
                return
            for crossing in range(first + 1, last + 1):
                self._cut_at((crossing << info.bits) + int(info.min) - offset)
        elif not decode_known(source):
            self.unknown[:] = True

    def _cut_at(self, start: Array) -> None:
        """Cut before the input `start` of each set."""
        start = start[self.s]
        self._insert((self.lo < start) & (start <= self.hi), start)

    def _insert(self, is_cut: Array, start: Array) -> None:
        number = np.repeat(np.arange(len(self.s)), 1 + is_cut)
        second = np.append(False, number[1:] == number[:-1])
        first = np.append(second[1:], False)
        start = start[number]
        self.lo = np.where(second, start, self.lo[number])
        self.hi = np.where(first, start - 1, self.hi[number])
        self.s, self.unknown, self.constant = self.s[number], self.unknown[number], self.constant[number]

    def _values(self, position: int, codes: Array, chosen: Array | slice = slice(None)) -> Array:
        """The argument of operation `position`, at one input of each (chosen) piece."""
        function = self.f.take(self.s[chosen], self.lo[chosen], self.hi[chosen])
        return np.asarray(function.after_ops(position, codes[None])[0])

    def _may_be_cut(self) -> Array:
        return ~self.unknown & (self.lo < self.hi) & ~self.constant

    def cut(self, value: Array, strict: bool = False) -> None:
        """Cut where the operation's argument becomes >= `value` (sets,), or > if strict."""

        def exceeds(codes: Array, chosen: Array) -> Array:
            x = self._values(self.position, codes, chosen)
            x = x.astype(np.float64 if x.dtype.kind == "f" else np.int64)
            limit = value[self.s[chosen]]
            return np.asarray(x > limit if strict else x >= limit)

        self._cut(exceeds)

    def _cut(self, exceeds: Callable[[Array, Array], Array]) -> None:
        """Cut where `exceeds` of the inputs changes, at most once in a piece."""
        chosen = np.flatnonzero(self._may_be_cut())
        start = exceeds(self.lo[chosen], chosen)
        passes = start != exceeds(self.hi[chosen], chosen)
        chosen, start = chosen[passes], start[passes]
        low, high = self.lo[chosen], self.hi[chosen]
        while (high - low > 1).any():
            middle = low + ((high - low) >> 1)
            on_start_side = exceeds(middle, chosen) == start
            low, high = np.where(on_start_side, middle, low), np.where(on_start_side, high, middle)
        is_cut, cut_position = np.zeros(len(self.s), np.bool_), self.hi.copy()
        is_cut[chosen], cut_position[chosen] = True, high
        self._insert(is_cut, cut_position)

    def _around(self, value: float) -> None:
        """Cut into three pieces: less than the value, equal to it, greater."""
        limit = np.full(self.f.sets, value)
        self.cut(limit)
        self.cut(limit, strict=True)
        if value != 0:  # there are two zeros
            low, high = self.ends()
            self._constant((low == value) & (high == value))

    def _constant(self, chosen: Array) -> None:
        """Mark pieces in which the operation gives a single value."""
        self.constant |= chosen & ~self.unknown

    def ends(self) -> tuple[Array, Array]:
        """The arguments of the operation at both ends of each piece."""
        return self._values(self.position, self.lo), self._values(self.position, self.hi)

    def arguments_within(self, lo: int, hi: int) -> Array:
        """Pieces whose arguments are in lo..hi."""
        a, b = self.ends()
        return np.asarray((a >= lo) & (a <= hi) & (b >= lo) & (b <= hi))

    # ----------------------------------------------------------------------- operations

    def step(self, position: int, op: ops.Elementwise) -> None:
        self.position = position
        integers = self.ends()[0].dtype.kind in "iub"
        match op:
            case ops.Mul() | ops.Add() | ops.Div() | ops.Max() | ops.Min():
                self._arithmetic(op, integers)
            case ops.Fma(factor, value):
                is_monotone = np.isfinite(factor) & (factor != 0) & np.isfinite(value)
                self.unknown |= self._may_be_cut() & ~np.broadcast_to(is_monotone, self.f.sets)[self.s]
            case ops.Cast(dtype):
                if np.dtype(dtype).kind in "iu":
                    info = np.iinfo(dtype)
                    self.unknown |= self._may_be_cut() & ~self.arguments_within(int(info.min), int(info.max))
                elif np.dtype(dtype).kind != "f":
                    self.unknown |= self._may_be_cut()
            case ops.Dequantize(scale, zero):
                is_monotone = np.isfinite(scale) & (scale != 0) & (abs(zero) < 1 << 40)
                self.unknown |= self._may_be_cut() & ~(is_monotone[self.s] & integers)
            case ops.Activation():
                self._activation(op)
            case ops.Slope(value):
                self._slope(np.broadcast_to(value, self.f.sets))
            case _ if isinstance(op, ops.QUANTIZERS):
                self._quantizer(op, integers, last=position == len(self.f.ops))
            case _:  # unknown operation: every input is evaluated
                self.unknown |= self._may_be_cut()
        if position < len(self.f.ops):
            a, b = self._values(position + 1, self.lo), self._values(position + 1, self.hi)
            self.unknown |= self._may_be_cut() & ((a != a) | (b != b))

    def _arithmetic(self, op: ops.Mul | ops.Add | ops.Div | ops.Max | ops.Min, integers: bool) -> None:
        value = np.broadcast_to(op.value, self.f.sets)
        if integers and value.dtype.kind in "iu":
            dtype = np.result_type(self.ends()[0].dtype, value.dtype)
            info = np.iinfo(dtype)
            if isinstance(op, ops.Add) and info.bits == 64:
                a, b = (x.astype(object) + value[self.s].astype(object) for x in self.ends())
                outside = [min(p) < int(info.min) or max(p) > int(info.max) for p in zip(a, b, strict=True)]
                self.unknown |= self._may_be_cut() & np.array(outside)
            elif isinstance(op, ops.Add):
                int_value = value.astype(np.int64)
                self.cut(int(info.max) + 1 - int_value)
                self.cut(int(info.min) - int_value)
            elif isinstance(op, ops.Mul):
                a, b = (abs(x.astype(object) * value[self.s].astype(object)) for x in self.ends())
                self.unknown |= self._may_be_cut() & np.array([max(p) > int(info.max) for p in zip(a, b, strict=True)])
            return
        is_monotone = ~np.isnan(value) if isinstance(op, ops.Max | ops.Min) else np.isfinite(value)
        if isinstance(op, ops.Div):
            is_monotone = is_monotone & (value != 0)
        self.unknown |= self._may_be_cut() & ~is_monotone[self.s]
        if isinstance(op, ops.Mul) and (value == 0).any():
            # 0 times infinity is NaN, and a zero has the sign of x.
            zero = value == 0
            no_cut = np.nan
            for limit, strict in ((-np.inf, True), (0.0, False), (0.0, True), (np.inf, False)):
                self.cut(np.where(zero, limit, no_cut), strict)
            self._constant(zero[self.s] & (self.ends()[0] != 0))

    def _slope(self, value: Array) -> None:
        """LeakyRelu with a slope of each set."""
        self.unknown |= self._may_be_cut() & ~np.isfinite(value)[self.s]
        self._around(-np.inf)
        self._around(np.inf)
        if (value <= 0).any():
            self.cut(np.zeros(self.f.sets))

    def _activation(self, op: ops.Activation) -> None:
        if self.ends()[0].dtype.kind != "f":
            self.unknown |= self._may_be_cut()
            return
        turns = ACTIVATIONS[op.kind]
        if turns is None or not np.isfinite([op.alpha, op.beta]).all():
            self.unknown |= self._may_be_cut()
            return
        for argument in turns.isolated:
            self._around(argument)
        for argument in turns.exact:
            self.cut(np.full(self.f.sets, argument))
        for argument in turns.approximate:
            for limit in (argument - NEAR, argument + NEAR):
                self.cut(np.full(self.f.sets, limit))
            low = self.ends()[0]
            self.unknown |= self._may_be_cut() & (low >= argument - NEAR) & (low < argument + NEAR)
        self._special(op)

    def _special(self, op: ops.Activation) -> None:
        """Special cases: dependence on alpha, NaN on a side, turning on an entire side. The pieces are already cut."""
        low, high = self.ends()
        match op.kind:
            case "Celu":
                self.unknown |= self._may_be_cut() & (op.alpha <= 0)
            case "HardSigmoid" if op.alpha <= 0:
                self.cut(np.zeros(self.f.sets))
            case "Sqrt" | "Log":
                self._constant(high < 0)  # NaN
            case "Reciprocal" | "Pow":
                if op.kind == "Pow" and op.alpha != int(op.alpha):
                    self._constant(high < 0)  # NaN
                self.unknown |= self._may_be_cut() & (low == 0)  # the two zeros may give two infinities
            case "HardSwish":
                self.unknown |= self._may_be_cut() & (low < 0)
            case _:
                pass

    def _quantizer(self, op: ops.Quantizer, integers: bool, last: bool) -> None:
        is_monotone = np.broadcast_to(quantizer_known(op), self.f.sets)[self.s]
        if isinstance(op, ops.Requantize):
            is_monotone = is_monotone & (integers or op.convention is ops.Convention.FLOOR) & self._fits(op)
        if isinstance(op, ops.FloatQuant):
            self._binades(op)
            is_monotone = np.broadcast_to(quantizer_known(op), self.f.sets)[self.s]
        if not last:
            meaning = decoding(op)
            is_monotone = is_monotone & decode_known(meaning)
            if isinstance(meaning, IntegerEncoding) and np.dtype(meaning.dtype).kind in "iu":
                info = np.iinfo(meaning.dtype)
                chosen = self.f.take(self.s, self.lo, self.hi).ops[self.position]
                for x in self.ends():
                    codes = quantize(chosen, x[None])[0]  # type: ignore[arg-type]
                    is_monotone = is_monotone & (codes >= info.min) & (codes <= info.max)
        self.unknown |= self._may_be_cut() & ~is_monotone

    def _binades(self, op: ops.FloatQuant) -> None:
        """Cut at zero and where the exponent changes. Between cuts, a minifloat is rounded to one step size."""
        self._around(0.0)
        top = int(np.frexp(op.largest)[1]) + 1
        for exponent in range(op.minimum_exponent + 1, top + 1):

            def exceeds(codes: Array, chosen: Array, exponent: int = exponent) -> Array:
                x = self._values(self.position, codes, chosen)
                scaled = self.f.take(self.s[chosen], self.lo[chosen], self.hi[chosen])
                item = (*scaled.ops, scaled.quantizer)[self.position]
                assert isinstance(item, ops.FloatQuant)
                return np.asarray(minifloat_exponent(item, minifloat_argument(item, x)) >= exponent)

            self._cut(exceeds)

    def _fits(self, op: ops.Requantize) -> Array:
        constants = (op.multiplier, op.add, op.shift)
        low, high = self.ends()
        in_range = requantize_fits(
            op.convention, [np.broadcast_to(v, self.f.sets)[self.s] for v in constants], (low, high)
        )
        return in_range & np.isfinite(low) & np.isfinite(high)
