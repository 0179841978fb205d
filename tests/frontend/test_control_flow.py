"""Scan, Loop and If, unrolled on import: random quantized cells against onnxruntime and a plain loop in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import ort
import pytest
from onnx import helper
from paths import shared_model
from recurrent_cells import Cell, loop, model_of, random_scan, tensor

from hlsgen.diagnostics import Collector, HlsgenError
from hlsgen.frontend import control_flow, import_model
from hlsgen.frontend.control_flow import MAX_UNROLLED
from hlsgen.interpreter.graph import evaluate
from hlsgen.interpreter.model import interpret
from hlsgen.ir import Model
from hlsgen.passes.lower import lower

Array = Any
i64 = np.int64


def imported(model: onnx.ModelProto, path: Path) -> Model:
    onnx.save(model, path / "m.onnx")
    problems = Collector()
    imported_model = import_model(path / "m.onnx", problems)
    problems.finish()
    assert imported_model is not None
    return imported_model


def agrees(model: onnx.ModelProto, path: Path, case: str) -> None:
    """Model and Graph, evaluated by their interpreters, equal onnxruntime."""
    imported_model = imported(model, path)
    x = (np.random.default_rng(1).integers(-40, 40, (4, *imported_model.input_shape)) / 32).astype(np.float32)
    expected = np.stack([ort.run(model, {"x": frame}, ort.OFF)[0] for frame in x])
    np.testing.assert_array_equal(interpret(imported_model, x)[-1].value, expected, case)
    graph = lower(imported_model, None, Collector())
    frames = x[:, 0] if imported_model.batched else x
    np.testing.assert_array_equal(np.asarray(evaluate(graph, frames)).reshape(expected.shape), expected, case)


@pytest.mark.sweep
@pytest.mark.parametrize("block", range(4))
def test_random_scans(block: int, tmp_path: Path) -> None:
    for seed in range(block * 8, block * 8 + 8):
        agrees(random_scan(seed), tmp_path, str(seed))


def test_scan_equals_a_loop_in_python(tmp_path: Path) -> None:
    """The body itself, one step after the other, by onnxruntime."""
    model = random_scan(3)
    scan = model.graph.node[0]
    attrs = {a.name: helper.get_attribute_value(a) for a in scan.attribute}
    body, states = attrs["body"], len(scan.input) - attrs["num_scan_inputs"]
    for value in body.input[:states]:
        value.CopyFrom(tensor(value.name, [1, 3]))
    x = (
        np.random.default_rng(2).integers(
            -40, 40, [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
        )
        / 32
    ).astype(np.float32)
    step_model = helper.make_model(body, opset_imports=list(model.opset_import), ir_version=8)
    for value in body.input[states:]:
        value.CopyFrom(tensor(value.name, list(np.take(x, 0, attrs["scan_input_axes"][0] % 3).shape)))
    state = [onnx.numpy_helper.to_array(t) for t in model.graph.initializer]
    steps = x.shape[attrs["scan_input_axes"][0] % 3]
    collected = []
    for t in range(steps):
        parts = [
            np.take(x, steps - 1 - t if back else t, axis % 3)
            for axis, back in zip(attrs["scan_input_axes"], attrs["scan_input_directions"], strict=True)
        ]
        names = [i.name for i in body.input]
        results = ort.run(step_model, dict(zip(names, [*state, *parts], strict=True)), ort.OFF)
        state = results[:states]
        collected.append(results[states:])
    used = list(scan.output).index("y")
    if used < states:
        expected = state[used]
    else:
        n = used - states
        rows = [c[n] for c in collected]
        expected = np.stack(rows[::-1] if attrs["scan_output_directions"][n] else rows, attrs["scan_output_axes"][n])
    np.testing.assert_array_equal(interpret(imported(model, tmp_path), x[None])[-1].value[0], expected)


def test_loops(tmp_path: Path) -> None:
    for count in (1, 3):
        agrees(loop(None, i64(count)), tmp_path, str(count))
    agrees(loop(np.bool_(True), i64(2)), tmp_path, "both")
    agrees(loop(np.bool_(True), i64(4), last=2), tmp_path, "the number of a step ends it")


@pytest.mark.parametrize("truth", [False, True])
def test_if_with_a_constant_condition(truth: bool, tmp_path: Path) -> None:
    """The condition is a folded constant; the branches use tensors of the outer graph."""
    branches = {}
    for key, op in (("then_branch", "Relu"), ("else_branch", "Neg")):
        branches[key] = helper.make_graph([helper.make_node(op, ["d"], [op])], key, [], [tensor(op)])
    g = Cell(0, [], 0, 1)
    d = g.coded("x", 0.25)
    nodes = [*g.nodes, helper.make_node("Identity", [d], ["d"]), helper.make_node("Greater", ["a", "b"], ["c"])]
    nodes += [helper.make_node("If", ["c"], ["z"], name="if", **branches)]
    g.nodes = []
    y = g.coded("z", 0.5)
    nodes += [*g.nodes, helper.make_node("Identity", [y], ["y"])]
    for i, node in enumerate(nodes):
        node.name = node.name or f"n{i}"
    constants = {t.name: onnx.numpy_helper.to_array(t) for t in g.constants}
    constants |= {"a": np.float32(truth), "b": np.float32(0.5)}
    agrees(model_of(rename_twice(nodes), constants, [1, 5], None), tmp_path, str(truth))


def rename_twice(nodes: list[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """Rename results whose name is used already, as a second builder counts from t0 again."""
    used_names: set[str] = set()
    names: dict[str, str] = {}
    for node in nodes:
        node.input[:] = [names.get(i, i) for i in node.input]
        for n, output in enumerate(node.output):
            if output in used_names:
                names[output] = f"{output}_again"
                node.output[n] = names[output]
            used_names.add(output)
    return nodes


def refusal(model: onnx.ModelProto, path: Path) -> tuple[str, str]:
    with pytest.raises(HlsgenError) as caught:
        imported(model, path)
    first = caught.value.diagnostics[0]
    return first.code, first.message


def test_conditions_that_depend_on_data_are_refused(tmp_path: Path) -> None:
    code, message = refusal(loop(None, i64(3), computed=True), tmp_path)
    assert code == "HG020"
    assert "the condition after a step of Loop depends on the model's input" in message
    assert refusal(loop(None, None), tmp_path)[0] == "HG010"


@pytest.mark.sweep
def test_too_long_loops_are_refused(tmp_path: Path) -> None:
    code, message = refusal(loop(None, i64(MAX_UNROLLED)), tmp_path)
    assert code == "HG004"
    assert f"{MAX_UNROLLED} steps of" in message
    assert refusal(loop(np.bool_(True), None), tmp_path)[0] == "HG004"


def nested_loops(depth: int) -> onnx.GraphProto:
    """A body with Loops in it, `depth` deep."""
    node = helper.make_node("Relu", ["state"], ["next"])
    if depth > 1:
        node = helper.make_node("Loop", ["steps", "", "state"], ["next"], body=nested_loops(depth - 1))
    nodes = [helper.make_node("Identity", ["going"], ["stays"]), node]
    inputs = [
        helper.make_tensor_value_info("t", onnx.TensorProto.INT64, []),
        helper.make_tensor_value_info("going", onnx.TensorProto.BOOL, []),
        tensor("state", [1, 3]),
    ]
    outputs = [helper.make_tensor_value_info("stays", onnx.TensorProto.BOOL, []), tensor("next", [1, 3])]
    return helper.make_graph(nodes, "body", inputs, outputs)


def test_nested_loops_are_counted_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_flow, "MAX_UNROLLED", 100)
    node = helper.make_node("Loop", ["steps", "", "x"], ["y"], body=nested_loops(2))
    graph = helper.make_graph([node], "g", [tensor("x", [1, 3])], [tensor("y", [1, 3])])
    graph.initializer.append(onnx.numpy_helper.from_array(np.int64(9), "steps"))
    code, message = refusal(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path)
    assert code == "HG004"
    assert "the loops around it are more than 100 nodes" in message
    monkeypatch.setattr(control_flow, "MAX_UNROLLED", 1000)
    assert imported(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path)


def test_scan_of_opset_8_is_refused(tmp_path: Path) -> None:
    model = random_scan(0)
    model.opset_import[0].version = 8
    assert refusal(model, tmp_path)[0] == "HG010"


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_float_cells_are_refused_with_the_reason(op: str, tmp_path: Path) -> None:
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op]
    w, r = (np.zeros((1, gates * 2, n), np.float32) for n in (3, 2))
    model = model_of([helper.make_node(op, ["x", "w", "r"], ["y"], hidden_size=2)], {"w": w, "r": r}, [4, 1, 3], None)
    with pytest.raises(HlsgenError) as caught:
        imported(model, tmp_path)
    diagnostic = caught.value.diagnostics[0]
    assert diagnostic.code == "HG010"
    assert "docs/recurrent.md" in (diagnostic.hint or "")


@pytest.mark.sweep
def test_a_gru_in_a_scan(tmp_path: Path) -> None:
    """Against golden outputs of onnxruntime."""
    path = shared_model("attention/gru_scan_w8a8_qdq")
    golden = np.load(path.with_suffix(".npz"))
    graph = lower(imported(onnx.load(path), tmp_path), None, Collector())
    y = np.asarray(evaluate(graph, golden["x"])).reshape(golden["ort"].shape)
    np.testing.assert_array_equal(y, golden["ort"])
