"""Where that puts constants in constant places, as masks of attention do."""

from __future__ import annotations

import numpy as np

from hlsgen.ir.ops import Constant, Where
from hlsgen.numerics.fixed import Array


def constant_choice(op: Where) -> tuple[Array, Array] | None:
    """(where, what) if the operation only puts constants in places that are constant, else None."""
    condition, yes, no = op.ways
    if len(condition) != 1 or not isinstance(condition[0], Constant):
        return None
    for way, other, places in ((yes, no, condition[0].value), (no, yes, ~condition[0].value)):
        if not other and len(way) == 1 and isinstance(way[0], Constant) and way[0].value.dtype == np.float32:
            return places, way[0].value
    return None
