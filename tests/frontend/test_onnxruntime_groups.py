"""The fused groups equal onnxruntime's: its optimized graph, and its results of the complete file."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import ort
import pytest
from qdq_graphs import QdqGraph, random_qdq

from hlsgen.diagnostics import Collector
from hlsgen.frontend import import_model
from hlsgen.frontend.node_graph import NodeGraph
from hlsgen.frontend.onnx_graph import name_all
from hlsgen.frontend.onnxruntime_graph import Optimized
from hlsgen.frontend.onnxruntime_groups import GROUPS, fuse_groups
from hlsgen.interpreter.model import interpret

Array = ort.Array
RUNTIMES = ("onnxruntime", "onnxruntime-arm")
_NAMES = {*GROUPS, *(g.fused for g in GROUPS.values()), *(g.floats for g in GROUPS.values() if g.floats)}


def operators(graph: onnx.GraphProto) -> Counter[str]:
    """Counts of groups and their operators; a Gemm of floats counts as a MatMul, additions of floats do not count."""
    counts = Counter(node.op_type for node in graph.node if node.op_type in _NAMES)
    counts["MatMul"] += counts.pop("Gemm", 0) + sum(node.op_type in ("MatMulNBits", "FusedGemm") for node in graph.node)
    counts["Conv"] += sum(node.op_type == "FusedConv" for node in graph.node)
    counts["Add"] = 0
    return +counts


def optimized(model: onnx.ModelProto, arm: bool) -> onnx.ModelProto | None:
    """onnxruntime's optimized graph, or None if it has wrong types, so that onnxruntime refuses it."""
    try:
        return ort.optimized_graph(model, ort.EXTENDED, arm)
    except Exception as error:
        if "TypeInferenceError" in str(error):
            return None
        raise


def outputs(model: onnx.ModelProto, x: Array, arm: bool) -> Array:
    return np.concatenate([ort.run(model, {"x": frame[None]}, arm=arm)[0] for frame in x])


def imported(model: onnx.ModelProto, x: Array, runtime: str, folder: Path) -> Array:
    """The result of the imported Model, from a file that declares the types of all tensors."""
    path = folder / "m.onnx"
    onnx.save(onnx.shape_inference.infer_shapes(model), path)
    problems = Collector()
    read = import_model(path, problems, runtime=runtime)
    assert read is not None, problems.errors
    assert read.runtime == runtime
    return np.asarray(interpret(read, x.reshape(len(x), *read.input_shape))[-1].value)


@pytest.mark.sweep
@pytest.mark.cases(3)
@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("block", range(12))
def test_random_graphs_have_the_groups_of_the_optimized_graph(block: int, runtime: str, tmp_path: Path) -> None:
    """Integers are equal; floats at the end of an unfused group differ in their last bits at most."""
    arm = runtime == "onnxruntime-arm"
    for seed in range(block * 25, block * 25 + 25):
        model, x = random_qdq(seed)
        if not any("x" in node.input for node in model.graph.node):
            continue
        theirs = optimized(model, arm)
        if theirs is None:
            continue
        ours = onnx.ModelProto.FromString(model.SerializeToString())
        name_all(ours.graph)
        fuse_groups(ours.graph, model.opset_import[0].version, runtime)
        assert operators(ours.graph) == operators(theirs.graph), seed
        if any(node.op_type == "MatMulNBits" for node in theirs.graph.node):
            continue  # quantizes floats by itself
        expected = outputs(model, x, arm)
        results = imported(model, x, runtime, tmp_path).reshape(expected.shape)
        if expected.dtype == np.float32:
            np.testing.assert_allclose(
                results, expected, rtol=0, atol=4e-6 * max(1.0, float(np.abs(expected).max())), err_msg=str(seed)
            )
        else:
            assert (results.astype(int) != expected).mean() <= 0.02, seed  # float32 sums of layers that are not fused


def qdq(runtime: str, dtype: str, op: str, *, shared: bool = False, codes_out: bool = False) -> onnx.ModelProto:
    """`op` of quantized x with a constant or itself; the result is quantized, and dequantized unless `codes_out`."""
    g = QdqGraph(np.random.default_rng(3))
    zero = 7 if dtype == "int8" else 131
    first = g.pair("x", (0.05, zero, dtype))
    if shared:
        y = g.node(op, first, g.pair(g.node("Relu", first), (0.04, zero, dtype)))
    elif op == "MatMul":
        weight = g.const(np.arange(-8, 8).reshape(4, 4), "int8")
        y = g.node(op, first, g.node("DequantizeLinear", weight, g.const(0.013), g.const(0, "int8")))
    else:
        constant = g.const([3, -5, 100, 7] if dtype == "int8" else [3, 250, 100, 7], dtype)
        y = g.node(op, first, g.node("DequantizeLinear", constant, *g.parameters((0.011, zero, dtype))))
    last = (0.07, zero, dtype)
    y = g.node("QuantizeLinear", y, *g.parameters(last)) if codes_out else g.pair(y, last)
    return g.model(y, (1, 4), "float32", dtype if codes_out else "float32")


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(
    "op, shape", [("Add", "constant"), ("Mul", "constant"), ("Add", "shared"), ("Mul", "shared"), ("MatMul", "codes")]
)
def test_int8_is_fused_on_arm_alone(op: str, shape: str, dtype: str, tmp_path: Path) -> None:
    """A constant, a DequantizeLinear with two users, codes at the end: onnxruntime on x86-64 keeps floats for int8."""
    rng = np.random.default_rng(5)
    x = rng.normal(0, 2, (300, 4)).astype(np.float32)
    results = {}
    for runtime in RUNTIMES:
        model = qdq(runtime, dtype, op, shared=shape == "shared", codes_out=shape == "codes")
        expected = outputs(model, x, runtime == "onnxruntime-arm")
        results[runtime] = imported(model, x, runtime, tmp_path).reshape(expected.shape)
        # A layer that is not fused is summed in float32, in an order that ONNX leaves open.
        allowed = 3 if (op, dtype, runtime) == ("MatMul", "int8", "onnxruntime") else 0
        assert (results[runtime] != expected).sum() <= allowed
        alone = imported(model, x, "onnx", tmp_path).reshape(expected.shape)
        if dtype == "int8" and runtime == "onnxruntime":
            assert (alone == results[runtime]).all()


#: Nodes without effect: (operator, place of the constant, the constant), or without a constant.
WITHOUT_EFFECT = [
    ("Identity", None, None), ("Dropout", None, None), ("Dropout", 1, 0.5), ("Cast", None, None),
    ("Expand", 1, [1, 4]), ("Expand", 1, [4]), ("Expand", 1, [1, 1]),
    ("Add", 1, 0.0), ("Add", 0, [0.0]), ("Sub", 1, [[0.0]]), ("Mul", 0, 1.0), ("Div", 1, [1.0]),
]  # fmt: skip
#: Nodes that onnxruntime keeps: the constant adds an axis, has several elements, or is the first operand.
KEPT = [("Add", 1, [0.0] * 4), ("Mul", 1, [[1.0] * 4]), ("Sub", 0, 0.0), ("Add", 1, 0.5)]


def pairs_around(op: str, place: int | None, constant: object) -> onnx.ModelProto:
    """Two pairs of QuantizeLinear and DequantizeLinear, and a node between them."""
    g = QdqGraph(np.random.default_rng(3))
    first = g.pair("x", (0.00390625, 0, "uint8"))
    operands = [first]
    if place is not None:
        operands.insert(place, g.const(constant, "int64" if op == "Expand" else "float32"))
    attributes = {"to": onnx.TensorProto.FLOAT} if op == "Cast" else {}
    last = g.pair(g.node(op, *operands, **attributes), (0.0039215665, 0, "uint8"))
    return g.model(last, (1, 4), "float32", "float32")


@pytest.mark.parametrize("op, place, constant", [*WITHOUT_EFFECT, *KEPT])
def test_pairs_in_a_row_become_one_across_nodes_without_effect(
    op: str, place: int | None, constant: object, tmp_path: Path
) -> None:
    model = pairs_around(op, place, constant)
    x = np.random.default_rng(1).uniform(0, 1, (400, 4)).astype(np.float32)
    expected = outputs(model, x, False)
    for runtime in RUNTIMES:
        assert (imported(model, x, runtime, tmp_path).reshape(expected.shape) == expected).all()
    merges = (op, place, constant) in WITHOUT_EFFECT
    assert (imported(model, x, "onnx", tmp_path).reshape(expected.shape) != expected).any() == merges


@pytest.mark.sweep
@pytest.mark.parametrize("scales", [(0.03, 0.03, 0.05), (0.03, 0.05, 0.05), (0.03, 0.04, 0.05), (0.05, 0.05, 0.05)])
@pytest.mark.parametrize("shared", [True, False])
def test_three_pairs_in_a_row(shared: bool, scales: tuple[float, ...], tmp_path: Path) -> None:
    """`shared`: the codes of the first pair have another use, so that the last two become one."""
    g = QdqGraph(np.random.default_rng(3))
    first = g.pair("x", (scales[0], 112, "uint8"))
    second = g.pair(g.node("Identity", first), (scales[1], 112, "uint8"))
    third = g.pair(g.node("Identity", second), (scales[2], 198, "uint8"))
    end = g.pair(g.node("Add", third, g.node("Relu", first)), (0.07, 128, "uint8")) if shared else third
    model = g.model(end, (1, 4), "float32", "float32")
    x = np.random.default_rng(1).uniform(-4, 4, (400, 4)).astype(np.float32)
    expected = outputs(model, x, False)
    for runtime in RUNTIMES:
        assert (imported(model, x, runtime, tmp_path).reshape(expected.shape) == expected).all()


def broken(op: str) -> onnx.ModelProto:
    """`pairs_around` without the last input of the node between the pairs."""
    place, constant = next((place, constant) for name, place, constant in WITHOUT_EFFECT if name == op)
    model = pairs_around(op, place, constant)
    del next(node for node in model.graph.node if node.op_type == op).input[-1:]
    return model


@pytest.mark.parametrize("op", ["Identity", "Dropout", "Cast", "Expand", "Add", "Div"])
def test_nodes_without_effect_that_lack_an_input_are_reported(op: str, tmp_path: Path) -> None:
    onnx.save(broken(op), tmp_path / "m.onnx")
    problems = Collector()
    assert import_model(tmp_path / "m.onnx", problems, runtime="onnxruntime") is None
    assert {d.code for d in problems.errors} == {"HG014"}


@pytest.mark.parametrize("op, place, constant", WITHOUT_EFFECT)
def test_nodes_without_effect_are_dropped_as_in_the_optimized_graph(
    op: str, place: int | None, constant: object
) -> None:
    """Between quantizers and at the end of the graph, where onnxruntime drops an Identity only."""
    for at_end in (False, True):
        model = pairs_around(op, place, constant)
        if at_end:
            node = next(node for node in model.graph.node if node.op_type == op)
            del model.graph.node[list(model.graph.node).index(node) + 1 :]
            model.graph.output[0].name = node.output[0]
        theirs = optimized(model, False)
        assert theirs is not None
        kept = any(node.op_type == op for node in theirs.graph.node)
        name_all(model.graph)
        graph = NodeGraph(model.graph)
        Optimized(graph, model.opset_import[0].version)
        assert any(node.op_type == op for node in graph.nodes.values()) == kept == (at_end and op != "Identity")


@pytest.mark.sweep
@pytest.mark.parametrize("op", ["Add", "Mul", "AveragePool"])
def test_codes_of_a_layer_that_become_uint8_for_the_operator_after_it(op: str, tmp_path: Path) -> None:
    """onnxruntime adds uint8 codes, which the layer before emits."""
    g = QdqGraph(np.random.default_rng(3))
    meaning = (0.05, 9, "int8")
    first = g.pair("x", meaning)
    if op == "AveragePool":
        weight = g.const(np.arange(-4, 5).reshape(3, 3, 1, 1), "int8")
        layer = g.node("Conv", first, g.node("DequantizeLinear", weight, g.const(0.1), g.const(0, "int8")))
        y = g.node(op, g.pair(layer, meaning), kernel_shape=[1, 1])
        shape: tuple[int, ...] = (1, 3, 2, 2)
    else:
        weight = g.const(np.arange(-8, 8).reshape(4, 4), "int8")
        layer = g.node("MatMul", first, g.node("DequantizeLinear", weight, g.const(0.1), g.const(0, "int8")))
        y = g.node(op, g.pair(layer, meaning), g.pair(g.node("Neg", "x"), meaning))
        shape = (1, 4)
    model = g.model(g.pair(y, (0.07, -5, "int8")), shape, "float32", "float32")
    x = np.random.default_rng(1).normal(0, 2, (300, *shape[1:])).astype(np.float32)
    for runtime in RUNTIMES:
        expected = outputs(model, x, runtime == "onnxruntime-arm")
        assert (imported(model, x, runtime, tmp_path).reshape(expected.shape) == expected).all()


@pytest.mark.parametrize("change", ["last input", "inputs", "outputs", "bytes", "zeros"])
def test_broken_files_are_reported_where_they_are_read(change: str, tmp_path: Path) -> None:
    """Nodes without inputs or outputs, too short tensors and scales of 0 give a diagnostic or a Model, no exception."""
    rng = np.random.default_rng(1)
    for seed in range(30):
        model, _ = random_qdq(seed)
        node = model.graph.node[int(rng.integers(len(model.graph.node)))]
        tensor = model.graph.initializer[int(rng.integers(len(model.graph.initializer)))]
        match change:
            case "last input":
                del node.input[-1:]
            case "inputs":
                del node.input[:]
            case "outputs":
                del node.output[:]
            case "bytes":
                tensor.raw_data = b"0"
            case _:
                tensor.raw_data = bytes(len(tensor.raw_data))
        onnx.save(model, tmp_path / "m.onnx")
        problems = Collector()
        assert import_model(tmp_path / "m.onnx", problems) is not None or problems.errors, seed
