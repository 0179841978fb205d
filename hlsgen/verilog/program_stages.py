"""Registers in a program: the cycle in which each result is computed, by estimated delays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from hlsgen.ir import programs
from hlsgen.numerics.fixed import IntType

# Delays in picoseconds, approximately the ones of Xilinx 7 series.
#: A register from clock to output, with the setup of the next register; a net and a LUT; a gate in a shared LUT.
_REGISTER, _LUT, _GATE = 500, 1120, 400
#: A sum: its net, LUTs and ends of the carry chain, and the carry chain for each bit.
_SUM, _CARRY = 1330, 30
#: Picoseconds of a stage for each requested adder in series.
_STAGE = 2750
#: Stages are as short as they can be, to so many picoseconds.
_STEP = 20
#: Inputs of the largest lookup table of one LUT level, and of two levels with the multiplexers of a slice.
_ONE_LEVEL, _SLICE, _TWO_LEVELS = 6, 8, 10


@dataclass(frozen=True)
class StagedProgram:
    """A program with registers.

    computed: cycle in which a result is computed, -1 if it is constant or unused.
    needed: the last cycle in which it is used. latency: cycles in all.
    """

    program: programs.Program
    intervals: tuple[IntType, ...]
    computed: tuple[int, ...]
    needed: tuple[int, ...]
    latency: int

    @property
    def registers(self) -> int:
        """Bits of all registers."""
        spans = zip(self.intervals, self.computed, self.needed, strict=True)
        return sum(t.bits * max(0, last - first) for t, first, last in spans if t.lo < t.hi)


@lru_cache(maxsize=64)
def staged(program: programs.Program, adders_per_stage: float) -> StagedProgram:
    """The program with the fewest stages of this length, and then with the shortest stages of this number."""
    intervals = programs.intervals_of(program)
    live = _live(program, intervals)
    delays = {n: _delay(program.operations[n], intervals[n], intervals) for n in sorted(live)}
    longest = round(_STAGE * adders_per_stage)
    stages = _stages(program, delays, longest)
    shortest = 0
    while longest - shortest > _STEP:
        middle = (longest + shortest) // 2
        trial = _stages(program, delays, middle)
        if max(trial) > max(stages):
            shortest = middle
        else:
            longest, stages = middle, trial
    latency = max((stages[n] for n in live.intersection(program.outputs)), default=0) + 1
    _delay_inverters(program, intervals, live, stages)
    needed = list(stages)
    for n in live:
        for k in programs.sources_of(program.operations[n]):
            if k in live:
                needed[k] = max(needed[k], stages[n])
    for n in live.intersection(program.outputs):
        needed[n] = latency
    return StagedProgram(program, tuple(intervals), tuple(stages), tuple(needed), latency)


def _stages(program: programs.Program, delays: dict[int, int], longest: int) -> list[int]:
    """The stage of each result, as early as stages of this length permit; -1 for results without a delay.

    A longer operation has a stage for itself.
    """
    stages, arrivals = [-1] * len(program.operations), [0] * len(program.operations)
    for n, delay in delays.items():
        used = [k for k in programs.sources_of(program.operations[n]) if stages[k] >= 0]
        stage = max((stages[k] for k in used), default=0)
        arrival = max((arrivals[k] for k in used if stages[k] == stage), default=_REGISTER)
        if arrival + delay > longest and arrival > _REGISTER:
            stage, arrival = stage + 1, _REGISTER
        stages[n], arrivals[n] = stage, arrival + delay
    return stages


def _delay_inverters(program: programs.Program, intervals: list[IntType], live: set[int], stages: list[int]) -> None:
    """Move inverters to the first stage that uses them, where they are parts of sums."""
    first_use = {n: stages[n] for n in program.outputs}
    for n in sorted(live, reverse=True):
        operation = program.operations[n]
        if programs.inverted_bits(operation, intervals[n], intervals):
            stages[n] = first_use[n]
        for k in programs.sources_of(operation):
            first_use[k] = min(first_use.get(k, stages[n]), stages[n])


def _live(program: programs.Program, intervals: list[IntType]) -> set[int]:
    """The results that outputs depend on; constants are not computed."""
    changing = [interval.lo < interval.hi for interval in intervals]
    live = {n for n in program.outputs if changing[n]}
    for n in reversed(range(len(intervals))):
        if n in live:
            live.update(k for k in programs.sources_of(program.operations[n]) if changing[k])
    return live


def _delay(operation: programs.Operation, interval: IntType, intervals: list[IntType]) -> int:
    """Picoseconds from the operands to the result."""
    match operation:
        case _ if interval.lo == interval.hi:
            return 0
        case programs.Wrap(source, _, _, bounded):
            return _GATE if bounded and intervals[source].lo < 0 else 0
        case programs.Total():
            is_inverted = programs.inverted_bits(operation, interval, intervals) is not None
            return 0 if is_inverted else _SUM + _CARRY * interval.bits
        case programs.Choose(condition, threshold):
            compares = threshold and threshold != 1 << (intervals[condition].bits - 1)
            return _LUT + (_SUM if compares else 0)
        case programs.Bitwise():
            return _LUT
        case programs.Table(source):
            bits = intervals[source].bits
            if bits <= _ONE_LEVEL:
                return _LUT
            return (
                _LUT + _GATE * (bits - _ONE_LEVEL) if bits <= _SLICE else 2 * _LUT + _GATE * max(0, bits - _TWO_LEVELS)
            )
        case programs.Product(a, b):
            levels = (min(intervals[a].bits, intervals[b].bits) - 1).bit_length()
            return _SUM * max(1, levels) + _CARRY * interval.bits
        case _:
            return 0
