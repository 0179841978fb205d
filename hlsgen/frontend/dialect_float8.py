"""QuantizeLinear to floats of 8 and 4 bits, and the following DequantizeLinear.

A code is the number divided by the smallest positive number of the type. The tensor between both nodes holds the
numbers of the type as float32: x / scale, rounded to the nearest one, ties to even.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import Dynamic
from hlsgen.frontend.dialect_integer import linear_parameters, scale_of
from hlsgen.frontend.node_context import Imported, NodeContext, elementwise
from hlsgen.frontend.onnx_graph import all_nodes
from hlsgen.frontend.ops_standard import full
from hlsgen.ir.ops import Cast, Div, FloatQuant, Mul
from hlsgen.numerics.fixed import Rounding


@dataclass(frozen=True)
class Format:
    """A float type.

    mantissa  bits after the leading one
    exponent  exponent of the smallest normal number
    largest   largest finite number
    """

    mantissa: int
    exponent: int
    largest: float

    @property
    def bits(self) -> int:
        """Width of the codes, sign included."""
        return int(self.largest * 2.0 ** (self.mantissa - self.exponent)).bit_length() + 1


FORMATS = {
    "float8_e4m3fn": Format(3, -6, 448.0),
    "float8_e4m3fnuz": Format(3, -7, 240.0),
    "float8_e5m2": Format(2, -14, 57344.0),
    "float8_e5m2fnuz": Format(2, -15, 57344.0),
    "float4_e2m1fn": Format(1, 0, 6.0),
}
_FORMAT_BY_ELEMENT_TYPE = {
    TensorProto.FLOAT8E4M3FN: "float8_e4m3fn",
    TensorProto.FLOAT8E4M3FNUZ: "float8_e4m3fnuz",
    TensorProto.FLOAT8E5M2: "float8_e5m2",
    TensorProto.FLOAT8E5M2FNUZ: "float8_e5m2fnuz",
    TensorProto.FLOAT4E2M1: "float4_e2m1fn",
}
#: Largest width of a code: the 24 bits of a float32 mantissa and a sign.
_MAX_BITS = 25
#: Operators that may consume such tensors: DequantizeLinear, and operators that only move elements.
_MOVES = frozenset("DequantizeLinear Reshape Transpose Flatten Squeeze Unsqueeze Identity".split())
_ALLOWED = f"{', '.join(sorted(_MOVES - {'DequantizeLinear'}))}."


def kind_of_result(node: NodeContext) -> str | None:
    """The float type that a QuantizeLinear produces, or None for an integer type."""
    zero = node.constant(2)
    name = (
        zero.array.dtype.name
        if zero is not None
        else _FORMAT_BY_ELEMENT_TYPE.get(node.attrs.get("output_dtype", 0), "")
    )
    return name if name in FORMATS else None


def quantizes_to_floats(graph: onnx.GraphProto) -> bool:
    """True if a QuantizeLinear of the graph, or of a graph within it, produces floats of 8 or 4 bits.

    The zero point (initializer or Constant) or the attribute `output_dtype` has the type.
    """
    types = {tensor.name: tensor.data_type for tensor in graph.initializer}
    results: set[int] = set()
    for node in all_nodes(graph):
        if node.op_type == "Constant":
            types |= {name: a.t.data_type for name in node.output for a in node.attribute if a.name == "value"}
        elif node.op_type == "QuantizeLinear":
            results |= {types.get(name, 0) for name in node.input[2:]}
            results |= {a.i for a in node.attribute if a.name == "output_dtype"}
    return not results.isdisjoint(_FORMAT_BY_ELEMENT_TYPE)


def quantize_linear(node: NodeContext, kind: str) -> Imported:
    """QuantizeLinear to the float type `kind`. Raises HG013, HG020, HG022, HG023, HG024, HG026, HG033."""
    form, name, zero = FORMATS[kind], node.name, node.constant(2)
    if form.bits > _MAX_BITS:
        step = form.exponent - form.mantissa
        raise fail(
            "HG033",
            name,
            f"numbers of {kind} are multiples of 2^{step} up to {form.largest:g}: codes of {form.bits} bits.",
            f"At most {_MAX_BITS} are supported: use float8_e4m3fn.",
        )
    if not node.attrs.get("saturate", 1):
        raise fail("HG013", name, "attribute saturate is 0.", "Infinity and NaN have no integer code: set it to 1.")
    if zero is not None and zero.array.astype(np.float32).any():
        raise fail("HG024", name, f"the zero point of {kind} data is not 0.", "ONNX requires 0.")
    if node.dtype != "float32" or scale_of(name, node.constant(1)).dtype != np.float32:
        text = f"quantization to {kind} of {node.dtype} data, or with a scale that is not float32."
        raise fail("HG026", name, text, "Data and scale must be float32.")
    scale, _, _ = linear_parameters(name, node.shape, node.constants[:2], node.attrs, "int8")
    op = FloatQuant(full(1.0, node.shape), form.mantissa, form.exponent, form.largest, True, Rounding.ROUND)
    return Imported(elementwise(node, Div(scale), op).outputs, dtype=kind)


def dequantize_linear(node: NodeContext) -> Imported:
    """DequantizeLinear of floats of 8 or 4 bits. Raises HG013, HG020, HG022, HG023, HG026."""
    scale, _, _ = linear_parameters(node.name, node.shape, node.constants[:2], node.attrs, "int8")
    if scale.dtype == np.float32:
        return Imported(elementwise(node, Mul(scale)).outputs, dtype="float32")
    product = Mul(scale.astype(np.float32))
    return Imported(elementwise(node, product, Cast(scale.dtype.name)).outputs, dtype=scale.dtype.name)


def check_float8_inputs(name: str, op_type: str, inputs: Sequence[Dynamic]) -> None:
    """Check that a node with inputs of such a float type may have them. Raises HG026."""
    kind = next((tensor.dtype for tensor in inputs if tensor.dtype in FORMATS), None)
    if kind is not None and op_type not in _MOVES:
        text = f"{op_type} of {kind} data."
        raise fail("HG026", name, text, "Before the DequantizeLinear, nodes may only move elements: " + _ALLOWED)
