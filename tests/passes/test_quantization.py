"""Grids: quantizers that reproduce values exactly, tried against all codes one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from small_models import const

from hlsgen.ir import Affine, IntegerEncoding, Value
from hlsgen.ir.evaluate import apply, apply_binary, decode, decoding, quantize
from hlsgen.ir.ops import Activation, Add, BinaryKind, Cast, Elementwise, Max, Min, Mul, Trunc
from hlsgen.numerics.fixed import IntType, Rounding
from hlsgen.passes.quantization import code_interval, grid, grid_of_channels, grid_of_pair, order_kept

Array = NDArray[Any]


def value(scale: Any = 0.25, zero: Any = 0, lo: int = -128, hi: int = 127) -> Value:
    return Value((1, 4), IntType(lo, hi), Affine(const(scale, 2), const(zero, 2)))


def reals(source: Value, ops: list[Elementwise]) -> Array:
    """The values of all codes in all channels, (codes, 1, channels)."""
    codes = np.arange(source.type.lo, source.type.hi + 1).reshape(-1, 1, 1)
    x = decode(source.encoding, np.broadcast_to(codes, (len(codes), *source.shape)))
    for op in ops:
        x = apply(op, x)
    return x


@pytest.mark.parametrize("seed", range(20))
def test_a_grid_reproduces_every_value(seed: int) -> None:
    """Arithmetic with binary fractions gives multiples of one scale."""
    rng = np.random.default_rng(seed)
    source = value(float(2.0 ** rng.integers(-4, 2)), int(rng.integers(-5, 6)))
    choices: list[Elementwise] = [
        Add(const(0.5 * int(rng.integers(-4, 5)), 2)),
        Mul(const(float(rng.integers(-3, 0)) / 4, 2)),
        Max(const(0, 2)),
        Min(const(2, 2)),
        Activation("Abs"),
    ]
    ops = [choices[int(i)] for i in rng.integers(0, len(choices), 3)]
    quantizer = grid(source, ops)
    assert quantizer is not None
    x = reals(source, ops)
    assert (decode(decoding(quantizer), quantize(quantizer, x)) == x).all()


@pytest.mark.parametrize(
    "ops",
    [
        [Activation("Tanh")],
        [Add(const(0.1, 2))],
        [Mul(const([1, 2, 3, 4], 2))],
        [Mul(const(np.inf, 2))],
        [Add(const(1 << 24, 2))],
    ],
    ids=["a curve", "an offset off the grid", "channels that differ", "infinite values", "too many steps"],
)
def test_no_grid(ops: list[Elementwise]) -> None:
    assert grid(value(), []) is not None
    assert grid(value(), ops) is None


def test_no_grid_of_too_many_codes() -> None:
    assert grid(value(lo=0, hi=(1 << 20) - 1), []) is not None
    assert grid(value(lo=0, hi=1 << 20), []) is None


@pytest.mark.parametrize("one_scale", [False, True])
def test_a_grid_of_channels(one_scale: bool) -> None:
    source = value([0.25, 0.5, 1, 0.25], [0, 1, 2, 3])
    quantizer = grid_of_channels(source, one_scale)
    assert quantizer is not None
    assert not np.any(quantizer.zero_point)
    assert np.unique(quantizer.scale).size == (1 if one_scale else 3)
    x = reals(source, [])
    assert (decode(decoding(quantizer), quantize(quantizer, x)) == x).all()


def test_no_grid_of_channels_without_a_common_scale() -> None:
    assert grid_of_channels(value([0.3, 0.7, 1, 1]), True) is None
    assert (
        grid_of_channels(Value((1, 4), IntType(0, 9), IntegerEncoding("int8", np.zeros((1, 1), np.int64))), True)
        is None
    )


@pytest.mark.parametrize("kind", [kind for kind in BinaryKind if kind is not BinaryKind.DIV])
def test_a_grid_of_two_tensors(kind: BinaryKind) -> None:
    operand_a, operand_b = value(0.25, 1, -8, 7), value(0.5, 0, 0, 5)
    quantizer = grid_of_pair(kind, (operand_a, []), (operand_b, [Add(const(1, 2))]), [Max(const(0, 2))])
    assert quantizer is not None
    for a in range(-8, 8):
        for b in range(6):
            x = np.maximum(apply_binary(kind, np.float32((a - 1) * 0.25), np.float32(b * 0.5 + 1)), np.float32(0))
            assert decode(decoding(quantizer), quantize(quantizer, x.reshape(1, 1))).item() == x


def test_no_grid_of_two_tensors() -> None:
    assert grid_of_pair(BinaryKind.ADD, (value(0.3), []), (value(0.7), []), []) is None
    assert grid_of_pair(BinaryKind.ADD, (value([1, 2, 3, 4]), []), (value(1), []), []) is None
    assert grid_of_pair(BinaryKind.ADD, (value(lo=0, hi=2000), []), (value(lo=0, hi=2000), []), []) is None


@pytest.mark.parametrize("factor", [0.5, -0.5])
def test_interval_of_codes_of_a_trunc(factor: float) -> None:
    ones = const(1, 2)
    trunc = Trunc(ones, 0 * ones, const(4, 2), 0 * ones, ones, None, Rounding.FLOOR)
    ops: list[Elementwise] = [Mul(const(factor, 2))]
    codes = quantize(trunc, reals(value(), ops))
    assert code_interval(value(), ops, trunc) == IntType(int(codes.min()), int(codes.max()))


def test_codes_keep_the_order_of_values() -> None:
    assert order_kept(value(), [Mul(const(2, 2)), Add(const(1, 2))])
    assert not order_kept(value(), [Mul(const(-2, 2))])
    assert not order_kept(value(), [Max(const(0, 2))])
    assert not order_kept(value(), [Mul(const([1, 2, 3, 4], 2))])
    assert not order_kept(value(), [Cast("int8")])
