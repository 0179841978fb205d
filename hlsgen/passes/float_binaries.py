"""Float32 layers of two operands without a quantizer: operands of a further binary operation.

A gate of a recurrent cell may be `quantize(W x + r * (R h))`: a product of two codes enters a sum unquantized.
As integers of one scale, or as ranks, it has too many values; as float32 it is exactly the file's operation.
"""

from __future__ import annotations

import numpy as np

from hlsgen.diagnostics import HlsgenError
from hlsgen.ir import FloatBinary, FloatKey, Value
from hlsgen.ir.evaluate import KEY_POS_INF
from hlsgen.ir.graph import FLOAT_BINARY_KINDS
from hlsgen.numerics.fixed import IntType
from hlsgen.passes.pending_value import PendingValue
from hlsgen.passes.quantization import type_after


def float_binary(tensor: PendingValue, distinguishes_zeros: bool, refusal: HlsgenError) -> FloatBinary:
    """The layer that combines both branches of `tensor`, without the operations that follow.

    Raises `refusal` if there is no such layer. Hardware units may give 0.0 for -0.0, so a model with
    `distinguishes_zeros` is refused.
    """
    branches = tensor.branches
    if branches is None or branches.kind not in FLOAT_BINARY_KINDS or distinguishes_zeros:
        raise refusal
    sides = branches.left, branches.right
    if any(side.branches or type_after(side.value, side.ops) != np.float32 for side in sides):
        raise refusal
    result = Value(tensor.value.shape, IntType(0, KEY_POS_INF), FloatKey())
    branch_ops = tuple(branches.left.ops), tuple(branches.right.ops)
    sources = branches.left.value, branches.right.value
    return FloatBinary(
        branches.name, branches.kind, branch_ops, sources, result, (branches.left.index, branches.right.index)
    )
