"""Join plans that are found, and proven, by evaluating the function at every pair of codes.

The model's own operations give the code of every pair (a, b) once. A plan reduces the pair to one integer t, and
its steps give the code from t. So a plan is right if equal t always have equal codes, and the steps have the code
of every t that occurs. Both are checked here on all pairs, which is the whole proof.

`AllPairs.plans` looks for t in this order: a weighted sum or a product of the codes, both codes packed side by side
in one table, and the sum or product of two tables.

Example: code = round(0.5 * a + 0.25 * b) for a and b in 0..2, ties to even. As t = 2 * a + b, the nine pairs
have t = 0, 1, 2, 3, 4, 5, 6 with the codes 0, 0, 0, 1, 1, 1, 2: steps at 3 and 6. As t = a + b there is no plan:
(0, 2) and (1, 1) both have t = 2, but the codes 0 and 1.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hlsgen.ir.binary_function import BinaryFunction
from hlsgen.ir.ops import BinaryKind
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.binary import factor_ratio
from hlsgen.rescale.binary.join_plan import JoinPlan, direct_plan
from hlsgen.rescale.binary.staircase import Samples, ThresholdRanges, runs, threshold_ranges
from hlsgen.rescale.realize.table import MAX_ADDRESS_BITS, Table, TableMode
from hlsgen.rescale.threshold_table import ThresholdTable

#: A table of all pairs has at most this many address bits, unless MAX_ADDRESS_BITS already allows more.
MAX_PACKED = 16
#: A table of all pairs has at most this many entries, over all sets.
_MAX_ENTRIES = 1 << 22
#: Widths of table entries in front of a sum, in the order in which they are tried.
_WORD_BITS = range(2, 33)
#: Of these, the number that is tried in front of a product.
_PRODUCT_WORDS = 26
#: From this width on, the steps behind the tables need not rise or fall.
_RUNS_FROM_BITS = 24
#: Bits of factors that follow the slopes of the operands precisely.
_FACTOR_BITS = 24
#: Shifts for which factors are tried that make the code the shifted sum.
_FACTOR_SHIFTS = range(25)
#: With more sets than this, one slope for all of them is too unlikely to be tried.
_FEW_SETS = 8


class AllPairs:
    """A function of two operands, evaluated at all pairs of codes.

    `a`, `b` int64 (codes, sets): all codes of each operand. `x`, `y` (codes, sets): the values that they stand
    for, behind the branches. `sizes`: for each set, how many codes of a and of b it has; the rest of a column
    repeats the last one. `codes[s]` (sizes[s]): the resulting code of every pair of set s, in a small integer type.
    """

    def __init__(self, f: BinaryFunction) -> None:
        self.f = f
        #: The set that `_samples_of_words` refuted last: it is tried first, as it most probably fails again.
        self.failed = 0
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

    def plans(self, known: JoinPlan | None) -> Iterator[JoinPlan | str]:
        """Proven plans, or reasons why there is none of a kind.

        `known` is the plan that `affine.find` proved, if any. It is not given again, and where its factors are as
        simple as can be, no other sum or product is tried.
        """
        f = self.f
        simple = known is not None and known.factors in (None, (1, 1), (1, -1))
        bits = sum(type_.bits for type_ in f.input_types)
        direct = False
        if not simple:
            tried = list(self._product_plans() if f.kind == BinaryKind.MUL else self._sum_plans())
            direct = any(isinstance(plan, JoinPlan) for plan in tried)
            yield from (
                plan for plan in tried if known is None or isinstance(plan, str) or plan.factors != known.factors
            )
        # A packed table is cheap where it is small. A larger one is the last resort.
        if bits <= MAX_ADDRESS_BITS or (bits <= MAX_PACKED and not direct):
            yield self._packed_plan()
        if known is None and not direct and bits > 6:
            yield self._tables_plan()

    # ----------------------------------------------------------------------- sums and products

    def _samples(self, factors: tuple[int, int] | None, zeros: tuple[int, int]) -> list[Samples] | None:
        """For each set, the code at every t; None if equal t have different codes.

        t is the sum with `factors`, or, if these are None, the product of the codes less `zeros`.
        """
        found = []
        for s, (n, m) in enumerate(self.sizes):
            a, b = self.a[:n, s, None], self.b[None, :m, s]
            t = (a - zeros[0]) * (b - zeros[1]) if factors is None else a * factors[0] + b * factors[1]
            samples = Samples.of(t, self.codes[s])
            if samples is None:
                return None
            found.append(samples)
        return found

    def _plan(self, factors: tuple[int, int] | None, zeros: tuple[int, int], function: ThresholdTable) -> JoinPlan:
        """A sum or product of the codes themselves, and the steps over it."""
        return direct_plan(self.f, factors, zeros, _domain(function), function)

    def _sum_plans(self) -> Iterator[JoinPlan | str]:
        """Weighted sums of the codes.

        For monotone codes `factor_ratio` finds the simplest factors, or proves that there are none. For all other
        codes a few factors are guessed, and the first ones that keep different codes apart are taken.
        """
        chosen: tuple[int, int] | str = "not a sum"
        if self.f.kind in (BinaryKind.ADD, BinaryKind.SUB):
            chosen = factor_ratio.factors(self.codes, self.f.kind == BinaryKind.SUB)
        if not isinstance(chosen, str):
            samples = self._samples(chosen, (0, 0))
            monotone = "two codes at one sum" if samples is None else threshold_ranges(samples)
            if not isinstance(monotone, str):
                yield from self._weighted_sum_plans(chosen, *monotone)
                return
        for factors in self._guessed_factors():
            samples = self._samples(factors, (0, 0))
            if samples is not None:
                steps = runs(self.f.name, samples)
                yield steps if isinstance(steps, str) else self._plan(factors, (0, 0), steps)
                return
        yield f"as a sum of codes: {chosen}"

    def _weighted_sum_plans(
        self, factors: tuple[int, int], ranges: ThresholdRanges, falling: Array
    ) -> Iterator[JoinPlan]:
        """Two plans for codes that rise or fall with a weighted sum; the second one only if it is found.

        The first has the simplest `factors`, and a multiplication behind the sum. The second has larger factors, so
        that the code is the sum shifted to the right: then nothing has to be multiplied behind the sum.
        """
        line = ranges.fit_line()
        yield self._plan(factors, (0, 0), ranges.to_table(self.f.name, ranges.thresholds(line), falling))
        if line is not None and (line[0] <= 1).all():
            return
        means = self._mean_slopes()
        if means is None or self.f.sets > _FEW_SETS:
            return
        # Factors that follow the slopes of the operands precisely, and the line over their sum, tell the slopes of
        # the code. These, times a power of two, are the factors to try.
        size = 2.0**_FACTOR_BITS / max(map(abs, means))
        precise = self._ranges((round(means[0] * size), round(means[1] * size)))
        line = None if precise is None else precise[0].fit_line()
        if line is None:
            return
        slopes, shift = line
        slope = float(np.median(slopes[slopes > 0])) * 2.0**-shift if slopes.any() else 0.0
        for places in _FACTOR_SHIFTS:
            pair = round(means[0] * size * slope * 2**places), round(means[1] * size * slope * 2**places)
            found = self._ranges(pair) if any(pair) and max(map(abs, pair)) <= factor_ratio.MAX_FACTOR else None
            table = None if found is None else found[0].thresholds_on_line(np.ones(self.f.sets, np.int64), places)
            if found is not None and table is not None:
                yield self._plan(pair, (0, 0), found[0].to_table(self.f.name, table, found[1]))
                return

    def _ranges(self, factors: tuple[int, int]) -> tuple[ThresholdRanges, Array] | None:
        """`threshold_ranges` over that weighted sum; None if the codes are no monotone function of it."""
        samples = self._samples(factors, (0, 0))
        found = None if samples is None else threshold_ranges(samples)
        return None if isinstance(found, str) else found

    def _mean_slopes(self) -> tuple[float, float] | None:
        """How much the sum of the operands' values grows, on average over set 0, as each code grows by one.

        Only a guess rests on it. None if a value is not finite or an operand does not change.
        """
        spans = []
        for values, sign in ((self.x, 1), (self.y, -1 if self.f.kind == BinaryKind.SUB else 1)):
            column = values[:, 0].astype(np.float64)
            spans.append(sign * float(column[-1] - column[0]) / max(1, len(column) - 1))
        return (spans[0], spans[1]) if all(spans) and np.isfinite(spans).all() else None

    def _guessed_factors(self) -> Iterator[tuple[int, int]]:
        """Factors that are worth a try where nothing is proven, the simplest first.

        Behind (1, 1), (1, -1) and single operands, these are the convergents of the continued fraction of the ratio
        of the mean slopes: the best approximations of it by small integers.
        """
        yield from ((1, 1), (1, -1), (1, 0), (0, 1))
        slopes = self._mean_slopes() if self.f.kind in (BinaryKind.ADD, BinaryKind.SUB) else None
        if slopes is None:
            return
        wanted, sign = abs(slopes[1] / slopes[0]), int(np.sign(slopes[1] / slopes[0]))
        rest, before, last = wanted, (0, 1), (1, 0)  # Convergents as (numerator, denominator).
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

    def _product_plans(self) -> Iterator[JoinPlan | str]:
        """The product of the codes, each less its zero point: guessed from the values, else 0."""
        zeros = (self._zero_crossing(self.a, self.x), self._zero_crossing(self.b, self.y))
        for pair in dict.fromkeys((zeros, (0, 0))):
            samples = self._samples(None, pair)
            if samples is None:
                continue
            steps = self._threshold_table(samples)
            yield steps if isinstance(steps, str) else self._plan(None, pair, steps)
            return
        yield "equal products have different codes"

    def _threshold_table(self, samples: list[Samples], any_order: bool = True) -> ThresholdTable | str:
        """The steps over t. Where they neither rise nor fall: as runs with `any_order`, else the reason why not."""
        found = threshold_ranges(samples)
        if isinstance(found, str):
            return runs(self.f.name, samples) if any_order else found
        ranges, falling = found
        return ranges.to_table(self.f.name, ranges.thresholds(ranges.fit_line()), falling)

    def _zero_crossing(self, codes: Array, values: Array) -> int:
        """The code at which the line through the ends of set 0 is 0: a guess of the zero point."""
        column, value = codes[: len(codes), 0], values[:, 0].astype(np.float64)
        if not np.isfinite(value).all() or value[-1] == value[0]:
            return 0
        return round(float(column[0] - value[0] * (column[-1] - column[0]) / (value[-1] - value[0])))

    # ----------------------------------------------------------------------- tables

    def _packed_plan(self) -> JoinPlan | str:
        """One table with an entry for every pair: t is both codes side by side, b in the high bits."""
        f, (low, high) = self.f, (type_.bits for type_ in self.f.input_types)
        if f.sets << (low + high) > _MAX_ENTRIES:
            return f"tables of {low + high} bits for {f.sets} sets have more than {_MAX_ENTRIES} entries"
        entries = np.empty((1 << (low + high), f.sets), np.int64)
        for s, (n, m) in enumerate(self.sizes):
            # Addresses of codes that do not occur may hold anything: they repeat the last code that does.
            a = np.arange(1 << low) - f.lo[0, s] & ((1 << low) - 1)
            b = np.arange(1 << high) - f.lo[1, s] & ((1 << high) - 1)
            table = self.codes[s][np.minimum(a, n - 1)[None, :], np.minimum(b, m - 1)[:, None]]
            entries[:, s] = table.ravel()
        found = Table(TableMode.DIRECT, entries, np.zeros(f.sets, np.int64))
        return JoinPlan(None, (0, 0), True, (None, None), f.input_types, IntType(0, (1 << (low + high)) - 1), found)

    def _tables_plan(self) -> JoinPlan | str:
        """A table of each operand's values in fixed point, and the steps over the sum or product of both.

        It tries narrow entries first. Entries are wide enough as soon as equal t have equal codes: the pairs
        themselves prove that the values were rounded finely enough.
        """
        f = self.f
        if (
            f.kind not in (BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL)
            or max(t.bits for t in f.input_types) > MAX_ADDRESS_BITS
        ):
            return f"no tables of {f.kind.value}"
        values = [self.x.astype(np.float64), self.y.astype(np.float64)]
        if not all(np.isfinite(v).all() for v in values):
            return "an operand is no finite number"
        if f.kind != BinaryKind.MUL:  # A constant moves t only, so the least value becomes 0.
            values = [v - v.min(axis=0) for v in values]
        size = [np.frexp(v.max(axis=0))[1] for v in map(np.abs, values)]
        if f.kind != BinaryKind.MUL:
            size = [np.maximum(*size)] * 2
        last = "equal sums of values have different codes"
        for bits in _WORD_BITS if f.kind != BinaryKind.MUL else _WORD_BITS[:_PRODUCT_WORDS]:
            words = [np.rint(np.ldexp(v, bits - n)).astype(np.int64) for v, n in zip(values, size, strict=True)]
            samples = self._samples_of_words(words)
            steps = last if samples is None else self._threshold_table(samples, bits >= _RUNS_FROM_BITS)
            if isinstance(steps, ThresholdTable):
                return self._plan_with_tables(words, steps)
            last = steps
        return f"with tables in front: {last}"

    def _plan_with_tables(self, words: list[Array], steps: ThresholdTable) -> JoinPlan:
        """The plan whose operands go through tables with the entries `words`, one (codes, sets) for each operand."""
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

    def _samples_of_words(self, words: list[Array]) -> list[Samples] | None:
        """For each set, the code at every sum, difference or product of the words; None if equal ones differ."""
        found: dict[int, Samples] = {}
        for s in sorted(range(self.f.sets), key=lambda s: s != self.failed):
            n, m = self.sizes[s]
            u, v = words[0][:n, s, None], words[1][None, :m, s]
            t = u * v if self.f.kind == BinaryKind.MUL else u - v if self.f.kind == BinaryKind.SUB else u + v
            samples = Samples.of(t, self.codes[s])
            if samples is None:
                self.failed = s
                return None
            found[s] = samples
        return [found[s] for s in range(self.f.sets)]


def _domain(steps: ThresholdTable) -> IntType:
    """The type that holds every t."""
    return IntType(int(steps.lo.min()), int(steps.hi.max()))
