"""RESIZE_BILINEAR: exact integer sums along rows and columns, then one rounding."""

from __future__ import annotations

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.frontend.node_context import ShapedOps
from hlsgen.frontend.tflite.operator_node import OperatorNode
from hlsgen.frontend.tflite.requantizers import shifted
from hlsgen.ir import MatMulInteger, Transpose
from hlsgen.ir.ops import IntegerRatio
from hlsgen.numerics.tflite.functions import UnsupportedFunction
from hlsgen.numerics.tflite.multipliers import Runtime
from hlsgen.numerics.tflite.resize import (
    FLOAT_BITS,
    REFERENCE_BITS,
    XNNPACK_BITS,
    float_weights,
    reference_weights,
    xnnpack_weights,
)

#: Orders of axes: images with the width last, (n, height, channels, width) with the height last, images again.
_WIDTH_LAST, _HEIGHT_LAST, _CHANNELS_LAST = (0, 1, 3, 2), (0, 3, 2, 1), (0, 3, 1, 2)
#: Most weights along an axis: each element of the result has one for each element of the data, most of them 0.
_MAX_WEIGHTS = 1 << 18


def resize_bilinear(node: OperatorNode) -> None:
    """RESIZE_BILINEAR of images of codes. Raises HG004, HG013, HG014, HG022 - HG024, HG026."""
    data, result = node.codes(node.tensor(0)), node.codes(node.result())
    shape, out = node.tensor(0).shape, node.result().shape
    if len(shape) != 4 or len(out) != 4 or (shape[0], shape[3]) != (out[0], out[3]) or not all(out):
        text = f"data of shape {list(shape)} to shape {list(out)}."
        raise fail("HG023", node.name, text, "It needs images, channels last, with as many channels.")
    if data != result:
        raise node.refused("data and result have different scales or zero points", "Give both the same.")
    options = bool(node.options["align_corners"]), bool(node.options["half_pixel_centers"])
    if all(options):
        raise node.refused("it has both align_corners and half_pixel_centers", "Use one of them.")
    in_floats = node.runtime is Runtime.LITERT_REF and data.dtype == "uint8"
    by_axis, bits = (xnnpack_weights, XNNPACK_BITS) if node.by_xnnpack else (reference_weights, REFERENCE_BITS)
    if in_floats:
        by_axis, bits = float_weights, FLOAT_BITS
    power, weights = 2 * bits, []
    for axis in (2, 1):
        if shape[axis] * out[axis] > _MAX_WEIGHTS:
            text = f"RESIZE_BILINEAR of {shape[axis]} to {out[axis]} elements along axis {axis}."
            hint = f"Their product is at most {_MAX_WEIGHTS}, such as 512 to 512 elements. Resize on the host."
            raise fail("HG004", node.name, text, hint)
        # Common factors of two make the layers smaller, and do not change the quotient.
        try:
            matrix = by_axis(shape[axis], out[axis], *options)
        except UnsupportedFunction as reason:
            hint = "Convert the model to int8, use litert, or resize by a power of two."
            raise node.refused(str(reason), hint) from None
        factor = int(np.gcd.reduce(matrix, axis=None, initial=1 << bits))
        weights.append(matrix // factor)
        power -= factor.bit_length() - 1
    height, width, channels = shape[1], out[2], shape[3]
    if power and (node.by_xnnpack or in_floats):
        last: ShapedOps = [(shifted(4, 1 << (power - 1), power, 0, result.type, result.dtype), out)]
    else:
        multiplier, half = np.ones((1,) * 4, np.int64), np.full((1,) * 4, (1 << power) // 2, np.int64)
        last = [(IntegerRatio(multiplier, half, multiplier << power, result.type, result.dtype, mirrored=True), out)]
    ops: ShapedOps = [
        (Transpose(_WIDTH_LAST), (shape[0], height, channels, shape[2])),
        (MatMulInteger(weights[0], np.zeros(shape[2], np.int64)), (shape[0], height, channels, width)),
        (Transpose(_HEIGHT_LAST), (shape[0], width, channels, height)),
        (MatMulInteger(weights[1], np.zeros(height, np.int64)), (shape[0], width, channels, out[1])),
        (Transpose(_CHANNELS_LAST), out),
        *last,
    ]
    node.finish(node.chain(node.value(0), ops), out)
