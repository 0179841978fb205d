"""Multipliers and bounds against exact fractions and the cases where runtimes differ."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from hlsgen.numerics.tflite.multipliers import (
    Multiplier,
    Runtime,
    activation_bounds,
    add_multipliers,
    float64_multiplier,
    layer_ratio,
    mean_multiplier,
    quantized_multiplier,
    single_multiplier,
    xnnpack_add_multipliers,
    xnnpack_bounds,
)


def test_a_multiplier_is_the_nearest_of_31_bits() -> None:
    rng = np.random.default_rng(1)
    for real in [*(10.0 ** rng.uniform(-8, 4, 500)), 0.5, 1.0, 1 - 2.0**-40, -0.3, 2.0**-31]:
        multiplier = quantized_multiplier(real)
        unit = Fraction(2) ** (multiplier.exponent - 31)
        assert (1 << 30) <= abs(multiplier.value) < 1 << 31
        assert abs(Fraction(real) - multiplier.value * unit) <= unit / 2


def test_multipliers_at_the_ends() -> None:
    assert quantized_multiplier(0.0) == Multiplier(0, 0) == quantized_multiplier(2.0**-33)
    assert quantized_multiplier(1 - 2.0**-40) == Multiplier(1 << 30, 1)
    assert quantized_multiplier(0.5 + 2.0**-32) == Multiplier((1 << 30) + 1, 0)  # A tie, away from zero.
    assert quantized_multiplier(-0.5 - 2.0**-32) == Multiplier(-(1 << 30) - 1, 0)


def test_int16_layers_have_multipliers_of_15_bits() -> None:
    assert single_multiplier(Multiplier((1 << 31) - 1, -3)) == (0x7FFF, 18)
    assert single_multiplier(Multiplier((1 << 30) + (1 << 15), 0)) == ((1 << 14) + 1, 15)


def test_a_float64_is_a_multiplier_of_53_bits() -> None:
    for real in (0.1, 1.0, 2.0**-40, 1 / 3):
        multiplier, shift = float64_multiplier(real)
        assert multiplier < 1 << 53
        assert Fraction(real) == Fraction(multiplier) / 2**shift


@pytest.mark.parametrize(
    ("operator", "dtype", "scales", "single"),
    [
        ("FULLY_CONNECTED", "int8", 1, False),
        ("FULLY_CONNECTED", "uint8", 2, False),
        ("CONV_2D", "int8", 1, False),
        ("CONV_2D", "uint8", 1, True),
    ],
)
def test_the_product_that_is_rounded(operator: str, dtype: str, scales: int, single: bool) -> None:
    data, result = np.float32(0.1), np.float32(0.3)
    weights = np.full(scales, 0.0123, np.float32)
    ratio = layer_ratio(operator, dtype, data, weights, result)
    product = np.float64(data * weights[0]) if single else np.float64(data) * np.float64(weights[0])
    assert (ratio == product / np.float64(result)).all()
    assert np.float64(data * weights[0]) != np.float64(data) * np.float64(weights[0])


def test_bounds_round_away_or_to_even() -> None:
    kernels = activation_bounds("RELU6", Runtime.TFLM, "int8", 4.0, 2)
    xnnpack = xnnpack_bounds("RELU6", "int8", 4.0, 2)
    assert (kernels.lo, kernels.hi) == (2, 4) == (xnnpack.lo, xnnpack.hi)
    assert activation_bounds("RELU6", Runtime.TFLM, "int8", 4.0, 1).hi == 3
    assert xnnpack_bounds("RELU6", "int8", 4.0, 1).hi == 2
    assert activation_bounds("RELU_N1_TO_1", Runtime.TFLM, "int8", 2.0, 0).lo == -1
    assert xnnpack_bounds("RELU_N1_TO_1", "int8", 2.0, 0).lo == 0
    assert (activation_bounds("NONE", Runtime.TFLM, "uint8", 2.0, 3).hi) == 255
    with pytest.raises(KeyError):
        activation_bounds("TANH", Runtime.TFLM, "int8", 1.0, 0)


def test_sums_keep_their_bits() -> None:
    multipliers = add_multipliers("int8", 0.5, 0.25, 0.5)
    assert multipliers.left_shift == 20
    assert (multipliers.first, multipliers.second) == (Multiplier(1 << 30, 0), Multiplier(1 << 30, -1))
    assert multipliers.result == Multiplier(1 << 30, -18)
    assert add_multipliers("int16", 0.5, 0.25, 0.5).left_shift == 15
    assert xnnpack_add_multipliers(1.5, 0.75, 1.0) == (3 << 19, 3 << 18, 20)
    assert xnnpack_add_multipliers(256.0, 1.0, 1.0) is None


def test_a_mean_divides_the_multiplier() -> None:
    assert mean_multiplier(1.0, 1.0, 3) == Multiplier((1 << 31) // 3, 0)
    assert mean_multiplier(1.0, 1.0, 1) == Multiplier(1 << 30, 1)
