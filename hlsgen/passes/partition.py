"""Divides the steps of a model into host preprocessing (heads), hardware (core), and host postprocessing (tails)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from hlsgen import ir
from hlsgen.ir.ops import FLOATS, QUANTIZERS
from hlsgen.passes.pending_value import bounded

LINEAR = (ir.MatMul, ir.MatMulInteger, ir.Conv, ir.ConvInteger)

IMAGES = (ir.Pool, ir.Repeat, ir.Slice, ir.Pad)

HARDWARE = (
    *QUANTIZERS,
    *LINEAR,
    *IMAGES,
    ir.Concat,
    ir.Binary,
    ir.Pack,
    ir.BatchMatMul,
    ir.BatchMatMulInteger,
    ir.Softmax,
    ir.QLinearSoftmax,
    ir.Normalize,
    ir.RowStep,
    ir.Previous,
    ir.State,
)

#: Steps that the host can compute as a chain.
_ON_HOST = (*FLOATS, *QUANTIZERS, ir.Reshape, ir.Transpose, ir.ArgMax, ir.HostOp)


@dataclass(frozen=True)
class Entry:
    """An input, value `value` of the model. `head`: the steps before the hardware. `first`: the hardware's first step.

    `first` is -1 if the input branches before, or if only an output uses it. An input that is `divided` has an Entry
    for each of its first quantizers.
    """

    value: int
    head: tuple[int, ...]
    first: int
    source: int = 0
    divided: bool = False

    @property
    def end(self) -> int:
        """The value after the head."""
        return self.head[-1] + 1 if self.head else self.value

    def on_host(self, steps: tuple[ir.Step, ...]) -> tuple[int, ...]:
        """The steps of the head up to the last one that only the host can compute."""
        last = max((n for n, i in enumerate(self.head) if isinstance(steps[i].op, ir.HostOp | ir.ArgMax)), default=-1)
        return self.head[: last + 1]


@dataclass(frozen=True)
class End:
    """An output: the value of the model with which the hardware ends, and the steps after it."""

    value: int
    tail: tuple[int, ...]


class Partition:
    """Heads, core and tails of the steps: an entry for each input, an end for each output.

    `divided`: numbers of inputs that have an entry for each of their first quantizers (`first_quantizers`).
    """

    def __init__(self, steps: tuple[ir.Step, ...], divided: Collection[int] = ()) -> None:
        users: list[list[int]] = [[] for _ in range(len(steps) + 1)]
        for i, step in enumerate(steps):
            for j in set(step.inputs):
                users[j].append(i)
        self.users = users
        starts = [i + 1 for i, step in enumerate(steps) if isinstance(step.op, ir.InputPart)] or [0]
        self.starts = starts
        self.entries = tuple(
            entry
            for number, value in enumerate(starts)
            for entry in (
                self.first_quantizers(steps, number) if number in divided else [self._entry(steps, value, number)]
            )
        )
        several_outputs = isinstance(steps[-1].op, ir.OutputParts)
        outputs = steps[-1].inputs if several_outputs else (len(steps),)
        self.ends = tuple(self._end_before(steps, value) for value in outputs)
        needed = {end.value for end in self.ends}
        for i in reversed(range(len(steps))):
            if i + 1 in needed:
                needed.update(steps[i].inputs)
        heads = {i for entry in self.entries for i in entry.head}
        self.core = [i for i in range(len(steps)) if i + 1 in needed - {0} and i not in heads and i + 1 not in starts]
        self._in_core = frozenset(self.core)

    def first_quantizers(self, steps: tuple[ir.Step, ...], source: int) -> list[Entry]:
        """An entry for each first quantizer of an input, on paths that the host can compute.

        Empty if a path ends elsewhere.
        """
        entries, paths = list[Entry](), [(self.starts[source], tuple[int, ...]())]
        while paths:
            value, head = paths.pop()
            for i in reversed(self.users[value]):
                op = steps[i].op
                if isinstance(op, QUANTIZERS):
                    entries.append(Entry(self.starts[source], head, i, source, True))
                elif isinstance(op, (*FLOATS, ir.Reshape, ir.Transpose, ir.HostOp)):
                    paths.append((i + 1, (*head, i)))
                else:
                    return []
            if not self.users[value]:
                return []
        return sorted(entries, key=lambda entry: entry.first)

    def _entry(self, steps: tuple[ir.Step, ...], value: int, source: int) -> Entry:
        head, users, start = list[int](), self.users, value
        while len(users[value]) == 1 and not isinstance(steps[users[value][0]].op, (*HARDWARE, ir.OutputParts)):
            head.append(users[value][0])
            value = users[value][0] + 1
        first = users[value][0] if len(users[value]) == 1 else -1
        return Entry(start, tuple(head), -1 if isinstance(steps[first].op, ir.OutputParts) else first, source)

    def first_multiplication(self, entry: Entry, steps: tuple[ir.Step, ...]) -> int:
        """The first step that multiplies an input directly, possibly one of several users of the input.

        -1 if none does.
        """
        if entry.divided:
            return -1
        values = [entry.end]
        for value in values:
            for i in self.users[value]:
                if isinstance(steps[i].op, (*LINEAR, ir.BatchMatMul, ir.BatchMatMulInteger)):
                    return i
                if isinstance(steps[i].op, ir.Reshape | ir.Transpose):
                    values.append(i + 1)
        return -1

    def is_shared(self, value: int) -> bool:
        """True if several steps use a value, or an output and a layer."""
        users = self.users[value]
        consumers = sum(i in self._in_core for i in users) + sum(end.value == value for end in self.ends)
        return max(len(users), consumers) > 1

    def _end_before(self, steps: tuple[ir.Step, ...], output: int) -> End:
        """The end of the hardware before an output."""
        starts = {entry.end for entry in self.entries}
        value = self._last_hardware_value(steps, output, starts)
        tail = self._steps_between(steps, value, output)
        while value not in starts and not isinstance(steps[value - 1].op, HARDWARE):
            tail.insert(0, value - 1)
            value = steps[value - 1].inputs[0]
        if value in starts:
            return End(value, tuple(tail))
        leading_views = next(
            (n for n, i in enumerate(tail) if not isinstance(steps[i].op, ir.Reshape | ir.Transpose)), 0
        )
        _, bounds = bounded(steps[value - 1].op, [steps[i].op for i in tail[leading_views:]])
        host_tail = tail[leading_views + bounds if bounds else 0 :]
        return End(self._value_before(steps, host_tail, output), tuple(host_tail))

    @staticmethod
    def _value_before(steps: tuple[ir.Step, ...], tail: list[int], output: int) -> int:
        """The value before a tail of an output."""
        return steps[tail[0]].inputs[0] if tail else output

    @staticmethod
    def _steps_between(steps: tuple[ir.Step, ...], value: int, output: int) -> list[int]:
        """The steps from a value to a later output, which form a chain."""
        chain: list[int] = []
        while output != value:
            chain.insert(0, output - 1)
            output = steps[output - 1].inputs[0]
        return chain

    def _last_hardware_value(self, steps: tuple[ir.Step, ...], output: int, starts: set[int]) -> int:
        """The output, or the value before all layers that only the host computes.

        All steps after that value are the host's, including quantizers.
        """
        at = end = output
        while at not in starts and at and isinstance(steps[at - 1].op, _ON_HOST):
            value = steps[at - 1].inputs[0]
            if isinstance(steps[at - 1].op, ir.HostOp) and any(isinstance(s.op, HARDWARE) for s in steps[: at - 1]):
                end = value
            if len(self.users[value]) > 1:
                break
            at = value
        return end
