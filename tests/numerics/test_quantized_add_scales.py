"""Quantized add: integers derived from the float scales of an ONNX model."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from hlsgen.numerics.quantized_add import Parameters, derive, greatest_error

CODES = range(-128, 128)
A, B = (axis.ravel() for axis in np.meshgrid(CODES, CODES, indexing="ij"))


def exact_sum(scales: tuple[float, float, float], zeros: tuple[int, int, int], inside: bool) -> list[int]:
    """The codes that exact arithmetic gives; `inside`: the zero point is added before rounding."""
    ratio_a, ratio_b = (Fraction(s) / Fraction(scales[2]) for s in scales[:2])
    bottom = ratio_a.denominator * ratio_b.denominator
    first = [int(ratio_a * bottom) * (code - zeros[0]) for code in CODES]
    second = [int(ratio_b * bottom) * (code - zeros[1]) for code in CODES]
    zero_before, zero_after = (zeros[2], 0) if inside else (0, zeros[2])
    codes = []
    for x in first:
        for y in second:
            quotient, remainder = divmod(x + y + zero_before * bottom, bottom)
            quotient += 2 * remainder > bottom or (2 * remainder == bottom and quotient % 2 == 1)
            codes.append(max(-128, min(127, quotient + zero_after)))
    return codes


def random_quantization(rng: random.Random, kind: int = 0) -> tuple[tuple[float, float, float], tuple[int, int, int]]:
    """float32 scales with ratios from 1/64 to 64; kind 1: with an exact one, 2: small integers."""
    a, b, c = (float(np.float32(2.0 ** rng.uniform(-9, -3))) for _ in range(3))
    if kind == 1:
        bits = rng.randint(1, 14)
        a = c * (2 * rng.randrange(1 << bits) + 1) / 2**bits
    elif kind == 2:
        a, b, c = (float(rng.randint(1, 50)) for _ in range(3))
    return (a, b, c), (rng.randint(-128, 127), rng.randint(-128, 127), rng.randint(-128, 127))


def derived(
    scales: tuple[float, float, float], zeros: tuple[int, int, int], *, round_first: bool = False
) -> Parameters:
    (a, b, c), (x, y, z) = scales, zeros
    return derive(a, x, b, y, c, z, round_first=round_first)


@pytest.mark.sweep
def test_derived_add_is_within_its_bound() -> None:
    """Codes differ by one at most, and only where the exact sum is that close to a tie."""
    rng = random.Random(8)
    for k in range(180):
        scales, zeros = random_quantization(rng, k % 3)
        parameters = derived(scales, zeros)
        bound = greatest_error(parameters, *scales)
        assert bound < Fraction(1, 2)
        assert bound == greatest_error(derived(scales, zeros, round_first=True), *scales)
        y = (scales[0] * (A - zeros[0]) + scales[1] * (B - zeros[1])) / scales[2]
        want = np.clip(np.rint(y + zeros[2]), -128, 127)
        off = np.abs(parameters.apply(A, B) - want)
        to_tie = np.abs(y - np.floor(y) - 0.5)
        assert off.max() <= 1
        assert (to_tie[off > 0] <= float(bound) + 1e-9).all()


@pytest.mark.parametrize("seed", [0, 8, 12, 19])
def test_nothing_comes_closer(seed: int) -> None:
    """Every so and shift, with both neighbours of the exact multipliers, in exact fractions."""
    rng = random.Random(seed)
    scales, zeros = random_quantization(rng)
    least_error = greatest_error(derived(scales, zeros), *scales)
    ratios = [Fraction(s) / Fraction(scales[2]) for s in scales[:2]]
    corners = list(product(*((-128 - zero, 127 - zero) for zero in zeros[:2])))
    for so, shift in product(range(1, 256), range(-3, 32)):
        unit = Fraction(so) / Fraction(2) ** shift
        low = [int(ratio / unit) for ratio in ratios]
        if max(low) > 65535 or max(low) < 256:
            continue
        for s0, s1 in product(*((s, s + 1) for s in low)):
            if max(s0, s1) > 65535 or max(abs(s0 * u + s1 * v) for u, v in corners) * so * 2 ** max(-shift, 0) >= 2**31:
                continue
            e, f = s0 * unit - ratios[0], s1 * unit - ratios[1]
            assert max(abs(e * u + f * v) for u, v in corners) >= least_error * (1 - Fraction(1, 10**9)), (
                s0,
                s1,
                so,
                shift,
            )


@pytest.mark.parametrize("round_first", [False, True])
@pytest.mark.parametrize(
    "exponents", [(0, 0), (-1, -1), (-1, -2), (0, -3), (-4, 2), (1, -2), (3, 5), (-7, -7), (-3, 9)]
)
def test_powers_of_two_are_exact(exponents: tuple[int, int], round_first: bool) -> None:
    rng = random.Random(sum(exponents))
    for odd in (1, 1, 3, 11):
        scales = (2.0 ** exponents[0] * odd * 0.75, 2.0 ** exponents[1] * 0.75, 0.75)
        zeros = (rng.randint(-128, 127), rng.randint(-128, 127), rng.choice([-127, -3, 1, 2, 0, 77, 127]))
        parameters = derived(scales, zeros, round_first=round_first)
        assert parameters.apply(A, B).tolist() == exact_sum(scales, zeros, inside=not round_first)


def test_large_ratio_stays_in_bounds() -> None:
    """No room for a moved zero point in 16 bits: QuantizeLinear's ties."""
    scales, zeros = (40001.0, 2.0, 2.0), (3, 4, 5)
    assert derived(scales, zeros).apply(A, B).tolist() == exact_sum(scales, zeros, inside=False)


def test_derivation_rejects() -> None:
    for arguments, message in [
        ((0.0, 0, 1.0, 0, 1.0, 0), "not positive"),
        ((1.0, 0, -1.0, 0, 1.0, 0), "not positive"),
        ((1.0, 0, 1.0, 0, float("inf"), 0), "not positive"),
        ((1.0, 128, 1.0, 0, 1.0, 0), "a is not within"),
        ((1e5, 0, 1.0, 0, 1.0, 0), "half a code"),
        ((1e300, 0, 1.0, 0, 1e-300, 0), "half a code"),
    ]:
        with pytest.raises(ValueError, match=message):
            derive(*arguments)
