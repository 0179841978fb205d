"""Finds the exact steps of a function by evaluating the model's own operations.

Bisection finds each step of a monotone function with a few evaluations. If nothing is known about the function,
intervals may still bound its values (`interval_bisection`). Otherwise every input is evaluated, if there are few
enough. All three give the same steps, as each evaluates the same operations.
"""

from __future__ import annotations

import numpy as np

from hlsgen.ir.evaluate import constants, lead_axes
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import Array
from hlsgen.rescale.interval_bisection import constant_intervals
from hlsgen.rescale.monotone_pieces import edges
from hlsgen.rescale.threshold_table import ThresholdTable

#: Inputs of one vectorized evaluation, over all sets.
_CHUNK = 1 << 21
#: A function with more steps than this is not listed in certificates.
MAX_STEPS = 4095
#: At most this many inputs, over all sets, are evaluated if nothing else finds the steps.
MAX_EVALUATIONS = 1 << 25
#: On intervals up to this length, every input of a function that turns is evaluated.
SHORT = 1 << 12


def trace(f: StepFunction, max_steps: int = MAX_STEPS, max_steps_wide: int = 0) -> ThresholdTable | str:
    """The exact steps of f, or the reason, as text, why they cannot be listed.

    At most `max_steps` steps a set are accepted. If f has more and `max_steps_wide` is greater, it tries again with
    `max_steps_wide`.
    """
    cuts = edges(f)
    limits = [max_steps] if max_steps_wide <= max_steps else [max_steps, max_steps_wide]
    length = int((f.hi - f.lo).max()) + 1
    exhaustive = length <= SHORT
    runs_by_set: Runs | None = None
    if cuts is None and not exhaustive:
        intervals = constant_intervals(f)
        exhaustive = not isinstance(intervals, str) or length * f.sets <= MAX_EVALUATIONS
        if not exhaustive:
            return (
                f"it is not known where the function is monotone ({intervals}), and {length} inputs of "
                f"{f.sets} channels are too many to try ({MAX_EVALUATIONS})"
            )
        runs_by_set = None if isinstance(intervals, str) else _runs_by_set(f, *intervals)
    for limit in limits:
        dense = _dense(f, limit) if cuts is not None and len(cuts) == 2 else None
        if dense is not None:
            return dense
        if exhaustive:
            runs_by_set = runs_by_set or _exhaustive(f)
            table_or_reason = _to_table(f, runs_by_set, limit)
        else:
            assert cuts is not None
            runs = _too_many(limit) if _surely_too_many(f, limit) else _bisected(f, cuts, limit)
            table_or_reason = runs if isinstance(runs, str) else _to_table(f, runs, limit)
        if not isinstance(table_or_reason, str):
            break
    return table_or_reason


def bisect(f: StepFunction, codes: Array) -> Array:
    """The threshold of each code: the least x of lo..hi with f(x) >= code, or, if f falls, with f(x) < code.

    `codes` int64 (n,), or (n, sets) with separate codes for each set. Returns int64 (n, sets), hi + 1 if there is no
    such x. f must be monotone in every set.
    """
    falling = f.evaluate(f.lo) > f.evaluate(f.hi)
    rows = max(1, _CHUNK // f.sets)
    codes = codes[:, None] if codes.ndim == 1 else codes
    parts = [_bisect(f, codes[i : i + rows], falling) for i in range(0, len(codes), rows)]
    return np.concatenate(parts) if parts else np.zeros((0, f.sets), np.int64)


def bisect_near(f: StepFunction, codes: Array, guess: Array, width: Array) -> Array:
    """The thresholds of a function that rises, quickly if they lie within guess +- width.

    `codes`, `guess`, `width` int64 (n, sets) -> int64 (n, sets). A wrong guess costs time, but changes no result.
    """
    low, high = np.clip(guess - width, f.lo, f.hi + 1), np.clip(guess + width, f.lo, f.hi + 1)
    inside = (low == f.lo) | (f.evaluate(np.maximum(low - 1, f.lo)) < codes)
    inside &= (high > f.hi) | (f.evaluate(np.minimum(high, f.hi)) >= codes)
    return _bisect(f, codes, np.zeros(f.sets, np.bool_), np.where(inside, low, f.lo), np.where(inside, high, f.hi + 1))


def _bisect(
    f: StepFunction, codes: Array, falling: Array, lowest: Array | None = None, highest: Array | None = None
) -> Array:
    """`bisect` for one chunk: thresholds between `lowest` and `highest`, by default lo and hi + 1."""
    shape = len(codes), f.sets
    low: Array = np.broadcast_to(f.lo if lowest is None else lowest, shape).copy()
    high: Array = np.broadcast_to(f.hi + 1 if highest is None else highest, shape).copy()
    while (low < high).any():
        middle = low + ((high - low) >> 1)
        reached = (f.evaluate(np.minimum(middle, f.hi)) >= codes) ^ falling
        reached |= middle > f.hi
        active = low < high
        high = np.where(active & reached, middle, high)
        low = np.where(active & ~reached, middle + 1, low)
    return low


def _dense(f: StepFunction, max_steps: int) -> ThresholdTable | None:
    """The steps of a monotone function, one for each code between its ends, or None if they exceed `max_steps`."""
    first, last = f.evaluate(f.lo), f.evaluate(f.hi)
    low, high = int(min(first.min(), last.min())), int(max(first.max(), last.max()))
    if high - low > max_steps:
        return None
    codes = np.arange(low, max(high, low + 1) + 1)
    table = bisect(f, codes[1:])
    falling = first > last
    table = np.where(falling, table[::-1], table)
    values = np.where(falling, codes[::-1, None], codes[:, None])
    return ThresholdTable(f.name, f.lo, f.hi, table, values)


#: For each set, the first inputs of its runs of equal codes, ascending, and the code of each run.
Runs = list[tuple[Array, Array]]


def _exhaustive(f: StepFunction) -> Runs:
    """The runs of each set, from an evaluation of every input."""
    runs = []
    length = f.hi - f.lo + 1
    for s in range(f.sets):
        single_set = f.take(np.array([s]), f.lo[s : s + 1], f.hi[s : s + 1])
        starts, codes = [], []
        for begin in range(0, int(length[s]), _CHUNK):
            x = np.arange(begin, min(begin + _CHUNK, int(length[s]))) + f.lo[s]
            y = single_set.evaluate(x[:, None])[:, 0]
            change = np.flatnonzero(np.diff(y, prepend=y[0] + 1))
            starts.append(x[change])
            codes.append(y[change])
        runs.append((np.concatenate(starts), np.concatenate(codes)))
    return runs


def _bisected(f: StepFunction, cuts: Array, max_steps: int) -> Runs | str:
    """The runs of a function that is monotone between neighbouring `cuts`, int64 (pieces + 1, sets).

    A monotone stretch whose ends have one code has that code everywhere. Any other stretch is halved, until its ends
    are neighbours. Returns text if there are more than `max_steps` steps a set on average.
    """
    piece, column = np.nonzero(cuts[1:] > cuts[:-1])
    low, high = cuts[piece, column], cuts[piece + 1, column] - 1
    first, last = _evaluate_sets(f, column, low), _evaluate_sets(f, column, high)
    run_parts, count = [(column, low, first)], 0
    while True:
        # Every remaining stretch has a step of its own.
        stepping = first != last
        column, low, high, first, last = (a[stepping] for a in (column, low, high, first, last))
        if count + len(column) > max_steps * f.sets:
            return _too_many(max_steps)
        adjacent = high - low == 1
        run_parts.append((column[adjacent], high[adjacent], last[adjacent]))
        count += int(adjacent.sum())
        column, low, high, first, last = (a[~adjacent] for a in (column, low, high, first, last))
        if not len(column):
            break
        middle = (low + high) >> 1
        code = _evaluate_sets(f, column, middle)
        column, low, high = np.tile(column, 2), np.append(low, middle), np.append(middle, high)
        first, last = np.append(first, code), np.append(code, last)
    return _runs_by_set(f, *(np.concatenate(part) for part in zip(*run_parts, strict=True)))


def _runs_by_set(f: StepFunction, sets: Array, starts: Array, codes: Array) -> Runs:
    """Runs in any order, each with its set, sorted into one list per set."""
    order = np.lexsort((starts, sets))
    ends = np.searchsorted(sets[order], np.arange(1, f.sets))
    return list(zip(np.split(starts[order], ends), np.split(codes[order], ends), strict=True))


def _too_many(max_steps: int) -> str:
    return f"it has more than {max_steps} steps"


def _surely_too_many(f: StepFunction, max_steps: int) -> bool:
    """True if evenly spaced inputs of the set with the longest interval already show more than `max_steps` changes."""
    s = int((f.hi - f.lo).argmax())
    lo, hi = int(f.lo[s]), int(f.hi[s])
    x = lo + (np.arange(2 * max_steps + 2) * np.int64(max(1, (hi - lo) // (2 * max_steps + 1))))
    single_set = f.take(np.array([s]), f.lo[[s]], f.hi[[s]])
    return int((np.diff(single_set.evaluate(x[x <= hi, None])[:, 0]) != 0).sum()) > max_steps


def _evaluate_sets(f: StepFunction, column: Array, x: Array) -> Array:
    """f of set column[i] at input x[i], for all i; int64 (n,)."""
    if f.sets == 1:
        return f.evaluate(x[:, None])[:, 0]
    if any(lead_axes(op, name) for op in (*f.ops, f.quantizer) for name in constants(op)):  # tables: one set at a time
        codes = np.zeros(len(x), np.int64)
        for s in np.unique(column):
            in_set = column == s
            codes[in_set] = f.take(np.array([s]), f.lo[[s]], f.hi[[s]]).evaluate(x[in_set, None])[:, 0]
        return codes
    parts = [slice(i, i + _CHUNK) for i in range(0, len(x), _CHUNK)]
    results = [f.take(column[part], x[part], x[part]).evaluate(x[part]) for part in parts]
    return np.concatenate(results) if results else np.zeros(0, np.int64)


def _to_table(f: StepFunction, runs: Runs, max_steps: int) -> ThresholdTable | str:
    """The steps of these runs. Adjacent runs with one code are merged, and all sets get the same number of steps.

    Monotone functions get one step for each code if `max_steps` allows that. Returns text if there are more than
    `max_steps` steps.
    """
    merged_runs = []
    for starts, codes in runs:
        keep = np.diff(codes, prepend=codes[0] + 1) != 0
        merged_runs.append((starts[keep], codes[keep]))
    low, high = (int(end(codes.min() if end is min else codes.max() for _, codes in merged_runs)) for end in (min, max))
    strictly_monotone = all((np.diff(codes) > 0).all() or (np.diff(codes) < 0).all() for _, codes in merged_runs)
    if strictly_monotone and high - low <= max_steps:
        merged_runs = [
            _every_code(starts, codes, low, max(high, low + 1), int(f.hi[s]))
            for s, (starts, codes) in enumerate(merged_runs)
        ]
    size = max(len(codes) for _, codes in merged_runs) - 1
    if size > max_steps:
        return f"it has {size} steps; at most {max_steps}"
    size = max(size, 1)
    table = np.empty((size, f.sets), np.int64)
    values = np.empty((size + 1, f.sets), np.int64)
    for s, (starts, codes) in enumerate(merged_runs):
        table[:, s] = f.hi[s] + 1
        table[: len(codes) - 1, s] = starts[1:]
        values[:, s] = codes[-1]
        values[: len(codes), s] = codes
    return ThresholdTable(f.name, f.lo, f.hi, table, values)


def _every_code(starts: Array, codes: Array, low: int, high: int, hi: int) -> tuple[Array, Array]:
    """The runs of a monotone function, with an empty run for every code of low..high that it jumps over."""
    if codes[0] > codes[-1]:
        # From high down: code c starts at the first input with f <= c.
        all_codes = np.arange(high, low - 1, -1)
        index = np.searchsorted(-codes, -all_codes, side="left")
    else:
        all_codes = np.arange(low, high + 1)
        index = np.searchsorted(codes, all_codes, side="left")
    return np.append(starts, hi + 1)[index], all_codes
