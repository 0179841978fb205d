"""Functions of two streams: one integer of both codes, and the steps over it that follow.

That integer is a weighted sum, a product, the sum or product of two tables, or both codes side by
side. Each way is proven by trying all pairs of codes, or, where these are too many, by arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass

from hlsgen.ir import BinaryMap, IntegerEncoding
from hlsgen.ir.binary_function import Reach, specialize
from hlsgen.ir.ops import QuantizeLinear
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.binary import affine
from hlsgen.rescale.binary.exhaustive import Pairs
from hlsgen.rescale.binary.join_plan import JoinPlan, plain

#: Most pairs of codes, of all sets, that are tried.
MAX_PAIRS = 1 << 25


#: Pairs of codes that are tried where nothing better can come of it.
_FEW = 1 << 12


@dataclass(frozen=True, eq=False)
class JoinSearch:
    """`index` (elements,): function set of each element of the stream. `ways`: at least one."""

    name: str
    index: Array
    sources: tuple[IntType, IntType]
    result: IntType
    ways: tuple[JoinPlan, ...]


def find(layer: BinaryMap, order: Array, reach: tuple[Reach | None, Reach | None] = (None, None)) -> JoinSearch | str:
    """All ways that are worth a try, or why there is none.

    `order` as of the stream of the result, `reach` as in `operands.specialize`.
    """
    f = specialize(layer, order, reach)
    ways, reasons = [], []
    arithmetic = affine.find(f)
    if isinstance(arithmetic, str):
        reasons.append(arithmetic)
    else:
        function = arithmetic.function
        ways.append(plain(f, arithmetic.factors, arithmetic.zeros, function.input_type, function))
        if f.pairs > _FEW and _is_sum_itself(function):
            return JoinSearch(f.name, f.index, f.input_types, f.output_type, tuple(ways))
    if f.pairs <= MAX_PAIRS:
        pairs = Pairs(f)
        for way in pairs.ways(ways[0] if ways else None):
            if isinstance(way, str):
                reasons.append(way)
            else:
                ways.append(way)
    else:
        reasons.append(f"{f.pairs} pairs of codes are too many to try; at most {MAX_PAIRS}")
    return JoinSearch(f.name, f.index, f.input_types, f.output_type, tuple(ways)) if ways else "; ".join(reasons)


def _is_sum_itself(f: StepFunction) -> bool:
    """Whether the code is the integer that the join gives."""
    end = f.quantizer
    if not isinstance(f.source, IntegerEncoding) or not isinstance(end, QuantizeLinear) or f.ops:
        return False
    return bool((end.scale == 1).all() and not end.zero_point.any())
