"""Join plans that are found, and proven, by evaluating the function at every pair of codes.

The model's own operations give the code of every pair (a, b) once. A plan reduces the pair to one integer t, and its
steps give the code from t. A plan is right if equal t always have equal codes, and the steps have the code of every t
that occurs. Both are checked here on all pairs, which is a complete proof.

`AllPairs.plans` first tries a weighted sum or a product of the codes as t. Then it tries both codes packed side by side
in one lookup table, and at last the sum or product of two lookup tables.

Example: code = round(0.5 * a + 0.25 * b) for a and b in 0..2, ties to even. If t = 2 * a + b, the nine pairs have the
seven sums 0..6. Their codes are 0, 0, 0, 1, 1, 1, 2: steps at 3 and 6. There is no plan with t = a + b: (0, 2) and (1,
1) both have t = 2, but the codes 0 and 1.
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

#: A lookup table of all pairs has at most this many address bits, unless MAX_ADDRESS_BITS already allows more.
MAX_PACKED = 16
#: A lookup table of all pairs has at most this many entries, over all sets.
_MAX_ENTRIES = 1 << 22
#: Widths of lookup-table entries before a sum, in the order in which they are tried.
_WORD_BITS = range(2, 33)
#: The first this many of these widths are tried before a product.
_PRODUCT_WORDS = 26
#: From this width on, the steps after the lookup tables need not rise or fall.
_RUNS_FROM_BITS = 24
#: Bits of factors that follow the slopes of the operands precisely.
_FACTOR_BITS = 24
#: Shifts for which factors are tried that make the code the shifted sum.
_FACTOR_SHIFTS = range(25)
#: With more sets than this, one slope for all of them is too unlikely to be tried.
_FEW_SETS = 8


class AllPairs:
    """A function of two operands, evaluated at all pairs of codes.

    `a`, `b` int64 (codes, sets): all codes of each operand. `x`, `y` (codes, sets): their values after the branches.
    `sizes`: for each set, its numbers of codes of a and of b; a longer column repeats its last code. `codes[s]`
    (sizes[s]): the resulting code of every pair of set s, in a small integer type.
    """

    def __init__(self, f: BinaryFunction) -> None:
        self.f = f
        #: The set that `_samples_of_words` rejected last: it is tried first, as it most probably fails again.
        self.failed = 0
        self.a, self.b = f.codes(0), f.codes(1)
        self.x, self.y = f.branch(0, self.a), f.branch(1, self.b)
        sizes = f.hi - f.lo + 1
        self.sizes = [(int(n), int(m)) for n, m in sizes.T]
        small = np.min_scalar_type(-max(abs(f.output_type.lo), abs(f.output_type.hi)) - 1)
        self.codes = []
        for s, (n, m) in enumerate(self.sizes):
            single_set = f.take(np.array([s]))
            pair_codes = single_set.combine(self.x[:n, None, s, None], self.y[None, :m, s, None])
            self.codes.append(np.broadcast_to(pair_codes[..., 0], (n, m)).astype(small))

    def plans(self, affine_plan: JoinPlan | None) -> Iterator[JoinPlan | str]:
        """Proven plans, or, for each kind without a plan, the reason.

        `affine_plan` is the plan that `affine.find` proved, if any. It is not returned again. If its factors cannot be
        simpler, no other sum or product is tried.
        """
        f = self.f
        simple = affine_plan is not None and affine_plan.factors in (None, (1, 1), (1, -1))
        bits = sum(type_.bits for type_ in f.input_types)
        has_direct_plan = False
        if not simple:
            attempts = list(self._product_plans() if f.kind == BinaryKind.MUL else self._sum_plans())
            has_direct_plan = any(isinstance(plan, JoinPlan) for plan in attempts)
            yield from (
                plan
                for plan in attempts
                if affine_plan is None or isinstance(plan, str) or plan.factors != affine_plan.factors
            )
        # A small packed table is cheap. A larger one is the last resort.
        if bits <= MAX_ADDRESS_BITS or (bits <= MAX_PACKED and not has_direct_plan):
            yield self._packed_plan()
        if affine_plan is None and not has_direct_plan and bits > 6:
            yield self._tables_plan()

    # ----------------------------------------------------------------------- sums and products

    def _samples(self, factors: tuple[int, int] | None, zeros: tuple[int, int]) -> list[Samples] | None:
        """For each set, the code at every t, or None if equal t have different codes.

        t is the sum with `factors`, or, if these are None, the product of the codes less `zeros`.
        """
        samples_by_set = []
        for s, (n, m) in enumerate(self.sizes):
            a, b = self.a[:n, s, None], self.b[None, :m, s]
            t = (a - zeros[0]) * (b - zeros[1]) if factors is None else a * factors[0] + b * factors[1]
            samples = Samples.of(t, self.codes[s])
            if samples is None:
                return None
            samples_by_set.append(samples)
        return samples_by_set

    def _plan(self, factors: tuple[int, int] | None, zeros: tuple[int, int], function: ThresholdTable) -> JoinPlan:
        """A sum or product of the codes themselves, and the steps over it."""
        return direct_plan(self.f, factors, zeros, _domain(function), function)

    def _sum_plans(self) -> Iterator[JoinPlan | str]:
        """Weighted sums of the codes.

        For monotone codes `factor_ratio` finds the simplest factors, or proves that there are none. For all other codes
        a few factors are guessed. The first ones that give different sums to different codes are taken.
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

        The first has the simplest `factors`, and a multiplication after the sum. The second has larger factors, so that
        the code is the sum shifted to the right. Then nothing has to be multiplied after the sum.
        """
        line = ranges.fit_line()
        yield self._plan(factors, (0, 0), ranges.to_table(self.f.name, ranges.thresholds(line), falling))
        if line is not None and (line[0] <= 1).all():
            return
        means = self._mean_slopes()
        if means is None or self.f.sets > _FEW_SETS:
            return
        # Precise factors follow the slopes of the operands. Together with the line over their sum, they give the slopes
        # of the code. These slopes, times a power of two, are the factors to try.
        size = 2.0**_FACTOR_BITS / max(map(abs, means))
        precise = self._ranges((round(means[0] * size), round(means[1] * size)))
        line = None if precise is None else precise[0].fit_line()
        if line is None:
            return
        slopes, shift = line
        slope = float(np.median(slopes[slopes > 0])) * 2.0**-shift if slopes.any() else 0.0
        for places in _FACTOR_SHIFTS:
            pair = round(means[0] * size * slope * 2**places), round(means[1] * size * slope * 2**places)
            pair_ranges = self._ranges(pair) if any(pair) and max(map(abs, pair)) <= factor_ratio.MAX_FACTOR else None
            table = (
                None
                if pair_ranges is None
                else pair_ranges[0].thresholds_on_line(np.ones(self.f.sets, np.int64), places)
            )
            if pair_ranges is not None and table is not None:
                yield self._plan(pair, (0, 0), pair_ranges[0].to_table(self.f.name, table, pair_ranges[1]))
                return

    def _ranges(self, factors: tuple[int, int]) -> tuple[ThresholdRanges, Array] | None:
        """`threshold_ranges` over that weighted sum, or None if the codes are no monotone function of it."""
        samples = self._samples(factors, (0, 0))
        ranges_or_reason = None if samples is None else threshold_ranges(samples)
        return None if isinstance(ranges_or_reason, str) else ranges_or_reason

    def _mean_slopes(self) -> tuple[float, float] | None:
        """The growth of the sum of the operands' values, on average over set 0, as each code grows by one.

        It only guides guesses. Returns None if a value is not finite or an operand does not change.
        """
        spans = []
        for values, sign in ((self.x, 1), (self.y, -1 if self.f.kind == BinaryKind.SUB else 1)):
            column = values[:, 0].astype(np.float64)
            spans.append(sign * float(column[-1] - column[0]) / max(1, len(column) - 1))
        return (spans[0], spans[1]) if all(spans) and np.isfinite(spans).all() else None

    def _guessed_factors(self) -> Iterator[tuple[int, int]]:
        """Factors that are worth a try where nothing is proven, the simplest first.

        After (1, 1), (1, -1) and single operands, these are the convergents of the continued fraction of the ratio of
        the mean slopes: its best approximations by small integers.
        """
        yield from ((1, 1), (1, -1), (1, 0), (0, 1))
        slopes = self._mean_slopes() if self.f.kind in (BinaryKind.ADD, BinaryKind.SUB) else None
        if slopes is None:
            return
        target_ratio, sign = abs(slopes[1] / slopes[0]), int(np.sign(slopes[1] / slopes[0]))
        # Convergents are (numerator, denominator).
        remainder, previous, last = target_ratio, (0, 1), (1, 0)
        while remainder < 1 << 16:
            integer_part = int(remainder)
            previous, last = last, (integer_part * last[0] + previous[0], integer_part * last[1] + previous[1])
            if max(last) > 1 << 12:
                return
            if last[0] and last[1] and max(last) > 1:
                yield last[1], sign * last[0]
            if remainder == integer_part:
                return
            remainder = 1 / (remainder - integer_part)

    def _product_plans(self) -> Iterator[JoinPlan | str]:
        """The product of the codes, each less its zero point, which is guessed from the values, else 0."""
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
        """The steps over t. If they neither rise nor fall: runs with `any_order`, else the reason."""
        ranges_or_reason = threshold_ranges(samples)
        if isinstance(ranges_or_reason, str):
            return runs(self.f.name, samples) if any_order else ranges_or_reason
        ranges, falling = ranges_or_reason
        return ranges.to_table(self.f.name, ranges.thresholds(ranges.fit_line()), falling)

    def _zero_crossing(self, codes: Array, values: Array) -> int:
        """The code at which the line through the ends of set 0 is 0: a guess of the zero point."""
        column, value = codes[: len(codes), 0], values[:, 0].astype(np.float64)
        if not np.isfinite(value).all() or value[-1] == value[0]:
            return 0
        return round(float(column[0] - value[0] * (column[-1] - column[0]) / (value[-1] - value[0])))

    # ----------------------------------------------------------------------- tables

    def _packed_plan(self) -> JoinPlan | str:
        """One lookup table with an entry for every pair: t is both codes side by side, b in the high bits."""
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
        lookup = Table(TableMode.DIRECT, entries, np.zeros(f.sets, np.int64))
        return JoinPlan(None, (0, 0), True, (None, None), f.input_types, IntType(0, (1 << (low + high)) - 1), lookup)

    def _tables_plan(self) -> JoinPlan | str:
        """A lookup table of each operand's values in fixed point, and the steps over the sum or product of both.

        It tries narrow entries first. Entries are wide enough as soon as equal t have equal codes: the pairs themselves
        prove that the values were rounded finely enough.
        """
        f = self.f
        if (
            f.kind not in (BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL)
            or max(t.bits for t in f.input_types) > MAX_ADDRESS_BITS
        ):
            return f"lookup tables do not support {f.kind.value}, or an operand is too wide for them"
        values = [self.x.astype(np.float64), self.y.astype(np.float64)]
        if not all(np.isfinite(v).all() for v in values):
            return "an operand is not finite"
        # A constant only moves t, so the least value becomes 0.
        if f.kind != BinaryKind.MUL:
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
        return f"with a lookup table for each operand: {last}"

    def _plan_with_tables(self, words: list[Array], steps: ThresholdTable) -> JoinPlan:
        """The plan whose operands go through lookup tables.

        `words`: the entries of both lookup tables, int64 (codes, sets) each.
        """
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
        tables_and_types = (tables[0], tables[1]), (types[0], types[1])
        return JoinPlan(factors, (0, 0), False, *tables_and_types, _domain(steps), steps)

    def _samples_of_words(self, words: list[Array]) -> list[Samples] | None:
        """For each set, the code at every sum, difference or product of the words, or None if equal ones differ."""
        samples_by_set: dict[int, Samples] = {}
        for s in sorted(range(self.f.sets), key=lambda s: s != self.failed):
            n, m = self.sizes[s]
            u, v = words[0][:n, s, None], words[1][None, :m, s]
            t = u * v if self.f.kind == BinaryKind.MUL else u - v if self.f.kind == BinaryKind.SUB else u + v
            samples = Samples.of(t, self.codes[s])
            if samples is None:
                self.failed = s
                return None
            samples_by_set[s] = samples
        return [samples_by_set[s] for s in range(self.f.sets)]


def _domain(steps: ThresholdTable) -> IntType:
    """The type that holds every t."""
    return IntType(int(steps.lo.min()), int(steps.hi.max()))
