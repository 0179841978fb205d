"""Sequences of times as runs, against plain lists."""

from __future__ import annotations

import random

from hlsgen.cycle_model.runs import Cursor, Runs, same


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
            assert same(a, b) == (left == right)
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
        cursor.back()
        assert cursor.read(0)[0] == numbers[0]
        reader = Cursor(whole)
        for k, number in enumerate(numbers):
            whole.append(number, 0, 1)
            assert reader.read(k)[::2] == (number, 1)
