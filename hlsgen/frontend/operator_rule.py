"""What a row of the table of operators says: `Rule`; and the check of which input of a node is computed."""

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
#: What several computed tensors can go into.
JOINS = (
    "Two computed tensors can go into Add, Sub, Mul, Div, Max, Min, Concat, MatMul, their QLinear forms, Gemm, "
    "MatMulInteger, comparisons, And, Or, Xor, Where; of integers of 8 bits also into Mod, BitShift, BitwiseAnd ..."
)


class Dtypes(Enum):
    """The types of data that an operator takes. What else its function demands, that checks."""

    FLOATS = auto()
    ANY = auto()


class Operands(Enum):
    """Which input may be computed; the others must be constants."""

    FIRST = auto()  #: the first
    PARAMETERS = auto()  #: the first; the others are a quantizer's, which are checked even where the data is unknown
    INTEGER = auto()  #: the first, of integer ONNX
    QLINEAR = auto()  #: the first, of onnxruntime's operators
    QLINEAR_TERM = auto()  #: one of two terms with scale and zero point each
    LAYER = auto()  #: the first; the second is the weights
    QLINEAR_LAYER = auto()  #: the first; the fourth is the weights
    EITHER = auto()  #: any one


class Role(Enum):
    """What the operator is for the cut between host and hardware."""

    ELEMENTS = auto()  #: neither of the following
    LAYER = auto()
    QUANTIZER = auto()
    HOST = auto()  #: only the host executes it


@dataclass(frozen=True)
class Rule:
    """How nodes of an operator are imported.

    convert    of one computed input
    dtypes     of that input
    operands   which input it may be
    join       of several computed inputs; None if they are refused
    fold       of constant inputs only: their results
    role       for the cut between host and hardware
    host_first whether the host does it in front of the first quantizer or layer
    alike      whether the result has the shape and type of the data: assumed of a node that is wrong
    """

    convert: Convert
    dtypes: Dtypes = Dtypes.FLOATS
    operands: Operands = Operands.FIRST
    join: Convert | None = None
    fold: Fold = refused
    role: Role = Role.ELEMENTS
    host_first: bool = False
    alike: bool = True


def check_operands(node: NodeContext, operands: Operands) -> None:
    """Whether the input that is computed may be. Raises HG010 or HG020."""
    position = node.position
    if position == 0:
        return
    computed = f"input {position} of {node.op_type} is computed from the model's input."
    data_only = "Only the data may be; the others must be constants."
    match operands:
        case Operands.EITHER:
            return
        case Operands.FIRST:
            text = f"input {position} ({node.proto.input[position]!r}) of {node.op_type} is not a constant."
            raise fail("HG020", node.name, text, "Only the first input may be computed from the model's input.")
        case Operands.PARAMETERS:
            raise fail("HG020", node.name, "a parameter of the quantizer is computed from the input.")
        case Operands.INTEGER:
            raise fail("HG020", node.name, computed, "Only the first may be; the others must be constants.")
        case Operands.QLINEAR_TERM if position == 3:
            return
        case Operands.QLINEAR | Operands.QLINEAR_TERM:
            raise fail("HG020", node.name, computed, data_only)
        case Operands.LAYER | Operands.QLINEAR_LAYER:
            if position == (3 if operands is Operands.QLINEAR_LAYER else 1):
                raise fail("HG010", node.name, "the weights are computed from the model's input.", data_only)
            raise fail("HG020", node.name, f"the {computed}", data_only)
        case _:
            assert_never(operands)
