"""Ways to join two streams that are found, and proven, by trying all pairs of codes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hlsgen.ir.binary_function import BinaryFunction
from hlsgen.ir.ops import BinaryKind
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.binary import factor_ratio
from hlsgen.rescale.binary.join_plan import JoinPlan, plain
from hlsgen.rescale.binary.staircase import Gaps, Points, gaps_of, runs
from hlsgen.rescale.realize.table import MAX_ADDRESS_BITS, Table, TableMode
from hlsgen.rescale.threshold_table import ThresholdTable

#: Most bits of both codes together, and most entries, of a table of all pairs.
MAX_PACKED = 16
_MAX_ENTRIES = 1 << 22
#: Bits of tables in front of a sum; how many of these for a product; from which on the steps need not rise or fall.
_FINE, _MUL, _RUNS = range(2, 33), 26, 24
#: Bits of factors that are precise enough, and of a shift with them, that are tried.
_PLACES, _SHIFTS = 24, range(25)
#: Sets of which it is worth a try that they have one slope.
_FEW = 8


class Pairs:
    """All pairs of codes, evaluated."""

    def __init__(self, f: BinaryFunction) -> None:
        self.f, self.failed = f, 0
        self.a, self.b = f.codes(0), f.codes(1)
        self.x, self.y = f.branch(0, self.a), f.branch(1, self.b)
        sizes = f.hi - f.lo + 1
        self.sizes = [(int(n), int(m)) for n, m in sizes.T]
        small = np.min_scalar_type(-max(abs(f.output_type.lo), abs(f.output_type.hi)) - 1)
        self.codes = []
        for s, (n, m) in enumerate(self.sizes):
            one = f.take(np.array([s]))
            found = one.behind(self.x[:n, None, s, None], self.y[None, :m, s, None])
            self.codes.append(np.broadcast_to(found[..., 0], (n, m)).astype(small))

    def ways(self, known: JoinPlan | None) -> Iterator[JoinPlan | str]:
        """What to try next, given what is `known` from arithmetic."""
        f = self.f
        simple = known is not None and known.factors in (None, (1, 1), (1, -1))
        bits = sum(type_.bits for type_ in f.input_types)
        direct = False
        if not simple:
            tried = list(self._products() if f.kind == BinaryKind.MUL else self._sums())
            direct = any(isinstance(way, JoinPlan) for way in tried)
            yield from (way for way in tried if known is None or isinstance(way, str) or way.factors != known.factors)
        # A table of all pairs is small, or the last resort.
        if bits <= MAX_ADDRESS_BITS or (bits <= MAX_PACKED and not direct):
            yield self._packed()
        if known is None and not direct and bits > 6:
            yield self._tables()

    # ----------------------------------------------------------------------- sums and products

    def _points(self, factors: tuple[int, int] | None, zeros: tuple[int, int]) -> list[Points] | None:
        """The function over that sum or product of the codes, if it is one."""
        found = []
        for s, (n, m) in enumerate(self.sizes):
            a, b = self.a[:n, s, None], self.b[None, :m, s]
            t = (a - zeros[0]) * (b - zeros[1]) if factors is None else a * factors[0] + b * factors[1]
            points = Points.of(t, self.codes[s])
            if points is None:
                return None
            found.append(points)
        return found

    def _way(self, factors: tuple[int, int] | None, zeros: tuple[int, int], function: ThresholdTable) -> JoinPlan:
        return plain(self.f, factors, zeros, _domain(function), function)

    def _sums(self) -> Iterator[JoinPlan | str]:
        chosen: tuple[int, int] | str = "not a sum"
        if self.f.kind in (BinaryKind.ADD, BinaryKind.SUB):
            chosen = factor_ratio.factors(self.codes, self.f.kind == BinaryKind.SUB)
        if not isinstance(chosen, str):
            points = self._points(chosen, (0, 0))
            ready = "two codes at one sum" if points is None else gaps_of(points)
            if not isinstance(ready, str):
                yield from self._straight(chosen, *ready)
                return
        for factors in self._guesses():
            points = self._points(factors, (0, 0))
            if points is not None:
                steps = runs(self.f.name, points)
                yield steps if isinstance(steps, str) else self._way(factors, (0, 0), steps)
                return
        yield f"as a sum of codes: {chosen}"

    def _straight(self, factors: tuple[int, int], gaps: Gaps, falling: Array) -> Iterator[JoinPlan]:
        """The simplest factors, and those with which the code is the sum but for a shift."""
        line = gaps.line()
        yield self._way(factors, (0, 0), gaps.steps(self.f.name, gaps.thresholds(line), falling))
        if line is not None and (line[0] <= 1).all():
            return
        ratio_ = self._slopes()
        if ratio_ is None or self.f.sets > _FEW:
            return
        size = 2.0**_PLACES / max(map(abs, ratio_))
        ready = self._gaps((round(ratio_[0] * size), round(ratio_[1] * size)))
        line = None if ready is None else ready[0].line()
        if line is None:
            return
        slopes, shift = line
        slope = float(np.median(slopes[slopes > 0])) * 2.0**-shift if slopes.any() else 0.0
        for places in _SHIFTS:
            pair = round(ratio_[0] * size * slope * 2**places), round(ratio_[1] * size * slope * 2**places)
            ready = self._gaps(pair) if any(pair) and max(map(abs, pair)) <= factor_ratio.MAX_FACTOR else None
            table = None if ready is None else ready[0].on_line(np.ones(self.f.sets, np.int64), places)
            if ready is not None and table is not None:
                yield self._way(pair, (0, 0), ready[0].steps(self.f.name, table, ready[1]))
                return

    def _gaps(self, factors: tuple[int, int]) -> tuple[Gaps, Array] | None:
        points = self._points(factors, (0, 0))
        ready = None if points is None else gaps_of(points)
        return None if isinstance(ready, str) else ready

    def _slopes(self) -> tuple[float, float] | None:
        """What a code of each operand adds to the joint, on the average of set 0, if they are numbers."""
        spans = []
        for values, sign in ((self.x, 1), (self.y, -1 if self.f.kind == BinaryKind.SUB else 1)):
            column = values[:, 0].astype(np.float64)
            spans.append(sign * float(column[-1] - column[0]) / max(1, len(column) - 1))
        return (spans[0], spans[1]) if all(spans) and np.isfinite(spans).all() else None

    def _guesses(self) -> Iterator[tuple[int, int]]:
        """Factors in the ratio of the operands' values, the simplest first."""
        yield from ((1, 1), (1, -1), (1, 0), (0, 1))
        slopes = self._slopes() if self.f.kind in (BinaryKind.ADD, BinaryKind.SUB) else None
        if slopes is None:
            return
        wanted, sign = abs(slopes[1] / slopes[0]), int(np.sign(slopes[1] / slopes[0]))
        rest, before, last = wanted, (0, 1), (1, 0)  # Convergents, (numerator, denominator).
        while rest < 1 << 16:
            whole = int(rest)
            before, last = last, (whole * last[0] + before[0], whole * last[1] + before[1])
            if max(last) > 1 << 12:
                return
            if last[0] and last[1] and max(last) > 1:
                yield last[1], sign * last[0]
            if rest == whole:
                return
            rest = 1 / (rest - whole)

    def _products(self) -> Iterator[JoinPlan | str]:
        zeros = (self._zero(self.a, self.x), self._zero(self.b, self.y))
        for pair in dict.fromkeys((zeros, (0, 0))):
            points = self._points(None, pair)
            if points is None:
                continue
            steps = self._over(points)
            yield steps if isinstance(steps, str) else self._way(None, pair, steps)
            return
        yield "equal products have different codes"

    def _over(self, points: list[Points], any_order: bool = True) -> ThresholdTable | str:
        ready = gaps_of(points)
        if isinstance(ready, str):
            return runs(self.f.name, points) if any_order else ready
        return ready[0].steps(self.f.name, ready[0].thresholds(ready[0].line()), ready[1])

    def _zero(self, codes: Array, values: Array) -> int:
        """Where the values of set 0 would be 0 if they were a line; a guess."""
        column, value = codes[: len(codes), 0], values[:, 0].astype(np.float64)
        if not np.isfinite(value).all() or value[-1] == value[0]:
            return 0
        return round(float(column[0] - value[0] * (column[-1] - column[0]) / (value[-1] - value[0])))

    # ----------------------------------------------------------------------- tables

    def _packed(self) -> JoinPlan | str:
        """All pairs in one table."""
        f, (low, high) = self.f, (type_.bits for type_ in self.f.input_types)
        if f.sets << (low + high) > _MAX_ENTRIES:
            return f"tables of {low + high} bits for {f.sets} sets have more than {_MAX_ENTRIES} entries"
        entries = np.empty((1 << (low + high), f.sets), np.int64)
        for s, (n, m) in enumerate(self.sizes):
            # Codes that do not occur: those of the nearest low bits will do.
            a = np.arange(1 << low) - f.lo[0, s] & ((1 << low) - 1)
            b = np.arange(1 << high) - f.lo[1, s] & ((1 << high) - 1)
            table = self.codes[s][np.minimum(a, n - 1)[None, :], np.minimum(b, m - 1)[:, None]]
            entries[:, s] = table.ravel()
        found = Table(TableMode.DIRECT, entries, np.zeros(f.sets, np.int64))
        return JoinPlan(None, (0, 0), True, (None, None), f.input_types, IntType(0, (1 << (low + high)) - 1), found)

    def _tables(self) -> JoinPlan | str:
        """Values in fixed point, rounded as much as the codes allow: rounding to float32 keeps their order."""
        f = self.f
        if (
            f.kind not in (BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL)
            or max(t.bits for t in f.input_types) > MAX_ADDRESS_BITS
        ):
            return f"no tables of {f.kind.value}"
        values = [self.x.astype(np.float64), self.y.astype(np.float64)]
        if not all(np.isfinite(v).all() for v in values):
            return "an operand is no finite number"
        if f.kind != BinaryKind.MUL:  # Any constant may be added.
            values = [v - v.min(axis=0) for v in values]
        size = [np.frexp(v.max(axis=0))[1] for v in map(np.abs, values)]
        if f.kind != BinaryKind.MUL:
            size = [np.maximum(*size)] * 2
        last = "equal sums of values have different codes"
        for bits in _FINE if f.kind != BinaryKind.MUL else _FINE[:_MUL]:
            words = [np.rint(np.ldexp(v, bits - n)).astype(np.int64) for v, n in zip(values, size, strict=True)]
            points = self._over_words(words)
            steps = last if points is None else self._over(points, bits >= _RUNS)
            if isinstance(steps, ThresholdTable):
                return self._with_tables(words, steps)
            last = steps
        return f"with tables in front: {last}"

    def _with_tables(self, words: list[Array], steps: ThresholdTable) -> JoinPlan:
        f, tables = self.f, []
        for side, entries in enumerate(words):
            size = 1 << f.input_types[side].bits
            place = (np.arange(size)[:, None] - f.lo[side]) & (size - 1)
            place = np.minimum(place, len(entries) - 1)
            tables.append(
                Table(TableMode.DIRECT, np.take_along_axis(entries, place, axis=0), np.zeros(f.sets, np.int64))
            )
        factors = {BinaryKind.ADD: (1, 1), BinaryKind.SUB: (1, -1)}.get(f.kind)
        types = [IntType(int(table.entries.min()), int(table.entries.max())) for table in tables]
        both = (tables[0], tables[1]), (types[0], types[1])
        return JoinPlan(factors, (0, 0), False, *both, _domain(steps), steps)

    def _over_words(self, words: list[Array]) -> list[Points] | None:
        """The function over their sum or product; the set that failed last comes first."""
        found: dict[int, Points] = {}
        for s in sorted(range(self.f.sets), key=lambda s: s != self.failed):
            n, m = self.sizes[s]
            u, v = words[0][:n, s, None], words[1][None, :m, s]
            t = u * v if self.f.kind == BinaryKind.MUL else u - v if self.f.kind == BinaryKind.SUB else u + v
            points = Points.of(t, self.codes[s])
            if points is None:
                self.failed = s
                return None
            found[s] = points
        return [found[s] for s in range(self.f.sets)]


def _domain(steps: ThresholdTable) -> IntType:
    return IntType(int(steps.lo.min()), int(steps.hi.max()))
