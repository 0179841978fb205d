"""Steps equal the function that they were found from, at every input of every set."""

from __future__ import annotations

from itertools import product
from typing import Any

import chains as generator
import numpy as np
import pytest
from chains import DECODES, QUANTIZERS, chain
from numpy.typing import NDArray

from hlsgen.ir import FloatKey, IntegerEncoding
from hlsgen.ir import ops as operations
from hlsgen.ir.evaluate import KEY_POS_INF, constants, float_to_key, with_constants
from hlsgen.ir.ops import (
    Activation,
    Add,
    BinaryKind,
    BinaryOf,
    Cast,
    Div,
    Elementwise,
    FloatQuant,
    IntQuant,
    Mul,
    QuantizeLinear,
    Quantizer,
)
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.activations import KINDS
from hlsgen.numerics.fixed import IntType, Rounding
from hlsgen.rescale import extract as module
from hlsgen.rescale.extract import MAX_STEPS, trace
from hlsgen.rescale.monotone_pieces import edges
from hlsgen.rescale.threshold_table import ThresholdTable

Array = NDArray[Any]
#: Chains of each decoding and quantizer: the longest interval, and how many.
SIZES = ((1 << 16, 3), (1 << 10, 12), (40, 15))


def every_input(f: StepFunction) -> Array:
    """(longest interval, sets); shorter intervals end with copies of their last input."""
    return np.minimum(f.lo + np.arange(int((f.hi - f.lo).max()) + 1)[:, None], f.hi)


def same(f: StepFunction, steps: ThresholdTable) -> bool:
    x = every_input(f)
    ascending = (np.diff(steps.table, axis=0) >= 0).all()
    inside = (steps.table >= f.lo).all() and (steps.table <= f.hi + 1).all()
    return bool(ascending and inside and (steps.apply(x) == f.evaluate(x)).all())


def most_steps(f: StepFunction) -> int:
    return int((np.diff(f.evaluate(every_input(f)), axis=0) != 0).sum(axis=0).max(initial=0))


@pytest.mark.cases(4)
@pytest.mark.parametrize("source", DECODES)
@pytest.mark.parametrize("end", QUANTIZERS)
def test_random_chains(source: str, end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By whatever way, and by bisection alone where the pieces are known."""
    r = np.random.default_rng([DECODES.index(source), QUANTIZERS.index(end)])
    chains = [chain(r, source, end, most) for most, count in SIZES for _ in range(count)]
    few = [most_steps(f) <= MAX_STEPS for f in chains]
    for f, fits in zip(chains, few, strict=True):
        steps = trace(f)
        assert isinstance(steps, ThresholdTable) == fits, f
        assert isinstance(steps, str) or same(f, steps), f
    monkeypatch.setattr(module, "SHORT", 0)
    monkeypatch.setattr(module, "MAX_EVALUATIONS", 0)
    for f, fits in zip(chains, few, strict=True):
        steps = trace(f)
        assert fits if isinstance(steps, ThresholdTable) else not (fits and edges(f) is not None), f
        assert isinstance(steps, str) or same(f, steps), f


def on_floats(ops: tuple[Elementwise, ...], end: Quantizer, lo: Any, hi: Any) -> StepFunction:
    """A function of float32 keys, one set for each interval."""
    sets = len(lo)
    spread = tuple(with_constants(op, {k: np.repeat(v, sets, -1) for k, v in constants(op).items()}) for op in ops)
    last = with_constants(end, {k: np.repeat(v, sets, -1) for k, v in constants(end).items()})
    type_ = IntType(0, KEY_POS_INF)
    return StepFunction("f", FloatKey(), spread, last, np.arange(sets), *map(np.asarray, (lo, hi)), type_, type_)


def key(x: float) -> int:
    return int(float_to_key(np.array([x]))[0])


#: Operations that `chains` does not draw, and who does.
DRAWN_ELSEWHERE = {
    **dict.fromkeys(["Slope", "Compare", "Constant", "BinaryOf", "Where"], "fuzz/fuzz_phrases.py"),
    **dict.fromkeys(["Pair", "FixedAdd"], "frontend/test_two_inputs.py"),
    "Lookup": "passes/test_rank_codes.py",
    **dict.fromkeys(["IntegerActivation", "IntegerRatio"], "frontend/test_dialect_deeploy.py"),
}


def test_random_chains_have_every_operation() -> None:
    """A new operation is drawn by `chains`, or it is said who draws it."""
    drawn = {*generator.FLOATS, *generator.QUANTIZERS, "Dequantize"}  # of integers
    missing = {op.__name__ for op in (*operations.FLOATS, *operations.QUANTIZERS)} - drawn - set(DRAWN_ELSEWHERE)
    assert not missing, f"tests/support/chains.py, middle or quantizer: {sorted(missing)} are never drawn"


@pytest.mark.cases(3)
@pytest.mark.parametrize("bisection", [False, True])
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_activation(kind: str, bisection: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Around infinities, zeros, turning points and ones; then on all floats, at the steps and at random."""
    r = np.random.default_rng(7)
    if bisection:
        monkeypatch.setattr(module, "SHORT", 0)
        monkeypatch.setattr(module, "MAX_EVALUATIONS", 0)
    one = np.ones(1, np.float32)
    less = Div(np.full(1, 1e30, np.float32))
    parameters = [(0.7, 0.4), (-0.7, 0.4), (0.0, 0.0), (2.0, -1.0), (1.5, 0.0), (-2.0, 0.0), (-1.0, 1.0), (-0.5, 0.5)]
    for (alpha, beta), front in product(parameters, [(), (Mul(one * 0),), (less, Cast("float16"))]):
        ops: tuple[Elementwise, ...] = (*front, Activation(kind, alpha, beta))
        end = IntQuant(one / 16, one * 0, IntType(-127, 127), Rounding.FLOOR)
        points = [-np.inf, -3e38, -1, -0.7517915, -0.75246143, -1e-30, -0.0, 0.0, 1e-30, 1, 88, 3e38, np.inf]
        lo = np.maximum([key(p) - 150 for p in points], 0)
        near = on_floats(ops, end, lo, np.minimum(lo + 300, KEY_POS_INF))
        steps = trace(near)
        assert isinstance(steps, ThresholdTable) or (bisection and edges(near) is None)
        assert isinstance(steps, str) or same(near, steps), (alpha, beta)
        everywhere = on_floats(ops, end, [0], [KEY_POS_INF])
        steps = trace(everywhere)
        if isinstance(steps, ThresholdTable):
            x = np.concatenate([steps.corners(), r.integers(0, KEY_POS_INF + 1, (20000, 1))])
            assert (steps.apply(x) == everywhere.evaluate(x)).all(), (alpha, beta)
        else:
            assert edges(everywhere) is None


DIRECTED = (Rounding.FLOOR, Rounding.CEIL, Rounding.DOWN)


@pytest.mark.parametrize("mode", list(Rounding))
def test_minifloats_below_powers_of_two(mode: Rounding, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the logarithm of a number rounds up to the next power, and a directed rounding falls."""
    monkeypatch.setattr(module, "SHORT", 0)
    monkeypatch.setattr(module, "MAX_EVALUATIONS", 0)
    powers = [s * 2.0**k for s in (-1, 1) for k in range(-9, 10)]
    lo = np.array([key(p) - 60 for p in powers])
    fell = False
    for mantissa, lowest, largest in ((1, -6, 100.0), (3, -6, 100.0), (3, -6, 480.0), (17, 2, 100.0), (0, -6, 100.0)):
        end = FloatQuant(np.ones(1, np.float32), mantissa, lowest, largest, True, mode)
        f = on_floats((), end, lo, lo + 120)
        steps = trace(f)
        assert isinstance(steps, ThresholdTable) == (mantissa > 0 or mode not in DIRECTED)
        assert isinstance(steps, str) or same(f, steps)
        fell |= bool((np.diff(f.evaluate(every_input(f)), axis=0) < 0).any())
    assert fell == (mode in DIRECTED)


def test_wide_intervals_of_integers() -> None:
    """Sums that wrap several times, and the lowest integer, whose absolute value is itself."""
    end = QuantizeLinear(np.float32([1e7]), np.zeros(1, np.int64), IntType(0, 255), "uint8")
    for applied, source in (
        ((), IntegerEncoding("int32", np.array([123456789]))),
        ((Add(np.array([2**31 - 5], np.int32)),), IntegerEncoding("int32", np.zeros(1, np.int64))),
        ((Activation("Abs"),), IntegerEncoding("int32", np.zeros(1, np.int64))),
        ((Cast("int32"), Activation("Abs")), IntegerEncoding("uint32", np.array([7]))),
    ):
        lo, hi = np.array([-(1 << 33)]), np.array([1 << 34])
        f = StepFunction("f", source, applied, end, np.zeros(1, int), lo, hi, IntType(int(lo[0]), int(hi[0])), end.type)
        steps = trace(f)
        assert isinstance(steps, ThresholdTable)
        middle = np.random.default_rng(1).integers(lo[0], hi[0], (100000, 1))
        edge = np.arange(-6, 7)[:, None] + (np.arange(-4, 9) << 31)
        x = np.concatenate([steps.corners(), middle, np.clip(edge.reshape(-1, 1), lo, hi)])
        assert (steps.apply(x) == f.evaluate(x)).all()
        assert steps.steps > 400


@pytest.mark.parametrize("bias, wraps", [(-345, False), (2**31 - 200, True)])
def test_integers_before_a_function_that_turns(bias: int, wraps: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gelu of an int32 sum with its bias: interval arithmetic holds as long as no sum wraps."""
    monkeypatch.setattr(module, "SHORT", 0)
    monkeypatch.setattr(module, "MAX_EVALUATIONS", 0)
    one = np.ones(1, np.float32)
    power = (Div(np.float32(np.sqrt(2)) * one), Activation("Erf"), Add(one), Mul(one / 2))
    ops = (Add(np.array([bias], np.int32)), Cast("float32"), Mul(one / 2000), BinaryOf(BinaryKind.MUL, ((), power)))
    end = QuantizeLinear(one / 20, np.array([3]), IntType(-128, 127), "int8")
    lo, hi = np.array([-9000]), np.array([11000])
    source = IntegerEncoding("int32", np.zeros(1, np.int64))
    f = StepFunction("f", source, ops, end, np.zeros(1, int), lo, hi, IntType(-9000, 11000), end.type)
    steps = trace(f)
    assert isinstance(steps, ThresholdTable) != wraps
    assert isinstance(steps, str) or same(f, steps)


def test_as_many_steps_as_fit() -> None:
    """In several sets and pieces; one code more is refused."""
    sets, scale, zero = 5, np.float32([0.1, 1, 3, 1e9, 1e-20]), np.zeros(5, np.float32)
    lo, hi = np.zeros(sets, np.int64), np.full(sets, KEY_POS_INF)
    for top, fits in ((MAX_STEPS, True), (MAX_STEPS + 1, False)):
        end = IntQuant(scale, zero, IntType(0, top), Rounding.ROUND)
        f = StepFunction("f", FloatKey(), (), end, np.arange(sets), lo, hi, IntType(0, KEY_POS_INF), end.type)
        steps = trace(f)
        assert isinstance(steps, ThresholdTable) == fits
        if isinstance(steps, ThresholdTable):
            x = np.concatenate([steps.corners(), np.random.default_rng(0).integers(0, KEY_POS_INF, (50000, sets))])
            assert steps.steps == MAX_STEPS
            assert (steps.apply(x) == f.evaluate(x)).all()
