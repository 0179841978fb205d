"""What an importing function is given, a `NodeContext`, and what it returns, an `Imported`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import onnx

from hlsgen.frontend.constant_folding import Const, ConstInputs, Dynamic, Tensor
from hlsgen.ir import Op, Shape
from hlsgen.ir.ops import Elementwise

#: (operation, shape of its result), each working on the result of the one before.
ShapedOps = list[tuple[Op, Shape]]


@dataclass(frozen=True, eq=False)
class NodeContext:
    """A node of the graph, with what is known of its inputs.

    proto    the node; outputs that nothing uses have no name in it
    name     the node in diagnostics
    attrs    attribute values by name, strings decoded
    inputs   one tensor each input; None where an optional one is absent
    outputs  names of all outputs; "" for those that nothing uses
    opset    version of the default domain
    version  version of the node's own domain; 1 where the model does not say
    fixed_point  whether QLinearAdd becomes QuantizedAdd, with multipliers and a shift
    last     whether no quantizer and no layer follows
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
        """The inputs that are constant; None in the places of all others."""
        return [t if isinstance(t, Const) else None for t in self.inputs]

    def constant(self, i: int) -> Const | None:
        """Input i if there is one and it is constant."""
        tensor = self.inputs[i] if 0 <= i < len(self.inputs) else None
        return tensor if isinstance(tensor, Const) else None

    @property
    def computed(self) -> list[Dynamic]:
        """The inputs that depend on the model's input."""
        return [t for t in self.inputs if isinstance(t, Dynamic)]

    @property
    def position(self) -> int:
        """Which input is the data: the first computed one."""
        return next(i for i, t in enumerate(self.inputs) if isinstance(t, Dynamic))

    @property
    def shape(self) -> Shape:
        """Of the data."""
        shape = self.computed[0].shape
        assert shape is not None, "the importer asks only where it is known"
        return shape

    @property
    def dtype(self) -> str:
        """Of the data."""
        return self.computed[0].dtype

    def with_data(self, shape: Shape) -> NodeContext:
        """The same node, its first input a computed float32 tensor of that shape, all others constants."""
        return replace(self, inputs=(Dynamic(shape, "float32", None), *self.constants[1:]))

    @property
    def used(self) -> list[int]:
        """Numbers of the outputs that something uses."""
        return [i for i, name in enumerate(self.outputs) if name]


@dataclass(frozen=True, eq=False)
class Imported:
    """The operations that a node becomes.

    outputs   one list for the output that is used, or one each output of the node
    before    of a join: what each of its operands, the computed inputs, goes through first; one input may be several
    join      the operation that takes all of them, with the shape of its result
    swapped   the join takes its two inputs in the other order
    dtype     of the result, where it is not that of the last operation
    dtypes    the same for each output of the node
    constant  the result, where it does not depend on the values of the data
    then      what is done to the only output, one after the other, by nodes of which that is the data
    """

    outputs: tuple[ShapedOps, ...] = ()
    before: tuple[ShapedOps, ...] = ()
    join: tuple[Op, Shape] | None = None
    swapped: bool = False
    dtype: str | None = None
    dtypes: tuple[str | None, ...] = ()
    constant: Const | None = None
    then: tuple[Callable[[NodeContext], Imported], ...] = ()


def elementwise(node: NodeContext, *ops: Elementwise) -> Imported:
    """Operations on every element of the data alone, one after the other."""
    return Imported(([(op, node.shape) for op in ops],))
