"""Models of attention whose Softmax sees raw scores: products of two tensors, times a factor, with a mask or
without.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper
from onnx.parser import parse_model


def attention(
    shape: tuple[int, int, int],
    step: float,
    factor: str = "Mul",
    mask: str = "m = Identity(s)",
    quant: str = "QDQ",
    share: float = 1 / 255,
    **constants: NDArray[Any],
) -> onnx.ModelProto:
    """`shape`: heads, tokens, elements of a token. `mask`: m of the scaled scores s, with the constants."""
    heads, tokens, size = shape
    model = parse_model(f"""
      <ir_version: 9, opset_import: ["" : 19, "qonnx.custom_op.general" : 1]>
      attention (float[1, {heads}, {tokens}, {size}] x) => (float[1, {heads}, {tokens}, {size}] y)
      <float step = {{{step}}}, float share = {{{share}}}, float wide = {{{step * 2}}}, int8 zero = {{0}}, uint8 low = {{0}},
       float root = {{{size**0.5 if factor == "Div" else size**-0.5}}}, float none = {{0.0}}, float bits = {{8.0}}>
      {{
        {_quantized(quant, "a", "x", "step", "zero", 1)}
        t = Transpose <perm = [0, 1, 3, 2]> (a)
        r = MatMul(a, t)
        s = {factor}(r, root)
        {mask}
        z = Softmax <axis = -1> (m)
        {_quantized(quant, "p", "z", "share", "low", 0)}
        w = MatMul(p, a)
        {_quantized(quant, "y", "w", "wide", "zero", 1)}
      }}""")
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items())
    for number, node in enumerate(model.graph.node):
        node.name = f"{node.op_type.lower()}{number}"
    del model.graph.value_info[:]
    return model


def _quantized(kind: str, result: str, source: str, scale: str, zero: str, signed: int) -> str:
    if kind == "QDQ":
        return (
            f"{result}_codes = QuantizeLinear({source}, {scale}, {zero})  "
            f"{result} = DequantizeLinear({result}_codes, {scale}, {zero})"
        )
    return (
        f'{result} = qonnx.custom_op.general.Quant <signed = {signed}, narrow = 0, rounding_mode = "ROUND">'
        f" ({source}, {scale}, none, bits)"
    )


def tokens(model: onnx.ModelProto, frames: int, seed: int) -> NDArray[np.float32]:
    """Frames whose scores lie near each other in some rows, far apart in others."""
    rng = np.random.default_rng(seed)
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    spread = rng.choice([0.1, 0.3, 1, 2], (frames, 1, shape[2], 1))
    return (rng.normal(0, 1, (frames, *shape[1:])) * spread).astype(np.float32)
