"""SOFTMAX, which the host computes from the last codes of the hardware, in the runtime's own integers or floats."""

from __future__ import annotations

import numpy as np

from hlsgen.frontend.tflite.operator_node import OperatorNode
from hlsgen.interpreter.host_tflite import HostSoftmax
from hlsgen.numerics.tflite.functions import UnsupportedFunction
from hlsgen.numerics.tflite.multipliers import Runtime
from hlsgen.numerics.tflite.softmax import exponentials_in_floats, exponentials_in_integers

#: Rows up to this length cannot overflow the sum of a runtime.
_LONGEST_ROW = 4096


def softmax(node: OperatorNode) -> None:
    """SOFTMAX along the last axis, of codes to codes with 256 steps from 0 to 1.

    Raises HG013, HG014, HG022 - HG024, HG026.
    """
    source, result = node.tensor(0), node.codes(node.result())
    data, shape = node.codes(source), source.shape
    if result.dtype != data.dtype:
        raise node.wrong_type(node.result())
    lowest = result.type.lo
    if result.zero_point != lowest or np.float32(result.scale) != np.float32(1 / 256):
        text = f"its result has scale {result.scale:g} and zero point {result.zero_point}"
        raise node.refused(text, f"It must have scale 1/256 and zero point {lowest}.")
    if not shape or shape[-1] > _LONGEST_ROW:
        raise node.refused(f"the shape of its data is {list(shape)}", f"Supported: rows of 1 to {_LONGEST_ROW} codes.")
    beta = float(np.float32(node.options.get("beta", 1.0)))
    if not np.isfinite(beta) or beta <= 0:
        raise node.refused(f"beta is {beta:g}", "It must be greater than 0.")
    exponentials_of = exponentials_in_floats if node.runtime is Runtime.LITERT else exponentials_in_integers
    try:
        exponentials = exponentials_of(data.scale, beta)
    except UnsupportedFunction as reason:
        raise node.refused(str(reason), "Quantize the data with a larger scale.") from None
    node.finish(node.step(HostSoftmax(data.dtype, exponentials).host_op(shape), shape, node.value(0)), shape)
