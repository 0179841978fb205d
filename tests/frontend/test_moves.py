"""Gather, Split, Concat with constants and other moves of elements between quantizers equal onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import ort
import pytest
from builds import assert_verified, checked
from image_steps import agrees, by_ort, code_of, evaluated_chain, imported_node, node_of, small
from onnx import TensorProto, helper
from onnx_graph import OnnxGraph

import hlsgen
from hlsgen.frontend.index_runs import runs
from hlsgen.frontend.ops_gather import MAX_PARTS
from hlsgen.interpreter.graph import evaluate
from hlsgen.interpreter.model import interpret

Array = Any
i64 = np.int64


class Moves(OnnxGraph):
    """A graph of a quantizer, random moves of its codes, and a quantizer."""

    def __init__(self, rng: np.random.Generator, shape: tuple[int, ...]) -> None:
        super().__init__(np.float32)
        self.rng, self.shape = rng, shape
        self.first = shape
        self.zero = int(rng.integers(-9, 10))
        self.coded(np.float32(0.25), self.zero)

    def coded(self, scale: Any, zero: int) -> None:
        for op in ("QuantizeLinear", "DequantizeLinear"):
            self.last = self.add(op, [self.last, scale, self.const(np.int8(zero), np.int8)])

    def ints(self, values: Any) -> str:
        return self.const(np.asarray(values, i64), i64)

    def any_axis(self, minimum: int = 1) -> int | None:
        axes = [a for a, n in enumerate(self.shape) if n >= minimum]
        return int(self.rng.choice(axes)) if axes else None

    def put(self, axis: int, size: int) -> None:
        self.shape = (*self.shape[:axis], size, *self.shape[axis + 1 :])

    def gather(self) -> None:
        axis, rng = self.any_axis(), self.rng
        assert axis is not None
        size = self.shape[axis]
        form: Any = [(), (int(rng.integers(1, 5)),), (2, int(rng.integers(1, 3)))][int(rng.integers(0, 3))]
        if len(self.shape) == 1 and not form:
            return
        indices = rng.integers(-size, size, form)
        if form and rng.random() < 0.4:
            indices = np.sort(indices)
        self.last = self.add("Gather", [self.last, self.ints(indices)], axis=axis - len(self.shape))
        self.shape = (*self.shape[:axis], *form, *self.shape[axis + 1 :])

    def split(self) -> None:
        axis = self.any_axis(2)
        if axis is None:
            return
        cut = int(self.rng.integers(1, self.shape[axis]))
        sizes = [cut, self.shape[axis] - cut]
        names = [f"p{len(self.nodes)}", f"r{len(self.nodes)}"]
        self.add("Split", [self.last, self.ints(sizes)], names, axis=axis)
        order = [0, 1] if self.rng.random() < 0.5 else [1, 0]
        if self.rng.random() < 0.5:
            self.last = self.add("Concat", [names[i] for i in order], axis=axis)
        else:
            self.last = names[order[0]]
            self.put(axis, sizes[order[0]])

    def concat(self) -> None:
        """A Concat with constants before, after, and between two parts."""
        axis, rng = self.any_axis(), self.rng
        assert axis is not None

        def part() -> str:
            size = int(rng.integers(1, 3))
            self.put(axis, self.shape[axis] + size)
            form = (*self.shape[:axis], size, *self.shape[axis + 1 :])
            codes = rng.integers(-128, 128, form)
            return self.const(((codes - self.zero) * 0.25).astype(np.float32), np.float32)

        names = [self.last]
        if self.shape[axis] > 1 and rng.random() < 0.5:
            ranges = [self.ints([0]), self.ints([1]), self.ints([axis])]
            following = [self.ints([1]), self.ints([self.shape[axis]]), self.ints([axis])]
            names = [self.add("Slice", [self.last, *ranges]), part(), self.add("Slice", [self.last, *following])]
        if rng.random() < 0.6:
            names.insert(0, part())
        if rng.random() < 0.6 or len(names) == 1:
            names.append(part())
        self.last = self.add("Concat", names, axis=axis)

    def tile(self) -> None:
        axes = [a for a in range(1, len(self.shape)) if np.prod(self.shape) < 200]
        if not axes:
            return
        counts = [1] * len(self.shape)
        counts[int(self.rng.choice(axes))] = int(self.rng.integers(2, 4))
        self.last = self.add("Tile", [self.last, self.ints(counts)])
        self.shape = tuple(n * count for n, count in zip(self.shape, counts, strict=True))

    def grouped(self) -> None:
        """Repetition along a new axis after the second one, as for keys of several queries."""
        if len(self.shape) < 3 or np.prod(self.shape) > 200:
            return
        form = (*self.shape[:2], int(self.rng.integers(2, 4)), *self.shape[2:])
        expanded = self.add("Expand", [self.add("Unsqueeze", [self.last, self.ints([2])]), self.ints(form)])
        self.shape = (form[0], form[1] * form[2], *form[3:])
        self.last = self.add("Reshape", [expanded, self.ints(self.shape)])

    def rename(self) -> None:
        perm = self.rng.permutation(len(self.shape)).tolist()
        self.last = self.add("Transpose", [self.last], perm=perm)
        self.shape = tuple(self.shape[p] for p in perm)

    def unsqueeze(self) -> None:
        if len(self.shape) > 3:
            return
        axis = int(self.rng.integers(0, len(self.shape) + 1))
        self.last = self.add("Unsqueeze", [self.last, self.ints([axis])])
        self.shape = (*self.shape[:axis], 1, *self.shape[axis:])

    def squeeze(self) -> None:
        ones = [a for a, n in enumerate(self.shape) if n == 1]
        if not ones or len(self.shape) == 1:
            return
        self.last = self.add("Squeeze", [self.last, self.ints(ones[:1])])
        self.shape = (*self.shape[: ones[0]], *self.shape[ones[0] + 1 :])

    def pad(self) -> None:
        pads = np.zeros((2, len(self.shape)), i64)
        axis = self.any_axis()
        assert axis is not None
        pads[:, axis] = self.rng.integers(0, 3, 2)
        self.last = self.add("Pad", [self.last, self.ints(pads.ravel()), np.float32(0.75)])
        self.put(axis, self.shape[axis] + int(pads.sum()))

    def position(self) -> None:
        """An Add of a constant per element, and a quantizer."""
        self.last = self.add("Add", [self.last, (self.rng.integers(-9, 9, self.shape) * 0.25).astype(np.float32)])
        self.zero = int(self.rng.integers(-9, 10))
        self.coded(np.float32(0.25), self.zero)

    def model(self) -> onnx.ModelProto:
        self.coded(np.float32(0.5), 1)
        ends = [
            helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
            for n, s in (("x", self.first), (self.last, self.shape))
        ]
        return self.proto("moves", ends[:1], ends[1:], [("", 13)])


KINDS = ("gather", "split", "concat", "rename", "unsqueeze", "squeeze", "pad", "position", "tile", "grouped")


def random_moves(seed: int, count: int) -> Moves:
    rng = np.random.default_rng(seed)
    net = Moves(rng, (1, *rng.integers(1, 5, int(rng.integers(1, 4))).tolist()))
    for kind in rng.choice(KINDS, count):
        if np.prod(net.shape) < 200:
            getattr(net, kind)()
    return net


def inputs(model: onnx.ModelProto, count: int) -> Array:
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    return (np.random.default_rng(1).integers(-200, 200, (count, *shape)) / 8).astype(np.float32)


@pytest.mark.sweep
@pytest.mark.cases(4)
@pytest.mark.parametrize("block", range(6))
def test_random_moves_equal_onnxruntime(block: int, tmp_path: Path) -> None:
    """Model and Graph, evaluated by their interpreters, equal the file in onnxruntime."""
    for seed in range(block * 10, block * 10 + 10):
        model = random_moves(seed, 6).model()
        build = checked(model, tmp_path)
        x = inputs(model, 5)
        expected = np.stack([ort.run(model, {"x": frame})[0] for frame in x])
        np.testing.assert_array_equal(interpret(build.model, x)[-1].value, expected, str(seed))
        np.testing.assert_array_equal(evaluate(build.graph, x[:, 0]).reshape(expected.shape), expected, str(seed))


@pytest.mark.cases(2)
@pytest.mark.sim
@pytest.mark.parametrize("seed", [3, 4, 12, 7])
def test_random_moves_in_simulation(seed: int, tmp_path: Path) -> None:
    model = random_moves(seed, 6).model()
    onnx.save(model, tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out", hlsgen.Options(input="codes"))
    assert_verified(tmp_path / "out", "icarus")
    certified = hlsgen.certify(tmp_path / "out")
    assert certified.ok, certified


def test_gather_of_all_forms() -> None:
    """Every rank and axis, indices of rank 0 to 2, negative ones; one run is a Slice, several are concatenated."""
    rng = np.random.default_rng(0)
    for rank in range(1, 5):
        x = small(rng, rng.integers(2, 5, rank))
        for axis in range(-rank, rank):
            for indices in ([0], [1, 0], [-1], [0, 1], [[0, -1], [1, 1]], *([1] if rank > 1 else [])):
                node, const = node_of("Gather", 2, axis=axis), np.asarray(indices, i64)
                gathered: Any = imported_node(node, x.shape, "float32", [const])
                if gathered.join is None:
                    agrees(node, x, [const])
                else:
                    assert gathered.join[0].axis == axis % rank
                    assert len(gathered.operand_ops) <= len(runs(const.ravel() % x.shape[axis]))
                    assert np.array_equal(evaluated_chain(gathered, x), by_ort(node, x, [const])[0])


@pytest.mark.parametrize(
    ("indices", "parts"),
    [
        ([3], [(3, 4, 1)]),
        ([0, 1, 2], [(0, 3, 1)]),
        ([1, 3, 5], [(1, 6, 2)]),
        ([2, 1, 0], [(2, 3, 1), (1, 2, 1), (0, 1, 1)]),
        ([0, 0, 1], [(0, 1, 1), (0, 2, 1)]),
        ([0, 4, 5, 6], [(0, 5, 4), (5, 7, 1)]),
    ],
)
def test_runs(indices: list[int], parts: list[tuple[int, int, int]]) -> None:
    assert runs(np.asarray(indices)) == parts
    assert [i for part in parts for i in range(*part)] == indices


@pytest.mark.parametrize(
    ("indices", "axis", "code"),
    [([4], 1, "HG013"), ([-5], 1, "HG013"), ([0], 3, "HG013"), ([], 1, "HG013"), ([0.0], 1, "HG013")],
)
def test_wrong_gathers_are_refused(indices: list[Any], axis: int, code: str) -> None:
    const = np.asarray(indices, None if indices else i64)
    assert code_of(node_of("Gather", 2, axis=axis), np.ones((2, 4), np.float32), [const]) == code


def test_gather_of_too_many_parts() -> None:
    x = np.ones((1, 2 * MAX_PARTS + 2), np.float32)
    many = np.arange(MAX_PARTS + 1)[::-1]
    assert code_of(node_of("Gather", 2, axis=1), x, [many]) == "HG004"
    assert code_of(node_of("Gather", 2, axis=1), x, [many[1:]]) == ""


def test_a_tensor_without_axes_is_refused() -> None:
    x = np.ones(1, np.float32)
    assert code_of(node_of("Gather", 2), x, [np.int64(0)]) == "HG023"
    assert code_of(node_of("Squeeze", 1), x, []) == "HG023"


def test_concat_with_a_constant_of_another_type() -> None:
    x = np.ones((1, 2), np.float32)
    assert code_of(node_of("Concat", 2, axis=1), x, [np.array([[0.1]])]) == "HG026"
    assert code_of(node_of("Concat", 2, axis=1), x, [np.array([[np.inf]], np.float32)]) == "HG027"
    assert code_of(node_of("Concat", 2, axis=1), x, [np.ones((2, 1), np.float32)]) == "HG023"
