"""Quantizers that a file contains as arithmetic: Div or Mul, Round, Add, Clip, Cast, Sub, Mul.

Exporters of FakeQuantize and hand-written training code produce such chains. The first operation remains. From the
rounding on all numbers are whole, so that the other operations become one QuantizeLinear of scale 1, and one
Dequantize with the last factor. Both compute the same float32 numbers as the nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlsgen.frontend.pattern_match import NamedOps, StepGraph
from hlsgen.ir import Op, Step
from hlsgen.ir.evaluate import apply
from hlsgen.ir.ops import Activation, Add, Cast, Dequantize, Div, IntQuant, Max, Min, Mul, QuantizeLinear
from hlsgen.ir.rewrite import StepRewriter, pruned
from hlsgen.numerics.fixed import Array, IntType, Rounding, round_float

_ROUNDINGS = {"Round": Rounding.ROUND, "Floor": Rounding.FLOOR, "Ceil": Rounding.CEIL}
#: Largest code and zero point; sums of two are exact in float32.
_LARGEST = 1 << 22
#: Types of codes, the narrowest first.
_TYPES = ("int8", "uint8", "int16", "uint16", "int32")
#: Types that represent all these whole numbers.
_EXACT_TYPES = ("float32", "float64", "int32", "int64")


def with_quantizers(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps with every such chain replaced; the last step computes the output."""
    graph = StepGraph(steps)
    users = {step.inputs[0]: i for i, step in enumerate(steps) if len(step.inputs) == 1}
    chains: dict[int, _Chain] = {}
    inside: set[int] = set()
    for i in range(len(steps)):
        chain = None if i in inside else _chain(graph, users, i)
        if chain is not None:
            chains[chain.last] = chain
            inside |= chain.steps
    rewriter = StepRewriter()
    for i, step in enumerate(steps):
        if i in chains:
            rewriter.numbers[i + 1] = rewriter.add_chain(chains[i].ops, rewriter.numbers[chains[i].source])
        else:
            rewriter.numbers[i + 1] = rewriter.copy(step)
    return tuple(pruned(rewriter.steps, rewriter.numbers[len(steps)])[0])


@dataclass(frozen=True)
class _Chain:
    """A chain of steps with the indices `steps`, up to step `last`, that `ops` on value `source` replace."""

    source: int
    last: int
    ops: NamedOps
    steps: frozenset[int]


class _Codes:
    """The function of the steps so far on the rounded numbers r: clip(r + zero, lo, hi) + offset.

    zero, offset  whole numbers with the rank of the data
    lo, hi        infinite without a bound
    dtype         dtype of the last step's result
    """

    def __init__(self, rank: int, dtype: str) -> None:
        self.zero = np.zeros((1,) * rank, np.int64)
        self.offset = self.zero
        self.lo, self.hi, self.dtype = -np.inf, np.inf, dtype

    @property
    def bounded(self) -> bool:
        """True if both bounds are known, and small enough for exact sums."""
        return -_LARGEST <= self.lo <= self.hi <= _LARGEST

    def apply(self, op: Op) -> bool:
        """Extend the function by an operation on whole numbers; returns False if that is not possible."""
        match op:
            case Add(value):
                return self._add(value)
            case Max(value):
                return self._limit(value, np.inf)
            case Min(value):
                return self._limit(-np.inf, value)
            case Cast(dtype):
                return self._cast(dtype)
            case Activation(kind):
                return kind in _ROUNDINGS
            case IntQuant(scale, zero, type_, _):
                return bool((scale == 1).all() and (zero == 0).all()) and self._limit(type_.lo, type_.hi)
            case QuantizeLinear(scale, zero, type_, dtype, _):
                if (scale != 1).any() or (zero != 0).any():
                    return False
                return (type_.bits >= 32 or self._limit(type_.lo, type_.hi)) and self._cast(dtype)
        return False

    def _add(self, value: Array) -> bool:
        if value.dtype.name not in _EXACT_TYPES or not _are_whole(value):
            return False
        if self.bounded:
            self.offset = self.offset + value.astype(np.int64)
        else:
            self.zero = self.zero + value.astype(np.int64)
            if self.lo > -np.inf or self.hi < np.inf:
                return False  # an addition between the two bounds
        return bool(np.abs(self.zero).max() <= _LARGEST and np.abs(self.offset).max() <= _LARGEST)

    def _limit(self, low: Array | float, high: Array | float) -> bool:
        ends = [np.unique(np.asarray(end, np.float64) - self.offset) for end in (low, high)]
        if any(len(end) > 1 or (np.isfinite(end).all() and not _are_whole(end)) for end in ends):
            return False
        lo, hi = max(self.lo, float(ends[0][0])), min(self.hi, float(ends[1][0]))
        if lo > hi:
            return False
        self.lo, self.hi = lo, hi
        return True

    def _cast(self, dtype: str) -> bool:
        if dtype not in _EXACT_TYPES:
            if not self.bounded or np.dtype(dtype).kind not in "iu":
                return False
            info = np.iinfo(dtype)
            if self.lo + int(self.offset.min()) < info.min or self.hi + int(self.offset.max()) > info.max:
                return False
        self.dtype = dtype
        return True


def _chain(graph: StepGraph, users: dict[int, int], first: int) -> _Chain | None:
    """The chain that starts with the rounding of step `first`, or None."""
    step = graph.steps[first]
    mode = _rounding(step.op)
    if mode is None:
        return None
    codes = _Codes(len(step.shape), "float32" if isinstance(step.op, Activation) else "int32")
    bounds = _bounds_before(graph, step.inputs[0], mode)
    if bounds is not None:
        codes.lo, codes.hi = bounds
    at, clipped, factor = first, step, None
    while graph.users[at + 1] == 1 and at + 1 in users:
        following = graph.steps[users[at + 1]]
        if isinstance(following.op, Mul) and codes.bounded and codes.dtype == "float32":
            factor = following.op.value if following.op.value.dtype == np.float32 else None
            at += 0 if factor is None else users[at + 1] - at
            break
        if not codes.apply(following.op):
            break
        at = users[at + 1]
        clipped = clipped if isinstance(following.op, Add | Cast) else following
    is_whole = factor is None and not codes.offset.any()
    if not codes.bounded or (is_whole and isinstance(graph.steps[at].op, IntQuant)):
        return None
    if factor is not None and not (np.isfinite(factor).all() and (factor > 0).all()):
        at, factor = graph.steps[at].inputs[0] - 1, None
    ops = _operations(clipped, graph.steps[at], codes, mode, factor)
    if ops is None:
        return None
    members = [at]
    while members[-1] != first:
        members.append(graph.steps[members[-1]].inputs[0] - 1)
    return _Chain(step.inputs[0], at, ops, frozenset(members))


def _operations(clipped: Step, last: Step, codes: _Codes, mode: Rounding, factor: Array | None) -> NamedOps | None:
    """The quantizer, and the Dequantize of its codes if the result is no codes, or None for unsupported types."""
    shape, type_ = clipped.shape, IntType(int(codes.lo), int(codes.hi))
    ones = np.ones((1,) * len(shape), np.float32)
    is_code = factor is None and codes.dtype != "float32"
    if is_code and (codes.dtype not in _TYPES or codes.offset.any()):
        return None
    dtype = codes.dtype if is_code else _narrowest(type_)
    ops: NamedOps = [(clipped.name, QuantizeLinear(ones, codes.zero, type_, dtype, mode), shape)]
    if not is_code:
        real = Dequantize(ones if factor is None else factor, -codes.offset)
        ops.append((last.name, real, last.shape))
    return ops


def _rounding(op: Op) -> Rounding | None:
    """The rounding of an operation from floats to whole numbers, or None for other operations."""
    match op:
        case Activation(kind):
            return _ROUNDINGS.get(kind)
        case QuantizeLinear(scale, zero, type_, _, mode):
            is_cast = type_.bits == 32 and bool((scale == 1).all()) and not zero.any()
            return mode if is_cast and scale.dtype == np.float32 else None
    return None


def _bounds_before(graph: StepGraph, value: int, mode: Rounding) -> tuple[float, float] | None:
    """The smallest and largest rounded number of a value, if a Clip bounds it before arithmetic with constants."""
    value, steps = graph.back(value, lambda op: isinstance(op, Add | Div | Max | Min | Mul))
    if not steps:
        return None
    rank = len(steps[0].shape)
    ends = [np.full((1,) * rank, end, np.float32) for end in (-np.inf, np.inf)]
    with np.errstate(all="ignore"):
        for step in steps:
            images = [apply(step.op, end) for end in ends]  # type: ignore[arg-type]
            ends = [np.minimum(*images), np.maximum(*images)]
        if not all(np.isfinite(end).all() for end in ends):
            return None
        return float(round_float(ends[0], mode).min()), float(round_float(ends[1], mode).max())


def _narrowest(type_: IntType) -> str:
    return next(t for t in _TYPES if np.iinfo(t).min <= type_.lo and type_.hi <= np.iinfo(t).max)


def _are_whole(values: Array) -> bool:
    return bool((values == np.round(values)).all())
