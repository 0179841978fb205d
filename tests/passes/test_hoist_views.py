"""Reshapes and transposes move before elementwise operations: constants follow the elements."""

from __future__ import annotations

import numpy as np
import pytest
from random_ops import random_op, random_quant
from small_models import chain_of, const, evaluate, frames, quant

from hlsgen.diagnostics import Collector
from hlsgen.interpreter import graph as reference
from hlsgen.ir import Graph, Model, Op, Reshape, Shape, Transpose
from hlsgen.ir.evaluate import apply
from hlsgen.ir.ops import Add, MultiThreshold
from hlsgen.passes import InputMode, lower
from hlsgen.passes.hoist_views import relabel

#: Shapes with the same elements, for reshapes from each to each.
SHAPES: list[Shape] = [(4, 6), (24,), (2, 2, 6), (4, 3, 2), (1, 4, 6), (6, 4), (8, 3), (2, 12, 1)]


@pytest.mark.parametrize("old_shape", SHAPES)
@pytest.mark.parametrize("new_shape", SHAPES)
def test_reshaped_constants(old_shape: Shape, new_shape: Shape) -> None:
    """Constants of every form: for all elements, along one axis, along some, for each element."""
    x = np.arange(24.0).reshape(old_shape)
    for axes in range(1 << len(old_shape)):
        constant_shape = tuple(n if axes >> a & 1 else 1 for a, n in enumerate(old_shape))
        op = Add(np.arange(float(np.prod(constant_shape))).reshape(constant_shape))
        relabelled = relabel(op, Reshape(), old_shape, new_shape)
        assert relabelled.value.ndim == len(new_shape)
        assert (apply(relabelled, x.reshape(new_shape)) == apply(op, x).reshape(new_shape)).all()
        assert relabelled.value.size == 1 or axes


@pytest.mark.parametrize("seed", range(20))
def test_transposed_constants(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 5, int(rng.integers(2, 5))))
    perm = tuple(int(p) for p in rng.permutation(len(shape)))
    constant_shape = tuple(n if rng.random() < 0.5 else 1 for n in shape)
    op = MultiThreshold(rng.normal(0, 1, (3, *constant_shape)), 1.0, 0.0)
    x = rng.normal(0, 1, shape)
    relabelled = relabel(op, Transpose(perm), shape, tuple(shape[p] for p in perm))
    assert relabelled.thresholds.shape == (3, *(constant_shape[p] for p in perm))
    assert (apply(relabelled, x.transpose(perm)) == apply(op, x).transpose(perm)).all()


def test_constants_that_are_alike_stay_small() -> None:
    assert relabel(Add(const(3, 2)), Reshape(), (4, 6), (24,)).value.shape == (1,)
    assert relabel(Add(np.full((4, 6), 3.0)), Reshape(), (4, 6), (24,)).value.shape == (1,)
    assert relabel(Add(const(range(6), 2)), Reshape(), (4, 6), (2, 2, 6)).value.shape == (1, 1, 6)


def lowered(model: Model) -> Graph:
    return lower(model, InputMode("float32"), Collector())


def kinds(graph: Graph) -> list[str]:
    return [type(layer).__name__ for layer in graph.layers]


def test_random_models_keep_their_values() -> None:
    """Views anywhere among operations: each moves before the function that ends after it."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        shape: Shape = (1, 2, 3, 4)
        steps: list[Op | tuple[Op, Shape]] = []
        for _ in range(int(rng.integers(2, 5))):
            steps.append(random_op(rng, 4, shape[-1]))
            if rng.random() < 0.6:
                perm = tuple(int(p) for p in rng.permutation(4))
                reshaped = tuple(int(shape[p]) for p in rng.permutation(4))
                turned = rng.random() < 0.5
                shape = tuple(shape[p] for p in perm) if turned else reshaped
                steps.append((Transpose(perm) if turned else Reshape(), shape))
        steps.append(random_quant(rng, 4, shape[-1]))
        model = chain_of((1, 2, 3, 4), *steps)
        graph = lowered(model)
        assert kinds(graph)[-1:] == ["Map"]
        assert set(kinds(graph)[:-1]) <= {"View"}
        x = frames(model, seed)
        values = reference.decode_output(
            graph,
            [reference.encode_input(graph, x), *reference.run_layers(graph, reference.encode_input(graph, x))][-1],
        )
        assert (values.reshape(len(x), -1) == evaluate(model, x).reshape(len(x), -1)).all(), seed


def test_a_reshape_to_the_same_shape_is_no_layer() -> None:
    assert kinds(lowered(chain_of((2, 3), (Reshape(), (2, 3)), quant(2)))) == ["Map"]
    assert kinds(lowered(chain_of((2, 3), (Reshape(), (3, 2)), quant(2)))) == ["View", "Map"]


def test_views_behind_the_last_layer_are_left_to_the_host() -> None:
    graph = lowered(chain_of((2, 3), quant(2), quant(2, 0.5), (Transpose((1, 0)), (3, 2))))
    assert kinds(graph) == ["Map"]
    assert [type(step.op) for step in graph.tail] == [Transpose]
