"""Proves integer operations before float32 units: nothing wraps, and float32 holds every value exactly."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hlsgen.ir.ops import Add, Elementwise, Max, Min
from hlsgen.numerics.fixed import Array, IntType

#: All integers up to this one are exact in float32.
EXACT = 1 << 24


@dataclass(frozen=True, eq=False)
class IntegerRange:
    """Integers lo..hi, int64 (sets,), of a numpy type.

    The stream carries codes of type `codes`, to which `offset` is added; or float32 numbers if `codes` is None.
    """

    dtype: str
    lo: Array
    hi: Array
    offset: Array
    codes: IntType | None

    @property
    def fits(self) -> bool:
        """True if nothing wraps and float32 numbers are exact."""
        info = np.iinfo(self.dtype)
        inside = bool(self.lo.min() >= info.min and self.hi.max() <= info.max)
        return inside and (self.codes is not None or self.small)

    @property
    def small(self) -> bool:
        return bool(max(np.abs(self.lo).max(), np.abs(self.hi).max()) <= EXACT)

    def plus(self, value: Array) -> IntegerRange:
        offset = self.offset if self.codes is None else self.offset + value
        return replace(self, lo=self.lo + value, hi=self.hi + value, offset=offset)

    def after(self, op: Elementwise, value: Array) -> IntegerRange:
        """The range after Add, Max, Min or Mul of float32 numbers."""
        match op:
            case Add():
                return self.plus(value)
            case Max():
                return replace(self, lo=np.maximum(self.lo, value), hi=np.maximum(self.hi, value))
            case Min():
                return replace(self, lo=np.minimum(self.lo, value), hi=np.minimum(self.hi, value))
            case _:
                ends = np.sort([self.lo * value, self.hi * value], axis=0)
                return replace(self, lo=ends[0], hi=ends[1])
