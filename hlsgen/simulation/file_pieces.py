"""The nodes that a runtime executes of a file, and pieces of them between known tensors."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

import numpy as np
import onnx

from hlsgen.frontend import norm_patterns
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.exact_values import Grid, constant_grid, same
from hlsgen.simulation.fused_nodes import take_apart
from hlsgen.simulation.oracles import Unable, constant_of, run_node


@dataclass(frozen=True, eq=False)
class Piece:
    """Nodes between tensors that are known and one that is compared; `constant`: those that only depend on constants."""

    nodes: list[onnx.NodeProto]
    constant: list[onnx.NodeProto]
    sources: list[str]
    target: str


class ExecutedFile:
    """One file in one executor.

    `constants`: arrays of all tensors that depend on no input, and of `grids` the integers and scales of those that a
    quantizer made. `parts`: tensors of the nodes that a fused node was taken apart into. `computed`: names of tensors that depend on an input. `makers`: the node of each tensor.
    `normalizations`: those that the file has taken apart, each as one node, by the tensor that it gives.
    Raises Unable if the executor cannot evaluate a constant.
    """

    def __init__(self, proto: onnx.ModelProto, executor: str, inputs: list[str]) -> None:
        self.executor = executor
        self.opsets = {o.domain: o.version for o in proto.opset_import}
        self.parts = take_apart(proto.graph)
        self.tensors = {t.name: t for t in proto.graph.initializer}
        self.constants = {t.name: constant_of(t) for t in proto.graph.initializer}
        self.grids: dict[str, Grid] = {}
        self.nodes = list(proto.graph.node)
        self.makers = {o: n for n in self.nodes for o in n.output if o}
        self.computed = set(inputs)
        self.normalizations = {made.output[0]: made for made in norm_patterns.found(proto.graph).values()}
        self._fold()

    def _fold(self) -> None:
        """Evaluates the nodes that depend on constants alone; notes those that do not."""
        for node in self.nodes:
            given = [i for i in node.input if i]
            if any(i in self.computed for i in given):
                self.computed.update(o for o in node.output if o)
            elif all(i in self.constants for i in given):
                arrays = [self.constants[i] for i in given]
                found = run_node(self.executor, node, arrays, self.opsets)
                self.constants.update(zip(node.output, found, strict=False))
                try:
                    with np.errstate(all="ignore"):
                        grid = constant_grid(node, found[0], arrays, self.grids)
                except (ValueError, IndexError):  # parameters of other shapes: then nothing is known of it
                    grid = None
                if grid is not None:
                    self.grids[node.output[0]] = grid

    def piece(self, target: str, known: Container[str]) -> Piece:
        """Everything between known tensors and this one."""
        wanted, sources = {target}, set()
        nodes: list[onnx.NodeProto] = []
        constant: list[onnx.NodeProto] = []
        for node in reversed(self.nodes):
            if not wanted.intersection(node.output):
                continue
            (nodes if self.computed.intersection(node.output) else constant).insert(0, node)
            for name in filter(None, node.input):
                if name in known:
                    sources.add(name)
                else:
                    wanted.add(name)
        return Piece(nodes, constant, sorted(sources), target)

    def walk(self, piece: Piece, trace: Mapping[str, Array]) -> dict[str, Array]:
        """All tensors of the piece: those of a trace, others by the nodes alone. Raises Unable if both differ."""
        values = {name: trace[name] for name in piece.sources}
        for node in piece.nodes:
            outputs = [o for o in node.output if o]
            if all(o in trace for o in outputs) and not self.is_part(node):
                values.update((o, trace[o]) for o in outputs)
                continue
            results = run_node(self.executor, node, self.arrays(node, values), self.opsets)
            values.update(zip(outputs, results, strict=False))
            for output in outputs:
                if output in trace and not same(trace[output], values[output]):
                    raise Unable(f"{node.name} of {self.executor} is not what its parts give one by one")
        return values

    def is_part(self, node: onnx.NodeProto) -> bool:
        """Whether it is a part of a node that the runtime has fused."""
        return bool(self.parts.intersection(node.output))

    def arrays(self, node: onnx.NodeProto, values: Mapping[str, Array]) -> list[Array]:
        """The inputs of a node, without the missing ones. Raises Unable."""
        names = [i for i in node.input if i]
        missing = next((i for i in names if i not in values and i not in self.constants), None)
        if missing is not None:
            raise Unable(f"{node.op_type}: the tensor {missing} in front of it is not known")
        return [values[i] if i in values else self.constants[i] for i in names]
