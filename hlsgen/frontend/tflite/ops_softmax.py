"""SOFTMAX, which the host computes from the last codes of the hardware, in the runtime's own integers or floats."""

from __future__ import annotations

import numpy as np

from hlsgen.frontend.tflite.operator_node import OperatorNode
from hlsgen.interpreter.host_tflite import HostSoftmax, int16_host_op
from hlsgen.ir import HostOp, Shape
from hlsgen.numerics.tflite.functions import CodeType, UnsupportedFunction
from hlsgen.numerics.tflite.multipliers import Runtime
from hlsgen.numerics.tflite.softmax import exponentials_in_floats, exponentials_in_integers
from hlsgen.numerics.tflite.softmax_of_int16 import Int16Softmax

#: Rows up to this length cannot overflow the sum of a runtime.
_LONGEST_ROW = 4096


def softmax(node: OperatorNode) -> None:
    """SOFTMAX along the last axis: of 8-bit codes with 2^bits steps from 0 to 1, of int16 codes with 2^15 steps.

    Raises HG013, HG014, HG022 - HG024, HG026.
    """
    source, result = node.tensor(0), node.codes(node.result(), any_zero=True)
    data, shape = node.codes(source), source.shape
    if result.dtype != data.dtype and (data.dtype == "int16" or result.dtype != "int16"):
        raise node.wrong_type(node.result())
    of_int16 = data.dtype == "int16"
    lowest, bits = (0, 15) if of_int16 else (result.type.lo, result.type.bits)
    if result.zero_point != lowest or np.float32(result.scale) != np.float32(2.0**-bits):
        text = f"its result has scale {result.scale:g} and zero point {result.zero_point}"
        raise node.refused(text, f"It must have scale 1/{1 << bits} and zero point {lowest}.")
    if not shape or shape[-1] > _LONGEST_ROW:
        raise node.refused(f"the shape of its data is {list(shape)}", f"Supported: rows of 1 to {_LONGEST_ROW} codes.")
    beta = float(np.float32(node.options.get("beta", 1.0)))
    if not np.isfinite(beta) or beta <= 0:
        raise node.refused(f"beta is {beta:g}", "It must be greater than 0.")
    try:
        op = _host_op(node.runtime, data, result.dtype, beta, shape)
    except UnsupportedFunction as reason:
        raise node.refused(str(reason), "Quantize the data with a larger scale.") from None
    node.finish(node.step(op, shape, node.value(0)), shape)


def _host_op(runtime: Runtime, data: CodeType, result: str, beta: float, shape: Shape) -> HostOp:
    if data.dtype == "int16":
        return int16_host_op(Int16Softmax.of(runtime, data.scale, beta), shape)
    exponentials_of = exponentials_in_floats if runtime is Runtime.LITERT else exponentials_in_integers
    return HostSoftmax(data.dtype, exponentials_of(data.scale, beta), result).host_op(shape)
