"""A Concat moves past a binary operation with another tensor if its parts are not quantized, and only then."""

from __future__ import annotations

import numpy as np
import pytest
from random_ops import random_op
from small_models import const, evaluate, frames, model_of, quant

from hlsgen.ir import Binary, Concat, Model, Op, Shape
from hlsgen.ir.ops import BinaryKind, Mul
from hlsgen.passes.move_concat_past_join import move_past_binaries

Steps = list[tuple[Op, Shape, tuple[int, ...]]]
V, WIDE = (1, 4), (1, 8)
MUL = Mul(const(1.5, 2))
ADD = Binary(BinaryKind.ADD)


def kinds(model: Model) -> list[str]:
    return [type(step.op).__name__ for step in model.steps]


@pytest.mark.parametrize("axis", [1, 3])
@pytest.mark.parametrize("kind", [BinaryKind.ADD, BinaryKind.SUB, BinaryKind.MUL, BinaryKind.MAX])
def test_random_models_keep_their_values(axis: int, kind: BinaryKind) -> None:
    """Two or three parts, operations on the whole, a joint with another Concat on either side, a quantizer."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        shape, count = (1, 2, 3, 4), int(rng.integers(2, 4))
        concat_shape = tuple(n * count if a == axis else n for a, n in enumerate(shape))
        steps: Steps = [(random_op(rng, 4, 4), shape, (0,)) for _ in range(count)]
        steps.append((Concat(axis), concat_shape, tuple(range(1, count + 1))))
        for _ in range(int(rng.integers(0, 3))):
            steps.append((random_op(rng, 4, concat_shape[-1]), concat_shape, (len(steps),)))
        last = len(steps)
        steps += [(quant(4, 0.5 + n), shape, (0,)) for n in range(count)]
        steps.append((Concat(axis), concat_shape, tuple(range(last + 1, last + 1 + count))))
        operand = len(steps)
        steps.append((Binary(kind), concat_shape, (last, operand) if seed % 2 else (operand, last)))
        steps.append((quant(4, 0.5), concat_shape, (len(steps),)))
        model = model_of(shape, *steps)
        rewritten = move_past_binaries(model)
        assert kinds(rewritten)[-2:] == ["Concat", "IntQuant"]
        assert kinds(rewritten).count("Binary") == count
        x = frames(model, seed)
        np.testing.assert_array_equal(evaluate(rewritten, x), evaluate(model, x), str(seed))


def joined(parts: tuple[Op, Op], *following: Op) -> Model:
    steps: Steps = [*((op, V, (0,)) for op in parts), (Concat(1), WIDE, (1, 2)), (quant(2), V, (0,))]
    steps += [(Concat(1), WIDE, (4, 4)), (ADD, WIDE, (3, 5))]
    steps += [(op, WIDE, (6 + n,)) for n, op in enumerate(following)]
    return model_of(V, *steps)


def test_it_fires_if_one_part_is_not_quantized() -> None:
    rewritten = move_past_binaries(joined((quant(2), MUL), quant(2)))
    assert kinds(rewritten) == [
        "IntQuant",
        "Mul",
        "IntQuant",
        "Concat",
        "Slice",
        "Binary",
        "Slice",
        "Binary",
        "Concat",
        "IntQuant",
    ]


@pytest.mark.parametrize(
    "model", [joined((quant(2), quant(2, 0.5)), quant(2)), joined((MUL, MUL)), joined((MUL, MUL), MUL)]
)
def test_elsewhere_it_does_nothing(model: Model) -> None:
    assert move_past_binaries(model).steps == model.steps
