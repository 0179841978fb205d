"""Recognizes a Where that writes constants at constant positions, as attention masks do."""

from __future__ import annotations

import numpy as np

from hlsgen.ir.ops import Constant, Where
from hlsgen.numerics.fixed import Array


def constant_choice(op: Where) -> tuple[Array, Array] | None:
    """(mask of the positions that get constants, the constants), or None for any other Where."""
    condition, yes, no = op.ways
    if len(condition) != 1 or not isinstance(condition[0], Constant):
        return None
    mask = condition[0].value
    for replacing, passing, positions in ((yes, no, mask), (no, yes, ~mask)):
        if passing or len(replacing) != 1:
            continue
        constant = replacing[0]
        if isinstance(constant, Constant) and constant.value.dtype == np.float32:
            return positions, constant.value
    return None
