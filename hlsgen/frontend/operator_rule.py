"""`Rule`, a row of the table of operators, and the check of the computed inputs of a node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from typing_extensions import assert_never

from hlsgen.diagnostics import fail
from hlsgen.frontend.constant_folding import Const
from hlsgen.frontend.constants import refused
from hlsgen.frontend.node_context import Imported, NodeContext

Convert = Callable[[NodeContext], Imported]
Fold = Callable[[NodeContext], list[Const]]
#: Hint with the operators that several computed tensors are supported for.
JOINS = (
    "Two computed tensors are supported for Add, Sub, Mul, Div, Max, Min, Concat, MatMul, their QLinear operators, "
    "Gemm, MatMulInteger, comparisons, And, Or, Xor, Where; for integers of 8 bits also for Mod, BitShift, BitwiseAnd, "
    "BitwiseOr, BitwiseXor. Make the other operands constants."
)


class Dtypes(Enum):
    """Types of data that an operator accepts; its importing function may be stricter."""

    FLOATS = auto()
    ANY = auto()


class Operands(Enum):
    """The input that may be computed; the others must be constants."""

    FIRST = auto()  #: the first
    PARAMETERS = auto()  #: the first; the others are a quantizer's, and are checked even if the data is unknown
    INTEGER = auto()  #: the first, of integer ONNX
    QLINEAR = auto()  #: the first, of onnxruntime's operators
    QLINEAR_TERM = auto()  #: one of two operands with scale and zero point each
    QLINEAR_FACTOR = auto()  #: one of the first two
    LAYER = auto()  #: the first; the second is the weights
    QLINEAR_LAYER = auto()  #: the first; the fourth is the weights
    EITHER = auto()  #: any one


class Role(Enum):
    """The role of an operator in the partition between host and hardware."""

    ELEMENTS = auto()  #: neither of the following
    LAYER = auto()
    QUANTIZER = auto()
    HOST = auto()  #: only the host executes it


@dataclass(frozen=True)
class Rule:
    """The import of the nodes of an operator.

    convert     importing function for one computed input
    dtypes      types of that input
    operands    the input that may be computed
    join        importing function for several computed inputs; None if they are refused
    fold        evaluation for constant inputs only
    role        role in the partition between host and hardware
    host_first  the host computes it before the first quantizer or layer
    keeps_type  the result has the shape and type of the data; assumed for a node with an error
    """

    convert: Convert
    dtypes: Dtypes = Dtypes.FLOATS
    operands: Operands = Operands.FIRST
    join: Convert | None = None
    fold: Fold = refused
    role: Role = Role.ELEMENTS
    host_first: bool = False
    keeps_type: bool = True


def check_operands(node: NodeContext, operands: Operands) -> None:
    """Check that the computed input may be computed. Raises HG010 or HG020."""
    position = node.position
    if position == 0:
        return
    computed = f"input {position} of {node.op_type} is computed from the model's input."
    data_only = "Only the data may be computed; the other inputs must be constants."
    match operands:
        case Operands.EITHER:
            return
        case Operands.FIRST:
            text = f"input {position} ({node.proto.input[position]!r}) of {node.op_type} is not a constant."
            raise fail("HG020", node.name, text, "Only the first input may be computed from the model's input.")
        case Operands.PARAMETERS:
            text = f"a parameter of the quantizer (input {position}) is computed from the model's input."
            raise fail("HG020", node.name, text, data_only)
        case Operands.INTEGER:
            hint = "Only the first input may be computed; the others must be constants."
            raise fail("HG020", node.name, computed, hint)
        case Operands.QLINEAR_TERM if position == 3:
            return
        case Operands.QLINEAR_FACTOR if position == 1:
            return
        case Operands.QLINEAR | Operands.QLINEAR_TERM | Operands.QLINEAR_FACTOR:
            raise fail("HG020", node.name, computed, data_only)
        case Operands.LAYER | Operands.QLINEAR_LAYER:
            if position == (3 if operands is Operands.QLINEAR_LAYER else 1):
                raise fail("HG010", node.name, "the weights are computed from the model's input.", data_only)
            raise fail("HG020", node.name, computed, data_only)
        case _:
            assert_never(operands)
