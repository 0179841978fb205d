"""Deeploy's integer networks: every RequantShift reproduces their golden integers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from image_steps import imported_node
from integer_models import in_hardware, same
from onnx import TensorProto, helper, numpy_helper
from paths import needs_icarus, shared_model

import hlsgen
from hlsgen.interpreter import graph as reference
from hlsgen.ir.evaluate import quantize

Array = Any
NAMES = ["KeywordSpotting", "ImageClassification"]


class Golden:
    """A network and its activations by tensor name.

    Recorded activations of Conv and Gemm have the names of their weights. The activation of a RequantShift follows
    the last one of its inputs.
    """

    def __init__(self, name: str) -> None:
        path = shared_model(f"deeploy/deeploy_mlperf_{name}")
        self.graph = onnx.load(path).graph
        self.constants = {i.name: numpy_helper.to_array(i) for i in self.graph.initializer}
        recorded = np.load(path.with_name(f"mlperf_{name}_activations.npz"))
        self.output = np.load(path.with_name(f"mlperf_{name}_outputs.npz"))["output_0"]
        keys = list(recorded)
        place: dict[str, int] = {}
        self.values: dict[str, Array] = {}
        for node in self.graph.node:
            inputs = [i for i in node.input if i in place]
            if node.op_type in ("Conv", "Gemm"):
                key = node.input[1].removesuffix(".weight").replace(".", "_").lower()
                place[node.output[0]] = keys.index(key)
            elif node.op_type == "Add":
                place[node.output[0]] = max(place[i] for i in inputs)
                self.values[node.output[0]] = self.values[inputs[0]] + self.values[inputs[1]]
                continue
            else:
                place[node.output[0]] = max(place[i] for i in inputs) + (node.op_type != "Reshape")
            value = recorded[keys[place[node.output[0]]]]
            self.values[node.output[0]] = value.reshape(1, -1) if node.op_type == "Reshape" else value

    def requantizers(self) -> list[onnx.NodeProto]:
        return [n for n in self.graph.node if n.op_type == "RequantShift"]


@pytest.mark.parametrize("name, count", [("KeywordSpotting", 10), ("ImageClassification", 14)])
def test_every_requantizer(name: str, count: int) -> None:
    """The imported step on all golden inputs, with a function per channel."""
    golden = Golden(name)
    nodes = golden.requantizers()
    assert len(nodes) == count
    for node in nodes:
        x, y = golden.values[node.input[0]], golden.values[node.output[0]]
        assert x.shape == y.shape
        parts = [golden.constants[i] for i in node.input[1:]]
        ((op, shape),) = imported_node(node, x.shape, "float32", parts).outputs[0]
        assert shape == x.shape
        assert same(quantize(op, x.astype(np.float32)), y)
    assert same(golden.values[nodes[-1].output[0]], golden.output)


@pytest.mark.parametrize("name", NAMES)
def test_requantizers_as_hardware(name: str, tmp_path: Path) -> None:
    """The widest one of each network becomes hardware for 32-bit sums, and reproduces the golden integers."""
    golden = Golden(name)
    node = max(golden.requantizers(), key=lambda n: np.abs(golden.values[n.input[0]]).max())
    x, y = golden.values[node.input[0]], golden.values[node.output[0]]
    points = (slice(None), slice(None), slice(0, 1), slice(0, 2))
    graph = helper.make_graph(
        [node],
        "rescale",
        [helper.make_tensor_value_info(node.input[0], TensorProto.INT32, x[points].shape)],
        [helper.make_empty_tensor_value_info(node.output[0])],
        [numpy_helper.from_array(golden.constants[i], i) for i in node.input[1:]],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 10)]), tmp_path / "model.onnx")
    build = hlsgen.check(tmp_path / "model.onnx", hlsgen.Options(lanes=4))
    for column in range(0, x.shape[3] - 1, 2):
        points = (slice(None), slice(None), slice(0, 1), slice(column, column + 2))
        codes = reference.run_layers(build.graph, reference.encode_input(build.graph, x[points].astype(np.int64)[None]))
        assert same(codes[-1][0], y[points])


@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize(
    "name, simulator",
    [
        pytest.param("KeywordSpotting", "icarus", marks=needs_icarus),
        ("ImageClassification", "verilator"),
    ],
)
def test_the_last_layer(name: str, simulator: str, tmp_path: Path) -> None:
    """Gemm and RequantShift in simulated hardware: the golden output, and Deeploy's formula on random codes."""
    golden = Golden(name)
    gemm, shift = golden.graph.node[-2:]
    golden_codes = golden.values[gemm.input[0]]
    weight, bias, mul, add = (golden.constants[i] for i in (*gemm.input[1:], *shift.input[1:]))
    inner = helper.make_graph(
        [gemm, shift],
        "last",
        [helper.make_tensor_value_info(gemm.input[0], TensorProto.UINT8, ["N", 64])],
        [helper.make_empty_tensor_value_info(shift.output[0])],
        [numpy_helper.from_array(golden.constants[i], i) for i in (*gemm.input[1:], *shift.input[1:])],
    )
    model = helper.make_model(inner, opset_imports=[helper.make_opsetid("", 10)], ir_version=5)
    x = np.random.default_rng(0).integers(0, 256, (30, 64))
    x[0], x[1] = golden_codes[0], 255
    sums = x @ weight.T.astype(np.int64) + bias.astype(np.int64)
    expected = np.clip((sums * mul.astype(np.int64) + add.astype(np.int64) + 32768) >> 16, -128, 127)
    assert same(expected[:1], golden.output)
    assert len(np.unique(expected)) > 20
    in_hardware(model, x.astype(np.uint8), expected, tmp_path, simulator, target_cycles=160)


@pytest.mark.parametrize("domain", ["", "PACTOps", "Deeploy", "com.microsoft"])
def test_any_domain(domain: str, tmp_path: Path) -> None:
    """Exporters put RequantShift into domains of their own."""
    rng = np.random.default_rng(0)
    mul, add = rng.integers(1, 900, (5, 1, 1)), rng.integers(-9999, 9999, (5, 1, 1))
    node = helper.make_node("RequantShift", ["x", "mul", "add"], ["y"], domain=domain, div=256, signed=0, n_levels=200)
    shape = [1, 5, 2, 3]
    graph = helper.make_graph(
        [node],
        "rescale",
        [helper.make_tensor_value_info("x", TensorProto.INT16, shape)],
        [helper.make_tensor_value_info("y", TensorProto.INT16, shape)],
        [numpy_helper.from_array(a, name) for name, a in (("mul", mul), ("add", add))],
    )
    opsets = {"": 13, domain: 13 if not domain else 1}
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid(*o) for o in opsets.items()]), tmp_path / "m.onnx"
    )
    build = hlsgen.check(tmp_path / "m.onnx")
    x = rng.integers(-500, 500, (8, *shape))
    outputs = reference.run_layers(build.graph, reference.encode_input(build.graph, x.astype(np.int16)))[-1]
    assert same(outputs.reshape(x.shape), np.clip((x * mul + add + 128) >> 8, 0, 199))


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize("levels", [{"n_levels": 200, "n_levels_out": 16}, {"n_levels_out": 200}])
def test_average(levels: dict[str, int], tmp_path: Path) -> None:
    """RequantShift of averages, which have a fraction, rounds down once at the end. n_levels precedes n_levels_out."""
    rng = np.random.default_rng(3)
    mul, add = rng.integers(-900, 900, (3, 1, 1)), rng.integers(-999, 999, (3, 1, 1))
    weight = rng.integers(-8, 8, (3, 2, 1, 1))
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["t"]),
        helper.make_node("RequantShift", ["t", "one", "zero"], ["c"], div=4, signed=1, n_levels_out=256),
        helper.make_node("AveragePool", ["c"], ["a"], kernel_shape=[4, 4], strides=[4, 4]),
        helper.make_node("RequantShift", ["a", "mul", "add"], ["y"], div=64, signed=1, **levels),
    ]
    constants = {"w": weight, "one": np.array(1), "zero": np.array(0), "mul": mul, "add": add}
    inner = helper.make_graph(
        nodes,
        "average",
        [helper.make_tensor_value_info("x", TensorProto.INT8, ["N", 2, 8, 8])],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(value.astype(np.float32), key) for key, value in constants.items()],
    )
    x = rng.integers(-128, 128, (12, 2, 8, 8))
    sums = np.einsum("nchw,oc->nohw", x, weight[:, :, 0, 0])
    codes = np.clip((sums + 2) >> 2, -128, 127).reshape(12, 3, 2, 4, 2, 4).sum((3, 5))
    expected = np.clip((codes * mul + 16 * (add + 32)) // (16 * 64), -100, 99)
    model = helper.make_model(inner, opset_imports=[helper.make_opsetid("", 10)], ir_version=5)
    assert len(np.unique(expected)) > 20
    in_hardware(model, x.astype(np.int8), expected, tmp_path, "verilator")


def test_wide_sums_are_certified(tmp_path: Path) -> None:
    """RequantShift of float32 sums with too many values for an exhaustive test."""
    rng = np.random.default_rng(5)
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["t"], transB=1),
        helper.make_node("RequantShift", ["t", "mul", "add"], ["y"], div=1 << 16, signed=0, n_levels_out=256),
    ]
    constants = {"w": rng.integers(-128, 128, (40, 300)), "b": rng.integers(-999, 999, 40)}
    constants |= {"mul": rng.integers(1, 20, 40), "add": rng.integers(-9999, 9999, 40)}
    inner = helper.make_graph(
        nodes,
        "wide",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, ["N", 300])],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(value.astype(np.float32), key) for key, value in constants.items()],
    )
    model = helper.make_model(inner, opset_imports=[helper.make_opsetid("", 10)], ir_version=5)
    onnx.save(model, tmp_path / "model.onnx")
    hlsgen.build(tmp_path / "model.onnx", tmp_path / "out")
    assert hlsgen.certify(tmp_path / "out").ok
