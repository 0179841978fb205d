"""hg_state: the beats that each frame finds, in every cycle, and the room for flags and for the next state."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from bench import Trace, Unit, simulate
from streams import memory

FRAMES = 400
#: Flags of frames that have not taken their state.
FLAGS = 2
rng = np.random.default_rng(5)


def state(width: int, beats: int, folder: Path | None) -> tuple[Unit, list[int]]:
    """A unit with its words, and the beats that its frames find. `folder`: for a file with the initial state."""
    flags = [int(flag) for flag in rng.random(FRAMES) < rng.choice([0.1, 0.5])]
    left = [int(word) for word in rng.integers(0, 1 << width, FRAMES * beats)]
    initial = [int(word) for word in rng.integers(0, 1 << width, beats)]
    parameters: dict[str, object] = {"WIDTH": width, "BEATS": beats}
    if folder:
        file = folder / f"initial_{width}_{beats}.mem"
        file.write_text(memory(initial))
        parameters |= {"TABLE": 1, "FILE": f'"{file}"'}
    else:
        initial = initial[:1] * beats
        parameters["INITIAL"] = f"{width}'d{initial[0]}"
    found: list[int] = []
    for frame, flag in enumerate(flags):
        found += initial if flag or frame == 0 else left[(frame - 1) * beats : frame * beats]
    return Unit("hg_state", parameters, {"a": flags, "b": left}, {"a": 1, "b": width, "m": width}), found


def check_cycles(trace: Trace, beats: int) -> None:
    """A beat is taken from the memory as soon as its flag and it itself are there, and is offered a cycle later."""
    a, b, m = trace["a"], trace["b"], trace["m"]
    cycles, flags, stored = len(m.valid), 0, 0
    taken = popped = 0  # beats that frames have found, and those of them that another frame had left
    for cycle in range(cycles):
        assert a.ready[cycle] == (flags - taken // beats < FLAGS)
        assert b.ready[cycle] == (stored - popped < beats)
        has_flag = flags > taken // beats
        takes = bool(m.enabled[cycle] and has_flag and (taken < beats or stored > popped))
        if cycle + 1 < cycles:
            assert m.valid[cycle + 1] == (takes if m.enabled[cycle] else True)
        popped += takes and taken >= beats
        taken += takes
        flags += bool(a.valid[cycle] and a.ready[cycle])
        stored += bool(b.valid[cycle] and b.ready[cycle])


def test_states(tmp_path: Path) -> None:
    shapes = [(1, 1, False), (8, 1, True), (4, 2, False), (9, 3, True), (16, 5, True), (3, 8, False), (40, 7, True)]
    cases = [state(width, beats, tmp_path if table else None) for width, beats, table in shapes]
    results = simulate([unit for unit, _ in cases], tmp_path)
    for (unit, found), phases in zip(cases, results, strict=True):
        beats = int(str(unit.parameters["BEATS"]))
        for trace in phases:
            assert all(port.holds_still() for port in trace.values())
            words = trace["m"].words
            assert words == found[: len(words)], unit.parameters
            check_cycles(trace, beats)
        assert sum(len(trace["m"].words) for trace in phases) > 300
