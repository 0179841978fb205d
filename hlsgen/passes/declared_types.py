"""Whether numbers still have an input's declared type after the steps that the host computes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hlsgen.ir import ArgMax, HostOp, Op, Reshape, Transpose
from hlsgen.ir.ops import Cast
from hlsgen.numerics.fixed import IntType


def holds(ops: Iterable[Op], type_: IntType, fraction: int, elements: int) -> bool:
    """Whether the results of `ops` are numbers of `type_` with `fraction` fraction bits, if the input's are.

    `elements`: of the input, at least as many as an index can reach. False where that is not certain.
    """
    return all(_holds(op, type_, fraction, elements) for op in ops)


def _holds(op: Op, type_: IntType, fraction: int, elements: int) -> bool:
    match op:
        case Reshape() | Transpose():
            return True
        case ArgMax():
            return not fraction and type_.lo <= 0 and elements - 1 <= type_.hi
        case Cast(dtype):
            kind = np.dtype(dtype)
            if kind.kind == "f":
                return bool(max(type_.hi, -type_.lo) <= 2 ** np.finfo(kind).nmant)
            return kind.kind in "iu" and np.iinfo(kind).min <= type_.lo and type_.hi <= np.iinfo(kind).max
        case HostOp(_, _, selected) if selected is not None:
            codes = np.ldexp(np.array(selected, np.float64), fraction)
            return bool(((codes == np.round(codes)) & (codes >= type_.lo) & (codes <= type_.hi)).all())
        case _:
            return False
