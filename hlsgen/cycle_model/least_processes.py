"""Units that hold the fewest beats they can ever hold: the order of beats, as in `processes` without latency."""

from __future__ import annotations

from collections.abc import Sequence

from hlsgen.cycle_model.processes import Process, Wire


def single(wires: Sequence[Wire], result: Wire, emits: Sequence[bool]) -> Process:
    """A unit that consumes a beat of every wire when it is empty. `emits` marks beats that produce an output beat."""
    k = 0
    while True:
        while all(k < len(wire.due) for wire in wires) and len(result.consumed) == len(result.due):
            for wire in wires:
                wire.consumed.append(k)
            if emits[k % len(emits)]:
                result.due.append(k)
            k += 1
        yield


def rows(first: Wire, second: Wire, result: Wire, beats_per_second: int) -> Process:
    """A join that consumes a beat of the second wire with the last of `beats_per_second` beats of the first wire."""
    k = 0
    while True:
        while (
            k < len(first.due) and k // beats_per_second < len(second.due) and len(result.consumed) == len(result.due)
        ):
            first.consumed.append(k)
            if k % beats_per_second == beats_per_second - 1:
                second.consumed.append(k)
            result.due.append(k)
            k += 1
        yield


def sums(wire: Wire, result: Wire, length: int) -> Process:
    """hg_mvu with one pass: `length` beats produce one, and it stores a few more before it needs them."""
    k = used = 0
    while True:
        moved = False
        while used < k and len(result.consumed) == len(result.due):
            used += 1
            if used % length == 0:
                result.due.append(0)
            moved = True
        while k < len(wire.due) and k < used + (4 if length > 2 else 2 * length):
            wire.consumed.append(0)
            k += 1
            moved = True
        if not moved:
            yield


def blocks(
    wire: Wire, result: Wire, needs: Sequence[int], keeps: Sequence[int], words: int, depth: int, count: int
) -> Process:
    """A unit with a memory of `depth` words, for frames of `words` words.

    When word needs[v] of a frame is stored, window v produces `count` beats in sequence. Until the last of these is
    produced, the words from keeps[v] on stay in the memory.
    """
    k = v = emitted_beats = 0
    while True:
        moved = False
        while needs[v % len(needs)] + v // len(needs) * words < k and len(result.consumed) == len(result.due):
            result.due.append(0)
            emitted_beats += 1
            if emitted_beats == count:
                v, emitted_beats = v + 1, 0
            moved = True
        while k < len(wire.due) and k - depth < keeps[v % len(keeps)] + v // len(keeps) * words:
            wire.consumed.append(0)
            k += 1
            moved = True
        if not moved:
            yield
