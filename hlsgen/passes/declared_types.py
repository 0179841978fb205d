"""Checks if numbers still have an input's declared type after the steps that the host computes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hlsgen.ir import ArgMax, HostOp, Op, Reshape, Transpose
from hlsgen.ir.ops import Cast
from hlsgen.numerics.fixed import IntType


def keep_type(ops: Iterable[Op], type_: IntType, fraction: int, elements: int) -> bool:
    """True if the results of `ops` are numbers of `type_` with `fraction` fraction bits whenever the inputs are.

    `elements`: size of the input, at least as large as any index. False if that is not certain.
    """
    return all(_keeps_type(op, type_, fraction, elements) for op in ops)


def _keeps_type(op: Op, type_: IntType, fraction: int, elements: int) -> bool:
    match op:
        case Reshape() | Transpose():
            return True
        case ArgMax():
            return not fraction and type_.lo <= 0 and elements - 1 <= type_.hi
        case Cast(dtype):
            target = np.dtype(dtype)
            if target.kind == "f":
                return bool(max(type_.hi, -type_.lo) <= 2 ** np.finfo(target).nmant)
            return target.kind in "iu" and np.iinfo(target).min <= type_.lo and type_.hi <= np.iinfo(target).max
        case HostOp(_, _, selected) if selected is not None:
            codes = np.ldexp(np.array(selected, np.float64), fraction)
            return bool(((codes == np.round(codes)) & (codes >= type_.lo) & (codes <= type_.hi)).all())
        case _:
            return False
