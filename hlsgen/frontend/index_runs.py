"""Constant indices as few runs: ranges with equal steps, and ranges whose indices are repeated equally often."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby, islice

from hlsgen.numerics.fixed import Array


@dataclass(frozen=True)
class RepeatedRun:
    """`length` of the indices range(first, end, step), each `times` times in a row, after the first `skipped` ones."""

    first: int
    end: int
    step: int
    times: int = 1
    skipped: int = 0
    length: int = 0


def runs(indices: Array) -> list[tuple[int, int, int]]:
    """Ranges (first, end, step), steps positive, whose concatenation is `indices`; each as long as possible."""
    ranges, remaining = [], indices.tolist()
    while remaining:
        step = remaining[1] - remaining[0] if len(remaining) > 1 and remaining[1] > remaining[0] else 1
        length = 1
        while length < len(remaining) and remaining[length] == remaining[0] + length * step:
            length += 1
        ranges.append((remaining[0], remaining[length - 1] + 1, step))
        remaining = remaining[length:]
    return ranges


def repeated_runs(indices: Array) -> list[RepeatedRun]:
    """Runs, steps positive, whose concatenation is `indices`; each as long as possible."""
    parts, groups, start = [], [(value, len([*group])) for value, group in groupby(indices.tolist())], 0
    while start < len(groups):
        counts = {count for _, count in groups[start : start + 2]}
        run = max((_first_run(groups, start, n) for n in counts if n >= groups[start][1]), key=lambda run: run.length)
        parts.append(run)
        length = run.length
        while start < len(groups) and length >= groups[start][1]:
            length -= groups[start][1]
            start += 1
        if length:
            groups[start] = groups[start][0], groups[start][1] - length
    return parts


def _first_run(groups: list[tuple[int, int]], start: int, times: int) -> RepeatedRun:
    """The longest run from group `start` on, of indices that are repeated `times` times."""
    first, count = groups[start]
    step = max(groups[start + 1][0] - first, 1) if start + 1 < len(groups) else 1
    last, length = first, count
    for value, repeated in islice(groups, start + 1, None):
        if value != last + step:
            break
        last, length = value, length + min(repeated, times)
        if repeated != times:
            break
    return RepeatedRun(first, last + 1, step, times, times - count, length)
