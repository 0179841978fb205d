"""The join plan of last resort: a float32 unit adds, subtracts or multiplies both operands as float32 numbers.

It computes the operations of the model one by one, so it needs no search and no bound on the pairs of codes. It covers
the sum of two layers of any widths and scales, as in a recurrent cell. The operations after the join are a function of
one float32 number, realized like a function of a float32 input.

Example: W x + R h + b, both products with scales of their own. Each sum goes through hg_f32_decode, which multiplies it
with its scale and rounds once. hg_f32_join adds both and rounds once. Thresholds on order keys do the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hlsgen.diagnostics import HlsgenError
from hlsgen.ir import FloatKey
from hlsgen.ir.binary_function import BinaryFunction
from hlsgen.ir.evaluate import KEY_POS_INF, float_to_key
from hlsgen.ir.ops import BinaryKind
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import IntType
from hlsgen.rescale.realize import float_units
from hlsgen.rescale.realize.float_ops import FloatUnits

#: The operation of hg_f32_join, as a formula.
SIGNS = {BinaryKind.ADD: "+", BinaryKind.SUB: "-", BinaryKind.MUL: "*"}
#: LUT of one lane of hg_f32_join.
JOIN_LUT = {BinaryKind.ADD: 450.0, BinaryKind.SUB: 450.0, BinaryKind.MUL: 900.0}
_KEYS = IntType(0, KEY_POS_INF)


@dataclass(frozen=True, eq=False)
class FloatJoin:
    """`operands`: the units that convert both codes to float32. `kind`: the operation that joins them.

    `function`: the model's own operations on the result, an order key.
    """

    operands: tuple[FloatUnits, FloatUnits]
    kind: BinaryKind
    function: StepFunction

    def __str__(self) -> str:
        """Such as `a + b in float32`."""
        return f"a {SIGNS[self.kind]} b in float32"


def find(f: BinaryFunction) -> FloatJoin | str:
    """The plan, or the reason, as text, why there is none."""
    units = operands(f)
    if isinstance(units, str):
        return units
    keys = np.zeros(f.sets, np.int64)
    function = StepFunction(
        f.name, FloatKey(), f.ops, f.quantizer, f.index, keys, keys + KEY_POS_INF, _KEYS, f.output_type
    )
    plus, minus = (function.evaluate(keys + float_to_key(np.float32(zero))) for zero in (0.0, -0.0))
    if (plus != minus).any():
        return "a later operation distinguishes -0.0 from 0.0"
    return FloatJoin(units, f.kind, function)


def operands(f: BinaryFunction) -> tuple[FloatUnits, FloatUnits] | str:
    """The units of both operands, or the reason, as text, why there are none."""
    if f.kind not in SIGNS:
        return f"there is no float32 unit for the {f.kind.value} of two tensors"
    try:
        return float_units.values(_operand(f, 0)), float_units.values(_operand(f, 1))
    except HlsgenError as error:
        return error.diagnostics[0].message.rstrip(".")


def _operand(f: BinaryFunction, side: int) -> StepFunction:
    """The operations on one operand before the join, as a function; its quantizer is not used."""
    return StepFunction(
        f.name,
        f.sources[side],
        f.branches[side],
        f.quantizer,
        f.index,
        f.lo[side],
        f.hi[side],
        f.input_types[side],
        f.output_type,
    )
