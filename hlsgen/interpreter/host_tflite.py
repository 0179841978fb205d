"""TFLite's SOFTMAX for onnx's reference evaluator: a node that the importer of TFLite files writes for the host.

Pass `OPERATORS` to the evaluator as `new_ops`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from hlsgen.numerics.fixed import Array
from hlsgen.numerics.tflite.functions import CodeType
from hlsgen.numerics.tflite.softmax import softmax_codes, softmax_in_floats, softmax_tables


class SOFTMAX(OpRun):
    """Codes of 8 bits along the last axis, to codes of scale 1/256 whose lowest one is 0."""

    op_domain = "hlsgen.tflite"

    def _run(self, x: Array, scale: float, beta: float, in_floats: int) -> tuple[Array]:
        codes, lowest = x.astype(np.int64), int(np.iinfo(x.dtype).min)
        dtype = x.dtype.name
        if in_floats:
            result = CodeType(dtype, 1 / 256, lowest)
            y = softmax_in_floats(codes, CodeType(dtype, scale, 0), result, beta)
        else:
            y = softmax_codes(softmax_tables(scale, beta), codes, lowest)
        return (y.astype(x.dtype),)


OPERATORS: list[Any] = [SOFTMAX]
