"""Findings of random graphs (fuzz_graphs.py), each as the smallest failing model, compared with the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fuzz_graphs import Case, Outcome, judged
from fuzz_phrases import assembled
from models import Net
from numpy.typing import NDArray
from onnx import TensorProto

from hlsgen.numerics.activations import evaluate

Array = NDArray[Any]


def outcome(net: Net, x: Array) -> Outcome:
    """Outcome of the model for input frames (frames, *shape[1:]), including build and certificate."""
    from fuzz_oracle import run_node
    from onnx import numpy_helper

    values = {c.name: numpy_helper.to_array(c) for c in net.constants} | {"x": x}
    constants = {c.name: values[c.name] for c in net.constants}
    for node in net.nodes:
        values.update(zip(node.output, run_node(node, [values[i] for i in node.input]), strict=False))
    return judged(Case(assembled(net.nodes, constants, values, "x", net.last, 1), x, None), whole=True)


def integers(kind: str, *shape: int) -> Array:
    info = np.iinfo(kind)
    return np.random.default_rng(0).integers(info.min, info.max + 1, (64, *shape)).astype(kind)


def halves(*shape: int) -> Array:
    return (np.random.default_rng(0).integers(-16, 17, (64, *shape)) / 2).astype(np.float32)


@pytest.mark.parametrize("op", ["Add", "Sub"])
def test_integers_that_two_tensors_give_wrap_in_what_follows(op: str) -> None:
    """The codes of a join without quantizer became float32, and the next operation did not wrap."""
    net = Net((1, 4), TensorProto.INT8).then("Cast", to=TensorProto.FLOAT)
    one, zero = np.float32(1), np.int8(0)
    left = net.then("QuantizeLinear", np.asarray(one * 2), np.asarray(zero)).last
    right = (
        net.node("Cast", "x", to=TensorProto.FLOAT).then("QuantizeLinear", np.asarray(one * 2), np.asarray(zero)).last
    )
    net.node("Add", left, right).node(op, net.last, right).then("Cast", to=TensorProto.FLOAT)
    verdict = outcome(net, integers("int8", 4))
    assert verdict.kind == "equal", verdict


def test_integers_wrap_behind_a_maximum() -> None:
    """Codes before a pool that no operation can pass became float32 as well."""
    net = Net((1, 1, 4), TensorProto.INT8).then("Cast", to=TensorProto.FLOAT)
    net.then("QuantizeLinear", np.asarray(1, np.float32), np.asarray(0, np.int8))
    net.then("Abs").then("Mul", np.asarray(-1, np.int8))
    net.then("MaxPool", kernel_shape=[2]).then("Add", np.asarray(-100, np.int8)).then("Cast", to=TensorProto.FLOAT)
    verdict = outcome(net, integers("int8", 1, 4))
    assert verdict.kind == "equal", verdict


@pytest.mark.parametrize("op", ["MaxPool", "Pad", "Concat", "Max"])
def test_float16_stays_float16(op: str) -> None:
    """The codes of a tensor of float16 were float32 from there on: the sum with 1000 was not rounded to halves."""
    net = (
        Net((1, 1, 4))
        .quant(0.125, bits=6.0)
        .then("Cast", to=TensorProto.FLOAT16)
        .then("Mul", np.asarray(-1, np.float16))
    )
    match op:
        case "MaxPool":
            net.then(op, kernel_shape=[2])
        case "Pad":
            net.then(op, np.asarray([0, 0, 1, 0, 0, 1]), np.asarray(0, np.float16))
        case "Concat":
            second_operand = net.last
            net.node("Mul", "x", 0.5).quant(0.25, bits=5.0).then("Cast", to=TensorProto.FLOAT16)
            net.node(op, second_operand, net.last, axis=2)
        case _:
            second_operand = net.last
            net.node("Mul", "x", 0.5).quant(0.25, bits=5.0).then("Cast", to=TensorProto.FLOAT16)
            net.node(op, second_operand, net.last).then("MaxPool", kernel_shape=[1])
    net.then("Add", np.asarray(1000, np.float16)).then("Cast", to=TensorProto.FLOAT).then("Add", -1000.0)
    verdict = outcome(net, halves(1, 4) / 8)
    assert verdict.kind == "equal", verdict


@pytest.mark.parametrize("shape", [(1, 3, 1), (1, 1, 4)])
def test_concatenated_scales_along_another_axis(shape: tuple[int, ...]) -> None:
    """One part has a scale for each channel (or column), the other one for all: an exception of numpy."""
    net = Net((1, 3, 4)).quant(1.0)
    first = net.last
    net.quant(np.arange(1, 1 + max(shape), dtype=np.float32).reshape(shape) / 2)
    axis = 2 if shape[1] > 1 else 1
    net.node("Concat", first, net.last, axis=axis)
    verdict = outcome(net, halves(3, 4))
    assert verdict.kind == "equal", verdict


def test_integer_input_whose_values_the_host_pools() -> None:
    """The port was declared as the model's int8, but consumes the host's codes: no input was accepted."""
    net = Net((1, 1, 4), TensorProto.INT8)
    net.then("DequantizeLinear", np.asarray(0.0625, np.float32), np.asarray(3, np.int8)).then(
        "MaxPool", kernel_shape=[2]
    )
    net.then("QuantizeLinear", np.asarray(0.125, np.float32), np.asarray(0, np.uint8))
    verdict = outcome(net, integers("int8", 1, 4))
    assert verdict.kind == "equal", verdict


@pytest.mark.parametrize("op", ["Add", "Min", "MultiThreshold"])
def test_a_pool_does_not_pass_constants_of_pixels(op: str) -> None:
    """A padded pool keeps the shape, so a constant per column also fits before it."""
    net = Net((1, 2, 3)).quant(0.5, bits=5.0).then("Add", 1.0).then("MaxPool", kernel_shape=[3], auto_pad="SAME_UPPER")
    if op == "MultiThreshold":
        table = np.asarray([[-3, 0, 1], [-1, 1, 2], [0, 2, 3]], np.float32)
        net.then(op, table, domain="qonnx.custom_op.general", data_layout="NWC")
    else:
        net.then(op, np.asarray([-2, 0, 3], np.float32)).quant(0.5, bits=5.0)
    verdict = outcome(net, halves(2, 3))
    assert verdict.kind == "equal", verdict


def test_the_host_pools_a_whole_signal() -> None:
    """onnx's reference evaluator takes the largest value of all channels, unless the data are images."""
    verdict = outcome(Net((1, 2, 4)).then("GlobalMaxPool").quant(0.5, bits=5.0), halves(2, 4))
    assert verdict.kind == "equal", verdict


def test_a_border_around_sums_that_differ_between_pixels() -> None:
    """The phases of a transposed convolution of bipolar codes have different offsets: an exception of numpy."""
    net = Net((1, 2, 5, 6)).then("BipolarQuant", 1.0, domain="qonnx.custom_op.general")
    weight = np.asarray([[-1, 0, 0, 1], [-1, 0, 0, 0]], np.float32).reshape(2, 1, 2, 2)
    net.then("ConvTranspose", weight, group=2, strides=[2, 2], pads=[1, 0, 1, 0])
    net.then("Pad", np.asarray([0, 0, 1, 1, 0, 0, 1, 0]))
    verdict = outcome(net, halves(2, 5, 6))
    assert verdict.kind == "equal", verdict


def test_two_tensors_of_32_bits() -> None:
    """2^64 pairs of codes were counted as none, and were to be tried: no memory."""
    net = Net((1, 1, 4), TensorProto.INT32).then("MaxPool", kernel_shape=[3], auto_pad="SAME_UPPER")
    net.node("Min", "x", "t0").then("Cast", to=TensorProto.FLOAT).quant(2.0**20)
    verdict = outcome(net, integers("int32", 1, 4))
    assert (verdict.kind, verdict.text) == ("refused", "HG037"), verdict


@pytest.mark.parametrize("x", [3.0, 7.0, 0.1])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_an_activation_of_one_number(x: float, dtype: type) -> None:
    """An array without axes whose result is near a rounding boundary raised an exception of numpy."""
    scalar = np.asarray(x, dtype)
    assert evaluate("Reciprocal", scalar, 0.0, 0.0) == evaluate("Reciprocal", scalar.reshape(1), 0.0, 0.0)[0]


def test_the_oracle_adds_codes_on_one_grid_exactly() -> None:
    """Every second sum is a tie of the following quantizer; float32 sums fall on either side."""
    import fuzz_oracle
    from onnx import helper
    from onnx_graph import QONNX, OnnxGraph

    scale = np.float32(0.137)
    g = OnnxGraph()
    first_codes = g.add("IntQuant", ["x", scale, 0.0, 8.0], domain=QONNX)
    two = g.add("IntQuant", [g.add("Mul", ["x", 0.731]), scale, 0.0, 8.0], domain=QONNX)
    last = g.add("IntQuant", [g.add("Add", [first_codes, two]), 2 * scale, 0.0, 8.0], domain=QONNX)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 400]) for name in ("x", last)]
    model = g.proto("sum", ends[:1], ends[1:], [("", 17), (QONNX, 1)])
    verdict = fuzz_oracle.values(model, np.random.default_rng(0).normal(0, 6, (1, 400)).astype(np.float32))
    codes = [np.rint(verdict[name] / scale).astype(int) for name in (first_codes, two)]
    once = ((codes[0] + codes[1]) * np.float64(scale)).astype(np.float32)  # float64 holds the product
    float_order = verdict[first_codes] + verdict[two]
    assert (np.rint(float_order / (2 * scale)) != np.rint(once / (2 * scale))).any()
    assert np.array_equal(np.rint(verdict[last] / (2 * scale)), np.rint(once / (2 * scale)))
