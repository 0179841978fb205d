"""A join plan: how the codes of two streams become one integer t, and the function of t that follows.

Example: factors (2, 1) and a table with thresholds 3 and 6 describe t = 2 * a + b. The code counts the thresholds that
t reaches. The codes a = 1 and b = 2 give t = 4 and the code 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen.ir.binary_function import BinaryFunction
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize import multiplier_cost
from hlsgen.rescale.realize.table import Table
from hlsgen.rescale.realize.table import cost as table_cost
from hlsgen.rescale.threshold_table import ThresholdTable

#: The function after the join: its steps, the model's own operations on t, or a lookup table of all t.
Function = ThresholdTable | StepFunction | Table


@dataclass(frozen=True, eq=False)
class JoinPlan:
    """Parameters of a module hg_join_*, and the function that follows it.

    A stream with a lookup table in `tables` goes through it first. `operands` are the types that then enter the join.
    The join computes t = a * factors[0] + b * factors[1], or, if `factors` is None, (a - zeros[0]) * (b - zeros[1]). If
    `packed`, t has the bits of a in its low bits and the bits of b above them. `type` holds every t.
    """

    factors: tuple[int, int] | None
    zeros: tuple[int, int]
    packed: bool
    tables: tuple[Table | None, Table | None]
    operands: tuple[IntType, IntType]
    type: IntType
    function: Function

    def joined(self, a: Array, b: Array) -> Array:
        """t as the hardware computes it; int64 codes (..., sets) of both operands -> int64 (..., sets)."""
        first, second = self.tables
        a, b = a if first is None else first.apply(a), b if second is None else second.apply(b)
        if self.packed:
            low, high = (type_.bits for type_ in self.operands)
            return np.asarray((a & ((1 << low) - 1)) + ((b & ((1 << high) - 1)) << low))
        if self.factors is None:
            return np.asarray((a - self.zeros[0]) * (b - self.zeros[1]))
        return np.asarray(a * self.factors[0] + b * self.factors[1])

    def __str__(self) -> str:
        """t as a formula, such as `2 a + b`."""
        if self.packed:
            return "{b, a}"
        a, b = ("a" if self.tables[0] is None else "A(a)"), ("b" if self.tables[1] is None else "B(b)")
        if self.factors is None:
            shifted = [
                f"({x} {'-' if zero > 0 else '+'} {abs(zero)})" if zero else x
                for x, zero in zip((a, b), self.zeros, strict=True)
            ]
            return " ".join(shifted)
        terms = [(f, x) for f, x in zip(self.factors, (a, b), strict=True) if f]
        text = " ".join(f"{'-' if f < 0 else '+'} {x if abs(f) == 1 else f'{abs(f)} {x}'}" for f, x in terms)
        return text.removeprefix("+ ") or "0"

    def cost(self, table: Array, dsp: bool) -> tuple[float, int, int]:
        """(LUT, DSP blocks, bits of block RAM) of the lookup tables and the join.

        `table` int64 (folds, lanes): sets of the lanes.
        """
        lanes = table.shape[1]
        lut, dsp_blocks, memory = 0.0, 0, 0
        for lookup, type_ in zip(self.tables, self.operands, strict=True):
            if lookup is not None:
                logic, _, bits = table_cost(lookup, table, IntType(0, (1 << lookup.bits) - 1), type_)
                lut, memory = lut + logic, memory + bits
        widths = [type_.bits + 1 for type_ in self.operands]
        if self.packed:
            return lut, dsp_blocks, memory
        if self.factors is None:
            logic, dsp_blocks = multiplier_cost.cost(widths[0], widths[1], lanes, None, dsp)
            return (
                lut + logic + lanes * sum(w for w, z in zip(widths, self.zeros, strict=True) if z),
                dsp_blocks,
                memory,
            )
        digits = [multiplier_cost.digits(factor) for factor in self.factors]
        rows = sum(max(0, n - 1) * (w + 2.0) for n, w in zip(digits, widths, strict=True))
        return lut + lanes * (rows + self.type.bits * all(self.factors)), dsp_blocks, memory


def direct_plan(
    f: BinaryFunction, factors: tuple[int, int] | None, zeros: tuple[int, int], type_: IntType, function: Function
) -> JoinPlan:
    """The plan that joins the codes themselves, without lookup tables before the join."""
    return JoinPlan(factors, zeros, False, (None, None), f.input_types, type_, function)
