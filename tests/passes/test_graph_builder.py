"""Pending operations of a tensor become few layers with the same values."""

from __future__ import annotations

import numpy as np
import pytest
from random_ops import random_op, random_quant
from small_models import Array, chain_of, const, evaluate, frames, model_of, quant

from hlsgen.diagnostics import Collector, HlsgenError
from hlsgen.interpreter import graph as reference
from hlsgen.ir import Affine, Binary, Graph, IntegerEncoding, MatMul, Model, Op, Shape, Value
from hlsgen.ir.ops import Activation, BinaryKind, Dequantize, IntQuant, Max, Min, Mul, QuantizeLinear
from hlsgen.numerics.fixed import IntType
from hlsgen.passes import InputMode, lower
from hlsgen.passes.graph_builder import GraphBuilder
from hlsgen.passes.pending_value import PendingValue, bounded

V = (1, 4)
WEIGHT = (MatMul(np.arange(12).reshape(3, 4) - 6, np.full(3, 0.25, np.float32)), (1, 3))


def lowered(model: Model) -> Graph:
    return lower(model, InputMode("float32"), Collector())


def kinds(graph: Graph) -> list[str]:
    return [type(layer).__name__ for layer in graph.layers]


def outputs(graph: Graph, x: Array) -> Array:
    """(frames, elements) of the last value after the tail."""
    codes = reference.encode_input(graph, x)
    y = reference.decode_output(graph, [codes, *reference.run_layers(graph, codes)][-1])
    return y.reshape(len(x), -1)


def assert_same(model: Model, seed: int) -> Graph:
    graph, x = lowered(model), frames(model, seed)
    assert (outputs(graph, x) == evaluate(model, x).reshape(len(x), -1)).all(), seed
    return graph


def test_random_chains_keep_their_values() -> None:
    """Operations and one to three quantizers in any order are one Map, up to the last quantizer."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        ops: list[Op] = []
        for _ in range(int(rng.integers(1, 4))):
            ops += [random_op(rng, 2, 4) for _ in range(int(rng.integers(0, 3)))]
            ops.append(random_quant(rng, 2, 4))
        graph = assert_same(chain_of(V, *ops, random_op(rng, 2, 4)), seed)
        assert len(graph.tail) == 1
        assert set(kinds(graph)) == {"Map"}


@pytest.mark.parametrize("kind", list(BinaryKind))
def test_random_branches_keep_their_values(kind: BinaryKind) -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        steps: list[tuple[Op, Shape, tuple[int, ...]]] = []
        ends = []
        for _ in range(2):
            steps.append((quant(2, float(2.0 ** rng.integers(-3, 1))), V, (0,)))
            steps.append((random_op(rng, 2, 4), V, (len(steps),)))
            ends.append(len(steps))
        steps += [
            (Binary(kind), V, (ends[0], ends[1])),
            (random_op(rng, 2, 4), V, (5,)),
            (random_quant(rng, 2, 4), V, (6,)),
        ]
        assert kinds(assert_same(model_of(V, *steps), seed)) == ["Map", "Map", "BinaryMap"]


def test_exact_arithmetic_in_front_of_a_layer_is_folded_into_its_producer() -> None:
    graph = assert_same(chain_of(V, quant(2), Max(const(0, 2)), WEIGHT, quant(2)), 0)
    assert kinds(graph) == ["Map", "Linear", "Map"]


def test_it_is_not_folded_into_codes_that_others_use() -> None:
    steps: list[tuple[Op, Shape, tuple[int, ...]]] = [(quant(2), V, (0,)), (Max(const(0, 2)), V, (1,))]
    square = (MatMul(np.eye(4, dtype=np.int64), np.ones(4, np.float32)), V)
    steps += [(*square, (2,)), (quant(2), V, (3,)), (Binary(BinaryKind.ADD), V, (1, 4)), (quant(2), V, (5,))]
    graph = assert_same(model_of(V, *steps), 1)
    assert kinds(graph) == ["Map", "Map", "Linear", "Map", "BinaryMap"]


def test_what_is_no_multiple_of_one_scale_is_refused() -> None:
    with pytest.raises(HlsgenError, match="HG030 s2: float operation Tanh is between"):
        lowered(chain_of(V, quant(2), Activation("Tanh"), WEIGHT, quant(2)))


def test_problems_behind_a_wrong_step_are_found_too() -> None:
    tanh = Activation("Tanh")
    square = (MatMul(np.eye(4, dtype=np.int64), np.ones(4, np.float32)), V)
    problems = Collector()
    with pytest.raises(HlsgenError) as error:
        lower(chain_of(V, quant(2), tanh, square, quant(2), tanh, square, quant(2)), InputMode("float32"), problems)
    assert [(d.code, d.node) for d in error.value.diagnostics] == [("HG030", "s2"), ("HG030", "s5")]


def test_an_assumed_value_has_no_layer() -> None:
    codes = Value(V, IntType(-128, 127), Affine(const(1, 2), const(0, 2)))
    builder = GraphBuilder(Collector(), codes)
    assumed = builder.assume(codes)
    mapped = builder.fold_into_producer("m", assumed, [], quant(2))
    assert (assumed.index, mapped.index, list(builder.layers)) == (1, 2, [2])


def test_names_of_layers_differ() -> None:
    codes = Value(V, IntType(-128, 127), Affine(const(1, 2), const(0, 2)))
    builder = GraphBuilder(Collector(), codes)
    for _ in range(3):
        builder.add_map("m", PendingValue(0, codes), [], quant(2))
    assert [layer.name for layer in builder.layers.values()] == ["m", "m (2)", "m (3)"]


INT8 = QuantizeLinear(const(1, 2), const(0, 2, np.int64), IntType(-128, 127), "int8")


@pytest.mark.parametrize(
    "op, bounds, type_, count",
    [
        (INT8, [Max(const(0, 2, np.int8)), Min(const(6, 2, np.int8))], IntType(0, 6), 2),
        (INT8, [Max(const(0, 2))], IntType(-128, 127), 0),
        (INT8, [Max(const([0, 1, 0, 0], 2, np.int8))], IntType(-128, 127), 0),
        (INT8, [Mul(const(2, 2, np.int8)), Max(const(0, 2, np.int8))], IntType(-128, 127), 0),
        (quant(2), [Max(const(0, 2, np.int8))], IntType(-128, 127), 0),
    ],
    ids=["integers", "floats", "channels that differ", "behind something else", "a quantizer of floats"],
)
def test_bounds_inside_a_quantizer(op: QuantizeLinear | IntQuant, bounds: list[Op], type_: IntType, count: int) -> None:
    quantizer, bound_count = bounded(op, bounds)
    assert isinstance(quantizer, QuantizeLinear | IntQuant)
    assert (quantizer.type, bound_count) == (type_, count)


def test_a_dequantizer_is_part_of_the_reading() -> None:
    """Codes of integers get a scale without a layer; not with a zero point that an encoding has already."""
    scale = Dequantize(const(0.5, 2), const(3, 2, np.int64))
    source = Value(V, IntType(-128, 127), IntegerEncoding("int8", const(0, 2, np.int64)))
    builder = GraphBuilder(Collector(), source)
    flushed = builder.flush(PendingValue(0, source, (("d", scale),)))
    assert isinstance(flushed.value.encoding, Affine)
    assert not flushed.named_ops
    moved = Value(V, source.type, IntegerEncoding("int8", const(1, 2, np.int64)))
    unchanged = builder.flush(PendingValue(0, moved, (("d", scale),)))
    assert unchanged.value is moved
    assert len(unchanged.named_ops) == 1
