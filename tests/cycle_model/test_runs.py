"""Sequences of times as runs, compared with plain lists."""

from __future__ import annotations

import random

from hlsgen.cycle_model.runs import Cursor, Runs, runs_equal


def random_runs(rng: random.Random) -> tuple[Runs, list[int]]:
    """A sequence and its numbers; the runs sometimes continue each other."""
    runs, numbers, first = Runs(), list[int](), 0
    for _ in range(rng.randint(1, 4)):
        step, count = rng.randint(0, 2), rng.randint(1, 3)
        runs.append(first, step, count)
        numbers += [first + i * step for i in range(count)]
        first = numbers[-1] + rng.randint(0, 2)
    return runs, numbers


def test_equality_does_not_depend_on_the_division_into_runs() -> None:
    rng = random.Random(1)
    sequences = [random_runs(rng) for _ in range(400)]
    outcomes = set()
    for a, numbers_a in sequences:
        for b, numbers_b in sequences:
            assert runs_equal(a, b) == (numbers_a == numbers_b)
            outcomes.add((numbers_a == numbers_b, a.starts == b.starts, a.firsts == b.firsts, a.steps == b.steps))
    parts = {(False, False, True, True), (False, True, False, True), (False, True, True, False)}
    assert parts | {(True, True, True, True), (True, False, False, False)} <= outcomes


def test_cursor_reads_while_the_sequence_grows() -> None:
    rng = random.Random(2)
    for _ in range(100):
        runs, numbers = random_runs(rng)
        growing, cursor = Runs(), Cursor(runs)
        for k in range(len(numbers)):
            value, step, remaining = cursor.read(k)
            assert remaining >= 1
            assert [value + i * step for i in range(remaining)] == numbers[k : k + remaining]
        reader = Cursor(growing)
        for k, number in enumerate(numbers):
            growing.append(number, 0, 1)
            assert reader.read(k)[::2] == (number, 1)


def test_repeat_and_equal() -> None:
    """`repeat` appends the end of a sequence again with an offset; `equal` counts repeated numbers."""
    rng = random.Random(2)
    outcomes = set()
    for _ in range(3000):
        runs, numbers = random_runs(rng)
        begin, offset, times = rng.randrange(len(numbers)), rng.randint(0, 4), rng.randint(1, 3)
        period = numbers[begin:]
        runs.repeat(begin, offset, times)
        numbers += [number + offset * time for time in range(1, times + 1) for number in period]
        assert runs.array().tolist() == numbers
        early, late = sorted(rng.choices(range(len(numbers)), k=2))
        limit, shift = rng.randint(1, 9), numbers[late] - numbers[early]
        floors = (numbers[early] + 1, numbers[late] + 1) if rng.random() < 0.5 else None
        alike = 0
        for a, b in zip(numbers[early:], numbers[late:][:limit], strict=False):
            if b - a != shift and not (floors and a <= floors[0] and b <= floors[1]):
                break
            alike += 1
        assert runs.equal(early, late, shift, limit, floors) == alike
        outcomes.add((alike, floors is None))
    assert len(outcomes) > 12
