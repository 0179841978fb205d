"""Operators of the domain hlsgen, which standard ONNX lacks: QuantizedAdd, Requantize.

Importing this module registers their schemas, so that onnx.checker and onnx.shape_inference know them.
`OPERATORS` is for onnx.reference.ReferenceEvaluator(model, new_ops=OPERATORS).
"""

from __future__ import annotations

import atexit
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, defs, helper
from onnx.reference.op_run import OpRun
from onnx.shape_inference import InferenceError

from hlsgen.ir import ops
from hlsgen.ir.evaluate import quantize
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.numerics.quantized_add import BOUNDS, Parameters

DOMAIN = "hlsgen"
OPSET = 1

#: Attribute of QuantizedAdd -> field of `Parameters`.
ATTRIBUTES = {
    "zero_point_a": "zp0",
    "zero_point_b": "zp1",
    "zero_point_c": "zpo",
    "scale_a": "s0",
    "scale_b": "s1",
    "scale_c": "so",
    "shift": "shift",
}

_DOC = """
Adds two int8 tensors of one shape. With sat_n saturation to n signed bits and wrap_32 the low 32 bits:

    A = wrap_32((a + zero_point_a) * scale_a)
    B = wrap_32((b + zero_point_b) * scale_b)
    t = wrap_32(sat_32(A + B) * scale_c)
    h = sat_16(round_half_to_even(t / 2^shift))    where shift >= 0; 0 where shift >= 32
    h = sat_16(wrap_32(t * 2^-shift))              where shift < 0; 0 where shift <= -32
    C = sat_8(sat_16(h - zero_point_c))

A code q represents (q + zero_point) / scale, unlike in QuantizeLinear.
"""


def opset_import() -> onnx.OperatorSetIdProto:
    """The entry for the opset_imports of a model that contains such nodes."""
    return helper.make_opsetid(DOMAIN, OPSET)


def make_quantized_add(a: str, b: str, c: str, parameters: Parameters, name: str | None = None) -> onnx.NodeProto:
    """The node c = QuantizedAdd(a, b)."""
    attributes = {attribute: getattr(parameters, field) for attribute, field in ATTRIBUTES.items()}
    return helper.make_node("QuantizedAdd", [a, b], [c], name=name, domain=DOMAIN, **attributes)


def quantized_add_parameters(node: onnx.NodeProto) -> Parameters:
    """The node's parameters; ValueError if one is missing or out of its bounds."""
    values = {attribute.name: attribute.i for attribute in node.attribute}
    missing = sorted(set(ATTRIBUTES) - set(values))
    if missing:
        raise ValueError(f"QuantizedAdd lacks the attributes {', '.join(missing)}")
    return Parameters(**{field: values[attribute] for attribute, field in ATTRIBUTES.items()})


class QuantizedAdd(OpRun):
    """The operator for onnx.reference.ReferenceEvaluator."""

    op_domain = DOMAIN

    def _run(self, a: Array, b: Array, **attributes: int) -> tuple[Array]:
        for operand in (a, b):
            if operand.dtype != np.int8:
                raise ValueError(f"QuantizedAdd needs int8 operands, not {operand.dtype}")
        if a.shape != b.shape:
            raise ValueError(f"QuantizedAdd needs operands of one shape, not {a.shape} and {b.shape}")
        return (Parameters(**{field: attributes[attribute] for attribute, field in ATTRIBUTES.items()}).apply(a, b),)


_REQUANTIZE = """
Rescales an int32 tensor by integers: Y = saturate(zero_point + rounded(X * multiplier, shift)), by one of
the conventions of runtimes. multiplier (0 to 2^31 - 1) and shift are scalars or have one value for
each index of `axis`.

    floor    (X * multiplier) >> shift, toward minus infinity
    single   (X * multiplier + 2^(shift - 1)) >> shift: TOSA, TensorFlow Lite with single rounding
    double   gemmlowp, TensorFlow Lite: X * multiplier / 2^31 to the nearest, ties up, then / 2^(shift - 31)
             to the nearest, ties away from zero; below 31, X is shifted left by 31 - shift first
"""


def make_requantize(
    x: str, multiplier: str, shift: str, zero_point: str, y: str, rounding: str, axis: int = -1, name: str | None = None
) -> onnx.NodeProto:
    """The node y = Requantize(x, multiplier, shift, zero_point); y has the type of zero_point."""
    inputs = [x, multiplier, shift, zero_point]
    return helper.make_node("Requantize", inputs, [y], name=name, domain=DOMAIN, rounding=rounding, axis=axis)


class Requantize(OpRun):
    """The operator for onnx.reference.ReferenceEvaluator."""

    op_domain = DOMAIN

    def _run(
        self, x: Array, multiplier: Array, shift: Array, zero_point: Array, rounding: str = "double", axis: int = -1
    ) -> tuple[Array]:
        along_axis = [1] * x.ndim
        if multiplier.size > 1 or shift.size > 1:
            along_axis[axis] = x.shape[axis]
        multipliers, shifts = (
            np.broadcast_to(v.astype(np.int64).ravel(), max(along_axis)).reshape(along_axis)
            for v in (multiplier, shift)
        )
        limits = np.iinfo(zero_point.dtype)
        type_ = IntType(int(limits.min), int(limits.max))
        addend = np.zeros((1,) * x.ndim, np.int64)
        zero = zero_point.astype(np.int64).reshape((1,) * x.ndim)
        convention, dtype = ops.Convention(rounding), str(zero_point.dtype)
        op = ops.Requantize(convention, multipliers, addend, shifts, zero, type_, dtype)
        return (quantize(op, x).astype(zero_point.dtype),)


OPERATORS = [QuantizedAdd, Requantize]


def _infer(context: Any) -> None:
    """Set the type of C, and its shape from the known shapes of A and B, which must agree."""
    for attribute, field in ATTRIBUTES.items():
        proto, (low, high) = context.get_attribute(attribute), BOUNDS[field]
        if proto is not None and not low <= proto.i <= high:
            raise InferenceError(f"QuantizedAdd: {attribute} = {proto.i} is not within {low} and {high}")
    inputs = [context.get_input_type(k) for k in range(2)]
    result = onnx.TypeProto()
    result.tensor_type.elem_type = TensorProto.INT8
    shapes = [kind.tensor_type.shape for kind in inputs if kind is not None and kind.tensor_type.HasField("shape")]
    if shapes:
        dims = [list(shape.dim) for shape in shapes]
        if len(dims[0]) != len(dims[-1]):
            raise InferenceError(f"QuantizedAdd: ranks {len(dims[0])} and {len(dims[-1])} differ")
        result.tensor_type.shape.SetInParent()
        for first, second in zip(dims[0], dims[-1], strict=True):
            sizes = [dim.dim_value for dim in (first, second) if dim.HasField("dim_value")]
            if len(set(sizes)) > 1:
                raise InferenceError(f"QuantizedAdd: dimensions {sizes[0]} and {sizes[1]} differ")
            source = second if second.HasField("dim_value") or not first.ByteSize() else first
            result.tensor_type.shape.dim.add().CopyFrom(source)
    context.set_output_type(0, result)


def _schema() -> defs.OpSchema:
    kind = defs.OpSchema
    schema = kind(
        "QuantizedAdd",
        DOMAIN,
        OPSET,
        _DOC,
        inputs=[kind.FormalParameter(name, "T", f"Operand {name}.") for name in "AB"],
        outputs=[kind.FormalParameter("C", "T", "The sum.")],
        type_constraints=[("T", ["tensor(int8)"], "Codes are int8.")],
        attributes=[
            kind.Attribute(name, kind.AttrType.INT, f"{BOUNDS[field][0]} to {BOUNDS[field][1]}.")
            for name, field in ATTRIBUTES.items()
        ],
    )
    # Releases of onnx without Python inference functions check such nodes but infer no shapes.
    if hasattr(schema, "set_type_and_shape_inference_function"):
        schema.set_type_and_shape_inference_function(_infer)
    return schema


def _infer_requantize(context: Any) -> None:
    """Set the type of Y to the zero point's, and its shape to X's."""
    x, zero = context.get_input_type(0), context.get_input_type(3)
    result = onnx.TypeProto()
    if zero is not None:
        result.tensor_type.elem_type = zero.tensor_type.elem_type
    if x is not None and x.tensor_type.HasField("shape"):
        result.tensor_type.shape.CopyFrom(x.tensor_type.shape)
    context.set_output_type(0, result)


def _requantize_schema() -> defs.OpSchema:
    kind = defs.OpSchema
    schema = kind(
        "Requantize",
        DOMAIN,
        OPSET,
        _REQUANTIZE,
        inputs=[
            kind.FormalParameter("X", "T0", "Sums."),
            kind.FormalParameter("multiplier", "T0", "0 to 2^31 - 1."),
            kind.FormalParameter("shift", "T0", "0 to 62."),
            kind.FormalParameter("zero_point", "T1", "Scalar."),
        ],
        outputs=[kind.FormalParameter("Y", "T1", "Codes.")],
        type_constraints=[
            ("T0", ["tensor(int32)"], "32-bit integers."),
            ("T1", ["tensor(int8)", "tensor(uint8)", "tensor(int16)", "tensor(uint16)"], "Codes."),
        ],
        attributes=[
            kind.Attribute("rounding", helper.make_attribute("rounding", "double"), "floor, single or double."),
            kind.Attribute("axis", helper.make_attribute("axis", -1), "Axis of multiplier and shift."),
        ],
    )
    if hasattr(schema, "set_type_and_shape_inference_function"):
        schema.set_type_and_shape_inference_function(_infer_requantize)
    return schema


for _name, _make in (("QuantizedAdd", _schema), ("Requantize", _requantize_schema)):
    if not defs.has(_name, OPSET, DOMAIN):
        defs.register_schema(_make())
        # The registry outlives the interpreter; the Python function in the schema must not.
        atexit.register(defs.deregister_schema, _name, OPSET, DOMAIN)
