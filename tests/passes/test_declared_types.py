"""Integer inputs with host preprocessing: codes at the core have the declared type only if every step keeps it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import ort
import pytest
from onnx.parser import parse_model

import hlsgen
from hlsgen.interpreter import graph as reference
from hlsgen.numerics.fixed import IntType
from hlsgen.passes.declared_types import keep_type

CONSTANTS = (
    "<float[4] sizes = {1, 1, 2, 2}, float[4] g = {1, 0.5, 2, 1}, float[2] c = {1, 0.5}, float k = {3.3}, "
    "float s = {0.25}, uint8 z = {3}, float s2 = {0.125}, float[1] half = {0.5}, int64[8] pads = {0, 0, 1, 1, 0, 0, 1, 1}, "
    "int8[2, 2, 1, 1] w = {1, -2, 3, 5}, float sw = {0.5}, int8 zw = {0}, float sx = {0.5}>"
)
HEADS = {
    "resized": 'r = Resize<mode = "linear">(f, , sizes)',
    "averages": "r = AveragePool<kernel_shape = [2, 2]>(f)",
    "means": "r = GlobalAveragePool(f)",
    "rows": "r = LayerNormalization(f, g)",
    "images": "r = InstanceNormalization(f, c, c)",
    "shares": "r = Softmax(f)",
    "shares, largest": "a = Softmax(f) r = MaxPool<kernel_shape = [2, 2]>(a)",
    "roots, largest": "a = Abs(f) b = Sqrt(a) r = MaxPool<kernel_shape = [2, 2]>(b)",
    "quotients, largest": "a = Div(f, k) r = MaxPool<kernel_shape = [2, 2]>(a)",
    "border": "r = Pad(f, pads, half)",
    "narrowed": "a = Cast<to = 3>(x) b = Cast<to = 1>(a) r = MaxPool<kernel_shape = [2, 2]>(b)",
    "float16": "a = Cast<to = 10>(x) b = Softmax(a) r = Cast<to = 1>(b)",
    "float64": "a = Cast<to = 11>(x) b = Softmax(a) r = Cast<to = 1>(b)",
}
TAILS = {
    "quantizer": ("uint8", "y = QuantizeLinear(r, s, z)"),
    "layer": ("int32", "q = QuantizeLinear(r, s, z) y = ConvInteger(q, w, z)"),
}


def parsed(inputs: str, outputs: str, body: str) -> onnx.ModelProto:
    """A model of opset 21 whose outputs have no shapes."""
    model = parse_model(
        f'<ir_version: 10, opset_import: ["" : 21]> net ({inputs}) => ({outputs}) {CONSTANTS} {{ {body} }}'
    )
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    return model


def codes(kind: str, count: int, shape: tuple[int, ...]) -> Any:
    """Random numbers of a dtype; of wide ones small."""
    info = np.iinfo(kind)
    lo, hi = max(int(info.min), -300), min(int(info.max), 300)
    return np.random.default_rng(1).integers(lo, hi, (count, *shape), endpoint=True).astype(kind)


def check_runs(model: onnx.ModelProto, feeds: dict[str, Any], folder: Path) -> None:
    """The interpreter takes each frame, and gives the numbers of onnxruntime."""
    onnx.save(model, folder / "m.onnx")
    graph = hlsgen.check(folder / "m.onnx").graph
    count = len(next(iter(feeds.values())))
    x = reference.pack_inputs(graph, feeds) if len(feeds) > 1 else reference.frames_of(graph, feeds["x"])
    codes = reference.run_output(graph, reference.encode_input(graph, x))
    outputs_by_name = (
        reference.named_outputs(graph, codes) if graph.model.outputs else {"y": reference.decode_output(graph, codes)}
    )
    for n in range(count):
        expected = ort.run(model, {name: values[n : n + 1] for name, values in feeds.items()})
        for result, values in zip(expected, outputs_by_name.values(), strict=True):
            assert np.array_equal(values[n].ravel(), result.ravel()), n


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize(("kind", "tail"), [("uint8", "layer"), ("int8", "quantizer"), ("int32", "quantizer")])
def test_fractions_enter_as_they_are(kind: str, head: str, tail: str, tmp_path: Path) -> None:
    out, end = TAILS[tail]
    body = f"f = Cast<to = 1>(x) {HEADS[head]} {end}"
    if "(f" not in HEADS[head]:
        body = f"{HEADS[head]} {end}"
    check_runs(parsed(f"{kind}[1, 2, 4, 4] x", f"{out}[?] y", body), {"x": codes(kind, 8, (2, 4, 4))}, tmp_path)


BRANCHES = {
    "at the input": "f = Cast<to = 1>(x) a = Softmax(f) r = LayerNormalization(f, g) ",
    "one of them plain": "f = Cast<to = 1>(x) a = Softmax(f) r = Mul(f, k) ",
    "after the host": "f = Cast<to = 1>(x) a = Softmax(f) r = Mul(a, k) ",
}


@pytest.mark.parametrize("name", BRANCHES)
def test_branches(name: str, tmp_path: Path) -> None:
    body = f"{BRANCHES[name]} y = QuantizeLinear(a, s, z) v = QuantizeLinear(r, s2, z)"
    model = parsed("uint8[1, 2, 4, 4] x", "uint8[?] y, uint8[?] v", body)
    check_runs(model, {"x": codes("uint8", 6, (2, 4, 4))}, tmp_path)


def test_floats_that_branch_after_the_host(tmp_path: Path) -> None:
    """Two ports of float32 for one tensor waited for each other."""
    body = "a = Softmax(x) r = Mul(a, k) y = QuantizeLinear(a, s, z) v = QuantizeLinear(r, s2, z)"
    model = parsed("float[1, 2, 4, 4] x", "uint8[?] y, uint8[?] v", body)
    x = np.random.default_rng(2).normal(0, 3, (6, 2, 4, 4)).astype(np.float32)
    check_runs(model, {"x": x}, tmp_path)


def test_two_inputs(tmp_path: Path) -> None:
    body = (
        "f = Cast<to = 1>(a) h = Cast<to = 1>(b) r = Softmax(f) t = LayerNormalization(h, g) q = QuantizeLinear(r, s, z) "
        "u = QuantizeLinear(t, s2, z) d = DequantizeLinear(q, s, z) e = DequantizeLinear(u, s2, z) v = Sub(d, e) "
        "y = QuantizeLinear(v, s, z)"
    )
    model = parsed("uint8[1, 2, 4, 4] a, int8[1, 2, 4, 4] b", "uint8[?] y", body)
    feeds = {"a": codes("uint8", 6, (2, 4, 4)), "b": codes("int8", 6, (2, 4, 4))}
    check_runs(model, feeds, tmp_path)


def test_an_annotation_of_floats(tmp_path: Path) -> None:
    """INT8 is the type of the input, not of LayerNormalization's result."""
    model = parsed("float[1, 2, 4, 4] x", "uint8[?] y", "r = LayerNormalization(x, g) y = QuantizeLinear(r, s, z)")
    note = onnx.TensorAnnotation(tensor_name="x")
    note.quant_parameter_tensor_names.add(key="finn_datatype", value="INT8")
    model.graph.quantization_annotation.append(note)
    check_runs(model, {"x": codes("int8", 6, (2, 4, 4)).astype(np.float32)}, tmp_path)


@pytest.mark.parametrize(
    ("body", "keeps"),
    [
        ("r = MaxPool<kernel_shape = [2, 2]>(x)", True),
        ('r = Resize<mode = "nearest">(x, , sizes)', True),
        ('r = Resize<mode = "linear">(x, , sizes)', False),
        ("r = Pad(x, pads)", True),
        ("r = Pad(x, pads, half)", False),
        ("r = Concat<axis = 1>(x, w4)", True),
        ("r = Concat<axis = 1>(x, half4)", False),
        ("r = Softmax(x)", False),
    ],
)
def test_what_keeps_the_numbers(body: str, keeps: bool, tmp_path: Path) -> None:
    host_constants = (
        "w4 = ConstantOfShape<value = float[1] {7}>(shape) half4 = ConstantOfShape<value = float[1] {300}>(shape)"
    )
    text = f"shape = Constant<value_ints = [1, 1, 4, 4]>() {host_constants} {body} y = QuantizeLinear(r, s, z)"
    model = parsed("float[1, 2, 4, 4] x", "uint8[?] y", text)
    onnx.save(model, tmp_path / "m.onnx")
    (step,) = hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(input="codes")).graph.head
    assert keep_type([step.op], IntType(-128, 127), 0, 32) is keeps
