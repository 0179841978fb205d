"""Moving reshapes and transposes in front of elementwise operations."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from hlsgen.fixed import Array
from hlsgen.ir import (
    Decode,
    Reshape,
    Shape,
    Transpose,
)
from hlsgen.operations import (
    Elementwise,
)
from hlsgen.semantics import constants, lead_axes, with_constants

T = TypeVar("T", bound=Elementwise | Decode)


def relabel(item: T, op: Reshape | Transpose, before: Shape, after: Shape) -> T:
    """`item`, which worked on tensors of shape `before`, for tensors that `op` has rearranged.

    Constants that are the same for all elements stay small.
    """
    lead = lead_axes(item)
    new = {name: _array(value, op, before, after, lead) for name, value in constants(item).items()}
    return with_constants(item, new)


def _array(value: Array, op: Reshape | Transpose, before: Shape, after: Shape, lead: int) -> Array:
    front = value.shape[:lead]
    if all(size == 1 for size in value.shape[lead:]):
        return value.reshape(front + (1,) * len(after))
    # Decoding constants may have a lower rank than the tensor.
    own = value.reshape(front + (1,) * (len(before) - value.ndim + lead) + value.shape[lead:])
    if isinstance(op, Transpose):
        return np.asarray(own.transpose([*range(lead), *(lead + p for p in op.perm)]))
    return np.broadcast_to(own, front + before).reshape(front + after)
