"""Integers with the order of a tail's numbers, so that ArgMax compares integers instead of floats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlsgen.interpreter.host_steps import run_step
from hlsgen.ir import Encoding, HostOp, Shape, Step
from hlsgen.ir.evaluate import decode
from hlsgen.numerics.fixed import Array, IntType

#: Most numbers that are compared in a proof.
MAX_NUMBERS = 1 << 20
#: Bits of the fractions of keys that are tried in turn.
_FRACTIONS = (0, 2, 4, 8, 12, 16, 20)


@dataclass(frozen=True, eq=False)
class OrderKeys:
    """Key = code * factor + offset, int64; both broadcast with the tensor before ArgMax."""

    factor: Array
    offset: Array


def order_keys(encoding: Encoding, type_: IntType, steps: Sequence[Step], shape: Shape) -> OrderKeys | None:
    """Keys in the order of the numbers that `steps` make of codes of this type and shape, or None.

    The order is compared for all codes of each two elements along the last axis.
    """
    size = int(np.prod(shape)) * (type_.hi - type_.lo + 1)
    if size > MAX_NUMBERS or type_.hi == type_.lo or any(isinstance(step.op, HostOp) for step in steps):
        return None
    codes = np.arange(type_.lo, type_.hi + 1, dtype=np.int64)
    numbers = decode(encoding, np.broadcast_to(codes.reshape(-1, *(1,) * len(shape)), (len(codes), *shape)))
    with np.errstate(all="ignore"):
        for step in steps:
            numbers = run_step(step, numbers)
    if numbers.dtype.kind != "f" or not np.isfinite(numbers).all():
        return None
    rows = numbers.astype(np.float64).reshape(len(codes), -1, numbers.shape[-1])
    slope = (rows[-1] - rows[0]) / (type_.hi - type_.lo)
    if not (slope > 0).all():
        return None
    for bits in _FRACTIONS:
        factor = np.rint(slope / slope.min() * 2**bits).astype(np.int64)
        offset = np.rint((rows[0] / slope - type_.lo) * factor).astype(np.int64)
        keys = codes.reshape(-1, 1, 1) * factor + offset
        if all(_same_order(rows[:, n], keys[:, n]) for n in range(rows.shape[1])):
            own_shape = numbers.shape[1:]
            factor = factor.ravel()[:1] if (factor == factor[0, 0]).all() else factor
            return OrderKeys(factor.reshape(own_shape if factor.size > 1 else 1), offset.reshape(own_shape))
    return None


def _same_order(numbers: Array, keys: Array) -> bool:
    """True if each two keys compare as the two numbers do."""
    order = np.argsort(numbers, axis=None, kind="stable")
    return np.array_equal(np.sign(np.diff(numbers.ravel()[order])), np.sign(np.diff(keys.ravel()[order])))
