"""Integer models that other tools write: pre-quantized chains of standard ONNX, and onnxruntime's quantizer."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[Any]
CODES = {"int8": (np.int8, TensorProto.INT8), "uint8": (np.uint8, TensorProto.UINT8)}
FIGURES = ("F1", "F2", "F3", "F4", "F5", "F6")


class Graph:
    """A straight graph that grows at its end."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.last = "x"

    def const(self, value: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def then(self, op: str, *constants: Any, **attributes: Any) -> Graph:
        """`op` on the last tensor and constants."""
        inputs = [self.last, *(self.const(c) for c in constants)]
        self.last = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [self.last], **attributes))
        return self

    def model(self, source: Any, sink: Any, opset: int = 13) -> onnx.ModelProto:
        """With input x and the last tensor as the only output; `source` and `sink` are (element type, shape)."""
        x = helper.make_tensor_value_info("x", *source)
        y = helper.make_tensor_value_info(self.last, *sink)
        graph = helper.make_graph(self.nodes, "integer", [x], [y], self.constants)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8 if opset < 19 else 10
        )
        onnx.checker.check_model(model, full_check=True)
        return model


def typed(dtype: Any) -> int:
    return dtype if isinstance(dtype, int) else helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def model(
    nodes: list[onnx.NodeProto], inputs: dict[str, tuple[Any, Any]], output: Any, opset: int = 13, **constants: Any
) -> onnx.ModelProto:
    """With output y of any shape; a constant that is an input as well is that input."""
    ins = [helper.make_tensor_value_info(k, typed(t), s) for k, (t, s) in inputs.items()]
    outs = [helper.make_tensor_value_info("y", typed(output), None)]
    made = [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items() if k not in inputs]
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    ir = 8 if opset < 19 else 10 if opset < 23 else 13
    return helper.make_model(helper.make_graph(nodes, "g", ins, outs, made), opset_imports=opsets, ir_version=ir)


def same(left: Array, right: Array) -> bool:
    """One shape, one value everywhere; types may differ."""
    return left.shape == right.shape and bool((left == right).all())


def multiplier_and_shift(scale: float) -> tuple[np.float32, np.float32]:
    """quant_scale and quant_shift of a float32: an odd integer <= 2^24, and a power of two; the product is exact."""
    numerator, whole = float(np.float32(scale)).as_integer_ratio()
    denominator = float(whole)
    while numerator % 2 == 0:
        numerator, denominator = numerator // 2, denominator / 2
    return np.float32(numerator), np.float32(1 / denominator)


def prequantized(
    figures: str | Sequence[str], sizes: Sequence[int] = (16, 8), *, scales: Sequence[float] | None = None,
    dtype: str = "int8", output: str = "int8", two_muls: bool | None = None, relu_first: bool = True,
    bias: bool = True, bias_bits: int = 13, rows: int | str = 1, seed: int = 0, opset: int = 13,
) -> onnx.ModelProto:  # fmt: skip
    """One layer per figure of the paper, `sizes[k]` inputs and `sizes[k + 1]` outputs; random int8 weights.

    `scales[k]` is the accumulator's rescale (default: accumulators of +-3 sigma fill int8). `dtype` is the type of
    x; `output` that of F1, F2 and F3 (F4 and F5 give int8, F6 uint8). `two_muls` None does as the figure does.
    F3 stands alone or among F3: x is (rows, C, 1, 1). Else x is (rows, C). onnx.reference needs opset 19 for F4..F6.
    """
    figures = [figures] if isinstance(figures, str) else list(figures)
    rng = np.random.default_rng(seed)
    conv = figures[0] == "F3"
    if any((f == "F3") != conv for f in figures) or len(sizes) != len(figures) + 1:
        raise ValueError(f"figures {figures} and sizes {list(sizes)} do not fit")
    graph, kind = Graph(), dtype
    tail = [1, 1] if conv else []
    for k, (figure, ins, outs) in enumerate(zip(figures, sizes, sizes[1:], strict=False)):
        weight = rng.integers(-128, 128, (outs, ins, 1, 1) if conv else (ins, outs)).astype(np.int8)
        graph.then("ConvInteger" if conv else "MatMulInteger", weight)
        if bias:
            limit = 1 << (bias_bits - 1)
            graph.then("Add", rng.integers(-limit, limit, (1, outs, *tail) if conv else outs).astype(np.int32))
        graph.then("Cast", to=TensorProto.FLOAT)
        spread = 74 * (74 if kind == "int8" else 148) * np.sqrt(ins)
        scale = np.float32(scales[k] if scales is not None else 127 / (3 * spread))
        relu = figure == "F2"
        if relu and relu_first:
            graph.then("Relu")
        if two_muls if two_muls is not None else figure in ("F1", "F4", "F5"):
            for factor in multiplier_and_shift(float(scale)):
                graph.then("Mul", factor)
        else:
            graph.then("Mul", scale)
        if relu and not relu_first:
            graph.then("Relu")
        kind = _quantize(graph, figure, output)
    source, sink = (CODES[dtype][1], [rows, sizes[0], *tail]), (CODES[kind][1], [rows, sizes[-1], *tail])
    return graph.model(source, sink, opset)


def _quantize(graph: Graph, figure: str, output: str) -> str:
    """What follows the rescale; returns the type that leaves the layer."""
    one = np.float32(1)
    if figure in ("F1", "F2", "F3"):
        graph.then("QuantizeLinear", one, np.zeros((), CODES[output][0]))
        return output
    kind = "uint8" if figure == "F6" else "int8"
    reach = np.float32({"F4": 4, "F5": 4, "F6": 8}[figure] / 127)
    graph.then("QuantizeLinear", one, np.int8(0)).then("DequantizeLinear", reach, np.int8(0))
    if figure == "F4":
        graph.then("Tanh")
    else:
        graph.then("Cast", to=TensorProto.FLOAT16).then("Tanh" if figure == "F5" else "Sigmoid")
        graph.then("Cast", to=TensorProto.FLOAT)
    step = np.float32(1 / 255 if kind == "uint8" else 1 / 127)
    graph.then("QuantizeLinear", step, np.zeros((), CODES[kind][0]))
    return kind


def codes(model: onnx.ModelProto, samples: int, seed: int = 0) -> Array:
    """Random inputs of an integer model, stacked on the first axis; the extremes are among them."""
    value = model.graph.input[0].type.tensor_type
    shape = [d.dim_value for d in value.shape.dim][1:]
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(value.elem_type))
    limits = np.iinfo(dtype)
    x = np.random.default_rng(seed).integers(limits.min, limits.max + 1, (samples, *shape))
    x[:2] = np.reshape([limits.min, limits.max], (2, *[1] * len(shape)))[:samples]
    return x.astype(dtype)


def float_mlp(layers: Sequence[int] = (16, 24, 12, 5), *, gemm: bool = False, seed: int = 0) -> onnx.ModelProto:
    """MatMul, Add, Relu per layer, or Gemm (transB) and Relu; none of them after the last layer."""
    rng = np.random.default_rng(seed)
    graph = Graph()
    for k, (ins, outs) in enumerate(pairwise(layers)):
        weight = (rng.normal(size=(ins, outs)) / np.sqrt(ins)).astype(np.float32)
        bias = (rng.normal(size=outs) / 4).astype(np.float32)
        if gemm:
            graph.then("Gemm", np.ascontiguousarray(weight.T), bias, transB=1)
        else:
            graph.then("MatMul", weight).then("Add", bias)
        if k < len(layers) - 2:
            graph.then("Relu")
    return graph.model((TensorProto.FLOAT, ["N", layers[0]]), (TensorProto.FLOAT, ["N", layers[-1]]))


def quantize_mlp(
    directory: Path, form: str = "QDQ", activation: str = "int8", weight: str = "int8", per_channel: bool = False,
    seed: int = 0, layers: Sequence[int] = (16, 24, 12, 5), *, gemm: bool = False, samples: int = 200,
    extra: dict[str, Any] | None = None,
) -> tuple[Path, Array]:  # fmt: skip
    """A random MLP quantized by onnxruntime; its path, and float32 inputs (samples, N) like the calibration's.

    `form` is QDQ or QOperator, `extra` goes to quantize_static as extra_options.
    """
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    rng = np.random.default_rng(seed + 1)
    batches = rng.normal(size=(2, samples, layers[0])).astype(np.float32)

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.feeds: Iterator[dict[str, Array]] = iter([{"x": batches[0]}])

        def get_next(self) -> dict[str, Array] | None:
            return next(self.feeds, None)

    source, target = directory / "float.onnx", directory / "quantized.onnx"
    onnx.save(float_mlp(layers, gemm=gemm, seed=seed), source)
    types = {"int8": QuantType.QInt8, "uint8": QuantType.QUInt8}
    level = logging.root.level
    logging.root.setLevel(logging.ERROR)  # advice to preprocess the model
    try:
        quantize_static(
            source, target, Reader(), quant_format=QuantFormat[form], per_channel=per_channel,
            activation_type=types[activation], weight_type=types[weight], extra_options=extra or {},
        )  # fmt: skip
    finally:
        logging.root.setLevel(level)
    return target, batches[1]
