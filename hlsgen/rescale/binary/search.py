"""Functions of two streams: every proven plan that reduces both codes to one integer, and the steps over it.

A function of two codes a and b would need a lookup table of all pairs. A join plan is cheaper: it computes one integer
t from both codes, and t then goes through a step function like any other code. The integer t is a weighted sum, a
product, the sum or product of two lookup tables, or both codes side by side.

Two modules find plans, and each proves its own. `affine` uses exact arithmetic on the operations, for any number of
pairs. `exhaustive` evaluates all pairs, if there are not too many. `select.choose_join` takes the cheapest plan.

Example: code = round(0.5 * a + 0.25 * b) for a and b in 0..2. The sum t = 2 * a + b gives round(t / 4). Steps at t = 3
and t = 6 give the code of each of the nine pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

from hlsgen.ir import BinaryMap, IntegerEncoding
from hlsgen.ir.binary_function import Reach, specialize
from hlsgen.ir.ops import QuantizeLinear
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.binary import affine
from hlsgen.rescale.binary.exhaustive import AllPairs
from hlsgen.rescale.binary.join_plan import JoinPlan, direct_plan

#: At most this many pairs of codes, of all sets together, are evaluated.
MAX_PAIRS = 1 << 25
#: At most this many are evaluated if the sum itself is the code, so that no plan can be better.
_FEW_PAIRS = 1 << 12


@dataclass(frozen=True, eq=False)
class JoinSearch:
    """The plans for one layer.

    `index` int64 (elements,): the set of constants that each element of the stream uses. `sources`: types of both
    operands' codes. `result`: type of the resulting codes. `plans`: at least one, each proven.
    """

    name: str
    index: Array
    sources: tuple[IntType, IntType]
    result: IntType
    plans: tuple[JoinPlan, ...]


def find(layer: BinaryMap, order: Array, reach: tuple[Reach | None, Reach | None] = (None, None)) -> JoinSearch | str:
    """All plans that are worth a comparison of their cost, or, as text, the reasons why there is none.

    `order` int64 (elements,) is the order of the result's stream. `reach` gives the least and the greatest code of each
    operand's elements, as in `ir.binary_function.specialize`.
    """
    f = specialize(layer, order, reach)
    plans, reasons = [], []
    arithmetic = affine.find(f)
    if isinstance(arithmetic, str):
        reasons.append(arithmetic)
    else:
        function = arithmetic.function
        plans.append(direct_plan(f, arithmetic.factors, arithmetic.zeros, function.input_type, function))
        if f.pairs > _FEW_PAIRS and _is_sum_itself(function):
            return JoinSearch(f.name, f.index, f.input_types, f.output_type, tuple(plans))
    if f.pairs <= MAX_PAIRS:
        pairs = AllPairs(f)
        for plan in pairs.plans(plans[0] if plans else None):
            if isinstance(plan, str):
                reasons.append(plan)
            else:
                plans.append(plan)
    else:
        reasons.append(f"{f.pairs} pairs of codes are too many to try; at most {MAX_PAIRS}")
    return JoinSearch(f.name, f.index, f.input_types, f.output_type, tuple(plans)) if plans else "; ".join(reasons)


def _is_sum_itself(f: StepFunction) -> bool:
    """True if the code is t itself: integers in, no operations, a quantizer of scale 1 and zero point 0."""
    quantizer = f.quantizer
    if not isinstance(f.source, IntegerEncoding) or not isinstance(quantizer, QuantizeLinear) or f.ops:
        return False
    return bool((quantizer.scale == 1).all() and not quantizer.zero_point.any())
