"""Integer models that other tools write: pre-quantized chains of standard ONNX, and onnxruntime's quantizer."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import ort
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx_graph import OnnxGraph
from paths import ROOT

import hlsgen
from hlsgen.interpreter import graph as reference

Array = NDArray[Any]
EXAMPLE = ROOT / "examples" / "prequantized" / "models.py"


def _example() -> ModuleType:
    """The script as a module."""
    spec = spec_from_file_location("prequantized_models", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_module = _example()
prequantized, multiplier_and_shift = _module.prequantized, _module.multiplier_and_shift
FIGURES = tuple(_module.FIGURES)
#: Nodes for `chain`.
ONE = np.float32(1)
FLOAT, QUANTIZE = ("Cast", {"to": TensorProto.FLOAT}), ("QuantizeLinear", ONE, np.int8(0))


class Graph(OnnxGraph):
    """A chain of standard ONNX; constants keep their types."""

    def __init__(self) -> None:
        super().__init__(None)


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


def chain(*nodes: tuple[Any, ...], source: Any, shape: Sequence[int | str], opset: int = 13) -> onnx.ModelProto:
    """Nodes one behind the other: (operator, constants..., attributes), x of that type and shape in front."""
    graph = Graph()
    for op, *rest in nodes:
        attributes = rest.pop() if rest and isinstance(rest[-1], dict) else {}
        graph.then(op, *rest, **attributes)
    return finished(graph, source, shape, opset)


def finished(graph: Any, source: Any, shape: Sequence[int | str], opset: int = 13) -> onnx.ModelProto:
    """The model of a Graph; its result of whatever type and shape the last node gives."""
    x = helper.make_tensor_value_info("x", typed(source), list(shape))
    y = helper.make_empty_tensor_value_info(graph.last)
    opsets = [("", opset), ("com.microsoft", 1)]
    return graph.proto("chain", [x], [y], opsets, 8 if opset < 19 else 10 if opset < 23 else 13)


def dequantized(graph: Any, codes: Any, scale: Any, zero: Any = None, **attributes: Any) -> str:
    """The name of a constant behind a DequantizeLinear of its own."""
    inputs = [graph.const(part) for part in (codes, scale, zero) if part is not None]
    graph.nodes.append(helper.make_node("DequantizeLinear", inputs, [f"{inputs[0]}_real"], **attributes))
    return f"{inputs[0]}_real"


def compiled(made: onnx.ModelProto | Path, directory: Path, **options: Any) -> hlsgen.Build:
    """The build of a model, in memory."""
    path = made if isinstance(made, Path) else directory / "model.onnx"
    if not isinstance(made, Path):
        onnx.save(made, path)
    return hlsgen.check(path, hlsgen.Options(**options))


def evaluated(made: onnx.ModelProto | Path, x: Array, directory: Path, **options: Any) -> Array:
    """What hlsgen's reference makes of a batch."""
    return reference.evaluate(compiled(made, directory, **options).graph, x)


def frames(made: onnx.ModelProto | Path, x: Array) -> Array:
    """What onnxruntime makes of samples, one at a time."""
    session = ort.session(made)
    return np.concatenate([session.run(None, {session.get_inputs()[0].name: sample[None]})[0] for sample in x])


def agrees(made: onnx.ModelProto | Path, x: Array, directory: Path, level: Any = ort.DEFAULT, **options: Any) -> Array:
    """hlsgen's result, after comparing its numbers, shape and type with onnxruntime's."""
    arm = options.get("runtime") == "onnxruntime-arm"
    y, z = evaluated(made, x, directory, **options), ort.run(made, {"x": x}, level, arm)[0]
    assert y.dtype == z.dtype
    assert same(y, z)
    return y


def refused(made: onnx.ModelProto, directory: Path, code: str) -> None:
    """Asserts a diagnostic of that code."""
    with pytest.raises(hlsgen.HlsgenError) as error:
        compiled(made, directory)
    assert code in [d.code for d in error.value.diagnostics]


def in_hardware(
    made: onnx.ModelProto | Path,
    x: Array,
    expected: Array,
    directory: Path,
    simulator: str,
    frames: int = 4,
    **options: Any,
) -> None:
    """The simulated hardware gives `expected`, which came from elsewhere; in Icarus, which needs no compiler, stalls
    and resets are seen, too.
    """
    path = made if isinstance(made, Path) else directory / "model.onnx"
    if not isinstance(made, Path):
        onnx.save(made, path)
    hlsgen.build(path, directory / "build", hlsgen.Options(**options))
    if simulator == "icarus":
        verdict = hlsgen.verify(directory / "build", [simulator], frames, oracle="none")
        assert verdict.ok, (verdict.changed, verdict.simulators)
    assert same(hlsgen.run(directory / "build", x, simulator), expected)


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
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", layers[0]])
    y = helper.make_tensor_value_info(graph.last, TensorProto.FLOAT, ["N", layers[-1]])
    return graph.proto("integer", [x], [y], [("", 13)])


def quantize_mlp(
    directory: Path,
    form: str = "QDQ",
    activation: str = "int8",
    weight: str = "int8",
    per_channel: bool = False,
    seed: int = 0,
    layers: Sequence[int] = (16, 24, 12, 5),
    *,
    gemm: bool = False,
    samples: int = 200,
    extra: dict[str, Any] | None = None,
) -> tuple[Path, Array]:
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
            source,
            target,
            Reader(),
            quant_format=QuantFormat[form],
            per_channel=per_channel,
            activation_type=types[activation],
            weight_type=types[weight],
            extra_options=extra or {},
        )
    finally:
        logging.root.setLevel(level)
    return target, batches[1]
