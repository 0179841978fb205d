"""QuantizeLinear to floats of 8 and 4 bits, and DequantizeLinear behind it: codes are multiples of the least number.

Between both, the tensor has the numbers of the type as float32: x / scale, rounded to the nearest one, ties to even.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import Dynamic
from hlsgen.frontend.dialect_integer import linear_parameters, scale_of
from hlsgen.frontend.node_context import Imported, NodeContext, elementwise
from hlsgen.frontend.ops_standard import full
from hlsgen.ir.ops import Cast, Div, FloatQuant, Mul
from hlsgen.numerics.fixed import Rounding


@dataclass(frozen=True)
class Format:
    """`mantissa`: bits behind the leading one. `exponent`: of the least normal number. `largest`: finite number."""

    mantissa: int
    exponent: int
    largest: float

    @property
    def bits(self) -> int:
        """Of the codes, with a sign."""
        return int(self.largest * 2.0 ** (self.mantissa - self.exponent)).bit_length() + 1


FORMATS = {
    "float8_e4m3fn": Format(3, -6, 448.0), "float8_e4m3fnuz": Format(3, -7, 240.0),
    "float8_e5m2": Format(2, -14, 57344.0), "float8_e5m2fnuz": Format(2, -15, 57344.0),
    "float4_e2m1fn": Format(1, 0, 6.0),
}  # fmt: skip
_NUMBERS = {
    TensorProto.FLOAT8E4M3FN: "float8_e4m3fn", TensorProto.FLOAT8E4M3FNUZ: "float8_e4m3fnuz",
    TensorProto.FLOAT8E5M2: "float8_e5m2", TensorProto.FLOAT8E5M2FNUZ: "float8_e5m2fnuz",
    TensorProto.FLOAT4E2M1: "float4_e2m1fn",
}  # fmt: skip
#: Most bits of a code: what float32 holds, and a sign.
_MOST_BITS = 25
#: What takes them: DequantizeLinear, and what only moves elements.
_MOVES = frozenset("DequantizeLinear Reshape Transpose Flatten Squeeze Unsqueeze Identity".split())


def kind_of_result(node: NodeContext) -> str | None:
    """The float type that a QuantizeLinear gives; None if it is an integer type."""
    zero = node.constant(2)
    name = zero.array.dtype.name if zero is not None else _NUMBERS.get(node.attrs.get("output_dtype", 0), "")
    return name if name in FORMATS else None


def quantize_linear(node: NodeContext, kind: str) -> Imported:
    """Raises HG013, HG020, HG022, HG023, HG024, HG026, HG033."""
    form, name, zero = FORMATS[kind], node.name, node.constant(2)
    if form.bits > _MOST_BITS:
        step = form.exponent - form.mantissa
        raise fail(
            "HG033", name, f"numbers of {kind} are multiples of 2^{step} up to {form.largest:g}: codes of {form.bits} bits.",
            f"At most {_MOST_BITS} are supported: use float8_e4m3fn.",
        )  # fmt: skip
    if not node.attrs.get("saturate", 1):
        raise fail("HG013", name, "saturate is 0.", "Infinity and NaN have no integer code: set it to 1.")
    if zero is not None and zero.array.astype(np.float32).any():
        raise fail("HG024", name, f"the zero point of {kind} data is not 0.", "ONNX demands 0.")
    if node.dtype != "float32" or scale_of(name, node.constant(1)).dtype != np.float32:
        raise fail("HG026", name, f"{kind} of {node.dtype} data.", "Data and scale must be float32.")
    scale, _, _ = linear_parameters(name, node.shape, node.constants[:2], node.attrs, "int8")
    op = FloatQuant(full(1.0, node.shape), form.mantissa, form.exponent, form.largest, True, Rounding.ROUND)
    found = elementwise(node, Div(scale), op)
    return Imported(found.outputs, dtype=kind)


def dequantize_linear(node: NodeContext) -> Imported:
    """Raises HG013, HG020, HG022, HG023, HG026."""
    scale, _, _ = linear_parameters(node.name, node.shape, node.constants[:2], node.attrs, "int8")
    if scale.dtype == np.float32:
        return Imported(elementwise(node, Mul(scale)).outputs, dtype="float32")
    wide = scale.astype(np.float32)
    return Imported(elementwise(node, Mul(wide), Cast(scale.dtype.name)).outputs, dtype=scale.dtype.name)


def check_taken(name: str, op_type: str, taken: Sequence[Dynamic]) -> None:
    """Whether a node may take numbers of these types. Raises HG026."""
    kind = next((tensor.dtype for tensor in taken if tensor.dtype in FORMATS), None)
    if kind is not None and op_type not in _MOVES:
        text = f"{op_type} of {kind} data."
        raise fail("HG026", name, text, "In front of its DequantizeLinear nodes may only move elements.")
