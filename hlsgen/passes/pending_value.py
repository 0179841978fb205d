"""Codes of a Graph under construction, and the pending operations on them until a quantizer ends them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hlsgen.ir import Affine, IntegerEncoding, Op, Value
from hlsgen.ir.ops import BinaryKind, Dequantize, Elementwise, Max, Min, Pair, QuantizeLinear, Requantize
from hlsgen.numerics.fixed import IntType

NamedOps = tuple[tuple[str, Elementwise], ...]


@dataclass(frozen=True, eq=False)
class PendingValue:
    """Codes of value `index` of the graph, decoded as `value`, and the operations that follow.

    If there are `branches`, the operations follow the combination of these; `index` is -1 and only the shape of `value`
    is used. `shared`: other steps use the codes as well.
    """

    index: int
    value: Value
    named_ops: NamedOps = ()
    branches: Branches | None = None
    shared: bool = False

    def then(self, name: str, op: Elementwise) -> PendingValue:
        """The same value with one more pending operation."""
        return replace(self, named_ops=(*self.named_ops, (name, op)))

    @property
    def ops(self) -> list[Elementwise]:
        return [op for _, op in self.named_ops]


@dataclass(frozen=True, eq=False)
class Branches:
    """Two tensors, without quantizers among their operations, and the operation that combines them."""

    name: str
    kind: BinaryKind
    left: PendingValue
    right: PendingValue


def bounded(op: Op, following: Sequence[Op]) -> tuple[Op, int]:
    """A quantizer merged with the integer bounds (of Clip, Relu) that follow it, and the number of these bounds."""
    for count, bound in enumerate(following):
        can_merge = isinstance(op, QuantizeLinear | Requantize) or (isinstance(op, Pair) and op.fixed is None)
        if not can_merge or not isinstance(bound, Max | Min):
            return op, count
        value = np.unique(bound.value)
        if value.dtype.kind not in "iu" or len(value) > 1:
            return op, count
        limit = max if isinstance(bound, Max) else min
        assert isinstance(op, QuantizeLinear | Requantize | Pair)
        op = replace(op, type=IntType(limit(op.type.lo, int(value[0])), limit(op.type.hi, int(value[0]))))
    return op, len(following)


def decoding_between(produced: Value, read: Value) -> list[Elementwise] | None:
    """The operations from values as the quantizer decodes its codes to values as they are read.

    Returns None if no such operations are known.
    """
    if produced.encoding is read.encoding:
        return []
    if isinstance(produced.encoding, IntegerEncoding) and isinstance(read.encoding, Affine):
        return [Dequantize(read.encoding.scale, read.encoding.zero_point.astype(np.int64))]
    return None


def dequantized_codes(value: Value, op: Elementwise) -> Affine | None:
    """The encoding of codes with the DequantizeLinear that follows them directly, or None if there is none.

    There is none for exact integers that wrap in the file's type.
    """
    if (
        not isinstance(op, Dequantize)
        or not isinstance(value.encoding, IntegerEncoding)
        or op.scale.dtype != np.float32
    ):
        return None
    limits = np.iinfo(value.encoding.dtype)
    if value.encoding.offset.any() or value.type.bits > 25:
        return None
    if value.type.lo < limits.min or value.type.hi > limits.max:
        return None
    return Affine(op.scale, op.zero_point.astype(np.float32))
