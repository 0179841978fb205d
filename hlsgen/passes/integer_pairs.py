"""Sums, differences and products of two tensors of integers, as exact integers.

Integers of a file wrap. For a sum, a difference or a product this makes no difference: hardware computes the exact
result, and the codes are decoded in the file's type, which wraps.
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

#: Largest number of bits of a number that is not rescaled, the same as for an accumulator.
MAX_BITS = 48
#: Largest number of bits of two integers whose maximum or minimum hardware computes.
_MAX_COMPARED_BITS = 18


Add = Callable[[BinaryMap], PendingValue]


def exact_integers(branches: Branches, add: Add, result_type: IntType | None = None) -> PendingValue | None:
    """The exact result of two tensors of integers, or None for other tensors or operations. Raises HG033.

    `add` adds a layer; `result_type` is a type that holds every result, if the caller knows a narrower one.
    """
    operands = _integer_dtype(branches.left), _integer_dtype(branches.right)
    if operands[0] is None or operands[1] is None or operands[0] != operands[1]:
        return None
    bounds = [(side.value.type.lo, side.value.type.hi) for side in (branches.left, branches.right)]
    match branches.kind:
        case BinaryKind.ADD:
            corners = [a + b for a, b in product(*bounds)]
        case BinaryKind.SUB:
            corners = [a - b for a, b in product(*bounds)]
        case BinaryKind.MUL:
            corners = [a * b for a, b in product(*bounds)]
        case _:
            return None
    type_ = result_type or IntType(min(corners), max(corners))
    if type_.bits > MAX_BITS:
        raise too_wide(branches.name, type_.bits)
    shape = branches.left.value.shape
    zero = np.zeros((1,) * len(shape), np.int64)
    sources = tuple(
        replace(side.value, encoding=IntegerEncoding("int64", zero)) for side in (branches.left, branches.right)
    )
    exact = QuantizeLinear(np.ones(zero.shape, np.float32), zero, type_, "int64")
    result = Value(shape, type_, IntegerEncoding("int64", zero))
    inputs = branches.left.index, branches.right.index
    layer = BinaryMap(branches.name, branches.kind, ((), ()), (), exact, (sources[0], sources[1]), result, inputs)
    total = add(layer)
    return replace(total, value=replace(total.value, encoding=IntegerEncoding(operands[0], zero)))


def is_byte_sum(branches: Branches) -> bool:
    """True for a sum or difference of bytes.

    Its code in the file's type keeps the order of the numbers, and is a function with few steps.
    """
    dtypes = {_integer_dtype(side) for side in (branches.left, branches.right)}
    return branches.kind in (BinaryKind.ADD, BinaryKind.SUB) and dtypes <= {"int8", "uint8"}


def larger_integer(
    branches: Branches, add: Add, to_codes: Callable[[PendingValue], PendingValue]
) -> PendingValue | None:
    """The larger or smaller of two integers, a + max(b - a, 0) or a + min(b - a, 0), or None for other tensors.

    `add` adds a layer; `to_codes` turns a tensor with pending operations into codes. Raises HG033.
    """
    dtype = _integer_dtype(branches.left)
    if (
        dtype is None
        or dtype != _integer_dtype(branches.right)
        or branches.kind not in (BinaryKind.MAX, BinaryKind.MIN)
    ):
        return None
    if not all(_represents(dtype, side.value.type) for side in (branches.left, branches.right)):
        return None  # a sum that wraps in the file: its codes do not have the order of the numbers
    operand_a, operand_b = (
        replace(side, value=_decode_as(side.value, "int64"), named_ops=()) for side in (branches.left, branches.right)
    )
    bits = max(operand_a.value.type.bits, operand_b.value.type.bits)
    if bits > _MAX_COMPARED_BITS:
        raise fail(
            "HG033",
            branches.name,
            f"the {branches.kind.value} of two integers of {bits} bits.",
            f"At most {_MAX_COMPARED_BITS} bits are supported: declare narrower inputs, or quantize them.",
        )
    difference = exact_integers(Branches(f"{branches.name} (difference)", BinaryKind.SUB, operand_b, operand_a), add)
    assert difference is not None
    zero = np.zeros((1,) * len(operand_a.value.shape), np.int64)
    bound_at_zero = Max(zero) if branches.kind is BinaryKind.MAX else Min(zero)
    bounded = to_codes(difference.then(branches.name, bound_at_zero))
    pick = max if branches.kind is BinaryKind.MAX else min
    result_type = IntType(
        *(pick(getattr(side.value.type, end) for side in (operand_a, operand_b)) for end in ("lo", "hi"))
    )
    total = exact_integers(Branches(branches.name, BinaryKind.ADD, operand_a, bounded), add, result_type)
    assert total is not None
    return replace(total, value=_decode_as(total.value, dtype))


def _decode_as(value: Value, dtype: str) -> Value:
    assert isinstance(value.encoding, IntegerEncoding)
    return replace(value, encoding=replace(value.encoding, dtype=dtype))


def _integer_dtype(tensor: PendingValue) -> str | None:
    """The dtype of a tensor whose codes are its integers, or None for others.

    Casts that do not change the integers may follow.
    """
    encoding = tensor.value.encoding
    if tensor.branches or not isinstance(encoding, IntegerEncoding) or encoding.offset.any():
        return None
    dtypes = [encoding.dtype]
    for op in tensor.ops:
        if not isinstance(op, Cast) or np.dtype(op.dtype).kind not in "iu":
            return None
        dtypes.append(op.dtype)
    if len(dtypes) > 1 and not all(_represents(dtype, tensor.value.type) for dtype in dtypes):
        return None
    return dtypes[-1]


def _represents(dtype: str, type_: IntType) -> bool:
    info = np.iinfo(dtype)
    return int(info.min) <= type_.lo and type_.hi <= int(info.max)
