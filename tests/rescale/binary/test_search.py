"""Functions of two streams equal the model's operations, literally evaluated, on all pairs of codes."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import chains
import numpy as np
import pytest
from numpy.typing import NDArray
from paths import ROOT

import hlsgen
from hlsgen import rescale
from hlsgen.diagnostics import HlsgenError
from hlsgen.ir import Accumulator, Affine, BinaryMap, Encoding, Fixed, IntegerEncoding, ThresholdCount, Value, ops
from hlsgen.ir.binary_function import specialize
from hlsgen.ir.evaluate import apply, apply_binary, code_type, decode, decoding, quantize
from hlsgen.numerics.fixed import IntType, Rounding, int_type
from hlsgen.numerics.quantized_add import Parameters
from hlsgen.rescale.binary import search as module
from hlsgen.rescale.binary.factor_ratio import RatioBounds, factors
from hlsgen.rescale.binary.search import find

Array = NDArray[Any]
Random = np.random.Generator
Branches = tuple[tuple[ops.Elementwise, ...], tuple[ops.Elementwise, ...]]
f32 = np.float32
PLAIN = rescale.Preference()
BYTE, NIBBLE = int_type(8, True), int_type(4, True)


def merge(
    kind: ops.BinaryKind,
    types: tuple[IntType, IntType],
    decodes: tuple[Encoding, Encoding],
    end: ops.Quantizer,
    operations: tuple[ops.Elementwise, ...] = (),
    branches: Branches = ((), ()),
    channels: int = 3,
) -> BinaryMap:
    shape = (1, channels)
    left_operand, right_operand = (Value(shape, t, d) for t, d in zip(types, decodes, strict=True))
    return BinaryMap(
        "m",
        kind,
        branches,
        operations,
        end,
        (left_operand, right_operand),
        Value(shape, code_type(end), decoding(end)),
        (0, 1),
    )


def literal(layer: BinaryMap, a: Array, b: Array) -> Array:
    """Codes (..., channels) of the model's own operations."""
    x, y = decode(layer.sources[0].encoding, a), decode(layer.sources[1].encoding, b)
    for op in layer.branches[0]:
        x = apply(op, x)
    for op in layer.branches[1]:
        y = apply(op, y)
    total = apply_binary(layer.kind, x, y)
    for op in layer.ops:
        total = apply(op, total)
    return quantize(layer.quantizer, total)


def every_pair(layer: BinaryMap, reach: Any = (None, None)) -> tuple[Array, Array]:
    """Codes (pairs, channels) of both operands; channels of fewer codes repeat their last one."""
    sides = []
    for value, interval in zip(layer.sources, reach, strict=True):
        lo, hi = (value.type.lo, value.type.hi) if interval is None else interval
        lo, hi = (np.broadcast_to(end, value.shape[-1:]) for end in (lo, hi))
        sides.append(np.minimum(lo + np.arange(int((hi - lo).max()) + 1)[:, None], hi))
    a, b = sides
    return np.repeat(a, len(b), axis=0), np.tile(b, (len(a), 1))


def function(plan: rescale.JoinPlan, t: Array) -> Array:
    return plan.function.evaluate(t) if isinstance(plan.function, rescale.StepFunction) else plan.function.apply(t)


def proven(
    layer: BinaryMap, a: Array, b: Array, reach: Any = (None, None), preference: rescale.Preference = PLAIN
) -> tuple[rescale.JoinSearch, rescale.Choice]:
    """All plans and the chosen hardware, in a stream order of its own, are what the model computes."""
    channels = layer.result.shape[-1]
    assert (a == a[:, :1]).all() or reach != (None, None)
    order = np.random.default_rng(channels).permutation(channels)
    search = find(layer, order, reach)
    assert isinstance(search, rescale.JoinSearch), search
    assert len(search.index) == channels
    choice = rescale.choose_join(search, search.index[None], preference)
    expected = literal(layer, a, b)[:, order]
    first = np.unique(search.index, return_index=True)[1]
    a, b = a[:, order], b[:, order]
    for plan in search.plans:
        t = plan.joined(a[:, first], b[:, first])
        assert t.min() >= plan.type.lo
        assert t.max() <= plan.type.hi
        assert (function(plan, t)[:, search.index] == expected).all(), str(plan)
        operands = [
            x if table is None else table.apply(x)
            for x, table in zip((a[:, first], b[:, first]), plan.tables, strict=True)
        ]
        for x, type_ in zip(operands, plan.operands, strict=True):
            assert x.min() >= type_.lo
            assert x.max() <= type_.hi
            assert type_.bits <= 32
    assert choice.plan is not None
    t = choice.plan.joined(a[:, first], b[:, first])
    assert (choice.realization.apply(t)[:, search.index] == expected).all(), choice.name  # type: ignore[union-attr]
    return search, choice


def random_branch(r: Random, decode_: Encoding, type_: IntType, channels: int) -> tuple[ops.Elementwise, ...]:
    operations: list[ops.Elementwise] = []
    x = decode(decode_, np.arange(type_.lo, type_.hi + 1)[:, None] + np.zeros(channels, np.int64))
    for _ in range(int(r.choice([0, 0, 1, 2]))):
        op = ops.Max(np.zeros(1, x.dtype)) if r.random() < 0.4 else chains.middle(r, x, channels)
        with np.errstate(all="ignore"):
            after = apply(op, x)
        if after.dtype == x.dtype:
            operations.append(op)
            x = after
    return tuple(operations)


def random_merge(r: Random, kind: ops.BinaryKind, end: str, max_bits: int) -> BinaryMap:
    channels = int(r.choice([1, 3]))
    types = tuple(int_type(int(r.integers(1, max_bits + 1)), bool(r.integers(2))) for _ in "ab")
    takes_integers = end == "Requantize"
    decodes = []
    for _ in types:
        name = "Whole" if takes_integers else str(r.choice(["Affine", "Affine", "CountScale", "Accumulator", "Fixed"]))
        encoding = chains.decoding(r, name, channels)
        decodes.append(
            IntegerEncoding("int32", encoding.offset % 200) if isinstance(encoding, IntegerEncoding) else encoding
        )
    if r.random() < 0.3:
        decodes[1] = decodes[0]
    branches = tuple(
        () if takes_integers else random_branch(r, d, t, channels) for d, t in zip(decodes, types, strict=True)
    )
    a, b = every_pair(
        merge(
            kind,
            types,
            (decodes[0], decodes[1]),
            chains.quantizer(r, "Bipolar", channels, np.ones((4, channels))),
            (),
            (),
            channels,
        )
    )  # type: ignore[arg-type]
    x, y = (decode(d, c) for d, c in zip(decodes, (a, b), strict=True))
    with np.errstate(all="ignore"):
        for op in branches[0]:
            x = apply(op, x)
        for op in branches[1]:
            y = apply(op, y)
        total = apply_binary(kind, x, y)
        operations: list[ops.Elementwise] = []
        for _ in range(int(r.choice([0, 0, 1, 2]))):
            op = (
                ops.Max(np.zeros(1, total.dtype))
                if r.random() < 0.5 or takes_integers
                else chains.middle(r, total, channels)
            )
            operations.append(op)
            total = apply(op, total)
        if end == "Requantize" and total.dtype.kind == "f":
            end = "IntQuant"
        last = chains.quantizer(r, end, channels, total)
    return merge(kind, types, (decodes[0], decodes[1]), last, tuple(operations), branches, channels)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ops.BinaryKind)
@pytest.mark.parametrize("end", chains.QUANTIZERS)
def test_random_functions(kind: ops.BinaryKind, end: str) -> None:
    """Every quantizer behind chains of all kinds, up to 8 x 8 bits."""
    r = np.random.default_rng([list(ops.BinaryKind).index(kind), chains.QUANTIZERS.index(end)])
    with np.errstate(all="ignore"):
        for max_bits in (2, 3, 4, 4, 5, 6, 8):
            layer = random_merge(r, kind, end, max_bits)
            proven(layer, *every_pair(layer))


def affine(scale: Any, zero: Any = 0) -> Affine:
    return Affine(np.atleast_2d(f32(scale)), np.atleast_2d(f32(zero)))


def integers(dtype: str, offset: int = 0) -> IntegerEncoding:
    return IntegerEncoding(dtype, np.full((1, 1), offset))


def quant(scale: Any, type_: IntType, mode: Rounding = Rounding.ROUND, zero: Any = 0) -> ops.IntQuant:
    return ops.IntQuant(np.atleast_2d(f32(scale)), np.atleast_2d(f32(zero)), type_, mode)


RELU = ops.Max(np.zeros((1, 1), f32))


@pytest.mark.parametrize("mode", Rounding)
@pytest.mark.parametrize("kind", [ops.BinaryKind.ADD, ops.BinaryKind.SUB])
def test_equal_and_power_of_two_scales(kind: ops.BinaryKind, mode: Rounding) -> None:
    """One scale: the codes themselves are added. Powers of two: a shift follows, found by arithmetic."""
    sign = 1 if kind == ops.BinaryKind.ADD else -1
    equal_scales = merge(kind, (NIBBLE, NIBBLE), (affine(0.3), affine(0.3, 2)), quant(0.47, NIBBLE, mode), (RELU,))
    search, _ = proven(equal_scales, *every_pair(equal_scales))
    assert search.plans[0].factors == (1, sign)
    powers = merge(kind, (BYTE, BYTE), (affine(0.125, 3), affine(0.5)), quant(2.0, BYTE, mode))
    search, choice = proven(powers, *every_pair(powers), preference=rescale.Preference(forced="shift"))
    assert isinstance(search.plans[0].function, rescale.StepFunction)
    assert search.plans[0].factors == (1, 4 * sign)
    assert choice.name == f"shift of a {'+' if sign > 0 else '-'} 4 b"
    assert choice.steps is not None


def test_bytes_of_any_scale() -> None:
    """A sum of a few bits more, and one whose line is a shift, which is forced here."""
    r = np.random.default_rng(0)
    for _ in range(3):
        sa, sb = r.uniform(0.01, 0.1, 2)
        decodes = affine(sa, r.integers(-9, 9)), affine(sb)
        layer = merge(
            ops.BinaryKind.ADD, (BYTE, int_type(8, False)), decodes, quant((sa + sb) * r.uniform(0.5, 1), BYTE)
        )
        search, choice = proven(layer, *every_pair(layer))
        simple, shifted = search.plans
        assert max(simple.factors or ()) < 1 << 10
        assert max(shifted.factors or ()) > 1 << 14
        assert choice.plan in search.plans
        alone = rescale.choose_join(
            replace(search, plans=(shifted,)), search.index[None], rescale.Preference(forced="scale")
        ).realization
        assert isinstance(alone, rescale.Scale)
        assert (alone.multiplier == 1).all()


def test_sums_that_float32_ties_both_ways() -> None:
    """Where equal sums of codes have different codes, tables of the exact values are added."""
    byte = int_type(8, False)
    for kind, operand, end in (
        (ops.BinaryKind.ADD, 0.1, 0.2),
        (ops.BinaryKind.SUB, 0.021, 0.03),
        (ops.BinaryKind.ADD, 0.021, 0.03),
    ):
        first = 0.1 if end == 0.2 else 0.013
        layer = merge(kind, (byte, byte), (affine(first), affine(operand)), quant(end, BYTE), channels=1)
        search, choice = proven(layer, *every_pair(layer))
        assert [plan.packed for plan in search.plans] == [True, False]
        assert all(isinstance(table, rescale.Table) for table in search.plans[1].tables)
        assert choice.plan is search.plans[1]
        _, forced = proven(layer, *every_pair(layer), preference=rescale.Preference(forced="table"))
        assert forced.name == "table of {b, a}"
        assert forced.steps is None


def test_operands_that_turn() -> None:
    """Activations in a branch, and behind the joint: tables in front, and steps that neither rise nor fall."""
    turns = merge(
        ops.BinaryKind.ADD,
        (BYTE, BYTE),
        (affine(0.03), affine(0.05)),
        quant(0.06, BYTE),
        (ops.Activation("Gelu"),),
        ((ops.Activation("Abs"),), (ops.Activation("Tanh"),)),
        channels=1,
    )
    search, _ = proven(turns, *every_pair(turns))
    assert search.plans[-1].tables[0] is not None
    late_turn = merge(
        ops.BinaryKind.SUB, (NIBBLE, NIBBLE), (affine(1), affine(1)), quant(1, NIBBLE), (ops.Activation("Abs"),)
    )
    search, _ = proven(late_turn, *every_pair(late_turn))
    assert search.plans[0].factors == (1, -1)
    byte = merge(
        ops.BinaryKind.SUB, (BYTE, BYTE), (affine(0.3), affine(0.3)), quant(0.71, BYTE), (ops.Activation("Abs"),)
    )
    search, _ = proven(byte, *every_pair(byte))
    assert search.plans[0].factors == (1, -1)
    assert isinstance(search.plans[0].function, rescale.ThresholdTable)


def test_products_and_extremes() -> None:
    for channels in (1, 2):
        decodes = affine(0.013, 3), affine(0.02, -7)
        layer = merge(ops.BinaryKind.MUL, (BYTE, BYTE), decodes, quant(0.0171, BYTE), channels=channels)
        search, _ = proven(layer, *every_pair(layer))
        assert search.plans[0].zeros == (3, -7)
        assert search.plans[0].factors is None
    exact = merge(ops.BinaryKind.MUL, (BYTE, BYTE), (affine(0.5, 3), affine(0.25)), quant(0.7, BYTE))
    search, _ = proven(exact, *every_pair(exact))
    assert isinstance(search.plans[0].function, rescale.StepFunction)
    for kind in (ops.BinaryKind.MAX, ops.BinaryKind.MIN):
        layer = merge(kind, (BYTE, BYTE), (affine(0.1), affine(0.3)), quant(0.2, BYTE))
        search, choice = proven(layer, *every_pair(layer))
        assert choice.name == "table of {b, a}"


@pytest.mark.parametrize("dtype", ["int8", "int32"])
@pytest.mark.parametrize("kind", [ops.BinaryKind.ADD, ops.BinaryKind.SUB, ops.BinaryKind.MUL])
@pytest.mark.parametrize("convention", ops.Convention)
def test_integer_sums(convention: ops.Convention, kind: ops.BinaryKind, dtype: str) -> None:
    """int8 + int8, then requantized, as Deeploy does; in int8 the sum wraps."""
    ones = np.ones((1, 1), np.int64)
    shift = 31 if convention == ops.Convention.DOUBLE else 7
    end = ops.Requantize(convention, 77 * ones << (shift - 7), 64 * ones, shift * ones, ones, BYTE, "int8")
    layer = merge(kind, (BYTE, BYTE), (integers(dtype), integers(dtype)), end, channels=1)
    search, _ = proven(layer, *every_pair(layer))
    assert isinstance(search.plans[0].function, rescale.StepFunction)
    if dtype == "int32":
        casts = ((ops.Cast("int32"),), (ops.Cast("int32"), ops.Add(np.full((1, 1), 5, np.int32))))
        layer = merge(kind, (BYTE, BYTE), (integers("int8"), integers("int8")), end, branches=casts, channels=1)
        search, _ = proven(layer, *every_pair(layer))
        assert isinstance(search.plans[0].function, rescale.StepFunction)


def test_fixed_point_addition() -> None:
    """A quantizer that takes integers only, behind a wrapping sum."""
    end = ops.FixedAdd(np.full((1, 1), 3), True, Parameters(-3, 7, 2, 300, 250, 3, 13))
    layer = merge(ops.BinaryKind.ADD, (NIBBLE, NIBBLE), (integers("int8"), integers("int8", 100)), end)
    proven(layer, *every_pair(layer))


def test_channels_and_reachable_intervals() -> None:
    """Constants of each channel, and codes that a linear layer reaches in each."""
    r = np.random.default_rng(3)
    for kind in (ops.BinaryKind.ADD, ops.BinaryKind.MUL):
        channels = 5
        scale = r.uniform(0.1, 0.4, channels)
        decodes = affine(0.03 * scale), affine(0.05 * scale, 2)
        layer = merge(kind, (BYTE, NIBBLE), decodes, quant(0.01, NIBBLE), (RELU,), channels=channels)
        lo = r.integers(-120, 0, channels)
        reach = ((lo, lo + r.integers(9, 120, channels)), None)
        search, _ = proven(layer, *every_pair(layer, reach), reach)
        assert len(search.plans[0].tables) == 2
        assert specialize(layer, np.arange(channels), reach).sets == channels


def test_wide_sums_by_arithmetic() -> None:
    """Accumulators with too many pairs to try: exact in float32, so the sum is one integer."""
    r = np.random.default_rng(5)
    wide_type = IntType(-(1 << 20), (1 << 20) - 1)
    scale = np.array([[0.5, 0.25, 2.0**-9]])
    offset = np.array([[3, -77, 1000]])
    half = ops.Mul(np.full((1, 1), 0.5, f32))
    cases: list[tuple[BinaryMap, tuple[int, int] | None]] = []
    for kind in (ops.BinaryKind.ADD, ops.BinaryKind.SUB):
        sign = 1 if kind == ops.BinaryKind.ADD else -1
        left_operand, right_operand = Accumulator(1, offset, scale), Accumulator(1, 0 * offset, scale * 8)
        end = quant([0.3e4, 0.5e4, 70], BYTE)
        cases.append((merge(kind, (wide_type, wide_type), (left_operand, right_operand), end, (RELU,)), (1, 8 * sign)))
        cases.append(
            (merge(kind, (wide_type, wide_type), (left_operand, right_operand), end, (), ((), (half,))), (1, 4 * sign))
        )
    cases.append(
        (merge(ops.BinaryKind.ADD, (wide_type, wide_type), (Fixed(4), affine(0.75, 0.5)), quant(1e4, BYTE)), (1, 12))
    )
    cases.append((merge(ops.BinaryKind.MUL, (wide_type, BYTE), (Fixed(4), affine(0.75, 5)), quant(1e4, BYTE)), None))
    first = ops.Dequantize(np.full((1, 1), 0.25, f32), np.full((1, 1), 9))
    cases.append(
        (
            merge(
                ops.BinaryKind.ADD,
                (wide_type, BYTE),
                (integers("int32"), ThresholdCount(0.5, 1.0)),
                quant(1e4, BYTE),
                (),
                ((first,), ()),
            ),
            (1, 2),
        )
    )
    for layer, expected in cases:
        a, b = (r.integers(v.type.lo, v.type.hi + 1, (20000, 1)) + np.zeros(3, np.int64) for v in layer.sources)
        corners = np.array(
            [
                [x, y]
                for x in (layer.sources[0].type.lo, layer.sources[0].type.hi)
                for y in (layer.sources[1].type.lo, layer.sources[1].type.hi)
            ]
        )
        a, b = (np.concatenate([x, corners[:, [k]] + np.zeros(3, np.int64)]) for k, x in enumerate((a, b)))
        search, _ = proven(layer, a, b)
        assert [plan.factors for plan in search.plans] == [expected]
    # Not exact: 2^24 is exceeded, a decimal scale, an operation that knows the sign of zero.
    rounded = Accumulator(1, offset << 22, scale)
    for layer, reason in (
        (
            merge(ops.BinaryKind.ADD, (wide_type, wide_type), (rounded, Fixed(1)), quant(1e4, BYTE)),
            "operand a is not linear in its code, or is rounded",
        ),
        (
            merge(ops.BinaryKind.ADD, (wide_type, wide_type), (Fixed(1), affine(0.1)), quant(1e4, BYTE)),
            "operand b is not linear in its code, or is rounded",
        ),
        (
            merge(
                ops.BinaryKind.ADD,
                (wide_type, wide_type),
                (Fixed(1), Fixed(1)),
                quant(1, BYTE),
                (ops.Activation("Reciprocal"),),
            ),
            "-0.0",
        ),
        (
            merge(ops.BinaryKind.MAX, (wide_type, wide_type), (Fixed(1), Fixed(1)), quant(1, BYTE)),
            "max is no sum or product",
        ),
        (
            merge(ops.BinaryKind.ADD, (wide_type, wide_type), (Fixed(1), affine([1, 2, 3])), quant(1, BYTE)),
            "differs between channels",
        ),
    ):
        found_ = find(layer, np.arange(3))
        assert isinstance(found_, str)
        assert reason in found_
        assert "too many to try" in found_


def separates(codes: Array, fa: int, fb: int) -> bool:
    a, b = np.indices(codes.shape)
    t, code = (fa * a + fb * b).ravel(), codes.ravel()
    order = np.lexsort((code, t))
    t, code = t[order], code[order]
    return bool((np.diff(code) >= 0).all() and (np.diff(code)[np.diff(t) == 0] == 0).all())


@pytest.mark.sweep
@pytest.mark.parametrize("falling", [False, True])
def test_the_simplest_factors(falling: bool) -> None:
    """Against all small fractions, the simplest first; and none where none separates the codes."""
    r = np.random.default_rng(6)
    none = 0
    for _ in range(60):
        ratio = float(r.choice([1, 0.5, 3, r.uniform(0, 2), r.uniform(0, 2)])) * (-1 if falling else 1)
        a, b = np.indices((int(r.integers(2, 12)), int(r.integers(2, 12))))
        codes = np.floor((a + ratio * b) / r.uniform(0.5, 4) + r.uniform(-5, 5)).astype(np.int64)
        codes = np.clip(codes, *sorted(r.integers(-6, 9, 2)))
        if r.random() < 0.2:
            codes[tuple(r.integers(0, codes.shape))] += 1
        weights = factors([codes], falling)
        every = {Fraction(y, x) for x in range(1, 15) for y in range(-30, 31)}
        fits = [f for f in every if separates(codes, f.denominator, f.numerator)]
        if isinstance(weights, str):
            assert not fits
            none += 1
            continue
        assert separates(codes, *weights)
        first = (1, -1 if falling else 1)
        assert weights == first or (weights[0], abs(weights[1])) <= min(
            ((f.denominator, abs(f.numerator)) for f in fits), default=weights
        )
        assert Fraction(first[1]) not in fits or weights == first
    assert none > 3


def test_simplest_fractions() -> None:
    assert RatioBounds(Fraction(1, 3), Fraction(1, 2)).simplest() == Fraction(2, 5)
    assert RatioBounds(Fraction(-1, 2), Fraction(-1, 3)).simplest() == Fraction(-2, 5)
    assert RatioBounds(Fraction(31, 10), None).simplest() == 4
    assert RatioBounds(None, Fraction(-7, 2)).simplest() == -4
    assert RatioBounds(Fraction(-1, 5), Fraction(1, 5)).simplest() == 0
    assert RatioBounds(Fraction(-1, 5), None).simplest() == 1
    assert RatioBounds(Fraction(314, 100), Fraction(315, 100)).simplest() == Fraction(22, 7)


def test_one_pair_in_the_wrong_order() -> None:
    """A proof that no weights exist, of every set together."""
    a, b = np.indices((9, 9))
    flat = np.minimum(a + b, 9)
    unordered = np.minimum(a + 3 * b, 9)
    assert factors([flat], False) == (1, 1)
    assert factors([unordered], False) == (1, 3)
    assert isinstance(factors([flat, unordered], False), str)
    hole = flat.copy()
    hole[4, 4] = 2
    assert isinstance(factors([hole], False), str)


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = merge(ops.BinaryKind.ADD, (BYTE, BYTE), (affine(0.1), affine(0.3)), quant(0.2, BYTE))
    monkeypatch.setattr(module, "MAX_PAIRS", 1000)
    assert "65536 pairs of codes are too many to try" in str(find(layer, np.arange(3)))
    wide_type = IntType(-(1 << 8), (1 << 8) - 1)
    monkeypatch.setattr(module, "MAX_PAIRS", 1 << 25)
    layer = merge(ops.BinaryKind.MAX, (wide_type, wide_type), (affine(0.1), affine(0.3)), quant(0.2, BYTE))
    assert isinstance(find(layer, np.arange(3)), str)


def test_forced_realizations() -> None:
    layer = merge(ops.BinaryKind.ADD, (NIBBLE, NIBBLE), (affine(0.1), affine(0.3)), quant(0.2, BYTE))
    for kind in ("compare", "thresholds", "rank", "table"):
        _, choice = proven(layer, *every_pair(layer), preference=rescale.Preference(forced=kind))
        assert choice.name.startswith(f"{kind} of ")
        assert {t.name.split()[0] for t in choice.trials} == {kind}
    search = find(layer, np.arange(3))
    assert isinstance(search, rescale.JoinSearch)
    for kind in ("pair", "shift"):
        with pytest.raises(HlsgenError, match=f"'{kind}' is impossible here") as error:
            rescale.choose_join(search, search.index[None], rescale.Preference(forced=kind))
        assert "--realize" in str(error.value.diagnostics[0].hint)


def test_trials_name_the_sum() -> None:
    layer = merge(ops.BinaryKind.ADD, (NIBBLE, NIBBLE), (affine(0.1), affine(0.3)), quant(0.17, NIBBLE))
    search, choice = proven(layer, *every_pair(layer))
    assert choice.name in {t.name for t in choice.trials if t.lut is not None}
    assert {str(plan) for plan in search.plans} >= {"a + 3 b", "{b, a}"}
    assert str(replace(search.plans[0], factors=None, zeros=(3, -2))) == "(a - 3) (b + 2)"
    assert str(replace(search.plans[0], factors=(-1, 0))) == "- a"


def test_float32_units_take_one_tensor() -> None:
    """Asked for by name, they are refused for two tensors, with the reason."""
    model = ROOT / "examples" / "digits_cnn" / "digits_cnn.onnx"
    with pytest.raises(HlsgenError, match=r"HG037 residual_quant.*float32 units have one input tensor"):
        hlsgen.check(model, hlsgen.Options(realize={"": "float-units"}))
