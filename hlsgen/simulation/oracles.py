"""Independent executors of ONNX models: qonnx, onnxruntime, the reference implementation of onnx.

`defined_operators` computes operators that no executor has.

Executors get nodes and arrays in memory, never a path: they read no external data and load no library of custom
operators. The registry of qonnx imports the Python module that a node's domain names. Nodes therefore reach it only
under the two domains of qonnx.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from hlsgen.frontend.domains import CHANNELS_LAST, MICROSOFT, ONNX
from hlsgen.frontend.quant_lstm import QUANT_LSTM
from hlsgen.frontend.runtimes import ALIR, QONNX_OPS, TFLITE
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.child_process import run_tool
from hlsgen.simulation.defined_cells import quant_lstm_cell
from hlsgen.simulation.defined_operators import DEFINED
from hlsgen.simulation.reference_evaluator import reference_evaluator

#: Seconds for one run of a file in a process of its own.
_SECONDS = 300.0
#: onnxruntime as on ARM: int8 Q/DQ groups are fused like uint8 groups.
ARM = "onnxruntime-arm"
#: Runtimes by name, and the packages that each needs.
PACKAGES = {
    "qonnx": ("qonnx", "onnxruntime"),
    "onnx": ("onnx",),
    "onnxruntime": ("onnxruntime",),
    ARM: ("onnxruntime",),
}
#: Values of `--oracle`.
CHOICES = ("auto", *PACKAGES, *TFLITE, ALIR, "none")
#: Module of qonnx's operators.
_GENERAL = "qonnx.custom_op.general"
#: Defaults in the QONNX specification that qonnx's code does not have.
_DEFAULTS = {"signed": 1, "narrow": 0, "rounding_mode": "ROUND"}
#: Layers of codes, and their inputs for the zero point of the data, the weights, and the zero point of the weights.
_SATURATING, _PARTS = ("QLinearMatMul", "QLinearConv"), (2, 3, 5)
#: Place in onnxruntime's source, with the function's name and the types of its arguments.
_SOURCE = re.compile(r"/onnxruntime_src/\S+:\d+ [^(]*\((?:[^()]|\([^()]*\))*\)(?: const)? ")
#: Newest IR version that these executors read.
_IR_VERSION = 10


class Unable(Exception):
    """An executor cannot run something; the text gives the reason in one line."""


def run_in_child(command: Sequence[str], work: Path, runtime: str) -> None:
    """Run a file in a runtime, in a process of its own, with a limit of time and memory. Raises Unable."""
    ended = run_tool(list(command), work, {}, runtime, _SECONDS, "the run of the file", may_be_late=True)
    if ended.late:
        raise Unable(f"it did not end within {_SECONDS:.0f} s")
    if ended.code < 0:
        raise Unable(f"it crashed with signal {-ended.code}")
    if ended.code:
        lines = ended.log.strip().splitlines()
        raise Unable((lines[-1] if lines else f"exit code {ended.code}")[:160])


def installed(name: str) -> bool:
    """True if the packages of an executor of ONNX models are installed."""
    return name in PACKAGES and all(importlib.util.find_spec(package) is not None for package in PACKAGES[name])


def executor_of(runtime: str) -> str:
    """The executor of the runtime's single nodes."""
    return "onnxruntime" if runtime == ARM else runtime


def run_node(executor: str, node: onnx.NodeProto, arrays: Sequence[Array], opsets: Mapping[str, int]) -> list[Array]:
    """Runs a single node; `arrays` are its inputs, without the missing ones. Raises Unable."""
    try:
        if node.op_type == QUANT_LSTM:
            return quant_lstm_cell(arrays, {a.name: _attribute(a) for a in node.attribute})
        if node.op_type in DEFINED:
            return [DEFINED[node.op_type](arrays, {a.name: _attribute(a) for a in node.attribute})]
        if executor == "qonnx" and (node.domain not in ONNX or node.op_type in QONNX_OPS):
            return [by_qonnx(node, arrays, opsets)]
        if executor == "onnx" or node.op_type == "Constant" or any(a.dtype == np.float16 for a in arrays):
            return by_reference(node, arrays, opsets)
        return by_onnxruntime(node, arrays, opsets)
    except Exception as error:  # executors raise any exception
        raise Unable(f"{node.op_type}: {one_line(error)}") from None


def _attribute(attribute: onnx.AttributeProto) -> Any:
    """The value of an attribute; a tensor as an array."""
    value = helper.get_attribute_value(attribute)
    return constant_of(value) if isinstance(value, onnx.TensorProto) else value


def one_line(error: Exception) -> str:
    """The text of an exception, short and in one line."""
    if isinstance(error, Unable):
        return str(error)
    text = _SOURCE.sub("", re.sub(r"\[ONNXRuntimeError\] : \d+ : \w+ : ", "", " ".join(str(error).split())))
    if "registered" in text:  # message of onnx and onnxruntime for unknown operators
        return "no operator of this executor"
    return f"{type(error).__name__}: {text}"[:160]


def by_qonnx(node: onnx.NodeProto, arrays: Sequence[Array], opsets: Mapping[str, int]) -> Array:
    """The result of a QONNX node by qonnx's own function."""
    registry = importlib.import_module("qonnx.custom_op.registry")
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    copy.domain = CHANNELS_LAST if node.domain == CHANNELS_LAST else _GENERAL
    if node.op_type in ("Quant", "IntQuant"):
        present = {a.name for a in node.attribute}
        copy.attribute.extend(helper.make_attribute(k, v) for k, v in _DEFAULTS.items() if k not in present)
    names = [i for i in node.input if i]
    context = {
        node.output[0]: arrays[0],
        **dict(zip(names, arrays, strict=True)),
    }  # some operators read the output's rank
    version = opsets.get("" if node.domain == CHANNELS_LAST else node.domain, 1)
    graph = helper.make_graph([copy], "g", [], [])
    for name in names:  # Im2Col reads types
        kind = onnx.StringStringEntryProto(key="finn_datatype", value="FLOAT32")
        graph.quantization_annotation.append(
            onnx.TensorAnnotation(tensor_name=name, quant_parameter_tensor_names=[kind])
        )
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        function = registry.getCustomOp(copy, onnx_opset_version=version)
        function.execute_node(context, graph)
    return np.asarray(context[node.output[0]])


def by_onnxruntime(node: onnx.NodeProto, arrays: Sequence[Array], opsets: Mapping[str, int]) -> list[Array]:
    """The results of a standard node by onnxruntime's unmodified kernel."""
    if node.op_type in _SATURATING and node.domain in ONNX:
        unsigned_by_place = dict(zip(_PARTS, _unsigned([arrays[i] for i in _PARTS]), strict=True))
        arrays = [unsigned_by_place.get(i, x) for i, x in enumerate(arrays)]
    text, feeds = _single(node, arrays, opsets)
    return [np.asarray(v) for v in _session(text).run(None, feeds)]


def by_reference(node: onnx.NodeProto, arrays: Sequence[Array], opsets: Mapping[str, int]) -> list[Array]:
    """The results of a standard node by the reference implementation of onnx.

    Its GlobalMaxPool works for images with two axes only, and is replaced here.
    """
    if node.op_type == "GlobalMaxPool":
        return [np.asarray(arrays[0].max(axis=tuple(range(2, arrays[0].ndim)), keepdims=True))]
    text, feeds = _single(node, arrays, opsets)
    with np.errstate(all="ignore"):
        results: Any = _evaluator(text).run(None, feeds)
    return [np.asarray(v) for v in results]


def _single(node: onnx.NodeProto, arrays: Sequence[Array], opsets: Mapping[str, int]) -> tuple[bytes, dict[str, Array]]:
    """A serialized model with this node only, and its inputs by name."""
    feeds = dict(zip([i for i in node.input if i], arrays, strict=True))
    return _model([node], {}, feeds, [o for o in node.output if o], opsets), feeds


def _model(
    nodes: Sequence[onnx.NodeProto],
    constants: Mapping[str, onnx.TensorProto],
    feeds: Mapping[str, Array],
    outputs: Sequence[str],
    opsets: Mapping[str, int],
) -> bytes:
    """A serialized model of these nodes, with inputs of the shapes and types of `feeds`."""
    ins = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in feeds.items()
    ]
    outs = [helper.make_empty_tensor_value_info(o) for o in outputs]
    graph = helper.make_graph(nodes, "g", ins, outs, list(constants.values()))
    versions = [helper.make_opsetid(d, v) for d, v in ({"": 13, MICROSOFT: 1} | dict(opsets)).items()]
    model = helper.make_model(graph, opset_imports=versions, ir_version=_IR_VERSION)
    return bytes(model.SerializeToString(deterministic=True))


@lru_cache(maxsize=1000)
def _evaluator(text: bytes) -> Any:
    return reference_evaluator(onnx.ModelProto.FromString(text))


def unsigned_weights(text: bytes) -> bytes:
    """The model with int8 weights of uint8 data as uint8: weights and zero points plus 128, with the same products."""
    model = onnx.ModelProto.FromString(text)
    initializers = {t.name: t for t in model.graph.initializer}
    for node in model.graph.node:
        if (
            node.op_type not in _SATURATING
            or node.domain not in ONNX
            or any(node.input[i] not in initializers for i in _PARTS)
        ):
            continue
        arrays = [numpy_helper.to_array(initializers[node.input[i]]) for i in _PARTS]
        for i, old, new in zip(_PARTS, arrays, _unsigned(arrays), strict=True):
            if new is not old:
                node.input[i] = f"{node.input[i]} (uint8)"
                if node.input[i] not in initializers:
                    initializers[node.input[i]] = numpy_helper.from_array(new, node.input[i])
                    model.graph.initializer.append(initializers[node.input[i]])
    return bytes(model.SerializeToString(deterministic=True))


def _unsigned(parts: Sequence[Array]) -> list[Array]:
    """Zero point of the data, weights, zero point of the weights; the last two as uint8 if the data are uint8.

    onnxruntime's kernels for processors without VNNI add pairs of uint8 by int8 products in 16 bits, and saturate.
    """
    zero, *weights = parts
    if zero.dtype != np.uint8 or any(part.dtype != np.int8 for part in weights):
        return list(parts)
    return [zero, *((part.astype(np.int16) + 128).astype(np.uint8) for part in weights)]


@lru_cache(maxsize=1000)
def _session(text: bytes) -> Any:
    """A single-threaded session without optimizer. Products of uint8 and int8 do not saturate."""
    runtime = importlib.import_module("onnxruntime")
    runtime.set_default_logger_severity(4)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return runtime.InferenceSession(unsigned_weights(text), options, providers=["CPUExecutionProvider"])


def constant_of(tensor: onnx.TensorProto) -> Array:
    """The array of an initializer."""
    return np.asarray(numpy_helper.to_array(tensor))
