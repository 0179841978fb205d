"""Functions of codes before maximum pools, borders, moves, Concats and joins become ranks of their values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from random_ops import random_op, random_quant
from small_models import Array, chain_of, const, evaluate, frames, model_of, quant

from hlsgen import ir
from hlsgen.diagnostics import Collector, HlsgenError
from hlsgen.interpreter import equivalence
from hlsgen.interpreter import graph as reference
from hlsgen.ir.evaluate import apply
from hlsgen.ir.ops import Activation, Add, BinaryKind, Cast, Elementwise, Lookup, Mul, QuantizeLinear
from hlsgen.numerics.fixed import IntType
from hlsgen.passes import InputMode, lower
from hlsgen.passes.rank_codes import Unranked, ranks, values_of_chain, values_of_pair

Steps = list[tuple[ir.Op, ir.Shape, tuple[int, ...]]]
IMAGE = (1, 3, 4, 2)
POOL = ir.Pool(ir.Reduction.MAX, ir.Window((2, 2), (1, 1), (1, 1), (0, 0, 0, 0)))
POOLED = (1, 2, 3, 2)
FALLS = Mul(const(-0.7, 4))


def lowered(model: ir.Model) -> ir.Graph:
    return lower(model, InputMode("float32"), Collector())


def assert_same(model: ir.Model, seed: int = 0) -> ir.Graph:
    """The graph's results are numpy's, and the Model's step by step; NaN is the same as NaN."""
    graph, x = lowered(model), frames(model, seed)
    codes = reference.encode_input(graph, x)
    outputs = reference.decode_output(graph, [codes, *reference.run_layers(graph, codes)][-1])
    assert np.array_equal(outputs.reshape(len(x), -1), evaluate(model, x).reshape(len(x), -1)), seed
    comparison = equivalence.compare(model, graph, codes)
    assert comparison.difference is None, (seed, comparison.difference)
    return graph


def ranked(graph: ir.Graph) -> bool:
    return any(isinstance(op, Lookup) for layer in graph.layers for op in getattr(layer, "ops", ()))


def move(rng: np.random.Generator, shape: ir.Shape) -> tuple[ir.Op, ir.Shape]:
    """A maximum pool, border, part or repetition of an image, and the shape of its result."""
    n, height, width, channels = shape
    kind = int(rng.integers(5))
    if kind < 2:
        step, pad = int(rng.integers(1, 3)), int(rng.integers(2))
        window = ir.Window((2, 2), (step, step), (1, 1), (0, pad, pad, 0))
        return ir.Pool(ir.Reduction.MAX, window), (
            n,
            (height + pad - 2) // step + 1,
            (width + pad - 2) // step + 1,
            channels,
        )
    if kind == 2:
        value = float(rng.choice([-1.5, 0.0, 0.3]))
        return ir.Pad((1, 0, 0, 2), float(np.float32(value))), (n, height + 1, width + 2, channels)
    if kind == 3:
        return ir.Repeat(2, 1), (n, 2 * height, width, channels)
    ranges = ((0, n, 1), (1, height, 1), (0, width, 2), (0, channels, 1))
    return ir.Slice(ranges), (n, height - 1, (width + 1) // 2, channels)


def by_pixel(rng: np.random.Generator, shape: ir.Shape) -> Elementwise:
    return Add(rng.uniform(-1, 1, shape).astype(np.float32))


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_chains(first: int) -> None:
    """Quantizer, functions, a move, functions, another move, functions, quantizer; constants per channel or pixel."""
    used = 0
    for seed in range(first, first + 20):
        rng = np.random.default_rng(seed)
        steps: list[ir.Op | tuple[ir.Op, ir.Shape]] = [random_quant(rng, 4, 2)]
        shape: ir.Shape = (1, 4, 5, 2)
        for turn in range(2):
            steps += [random_op(rng, 4, 2) for _ in range(int(rng.integers(1, 4)))]
            if turn == 0 and rng.random() < 0.4:
                steps.append(by_pixel(rng, shape))
            steps.append(move(rng, shape))
            shape = steps[-1][1]  # type: ignore[index]
        steps += [random_op(rng, 4, 2), random_quant(rng, 4, 2)]
        try:
            used += ranked(assert_same(chain_of((1, 4, 5, 2), *steps), seed))
        except HlsgenError as error:  # values that are codes of many bits
            assert "can have more than" in str(error), seed  # noqa: PT017
    assert used >= 6


@pytest.mark.parametrize("kind", [kind for kind in BinaryKind if kind is not BinaryKind.DIV])
def test_random_pairs_before_a_pool_a_border_and_a_join(kind: BinaryKind) -> None:
    for seed in range(4):
        rng = np.random.default_rng([seed, 1])
        steps: Steps = []
        ends = []
        for _ in range(2):
            steps.append((quant(4, float(rng.uniform(0.2, 0.9)), bits=4), IMAGE, (0,)))
            steps.append((random_op(rng, 4, 2), IMAGE, (len(steps),)))
            ends.append(len(steps))
        steps.append((ir.Binary(kind), IMAGE, (ends[0], ends[1])))
        shape: ir.Shape = IMAGE
        if seed < 2:
            op, shape = (POOL, POOLED) if seed else (ir.Pad((1, 0, 0, 1), -0.5), (1, 4, 5, 2))
            steps.append((op, shape, (len(steps),)))
        else:
            second_kind = BinaryKind.MAX if seed == 2 else BinaryKind.MUL
            steps.append((ir.Binary(second_kind), shape, (len(steps), ends[seed % 2])))
        steps.append((Activation("Abs"), shape, (len(steps),)))
        steps.append((random_quant(rng, 4, 2), shape, (len(steps),)))
        assert_same(model_of(IMAGE, *steps), seed)


@pytest.mark.parametrize("axis", [1, 3])
@pytest.mark.parametrize("channels", ["alike", "each"])
def test_parts_of_a_concat_have_one_table(axis: int, channels: str) -> None:
    """One part plain codes, one through a function, one the product of two; then a pool on all of it."""
    factor = const(-0.7 if channels == "alike" else [0.3, -0.9], 4)
    steps: Steps = [(quant(4, 0.3, bits=4), IMAGE, (0,)), (quant(4, 0.5, bits=3), IMAGE, (0,))]
    steps += [
        (Mul(factor), IMAGE, (1,)),
        (Activation("Sigmoid"), IMAGE, (3,)),
        (ir.Binary(BinaryKind.MUL), IMAGE, (1, 2)),
    ]
    concat_shape = tuple(3 * n if a == axis else n for a, n in enumerate(IMAGE))
    pooled = (1, concat_shape[1] - 1, concat_shape[2] - 1, concat_shape[3])
    steps += [
        (ir.Concat(axis), concat_shape, (1, 4, 5)),
        (Activation("Softsign"), concat_shape, (6,)),
        (POOL, pooled, (7,)),
    ]
    steps += [(Add(const(0.1, 4)), pooled, (8,)), (quant(4, 0.05), pooled, (9,))]
    assert ranked(assert_same(model_of(IMAGE, *steps)))


@pytest.mark.parametrize("border", [-0.7, 0.0, 0.3, 9.0])
def test_a_border_has_one_code_in_all_channels(border: float) -> None:
    """Its rank differs from channel to channel: the tables are moved until it does not."""
    per_channel = (Mul(const([0.3, -2.0], 4)), Add(const([0.1, 1.7], 4)), Activation("Tanh"))
    value = float(np.float32(border))
    model = chain_of(
        IMAGE,
        quant(4, 0.5, bits=3),
        *per_channel,
        (ir.Pad((1, 1, 1, 0), value), (1, 5, 5, 2)),
        (POOL, (1, 4, 4, 2)),
        Mul(const([1.0, -1.0], 4)),
        quant(4, 0.01, bits=10),
    )
    assert ranked(assert_same(model))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_integers_wrap_before_and_after(dtype: str) -> None:
    ones, zero = const(1, 4), np.zeros((1, 1, 1, 1), np.int64)
    info = np.iinfo(dtype)
    type_ = IntType(max(int(info.min), -9000), min(int(info.max), 9000))
    model = chain_of(
        IMAGE,
        QuantizeLinear(ones * np.float32(0.002), zero, type_, dtype),
        Mul(const([3, 7], 4, dtype)),
        Add(const(100, 4, dtype)),
        (POOL, POOLED),
        Mul(const(3, 4, dtype)),
        Cast("float32"),
        quant(4, 16.0),
    )
    assert ranked(assert_same(model))


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_float_types_are_kept(dtype: str) -> None:
    ops = [Cast(dtype), Activation("Tanh"), Mul(const(-0.7, 4, dtype))]
    following = [Mul(const(-0.1, 4, dtype)), Cast("float32"), quant(4, 0.03)]
    graph = assert_same(chain_of(IMAGE, quant(4, 0.5, bits=5), *ops, (POOL, POOLED), *following))
    assert ranked(graph) == (dtype == "float64")  # codes of 2^-24 are all numbers of float16 from -1 to 1


def test_the_largest_sum_goes_into_another_one() -> None:
    """It is not the sum of the largest operands, and no operand of an exact sum."""
    steps: Steps = [(quant(4, scale, bits=4), IMAGE, (0,)) for scale in (0.3, 0.17)]
    steps += [(ir.Binary(BinaryKind.SUB), IMAGE, (1, 2)), (POOL, POOLED, (3,)), (quant(4, 0.41, bits=4), IMAGE, (0,))]
    steps += [(POOL, POOLED, (5,)), (ir.Binary(BinaryKind.ADD), POOLED, (4, 6)), (quant(4, 0.2), POOLED, (7,))]
    assert_same(model_of(IMAGE, *steps))


def test_a_chain_that_is_codes_has_no_ranks() -> None:
    for op in (Mul(const(-2, 4)), Activation("Abs"), Activation("Tanh")):
        assert ranked(
            assert_same(chain_of(IMAGE, quant(4), op, (ir.Pad((1, 1, 1, 1), 0.0), (1, 5, 6, 2)), quant(4)))
        ) == (op.kind == "Tanh" if isinstance(op, Activation) else False)


def refused(*ops: ir.Op, following: Elementwise = FALLS) -> str:
    with pytest.raises(HlsgenError) as error:
        lowered(chain_of(IMAGE, *ops, (POOL, POOLED), following, quant(4)))
    assert [d.code for d in error.value.diagnostics] == ["HG030"]
    return str(error.value)


def test_what_has_no_ranks_is_refused() -> None:
    assert "can be NaN" in refused(quant(4), Activation("Sqrt"))
    fine_quantizer = quant(4, 2.0**-10, bits=20)
    assert f"can have more than {1 << 16} values" in refused(fine_quantizer, FALLS, Activation("Softsign"))
    zeros = (quant(4), Activation("HardSwish"), Mul(const(-0.7, 4)))
    assert "can be -0.0 and 0.0" in refused(*zeros, following=Activation("Reciprocal"))
    assert ranked(assert_same(chain_of(IMAGE, *zeros, (POOL, POOLED), FALLS, quant(4))))


def test_a_problem_leaves_nothing_behind() -> None:
    """A failed attempt with codes leaves no layer and no problem."""
    steps: Steps = [(quant(4), IMAGE, (0,)), (Activation("Abs"), IMAGE, (1,)), (Activation("Tanh"), IMAGE, (1,))]
    image_shape = (1, 3, 4, 4)
    pooled = (1, 2, 3, 4)
    steps += [
        (ir.Concat(3), image_shape, (2, 3)),
        (POOL, pooled, (4,)),
        (FALLS, pooled, (5,)),
        (quant(4, 0.1), pooled, (6,)),
    ]
    graph = assert_same(model_of(IMAGE, *steps))
    names = [layer.name for layer in graph.layers]
    assert names == ["s1", "s4 (input)", "s4 (input) (2)", "s4", "s5", "s7"]
    assert not graph.notes


# --------------------------------------------------------------------------- tables


def codes_of(lo: int, hi: int, scale: float = 1.0) -> ir.Value:
    return ir.Value(IMAGE, IntType(lo, hi), ir.Affine(const(scale, 4), const(0, 4)))


def both_ways(parts: list[Array], border: float | None = None) -> None:
    """Ranks map back to every value of every channel, rise with the values, and include the border's rank."""
    rank_ops = ranks(parts, 4, border, distinguishes_zeros=False)
    for part in parts:
        x = part.T[:, None, None, None, :]
        place = apply(rank_ops.to, x)
        assert (apply(rank_ops.back, place) == x).all()
        order = np.argsort(np.broadcast_to(x, place.shape), axis=0)
        assert (np.diff(np.take_along_axis(place, order, 0), axis=0) >= 0).all()
    if border is not None:
        assert (apply(rank_ops.back, np.full((1, 1, 1, 1), rank_ops.border)) == border).all()


def test_ranks_and_back() -> None:
    rng = np.random.default_rng(0)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        channels = int(rng.integers(1, 5))
        dtype = rng.choice(["float32", "float16", "float64", "int8", "uint8", "int64"])
        parts: list[Any] = []
        for _ in range(int(rng.integers(1, 3))):
            count = int(rng.integers(1, 9))
            parts.append(rng.integers(0, 9, (channels if rng.random() < 0.7 else 1, count)).astype(dtype))
        both_ways(parts, float(rng.integers(0, 12)) if rng.random() < 0.6 else None)


def test_infinities_have_ranks() -> None:
    both_ways([np.array([[-np.inf, 0, 1, np.inf], [2, 2, 2, np.inf]], np.float32)], border=1.0)


def test_values_of_chains_and_pairs() -> None:
    ops = [Mul(const([1, -2], 4))]
    assert values_of_chain(codes_of(-1, 1), ops).tolist() == [[-1, 0, 1], [2, 0, -2]]
    pair = values_of_pair(BinaryKind.MAX, (codes_of(0, 1), []), (codes_of(-1, 0, 0.5), ops), [])
    assert [sorted(set(channel)) for channel in pair.tolist()] == [[0, 1], [0, 1]]
    with pytest.raises(Unranked, match="too many pairs"):
        values_of_pair(BinaryKind.MAX, (codes_of(0, 4095), []), (codes_of(0, 4095), []), [])
    assert math.prod(values_of_chain(codes_of(0, 9), []).shape) == 10


def test_lookup() -> None:
    op = Lookup(np.array([[1, 5], [2, 6], [4, 8]], np.int16))
    x = np.array([[-1, np.nan], [0, 2], [1.0, 1], [7, 3]], np.float32)
    assert apply(op, x).tolist() == [[1, 5], [1, 8], [2, 6], [4, 8]]
    assert apply(op, x).dtype == np.int16
    assert apply(op, np.array([[0], [2]], np.int8)).tolist() == [[1, 5], [4, 8]]


@pytest.mark.parametrize("zeros", [(-0.0, 0.0), (0.0, -0.0)])
def test_both_zeros_become_one(zeros: tuple[float, float]) -> None:
    values = np.array([[*zeros, 1]], np.float32)
    assert not np.signbit(ranks([values], 4, None, distinguishes_zeros=False).back.values).any()
    alone = np.array([[-0.0]], np.float32)
    assert np.signbit(ranks([alone], 4, None, distinguishes_zeros=True).back.values).all()
    with pytest.raises(Unranked, match="apart"):
        ranks([values], 4, None, distinguishes_zeros=True)
