"""Activation operators of ONNX: one element in, one out."""

from __future__ import annotations

from typing import Any

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import Const
from hlsgen.ir import Shape
from hlsgen.ir.ops import Activation, Elementwise

#: Operator -> (attribute, default) of alpha and beta, for those that have them.
_ATTRIBUTES: dict[str, tuple[tuple[str, float], ...]] = {
    "Celu": (("alpha", 1.0),),
    "Elu": (("alpha", 1.0),),
    "LeakyRelu": (("alpha", 0.01),),
    "HardSigmoid": (("alpha", 0.2), ("beta", 0.5)),
    "Selu": (("alpha", 1.67326319217681884765625), ("gamma", 1.05070102214813232421875)),
}
ACTIVATIONS = frozenset(
    """Abs Ceil Celu Elu Erf Exp Floor Gelu HardSigmoid HardSwish LeakyRelu Log Mish Pow PRelu Reciprocal Round Selu
    Sigmoid Sign Softplus Softsign Sqrt Tanh""".split()
)
_FLOATS = ("float16", "float32", "float64")


def activation(
    op_type: str, name: str, shape: Shape, inputs: list[Const | None], attrs: dict[str, Any], dtype: str
) -> list[Elementwise]:  # fmt: skip
    """The steps of an activation of data of that dtype. Raises HG010, HG013, HG020, HG026, HG027."""
    if dtype not in _FLOATS and op_type not in ("Abs", "Sign"):
        raise fail("HG026", name, f"{op_type} of {dtype} data.", "Cast it to float32 first (operator Cast).")
    if op_type == "Pow":
        return [Activation("Pow", _scalar(name, inputs, "the exponent"))]
    if op_type == "PRelu":
        return [Activation("LeakyRelu", _scalar(name, inputs, "the slope"))]
    if op_type == "Gelu":
        form = attrs.get("approximate", "none")
        if form not in ("none", "tanh"):
            raise fail("HG013", name, f"approximate is {form!r}.", "Supported: none, tanh.")
        return [Activation("Gelu" if form == "none" else "GeluTanh")]
    values = [float(np.float32(attrs.get(key, default))) for key, default in _ATTRIBUTES.get(op_type, ())]
    if not np.isfinite(values).all():
        raise fail("HG027", name, f"attributes {values} of {op_type}.", "They must be finite.")
    if op_type == "Celu" and values[0] <= 0:
        raise fail("HG013", name, f"alpha of Celu is {values[0]}.", "It must be greater than 0.")
    return [Activation(op_type, *values)]


def _scalar(name: str, inputs: list[Const | None], what: str) -> float:
    const = inputs[1] if len(inputs) > 1 else None
    if const is None:
        raise fail("HG020", name, f"{what} is not a constant.", "It must be an initializer.")
    if const.array.dtype.kind not in "fiu" or const.array.size != 1:
        text = f"{what} of type {const.array.dtype} and shape {list(const.array.shape)}."
        raise fail("HG023", name, text, "Supported: one number.")
    value = float(const.array.reshape(()))
    if not np.isfinite(value):
        raise fail("HG027", name, f"{what} is {value}.", "It must be finite.")
    return value
