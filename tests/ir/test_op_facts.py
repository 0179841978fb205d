"""Every fact of `op_facts` against evaluation: random constants of each dtype, all or many ordered numbers."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hlsgen.ir import op_facts
from hlsgen.ir.evaluate import apply
from hlsgen.ir.op_facts import Interval, all_numbers, chain_direction, direction, range_of, wrapping_sum
from hlsgen.ir.ops import (
    FLOATS,
    QUANTIZERS,
    Activation,
    Add,
    BinaryKind,
    BinaryOf,
    Bipolar,
    Cast,
    Compare,
    Constant,
    Convention,
    Dequantize,
    Div,
    Elementwise,
    FixedAdd,
    FloatQuant,
    Fma,
    IntegerActivation,
    IntegerKind,
    IntegerRatio,
    IntQuant,
    Lookup,
    Max,
    Min,
    Mul,
    MultiThreshold,
    Pair,
    PairOp,
    QuantizeLinear,
    Relation,
    Requantize,
    SignedBit,
    Slope,
    Trunc,
    Where,
)
from hlsgen.numerics.activations import KINDS
from hlsgen.numerics.fixed import IntType, Rounding
from hlsgen.numerics.quantized_add import Parameters

Array = NDArray[Any]
Random = np.random.Generator
FLOAT_DTYPES = ("float16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
DTYPES = (*FLOAT_DTYPES, *INTEGERS, "bool")
CASES = [*(op for op in (*FLOATS, *QUANTIZERS) if op is not Activation), *sorted(KINDS)]
#: Channels of the constants.
SETS = 5


@cache
def numbers(dtype: str) -> Array:
    """Ascending numbers of a dtype: all, or extremes, small ones and some at random."""
    r = np.random.default_rng(DTYPES.index(dtype))
    if dtype == "bool":
        return np.array([False, True])
    if dtype in ("int8", "uint8", "int16", "uint16"):
        info = np.iinfo(dtype)
        return np.arange(info.min, info.max + 1).astype(dtype)
    if dtype == "float16":
        all_float16 = np.arange(1 << 16).astype(np.uint16).view(np.float16)
        return np.sort(all_float16[~np.isnan(all_float16)])
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        ends = [info.min, info.min + 1, info.max - 1, info.max, 0, 1]
        small_integers = [x for x in range(-300, 301) if x >= info.min]
        random_magnitudes = [int(2.0 ** r.uniform(0, info.bits)) * int(r.choice([-1, 1])) for _ in range(2000)]
        return np.sort(
            np.array([*ends, *small_integers, *(min(max(x, info.min), info.max) for x in random_magnitudes)], dtype)
        )
    info = np.finfo(dtype)
    random_magnitudes = r.choice([-1, 1], 3000) * 2.0 ** r.uniform(
        np.log2(float(info.tiny)) - 20, np.log2(float(info.max)), 3000
    )
    ends = np.array([info.max, info.min, info.tiny, info.smallest_subnormal, -info.smallest_subnormal, 0, -0.0], dtype)
    with np.errstate(all="ignore"):
        parts = [
            random_magnitudes.astype(dtype),
            np.linspace(-12, 12, 4001).astype(dtype),
            np.array([-np.inf, np.inf], dtype),
        ]
    return np.sort(np.concatenate([*parts, ends]))


def constant(r: Random, dtype: str, special: bool = True) -> Array:
    """A value for each channel, often small, sometimes the same, sometimes zero, infinite or extreme."""
    if dtype == "bool":
        return r.random(SETS) < 0.5
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        small = r.integers(0 if info.min == 0 else -9, 10, SETS).astype(dtype)
        return np.where(r.random(SETS) < 0.7, small, r.choice(numbers(dtype), SETS)).astype(dtype)
    value = (r.normal(size=SETS) * 10 ** r.uniform(-2, 2)).astype(dtype)
    if special and r.random() < 0.5:
        info = np.finfo(dtype)
        odd = np.array([0, -0.0, np.inf, -np.inf, np.nan, info.max, info.tiny, info.smallest_subnormal, 1, -1], dtype)
        value = np.where(r.random(SETS) < 0.5, value, r.choice(odd, SETS))
    return np.abs(value) if r.random() < 0.3 else value


def operation(r: Random, kind: Any, dtype: str) -> Elementwise:
    """One of that class, or an activation of that name, for numbers of a dtype."""
    real = dtype if dtype in FLOAT_DTYPES else "float32"
    if isinstance(kind, str):
        if dtype not in FLOAT_DTYPES:
            return Activation(kind)
        alpha = float(r.choice([0.0, 1.0, -1.0, 2.0, 3.0, 0.5, -0.5, -2.0, -3.0, 1e30, r.normal()]))
        return Activation(kind, alpha, float(r.choice([0.0, 0.5, -1.0, r.normal()])))
    mode = Rounding(int(r.integers(7)))
    bits = int(r.integers(2, 25))
    type_ = IntType(-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if r.random() < 0.5 else IntType(0, (1 << bits) - 1)
    zero = r.integers(-9, 10, SETS)
    info = np.iinfo("int8")
    match kind.__name__:
        case "Mul" | "Add" | "Max" | "Min" | "Constant":
            return kind(constant(r, dtype))  # type: ignore[no-any-return]
        case "Div" | "Slope":
            return kind(constant(r, real))  # type: ignore[no-any-return]
        case "Fma":
            return Fma(constant(r, "float32"), constant(r, "float32"))
        case "Cast":
            return Cast(str(r.choice(DTYPES)))
        case "Dequantize":
            return Dequantize(constant(r, str(r.choice(["float16", "float32"]))), zero)
        case "Lookup":
            table = np.stack([constant(r, dtype) for _ in range(4)])
            return Lookup(np.sort(table, axis=0) if r.random() < 0.7 else table)
        case "Compare":
            return Compare(list(Relation)[int(r.integers(5))], constant(r, dtype))
        case "BinaryOf":
            return BinaryOf(BinaryKind.SUB, ((), (Max(constant(r, dtype)),)))
        case "Where":
            return Where(((Compare(Relation.GREATER, constant(r, dtype)),), (), (Constant(constant(r, dtype)),)))
        case "IntQuant":
            return IntQuant(constant(r, real), constant(r, real), type_, mode)
        case "Bipolar":
            return Bipolar(constant(r, real), constant(r, real))
        case "SignedBit":
            return SignedBit(constant(r, real), constant(r, real))
        case "Trunc":
            parts = (constant(r, real, special=r.random() < 0.3) for _ in range(5))
            return Trunc(*parts, None if r.random() < 0.3 else type_, mode)
        case "MultiThreshold":
            rows = np.stack([constant(r, real) for _ in range(3)])
            return MultiThreshold(rows, float(r.choice([1.0, -1.0, 0.5, np.inf, 1e300])), float(r.normal()))
        case "QuantizeLinear":
            code_dtype = str(r.choice(["int8", "uint8", "int16"]))
            limits = np.iinfo(code_dtype)
            type_ = IntType(int(limits.min), int(limits.max))
            return QuantizeLinear(constant(r, "float32"), zero, type_, code_dtype, mode)
        case "Requantize":
            convention = list(Convention)[int(r.integers(len(Convention)))]
            big = int(2 ** r.integers(1, 34))
            parts_ = r.integers(-big, big, SETS), r.integers(-big, big, SETS), r.integers(0, 45, SETS), zero
            return Requantize(convention, *parts_, IntType(int(info.min), int(info.max)), "int8")
        case "FloatQuant":
            mantissa, minimum_exponent = int(r.integers(0, 8)), int(r.integers(-16, 1))
            largest = float(2.0 ** r.integers(1, 12) * (2 - 2.0**-mantissa))
            return FloatQuant(constant(r, real), mantissa, minimum_exponent, largest, bool(r.random() < 0.7), mode)
        case "Pair":
            return Pair(PairOp.MUL, IntType(-128, 127), "int8", (0.1, 0.2, 0.3), (1, 2, 3))
        case "IntegerActivation":
            kinds = [(IntegerKind.GELU, (-30, 1000)), (IntegerKind.HARDSWISH, (60, 120, -9))]
            chosen = kinds[int(r.integers(2))]
            return IntegerActivation(*chosen, IntType(-(1 << 31), (1 << 31) - 1), "float32")
        case "IntegerRatio":
            big = int(2 ** r.integers(1, 30))
            dtype = r.integers(-big, big, SETS), r.integers(-big, big, SETS), r.integers(1, big + 1, SETS)
            forms = {"mirrored": bool(r.random() < 0.5), "wraps": bool(r.random() < 0.2)}
            return IntegerRatio(*dtype, type_, str(r.choice(["int32", "float32"])), **forms)
        case "FixedAdd":
            return FixedAdd(np.zeros(SETS, np.int64), True, Parameters(0, 0, 0, 300, 300, 200, 5))
        case _:
            raise AssertionError(kind)


def fits(kind: Any, dtype: str) -> bool:
    """True if the operation accepts numbers of that dtype."""
    if isinstance(kind, str):
        return dtype in FLOAT_DTYPES or (kind in ("Abs", "Sign") and dtype != "bool")
    if kind in (Pair, FixedAdd):
        return dtype == "int8"
    if kind in (
        Slope,
        Div,
        Fma,
        IntegerActivation,
        IntegerRatio,
        Requantize,
        Trunc,
        IntQuant,
        Bipolar,
        SignedBit,
        QuantizeLinear,
        FloatQuant,
    ):
        return dtype != "bool"
    return not (kind in (BinaryOf,) and dtype == "bool")


def check(op: Elementwise, x: Array) -> tuple[int, int]:
    """Holds the facts of an operation on the interval of x against its values; how many directions, of how many."""
    interval = Interval(x[0], x[-1])
    facts, span = direction(op, interval), range_of(op, interval)
    with np.errstate(all="ignore"):
        y = np.broadcast_to(apply(op, x[:, None]), (len(x), SETS))
    shape = (SETS,)
    rises, falls = (np.broadcast_to(side, shape) for side in (facts.never_falls, facts.never_rises))
    nan = np.isnan(y).any(axis=0)
    assert not (nan & (rises | falls)).any(), (op, "NaN")
    up, down = (y[1:] >= y[:-1]).all(axis=0), (y[1:] <= y[:-1]).all(axis=0)
    assert (up | ~rises).all(), (op, interval, rises)
    assert (down | ~falls).all(), (op, interval, falls)
    low, high = (np.broadcast_to(end, shape) for end in (span.low, span.high))
    assert span.dtype == y.dtype or not isinstance(op, Cast)
    inside = np.isnan(y) | ((y >= low) & (y <= high))
    assert inside.all(), (op, interval, span)
    return int((rises | falls).sum()), SETS


def seeds(kind: Any) -> int:
    return 5 if isinstance(kind, str) else 12


@pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind if isinstance(kind, str) else kind.__name__)
def test_directions_and_ranges(kind: Any) -> None:
    """On all numbers of a dtype, and on parts of them."""
    monotone_count = 0
    for dtype in (d for d in DTYPES if fits(kind, d)):
        for seed in range(seeds(kind)):
            r = np.random.default_rng([seed, DTYPES.index(dtype)])
            op, x = operation(r, kind, dtype), numbers(dtype)
            if len(x) > 1000 and seed > 0:  # every float16 or int16 at times, else some of them
                x = np.sort(np.concatenate([r.choice(x, 300), x[[0, 1, -2, -1]]]))
            if dtype == "float64" and isinstance(kind, str):  # 50 digits each
                x = np.sort(r.choice(x, 40))
            if r.random() < 0.6:
                middle = int(r.integers(len(x)))
                x = x[max(0, middle - int(r.integers(400))) : middle + 1 + int(r.integers(400))]
            monotone_count += check(op, x)[0]
    assert monotone_count or kind in (BinaryOf, Where, Pair, FixedAdd, IntegerActivation, "HardSwish", "Sqrt", "Log")


@pytest.mark.parametrize("kind", CASES, ids=lambda kind: kind if isinstance(kind, str) else kind.__name__)
def test_what_tells_zeros_apart_is_known(kind: Any) -> None:
    """Both zeros through operations with random constants."""
    for seed, dtype in product(range(40), (d for d in FLOAT_DTYPES if fits(kind, d))):
        op = operation(np.random.default_rng(seed), kind, dtype)
        with np.errstate(all="ignore"):
            first, second = np.broadcast_to(apply(op, np.array([[-0.0], [0.0]], dtype)), (2, SETS))
        if not np.array_equal(first, second, equal_nan=True):
            assert op_facts.distinguishes_zeros(op), (
                "ir/op_facts.py, distinguishes_zeros: it gives two numbers for -0 and +0"
            )


def test_the_table_is_complete() -> None:
    """Every class of operations is tried here; of one that is no case nothing is known."""
    assert {op for op in CASES if not isinstance(op, str)} | {Activation} == {*FLOATS, *QUANTIZERS}
    assert not op_facts.turning(object(), all_numbers("float32")).complete  # type: ignore[arg-type]


ONE = np.ones(1, np.float32)
UP = [
    Mul(ONE * 3),
    Add(-ONE),
    Fma(ONE, ONE),
    Div(ONE * 7),
    Max(ONE * 0),
    Min(ONE),
    Cast("float16"),
    Slope(ONE * 0.1),
    Compare(Relation.GREATER, ONE),
    Compare(Relation.NOT_LESS, ONE),
    IntQuant(ONE, ONE, IntType(-8, 7), Rounding.CEIL),
    Bipolar(ONE, ONE),
    SignedBit(ONE, ONE),
    Trunc(ONE, ONE, ONE, ONE, ONE, None, Rounding.FLOOR),
    MultiThreshold(ONE[None], 1.0, 0.0),
    QuantizeLinear(ONE, np.zeros(1, np.int64), IntType(-128, 127), "int8"),
    FloatQuant(ONE, 3, -6, 240.0, True, Rounding.ROUND),
    FloatQuant(ONE, 3, -6, 240.0, True, Rounding.UP),
    *(
        Activation(kind, 0.2, 0.5)
        for kind in (
            "Sigmoid",
            "Tanh",
            "Exp",
            "Erf",
            "HardSigmoid",
            "Softplus",
            "Softsign",
            "LeakyRelu",
            "Elu",
            "Selu",
            "Celu",
            "Ceil",
            "Floor",
            "Round",
            "Sign",
        )
    ),
]
DOWN = [
    Mul(-ONE),
    Div(-ONE),
    Activation("HardSigmoid", -0.3, 0.5),
    Compare(Relation.LESS, ONE),
    MultiThreshold(ONE[None], -1.0, 0.0),
    Fma(-ONE, ONE),
    QuantizeLinear(-ONE, np.zeros(1, np.int64), IntType(0, 9), "int8"),
]
NEITHER = [
    Mul(ONE * 0),
    Mul(ONE * np.inf),
    Add(ONE * np.inf),
    Div(ONE * 0),
    Div(ONE * np.inf),
    Max(ONE * np.nan),
    Slope(-ONE),
    Slope(ONE * 0),
    Cast("int32"),
    Compare(Relation.EQUAL, ONE),
    IntQuant(ONE * 0, ONE, IntType(0, 1), Rounding.ROUND),
    FloatQuant(ONE, 3, -6, 240.0, True, Rounding.DOWN),
    *(
        Activation(kind, -0.5)
        for kind in (
            "Abs",
            "Gelu",
            "GeluTanh",
            "Mish",
            "HardSwish",
            "Reciprocal",
            "Pow",
            "Sqrt",
            "Log",
            "Elu",
            "Selu",
            "LeakyRelu",
            "Celu",
        )
    ),
]


@pytest.mark.parametrize(("ops", "expected"), [(UP, (True, False)), (DOWN, (False, True)), (NEITHER, (False, False))])
def test_plain_cases_are_known(ops: list[Elementwise], expected: tuple[bool, bool]) -> None:
    """On all float32 numbers."""
    for op in ops:
        facts = direction(op, all_numbers("float32"))
        assert (bool(facts.never_falls.all()), bool(facts.never_rises.any())) == expected, op


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_known_where_they_do_not_wrap(dtype: str) -> None:
    """Against sums and products of Python's integers; without wrapping all is known."""
    r = np.random.default_rng(3)
    info = np.iinfo(dtype)
    claims = {False: 0, True: 0}
    for _ in range(100):
        x = np.sort(r.choice(numbers(dtype), 2))
        value = constant(r, dtype)
        for op, exact in ((Add(value), lambda a, b: a + b), (Mul(value), lambda a, b: a * b)):
            monotone = np.broadcast_to(direction(op, Interval(x[0], x[1])).monotone, (SETS,))
            for n, v in enumerate(value.tolist()):
                wraps = any(not info.min <= exact(int(end), v) <= info.max for end in x)
                assert bool(monotone[n]) == (not wraps), (op, x)
                claims[wraps] += 1
    assert min(claims.values()) > 30


@pytest.mark.parametrize("dtype", INTEGERS)
def test_wrapping_sums(dtype: str) -> None:
    """x + c modulo 2^bits, by Python's integers."""
    r = np.random.default_rng(4)
    x = r.choice(numbers(dtype), 50)
    for op in (Add(constant(r, dtype)), *(Cast(to) for to in INTEGERS)):
        wrapping = wrapping_sum(op, np.dtype(dtype))
        assert wrapping is not None
        offset, info = wrapping[0].tolist(), np.iinfo(wrapping[1])
        y = np.broadcast_to(apply(op, x[:, None]), (50, len(offset)))
        for row, number in zip(y.tolist(), x.tolist(), strict=True):
            assert row == [(number + c - info.min) % (1 << info.bits) + info.min for c in offset]
    for other_op in (Cast("float32"), Mul(constant(r, dtype)), Max(constant(r, dtype))):
        assert wrapping_sum(other_op, np.dtype(dtype)) is None


def test_chains() -> None:
    """Directions multiply, intervals follow."""
    x = Interval(np.int8(-20), np.int8(20))
    add = Add(np.array([100, 107, 108], np.int8))
    assert chain_direction([add, Cast("float32")], x).never_falls.tolist() == [True, True, False]
    assert chain_direction([Cast("float32"), Mul(-ONE), Mul(-ONE)], x).never_falls.all()
    assert chain_direction([Cast("float32"), Mul(-ONE), Activation("Abs")], x).monotone.tolist() == [False]
    assert chain_direction([Cast("float32"), Max(ONE), Activation("Log")], x).never_falls.all()
    assert chain_direction([], x).never_falls.all()


def test_numpy_agrees() -> None:
    """Some facts against numpy's own functions, on every float16."""
    x = numbers("float16")
    cases: list[tuple[Elementwise, Any]] = [
        (Activation("Sqrt"), np.sqrt),
        (Activation("Abs"), np.abs),
        (Activation("Floor"), np.floor),
        (Mul(np.float16([-3])), lambda v: v * np.float16(-3)),
        (Max(np.float16([0])), lambda v: np.maximum(v, 0)),
        (Add(np.float16([np.inf])), lambda v: v + np.float16(np.inf)),
        (Activation("Sign"), np.sign),
        (Activation("Exp"), lambda v: np.exp(v.astype(np.float64))),
        (Cast("float32"), lambda v: v.astype(np.float32)),
    ]
    with np.errstate(all="ignore"):
        for op, function in cases:
            for part in (x, x[x >= 0], x[x < 0]):
                y, facts = function(part), direction(op, Interval(part[0], part[-1]))
                if not np.isnan(y).any():
                    assert not facts.never_falls.all() or (np.diff(y[np.isfinite(y)]) >= 0).all()
                    assert not facts.never_rises.all() or (np.diff(y[np.isfinite(y)]) <= 0).all()
                else:
                    assert not facts.monotone.any()


def test_fields_are_read() -> None:
    """Every field of an operation that can be an array has its place in the table: NaN there makes it unknown."""
    for op in (*UP, *DOWN):
        if isinstance(op, Compare | Max | Min | MultiThreshold | Activation | Cast):
            continue
        for field in fields(op):
            value = getattr(op, field.name)
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                changed = type(op)(**{**{f.name: getattr(op, f.name) for f in fields(op)}, field.name: value * np.nan})
                assert not direction(changed, all_numbers("float32")).monotone.any(), (op, field.name)
