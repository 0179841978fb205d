"""hlsgen.rescale.realize.float_scale: one float32 product in integers, against numpy's float32."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from hlsgen.ir import Affine
from hlsgen.ir.ops import IntQuant
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import Array, Rounding, int_type
from hlsgen.rescale.realize.float_scale import FloatScale, find
from hlsgen.rescale.realize.float_scale_match import candidate
from hlsgen.rescale.threshold_table import ThresholdTable


@dataclass(frozen=True)
class Chain:
    """clip(rne(float32(x + offset) * scale) + zero, low, high) on lo..hi; arrays (sets,)."""

    scale: Array
    offset: Array
    zero: Array
    lo: Array
    hi: Array
    low: int
    high: int

    def evaluate(self, x: Array) -> Array:
        """numpy's own float32."""
        product = (x + self.offset).astype(np.float32) * self.scale
        return np.clip(np.rint(product).astype(np.float64) + self.zero, self.low, self.high).astype(np.int64)

    def steps(self) -> ThresholdTable:
        code_levels = np.arange(self.low + 1, self.high + 1)[:, None]
        shape = (len(code_levels), len(self.lo))
        low, high = np.broadcast_to(self.lo, shape), np.broadcast_to(self.hi + 1, shape)
        while (low < high).any():
            middle = (low + high) >> 1
            reached = (self.evaluate(np.minimum(middle, self.hi)) >= code_levels) | (middle > self.hi)
            low, high = np.where(reached, low, np.minimum(middle + 1, high)), np.where(reached, middle, high)
        values = np.broadcast_to(self.low + np.arange(shape[0] + 1)[:, None], (shape[0] + 1, shape[1]))
        return ThresholdTable("test", self.lo, self.hi, low, values)

    def find(self) -> FloatScale:
        realization = find(self.steps(), self.scale, self.offset, self.zero)
        assert isinstance(realization, FloatScale), realization
        return realization


def chain(
    rng: np.random.Generator, sets: int, bits: int, signed: bool, codes: tuple[int, int], **fixed: float
) -> Chain:
    """Scales that spread the codes over much or little of the inputs; `spread` octaves between them."""
    bound = int_type(bits, signed)
    low, high = codes
    spread = fixed.get("spread", 3)
    scale = (high - low) / (bound.hi - bound.lo) * 2.0 ** rng.uniform(-1, spread, sets) * fixed.get("gain", 1.0)
    offset = rng.integers(-(1 << (bits - 2)), 1 << (bits - 2), sets) if fixed.get("offsets", 1) else 0
    return Chain(
        scale.astype(np.float32),
        np.full(sets, offset),
        rng.integers(low, high, sets, endpoint=True),
        np.full(sets, bound.lo),
        np.full(sets, bound.hi),
        low,
        high,
    )


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("codes", [(-128, 127), (0, 255), (-8, 7), (-32768, 32767)])
def test_every_16_bit_input(signed: bool, codes: tuple[int, int]) -> None:
    rng = np.random.default_rng(codes[1])
    x = np.arange(1 << 16)[:, None] - (32768 if signed else 0)
    for spread in (0, 12):
        target = chain(rng, 6, 16, signed, codes, spread=spread)
        assert (target.find().apply(x) == target.evaluate(x)).all()


@pytest.mark.sweep
def test_ties_that_float32_makes() -> None:
    """Scales with products that only float32's rounding puts on a tie, from either side, or that lie
    beside one: rounding the exact product differs from it, and so does another d."""
    rng = np.random.default_rng(3)
    x = np.arange(-(1 << 16), 1 << 16)[:, None]
    scale = np.float32(rng.integers(3, 1 << 9, 24) / rng.integers(1 << 12, 1 << 14, 24))
    sets = len(scale)
    ends = np.full(sets, -(1 << 16)), np.full(sets, (1 << 16) - 1)
    zero = np.arange(sets) % 2
    target = Chain(scale, np.zeros(sets, np.int64), zero, *ends, -(1 << 14), 1 << 14)
    realization = target.find()
    truth = target.evaluate(x)
    assert (realization.apply(x) == truth).all()
    exact = np.clip(np.rint(x * scale.astype(np.float64)).astype(np.int64) + zero, -(1 << 14), 1 << 14)
    up, down = ((sign * (np.abs(truth - zero) - np.abs(exact - zero)) > 0).sum(axis=0) for sign in (1, -1))
    assert (up > 0).sum() > 5
    assert (down > 0).sum() > 5


@pytest.mark.parametrize(
    "bits, gain", [(24, 1.0), (28, 0.3), (32, 1.0), (32, 2.0**14), (40, 1.0), (40, 0.01), (40, 2.0**20)]
)
def test_wide_inputs(bits: int, gain: float) -> None:
    """Corners, inputs around powers of two and ties of the first rounding, and random ones."""
    rng = np.random.default_rng(bits)
    for signed, offsets in ((True, 1), (False, 0), (True, 0)):
        target = chain(rng, 12, bits, signed, (-128, 127), gain=gain, offsets=offsets)
        realization = target.find()
        assert realization.bits <= bits + 8
        powers = 1 << np.arange(bits + 1)[:, None]
        near_powers = np.concatenate([sign * powers + d for sign in (1, -1) for d in range(-3, 4)]) - target.offset
        # Half units of 24 significant bits, and one beside.
        sizes = rng.integers(1 << 23, 1 << 24, (400, 12)) << rng.integers(0, bits - 23, (400, 12))
        ties = (
            sizes
            + (np.left_shift(1, np.maximum(0, np.log2(sizes).astype(np.int64) - 24)))
            + rng.integers(-1, 2, (400, 12))
        )
        spread = rng.integers(target.lo, target.hi, (2000, 12))
        around = target.steps().corners()
        around = np.concatenate([around + d for d in range(-4, 5)])
        x = np.concatenate([near_powers, ties - target.offset, -ties - target.offset, spread, around])
        x = np.clip(x, target.lo, target.hi)
        assert (realization.apply(x) == target.evaluate(x)).all()


def test_the_first_rounding_counts() -> None:
    """Thresholds above 2^24 that are where float32(x) and not where x is."""
    scale = np.float32([2.0**-26, 2.0**-27 * 1.5])
    zeros = np.zeros(2, np.int64)
    target = Chain(scale, zeros, zeros + 3, zeros - (1 << 31), zeros + (1 << 31) - 1, -128, 127)
    realization = target.find()
    assert realization.bits > 24
    table = target.steps().table
    exact = np.ceil((np.arange(-127, 128)[:, None] - 3.5) / scale)
    assert (np.abs(table - exact)[60:190] > 1).any()
    x = table + np.arange(-70, 70)[:, None, None]
    assert (realization.apply(x) == target.evaluate(x)).all()


def test_scales_with_few_bits() -> None:
    """Powers of two, whole numbers, and both among others."""
    rng = np.random.default_rng(1)
    scale = np.float32([1, 3, 0.5, 2.0**-9, 1 / 3, 96.0, 5 / 16])
    sets = len(scale)
    target = replace(chain(rng, sets, 12, True, (-128, 127)), scale=scale)
    x = np.arange(-2048, 2048)[:, None]
    assert (target.find().apply(x) == target.evaluate(x)).all()
    for k in range(sets):
        fields = {name: value[[k]] for name, value in vars(target).items() if isinstance(value, np.ndarray)}
        alone = replace(target, **fields)
        realization = alone.find()
        assert (realization.apply(x) == alone.evaluate(x)).all()
        assert realization.left[0] == 0 or scale[k] >= 1


def test_constant_sets_and_short_intervals() -> None:
    """Sets that never change, on either side of 0, one input only, one threshold only."""
    lo, hi = np.array([500, -900, 3, -7, 40]), np.array([900, -500, 3, 7, 60])
    scale = np.float32([0.001, 0.001, 0.7, 0.06, 0.01])
    zeros = np.zeros(5, np.int64)
    target = Chain(scale, zeros, zeros, lo, hi, -100, 100)
    realization = target.find()
    x = np.clip(np.arange(-1000, 1000)[:, None], lo, hi)
    assert (realization.apply(x) == target.evaluate(x)).all()
    assert len(np.unique(target.evaluate(x)[:, 0])) == 2
    # The input below the only threshold, -16, has one bit more than the threshold.
    single_set = Chain(np.float32([1 / 31]), zeros[:1], zeros[:1], zeros[:1] - 20, zeros[:1] + 3, -1, 0)
    assert single_set.find().bits == 5
    # Nothing changes at all.
    still = Chain(scale[:1], zeros[:1], zeros[:1], lo[:1] + 100, hi[:1], 0, 1)
    assert (still.find().apply(np.arange(600, 901)[:, None]) == 1).all()


def test_refusals() -> None:
    rng = np.random.default_rng(2)
    target = chain(rng, 3, 16, True, (-128, 127))
    steps = target.steps()

    def reason(scale: Array = target.scale, offset: Array = target.offset, zero: Array = target.zero) -> str:
        return str(find(steps, scale, offset, zero))

    second, third = np.array([0, 1, 0]), np.array([0, 0, 2])
    assert reason(offset=target.offset + second).startswith("set 1: rne(float32(")
    assert reason(zero=target.zero + third).startswith("set 2: rne(float32(")
    assert reason(scale=target.scale * np.float32([1.5, 1, 1])).startswith("set 0: rne(")
    for bad in (0, -1, np.inf, np.nan, 1e-40):
        assert reason(scale=np.float32([1, bad, 1])) == "a scale that is no positive normal float32"
    assert reason(scale=target.scale.astype(np.float64)) == "a scale that is no positive normal float32"
    assert "to the left" in reason(scale=np.float32([1, 2.0**-60, 1]))
    assert reason(zero=target.zero + (1 << 22)) == "codes of more than 22 bits"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("zero", [1e19, -1e30, np.inf, np.nan, 0.5])
@pytest.mark.parametrize("where", ["source", "quantizer"])
def test_no_candidate_for_zero_points_that_are_no_int64(zero: float, where: str) -> None:
    ones, zeros = np.ones(1, np.float32), np.zeros(1, np.float32)
    type_, huge_zero = int_type(8, True), np.array([zero], np.float32)
    ends = np.array([type_.lo]), np.array([type_.hi])
    index = np.zeros(1, np.int64)

    def function(source_zero: Array, quantizer_zero: Array) -> StepFunction:
        end = IntQuant(ones, quantizer_zero, type_, Rounding.ROUND)
        return StepFunction("f", Affine(ones, source_zero), (), end, index, *ends, type_, type_)

    assert candidate(function(zeros, zeros)) is not None
    assert candidate(function(huge_zero, zeros) if where == "source" else function(zeros, huge_zero)) is None
