"""Two tensors joined in float32 without a quantizer behind them: the operand of another joint.

A gate of a recurrent cell may be `quantize(W x + r * (R h))`: a product of two codes goes into a sum as it is. As integers
of one scale, or as ranks, it has too many values; as float32 it is what the file says.
"""

from __future__ import annotations

import numpy as np

from hlsgen.diagnostics import HlsgenError
from hlsgen.ir import FloatBinary, FloatKey, Value
from hlsgen.ir.evaluate import KEY_POS_INF
from hlsgen.ir.graph import FLOAT_BINARY_KINDS
from hlsgen.numerics.fixed import IntType
from hlsgen.passes.pending_value import PendingValue
from hlsgen.passes.quantization import type_behind


def joint_of(tensor: PendingValue, distinguishes_zeros: bool, refusal: HlsgenError) -> FloatBinary:
    """The layer that joins both tensors; what follows them is not in it. Raises `refusal` where there is none.

    Units may give 0.0 for -0.0, so `distinguishes_zeros` refuses.
    """
    both = tensor.branches
    if both is None or both.kind not in FLOAT_BINARY_KINDS or distinguishes_zeros:
        raise refusal
    sides = both.left, both.right
    if any(side.branches or type_behind(side.value, side.ops) != np.float32 for side in sides):
        raise refusal
    result = Value(tensor.value.shape, IntType(0, KEY_POS_INF), FloatKey())
    branches = tuple(both.left.ops), tuple(both.right.ops)
    sources = both.left.value, both.right.value
    return FloatBinary(both.name, both.kind, branches, sources, result, (both.left.index, both.right.index))
