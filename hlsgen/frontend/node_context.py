"""Argument and result of importing functions: `NodeContext` and `Imported`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import onnx

from hlsgen.frontend.constant_folding import Const, ConstInputs, Dynamic, Tensor
from hlsgen.ir import Op, Shape
from hlsgen.ir.ops import Elementwise

#: Chain of (operation, shape of its result), each applied to the result of the previous one.
ShapedOps = list[tuple[Op, Shape]]


@dataclass(frozen=True, eq=False)
class NodeContext:
    """A node of the graph with its input tensors.

    proto        the node, without the names of unused outputs
    name         its name in diagnostics
    attrs        attribute values by name, strings decoded
    inputs       one tensor per input; an absent one is None
    outputs      names of all outputs; an unused one is ""
    opset        version of the default domain
    version      version of the node's own domain; 1 if the model has none
    fixed_point  import QLinearAdd as QuantizedAdd, with integer multipliers and a shift
    last         true if no quantizer and no layer follows
    """

    proto: onnx.NodeProto
    name: str
    attrs: dict[str, Any]
    inputs: tuple[Tensor | None, ...]
    outputs: tuple[str, ...] = ("",)
    opset: int = 13
    version: int = 1
    fixed_point: bool = False
    last: bool = False

    @property
    def op_type(self) -> str:
        return str(self.proto.op_type)

    @property
    def domain(self) -> str:
        return str(self.proto.domain)

    @property
    def constants(self) -> ConstInputs:
        """The inputs, with None for an absent or computed one."""
        return [t if isinstance(t, Const) else None for t in self.inputs]

    def constant(self, i: int) -> Const | None:
        """Input i, or None if it is absent or computed."""
        tensor = self.inputs[i] if 0 <= i < len(self.inputs) else None
        return tensor if isinstance(tensor, Const) else None

    @property
    def computed(self) -> list[Dynamic]:
        """The inputs that depend on the model's input."""
        return [t for t in self.inputs if isinstance(t, Dynamic)]

    @property
    def position(self) -> int:
        """Number of the data input, which is the first computed one."""
        return next(i for i, t in enumerate(self.inputs) if isinstance(t, Dynamic))

    @property
    def shape(self) -> Shape:
        """Shape of the data."""
        shape = self.computed[0].shape
        assert shape is not None, "the importer converts only nodes with known shapes"
        return shape

    @property
    def dtype(self) -> str:
        """Numpy dtype of the data."""
        return self.computed[0].dtype

    def with_data(self, shape: Shape) -> NodeContext:
        """The same node with a computed float32 tensor of this shape as first input and only constants otherwise."""
        return replace(self, inputs=(Dynamic(shape, "float32", None), *self.constants[1:]))

    @property
    def used(self) -> list[int]:
        """Numbers of the used outputs."""
        return [i for i, name in enumerate(self.outputs) if name]


@dataclass(frozen=True, eq=False)
class Imported:
    """The operations that a node is imported as.

    outputs      one chain for the single used output, or one for each output of the node
    operand_ops  of a join: the chain before each operand; a computed input may be several operands
    join         the operation on all operands, with the shape of its result
    swapped      exchange the two operands of the join
    dtype        numpy dtype of the result; None: the dtype of the last operation
    dtypes       the same for each output of the node
    constant     the result if it does not depend on the values of the data
    then         importing functions applied in turn to the only output, as nodes with that output as data
    """

    outputs: tuple[ShapedOps, ...] = ()
    operand_ops: tuple[ShapedOps, ...] = ()
    join: tuple[Op, Shape] | None = None
    swapped: bool = False
    dtype: str | None = None
    dtypes: tuple[str | None, ...] = ()
    constant: Const | None = None
    then: tuple[Callable[[NodeContext], Imported], ...] = ()


def elementwise(node: NodeContext, *ops: Elementwise) -> Imported:
    """A chain of operations on each element of the data."""
    return Imported(([(op, node.shape) for op in ops],))
