"""Bounds of the results of a program, derived for the proof alone."""

from __future__ import annotations

from hlsgen.ir.programs import Bitwise, Choose, Join, Number, Operation, Product, Program, Table, Take, Total, Wrap
from hlsgen.numerics.fixed import IntType

#: A number as constant + sum of factors times results that are no sums.
_Linear = tuple[int, dict[int, int]]


def bounds_of(program: Program) -> list[IntType]:
    """The interval of each result over all inputs, where results that are no sums vary independently."""
    linear: list[_Linear] = []
    bounds: list[IntType] = []
    for number, operation in enumerate(program.operations):
        if isinstance(operation, Total):
            sign = -1 if operation.minus else 1
            terms = [(operation.a, 1), (operation.b, sign)]
            constant = sum(weight * linear[t.source][0] << t.shift for t, weight in terms)
            factors: dict[int, int] = {}
            for t, weight in terms:
                for result, factor in linear[t.source][1].items():
                    factors[result] = factors.get(result, 0) + weight * factor * (1 << t.shift)
            low = constant + sum(f * (bounds[r].lo if f > 0 else bounds[r].hi) for r, f in factors.items())
            high = constant + sum(f * (bounds[r].hi if f > 0 else bounds[r].lo) for r, f in factors.items())
            bounds.append(IntType(low, high))
            linear.append((constant, factors))
            continue
        bounds.append(_bound(operation, bounds))
        is_constant = bounds[-1].lo == bounds[-1].hi
        linear.append((bounds[-1].lo, {}) if is_constant else (0, {number: 1}))
    return bounds


def _bound(operation: Operation, bounds: list[IntType]) -> IntType:
    """The interval of a result that is no sum."""
    match operation:
        case Take(_, type_):
            return type_
        case Number(value):
            return IntType(value, value)
        case Wrap(source, shift, type_, bounded):
            interval = bounds[source]
            low, high = (max(interval.lo, 0), max(interval.hi, 0)) if bounded else (interval.lo, interval.hi)
            low, high = (low * 2**shift, high * 2**shift) if shift >= 0 else (low // 2**-shift, high // 2**-shift)
            return IntType(low, high) if low >= type_.lo and high <= type_.hi else type_
        case Choose(condition, threshold, yes, no):
            ends: list[int] = []
            if bounds[condition].hi >= threshold:
                # A number that is chosen because it reaches the threshold is at least the threshold.
                ends += [max(bounds[yes].lo, threshold if yes == condition else bounds[yes].lo), bounds[yes].hi]
            if bounds[condition].lo < threshold:
                ends += [bounds[no].lo, min(bounds[no].hi, threshold - 1 if no == condition else bounds[no].hi)]
            return IntType(min(ends), max(ends))
        case Product(a, b):
            ends = [x * y for x in (bounds[a].lo, bounds[a].hi) for y in (bounds[b].lo, bounds[b].hi)]
            return IntType(min(ends), max(ends))
        case Table(source, first, values):
            last = len(values) - 1
            start, stop = (min(max(end - first, 0), last) for end in (bounds[source].lo, bounds[source].hi))
            return IntType(min(values[start : stop + 1]), max(values[start : stop + 1]))
        case Join(parts):
            return IntType(0, 2 ** sum(bits for _, bits in parts) - 1)
        case Bitwise(_, a, b):
            signed = min(bounds[a.source].lo, bounds[b.source].lo) < 0
            ends = [end << t.shift for t in (a, b) for end in (bounds[t.source].lo, bounds[t.source].hi)]
            bits = IntType(min(ends), max(ends)).bits - signed
            return IntType(-(1 << bits) if signed else 0, (1 << bits) - 1)
        case _:
            raise AssertionError(operation)
