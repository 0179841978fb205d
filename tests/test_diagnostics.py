"""Models, files and options that are wrong: diagnostics with codes, all at once, and nothing written."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from models import DOMAIN, Net, mlp, quantizer, save
from onnx import TensorProto, helper, numpy_helper
from paths import ROOT, needs_icarus
from typer.testing import CliRunner

import hlsgen
from hlsgen import Options, cli
from hlsgen.diagnostics import CODES, Collector, Diagnostic, HlsgenError, fail
from hlsgen.driver import options as driver_options
from hlsgen.simulation import cocotb_runner

ONES = np.ones(4, np.float32)
NAN = float("nan")


def found(model: onnx.ModelProto, tmp_path: Path, **options: Any) -> list[hlsgen.Diagnostic]:
    """What `check` says about a model: errors, or the warnings of one that is right."""
    path = save(model, tmp_path / "model.onnx")
    try:
        return hlsgen.check(path, Options(**options)).warnings
    except HlsgenError as error:
        return error.diagnostics


def external(location: str, **entries: str) -> onnx.ModelProto:
    model = quantizer().model()
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=value)
    return model


def edited(net: Net, edit: Callable[[onnx.ModelProto], object]) -> onnx.ModelProto:
    model = net.model()
    edit(model)
    return model


def raw(**fields: Any) -> Callable[[onnx.ModelProto], None]:
    """Sets fields of the first initializer: dims, raw_data."""

    def edit(model: onnx.ModelProto) -> None:
        tensor = model.graph.initializer[0]
        for key, value in fields.items():
            if key == "dims":
                del tensor.dims[:]
                tensor.dims.extend(value)
            else:
                setattr(tensor, key, value)

    return edit


def branching() -> Net:
    net = Net().quant(name="q")
    return net.node("Relu", "x", outputs=["other"]).node("Add", "t0", "other", name="add")


def two_layers() -> Net:
    """The input itself into two layers, one behind a Transpose; both are quantized and added."""
    net = Net((1, 2, 4)).linear().quant()
    first, net.last = net.last, "x"
    net.then("Transpose", perm=[0, 2, 1]).then("Transpose", perm=[0, 2, 1]).linear(name="other").quant()
    return net.node("Add", first, net.last).quant()


def doubled(times: int) -> Net:
    net = Net()
    start = net.const(np.ones(1 << 20, np.float32))
    net.last = start
    for i in range(times):
        net.node("Concat", net.last, net.last, name=f"concat{i}", axis=0)
    return net.node("Add", "x", net.last).quant()


def many_large() -> onnx.ModelProto:
    """Tensors that are each small enough."""
    net = Net((1, 1 << 12, 1 << 12))
    for _ in range(33):
        net.quant()
    return net.model()


def subgraph() -> Net:
    body = helper.make_graph([], "body", [], [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])])
    return Net().node("If", "x", name="if0", then_branch=body, else_branch=body).quant()


def function_model() -> onnx.ModelProto:
    model = Net().then("Relu", name="own").quant().model()
    body = [helper.make_node("Neg", ["a"], ["b"])]
    model.functions.append(helper.make_function("", "Relu", ["a"], ["b"], body, [helper.make_opsetid("", 13)]))
    return model


def sparse() -> onnx.ModelProto:
    model = mlp().model()
    values = numpy_helper.from_array(np.ones(1, np.float32), "c0")
    indices = numpy_helper.from_array(np.zeros(1, np.int64), "i")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [4]))
    return model


def scattered() -> Net:
    """A tensor's elements in reversed order of their index bits, between two convolutions."""
    net = Net((1, 4, 8, 8)).quant(name="q")
    for name in ("first", "second"):
        data = net.last
        net.node("IntQuant", np.ones((4, 4, 3, 3), np.float32), 1.0, 0.0, 4.0, domain=DOMAIN)
        net.node("Conv", data, net.last, name=name, pads=[1, 1, 1, 1]).quant()
        if name == "first":
            net.then("Reshape", np.array([1] + [2] * 8)).then("Transpose", perm=[0, *range(8, 0, -1)])
            net.then("Reshape", np.array([1, 4, 8, 8]))
    return net


def declared(output: int, value: int = TensorProto.FLOAT) -> onnx.ModelProto:
    """The types of the output and of the tensor before its quantizer are declared so."""
    net = Net().then("Relu", name="r")
    inner = net.last
    model = net.quant().model()
    model.graph.output[0].type.tensor_type.elem_type = output
    model.graph.value_info.append(helper.make_tensor_value_info(inner, value, [1, 4]))
    return model


def foreign(domain: str, op_type: str) -> onnx.ModelProto:
    return sized(Net().then(op_type, 0.5, domain=domain).quant(), opsets={"": 13, DOMAIN: 1, domain: 1}).model()


def newer_ir(model: onnx.ModelProto) -> None:
    model.ir_version = 99


def two_inputs() -> Net:
    net = branching()
    net.inputs.append(helper.make_tensor_value_info("second", TensorProto.FLOAT, [1, 4]))
    return net.node("Add", net.last, "second")


def nameless_output() -> Net:
    net = Net().quant().then("Relu")
    net.outputs = [""]
    return net


def unlike_inputs() -> Net:
    """A quantizer behind the first input; the second is an output, too."""
    net = Net()
    net.inputs.append(helper.make_tensor_value_info("second", TensorProto.FLOAT, [1, 4]))
    ends = [net.quant(name="q").last, net.node("Identity", "second", name="same").last]
    net.outputs = ends
    return net


def unordered() -> Net:
    net = Net().then("Relu", name="r").quant(name="q")
    net.nodes.reverse()
    return net


def cyclic() -> Net:
    return Net().node("Add", "x", "t1", name="a").node("Relu", "t0", name="b").quant()


def no_outputs() -> Net:
    net = Net().node("Relu", "x", outputs=[], name="r")
    net.nodes += Net().quant(name="q").nodes
    net.constants += Net().quant(name="q").constants
    net.outputs = ["nothing"]
    return net


def sized(net: Net, **kwargs: Any) -> Net:
    for key, value in kwargs.items():
        setattr(net, key, value)
    return net


Model = Callable[[], onnx.ModelProto]

#: name -> (code, a part of the diagnostic's node or message, the model). Options follow if there are any.
CASES: dict[str, tuple[Any, ...]] = {
    "no nodes": ("HG002", "no ONNX graph", lambda: Net().model()),
    "empty message": ("HG002", "no ONNX graph", onnx.ModelProto),
    "short raw data": ("HG002", "c0", lambda: edited(quantizer(scale=ONES), raw(raw_data=b"123"))),
    "negative dimension": ("HG002", "c0", lambda: edited(quantizer(), raw(dims=[-1, -4]))),
    "unknown data type": ("HG002", "c0", lambda: edited(quantizer(), raw(data_type=99))),
    "external data beside no file": ("HG003", "weights.bin", lambda: external("weights.bin")),
    "external data above": ("HG003", "'../secret'", lambda: external("../secret")),
    "external data absolute": ("HG003", "/etc/passwd", lambda: external("/etc/passwd")),
    "external data nowhere": ("HG003", "c0", lambda: external("")),
    "external data with NUL": ("HG003", "c0", lambda: external("a\0b")),
    "external data with a long name": ("HG003", "c0", lambda: external("a" * 5000)),
    "external data, bad offset": ("HG003", "model.onnx", lambda: external("model.onnx", offset="-1")),
    "external data, offset no number": ("HG003", "c0", lambda: external("model.onnx", offset="x")),
    "external data too short": ("HG003", "model.onnx", lambda: external("model.onnx", offset="100000")),
    "external data, bad length": ("HG003", "model.onnx", lambda: external("model.onnx", length="1000000000000")),
    "huge dimensions": ("HG004", "c0", lambda: edited(quantizer(), raw(dims=[1 << 40, 1 << 40]))),
    "huge input": ("HG004", "x", lambda: Net((1, 1 << 20, 1 << 20)).quant().model()),
    "too many dimensions": ("HG004", "x", lambda: Net((1,) * 70).quant().model()),
    "huge result": ("HG004", "fc", lambda: Net((1 << 13, 1)).quant().linear(1 << 12, 1).model()),
    "huge tensors together": ("HG004", "elements together", many_large),
    "ConstantOfShape bomb": ("HG004", "bomb", lambda: bomb("ConstantOfShape", np.array([1 << 20, 1 << 20]))),
    "Expand bomb": ("HG004", "bomb", lambda: bomb("Expand", ONES, np.array([1 << 20, 1 << 20, 4]))),
    "Tile bomb": ("HG004", "bomb", lambda: bomb("Tile", ONES, np.array([1 << 40]))),
    "Range bomb": ("HG004", "bomb", lambda: bomb("Range", *(np.asarray(float(v)) for v in (0, 1e12, 1)))),
    "broadcast bomb": ("HG004", "bomb", lambda: bomb("Add", np.ones((8192, 1)), np.ones((1, 8192)))),
    "Concat bomb": ("HG004", "concat", lambda: doubled(40).model()),
    "TopK bomb": (
        "HG004",
        "top",
        lambda: quantizer().then("TopK", np.array([1 << 40]), outputs=["v", ""], name="top").model(),
    ),
    "unknown operator": ("HG010", "odd", lambda: Net().then("NoSuchOp", name="odd").quant().model()),
    "3-D convolution": (
        "HG010",
        "conv",
        lambda: Net((1, 1, 4, 4, 4)).then("Conv", np.ones((1, 1, 3, 3, 3)), name="conv").model(),
    ),
    "If": ("HG020", "if0", lambda: subgraph().model()),
    "local function": ("HG010", "function Relu", function_model),
    "constant over data": ("HG010", "div", lambda: Net().node("Div", 2 * ONES, "x", name="div").quant().model()),
    "unknown domain": (
        "HG011",
        "alien",
        lambda: Net().then("Relu", name="alien", domain="com.example").quant().model(),
    ),
    "unknown operator of a known domain": (
        "HG010",
        "f",
        lambda: quantizer().then("Blur", domain=DOMAIN, name="f").model(),
    ),
    "dynamic shape": ("HG012", "[1, N]", lambda: Net((1, "N")).quant().model()),
    "no shape": ("HG012", "x", lambda: Net(None).quant().model()),
    "zero dimension": ("HG012", "x", lambda: Net((1, 0)).quant().model()),
    "negative input dimension": ("HG012", "x", lambda: Net((1, -3)).quant().model()),
    "empty TopK": (
        "HG012",
        "top",
        lambda: quantizer().then("TopK", np.array([0]), outputs=["v", ""], name="top").model(),
    ),
    "flag 2": ("HG013", "signed", lambda: quantizer(signed=2).model()),
    "flag text": ("HG013", "narrow", lambda: quantizer(narrow="yes").model()),
    "Cast without to": ("HG013", "cast", lambda: Net().then("Cast", name="cast").quant().model()),
    "wrong attribute type": ("HG013", "axis", lambda: Net().then("Softmax", name="s", axis="last").quant().model()),
    "attribute of another opset": (
        "HG013",
        "no attribute min",
        lambda: Net().then("Clip", name="r", min=0.0).quant().model(),
    ),
    "perm": ("HG013", "turn", lambda: Net().then("Transpose", perm=[0, 0], name="turn").quant().model()),
    "reshape to another size": ("HG013", "re", lambda: Net().then("Reshape", np.array([5]), name="re").quant().model()),
    "out_scale text": ("HG013", "out_scale", lambda: thresholds(out_scale="big")),
    "data_layout": ("HG013", "data_layout", lambda: thresholds(data_layout="NHWC")),
    "training mode": (
        "HG013",
        "training",
        lambda: Net().then("BatchNormalization", *[ONES] * 4, training_mode=1).model(),
    ),
    "function attribute": ("HG013", "refers to a function", lambda: edited(quantizer(), refer)),
    "Trunc without inputs": ("HG014", "tr", lambda: Net().then("Trunc", 0.5, 0.0, domain=DOMAIN, name="tr").model()),
    "IntQuant without bits": ("HG014", "bitwidth", lambda: Net().then("IntQuant", 1.0, 0.0, domain=DOMAIN).model()),
    "MultiThreshold without inputs": (
        "HG014",
        "thresholds",
        lambda: Net().then("MultiThreshold", domain=DOMAIN).model(),
    ),
    "BipolarQuant without scale": ("HG014", "scale", lambda: Net().then("BipolarQuant", domain=DOMAIN).model()),
    "MatMul of one": ("HG014", "mm", lambda: quantizer().then("MatMul", name="mm").model()),
    "Relu of two": ("HG014", "r", lambda: Net().then("Relu", ONES, name="r").quant().model()),
    "unordered nodes": ("HG014", "order of computation", lambda: unordered().model()),
    "cycle": ("HG014", "cycles", lambda: cyclic().model()),
    "two inputs": ("HG036", "no quantizer", lambda: two_inputs().model()),
    "an output without a name": ("HG015", "has no name", lambda: nameless_output().model()),
    "float32 beside codes": ("HG042", "float32 (second)", lambda: unlike_inputs().model()),
    "branches without a quantizer": ("HG036", "no quantizer", lambda: branching().model()),
    "tensor made twice": (
        "HG015",
        "'t0'",
        lambda: Net().then("Relu").node("Relu", "x", outputs=["t0"], name="again").model(),
    ),
    "initializer twice": (
        "HG015",
        "c0",
        lambda: edited(quantizer(), lambda m: m.graph.initializer.append(m.graph.initializer[0])),
    ),
    "node without outputs": ("HG015", "nothing", lambda: no_outputs().model()),
    "constant output": ("HG015", "does not depend", lambda: Net().node("Relu", ONES).model()),
    "old opset": ("HG015", "opset 6", lambda: sized(quantizer(), opsets={"": 6, DOMAIN: 1}).model()),
    "bits from the input": ("HG020", "bitwidth", lambda: Net().quant(bits="x", name="q").model()),
    "scale from the input": ("HG020", "scale", lambda: Net().quant(scale="x", name="q").model()),
    "Clip bound from the input": ("HG020", "clip", lambda: Net().node("Clip", ONES, "x", name="clip").quant().model()),
    "fractional bits": ("HG021", "3.5", lambda: quantizer(bits=3.5).model()),
    "33 bits": ("HG021", "33", lambda: quantizer(bits=33.0).model()),
    "0 bits": ("HG021", "is 0", lambda: quantizer(bits=0.0).model()),
    "negative bits": ("HG021", "-2", lambda: quantizer(bits=-2.0).model()),
    "NaN bits": ("HG021", "nan", lambda: quantizer(bits=NAN).model()),
    "infinite bits": ("HG021", "inf", lambda: quantizer(bits=float("inf")).model()),
    "fractional bits of channels": ("HG021", "0 to 32", lambda: quantizer(bits=1.5 * ONES).model()),
    "zero scale": ("HG022", "0.0", lambda: quantizer(scale=0.0).model()),
    "negative scale": ("HG022", "-1.0", lambda: quantizer(scale=-1.0).model()),
    "NaN scale": ("HG022", "nan", lambda: quantizer(scale=NAN).model()),
    "infinite scale": ("HG022", "inf", lambda: quantizer(scale=np.array([1, np.inf, 1, 1], np.float32)).model()),
    "Trunc ratio": ("HG022", "out of range", lambda: truncated(1e-40, 1e38)),
    "scale per element": (
        "HG023",
        "[2, 4]",
        lambda: (
            Net((2, 4))
            .quant()
            .then("BipolarQuant", np.ones((2, 4), np.float32), domain="qonnx.custom_op.general", name="q")
            .model()
        ),
    ),
    "scale of another length": ("HG023", "[3]", lambda: quantizer(scale=np.ones(3, np.float32)).model()),
    "empty scale": ("HG023", "empty", lambda: quantizer(scale=np.ones(0, np.float32)).model()),
    "thresholds of rank 1": ("HG023", "thresholds", lambda: thresholds(np.ones(4, np.float32))),
    "no weights": (
        "HG023",
        "empty",
        lambda: quantizer().then("MatMul", np.ones((4, 0), np.float32), name="mm").model(),
    ),
    "NaN zero point": ("HG024", "zeropt", lambda: quantizer(zero=NAN).model()),
    "odd zero point": ("HG024", "fc", lambda: Net().quant(zero=0.1).linear().model()),
    "rounding mode": ("HG025", "'SOMEHOW'", lambda: quantizer(rounding_mode="SOMEHOW").model()),
    "boolean input": ("HG026", "BOOL", lambda: Net((1, 4), TensorProto.BOOL).quant().model()),
    "text scale": ("HG026", "scale", lambda: quantizer(scale=np.array(["one"], object)).model()),
    "complex operand": ("HG026", "complex", lambda: Net().then("Add", ONES.astype(np.complex64)).quant().model()),
    "cast of int to int4": (
        "HG026",
        "to 4 bits",
        lambda: Net(elem_type=TensorProto.INT8).then("Cast", to=TensorProto.INT4).model(),
    ),
    "cast to int": ("HG026", "cast", lambda: Net().then("Cast", to=TensorProto.UINT64, name="cast").quant().model()),
    "sparse initializer": ("HG026", "c0", sparse),
    "lossy float64": ("HG026", "float64", lambda: Net().then("Add", np.array(0.1)).quant().model()),
    "integer arithmetic": (
        "HG026",
        "int16",
        lambda: Net((1, 4), TensorProto.INT16).then("Mod", np.ones(4, np.int16)).quant().model(),
    ),
    "declared output": ("HG028", "float16", lambda: declared(TensorProto.FLOAT16)),
    "declared value": ("HG028", "'r' computes float32", lambda: declared(TensorProto.FLOAT, TensorProto.INT8)),
    "spatial 0": (
        "HG013",
        "spatial",
        lambda: sized(
            Net().then("BatchNormalization", *[ONES] * 4, spatial=0).quant(), opsets={"": 7, DOMAIN: 1}
        ).model(),
    ),
    "opset of the future": (
        "HG090",
        "opset 99",
        lambda: sized(quantizer().then("Relu"), opsets={"": 99, DOMAIN: 1}).model(),
        {},
    ),
    "IR of the future": ("HG090", "IR version 99", lambda: edited(quantizer(), newer_ir), {}),
    "no opset": ("HG090", "imports no opset", lambda: sized(quantizer().then("Relu"), opsets={DOMAIN: 1}).model(), {}),
    "quantizer of Quark": (
        "HG011",
        "quantizer of AMD Quark",
        lambda: foreign("com.amd.quark", "ExtendedQuantizeLinear"),
    ),
    "quantizer of Vitis AI": ("HG011", "Vitis AI", lambda: foreign("com.vai.quantize", "VitisQuantizeLinear")),
    "quantizer of OpenVINO": ("HG011", "nncf.quantize", lambda: foreign("org.openvinotoolkit", "FakeQuantize")),
    "quantizer of TensorRT": ("HG011", "TensorRT", lambda: foreign("trt", "TRT_FP8QuantizeLinear")),
    "quantizer of TensorRT in its plugins": (
        "HG011",
        "TensorRT",
        lambda: foreign("trt.plugins", "TRT_INT4DequantizeLinear"),
    ),
    "operator of nobody": ("HG011", "QONNX domains", lambda: foreign("example", "Blur")),
    "NaN weight": (
        "HG027",
        "nan at [1, 1]",
        lambda: quantizer().linear(weight=np.array([[1, 2], [3, NAN], [0, 1], [1, 1]])).model(),
    ),
    "NaN operand": ("HG027", "nan", lambda: Net().then("Add", NAN, name="add").quant().model()),
    "infinite operand": ("HG027", "inf", lambda: Net().then("Mul", 1e300 * np.ones(4), name="mul").quant().model()),
    "division by zero": ("HG027", "zero", lambda: Net().then("Div", 0.0, name="div").quant().model()),
    "NaN threshold": ("HG027", "NaN", lambda: thresholds(np.full((1, 3), NAN, np.float32))),
    "logarithm of a softmax in the middle": (
        "HG030",
        "soft",
        lambda: quantizer().then("LogSoftmax", name="soft").quant().linear(4, 3).model(),
    ),
    "softmax of a function": (
        "HG030",
        "e",
        lambda: quantizer().then("Exp", name="e").then("Softmax", name="soft").quant().linear(4, 3).model(),
    ),
    "softmax of wide scores": (
        "HG032",
        "soft",
        lambda: (
            Net()
            .quant(bits=12.0)
            .linear(4, 4, weight=np.full((4, 4), 511.75, np.float32), bits=12.0)
            .then("Softmax", name="soft")
            .quant()
            .linear(4, 4, name="b")
            .model()
        ),
    ),
    "softmax of scores of several scales": (
        "HG034",
        "soft",
        lambda: (
            quantizer(scale=np.array([[0.3, 0.1, 0.7, 0.9]], np.float32))
            .then("Softmax", name="soft")
            .quant()
            .linear(4, 4)
            .model()
        ),
    ),
    "softmax of a long row": (
        "HG010",
        "4097",
        lambda: (
            Net((1, 4097))
            .quant()
            .then("Softmax", axis=1, name="soft")
            .quant()
            .linear(1, 4097, weight=np.ones((4097, 1), np.float32))
            .model()
        ),
    ),
    "odd sum before a layer": ("HG030", "add", lambda: quantizer().then("Add", 0.3, name="add").linear().model()),
    "float weights": (
        "HG031",
        "mm",
        lambda: quantizer().then("MatMul", np.full((4, 2), 0.1, np.float32), name="mm").model(),
    ),
    "layer after layer": (
        "HG032",
        "b",
        lambda: Net().quant().linear(3, 4, name="a").linear(2, 3, name="b", scale=0.3).linear(2, 2, name="c").model(),
    ),
    "overflow": (
        "HG033",
        "fc",
        lambda: (
            Net().quant(bits=24.0).linear(weight=np.full((4, 3), 2.0**29, np.float32), scale=1.0, bits=32.0).model()
        ),
    ),
    "wide input": ("HG033", "fc", lambda: Net().quant(bits=32.0, scale=0.3).linear().model()),
    "float model": ("HG036", "model", lambda: Net().then("Relu").model()),
    "output that is the input": ("HG036", "computes nothing", lambda: Net().then("Identity").model()),
    "NaN in front of a pool": (
        "HG030",
        "pool",
        lambda: (
            Net((1, 1, 4, 4))
            .quant()
            .then("Sqrt")
            .then("MaxPool", kernel_shape=[2, 2], name="pool")
            .then("Neg")
            .quant()
            .model()
        ),
    ),
    "scales of columns": (
        "HG034",
        "fc",
        lambda: quantizer(scale=np.array([[0.3, 1e-4, 0.7, 0.9]], np.float32)).linear().model(),
    ),
    "scattered": ("HG035", "second", lambda: scattered().model()),
    "unrealizable": (
        "HG037",
        "wide",
        lambda: Net().quant(scale=np.array(0.1), bits=24.0, name="wide").model(),
        {"input": "float32"},
    ),
    "target": ("HG040", "--target", lambda: mlp().model(), {"target": "vhdl"}),
    "keyword as top": ("HG040", "--top", lambda: mlp().model(), {"top": "module"}),
    "library module as top": ("HG040", "--top", lambda: mlp().model(), {"top": "hg_mvu"}),
    "text as top": ("HG040", "--top", lambda: mlp().model(), {"top": "a; b"}),
    "input type": ("HG040", "--input", lambda: mlp().model(), {"input": "fixed:8"}),
    "long input type": ("HG040", "--input", lambda: mlp().model(), {"input": "INT" + "9" * 5000}),
    "0 lanes": ("HG040", "--lanes", lambda: quantizer().model(), {"lanes": 0}),
    "0 cycles": ("HG040", "--target-cycles", lambda: mlp().model(), {"target_cycles": 0}),
    "folding of no layer": ("HG041", "fc9", lambda: mlp().model(), {"folding": {"fc9": {"pe": 1, "simd": 1}}}),
    "folding of more than there is": (
        "HG041",
        "fc0",
        lambda: mlp().model(),
        {"folding": {"fc0": {"pe": 999, "simd": 1}}},
    ),
    "float32 to an output": (
        "HG042",
        "float32 goes from an input",
        lambda: unlike_inputs().model(),
        {"ports": "separate"},
    ),
    "frames of several cycles": (
        "HG044",
        "fc0",
        lambda: mlp().model(),
        {"ports": "plain", "folding": {"fc0": {"pe": 1, "simd": 1}}},
    ),
    "float32 into a layer": ("HG042", "fc", lambda: Net().linear().model(), {"input": "float32"}),
    "input of a layer": ("HG061", "x: fc multiplies", lambda: Net().linear().model()),
    "input of two layers": ("HG061", "x: fc multiplies", lambda: two_layers().model()),
    "budget that cannot be met": ("HG070", "--max-lut", lambda: mlp().model(), {"max_lut": 1}),
    "unknown device": ("HG040", "--device", lambda: mlp().model(), {"device": "ecp6"}),
    "multipliers that are not taken": ("HG090", "--max-dsp", lambda: mlp().model(), {"max_dsp": 4}),
}


def test_what_follows_a_wrong_layer(tmp_path: Path) -> None:
    """The shape behind it is not known, and nothing is said of it."""
    net = Net((1, 4, 4, 4)).quant()
    net.node("ConvTranspose", net.last, np.full((4, 2, 2, 2), 0.3, np.float32), name="up", strides=[2, 2])
    net.then("Add", np.ones((1, 2, 1, 1), np.float32)).quant().then("Reshape", np.array([1, 2 * 64]))
    onnx.save(net.model(), tmp_path / "m.onnx")
    with pytest.raises(hlsgen.HlsgenError) as error:
        hlsgen.check(tmp_path / "m.onnx")
    assert [(d.code, d.node) for d in error.value.diagnostics] == [("HG031", "up")]


def float_network(*shape: Any) -> Net:
    """Three layers with float weights; two operators that are not supported."""
    rng = np.random.default_rng(0)
    net = Net(shape).then("Conv", rng.normal(0, 1, (4, 1, 3, 3)).astype(np.float32), name="conv1").then("Relu")
    net.then("Conv", rng.normal(0, 1, (2, 4, 3, 3)).astype(np.float32), name="conv2")
    net.then("MaxPool", kernel_shape=[2, 2], strides=[2, 2]).then("Flatten")
    net.then("Gemm", rng.normal(0, 1, (8, 5)).astype(np.float32), name="fc").then("NoSuchOp", name="odd1")
    return net.then("NoSuchOp", name="odd2")


def problems_of(model: onnx.ModelProto, folder: Path) -> list[tuple[str, str]]:
    onnx.save(model, folder / "m.onnx")
    with pytest.raises(hlsgen.HlsgenError) as error:
        hlsgen.check(folder / "m.onnx")
    return [(d.code, d.node) for d in error.value.diagnostics]


FLOATS = [("HG036", "m"), ("HG031", "conv1"), ("HG031", "conv2"), ("HG031", "fc"), ("HG010", "odd1"), ("HG010", "odd2")]


def test_every_problem_of_a_float_model(tmp_path: Path) -> None:
    """The first one says that it is not quantized, and then each layer is named."""
    assert problems_of(float_network("N", 1, 8, 8).model(), tmp_path) == FLOATS


def test_every_problem_of_open_dimensions(tmp_path: Path) -> None:
    found = problems_of(float_network("N", 1, "H", "W").model(), tmp_path)
    assert found == [FLOATS[0], ("HG012", "x"), *FLOATS[1:]]


def test_every_problem_of_three_inputs(tmp_path: Path) -> None:
    net = float_network("N", 1, 8, 8)
    for name in ("second", "third"):
        net.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 5]))
        net.node("Add", net.last, name)
    assert problems_of(net.model(), tmp_path) == FLOATS


def test_every_choice_between_several_tensors(tmp_path: Path) -> None:
    """Each Where that is no function of one tensor is named, not only the first; one that is such a function is not."""
    net = Net((1, 4)).quant().linear(4, 4, name="one").quant(name="q1")
    one = net.last
    other = net.node("IntQuant", "x", 0.25, 0.0, 4.0, domain=DOMAIN, name="q2").linear(4, 4, name="two").quant().last
    ends = []
    for name, data, below in (("first", one, other), ("second", other, one), ("alone", one, one)):
        above = net.node("Greater", data, np.float32(0.5), name=f"{name} condition").last
        ends.append(net.node("Where", above, data, below, name=name).last)
    net.node("Add", ends[0], ends[1]).node("Add", net.last, ends[2]).quant()
    assert problems_of(net.model(), tmp_path) == [("HG015", "first"), ("HG015", "second")]


def test_a_model_with_a_quantizer_is_not_called_a_float_model(tmp_path: Path) -> None:
    net = Net((1, 4)).quant().then("MatMul", np.full((4, 2), 0.1, np.float32), name="mm")
    assert problems_of(net.model(), tmp_path) == [("HG031", "mm")]


def bomb(op: str, *inputs: Any) -> onnx.ModelProto:
    return (net := Net().node(op, *inputs, name="bomb")).node("Add", "x", net.last).quant().model()


def thresholds(table: Any = ((0.0, 1.0),), **attributes: Any) -> onnx.ModelProto:
    return Net().then("MultiThreshold", table, domain=DOMAIN, **attributes).model()


def truncated(scale: float, out_scale: float) -> onnx.ModelProto:
    return Net().then("Trunc", scale, 0.0, 8.0, out_scale, 4.0, domain=DOMAIN).model()


def refer(model: onnx.ModelProto) -> None:
    model.graph.node[0].attribute.add(name="signed", ref_attr_name="other", type=onnx.AttributeProto.INT)


@pytest.mark.parametrize("name", CASES)
def test_model(name: str, tmp_path: Path) -> None:
    code, text, make, *options = CASES[name]
    start = time.perf_counter()
    diagnostics = found(make(), tmp_path, **(options[0] if options else {}))
    assert code in [d.code for d in diagnostics], diagnostics
    assert any(text in f"{d.node}: {d.message}{d.hint}" for d in diagnostics if d.code == code), diagnostics
    assert len({str(d) for d in diagnostics}) == len(diagnostics)
    assert all(d.node and d.message for d in diagnostics)
    assert time.perf_counter() - start < 60  # no bomb; not a benchmark


@pytest.mark.parametrize("name", ["opset of the future", "IR of the future", "no opset"])
def test_warnings_name_no_file(name: str, tmp_path: Path) -> None:
    """A build stores its model under another name."""
    first, second = (save(CASES[name][2](), tmp_path / f"{file}.onnx") for file in ("first", "second"))
    assert hlsgen.check(first).warnings == hlsgen.check(second).warnings != []


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if len(case) == 3])
def test_model_on_the_command_line(name: str, tmp_path: Path) -> None:
    code, _, make = CASES[name]
    path, out = save(make(), tmp_path / "model.onnx"), tmp_path / "out"
    plain = CliRunner().invoke(cli.app, ["build", str(path), "-o", str(out)])
    assert plain.exit_code == 1
    assert code in plain.stderr
    assert "Traceback" not in plain.output
    machine = CliRunner().invoke(cli.app, ["build", str(path), "-o", str(out), "--json"])
    answer = json.loads(machine.stdout)
    assert machine.exit_code == 1
    assert answer["ok"] is False
    assert {"code", "node", "message", "hint", "severity", "title"} == set(answer["diagnostics"][0])
    assert [p.name for p in tmp_path.iterdir()] == ["model.onnx"]


@pytest.mark.sweep
def test_models_that_are_right(tmp_path: Path) -> None:
    """The cases above fail for their fault and not for what they have in common."""
    for net in (quantizer(), mlp(), Net((1, 3, 4)).quant().linear(5, 4).quant(), Net((1, 1 << 16)).quant()):
        assert found(net.model(), tmp_path) == []


def test_all_faults_at_once(tmp_path: Path) -> None:
    net = Net().quant(scale=0.0, bits=3.5, rounding_mode="NO", name="q0").linear(3, 4, name="fc", bits=40.0)
    net.then("Softmax", name="soft").then("Clip", name="r", min=0.0).then("Blur", name="blur", domain="example")
    net.quant(zero=NAN, name="q1").linear(4, 4)
    got = {(d.code, d.node) for d in found(net.model(), tmp_path, target="vhdl", input="seven")}
    assert got == {
        ("HG022", "q0"),
        ("HG021", "q0"),
        ("HG025", "q0"),
        ("HG021", "fc_weights"),
        ("HG030", "soft"),
        ("HG013", "r"),
        ("HG011", "blur"),
        ("HG024", "q1"),
        ("HG040", "--target"),
        ("HG040", "--input"),
    }


def test_all_layers_at_once(tmp_path: Path) -> None:
    net = Net().quant(bits=32.0).linear(4, 4, name="a").quant(bits=32.0, scale=0.3)
    got = [(d.code, d.node) for d in found(net.linear(name="b").model(), tmp_path)]
    assert got == [("HG033", "a"), ("HG033", "b")]


# --------------------------------------------------------------------------- files


@pytest.mark.parametrize(
    "code, data",
    [
        ("HG002", b""),
        ("HG002", b"hello"),
        ("HG002", b"\x89PNG\r\n\x1a\n"),
        ("HG002", bytes(100)),
        ("HG002", b"\xff" * 64),
    ],
)
def test_not_onnx(code: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(data)
    with pytest.raises(HlsgenError) as caught:
        hlsgen.check(path)
    assert [d.code for d in caught.value.diagnostics] == [code]


def test_truncated(tmp_path: Path) -> None:
    data, path = mlp().model().SerializeToString(), tmp_path / "model.onnx"
    for size in range(0, len(data), 7):
        path.write_bytes(data[:size])
        with pytest.raises(HlsgenError):
            hlsgen.check(path)


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    path = save(quantizer(name="abcdefgh").model(), tmp_path / "model.onnx")
    path.write_bytes(path.read_bytes().replace(b"abcdefgh", b"abc\xff\xfefgh"))
    with pytest.raises(HlsgenError, match=r"HG002.*UTF-8"):
        hlsgen.check(path)


@pytest.mark.parametrize("path", ["absent.onnx", ".", "x" * 300 + ".onnx", "a\0b.onnx", "model.onnx/more"])
def test_no_file(path: str, tmp_path: Path) -> None:
    save(mlp().model(), tmp_path / "model.onnx")
    with pytest.raises(HlsgenError, match="HG001"):
        hlsgen.check(tmp_path / path)


def test_external_data(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "secret").write_bytes(bytes(4))
    (tmp_path / "inside" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "inside" / "loop").symlink_to("loop")
    for location in ("link", "loop", "../secret", "x/../../secret"):
        path = save(external(location), tmp_path / "inside" / "model.onnx")
        with pytest.raises(HlsgenError, match="HG003"):
            hlsgen.check(path)
    (tmp_path / "inside" / "good").write_bytes(np.float32(0.5).tobytes())
    built = hlsgen.check(save(external("good"), path))
    assert b"good" not in built.files["model.onnx"]


def test_missing_data_files_are_one_problem(tmp_path: Path) -> None:
    model = mlp().model()
    for tensor in model.graph.initializer:
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=f"{tensor.name}.bin")
    (problem,) = found(model, tmp_path)
    assert problem.code == "HG003"
    assert (
        f"{len(model.graph.initializer)} external data files do not exist: 'c0.bin' (c0), 'c1.bin' (c1)"
        in problem.message
    )


def test_external_data_of_an_attribute(tmp_path: Path) -> None:
    net = Net().node("Constant", value=numpy_helper.from_array(np.ones(4, np.float32), "v"), name="k")
    model = net.node("Add", "x", net.last).quant().model()
    tensor = model.graph.node[0].attribute[0].t
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../secret")
    assert [(d.code, d.node) for d in found(model, tmp_path)] == [("HG003", "k")]


HOSTILE = 'a*/b"c`d\ne\r\x1b[31m \\ // $finish; endmodule \u2028\u202e\x00 \u00e9'


@pytest.mark.sim
@needs_icarus
def test_names_with_control_characters(tmp_path: Path) -> None:
    folder = tmp_path / "model \n* endmodule"
    folder.mkdir()
    net = Net().quant(name=HOSTILE).linear(3, 4, name=HOSTILE + "fc").quant(name="")
    model = net.model()
    model.graph.name = HOSTILE
    path = save(model, folder / "mo*\n`del$\\.onnx")
    built = hlsgen.build(path, tmp_path / "out")
    text = (tmp_path / "out" / "rtl" / f"{built.design.top}.v").read_text(encoding="utf-8")
    assert all(c.isprintable() for line in text.split("\n") for c in line)
    names = [layer.name for layer in built.graph.layers]
    assert len(set(names)) == len(names)
    sources = [str(p) for p in sorted((tmp_path / "out/rtl").glob("*.v"))]
    done = subprocess.run(["iverilog", "-g2005", "-t", "null", "-Wall", *sources], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    wrong = CliRunner().invoke(cli.app, ["check", str(save(Net().quant(name=HOSTILE, bits=99.0).model(), path))])
    assert wrong.exit_code == 1
    assert "\x1b" not in wrong.output
    assert len(wrong.stderr.strip().splitlines()) == 2


def test_equal_names_of_nodes(tmp_path: Path) -> None:
    net = Net().quant(name="n").linear(3, 4, name="n").quant(name="n").linear(2, 3, name="n")
    built = hlsgen.check(save(net.model(), tmp_path / "m.onnx"))
    assert len(built.network.folding["layers"]) == 2


def test_unused_values_of_topk(tmp_path: Path) -> None:
    """Values and indices are both named, only the indices are used: those are the output."""
    net = mlp().then("TopK", np.array([1]), outputs=["values", "indices"])
    net.outputs = ["indices"]
    hlsgen.build(save(net.model(), tmp_path / "m.onnx"), tmp_path / "out")
    y = hlsgen.run(tmp_path / "out", np.array([[0.5, 1, -1, 2]], np.float32))
    assert y.dtype == np.int64
    net.outputs = ["values"]
    hlsgen.build(save(net.model(), tmp_path / "m.onnx"), tmp_path / "out")
    y = hlsgen.run(tmp_path / "out", np.array([[0.5, 1, -1, 2]], np.float32))
    assert y.dtype == np.float32


# --------------------------------------------------------------------------- command line


def command(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hlsgen.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


@pytest.mark.sweep
def test_process_exit_codes(tmp_path: Path) -> None:
    bad, good = save(quantizer(scale=0.0).model(), tmp_path / "bad.onnx"), save(mlp().model(), tmp_path / "good.onnx")
    wrong = command("build", bad, "-o", tmp_path / "out")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "HG022" in wrong.stderr
    assert "Traceback" not in wrong.stderr
    assert not (tmp_path / "out").exists()
    assert json.loads(command("check", bad, "--json").stdout)["ok"] is False
    assert command("check", good, PYTHONIOENCODING="ascii").returncode == 0
    assert command("check").returncode == 2


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["nonsense"],
        ["check"],
        ["check", "a", "b"],
        ["check", "a", "--lanes", "many"],
        ["build", "a"],
        ["check", "a", "--no-such-option"],
        ["run", "a"],
        ["verify"],
        ["verify", "a", "--frames", "x"],
    ],
)
def test_wrong_usage(arguments: list[str]) -> None:
    result = CliRunner().invoke(cli.app, arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    "arguments",
    [
        ["--reset", "sideways"],
        ["--fps", "nan"],
        ["--fps", "0"],
        ["--fps", "1e300"],
        ["--clock-mhz", "inf"],
        ["--clock-mhz", "-1"],
        ["--fps", "10", "--target-cycles", "3"],
        ["--top", "endmodule"],
        ["--lanes", "3"],
    ],
)
def test_wrong_options(arguments: list[str], tmp_path: Path) -> None:
    path = save(mlp().model(), tmp_path / "m.onnx")
    result = CliRunner().invoke(cli.app, ["build", str(path), "-o", str(tmp_path / "out"), "--json", *arguments])
    assert result.exit_code == 2
    assert [d["code"] for d in json.loads(result.stdout)["diagnostics"]] == ["HG040"]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "layers",
        "layers: [1]",
        "layers: {fc0: 3}",
        "layers: {fc0: {pe: 1}}",
        "layers: {1: {pe: 1, simd: 1}}",
        "layers: {fc0: {pe: 1, simd: x}}",
        "layers: {fc0: {pe: true, simd: 1}}",
        "layers: {fc0: {pe: 1.0, simd: 1}}",
        "layers: {fc0: {pe: 1, simd: 1, more: 1}}",
        "a: [",
        "\t",
        "!!python/object:os.system {}",
        "!!timestamp x",
        "!!bool x",
        "2001-99-99",
        "[" * 5000,
        "\x00",
        "layers: {fc0: {pe: 0, simd: 1}}",
        "layers: {fc0: {pe: -1, simd: 1}}",
    ],
)
def test_broken_folding(text: str, tmp_path: Path) -> None:
    path, folding = save(mlp().model(), tmp_path / "m.onnx"), tmp_path / "folding.yaml"
    folding.write_text(text)
    result = CliRunner().invoke(cli.app, ["check", str(path), "--json", "--folding", str(folding)])
    assert result.exit_code == 1, result.output
    assert [d["code"] for d in json.loads(result.stdout)["diagnostics"]] == ["HG041"]


@pytest.mark.parametrize("content", [b"\xff\xfe\xfa", None])
def test_unreadable_folding(content: bytes | None, tmp_path: Path) -> None:
    if content:
        (tmp_path / "f").write_bytes(content)
    with pytest.raises(HlsgenError, match="HG041"):
        driver_options.read_folding(tmp_path / "f")


@pytest.mark.parametrize(
    "entry", [5, [1, 2], {"pe": True, "simd": 1}, {"pe": 1.5, "simd": 1}, {"pe": 1, "simd": 1, "x": 2}, {}]
)
def test_folding_of_another_form(entry: object, tmp_path: Path) -> None:
    onnx.save(mlp().model(), tmp_path / "m.onnx")
    with pytest.raises(HlsgenError, match="HG041"):
        hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(folding={"fc0": entry}))  # type: ignore[dict-item]


def test_internal_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: object) -> None:
        raise IndexError("some\nthing")

    monkeypatch.setattr(hlsgen, "check", broken)
    monkeypatch.delenv("HLSGEN_DEBUG", raising=False)
    for extra in ([], ["--json"]):
        monkeypatch.setattr(sys, "argv", ["hlsgen", "check", "m.onnx", *extra])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        assert stopped.value.code == 1
    shown = capsys.readouterr()
    assert json.loads(shown.out)["diagnostics"][0]["code"] == "HG099"
    assert "HG099 hlsgen: IndexError: some thing. Please report it" in shown.err
    assert "Traceback" not in shown.err
    monkeypatch.setenv("HLSGEN_DEBUG", "1")
    with pytest.raises(IndexError):
        cli.main()


# --------------------------------------------------------------------------- output


def listing(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.mark.parametrize("manifest", [None, "[]", '"hlsgen"', '["hlsgen"]', '{"hlsgen": 1}', "[" * 100000, "{"])
def test_output_is_something_else(manifest: str | None, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "precious").write_text("mine")
    if manifest is not None:
        (out / "manifest.json").write_text(manifest)
    before = listing(tmp_path)
    path = save(mlp().model(), tmp_path.parent / f"{tmp_path.name}.onnx")
    result = CliRunner().invoke(cli.app, ["build", str(path), "-o", str(out), "--json"])
    assert result.exit_code == 1
    assert [d["code"] for d in json.loads(result.stdout)["diagnostics"]] == ["HG050"]
    assert listing(tmp_path) == before


def test_output_is_a_file_or_link(tmp_path: Path) -> None:
    path = save(mlp().model(), tmp_path / "m.onnx")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    for out, code in ((path, "HG050"), (tmp_path / "link", "HG050"), (path / "below", "HG001")):
        result = CliRunner().invoke(cli.app, ["build", str(path), "-o", str(out)])
        assert (result.exit_code, code in result.stderr) == (2 if code == "HG040" else 1, True), result.output
    assert path.read_bytes() == mlp().model().SerializeToString()


@pytest.mark.parametrize("out", ["/proc/nothing/out", "o" * 300])
def test_output_that_cannot_be(out: str, tmp_path: Path) -> None:
    path = save(mlp().model(), tmp_path / "m.onnx")
    result = CliRunner().invoke(cli.app, ["build", str(path), "-o", str(tmp_path / out)])
    assert result.exit_code == 1, result.exception
    assert "HG001" in result.stderr


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), RuntimeError("odd")])
@pytest.mark.parametrize("place", ["write_bytes", "rename"])
def test_interrupted(error: BaseException, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever stops the writing: no half of a build, and the one before is still there."""
    old, new = save(quantizer().model(), tmp_path / "m.onnx"), save(mlp().model(), tmp_path / "n.onnx")
    hlsgen.build(old, tmp_path / "out")
    before = listing(tmp_path)
    calls, rename, write = [0], os.rename, Path.write_bytes

    def failing_write(self: Path, data: bytes) -> int:
        calls[0] += 1
        if calls[0] == 5:
            raise error
        return write(self, data)

    def failing_rename(source: Any, target: Any) -> None:
        calls[0] += 1
        if calls[0] == 2:
            raise error
        rename(source, target)

    with monkeypatch.context() as patch:
        if place == "rename":
            patch.setattr("hlsgen.driver.replace_directory._exchanged", lambda one, other: False)
            patch.setattr(os, "rename", failing_rename)
        else:
            patch.setattr(Path, "write_bytes", failing_write)
        with pytest.raises(HlsgenError if isinstance(error, OSError) else type(error)):
            hlsgen.build(new, tmp_path / "out")
    assert listing(tmp_path) == before
    if place == "write_bytes":
        calls[0] = 0
        with monkeypatch.context() as patch:
            patch.setattr(Path, "write_bytes", failing_write)
            with pytest.raises(HlsgenError if isinstance(error, OSError) else type(error)):
                hlsgen.build(new, tmp_path / "fresh")
        assert not (tmp_path / "fresh").exists()
        assert listing(tmp_path) == before
    hlsgen.build(new, tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx", "n.onnx", "out"]


# --------------------------------------------------------------------------- builds and arrays


@pytest.fixture(scope="module")
def build_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("build")
    hlsgen.build(save(mlp().model(), folder / "m.onnx"), folder / "out", Options(input="fixed:8,4"))
    return folder / "out"


@pytest.mark.parametrize(
    "manifest",
    [
        None,
        "",
        "{",
        "[]",
        "3",
        '{"options": 3}',
        '{"options": {"nothing": 1}}',
        '{"options": {"lanes": "x"}}',
        '{"options": {"top": 5}}',
        '{"options": {"folding": {"fc0": 1}}}',
        '{"options": {"input": []}}',
        '{"options": {"name": {}}}',
        '{"options": {"reset_active_low": "no"}}',
        "[" * 100000,
        "\u00ff",
    ],
)
def test_damaged_manifest(manifest: str | None, build_dir: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(build_dir, copy)
    (copy / "manifest.json").unlink()
    if manifest is not None:
        (copy / "manifest.json").write_bytes(manifest.encode("latin-1"))
    np.save(tmp_path / "x.npy", np.zeros((1, 4), np.float32))
    run = ["run", str(copy), "--input", str(tmp_path / "x.npy"), "--output", str(tmp_path / "y.npy"), "--json"]
    for arguments in (run, ["verify", str(copy), "--json"]):
        result = CliRunner().invoke(cli.app, arguments)
        assert result.exit_code == 1, result.exception
        assert [d["code"] for d in json.loads(result.stdout)["diagnostics"]] == ["HG050"]
    assert not (tmp_path / "y.npy").exists()


def test_build_without_model(build_dir: Path, tmp_path: Path) -> None:
    shutil.copytree(build_dir, tmp_path / "copy")
    (tmp_path / "copy" / "model.onnx").unlink()
    with pytest.raises(HlsgenError, match=r"HG050.*model\.onnx"):
        hlsgen.verify(tmp_path / "copy")


@pytest.mark.sweep
def test_changed_file(build_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(build_dir, tmp_path / "copy")
    (tmp_path / "copy" / "rtl" / "m.v").write_text("// nothing\n")
    assert hlsgen.verify(tmp_path / "copy", []).changed == ["rtl/m.v"]
    monkeypatch.setattr("hlsgen.simulation.simulators.simulators_of", lambda build: [])
    result = CliRunner().invoke(cli.app, ["verify", str(tmp_path / "copy")])
    assert result.exit_code == 1
    assert "HG051 rtl/m.v" in result.stderr


def test_no_simulator(build_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cocotb_runner.shutil, "which", lambda name: None)
    result = CliRunner().invoke(cli.app, ["verify", str(build_dir), "--sim", "icarus"])
    assert result.exit_code == 1
    assert "HG052" in result.stderr


@pytest.mark.sim
@needs_icarus
def test_broken_core(build_dir: Path, tmp_path: Path) -> None:
    shutil.copytree(build_dir, tmp_path / "copy")
    (tmp_path / "copy" / "rtl" / "m.v").write_text("this is no Verilog\n")
    result = CliRunner().invoke(cli.app, ["verify", str(tmp_path / "copy"), "--sim", "icarus", "--allow-changed"])
    assert result.exit_code == 1
    assert "HG053" in result.stderr


@pytest.mark.parametrize(
    "arguments", [["--sim", "modelsim"], ["--frames", "0"], ["--frames", "99999999999"], ["--seed", "-1"]]
)
def test_wrong_verify_options(arguments: list[str], build_dir: Path) -> None:
    result = CliRunner().invoke(cli.app, ["verify", str(build_dir), "--json", *arguments])
    assert result.exit_code == 2, result.exception
    assert [d["code"] for d in json.loads(result.stdout)["diagnostics"]] == ["HG040"]


ARRAYS: dict[str, tuple[str, Any]] = {
    "shape": ("HG054", np.zeros((1, 5), np.float32)),
    "no samples": ("HG054", np.zeros((0, 4), np.float32)),
    "complex": ("HG054", np.zeros((1, 4), np.complex64)),
    "text": ("HG054", np.full((1, 4), "a")),
    "NaN": ("HG054", np.full((1, 4), np.nan, np.float32)),
    "infinity": ("HG054", np.full((1, 4), np.inf, np.float32)),
    "outside the type": ("HG054", np.full((1, 4), 8.0, np.float32)),
    "between the codes": ("HG054", np.full((1, 4), 0.01, np.float32)),
    "objects": ("HG001", np.full((1, 4), None)),
    "bytes": ("HG001", b"nothing"),
    "empty": ("HG001", b""),
    "half an archive": ("HG001", b"PK\x03\x04" + bytes(40)),
    "huge header": (
        "HG001",
        b"\x93NUMPY\x01\x00F\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1" + b"0" * 17 + b",)}\n",
    ),
    "absent": ("HG001", None),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_wrong_array(name: str, build_dir: Path, tmp_path: Path) -> None:
    code, data = ARRAYS[name]
    path, output = tmp_path / "x.npy", tmp_path / "y.npy"
    if isinstance(data, bytes):
        path.write_bytes(data)
    elif data is not None:
        np.save(path, data, allow_pickle=True)
    arguments = ["run", str(build_dir), "--input", str(path), "--output", str(output), "--json"]
    result = CliRunner().invoke(cli.app, arguments)
    assert result.exit_code == 1, result.exception
    (problem,) = json.loads(result.stdout)["diagnostics"]
    assert problem["code"] == code
    assert (problem["message"] == "no such file.") is (data is None)
    assert not output.exists()


def test_archives(build_dir: Path, tmp_path: Path) -> None:
    x = np.zeros((2, 4), np.float32)
    np.savez(tmp_path / "two.npz", a=x, b=x)
    np.savez(tmp_path / "one.npz", a=x)
    runner, output = CliRunner(), tmp_path / "y.npz"
    two = runner.invoke(cli.app, ["run", str(build_dir), "--input", str(tmp_path / "two.npz"), "--output", str(output)])
    assert (two.exit_code, "HG054" in two.stderr, output.exists()) == (1, True, False)
    one = runner.invoke(cli.app, ["run", str(build_dir), "--input", str(tmp_path / "one.npz"), "--output", str(output)])
    assert one.exit_code == 0, one.output
    (key,) = np.load(output).files
    assert np.load(output)[key].shape == (2, 2)


def test_wrong_backend_and_output(build_dir: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((1, 4), np.float32))
    start = ["run", str(build_dir), "--input", str(tmp_path / "x.npy"), "--output"]
    for more, code in (
        ([str(tmp_path / "y.npy"), "--backend", "quantum"], "HG040"),
        ([str(tmp_path / "absent" / "y.npy")], "HG001"),
        ([str(tmp_path)], "HG001"),
    ):
        result = CliRunner().invoke(cli.app, start + more)
        assert (result.exit_code, code in result.stderr) == (2 if code == "HG040" else 1, True), result.output


# --------------------------------------------------------------------------- mutations


SEEDS: list[Model] = [
    lambda: mlp().model(),
    lambda: Net((1, 2, 3)).then("Trunc", 0.5, 0.0, 8.0, 4.0, domain=DOMAIN).model(),
    lambda: Net().then("MultiThreshold", ((0.0, 1.0, 2.0),), domain=DOMAIN, out_scale=0.5).model(),
    lambda: (
        Net((1, 2, 2))
        .quant()
        .then("Reshape", np.array([1, 4]))
        .linear()
        .then("Add", 0.5)
        .then("ArgMax", axis=1)
        .model()
    ),
    lambda: mlp().then("BatchNormalization", *[ONES[:2]] * 4).quant().model(),
]
VALUES = [0, -1, 1, 0.5, 1.5, 3, 8, 33, 1e38, 1e-45, np.nan, np.inf, -np.inf, 2.0**31, 1e300, 65536, 2.0**40]
DTYPES = [np.float32, np.float64, np.float16, np.int64, np.int32, np.uint8, np.bool_, np.uint64, np.complex64]
SHAPES = [(), (1,), (4,), (1, 4), (4, 1), (3,), (4, 3), (1, 1, 1, 1), (0,), (0, 4), (4, 4)]


def flip(data: bytearray, rng: random.Random) -> bytearray:
    i, kind = rng.randrange(len(data)), rng.random()
    if kind < 0.6:
        data[i] = rng.choice([data[i] ^ (1 << rng.randrange(8)), rng.randrange(256), 0, 255, 127])
    elif kind < 0.7:
        del data[i:]
    elif kind < 0.8:
        del data[i : i + rng.randrange(1, 8)]
    else:
        data[i:i] = rng.randbytes(rng.randrange(1, 8))
    return data or bytearray(1)


def twist(model: onnx.ModelProto, rng: random.Random) -> None:
    """Another constant, attribute, operator, input or shape."""
    graph, node = model.graph, rng.choice(model.graph.node)
    match rng.randrange(5):
        case 0 | 1:
            tensor = rng.choice(graph.initializer)
            with np.errstate(all="ignore"):
                array = np.full(rng.choice(SHAPES), rng.choice(VALUES)).astype(rng.choice(DTYPES))
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
        case 2:
            key = rng.choice(
                ["axis", "keepdims", "signed", "narrow", "rounding_mode", "data_layout", "out_scale", "to"]
            )
            kept = [a for a in node.attribute if a.name != key]
            del node.attribute[:]
            value = rng.choice([1, 0, -1, 2, 1.5, "FLOOR", "NHWC", [0, 1], NAN, 1 << 40])
            node.attribute.extend([*kept, helper.make_attribute(key, value)])
        case 3:
            names = [i.name for i in graph.initializer] + [o for n in graph.node for o in n.output] + ["x", ""]
            node.input[rng.randrange(len(node.input))] = rng.choice(names)
        case _:
            operators = ["Add", "Div", "Gemm", "Clip", "TopK", "Pow", "Softmax", "Tile", "Expand", "Gather", "IntQuant"]
            node.op_type = rng.choice(operators)


@pytest.mark.sweep
@pytest.mark.cases(2)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["bytes", "meaning"])
def test_mutations(kind: str, seed: int, tmp_path: Path) -> None:
    """A damaged model is compiled or refused; nothing else, and soon."""
    rng, path, refused = random.Random(seed), tmp_path / "model.onnx", 0
    for _ in range(250):
        model = rng.choice(SEEDS)()
        for _ in range(rng.choice([1, 1, 2, 3]) if kind == "meaning" else 0):
            twist(model, rng)
        data = bytearray(model.SerializeToString())
        for _ in range(rng.choice([1, 1, 2, 3]) if kind == "bytes" else 0):
            data = flip(data, rng)
        path.write_bytes(data)
        start = time.perf_counter()
        try:
            hlsgen.check(path)
        except HlsgenError:
            refused += 1
        assert time.perf_counter() - start < 60  # no bomb; not a benchmark
    assert 100 < refused < 250
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 8 << 20


# --------------------------------------------------------------------------- the codes themselves


def test_every_code_has_a_case() -> None:
    elsewhere = {"HG001", "HG050", "HG051", "HG052", "HG053", "HG054", "HG055", "HG056", "HG057", "HG043"}
    elsewhere |= {"HG058", "HG059", "HG060", "HG063", "HG064", "HG075", "HG098", "HG099"}
    text = "".join(
        (ROOT / "tests" / f"{name}.py").read_text("utf-8")
        for name in (
            "test_diagnostics",
            "certify/test_certify",
            "driver/test_build_directory",
            "driver/test_weight_update",
            "end_to_end/test_states",
            "explore/test_running",
            "interpreter/test_model_interpreter",
            "passes/test_pipeline",
            "simulation/test_file_oracle",
            "simulation/test_host_selftest",
        )
    )
    assert all(text.count(f'"{code}') + text.count(f"{code} ") > 1 for code in elsewhere)
    assert {case[0] for case in CASES.values()} | elsewhere == set(CODES)


def test_every_code_is_documented() -> None:
    text = (ROOT / "docs" / "diagnostics.md").read_text(encoding="utf-8")
    for code, title in CODES.items():
        assert f"{code} {title}" in text


def test_every_code_in_the_source_is_declared() -> None:
    import re

    used = {c for p in (ROOT / "hlsgen").rglob("*.py") for c in re.findall(r'"(HG\d+)"', p.read_text(encoding="utf-8"))}
    assert used == set(CODES)


def test_repeated_diagnostics_share_a_line(tmp_path: Path) -> None:
    """Printed once with the first names and a count; `--json` has each."""
    net = Net()
    for n in range(5):
        net.then("DynamicQuantizeLinear", name=f"dynamic{n}", outputs=[f"codes{n}", f"scale{n}", f"zero{n}"])
        net.last = "x"
    model = net.node("Concat", *(f"scale{n}" for n in range(5)), axis=0).model()
    path = save(model, tmp_path / "model.onnx")
    result = CliRunner().invoke(cli.app, ["check", str(path)])
    assert result.stderr.count("DynamicQuantizeLinear is not supported") == 1
    assert "dynamic0, dynamic1, dynamic2 and 2 more" in result.stderr
    assert "hlsgen quantize" in result.stderr
    answer = json.loads(CliRunner().invoke(cli.app, ["check", str(path), "--json"]).stdout)
    assert len([d for d in answer["diagnostics"] if "DynamicQuantizeLinear" in d["message"]]) == 5


def test_every_refusal_says_what_to_do() -> None:
    """Those without a hint of their own have that of their code."""
    for code in ("HG004", "HG010", "HG013", "HG014", "HG020", "HG023", "HG027", "HG034", "HG037", "HG054", "HG056"):
        assert Diagnostic(code, "node", "something is wrong.").hint
    assert not Diagnostic("HG090", "node", "an assumption.", severity="warning").hint


def test_collector_reports_once() -> None:
    problems = Collector()
    with problems.catching():
        raise fail("HG010", "n", "again.")
    with problems.catching():
        raise fail("HG010", "n", "again.")
    with problems.catching():
        problems.finish()
    with pytest.raises(HlsgenError) as caught:
        problems.finish()
    assert [d.code for d in caught.value.diagnostics] == ["HG010"]
