"""Units that hold as few beats as they ever do: what comes before what, beat by beat, as `processes` without latency."""

from __future__ import annotations

from collections.abc import Sequence

from hlsgen.cycle_model.processes import Process, Wire


def single(wires: Sequence[Wire], result: Wire, gives: Sequence[bool]) -> Process:
    """A unit that takes a beat of every wire when it holds none. `gives` marks those that lead to an output beat."""
    k = 0
    while True:
        while all(k < len(wire.due) for wire in wires) and len(result.taken) == len(result.due):
            for wire in wires:
                wire.taken.append(k)
            if gives[k % len(gives)]:
                result.due.append(k)
            k += 1
        yield


def rows(first: Wire, second: Wire, result: Wire, every: int) -> Process:
    """A join that takes a beat of the second wire with the last of `every` beats of the first one."""
    k = 0
    while True:
        while k < len(first.due) and k // every < len(second.due) and len(result.taken) == len(result.due):
            first.taken.append(k)
            if k % every == every - 1:
                second.taken.append(k)
            result.due.append(k)
            k += 1
        yield


def sums(wire: Wire, result: Wire, length: int) -> Process:
    """hg_mvu with one pass: `length` beats lead to one, and it stores some more before it needs them."""
    k = used = 0
    while True:
        moved = False
        while used < k and len(result.taken) == len(result.due):
            used += 1
            if used % length == 0:
                result.due.append(0)
            moved = True
        while k < len(wire.due) and k < used + (4 if length > 2 else 2 * length):
            wire.taken.append(0)
            k += 1
            moved = True
        if not moved:
            yield


def blocks(
    wire: Wire, result: Wire, needs: Sequence[int], keeps: Sequence[int], words: int, depth: int, count: int
) -> Process:
    """A unit with a memory of `depth` words, for frames of `words` words.

    When word needs[v] of a frame is stored, window v leads to `count` beats, one after the other. Until the last of
    these is made, the words from keeps[v] on stay in the memory.
    """
    k = v = made = 0
    while True:
        moved = False
        while needs[v % len(needs)] + v // len(needs) * words < k and len(result.taken) == len(result.due):
            result.due.append(0)
            made += 1
            if made == count:
                v, made = v + 1, 0
            moved = True
        while k < len(wire.due) and k - depth < keeps[v % len(keeps)] + v // len(keeps) * words:
            wire.taken.append(0)
            k += 1
            moved = True
        if not moved:
            yield
