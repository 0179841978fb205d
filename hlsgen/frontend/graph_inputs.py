"""Declared shape, dtype and integer type of the graph's input tensors."""

from __future__ import annotations

import re

import numpy as np
import onnx
from onnx import TensorProto

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import DTYPES, check_size
from hlsgen.ir import Shape
from hlsgen.numerics.fixed import IntType

_MOVES = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})
#: Integers that numpy holds in 8 bits.
_NARROW: dict[int, IntType] = {
    TensorProto.INT2: IntType(-2, 1),
    TensorProto.UINT2: IntType(0, 3),
    TensorProto.INT4: IntType(-8, 7),
    TensorProto.UINT4: IntType(0, 15),
}
#: Types narrow enough to declare a port. int64 is not: hardware receives its whole numbers only if --input says so.
_INTEGERS = frozenset(kind for kind, dtype in DTYPES.items() if np.dtype(dtype).kind in "iu" and dtype != "int64")


def declared_type(graph: onnx.GraphProto, source: onnx.ValueInfoProto) -> tuple[IntType, int] | None:
    """(integer type, fraction bits) of the input by an annotation or by the tensor's own type; else None.

    Annotations of tensors that hold the moved elements of the input count as well; the input's own comes first.
    """
    moved = {source.name: 0}
    for node in graph.node:
        if node.op_type in _MOVES and node.input and node.input[0] in moved:
            moved.setdefault(node.output[0] if node.output else "", len(moved))
    annotations = [a for a in graph.quantization_annotation if a.tensor_name in moved]
    for annotation in sorted(annotations, key=lambda a: moved[a.tensor_name]):
        for entry in annotation.quant_parameter_tensor_names:
            if entry.key == "finn_datatype" and (datatype := parse_datatype(entry.value)):
                return datatype
    kind = source.type.tensor_type.elem_type
    if kind in _INTEGERS:
        if kind in _NARROW:
            return _NARROW[kind], 0
        info = np.iinfo(DTYPES[kind])
        return IntType(int(info.min), int(info.max)), 0
    return None


def parse_datatype(text: str) -> tuple[IntType, int] | None:
    """(integer type, fraction bits) of a QONNX datatype name such as INT4, UINT8, FIXED<8,3>, BIPOLAR; else None."""
    text = text.strip().upper()
    plain = {"BINARY": IntType(0, 1), "BIPOLAR": IntType(-1, 1), "TERNARY": IntType(-1, 1)}
    if text in plain:
        return plain[text], 0
    if (match := re.fullmatch(r"(U?)INT(\d{1,3})", text)) and 1 <= int(match[2]) <= 32:
        bits = int(match[2])
        return (IntType(0, 2**bits - 1) if match[1] else IntType(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)), 0
    if (match := re.fullmatch(r"(U?)FIXED[<:](\d{1,3}),(-?\d{1,3})>?", text)) and 1 <= int(match[2]) <= 32:
        bits, integer_bits = int(match[2]), int(match[3])
        if abs(bits - integer_bits) > 64:
            return None
        type_ = IntType(0, 2**bits - 1) if match[1] else IntType(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return type_, bits - integer_bits
    return None


def input_shape(source: onnx.ValueInfoProto) -> tuple[Shape, bool]:
    """(shape with an open batch as 1, whether the first axis has one element). Raises HG004, HG012."""
    kind = source.type.tensor_type
    if not source.type.HasField("tensor_type") or not kind.HasField("shape"):
        text = "the input declares no tensor shape."
        raise fail("HG012", source.name, text, "Export the model with fixed shapes.")
    dims = list(kind.shape.dim)
    unknown = [i for i, d in enumerate(dims) if not (d.HasField("dim_value") and d.dim_value > 0)]
    if any(i > 0 for i in unknown):
        text = ", ".join(d.dim_param or (str(d.dim_value) if d.HasField("dim_value") else "?") for d in dims)
        raise fail(
            "HG012",
            source.name,
            f"the input's shape is [{text}].",
            "Only the first dimension (the batch) may be open; fix the others in the export.",
        )
    shape = tuple(d.dim_value if i not in unknown else 1 for i, d in enumerate(dims))
    check_size(source.name, shape)
    return shape, bool(shape) and shape[0] == 1


def input_dtype(source: onnx.ValueInfoProto) -> str:
    """The numpy dtype of the input. Raises HG026."""
    kind = source.type.tensor_type.elem_type
    if kind not in DTYPES:
        name = TensorProto.DataType.Name(kind) if kind in TensorProto.DataType.values() else str(kind)
        raise fail(
            "HG026", source.name, f"the input is of type {name}.", "Supported: floats and integers of 2 to 64 bits."
        )
    return DTYPES[kind]
