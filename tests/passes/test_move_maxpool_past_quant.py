"""Maximum pools move past functions that never fall, and past no other; the oracles are qonnx and numpy's int8."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from image_models import Builder, Tensor
from integer_models import chain, evaluated
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto
from oracles import Qonnx
from random_ops import random_op, random_quant
from small_models import chain_of, evaluate, frames

from hlsgen import ir
from hlsgen.diagnostics import HlsgenError
from hlsgen.ir.ops import Activation, Add, Cast, Elementwise, FloatQuant, IntQuant, Max, Min, Mul, MultiThreshold, Trunc
from hlsgen.numerics.fixed import IntType, Rounding
from hlsgen.passes import lower_windows, move_maxpool_past_quant, quantization

Array = NDArray[Any]
GENERAL = "qonnx.custom_op.general"
SHAPE = (1, 2, 8, 10)


def quant_pool_quant(op: str, **attributes: Any) -> ModelProto:
    """IntQuant, Mul, MaxPool 2x2, an activation, IntQuant."""
    b = Builder(1)
    x = b.input(*SHAPE, symbolic=False).name

    def quant(name: str, scale: float) -> str:
        parts = b.const(scale), b.const(0), b.const(6)
        return b.node("IntQuant", name, *parts, domain=GENERAL, signed=1, narrow=0, rounding_mode="ROUND")

    y = b.node("Mul", b.declared(quant(x, 0.125), *SHAPE), b.const(1.5))
    y = b.node(op, b.node("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2]), **attributes)
    pooled = (1, 2, 4, 5)
    return b.model(Tensor(quant(b.declared(y, *pooled), 2.0**-5), pooled, 6, 1.0))


@pytest.mark.parametrize("alpha", [-0.3, 0.3])
def test_hard_sigmoid_behind_a_pool(alpha: float, tmp_path: Path) -> None:
    model = quant_pool_quant("HardSigmoid", alpha=alpha, beta=0.5)
    x = np.random.default_rng(0).normal(0, 2, SHAPE).astype(np.float32)
    y = evaluated(model, x, tmp_path)
    assert len(np.unique(y)) > 5
    assert (y == Qonnx(model).one(x)).all()


def integer_pool(added: int) -> ModelProto:
    """int8: Add 5, MaxPool 2x2, Add, Cast, IntQuant (as QuantizeLinear)."""
    return chain(
        ("Add", np.int8(5)),
        ("MaxPool", {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("Add", np.int8(added)),
        ("Cast", {"to": TensorProto.FLOAT}),
        ("QuantizeLinear", np.float32(2), np.int8(0)),
        source=np.int8,
        shape=SHAPE,
    )


@pytest.mark.parametrize("added", [100, 0])
def test_integer_additions_that_wrap(added: int, tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(-128, 128, SHAPE).astype(np.int8)
    pooled = (x + np.int8(5)).reshape(1, 2, 4, 2, 5, 2).max(axis=(3, 5))
    expected = np.round((pooled + np.int8(added)).astype(np.float32) / 2).clip(-128, 127)
    y = evaluated(integer_pool(added), x, tmp_path)
    assert (np.abs(y.astype(int)) > 60).any()
    assert (y == expected).all()


# --------------------------------------------------------------------------- the pass alone

ONE = np.ones((1, 1, 1, 1), np.float32)
QUANT = IntQuant(ONE, ONE * 0, IntType(-8, 7), Rounding.ROUND)
POOL = ir.Pool(ir.Reduction.MAX, ir.Window((2, 2), (2, 2)))


def moves(*following: Elementwise, dtype: str = "float32", first: Elementwise | None = None) -> bool:
    """True if the pass moves a pool of an image (1, 4, 4, 4) past these operations."""
    items: list[Any] = [first or Mul(ONE), POOL, *following]
    shapes = [(1, 4, 4, 4), *[(1, 2, 2, 4)] * (1 + len(following))]
    steps = [ir.Step(f"s{i}", op, shape, (i,)) for i, (op, shape) in enumerate(zip(items, shapes, strict=True))]
    model = ir.Model("m", "x", (1, 4, 4, 4), dtype, True, None, tuple(steps), "y", "float32")
    rewritten = move_maxpool_past_quant.move_past_quantizers(model).steps
    places = [isinstance(step.op, ir.Pool) for step in rewritten]
    assert places.index(True) in (1, len(rewritten) - 1)
    return places[-1]


def channels(*values: float) -> Array:
    return np.array(values, np.float32).reshape(1, 1, 1, -1)


def test_pools_move_behind_what_never_falls() -> None:
    assert moves(QUANT)
    assert moves(Add(channels(1, -2, 3, 4)), Mul(channels(1, 2, 3, 4)), Max(ONE), Activation("Tanh"), QUANT)
    assert moves(Activation("HardSigmoid", 0.3, 0.5), QUANT)
    assert moves(Mul(-ONE), Mul(channels(-1, -2, -3, -4)), QUANT)
    assert moves(
        Add((100 * ONE).astype(np.int8)), Cast("float32"), QUANT, dtype="int8", first=Min((20 * ONE).astype(np.int8))
    )


@pytest.mark.parametrize(
    "op",
    [
        Mul(channels(1, 2, -1, 3)),
        Mul(channels(1, 0, 1, 1)),
        Mul(ONE * np.inf),
        Add(ONE * np.inf),
        Max(ONE * np.nan),
        Activation("HardSigmoid", -0.3, 0.5),
        Activation("Abs"),
        Activation("Elu", -1.0),
        Activation("Selu", 1.6, -1.0),
        MultiThreshold(ONE[None], -1.0, 0.0),
        Cast("int8"),
        FloatQuant(ONE, 3, -6, 240.0, True, Rounding.DOWN),
        Add(np.array([1, 2, 3, 4], np.float32).reshape(1, 4, 1, 1)[:, :2]),
    ],
)
def test_pools_stay_in_front_of_what_may_fall(op: Elementwise) -> None:
    """Also of constants that differ from row to row, here the rows of a pool's result."""
    assert not moves(op, QUANT)


def test_integers_that_may_wrap_stay_behind_a_pool() -> None:
    for op in (Add((100 * ONE).astype(np.int8)), Mul((2 * ONE).astype(np.int8))):
        assert not moves(op, Cast("float32"), QUANT, dtype="int8", first=Max((-128 * ONE).astype(np.int8)))
    assert not moves(Cast("int8"), Cast("float32"), QUANT, dtype="int32", first=Max((0 * ONE).astype(np.int32)))


def test_constants_of_one_row_stay_with_a_pool_that_keeps_the_size() -> None:
    """A pool of stride 1 with padding: the sizes of the constants alone would allow to move it."""
    pool = ir.Pool(ir.Reduction.MAX, ir.Window((3, 3), (1, 1), (1, 1, 1, 1)))
    rows = Add(np.arange(4, dtype=np.float32).reshape(1, 4, 1, 1))
    items = [Mul(ONE), pool, rows, QUANT]
    steps = [ir.Step(f"s{i}", op, (1, 4, 4, 4), (i,)) for i, op in enumerate(items)]
    model = ir.Model("m", "x", (1, 4, 4, 4), "float32", True, None, tuple(steps), "y", "float32")
    assert [step.op for step in move_maxpool_past_quant.move_past_quantizers(model).steps] == items


def test_constants_follow_a_transpose_before_the_pool() -> None:
    """The axis of the channels is another one there, though all axes are equally long."""
    addend = channels(1, 2, 3, 4)
    items = [Mul(ONE), ir.Transpose((0, 2, 3, 1)), POOL, Add(addend), QUANT]
    shapes = [(1, 4, 4, 4)] * 2 + [(1, 2, 2, 4)] * 3
    steps = [ir.Step(f"s{i}", op, shape, (i,)) for i, (op, shape) in enumerate(zip(items, shapes, strict=True))]
    model = ir.Model("m", "x", (1, 4, 4, 4), "float32", True, None, tuple(steps), "y", "float32")
    rewritten = move_maxpool_past_quant.move_past_quantizers(model).steps
    assert [type(step.op) for step in rewritten] == [Mul, Add, IntQuant, ir.Transpose, ir.Pool]
    assert rewritten[1].op.value.shape == (1, 4, 1, 1)  # type: ignore[union-attr]
    assert (rewritten[1].op.value.ravel() == addend.ravel()).all()  # type: ignore[union-attr]


# --------------------------------------------------------------------------- codes of Trunc


def test_interval_of_codes_after_an_addition_that_wraps() -> None:
    """The interval's ends alone do not determine the results of a wrapping addition: 100 is in -128..127 + 100, and 127 too."""
    ones = np.ones(1, np.float32)
    trunc = Trunc(ones, ones * 0, ones, ones * 0, ones, None, Rounding.FLOOR)
    value = ir.Value((1, 1), IntType(-100, 100), ir.IntegerEncoding("int8", np.zeros(1, np.int64)))
    full_interval = quantization.code_interval(value, [Add(np.array([100], np.int8)), Cast("float32")], trunc)
    assert (full_interval.lo, full_interval.hi) == (-128, 127)
    plain = quantization.code_interval(value, [Add(np.array([27], np.int8)), Cast("float32")], trunc)
    assert (plain.lo, plain.hi) == (-73, 127)


def test_interval_of_many_codes_needs_a_direction() -> None:
    """More codes than are tried: the ends decide where the chain is monotone, else nothing is known."""
    ones = np.ones(1, np.float32)
    trunc = Trunc(ones, ones * 0, ones, ones * 0, ones, None, Rounding.FLOOR)
    value = ir.Value((1, 1), IntType(-(1 << 22), 1 << 22), ir.IntegerEncoding("int32", np.zeros(1, np.int64)))
    interval = quantization.code_interval(value, [Cast("float32"), Mul(-ones / 4)], trunc)
    assert (interval.lo, interval.hi) == (-(1 << 20), 1 << 20)
    for op in (Add(np.array([(1 << 31) - 9], np.int32)), Cast("int16")):
        assert quantization.code_interval(value, [op, Cast("float32")], trunc).bits == 32


def test_a_pool_of_sums_that_wrap_is_refused() -> None:
    """The largest sum is not the largest of the numbers that are left of it in int32."""
    ends = IntType(-100, 100)
    lower_windows.check_order("pool", ir.Value(SHAPE, ends, ir.IntegerEncoding("int32", np.array([(1 << 31) - 101]))))
    with pytest.raises(HlsgenError, match="HG033"):
        lower_windows.check_order(
            "pool", ir.Value(SHAPE, ends, ir.IntegerEncoding("int32", np.array([(1 << 31) - 100])))
        )
    with pytest.raises(HlsgenError, match="HG022"):
        lower_windows.check_order("pool", ir.Value(SHAPE, ends, ir.Affine(np.float32([-1]), np.float32([0]))))


# --------------------------------------------------------------------------- random Models


@pytest.mark.parametrize("rising", [False, True])
def test_random_models_keep_their_values(rising: bool) -> None:
    """An operation, a pool of any window, one to three operations and a quantizer, with a Transpose or without."""
    moved = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        height, width, c = (int(n) for n in rng.integers(2, 6, 3))
        kernel = int(rng.integers(1, height + 1)), int(rng.integers(1, width + 1))
        pads = tuple(int(rng.integers(0, k)) for k in (*kernel, *kernel))
        window = ir.Window(kernel, (int(rng.integers(1, 3)), int(rng.integers(1, 3))), (1, 1), pads)  # type: ignore[arg-type]
        size = (1, *window.size(height, width), c)
        turned = rng.random() < 0.3
        start = (1, c, height, width) if turned else (1, height, width, c)
        view: list[tuple[ir.Op, ir.Shape]] = [(ir.Transpose((0, 2, 3, 1)), (1, height, width, c))] if turned else []
        ops = [random_op(rng, 4, c, rising) for _ in range(int(rng.integers(0, 4)))]
        first = Mul(np.full((1, 1, 1, 1), 1.5, np.float32))
        model = chain_of(start, first, *view, (ir.Pool(ir.Reduction.MAX, window), size), *ops, random_quant(rng, 4, c))
        rewritten = move_maxpool_past_quant.move_past_quantizers(model)
        moved += [s.name for s in rewritten.steps] != [s.name for s in model.steps] or rewritten.steps[
            -1
        ].op is not model.steps[-1].op
        x = frames(model, seed)
        assert (evaluate(rewritten, x) == evaluate(model, x)).all(), seed
    assert moved > 30 if rising else 5 < moved < 35
