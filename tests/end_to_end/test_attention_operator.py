"""Attention of ONNX and MultiHeadAttention of onnxruntime between quantizers: codes compared with executors."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import hlsgen
from hlsgen.certify.second_reading import compare
from hlsgen.diagnostics import Collector
from hlsgen.frontend import import_model
from hlsgen.ir import Softmax
from hlsgen.ir.ops import Add, IntQuant, Mul

OWN = Path(onnx.__file__).parent / "backend" / "test" / "data" / "node"
#: onnx's own tests of the operator, those whose function is one node.
OWN_TESTS = sorted(f.name for f in OWN.glob("test_attention_*") if not f.name.endswith("_expanded"))
#: Parts of test names whose models are rejected, and the text of the diagnostic.
REFUSED = {"with_past": "past_key", "qk_matmul": "qk_matmul_output", "softcap": "softcap"}

Array = NDArray[Any]


def between_quantizers(
    node: onnx.NodeProto, shapes: list[tuple[int, ...]], result: tuple[int, ...], constants: dict[str, Array]
) -> onnx.ModelProto:
    """int8 codes of the first inputs of a node, and of its first output."""
    numbers = {
        "scale": np.float32(0.05),
        "zero": np.int8(3),
        "result_scale": np.float32(0.02),
        "result_zero": np.int8(0),
        **constants,
    }
    nodes, inputs = [], []
    for name, shape in zip(node.input, shapes, strict=False):
        inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        nodes.append(helper.make_node("QuantizeLinear", [name, "scale", "zero"], [f"{name} codes"]))
        nodes.append(helper.make_node("DequantizeLinear", [f"{name} codes", "scale", "zero"], [f"{name} numbers"]))
    attention = onnx.NodeProto()
    attention.CopyFrom(node)
    attention.input[: len(shapes)] = [f"{name} numbers" for name in node.input[: len(shapes)]]
    attention.name = "attention"
    scale = ["result_scale", "result_zero"]
    nodes += [
        attention,
        helper.make_node("QuantizeLinear", [node.output[0], *scale], ["codes"], name="last"),
        helper.make_node("DequantizeLinear", ["codes", *scale], ["result"]),
    ]
    outputs = [helper.make_tensor_value_info("result", TensorProto.FLOAT, result)]
    if len(node.output) > 3:  # a second output, of what the operator also gives
        nodes.append(helper.make_node("QuantizeLinear", [node.output[3], *scale], ["more codes"]))
        outputs.append(helper.make_tensor_value_info("more codes", TensorProto.INT8, None))
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in numbers.items()]
    graph = helper.make_graph(nodes, "attention", inputs, outputs, tensors)
    opsets = [helper.make_opsetid("", 24), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def of_onnx(name: str) -> onnx.ModelProto:
    """One of onnx's tests between quantizers, with the first element of its batch; float masks remove elements."""
    model, data = onnx.load(OWN / name / "model.onnx"), OWN / name / "test_data_set_0"
    (node,) = model.graph.node
    loaded = [numpy_helper.to_array(onnx.load_tensor(str(file))) for file in sorted(data.glob("input_*.pb"))]
    arrays = dict(zip((i.name for i in model.graph.input), map(np.array, loaded), strict=True))
    result = numpy_helper.to_array(onnx.load_tensor(str(data / "output_0.pb"))).shape
    constants = {n: a[:1] if a.ndim in (1, 4) else a for n, a in arrays.items() if n in node.input[3:]}
    for mask in (a for n, a in constants.items() if n == "attn_mask" and a.dtype.kind == "f"):
        mask[...] = np.where(mask > 0.6, -np.inf, 0)
        mask[..., 0] = 0
    shapes = [(1, *arrays[n].shape[1:]) for n in node.input[:3]]
    return between_quantizers(node, shapes, (1, *result[1:]), constants)


def numbers(model: onnx.ModelProto, frames: int) -> dict[str, Array]:
    rng = np.random.default_rng(3)
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim][1:] for i in model.graph.input}
    return {name: rng.normal(0, 2, (frames, *shape)).astype(np.float32) for name, shape in shapes.items()}


@pytest.mark.sweep
@pytest.mark.cases(1)
@pytest.mark.parametrize("name", OWN_TESTS)
def test_of_onnx(name: str, tmp_path: Path) -> None:
    """onnx's own models: the codes of the reference implementation, or explained ones, or refused by name."""
    onnx.save(of_onnx(name), tmp_path / "m.onnx")
    if refused := next((text for part, text in REFUSED.items() if part in name), None):
        with pytest.raises(hlsgen.HlsgenError, match=refused):
            hlsgen.build(tmp_path / "m.onnx", tmp_path / "out")
        return
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out")
    assert hlsgen.certify(tmp_path / "out").ok
    verdict = hlsgen.verify(tmp_path / "out", [], 4, oracle="onnx").oracle
    assert verdict is not None
    assert verdict.ok, verdict
    assert not verdict.left


ATTENTION = helper.make_node("Attention", ["q", "k", "v"], ["y"], is_causal=1)
GROUPED = helper.make_node("Attention", ["q", "k", "v", "mask"], ["y"], q_num_heads=4, kv_num_heads=2, scale=0.2)
OF_ORT = helper.make_node(
    "MultiHeadAttention", ["q", "k", "v"], ["y"], domain="com.microsoft", num_heads=2, unidirectional=1
)
BAND = np.abs(np.arange(4)[:, None] - np.arange(4)) < 3
CASES = {
    "causal": (ATTENTION, [(1, 2, 4, 4)] * 3, (1, 2, 4, 4), {}),
    "grouped": (GROUPED, [(1, 4, 16), (1, 4, 8), (1, 4, 8)], (1, 4, 16), {"mask": BAND}),
    "onnxruntime": (OF_ORT, [(1, 4, 8)] * 3, (1, 4, 8), {}),
}


@pytest.mark.sweep
@pytest.mark.cases(1)
@pytest.mark.parametrize("case", CASES)
def test_against_onnxruntime(case: str, tmp_path: Path) -> None:
    """onnxruntime's kernels of the operators: each difference is explained with the exact number."""
    onnx.save(between_quantizers(*CASES[case]), tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out")
    assert hlsgen.certify(tmp_path / "out").ok
    verdict = hlsgen.verify(tmp_path / "out", [], 24)
    assert verdict.ok, verdict.oracle
    assert verdict.oracle is not None
    assert verdict.oracle.ran.startswith("onnxruntime")
    assert not verdict.oracle.left


@pytest.mark.sim
@pytest.mark.parametrize("backend", [pytest.param("verilator", marks=pytest.mark.slow), "hls"])
def test_hardware(backend: str, tmp_path: Path) -> None:
    """Both targets have the same integers."""
    onnx.save(between_quantizers(*CASES["causal"]), tmp_path / "m.onnx")
    targets = {"target": "hls"} if backend == "hls" else {}
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out", hlsgen.Options(**targets))  # type: ignore[arg-type]
    verdict = hlsgen.verify(tmp_path / "out", None if backend == "hls" else [backend], 8)
    assert verdict.ok, verdict


def with_nodes(model: onnx.ModelProto, nodes: list[onnx.NodeProto]) -> onnx.ModelProto:
    """The model with these nodes instead of its attention; they read its inputs by the names q, k, v."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    place = next(i for i, n in enumerate(changed.graph.node) if n.name == "attention")
    names = dict(zip("qkv", changed.graph.node[place].input, strict=False))
    for node in nodes:
        node.input[:] = [names.get(i, i) for i in node.input]
    nodes_ = [*changed.graph.node[:place], *nodes, *changed.graph.node[place + 1 :]]
    del changed.graph.node[:]
    changed.graph.node.extend(nodes_)
    return changed


def codes_of(model: onnx.ModelProto, folder: Path, oracle: str = "auto") -> Array:
    """Results of the build of a model, which is first compared with its file in the runtime `oracle`."""
    onnx.save(model, folder / "m.onnx")
    hlsgen.build(folder / "m.onnx", folder / "out")
    assert hlsgen.verify(folder / "out", [], 24, oracle=oracle).ok
    codes: Array = hlsgen.run(folder / "out", numbers(model, 20))
    return codes


@pytest.mark.slow
def test_shares_without_a_quantizer(tmp_path: Path) -> None:
    """The parts as nodes of their own, as exporters write them: the product takes the shares as the operator does.

    onnxruntime 1.31 cannot load the parts at this opset: it gives a quantizer that it moves another type than its zero
    point. Only the operator is compared with its file.
    """
    parts = [
        helper.make_node("Transpose", ["k"], ["turned"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "turned"], ["scores"]),
        helper.make_node("Mul", ["scores", "factor"], ["scaled"]),
        helper.make_node("Softmax", ["scaled"], ["shares"], axis=-1),
        helper.make_node("MatMul", ["shares", "v"], ["y"]),
    ]
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"])
    model = between_quantizers(node, [(1, 2, 4, 4)] * 3, (1, 2, 4, 4), {"factor": np.float32(0.5)})
    assert (codes_of(model, tmp_path) == codes_of(with_nodes(model, parts), tmp_path, "none")).all()


@pytest.mark.slow
def test_packed(tmp_path: Path) -> None:
    """Queries, keys and values of each head side by side, which onnxruntime runs on GPUs only."""
    node = helper.make_node("MultiHeadAttention", ["q"], ["y"], domain="com.microsoft", num_heads=2)
    constants = {f"at {n}": np.array(n) for n in range(3)} | {"flat": np.array([1, 4, 8])}
    model = between_quantizers(node, [(1, 4, 2, 3, 4)], (1, 4, 8), constants)
    parts = []
    for n in range(3):
        parts.append(helper.make_node("Gather", ["q", f"at {n}"], [f"part {n}"], axis=3))
        parts.append(helper.make_node("Transpose", [f"part {n}"], [f"own {n}"], perm=[0, 2, 1, 3]))
    parts.append(helper.make_node("Attention", ["own 0", "own 1", "own 2"], ["heads"]))
    parts.append(helper.make_node("Transpose", ["heads"], ["rows"], perm=[0, 2, 1, 3]))
    parts.append(helper.make_node("Reshape", ["rows", "flat"], ["y"]))
    assert (codes_of(model, tmp_path, "none") == codes_of(with_nodes(model, parts), tmp_path)).all()


@pytest.mark.parametrize(
    ("node", "text"),
    [
        (helper.make_node("Attention", ["q", "k", "v"], ["y"], softcap=2.0), "HG010"),
        (helper.make_node("Attention", ["q", "k", "v"], ["y"], softmax_precision=TensorProto.DOUBLE), "HG010"),
        (helper.make_node("Attention", ["q", "k", "v", "", "k", "v"], ["y"]), "HG010"),
        (helper.make_node("Attention", ["q", "k", "v", "q"], ["y"]), "HG020"),
        (helper.make_node("Attention", ["q", "k", "v"], ["y"], q_num_heads=3), "HG013"),
        (
            helper.make_node("MultiHeadAttention", ["q", "k", "v", "k"], ["y"], domain="com.microsoft", num_heads=2),
            "HG010",
        ),
    ],
)
def test_refused(node: onnx.NodeProto, text: str, tmp_path: Path) -> None:
    """By name, and nothing else is said."""
    flat = node.op_type != "Attention"
    model = between_quantizers(node, [(1, 4, 8) if flat else (1, 2, 4, 4)] * 3, (1, 4, 8) if flat else (1, 2, 4, 4), {})
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(hlsgen.HlsgenError) as caught:
        hlsgen.build(tmp_path / "m.onnx", tmp_path / "out")
    assert {d.code for d in caught.value.diagnostics} == {text}
    assert all(d.node == "attention" for d in caught.value.diagnostics)


@pytest.mark.parametrize("case", CASES)
def test_read_twice(case: str, tmp_path: Path) -> None:
    """The second reader knows every node; each number that was misread is found."""
    onnx.save(between_quantizers(*CASES[case]), path := tmp_path / "m.onnx")
    model = import_model(path, Collector())
    assert model is not None
    reading = compare(path, model)
    assert not reading.problems
    assert not reading.once
    for number, step in enumerate(model.steps):
        op = step.op
        if isinstance(op, Mul | Add) and step.name.startswith("attention/"):
            misread: Any = replace(op, value=np.nextafter(op.value, np.float32(9)))
        elif isinstance(op, IntQuant):
            misread = replace(op, scale=op.scale * np.float32(2))
        elif isinstance(op, Softmax):
            misread = replace(op, axis=op.axis - 1)
        else:
            continue
        steps = (*model.steps[:number], replace(step, op=misread), *model.steps[number + 1 :])
        assert [node for node, _ in compare(path, replace(model, steps=steps)).problems] == ["attention"], step.name
