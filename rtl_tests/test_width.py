"""hg_width: elements keep their order at any ratio, and the fast side never waits; groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import gcd, lcm
from pathlib import Path

import numpy as np
import pytest
from bench import Trace, Unit, simulate
from streams import Stream, integers, pack, sweep

CASES = [
    (1, 6, 4),
    (3, 4, 6),
    (5, 3, 3),
    (2, 1, 7),
    (4, 7, 1),
    (1, 8, 2),
    (1, 5, 3),
    (9, 3, 5),
    (1, 1, 1),
    (1, 32, 12),
]


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, ratio", sweep(CASES))
def test_width(simulate: Callable[..., None], simulator: str, ratio: tuple[int, int, int]) -> None:
    unit, wide_in, wide_out = ratio
    count = lcm(wide_in, wide_out) * (-(-600 // lcm(wide_in, wide_out)) + 8)
    elements = integers(np.random.default_rng(unit), unit, False, (count,))
    outputs = count // wide_out
    # An input beat is accepted while fewer than two output beats are complete (one, if one of the widths divides the
    # other). The store has room for these elements and one more beat.
    step = gcd(wide_in, wide_out)
    room = wide_out if step in (wide_in, wide_out) else 2 * wide_out - step
    job = Stream(
        {"s_data": pack(elements.reshape(-1, wide_in), unit)},
        {"m_data": pack(elements.reshape(-1, wide_out), unit)},
        latency=1,
        completes=[-(-(k + 1) * wide_out // wide_in) - 1 for k in range(outputs)],
        continuous="input" if wide_in <= wide_out else "output",
        capacity=room // wide_in + 1,
        registered=True,
    )
    simulate(simulator, "hg_width", {"UNIT": unit, "IN": wide_in, "OUT": wide_out}, job)


@dataclass(frozen=True)
class Groups:
    """A converter; a group begins a new beat on its side."""

    unit: int
    wide_in: int
    wide_out: int
    in_group: int
    out_group: int

    @property
    def step(self) -> int:
        """All that is ever stored is a multiple of this."""
        common_step = gcd(self.wide_in, self.wide_out)
        whole_groups = self.in_group % self.wide_in == 0 and self.out_group % self.wide_out == 0
        return (
            common_step
            if whole_groups or self.in_group == self.out_group
            else gcd(common_step, self.in_group, self.out_group)
        )

    @property
    def slots(self) -> bool:
        """True if output beats are two or more whole input beats."""
        return self.step == self.wide_in and min(self.counted(self.wide_out, self.out_group, 100)) > self.wide_in

    @property
    def room(self) -> int:
        return self.wide_out if self.step in (self.wide_in, self.wide_out) else 2 * self.wide_out - self.step

    def real(self, lanes: int, group: int, beats: int) -> np.ndarray:
        """Elements in each of `beats` beats."""
        per_group = -(-group // lanes)
        last = np.arange(beats) % per_group == per_group - 1
        return np.where(last, group - (per_group - 1) * lanes, lanes)

    def counted(self, lanes: int, group: int, beats: int) -> np.ndarray:
        """The same as they are stored: groups that are equal end on a whole step."""
        multiple = -group % self.step if self.in_group == self.out_group else 0
        return self.real(lanes, group + multiple, beats)

    def unit_and_words(self, frames: int) -> tuple[Unit, list[int]]:
        """Unit and words for frames of the longer group, with random lanes after the last element of input groups."""
        rng = np.random.default_rng(self.wide_in)
        count = lcm(self.in_group, self.out_group) * frames
        elements = integers(rng, self.unit, False, (count,)) | 1
        sides = []
        for lanes, group, fill in ((self.wide_in, self.in_group, True), (self.wide_out, self.out_group, False)):
            rows = np.zeros((count // group, -(-group // lanes) * lanes), np.int64)
            if fill:
                rows = rng.integers(0, 1 << self.unit, rows.shape)
            rows[:, :group] = elements.reshape(-1, group)
            sides.append(pack(rows.reshape(-1, lanes), self.unit))
        parameters = {
            "UNIT": self.unit,
            "IN": self.wide_in,
            "OUT": self.wide_out,
            "IN_GROUP": self.in_group,
            "OUT_GROUP": self.out_group,
        }
        widths = {"s": self.unit * self.wide_in, "m": self.unit * self.wide_out}
        return Unit("hg_width", parameters, {"s": sides[0]}, widths), sides[1]

    def check(self, trace: Trace) -> None:
        """Check the offered and accepted beats of every cycle."""
        s, m = trace["s"], trace["m"]
        cycles = len(s.valid) + 1
        consumed, emitted = s.valid & s.ready, m.valid & m.ready
        ins = np.cumsum([0, *self.counted(self.wide_in, self.in_group, cycles)])
        outs = np.cumsum([0, *self.counted(self.wide_out, self.out_group, cycles)])
        count = ins[np.cumsum(consumed) - consumed] - outs[np.cumsum(emitted) - emitted]
        if self.slots:
            # The first input beat of an output beat is always taken, others while nothing is offered.
            completing_start = outs[np.searchsorted(outs, ins, "right") - 1]
            begins = (ins == completing_start)[np.cumsum(consumed) - consumed]
            assert np.array_equal(s.ready, begins | ~m.valid)
        else:
            assert np.array_equal(s.ready, count <= self.room)
        # An output beat follows the input beat with its last element, and the output beat before it.
        ins = np.cumsum(self.real(self.wide_in, self.in_group, cycles))
        outs = np.cumsum(self.real(self.wide_out, self.out_group, cycles))
        complete = np.searchsorted(ins, outs)
        complete = complete[complete < len(s.accepted)]
        earliest = s.accepted[complete][: len(m.accepted) + 1] + 1
        follows = np.concatenate([[0], m.accepted + 1])[: len(earliest)]
        offered = np.maximum(earliest, follows)
        assert np.array_equal(m.offered, offered[offered < len(s.valid)])


def some(rng: np.random.Generator) -> Groups:
    """One group is a multiple of the other; in a third of all cases they are equal."""
    wide_in, wide_out, group = (int(value) for value in rng.integers(1, (8, 8, 14)))
    multiple = group * int(rng.integers(2, 5))
    pair = [(group, group), (group, multiple), (multiple, group)][int(rng.integers(0, 3))]
    return Groups(2, wide_in, wide_out, *pair)


def test_groups(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    cases = [
        Groups(1, 4, 4, 10, 10),
        Groups(2, 4, 8, 10, 10),
        Groups(2, 8, 4, 10, 10),
        Groups(2, 3, 12, 21, 21),  # last beats of three slots
        Groups(1, 1, 5, 9, 9),  # last beats that are shorter by one, shifted; by more, and of two slots
        Groups(1, 2, 12, 16, 16),
        Groups(2, 1, 8, 21, 21),
        Groups(2, 2, 6, 5, 5),  # all beats of three slots, with a lane that is not real
        Groups(2, 4, 8, 9, 9),  # a step that the group fills to less than half
        Groups(2, 2, 8, 12, 12),
        Groups(2, 4, 6, 9, 9),
        Groups(2, 6, 4, 7, 7),
        Groups(2, 8, 1, 3, 3),
        Groups(2, 1, 8, 3, 3),
        Groups(2, 4, 4, 3, 27),
        Groups(2, 4, 4, 6, 12),  # groups in are no whole beats, groups out are
        Groups(2, 4, 5, 6, 30),
        Groups(2, 4, 4, 12, 3),
        Groups(2, 4, 6, 8, 24),
        Groups(2, 1, 4, 1, 9),
        *(some(rng) for _ in range(6)),
    ]
    completing_start = [case.unit_and_words(-(-5000 // lcm(case.in_group, case.out_group))) for case in cases]
    results = simulate([unit for unit, _ in completing_start], tmp_path)
    for case, (_, words), phases in zip(cases, completing_start, results, strict=True):
        for n, trace in enumerate(phases):
            m = trace["m"]
            assert m.holds_still()
            assert m.words == words[: len(m.words)], (case, n)
            assert len(m.words) >= 5, (case, n)
            case.check(trace)
        # If no side pauses, one side is always busy.
        s, m = phases[0]["s"], phases[0]["m"]
        first = m.accepted[0]
        assert np.all(s.ready) or np.all(m.valid[first:]), case
