"""Sums, differences and products of two tensors of integers, as the integers that they are in hardware.

Integers of a file wrap. Where they do makes no difference to a sum, a difference or a product: hardware has the exact
one, and the codes are read in the file's type, which wraps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.ir import BinaryMap, IntegerEncoding, Value
from hlsgen.ir.ops import BinaryKind, Cast, Max, Min, QuantizeLinear
from hlsgen.numerics.fixed import IntType
from hlsgen.passes.pending_value import Branches, PendingValue
from hlsgen.passes.quantization import too_wide

#: Most bits of a number that no layer rescales any more, as of an accumulator.
MOST_BITS = 48
#: Most bits of two integers of which hardware gives the larger one.
_MOST_COMPARED = 18


Add = Callable[[BinaryMap], PendingValue]


def exact_whole(both: Branches, add: Add, held: IntType | None = None) -> PendingValue | None:
    """What two tensors of integers are together; None if they are no such tensors. Raises HG033.

    `add` makes a layer; `held` holds every result.
    """
    operands = _operand(both.left), _operand(both.right)
    if operands[0] is None or operands[1] is None or operands[0] != operands[1]:
        return None
    ends = [(side.value.type.lo, side.value.type.hi) for side in (both.left, both.right)]
    match both.kind:
        case BinaryKind.ADD:
            found = [a + b for a, b in product(*ends)]
        case BinaryKind.SUB:
            found = [a - b for a, b in product(*ends)]
        case BinaryKind.MUL:
            found = [a * b for a, b in product(*ends)]
        case _:
            return None
    type_ = held or IntType(min(found), max(found))
    if type_.bits > MOST_BITS:
        raise too_wide(both.name, type_.bits)
    shape = both.left.value.shape
    zero = np.zeros((1,) * len(shape), np.int64)
    sources = tuple(replace(side.value, encoding=IntegerEncoding("int64", zero)) for side in (both.left, both.right))
    exact = QuantizeLinear(np.ones(zero.shape, np.float32), zero, type_, "int64")
    result = Value(shape, type_, IntegerEncoding("int64", zero))
    inputs = both.left.index, both.right.index
    made = add(BinaryMap(both.name, both.kind, ((), ()), (), exact, (sources[0], sources[1]), result, inputs))
    return replace(made, value=replace(made.value, encoding=IntegerEncoding(operands[0], zero)))


def steps_are_few(both: Branches) -> bool:
    """Whether the code in the file's type, which keeps the order of the numbers, is a function of few steps: a sum of bytes."""
    kinds = {_operand(side) for side in (both.left, both.right)}
    return both.kind in (BinaryKind.ADD, BinaryKind.SUB) and kinds <= {"int8", "uint8"}


def larger(both: Branches, add: Add, to_codes: Callable[[PendingValue], PendingValue]) -> PendingValue | None:
    """The larger or smaller of two integers, a + max(b - a, 0) or a + min(b - a, 0); None if they are no integers.

    `add` makes a layer, `to_codes` one of what follows codes. Raises HG033.
    """
    kind = _operand(both.left)
    if kind is None or kind != _operand(both.right) or both.kind not in (BinaryKind.MAX, BinaryKind.MIN):
        return None
    if not all(_holds(kind, side.value.type) for side in (both.left, both.right)):
        return None  # a sum that wraps in the file: which one is larger, its codes do not tell
    left, right = (replace(side, value=_read_as(side.value, "int64"), named_ops=()) for side in (both.left, both.right))
    bits = max(left.value.type.bits, right.value.type.bits)
    if bits > _MOST_COMPARED:
        raise fail(
            "HG033", both.name, f"the {both.kind.value} of two integers of {bits} bits.",
            f"At most {_MOST_COMPARED} bits are supported: declare narrower inputs, or quantize them.",
        )  # fmt: skip
    apart = exact_whole(Branches(f"{both.name} (difference)", BinaryKind.SUB, right, left), add)
    assert apart is not None
    zero = np.zeros((1,) * len(left.value.shape), np.int64)
    more = Max(zero) if both.kind is BinaryKind.MAX else Min(zero)
    rest = to_codes(apart.then(both.name, more))
    pick = max if both.kind is BinaryKind.MAX else min
    held = IntType(*(pick(getattr(side.value.type, end) for side in (left, right)) for end in ("lo", "hi")))
    total = exact_whole(Branches(both.name, BinaryKind.ADD, left, rest), add, held)
    assert total is not None
    return replace(total, value=_read_as(total.value, kind))


def _read_as(value: Value, dtype: str) -> Value:
    assert isinstance(value.encoding, IntegerEncoding)
    return replace(value, encoding=replace(value.encoding, dtype=dtype))


def _operand(tensor: PendingValue) -> str | None:
    """The type of a tensor whose codes are its integers, also behind Casts that change none of them."""
    meaning = tensor.value.encoding
    if tensor.branches or not isinstance(meaning, IntegerEncoding) or meaning.offset.any():
        return None
    kinds = [meaning.dtype]
    for op in tensor.ops:
        if not isinstance(op, Cast) or np.dtype(op.dtype).kind not in "iu":
            return None
        kinds.append(op.dtype)
    if len(kinds) > 1 and not all(_holds(kind, tensor.value.type) for kind in kinds):
        return None
    return kinds[-1]


def _holds(kind: str, type_: IntType) -> bool:
    info = np.iinfo(kind)
    return int(info.min) <= type_.lo and type_.hi <= int(info.max)
