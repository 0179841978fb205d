"""Tensors as the importer knows them, constant or computed, and the evaluation of constant nodes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from hlsgen.diagnostics import Collector, fail, printable
from hlsgen.interpreter.host_steps import OPERATORS
from hlsgen.ir import Shape
from hlsgen.ir.evaluate import decode, decoding, quantize
from hlsgen.ir.ops import Quantizer
from hlsgen.numerics.fixed import Array

#: Bounds of an evaluated constant: elements of the result, and multiplications.
MAX_ELEMENTS = 1 << 24
MAX_PRODUCTS = 1 << 32
#: Maximum number of elements of a tensor of the network.
MAX_TENSOR = 1 << 24
#: Maximum number of axes; numpy has 64, far more than hardware needs.
MAX_RANK = 16


@dataclass(frozen=True, eq=False)
class Const:
    """A constant tensor; with `codes`, `scale`, `zero_point` of its shape if a quantizer computed it.

    `kind`: the ONNX integer type of the codes after DequantizeLinear.
    """

    array: Array
    codes: Array | None = None
    scale: Array | None = None
    zero_point: Array | None = None
    kind: str = ""

    def map(self, change: Callable[[Array], Array]) -> Const:
        """The constant with a rearrangement applied to its array, codes, scale and zero point."""
        parts = (self.codes, self.scale, self.zero_point)
        codes, scale, zero = (None if part is None else change(part) for part in parts)
        return Const(change(self.array), codes, scale, zero, self.kind)


@dataclass(frozen=True)
class Dynamic:
    """A tensor computed from the model's input.

    shape  None after an operator that is not supported
    index  number of the step that computes it, 0 for the input, None after an error
    """

    shape: Shape | None
    dtype: str
    index: int | None


Tensor = Const | Dynamic
#: Inputs of a node by number; an absent or computed one is None.
ConstInputs = list[Const | None]

#: ONNX element types of the network's tensors, as numpy dtypes. Integers of 2 and 4 bits are held in 8 bits.
DTYPES: dict[int, str] = {
    TensorProto.FLOAT: "float32",
    TensorProto.FLOAT16: "float16",
    TensorProto.DOUBLE: "float64",
    TensorProto.INT8: "int8",
    TensorProto.UINT8: "uint8",
    TensorProto.INT16: "int16",
    TensorProto.UINT16: "uint16",
    TensorProto.INT32: "int32",
    TensorProto.UINT32: "uint32",
    TensorProto.INT4: "int8",
    TensorProto.UINT4: "uint8",
    TensorProto.INT2: "int8",
    TensorProto.UINT2: "uint8",
    TensorProto.INT64: "int64",
}

_BROADCASTING = frozenset(
    (
        "Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Clip Div Equal Greater GreaterOrEqual LayerNormalization "
        "Less LessOrEqual Max Min Mod Mul Or Pow RMSNormalization Sub Sum Where Xor"
    ).split()
)


def check_growth(node: onnx.NodeProto, arrays: list[Array]) -> None:
    """Refuse a constant node whose result would be far larger than its inputs. Raises HG004 or HG013."""
    if any(a.ndim > MAX_RANK for a in arrays):
        text = f"a constant input has {max(a.ndim for a in arrays)} dimensions."
        raise fail("HG004", label(node), text, f"At most {MAX_RANK} dimensions are supported.")
    if any(a.name == "num_outputs" and a.i > len(node.output) for a in node.attribute):
        text = f"attribute num_outputs is larger than {len(node.output)}, the number of outputs."
        raise fail("HG013", label(node), text, "Make it equal to the number of outputs.")
    try:
        size, products = _size(node, arrays)
    except (ValueError, TypeError, IndexError, ZeroDivisionError, OverflowError):
        return  # the evaluation reports the error
    if size > MAX_ELEMENTS:
        text = f"{node.op_type} of constants has a result of {size:.0f} elements."
        raise fail("HG004", label(node), text, f"At most {MAX_ELEMENTS} are computed: make the constant smaller.")
    if products > MAX_PRODUCTS:
        text = f"{node.op_type} of constants needs {products:.0f} multiplications."
        hint = f"At most {MAX_PRODUCTS} are computed: fold the constants in the exporter."
        raise fail("HG004", label(node), text, hint)


def _size(node: onnx.NodeProto, arrays: list[Array]) -> tuple[float, float]:
    """(elements of the result, multiplications) of an operator that can grow; else (0, 0)."""
    op, shapes = node.op_type, [a.shape for a in arrays]
    if op in _BROADCASTING:
        return _product(np.broadcast_shapes(*shapes)), 0
    if op == "Expand":
        return _product(np.broadcast_shapes(shapes[0], tuple(arrays[1].tolist()))), 0
    if op == "Tile":
        return _product(np.maximum(arrays[1], 1).tolist()) * arrays[0].size, 0
    if op == "ConstantOfShape":
        return _product(np.maximum(arrays[0], 1).tolist()), 0
    if op == "Range":
        start, limit, delta = (float(a.reshape(())) for a in arrays)
        return abs((limit - start) / delta), 0
    if op == "Concat":
        return float(sum(a.size for a in arrays)), 0
    if op == "Gather":
        return float(arrays[1].size) * arrays[0].size / min(arrays[0].shape), 0
    if op == "TopK":
        attribute_k = next((a.i for a in node.attribute if a.name == "k"), 0)
        count = float(arrays[1].max() if len(arrays) > 1 else attribute_k)
        return (0 if count <= max(shapes[0]) else max(count, 1.0) * MAX_ELEMENTS), 0
    if op in ("MatMul", "Gemm"):
        transposed = next((a.i for a in node.attribute if a.name == "transA"), 0)
        columns = shapes[0][0 if transposed and op == "Gemm" else -1]
        products = float(arrays[0].size) * arrays[1].size / columns
        return products / columns, products
    return 0, 0


def _product(shape: Iterable[Any]) -> float:
    return math.prod(float(s) for s in shape)


def evaluate(node: onnx.NodeProto, arrays: list[Array], opset: int) -> list[Array]:
    """The outputs of a standard node, by onnx's reference evaluator. Raises HG013."""
    try:
        evaluator = ReferenceEvaluator(single_node(node, arrays, opset), new_ops=OPERATORS)
        feeds = dict(zip([i for i in node.input if i], arrays, strict=True))
        with np.errstate(all="ignore"):
            results = [np.asarray(r) for r in evaluator.run(None, feeds)]
    except Exception as error:  # whatever the evaluator makes of a wrong node
        raise fail(
            "HG013",
            label(node),
            f"{node.op_type} cannot be evaluated: {_first_line(error)}.",
            "Check its attributes and the shapes of its inputs.",
        ) from None
    return results


def single_node(node: onnx.NodeProto, arrays: list[Array], opset: int) -> onnx.ModelProto:
    """A model that consists of one node, its inputs typed like `arrays`."""
    names = [i for i in node.input if i]
    typed = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), list(a.shape))
        for n, a in zip(names, arrays, strict=True)
    ]
    outputs = [helper.make_empty_tensor_value_info(o) for o in node.output if o]
    graph = helper.make_graph([node], "node", typed, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def check_finite(name: str, array: Array) -> None:
    """Refuse NaN and infinity in a constant. Raises HG027."""
    if array.dtype.kind == "f" and not (finite := np.isfinite(array)).all():
        at = np.argwhere(~finite)[0].tolist()
        raise fail(
            "HG027",
            name,
            f"a constant that is to be quantized is {array[tuple(at)]} at {at}.",
            "Every weight and bias must be a finite number: train again, or repair the constant.",
        )


def quantized(name: str, op: Quantizer, x: Const) -> Const:
    """The constant after a quantizer, with its codes. Raises HG027."""
    check_finite(name, x.array)
    codes = quantize(op, x.array.astype(np.float32))
    meaning = decoding(op)
    real = decode(meaning, codes)
    scale, zero = getattr(meaning, "scale", None), getattr(meaning, "zero_point", None)
    if scale is None or zero is None:
        return Const(real)
    return Const(real, codes, np.broadcast_to(scale, codes.shape), np.broadcast_to(zero, codes.shape))


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """Attribute values by name, strings decoded. Raises HG013."""
    values: dict[str, Any] = {}
    for attribute in node.attribute:
        name = attribute.name
        if attribute.ref_attr_name or attribute.type == 0:
            hint = "Inline the model's functions: onnx.inliner.inline_local_functions."
            raise fail("HG013", label(node), f"attribute {name} refers to a function's attribute.", hint)
        if name in values:
            raise fail("HG013", label(node), f"attribute {name} is given twice.", "Export the model again.")
        try:
            value = helper.get_attribute_value(attribute)
        except ValueError:
            text = f"attribute {name} is of unknown type {attribute.type}."
            raise fail("HG013", label(node), text, "Export the model again.") from None
        values[name] = value.decode(errors="replace") if isinstance(value, bytes) else value
    return values


def check_schema(node: onnx.NodeProto, opset: int) -> None:
    """Check inputs, outputs and attributes of a standard node against its operator. Raises HG010, HG013, HG014."""
    if not onnx.defs.has(node.op_type):
        return
    try:
        schema = onnx.defs.get_schema(node.op_type, opset)
    except onnx.defs.SchemaError:
        text = f"operator {node.op_type} does not exist in opset {opset}."
        raise fail("HG010", label(node), text, "Export the model with an opset that has it.") from None
    problems = Collector()
    name, input_count, needed = label(node), len(node.input), schema.min_input
    optional = onnx.defs.OpSchema.FormalParameterOption.Optional
    left_out = (n for n, i in enumerate(node.input[:needed]) if not i)
    broken = f"The node violates opset {opset}: export the model again."
    if input_count < needed or any(schema.inputs[min(n, len(schema.inputs) - 1)].option != optional for n in left_out):
        text = f"{node.op_type} has {sum(map(bool, node.input))} inputs and needs {needed}."
        problems.error("HG014", name, text, broken)
    if input_count > schema.max_input:
        text = f"{node.op_type} has {input_count} inputs; its operator has at most {schema.max_input}."
        problems.error("HG014", name, text, broken)
    if len(node.output) > schema.max_output:
        text = f"{node.op_type} has {len(node.output)} outputs; its operator has at most {schema.max_output}."
        problems.error("HG013", name, text, broken)
    attributes_ = {a.name: a for a in node.attribute}
    for key, attribute in attributes_.items():
        if key not in schema.attributes:
            defined = ", ".join(sorted(schema.attributes)) or "none"
            problems.error("HG013", name, f"{node.op_type} has no attribute {key}.", f"Its attributes: {defined}.")
        else:
            type_: Any = schema.attributes[key].type
            if attribute.type != int(type_.value):
                problems.error("HG013", name, f"attribute {key} must be of type {type_.name}.", broken)
    for key, definition in schema.attributes.items():
        if definition.required and key not in attributes_:
            problems.error("HG013", name, f"attribute {key} is missing.", broken)
    problems.finish()


def label(node: onnx.NodeProto) -> str:
    """The name of a node in messages and layer tables: one line that is fit for a comment."""
    name = node.name or f"{node.op_type} -> {node.output[0] if node.output else '?'}"
    return printable(name).replace("\\", "/")


def _first_line(error: Exception) -> str:
    text = str(error).strip().split("\n")[0]
    return text[:200] if text else type(error).__name__


def check_size(name: str, shape: Shape) -> None:
    """Check the elements and axes of a tensor of the network. Raises HG004, HG012."""
    if len(shape) > MAX_RANK or math.prod(shape) > MAX_TENSOR:
        raise fail(
            "HG004",
            name,
            f"a tensor of shape {list(shape)} is too large.",
            f"At most {MAX_TENSOR} elements and {MAX_RANK} dimensions are supported.",
        )
    if not all(shape):
        raise fail(
            "HG012", name, f"a tensor of shape {list(shape)} has no elements.", "Check the shapes in the export."
        )
