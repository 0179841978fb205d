"""Sequences of times as runs, against plain lists."""

from __future__ import annotations

import random

from hlsgen.cycle_model.runs import Cursor, Runs, runs_equal


def random_runs(rng: random.Random) -> tuple[Runs, list[int]]:
    """A sequence and its numbers; the runs fit together now and then."""
    made, numbers, first = Runs(), list[int](), 0
    for _ in range(rng.randint(1, 4)):
        step, count = rng.randint(0, 2), rng.randint(1, 3)
        made.append(first, step, count)
        numbers += [first + i * step for i in range(count)]
        first = numbers[-1] + rng.randint(0, 2)
    return made, numbers


def test_same_numbers_however_they_are_divided() -> None:
    rng = random.Random(1)
    sequences = [random_runs(rng) for _ in range(400)]
    outcomes = set()
    for a, left in sequences:
        for b, right in sequences:
            assert runs_equal(a, b) == (left == right)
            outcomes.add((left == right, a.starts == b.starts, a.firsts == b.firsts, a.steps == b.steps))
    parts = {(False, False, True, True), (False, True, False, True), (False, True, True, False)}
    assert parts | {(True, True, True, True), (True, False, False, False)} <= outcomes


def test_cursor_reads_while_the_sequence_grows() -> None:
    rng = random.Random(2)
    for _ in range(100):
        made, numbers = random_runs(rng)
        whole, cursor = Runs(), Cursor(made)
        for k in range(len(numbers)):
            value, step, left = cursor.read(k)
            assert left >= 1
            assert [value + i * step for i in range(left)] == numbers[k : k + left]
        reader = Cursor(whole)
        for k, number in enumerate(numbers):
            whole.append(number, 0, 1)
            assert reader.read(k)[::2] == (number, 1)


def test_what_comes_again() -> None:
    """`repeat` adds the end of a sequence again, later each time; `equal` counts the numbers that come again."""
    rng = random.Random(2)
    found = set()
    for _ in range(3000):
        made, numbers = random_runs(rng)
        begin, more, times = rng.randrange(len(numbers)), rng.randint(0, 4), rng.randint(1, 3)
        period = numbers[begin:]
        made.repeat(begin, more, times)
        numbers += [number + more * time for time in range(1, times + 1) for number in period]
        assert made.array().tolist() == numbers
        early, late = sorted(rng.choices(range(len(numbers)), k=2))
        most, shift = rng.randint(1, 9), numbers[late] - numbers[early]
        floors = (numbers[early] + 1, numbers[late] + 1) if rng.random() < 0.5 else None
        alike = 0
        for a, b in zip(numbers[early:], numbers[late:][:most], strict=False):
            if b - a != shift and not (floors and a <= floors[0] and b <= floors[1]):
                break
            alike += 1
        assert made.equal(early, late, shift, most, floors) == alike
        found.add((alike, floors is None))
    assert len(found) > 12
