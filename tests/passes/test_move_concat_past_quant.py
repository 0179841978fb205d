"""Quantizers after a Concat move before it if its parts are not quantized, and only then."""

from __future__ import annotations

import numpy as np
import pytest
from random_ops import random_op, random_quant
from small_models import const, evaluate, frames, model_of, quant

from hlsgen.ir import Binary, Concat, MatMul, Model, Op, Reshape, Shape
from hlsgen.ir.ops import BinaryKind, Mul
from hlsgen.passes.move_concat_past_quant import move_past_quantizers

Steps = list[tuple[Op, Shape, tuple[int, ...]]]
V = (1, 4)


def kinds(model: Model) -> list[str]:
    return [type(step.op).__name__ for step in model.steps]


@pytest.mark.parametrize("axis", [1, 3])
def test_random_models_keep_their_values(axis: int) -> None:
    """Two or three parts, operations on the whole with constants for each channel, a quantizer, a second user."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        shape = (1, 2, 3, 4)
        count = int(rng.integers(2, 4))
        steps: Steps = [(random_op(rng, 4, 4), shape, (0,)) for _ in range(count)]
        concat_shape = tuple(n * count if a == axis else n for a, n in enumerate(shape))
        steps.append((Concat(axis), concat_shape, tuple(range(1, count + 1))))
        for _ in range(int(rng.integers(0, 3))):
            steps.append((random_op(rng, 4, concat_shape[-1]), concat_shape, (len(steps),)))
        steps.append((random_quant(rng, 4, concat_shape[-1]), concat_shape, (len(steps),)))
        if seed % 2:
            steps.append((quant(4, 0.5), concat_shape, (count + 1,)))
            steps.append((Binary(BinaryKind.ADD), concat_shape, (len(steps) - 1, len(steps))))
        model = model_of(shape, *steps)
        rewritten = move_past_quantizers(model)
        assert kinds(rewritten)[-1] != "IntQuant"
        assert kinds(rewritten).count("IntQuant") >= count
        x = frames(model, seed)
        assert (evaluate(rewritten, x) == evaluate(model, x)).all(), seed


def raw(*following: tuple[Op, Shape], parts: tuple[Op, Op]) -> Model:
    steps: Steps = [(op, V, (0,)) for op in parts]
    steps.append((Concat(1), (1, 8), (1, 2)))
    for op, shape in following:
        steps.append((op, shape, (len(steps),)))
    return model_of(V, *steps)


MUL = Mul(const(1.5, 2))
WEIGHT = MatMul(np.ones((8, 8), np.int64), np.ones(8, np.float32))


def test_it_fires_if_one_part_is_not_quantized() -> None:
    model = raw((quant(2), (1, 8)), parts=(quant(2), MUL))
    assert kinds(move_past_quantizers(model)) == ["IntQuant", "Mul", "IntQuant", "IntQuant", "Concat"]


@pytest.mark.parametrize(
    "model",
    [
        raw((quant(2), (1, 8)), parts=(quant(2), quant(2, 0.5))),
        raw((MUL, (1, 8)), parts=(MUL, MUL)),
        raw((WEIGHT, (1, 8)), (quant(2), (1, 8)), parts=(MUL, MUL)),
        raw((Reshape(), (8, 1)), (quant(2), (8, 1)), parts=(MUL, MUL)),
    ],
    ids=["quantized parts", "no quantizer", "a layer before the quantizer", "a view before the quantizer"],
)
def test_it_does_not_fire(model: Model) -> None:
    assert kinds(move_past_quantizers(model)) == kinds(model)


def test_it_does_not_fire_for_what_joins_two_tensors() -> None:
    steps: Steps = [(MUL, V, (0,)), (MUL, V, (0,)), (Concat(1), (1, 8), (1, 2))]
    steps += [(Binary(BinaryKind.ADD), (1, 8), (3, 3)), (quant(2), (1, 8), (4,))]
    model = model_of(V, *steps)
    assert kinds(move_past_quantizers(model)) == kinds(model)
