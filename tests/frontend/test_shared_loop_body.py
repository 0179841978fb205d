"""Loops with one shared body equal their unrolled steps; refused loops."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import ort
import pytest
from onnx import helper
from paths import shared_model
from quant_lstm_models import by_definition, random_cell
from recurrent_cells import Cell, model_of

from hlsgen.diagnostics import Collector, HlsgenError
from hlsgen.frontend import import_model
from hlsgen.interpreter.graph import evaluate
from hlsgen.ir import Delay, Graph, Linear
from hlsgen.passes.lower import lower
from hlsgen.passes.shared_loop_bodies import lower_once

Array = Any


def scan(
    seed: int, steps: int, axis: int = 0, size: int = 3, extra_nodes: Sequence[onnx.NodeProto] = (), **attrs: Any
) -> Any:
    """A scan with one to three states, a body of several gates, initial states that are codes, any one output used."""
    rng = np.random.default_rng(seed)
    states, width = int(rng.integers(1, 4)), 3
    cell = Cell(seed, [size], states, width)
    outputs = [*cell.ends, *[f"o{n}" for n in range(states)]]
    ends = [helper.make_node("Identity", [e], [f"o{n}"]) for n, e in enumerate(cell.ends)]
    body = cell.graph([], outputs, [*extra_nodes, *ends])
    used = int(rng.integers(0, 2 * states))
    names = ["y" if n == used else f"y{n}" for n in range(2 * states)]
    node = helper.make_node(
        "Scan",
        [f"s{n}" for n in range(states)] + ["x"],
        names,
        name="scan",
        body=body,
        num_scan_inputs=1,
        scan_input_axes=[axis],
        scan_output_axes=[axis] * states,
        **attrs,
    )
    constants = {f"s{n}": (rng.integers(-16, 16, (1, width)) / 16).astype(np.float32) for n in range(states)}
    return model_of([node], constants, [steps, 1, size] if axis == 0 else [1, steps, size], None)


def once(path: Path) -> Graph:
    problems = Collector()
    model = import_model(path, problems, once=True)
    problems.finish()
    assert model is not None
    graph = lower(model, None, problems)
    problems.finish()
    return graph


@pytest.mark.sweep
@pytest.mark.parametrize("block", range(3))
def test_random_scans(block: int, tmp_path: Path) -> None:
    """The result equals onnxruntime's, and the number of layers does not depend on the number of steps."""
    for seed in range(block * 5, block * 5 + 5):
        counts = []
        for steps in (2, 5):
            model = scan(seed, steps, seed % 2)
            onnx.save(model, tmp_path / "m.onnx")
            graph = once(tmp_path / "m.onnx")
            counts.append(sum(isinstance(layer, Linear) for layer in graph.layers))
            assert any(isinstance(layer, Delay) for layer in graph.layers)
            shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
            x = (np.random.default_rng(seed).integers(-40, 40, (4, *shape)) / 32).astype(np.float32)
            expected = np.stack([ort.run(model, {"x": frame}, ort.OFF)[0] for frame in x])
            frames = x[:, 0] if graph.model.batched else x
            np.testing.assert_array_equal(
                np.asarray(evaluate(graph, frames)).reshape(expected.shape), expected, str(seed)
            )
        assert counts[0] == counts[1]


@pytest.mark.sweep
def test_random_cells_of_brevitas(tmp_path: Path) -> None:
    tried = 0
    for seed in range(60):
        model, used = random_cell(seed)
        shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
        attrs = {a.name: a.i for a in model.graph.node[-1].attribute}
        first = attrs["batch_first"]
        if attrs["reverse_input"] or shape[1 - first] > 1 or shape[first] < 2:
            continue
        onnx.save(model, tmp_path / "m.onnx")
        graph = once(tmp_path / "m.onnx")
        x = (np.random.default_rng(seed).integers(-140, 140, (3, *shape)) / 32).astype(np.float32)
        expected = np.stack([by_definition(model, frame)[used] for frame in x])
        frames = x[:, 0] if graph.model.batched else x
        np.testing.assert_array_equal(np.asarray(evaluate(graph, frames)).reshape(expected.shape), expected, str(seed))
        tried += 1
    assert tried > 4


def test_a_gru(tmp_path: Path) -> None:
    """A GRU equals golden outputs of onnxruntime."""
    path = shared_model("attention/gru_scan_w8a8_qdq")
    golden, graph = np.load(path.with_suffix(".npz")), once(path)
    assert sum(isinstance(layer, Linear) for layer in graph.layers) == 6
    np.testing.assert_array_equal(np.asarray(evaluate(graph, golden["x"])).reshape(golden["ort"].shape), golden["ort"])


def refusal(model: Any, path: Path) -> str:
    onnx.save(model, path / "m.onnx")
    with pytest.raises(HlsgenError) as caught:
        once(path / "m.onnx")
    assert caught.value.diagnostics[0].code == "HG010"
    return caught.value.diagnostics[0].message


def test_bodies_without_independent_rows_are_refused(tmp_path: Path) -> None:
    assert "the loop has one step" in refusal(scan(1, 1), tmp_path)
    assert "it scans backwards" in refusal(scan(1, 3, scan_input_directions=[1]), tmp_path)
    unquantized = scan(1, 3)
    body = next(a.g for a in unquantized.graph.node[0].attribute if a.name == "body")
    body.node.append(helper.make_node("Relu", [body.output[0].name], ["bounded"]))
    body.output[0].name = "bounded"
    assert "state 0 is not computed by a quantizer" in refusal(unquantized, tmp_path)
    between = scan(1, 3)
    between.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.full((1, 3), 0.01, np.float32), "s0"))
    assert "the state's quantizer can represent" in refusal(between, tmp_path)
    for op, attrs in (("CumSum", {}), ("ReduceMax", {"axes": [0], "keepdims": 1})):
        across = scan(1, 3)
        body = next(a.g for a in across.graph.node[0].attribute if a.name == "body")
        inputs = ["x0", "axis"] if op == "CumSum" else ["x0"]
        body.initializer.append(onnx.numpy_helper.from_array(np.array(0, np.int64), "axis"))
        body.node.insert(0, helper.make_node(op, inputs, ["moved"], **attrs))
        for inner in list(body.node)[1:]:
            inner.input[:] = ["moved" if i == "x0" else i for i in inner.input]
        assert f"its body contains {op}" in refusal(across, tmp_path)


@pytest.mark.parametrize("kind", ["stored", "Constant", "Add"])
def test_a_constant_with_a_value_per_row_is_refused(kind: str, tmp_path: Path) -> None:
    """The constant has as many rows as there are steps, so that only its use reveals that it is constant."""
    model = scan(1, 3)
    body = next(a.g for a in model.graph.node[0].attribute if a.name == "body")
    rows, nodes = onnx.numpy_helper.from_array(np.ones((3, 3), np.float32), "rows"), []
    if kind == "stored":
        body.initializer.append(rows)
    else:
        nodes = [helper.make_node("Constant", [], ["rows"], value=rows)]
    if kind == "Add":
        nodes += [
            helper.make_node("Identity", ["rows"], ["first"]),
            helper.make_node("Add", ["first", "first"], ["double"]),
        ]
    nodes.append(helper.make_node("Mul", ["x0", "double" if kind == "Add" else "rows"], ["moved"]))
    for inner in body.node:
        inner.input[:] = ["moved" if i == "x0" else i for i in inner.input]
    for number, inner in enumerate(nodes):
        body.node.insert(number, inner)
    assert "a value for each row" in refusal(model, tmp_path)


def test_constants_of_the_body(tmp_path: Path) -> None:
    """Constants of one row, stored or computed, are the same in each step."""
    model = scan(1, 3)
    body = next(a.g for a in model.graph.node[0].attribute if a.name == "body")
    row = onnx.numpy_helper.from_array(np.array([[0.5, 0.25, 2]], np.float32), "row")
    for inner in body.node:
        inner.input[:] = ["moved" if i == "x0" else i for i in inner.input]
    body.node.insert(0, helper.make_node("Constant", [], ["row"], value=row))
    body.node.insert(1, helper.make_node("Add", ["row", "row"], ["double"]))
    body.node.insert(2, helper.make_node("Mul", ["x0", "double"], ["moved"]))
    onnx.save(model, tmp_path / "m.onnx")
    x = (np.random.default_rng(1).integers(-40, 40, (4, 3, 1, 3)) / 32).astype(np.float32)
    expected = np.stack([ort.run(model, {"x": frame}, ort.OFF)[0] for frame in x])
    graph = once(tmp_path / "m.onnx")
    np.testing.assert_array_equal(np.asarray(evaluate(graph, x)).reshape(expected.shape), expected)


def test_other_loops_are_unrolled(tmp_path: Path) -> None:
    onnx.save(scan(1, 3, scan_input_directions=[1]), tmp_path / "m.onnx")
    problems = Collector()
    model = import_model(tmp_path / "m.onnx", problems)
    assert model is not None
    graph = lower_once(model, lambda collector: import_model(tmp_path / "m.onnx", collector, once=True), None, problems)
    assert not any(isinstance(layer, Delay) for layer in graph.layers)
    assert [(d.code, d.node) for d in problems.warnings] == [("HG090", "--recurrence")]
