"""Properties of Model operations for the importer: the dtype of their results, and the ones hardware must compute."""

from __future__ import annotations

import numpy as np
from typing_extensions import assert_never

from hlsgen.ir import (
    ArgMax,
    BatchMatMul,
    BatchMatMulInteger,
    Binary,
    Concat,
    Conv,
    ConvInteger,
    HostOp,
    InputPart,
    IntegerEncoding,
    MatMul,
    MatMulInteger,
    Normalize,
    Op,
    OutputParts,
    Pack,
    Pad,
    Pool,
    Previous,
    QLinearSoftmax,
    Repeat,
    Reshape,
    RowStep,
    Select,
    Slice,
    Softmax,
    State,
    Transpose,
)
from hlsgen.ir.evaluate import apply, decoding
from hlsgen.ir.ops import Float, Quantizer
from hlsgen.ir.programs import Program


def result_dtype(ops: list[Op], dtype: str) -> str:
    """The numpy dtype after a chain of operations on data of `dtype`."""
    for op in ops:
        dtype = _dtype_after(op, dtype)
    return dtype


def _dtype_after(op: Op, dtype: str) -> str:
    if isinstance(op, Quantizer):
        meaning = decoding(op)
        return meaning.dtype if isinstance(meaning, IntegerEncoding) else "float32"
    if isinstance(op, Float):
        return str(apply(op, np.zeros(1, dtype)).dtype)
    match op:
        case MatMulInteger() | ConvInteger():
            return op.dtype
        case BatchMatMulInteger():
            return "int32"
        case Pack():
            return "uint16"
        case RowStep(Program()):
            return "float64"
        case MatMul() | Conv() | BatchMatMul() | Softmax() | QLinearSoftmax() | Normalize() | RowStep() | HostOp():
            return "float32"
        case Previous(_, initial):
            return dtype if initial is None else "float32"
        case InputPart(_, _, part):
            return part
        case OutputParts():
            return "float64"
        case Reshape() | Transpose() | Pool() | Repeat() | Slice() | Pad() | Concat() | Binary() | Select() | ArgMax():
            return dtype
        case State():
            return dtype
        case _:
            assert_never(op)


def starts_hardware(op: Op) -> bool:
    """True for operations that hardware must compute; operations before the first of them may be the host's."""
    if isinstance(op, Quantizer):
        return True
    if isinstance(op, Float):
        return False
    match op:
        case MatMul() | MatMulInteger() | Conv() | ConvInteger() | BatchMatMul() | BatchMatMulInteger():
            return True
        case Concat() | Binary() | Pack() | OutputParts() | Softmax() | QLinearSoftmax() | Normalize() | RowStep():
            return True
        case Previous() | State():
            return True
        case (
            Reshape() | Transpose() | Pool() | Repeat() | Slice() | Pad() | Select() | ArgMax() | HostOp() | InputPart()
        ):
            return False
        case _:
            assert_never(op)
