"""The integer functions of two codes that a BinaryMap computes, one for each distinct set of constants."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from hlsgen.ir.encoding import Encoding
from hlsgen.ir.evaluate import apply, apply_binary, constants, decode, quantize, with_constants
from hlsgen.ir.graph import BinaryMap, FloatBinary
from hlsgen.ir.ops import BinaryKind, Elementwise, QuantizeLinear, Quantizer
from hlsgen.ir.step_function import distinct_constants
from hlsgen.numerics.fixed import Array, IntType

T = TypeVar("T", bound=Elementwise | Encoding)
#: Least and greatest reachable code of each element of the last axis.
Reach = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class BinaryFunction:
    """`sets` functions (code a, code b) -> code, one for each set of constants.

    All constants have shape (lead..., sets).
    `index` (elements,): the set that element p of the stream uses.
    `lo`, `hi` int64 (2, sets): reachable intervals of a and b.
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
        """Number of code pairs, summed over all sets."""
        # A product of two 32-bit counts can exceed int64.
        count_a, count_b = (self.hi - self.lo + 1).astype(object)
        return int((count_a * count_b).sum())

    def codes(self, side: int) -> Array:
        """All codes of one operand, int64 (codes, sets).

        Sets with fewer codes repeat their last one at the end.
        """
        count = int((self.hi[side] - self.lo[side]).max()) + 1
        return np.asarray(np.minimum(self.lo[side] + np.arange(count)[:, None], self.hi[side]))

    def branch(self, side: int, codes: Array) -> Array:
        """Decode codes (..., sets) of one operand and apply the operations of its branch."""
        x = decode(self.sources[side], codes)
        for op in self.branches[side]:
            x = apply(op, x)
        return x

    def combine(self, x: Array, y: Array) -> Array:
        """Combine the branch values (..., sets) of both operands and quantize them to int64 codes.

        Uses the model's own operations.
        """
        combined = apply_binary(self.kind, x, y)
        for op in self.ops:
            combined = apply(op, combined)
        return quantize(self.quantizer, combined)

    def evaluate(self, a: Array, b: Array) -> Array:
        """int64 codes (..., sets) of both operands -> int64 codes."""
        return self.combine(self.branch(0, a), self.branch(1, b))

    def take(self, columns: Array) -> BinaryFunction:
        """The functions of the sets numbered `columns`."""

        def select_sets(item: T) -> T:
            return with_constants(item, {name: value[..., columns] for name, value in constants(item).items()})

        branch_a, branch_b = (tuple(map(select_sets, ops)) for ops in self.branches)
        return replace(
            self,
            sources=(select_sets(self.sources[0]), select_sets(self.sources[1])),
            branches=(branch_a, branch_b),
            ops=tuple(map(select_sets, self.ops)),
            quantizer=select_sets(self.quantizer),
            lo=self.lo[:, columns],
            hi=self.hi[:, columns],
        )


def with_placeholder_quantizer(layer: FloatBinary) -> BinaryMap:
    """The float layer as a BinaryMap; its quantizer only fills the field and has no meaning."""
    unit_scale = np.ones((1,) * len(layer.result.shape), np.float32)
    placeholder = QuantizeLinear(unit_scale, np.zeros_like(unit_scale, np.int64), IntType(0, 1), "uint8")
    return BinaryMap(layer.name, layer.kind, layer.branches, (), placeholder, layer.sources, layer.result, layer.inputs)


def specialize(
    layer: BinaryMap, order: Array, reach: tuple[Reach | None, Reach | None] = (None, None)
) -> BinaryFunction:
    """Split a BinaryMap into its distinct functions, for tensors streamed in `order`.

    `reach`: reachable interval of each element of an operand's last axis; default: the interval of the source's type.
    """
    types = layer.sources[0].type, layer.sources[1].type
    bounds = []
    for side, type_ in enumerate(types):
        interval = reach[side]
        bounds += list(interval) if interval is not None else [np.asarray(type_.lo), np.asarray(type_.hi)]
    branch_a, branch_b = layer.branches
    operations = [
        layer.sources[0].encoding,
        layer.sources[1].encoding,
        *branch_a,
        *branch_b,
        *layer.ops,
        layer.quantizer,
    ]
    specialized, set_bounds, index = distinct_constants(operations, bounds, layer.result.shape, order)
    end_of_a = 2 + len(branch_a)
    end_of_b = end_of_a + len(branch_b)
    return BinaryFunction(
        layer.name,
        layer.kind,
        sources=tuple(specialized[:2]),  # type: ignore[arg-type]
        branches=(tuple(specialized[2:end_of_a]), tuple(specialized[end_of_a:end_of_b])),  # type: ignore[arg-type]
        ops=tuple(specialized[end_of_b:-1]),  # type: ignore[arg-type]
        quantizer=specialized[-1],  # type: ignore[arg-type]
        index=index,
        lo=np.stack(set_bounds[::2]),
        hi=np.stack(set_bounds[1::2]),
        input_types=types,
        output_type=layer.result.type,
    )
