"""Loops of a file, unrolled into their steps: same results in onnxruntime, and tensors within loops are compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import ort
import pytest
from onnx import helper
from recurrent_cells import Cell, loop, model_of, random_scan, tensor

from hlsgen.diagnostics import Collector
from hlsgen.frontend import import_model
from hlsgen.frontend.onnx_graph import all_nodes, name_all
from hlsgen.passes.lower import lower
from hlsgen.simulation import unrolled_file
from hlsgen.simulation.file_oracle import compare_file
from hlsgen.simulation.file_verdict import OracleVerdict
from hlsgen.simulation.oracles import Unable
from hlsgen.simulation.unrolled_file import is_loop, unroll

Array = Any


def some(model: onnx.ModelProto, seed: int) -> Array:
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    return (np.random.default_rng(seed).integers(-40, 40, shape) / 32).astype(np.float32)


def unrolled(model: onnx.ModelProto) -> onnx.ModelProto:
    plain = onnx.ModelProto()
    plain.CopyFrom(model)
    name_all(plain.graph)
    unroll(plain.graph, "onnxruntime", {"x": some(model, 0)}, {o.domain: o.version for o in model.opset_import})
    assert not any(is_loop(node) for node in all_nodes(plain.graph))
    return plain


@pytest.mark.parametrize("seed", range(12))
def test_scans_are_the_same_in_plain_nodes(seed: int) -> None:
    """Any axes and directions, with numbers that unrolling did not use."""
    model = random_scan(seed)
    x = some(model, 1)
    np.testing.assert_array_equal(ort.run(unrolled(model), {"x": x}, ort.OFF)[0], ort.run(model, {"x": x}, ort.OFF)[0])


@pytest.mark.parametrize(("cond", "count"), [(None, np.int64(3)), (np.bool_(True), np.int64(2))])
def test_loops_are_the_same_in_plain_nodes(cond: Any, count: Any) -> None:
    model = loop(cond, count)
    x = some(model, 1)
    np.testing.assert_array_equal(ort.run(unrolled(model), {"x": x}, ort.OFF)[0], ort.run(model, {"x": x}, ort.OFF)[0])


def test_a_loop_in_a_branch_is_unrolled() -> None:
    """The bodies read tensors of the graphs around them."""
    inner = random_scan(5)
    x = some(inner, 2)
    branch = helper.make_graph(list(inner.graph.node), "then", [], [tensor("y")], list(inner.graph.initializer))
    else_branch = helper.make_graph([helper.make_node("Neg", ["x"], ["y_else"])], "else", [], [tensor("y_else")])
    node = helper.make_node("If", ["c"], ["y"], name="if", then_branch=branch, else_branch=else_branch)
    model = model_of([node], {"c": np.bool_(True)}, list(x.shape), None)
    np.testing.assert_array_equal(ort.run(unrolled(model), {"x": x}, ort.OFF)[0], ort.run(inner, {"x": x}, ort.OFF)[0])


def test_unrolling_is_compared_with_the_executor_s_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps in the wrong order are noticed, as the operator gives other results."""
    model = next(m for m in map(random_scan, range(30)) if m.graph.input[0].type.tensor_type.shape.dim[0].dim_value > 1)
    read = unrolled_file._attributes

    def turned(node: onnx.NodeProto) -> dict[str, Any]:
        attributes = read(node)
        return attributes | {"scan_input_directions": [1 - d for d in attributes["scan_input_directions"]]}

    monkeypatch.setattr(unrolled_file, "_attributes", turned)
    with pytest.raises(Unable, match="one by one"):
        unrolled(model)


def compared(file: onnx.ModelProto, built: onnx.ModelProto, folder: Path) -> OracleVerdict:
    """The verdict on one file, compared with the Model of another one."""
    onnx.save(built, folder / "built.onnx")
    onnx.save(file, folder / "file.onnx")
    problems = Collector()
    model = import_model(folder / "built.onnx", problems)
    problems.finish()
    assert model is not None
    graph = lower(model, None, problems)
    low, high = graph.input.type.lo, graph.input.type.hi
    codes = np.random.default_rng(0).integers(low, high + 1, (8, *graph.input.shape))
    return compare_file(folder / "file.onnx", model, graph, codes)


def qonnx_cell(steps: int, bias: float) -> onnx.ModelProto:
    """h' = quantize(tanh(quantize(x W + h R + bias))) by nodes of QONNX."""
    rng = np.random.default_rng(1)
    g = Cell(1, [], 0, 3)

    def quant(name: str, scale: float) -> str:
        return g.add(
            "Quant",
            [name, np.float32(scale), np.float32(0), np.float32(6)],
            domain="qonnx.custom_op.general",
            signed=1,
            narrow=0,
            rounding_mode="ROUND",
        )

    weights = [quant(g.const(rng.normal(0, 0.5, (3, 3)), np.float32), 0.03) for _ in range(2)]
    products = [g.add("MatMul", [quant(name, 0.07), w]) for name, w in zip(("x0", "h"), weights, strict=True)]
    total = g.add("Add", [g.add("Add", products), np.full(3, bias, np.float32)])
    end = quant(g.add("Tanh", [quant(total, 0.11)]), 0.07)
    nodes = [*g.nodes, helper.make_node("Identity", [end], ["o"])]
    body = helper.make_graph(nodes, "body", [tensor("h"), tensor("x0")], [tensor(end), tensor("o")], g.constants)
    scan = helper.make_node("Scan", ["h0", "x"], ["last", "y"], name="scan", body=body, num_scan_inputs=1)
    model = model_of([scan], {"h0": np.zeros((1, 3), np.float32)}, [steps, 1, 3], None)
    model.opset_import.append(helper.make_opsetid("qonnx.custom_op.general", 1))
    return model


@pytest.mark.sweep
def test_quantizers_within_loops_are_compared(tmp_path: Path) -> None:
    """qonnx has no Scan and runs the steps. A bias that the file does not have is found where it is added."""
    right = compared(qonnx_cell(5, 0.2), qonnx_cell(5, 0.2), tmp_path)
    assert (right.ok, right.ran.split()[0], right.left) == (True, "qonnx", {})
    # In each step the data, the previous state, the sum and the result. The first state is constant; the output counts.
    assert right.compared == 5 * 4
    wrong = compared(qonnx_cell(5, 0.2), qonnx_cell(5, 0.3), tmp_path)
    assert wrong.unexplained
    assert wrong.diagnostics[0].node.startswith("scan[0]/")
