"""Lowers integer functions of vectors: the codes are the integers themselves, in as few bits as they need."""

from __future__ import annotations

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.ir import IntegerEncoding, IntegerRows, RowStep, Shape, Value
from hlsgen.ir.programs import Program
from hlsgen.ir.row_functions import FixedPointShare, Share, result_dtype, result_type
from hlsgen.passes.graph_builder import GraphBuilder
from hlsgen.passes.pending_value import PendingValue
from hlsgen.passes.quantization import column_scales

#: Largest supported number of bits of the integers, and of the input of a program.
_MAX_BITS, _PROGRAM_BITS = 16, 24


def integer_rows(builder: GraphBuilder, name: str, op: RowStep, tensor: PendingValue, shape: Shape) -> PendingValue:
    """Add a layer for the function. Raises HG032, HG033."""
    value = tensor.value
    scales, zeros = column_scales(name, value)
    if (scales != 1).any() or zeros.any():
        raise fail("HG032", name, "its input is not a tensor of integers.", "Put a RequantShift before it.")
    most_bits = _MAX_BITS
    match op.function:
        case Program():
            most_bits, code_count = _PROGRAM_BITS, 1 << _PROGRAM_BITS
        case Share(weights):
            code_count = len(weights)
        case FixedPointShare(exponentials):
            code_count = len(exponentials)
        case _:
            code_count = 1 << _MAX_BITS
    if value.type.bits > most_bits or value.type.hi >= code_count:
        raise fail("HG033", name, f"its input is {value.type}.", "Use numbers of 8 bits, as Deeploy does.")
    encoding = IntegerEncoding(result_dtype(op.function), np.zeros((1,) * len(shape), np.int64))
    result = Value(shape, result_type(op.function, value.type), encoding)
    return builder.add(IntegerRows(name, op.function, value, result, (tensor.index,)))
