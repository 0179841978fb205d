"""Patterns of steps: walks back from a step to those before it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hlsgen.frontend.node_context import Origin
from hlsgen.ir import Op, Pool, Reshape, Shape, Step, Transpose
from hlsgen.ir.ops import Dequantize
from hlsgen.ir.window import Reduction
from hlsgen.numerics.fixed import Array

#: (name, operation, shape of its result), each working on the result of the one before.
NamedOps = list[tuple[str, Op, Shape]]


@dataclass(frozen=True)
class Replacement:
    """What replaces the steps that end with a QuantizeLinear.

    inputs  the values that it takes
    ops     its operations; the first takes all inputs
    moved   what each input goes through before; empty if nothing
    """

    inputs: tuple[int, ...]
    ops: NamedOps
    moved: tuple[NamedOps, ...] = ()


class StepGraph:
    """Steps with the number of users of each value, and with the origins of steps by index."""

    def __init__(self, steps: Sequence[Step], origins: Mapping[int, Origin]) -> None:
        self.steps, self.origins = steps, origins
        self.users = [0] * (len(steps) + 1)
        for step in steps:
            for j in step.inputs:
                self.users[j] += 1

    def before(self, i: int) -> int:
        """The step before step i if that is its only user, else -1."""
        inputs = self.steps[i].inputs
        return inputs[0] - 1 if len(inputs) == 1 and inputs[0] and self.users[inputs[0]] == 1 else -1

    def back(self, value: int, passing: Callable[[Op], bool]) -> tuple[int, list[Step]]:
        """The value behind which only steps that `passing` accepts lead to `value`, each one's only user the next;
        and these steps in order."""
        steps: list[Step] = []
        while value and self.users[value] == 1 and passing(self.steps[value - 1].op):
            steps.insert(0, self.steps[value - 1])
            value = self.steps[value - 1].inputs[0]
        return value, steps

    def dequantized(self, value: int) -> int:
        """The step of a DequantizeLinear of one scale that gives the value (others may use it), else -1."""
        op = self.steps[value - 1].op if value else None
        return value - 1 if isinstance(op, Dequantize) and plain(op.scale, op.zero_point) else -1


def named(steps: Sequence[Step]) -> NamedOps:
    return [(step.name, step.op, step.shape) for step in steps]


def plain(*parts: Array) -> bool:
    """One value for the whole tensor, scales in float32."""
    return all(part.size == 1 and part.dtype.name in ("float32", "int64") for part in parts)


def relabels(op: Op) -> bool:
    return isinstance(op, Reshape | Transpose)


def keeps_order(op: Op) -> bool:
    """Whether a QuantizeLinear may change places with the operation."""
    return relabels(op) or (isinstance(op, Pool) and op.kind is Reduction.MAX)
