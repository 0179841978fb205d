"""What is known of a tensor while a graph is imported, and the evaluation of constant nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from hlsgen.errors import fail
from hlsgen.fixed import Array
from hlsgen.ir import Quantizer, Shape
from hlsgen.semantics import decode, decoding, quantize

#: No constant may grow beyond this many elements while it is computed.
MAX_ELEMENTS = 1 << 26


@dataclass(frozen=True, eq=False)
class Const:
    """A constant tensor; with `codes`, `scale`, `zero_point` of its shape if a quantizer made it."""

    array: Array
    codes: Array | None = None
    scale: Array | None = None
    zero_point: Array | None = None


@dataclass(frozen=True)
class Dynamic:
    """A tensor computed from the input. `index` counts the steps before it; None after an error.

    `shape` is None after an operator that is not supported.
    """

    shape: Shape | None
    dtype: str
    index: int | None


Tensor = Const | Dynamic

#: Constant nodes that are computed, with onnx's own reference implementation.
FOLDED = frozenset(
    [
        "Abs",
        "Add",
        "And",
        "BatchNormalization",
        "Cast",
        "Ceil",
        "Clip",
        "Concat",
        "Constant",
        "ConstantOfShape",
        "Div",
        "Equal",
        "Exp",
        "Expand",
        "Flatten",
        "Floor",
        "Gather",
        "Gemm",
        "Greater",
        "Identity",
        "Less",
        "Log",
        "MatMul",
        "Max",
        "Min",
        "Mod",
        "Mul",
        "Neg",
        "Not",
        "Or",
        "Pow",
        "Range",
        "Reciprocal",
        "ReduceMax",
        "ReduceMean",
        "ReduceMin",
        "ReduceProd",
        "ReduceSum",
        "Relu",
        "Reshape",
        "Round",
        "Shape",
        "Sign",
        "Slice",
        "Split",
        "Sqrt",
        "Squeeze",
        "Sub",
        "Sum",
        "Tile",
        "Transpose",
        "Unsqueeze",
        "Where",
    ]
)
#: Of these, what keeps codes and their meaning element by element.
_REARRANGING = frozenset(["Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"])


def fold(node: onnx.NodeProto, inputs: list[Const | None], opset: int) -> list[Const]:
    """Evaluates a node whose inputs are all constant. Raises HG004, HG010 or HG013."""
    if node.op_type not in FOLDED:
        raise fail(
            "HG010", label(node), f"operator {node.op_type} on constants is not supported.",
            "Simplify the model with its exporter's constant folding.",
        )  # fmt: skip
    _check_growth(node, inputs)
    arrays = [i.array for i in inputs if i is not None]
    results = evaluate(node, arrays, opset)
    first = inputs[0] if inputs else None
    if node.op_type in _REARRANGING and first is not None and first.codes is not None:
        rest = arrays[1:]
        parts = [
            evaluate(node, [np.broadcast_to(part, first.array.shape).copy(), *rest], opset)[0]
            for part in (first.codes, first.scale, first.zero_point)
            if part is not None
        ]
        return [Const(results[0], *parts)]
    return [Const(array) for array in results]


def _check_growth(node: onnx.NodeProto, inputs: list[Const | None]) -> None:
    """Refuses the few operators whose result can be far larger than their inputs."""
    arrays = [i.array for i in inputs if i is not None]
    size = 0.0
    if node.op_type in ("ConstantOfShape",) and arrays:
        size = float(np.prod(arrays[0].astype(np.float64)))
    elif node.op_type in ("Expand", "Tile") and len(arrays) > 1:
        size = float(np.prod(np.maximum(arrays[1], 1).astype(np.float64))) * arrays[0].size
    elif node.op_type == "Range" and len(arrays) == 3:
        start, limit, delta = (float(a) for a in arrays)
        size = abs((limit - start) / delta) if delta else 0.0
    elif node.op_type in ("MatMul", "Add", "Mul", "Sub", "Div", "Pow", "Where", "Max", "Min"):
        size = float(np.prod([a.size for a in arrays])) if len(arrays) > 1 else 0.0
        size = 0.0 if max((a.size for a in arrays), default=0) <= 4096 else size / max(a.size for a in arrays)
    if size > MAX_ELEMENTS:
        raise fail("HG004", label(node), f"constant of {size:.0f} elements; at most {MAX_ELEMENTS}.")


def evaluate(node: onnx.NodeProto, arrays: list[Array], opset: int) -> list[Array]:
    """Runs one standard node with onnx's reference evaluator."""
    try:
        evaluator = ReferenceEvaluator(single_node(node, arrays, opset))
        feeds = dict(zip([i for i in node.input if i], arrays, strict=True))
        results = evaluator.run(None, feeds)
    except Exception as error:
        raise fail("HG013", label(node), f"{node.op_type} cannot be evaluated: {_first_line(error)}") from None
    return [np.asarray(r) for r in results]


def single_node(node: onnx.NodeProto, arrays: list[Array], opset: int) -> onnx.ModelProto:
    """A model of that node alone, its inputs typed after `arrays`."""
    names = [i for i in node.input if i]
    typed = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), list(a.shape))
        for n, a in zip(names, arrays, strict=True)
    ]
    outputs = [helper.make_empty_tensor_value_info(o) for o in node.output if o]
    graph = helper.make_graph([node], "node", typed, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def quantized(op: Quantizer, x: Const) -> Const:
    """The constant behind a quantizer, with its codes."""
    codes = quantize(op, x.array.astype(np.float32))
    meaning = decoding(op)
    real = decode(meaning, codes)
    scale, zero = getattr(meaning, "scale", None), getattr(meaning, "zero_point", None)
    if scale is None or zero is None:
        return Const(real)
    return Const(real, codes, np.broadcast_to(scale, codes.shape), np.broadcast_to(zero, codes.shape))


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """Attribute values by name; strings decoded."""
    found: dict[str, Any] = {}
    for attribute in node.attribute:
        if attribute.ref_attr_name or attribute.type == 0:
            raise fail("HG013", label(node), f"attribute {attribute.name} has no value of its own.")
        value = helper.get_attribute_value(attribute)
        found[attribute.name] = value.decode(errors="replace") if isinstance(value, bytes) else value
    return found


def label(node: onnx.NodeProto) -> str:
    """How a node is called in messages."""
    return node.name or f"{node.op_type} -> {node.output[0] if node.output else '?'}"


def _first_line(error: Exception) -> str:
    text = str(error).strip().split("\n")[0]
    return text[:200] if text else type(error).__name__
