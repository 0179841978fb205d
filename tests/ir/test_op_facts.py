"""Every fact of `op_facts` against evaluation: random constants of each dtype, all or many ordered numbers."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hlsgen.ir import op_facts, ops
from hlsgen.ir.evaluate import apply
from hlsgen.ir.op_facts import Interval, all_numbers, chain_direction, direction, range_of, wrapping_sum
from hlsgen.numerics.activations import KINDS
from hlsgen.numerics.fixed import IntType, Rounding
from hlsgen.numerics.quantized_add import Parameters

Array = NDArray[Any]
Random = np.random.Generator
FLOAT_DTYPES = ("float16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
DTYPES = (*FLOAT_DTYPES, *INTEGERS, "bool")
CASES = [*(op for op in (*ops.FLOATS, *ops.QUANTIZERS) if op is not ops.Activation), *sorted(KINDS)]
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


def operation(r: Random, kind: Any, dtype: str) -> ops.Elementwise:
    """One of that class, or an activation of that name, for numbers of a dtype."""
    real = dtype if dtype in FLOAT_DTYPES else "float32"
    if isinstance(kind, str):
        if dtype not in FLOAT_DTYPES:
            return ops.Activation(kind)
        alpha = float(r.choice([0.0, 1.0, -1.0, 2.0, 3.0, 0.5, -0.5, -2.0, -3.0, 1e30, r.normal()]))
        return ops.Activation(kind, alpha, float(r.choice([0.0, 0.5, -1.0, r.normal()])))
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
            return ops.Fma(constant(r, "float32"), constant(r, "float32"))
        case "Cast":
            return ops.Cast(str(r.choice(DTYPES)))
        case "Dequantize":
            return ops.Dequantize(constant(r, str(r.choice(["float16", "float32"]))), zero)
        case "Lookup":
            table = np.stack([constant(r, dtype) for _ in range(4)])
            return ops.Lookup(np.sort(table, axis=0) if r.random() < 0.7 else table)
        case "Compare":
            return ops.Compare(list(ops.Relation)[int(r.integers(5))], constant(r, dtype))
        case "BinaryOf":
            return ops.BinaryOf(ops.BinaryKind.SUB, ((), (ops.Max(constant(r, dtype)),)))
        case "Where":
            return ops.Where(
                ((ops.Compare(ops.Relation.GREATER, constant(r, dtype)),), (), (ops.Constant(constant(r, dtype)),))
            )
        case "IntQuant":
            return ops.IntQuant(constant(r, real), constant(r, real), type_, mode)
        case "Bipolar":
            return ops.Bipolar(constant(r, real), constant(r, real))
        case "SignedBit":
            return ops.SignedBit(constant(r, real), constant(r, real))
        case "Trunc":
            parts = (constant(r, real, special=r.random() < 0.3) for _ in range(5))
            return ops.Trunc(*parts, None if r.random() < 0.3 else type_, mode)
        case "MultiThreshold":
            rows = np.stack([constant(r, real) for _ in range(3)])
            return ops.MultiThreshold(rows, float(r.choice([1.0, -1.0, 0.5, np.inf, 1e300])), float(r.normal()))
        case "QuantizeLinear":
            code_dtype = str(r.choice(["int8", "uint8", "int16"]))
            limits = np.iinfo(code_dtype)
            type_ = IntType(int(limits.min), int(limits.max))
            return ops.QuantizeLinear(constant(r, "float32"), zero, type_, code_dtype, mode)
        case "Requantize":
            convention = list(ops.Convention)[int(r.integers(len(ops.Convention)))]
            big = int(2 ** r.integers(1, 34))
            parts_ = r.integers(-big, big, SETS), r.integers(-big, big, SETS), r.integers(0, 45, SETS), zero
            return ops.Requantize(convention, *parts_, IntType(int(info.min), int(info.max)), "int8")
        case "FloatQuant":
            mantissa, minimum_exponent = int(r.integers(0, 8)), int(r.integers(-16, 1))
            largest = float(2.0 ** r.integers(1, 12) * (2 - 2.0**-mantissa))
            return ops.FloatQuant(constant(r, real), mantissa, minimum_exponent, largest, bool(r.random() < 0.7), mode)
        case "Pair":
            return ops.Pair(ops.PairOp.MUL, IntType(-128, 127), "int8", (0.1, 0.2, 0.3), (1, 2, 3))
        case "IntegerActivation":
            kinds = [(ops.IntegerKind.GELU, (-30, 1000)), (ops.IntegerKind.HARDSWISH, (60, 120, -9))]
            chosen = kinds[int(r.integers(2))]
            return ops.IntegerActivation(*chosen, IntType(-(1 << 31), (1 << 31) - 1), "float32")
        case "IntegerRatio":
            big = int(2 ** r.integers(1, 30))
            dtype = r.integers(-big, big, SETS), r.integers(-big, big, SETS), r.integers(1, big + 1, SETS)
            forms = {"mirrored": bool(r.random() < 0.5), "wraps": bool(r.random() < 0.2)}
            return ops.IntegerRatio(*dtype, type_, str(r.choice(["int32", "float32"])), **forms)
        case "FixedAdd":
            return ops.FixedAdd(np.zeros(SETS, np.int64), True, Parameters(0, 0, 0, 300, 300, 200, 5))
        case _:
            raise AssertionError(kind)


def fits(kind: Any, dtype: str) -> bool:
    """True if the operation accepts numbers of that dtype."""
    if isinstance(kind, str):
        return dtype in FLOAT_DTYPES or (kind in ("Abs", "Sign") and dtype != "bool")
    if kind in (ops.Pair, ops.FixedAdd):
        return dtype == "int8"
    if kind in (
        ops.Slope,
        ops.Div,
        ops.Fma,
        ops.IntegerActivation,
        ops.IntegerRatio,
        ops.Requantize,
        ops.Trunc,
        ops.IntQuant,
        ops.Bipolar,
        ops.SignedBit,
        ops.QuantizeLinear,
        ops.FloatQuant,
    ):
        return dtype != "bool"
    return not (kind in (ops.BinaryOf,) and dtype == "bool")


def check(op: ops.Elementwise, x: Array) -> tuple[int, int]:
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
    assert span.dtype == y.dtype or not isinstance(op, ops.Cast)
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
    assert monotone_count or kind in (
        ops.BinaryOf,
        ops.Where,
        ops.Pair,
        ops.FixedAdd,
        ops.IntegerActivation,
        "HardSwish",
        "Sqrt",
        "Log",
    )


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
    assert {op for op in CASES if not isinstance(op, str)} | {ops.Activation} == {*ops.FLOATS, *ops.QUANTIZERS}
    assert not op_facts.turning(object(), all_numbers("float32")).complete  # type: ignore[arg-type]


ONE = np.ones(1, np.float32)
UP = [
    ops.Mul(ONE * 3),
    ops.Add(-ONE),
    ops.Fma(ONE, ONE),
    ops.Div(ONE * 7),
    ops.Max(ONE * 0),
    ops.Min(ONE),
    ops.Cast("float16"),
    ops.Slope(ONE * 0.1),
    ops.Compare(ops.Relation.GREATER, ONE),
    ops.Compare(ops.Relation.NOT_LESS, ONE),
    ops.IntQuant(ONE, ONE, IntType(-8, 7), Rounding.CEIL),
    ops.Bipolar(ONE, ONE),
    ops.SignedBit(ONE, ONE),
    ops.Trunc(ONE, ONE, ONE, ONE, ONE, None, Rounding.FLOOR),
    ops.MultiThreshold(ONE[None], 1.0, 0.0),
    ops.QuantizeLinear(ONE, np.zeros(1, np.int64), IntType(-128, 127), "int8"),
    ops.FloatQuant(ONE, 3, -6, 240.0, True, Rounding.ROUND),
    ops.FloatQuant(ONE, 3, -6, 240.0, True, Rounding.UP),
    *(
        ops.Activation(kind, 0.2, 0.5)
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
    ops.Mul(-ONE),
    ops.Div(-ONE),
    ops.Activation("HardSigmoid", -0.3, 0.5),
    ops.Compare(ops.Relation.LESS, ONE),
    ops.MultiThreshold(ONE[None], -1.0, 0.0),
    ops.Fma(-ONE, ONE),
    ops.QuantizeLinear(-ONE, np.zeros(1, np.int64), IntType(0, 9), "int8"),
]
NEITHER = [
    ops.Mul(ONE * 0),
    ops.Mul(ONE * np.inf),
    ops.Add(ONE * np.inf),
    ops.Div(ONE * 0),
    ops.Div(ONE * np.inf),
    ops.Max(ONE * np.nan),
    ops.Slope(-ONE),
    ops.Slope(ONE * 0),
    ops.Cast("int32"),
    ops.Compare(ops.Relation.EQUAL, ONE),
    ops.IntQuant(ONE * 0, ONE, IntType(0, 1), Rounding.ROUND),
    ops.FloatQuant(ONE, 3, -6, 240.0, True, Rounding.DOWN),
    *(
        ops.Activation(kind, -0.5)
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


@pytest.mark.parametrize(
    ("operations", "expected"), [(UP, (True, False)), (DOWN, (False, True)), (NEITHER, (False, False))]
)
def test_plain_cases_are_known(operations: list[ops.Elementwise], expected: tuple[bool, bool]) -> None:
    """On all float32 numbers."""
    for op in operations:
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
        for op, exact in ((ops.Add(value), lambda a, b: a + b), (ops.Mul(value), lambda a, b: a * b)):
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
    for op in (ops.Add(constant(r, dtype)), *(ops.Cast(to) for to in INTEGERS)):
        wrapping = wrapping_sum(op, np.dtype(dtype))
        assert wrapping is not None
        offset, info = wrapping[0].tolist(), np.iinfo(wrapping[1])
        y = np.broadcast_to(apply(op, x[:, None]), (50, len(offset)))
        for row, number in zip(y.tolist(), x.tolist(), strict=True):
            assert row == [(number + c - info.min) % (1 << info.bits) + info.min for c in offset]
    for other_op in (ops.Cast("float32"), ops.Mul(constant(r, dtype)), ops.Max(constant(r, dtype))):
        assert wrapping_sum(other_op, np.dtype(dtype)) is None


def test_chains() -> None:
    """Directions multiply, intervals follow."""
    x = Interval(np.int8(-20), np.int8(20))
    add = ops.Add(np.array([100, 107, 108], np.int8))
    assert chain_direction([add, ops.Cast("float32")], x).never_falls.tolist() == [True, True, False]
    assert chain_direction([ops.Cast("float32"), ops.Mul(-ONE), ops.Mul(-ONE)], x).never_falls.all()
    assert chain_direction([ops.Cast("float32"), ops.Mul(-ONE), ops.Activation("Abs")], x).monotone.tolist() == [False]
    assert chain_direction([ops.Cast("float32"), ops.Max(ONE), ops.Activation("Log")], x).never_falls.all()
    assert chain_direction([], x).never_falls.all()


def test_numpy_agrees() -> None:
    """Some facts against numpy's own functions, on every float16."""
    x = numbers("float16")
    cases: list[tuple[ops.Elementwise, Any]] = [
        (ops.Activation("Sqrt"), np.sqrt),
        (ops.Activation("Abs"), np.abs),
        (ops.Activation("Floor"), np.floor),
        (ops.Mul(np.float16([-3])), lambda v: v * np.float16(-3)),
        (ops.Max(np.float16([0])), lambda v: np.maximum(v, 0)),
        (ops.Add(np.float16([np.inf])), lambda v: v + np.float16(np.inf)),
        (ops.Activation("Sign"), np.sign),
        (ops.Activation("Exp"), lambda v: np.exp(v.astype(np.float64))),
        (ops.Cast("float32"), lambda v: v.astype(np.float32)),
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
        if isinstance(op, ops.Compare | ops.Max | ops.Min | ops.MultiThreshold | ops.Activation | ops.Cast):
            continue
        for field in fields(op):
            value = getattr(op, field.name)
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                changed = type(op)(**{**{f.name: getattr(op, f.name) for f in fields(op)}, field.name: value * np.nan})
                assert not direction(changed, all_numbers("float32")).monotone.any(), (op, field.name)
