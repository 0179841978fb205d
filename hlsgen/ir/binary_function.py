"""A BinaryMap as a bundle of functions of two integers: one for each distinct set of constants."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from hlsgen.ir.encoding import Encoding
from hlsgen.ir.evaluate import apply, constants, decode, join, quantize, with_constants
from hlsgen.ir.graph import BinaryMap, FloatJoint
from hlsgen.ir.ops import BinaryKind, Elementwise, QuantizeLinear, Quantizer
from hlsgen.ir.step_function import distinct
from hlsgen.numerics.fixed import Array, IntType

T = TypeVar("T", bound=Elementwise | Encoding)
#: Least and greatest code of each element of the last axis.
Reach = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class BinaryFunction:
    """`sets` functions (code a, code b) -> code. All constants have shape (lead..., sets).

    `index` (elements,): which set the p-th element of the stream uses. `lo`, `hi` int64 (2, sets):
    reachable intervals of a and b.
    """

    name: str
    kind: BinaryKind
    sources: tuple[Encoding, Encoding]
    branches: tuple[tuple[Elementwise, ...], tuple[Elementwise, ...]]
    ops: tuple[Elementwise, ...]
    quantizer: Quantizer
    index: Array
    lo: Array
    hi: Array
    input_types: tuple[IntType, IntType]
    output_type: IntType

    @property
    def sets(self) -> int:
        return int(self.lo.shape[1])

    @property
    def pairs(self) -> int:
        """Pairs of codes of all sets."""
        first, second = (self.hi - self.lo + 1).astype(object)  # two times 32 bits are too many for int64
        return int((first * second).sum())

    def codes(self, side: int) -> Array:
        """int64 (codes, sets): all of one operand; behind the last one of a set, copies of it."""
        count = int((self.hi[side] - self.lo[side]).max()) + 1
        return np.asarray(np.minimum(self.lo[side] + np.arange(count)[:, None], self.hi[side]))

    def branch(self, side: int, codes: Array) -> Array:
        """int64 codes (..., sets) of one operand -> its values in front of the joint."""
        x = decode(self.sources[side], codes)
        for op in self.branches[side]:
            x = apply(op, x)
        return x

    def behind(self, x: Array, y: Array) -> Array:
        """Values (..., sets) of both operands -> int64 codes, by the model's own operations."""
        total = join(self.kind, x, y)
        for op in self.ops:
            total = apply(op, total)
        return quantize(self.quantizer, total)

    def evaluate(self, a: Array, b: Array) -> Array:
        """int64 codes (..., sets) of both operands -> int64 codes."""
        return self.behind(self.branch(0, a), self.branch(1, b))

    def take(self, columns: Array) -> BinaryFunction:
        """The functions of these sets."""

        def chosen(item: T) -> T:
            return with_constants(item, {name: value[..., columns] for name, value in constants(item).items()})

        first, second = (tuple(map(chosen, ops)) for ops in self.branches)
        return replace(
            self, sources=(chosen(self.sources[0]), chosen(self.sources[1])), branches=(first, second),
            ops=tuple(map(chosen, self.ops)), quantizer=chosen(self.quantizer),
            lo=self.lo[:, columns], hi=self.hi[:, columns],
        )  # fmt: skip


def of_floats(layer: FloatJoint) -> BinaryMap:
    """A joint of floats with a quantizer that counts for nothing."""
    one = np.ones((1,) * len(layer.result.shape), np.float32)
    sign = QuantizeLinear(one, np.zeros_like(one, np.int64), IntType(0, 1), "uint8")
    return BinaryMap(layer.name, layer.kind, layer.branches, (), sign, layer.sources, layer.result, layer.inputs)


def specialize(
    layer: BinaryMap, order: Array, reach: tuple[Reach | None, Reach | None] = (None, None)
) -> BinaryFunction:
    """The functions of a BinaryMap whose tensors arrive in that order.

    `reach`: reachable interval of each element of an operand's last axis, default the source's type.
    """
    types = layer.sources[0].type, layer.sources[1].type
    ends = []
    for side, type_ in enumerate(types):
        given = reach[side]
        ends += [np.asarray(type_.lo), np.asarray(type_.hi)] if given is None else list(given)
    left, right = layer.branches
    parts = [layer.sources[0].encoding, layer.sources[1].encoding, *left, *right, *layer.ops, layer.quantizer]
    items, numbers, index = distinct(parts, ends, layer.result.shape, order)
    middle = 2 + len(left) + len(right)
    return BinaryFunction(
        layer.name, layer.kind, tuple(items[:2]),  # type: ignore[arg-type]
        (tuple(items[2 : 2 + len(left)]), tuple(items[2 + len(left) : middle])),  # type: ignore[arg-type]
        tuple(items[middle:-1]), items[-1], index,  # type: ignore[arg-type]
        np.stack(numbers[::2]), np.stack(numbers[1::2]), types, layer.result.type,
    )  # fmt: skip
