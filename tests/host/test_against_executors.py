"""Host code in C compared with qonnx's quantizer and onnxruntime's QuantizeLinear."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from host_code import core_of, run_in_c
from onnx import TensorProto, helper, numpy_helper
from qonnx.custom_op.general.quant import quant
from small_models import const

from hlsgen.interpreter.graph import encode_input
from hlsgen.ir import Graph, Model, Value
from hlsgen.ir.evaluate import code_type, decoding
from hlsgen.ir.ops import IntQuant, QuantizeLinear
from hlsgen.numerics.fixed import IntType, Rounding, int_type

SHAPE, FRAMES = (1, 6), 300
SCALES = np.array([0.5, 0.1, 3.0, 0.25, 1 / 3, 7.7], np.float32)


def numbers(seed: int) -> Any:
    """Ties for each scale, their neighbours, and random numbers."""
    rng = np.random.default_rng(seed)
    ties = (rng.integers(-60, 60, (FRAMES, *SHAPE)) / 2 * SCALES).astype(np.float32)
    x = np.where(rng.random(ties.shape) < 0.5, ties, rng.normal(0, 20, ties.shape)).astype(np.float32)
    return np.where(
        rng.random(x.shape) < 0.3,
        np.nextafter(x, np.float32(np.inf) * rng.choice([-1, 1], x.shape).astype(np.float32)),
        x,
    )


def core(op: IntQuant | QuantizeLinear) -> Any:
    value = Value(SHAPE, code_type(op), decoding(op))
    model = Model("m", "x", SHAPE, "float32", False, None, (), "y", "float32" if isinstance(op, IntQuant) else op.dtype)
    return core_of(Graph(model, (), op, value, (), value, ()))


def in_c(ops: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The numbers after quantizing and decoding in C."""
    cores = {name: core(op) for name, op in ops.items()}
    x = numbers(1)
    frames = {name: ([x], encode_input(core_under_test.graph, x)) for name, core_under_test in cores.items()}
    results = run_in_c(cores, frames, folder)
    for name in ops:
        np.testing.assert_array_equal(results[name].codes, results[name].read)
    return {name: results[name].numbers for name in ops}


@pytest.mark.sweep
def test_int_quant_equals_qonnx(tmp_path: Path) -> None:
    """All rounding modes; signed, unsigned and narrow; zero points."""
    formats = [(4, True, False, 0), (3, False, False, 2), (8, True, True, 0), (2, False, True, 1)]
    cases = {f"{mode.name.lower()}{n}": (mode, format_) for mode in Rounding for n, format_ in enumerate(formats)}
    scale = const(SCALES, 2)
    ops = {
        name: IntQuant(scale, const(zero, 2), int_type(bits, signed, narrow), mode)
        for name, (mode, (bits, signed, narrow, zero)) in cases.items()
    }
    results = in_c(ops, tmp_path)
    for name, (mode, (bits, signed, narrow, zero)) in cases.items():
        expected = quant(numbers(1), scale, np.float32(zero), np.float32(bits), signed, narrow, mode.name)
        np.testing.assert_array_equal(results[name], expected.astype(np.float32), err_msg=name)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_quantize_linear_equals_onnxruntime(dtype: str, tmp_path: Path) -> None:
    info = np.iinfo(dtype)
    zero = np.full(6, (int(info.max) + int(info.min)) // 3, dtype)
    tensors = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 6]),
        helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), [None, 6]),
    ]
    node = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["y"], axis=1)
    graph = helper.make_graph(
        [node],
        "q",
        tensors[:1],
        tensors[1:],
        [numpy_helper.from_array(SCALES, "s"), numpy_helper.from_array(zero, "z")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"x": numbers(1).reshape(-1, 6)})
    op = QuantizeLinear(
        const(SCALES, 2), zero.astype(np.int64).reshape(1, 6), IntType(int(info.min), int(info.max)), dtype
    )
    results = in_c({"q": op}, tmp_path)["q"]
    np.testing.assert_array_equal(results.reshape(-1, 6), expected)
