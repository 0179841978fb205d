"""The nodes of a file that a runtime executes, and pieces of them between known tensors."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

import numpy as np
import onnx

from hlsgen.frontend import norm_patterns
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.exact_values import Grid, all_equal, constant_grid
from hlsgen.simulation.fused_nodes import take_apart
from hlsgen.simulation.oracles import Unable, constant_of, run_node


@dataclass(frozen=True, eq=False)
class Piece:
    """Nodes between known tensors and a compared tensor; `constant`: nodes that depend on constants only."""

    nodes: list[onnx.NodeProto]
    constant: list[onnx.NodeProto]
    sources: list[str]
    target: str


class ExecutedFile:
    """One file in one executor.

    - constants: arrays of all tensors that depend on no input. grids: integers and scales of constants that a quantizer
      produced. The argument `grids`: of constants that the executor has folded.
    - parts: tensors of the nodes that replace a fused node.
    - computed: names of tensors that depend on an input. producers: the node that produces each tensor.
    - normalizations: normalizations that the file has as several nodes, each as one node, by the tensor it produces.

    Raises Unable if the executor cannot evaluate a constant.
    """

    def __init__(
        self, proto: onnx.ModelProto, executor: str, inputs: list[str], grids: Mapping[str, Grid] | None = None
    ) -> None:
        self.executor = executor
        self.opsets = {o.domain: o.version for o in proto.opset_import}
        self.parts = take_apart(proto.graph)
        self.tensors = {t.name: t for t in proto.graph.initializer}
        self.constants = {t.name: constant_of(t) for t in proto.graph.initializer}
        self.grids = dict(grids or {})
        self.nodes = list(proto.graph.node)
        self.producers = {o: n for n in self.nodes for o in n.output if o}
        self.computed = set(inputs)
        self.normalizations = {node.output[0]: node for node in norm_patterns.normalizations(proto.graph).values()}
        self._fold()

    def _fold(self) -> None:
        """Evaluates the nodes that depend on constants only; records tensors that depend on inputs."""
        for node in self.nodes:
            inputs = [i for i in node.input if i]
            if any(i in self.computed for i in inputs):
                self.computed.update(o for o in node.output if o)
            elif all(i in self.constants for i in inputs):
                arrays = [self.constants[i] for i in inputs]
                results = run_node(self.executor, node, arrays, self.opsets)
                self.constants.update(zip(node.output, results, strict=False))
                try:
                    with np.errstate(all="ignore"):
                        grid = constant_grid(node, results[0], arrays, self.grids)
                except (ValueError, IndexError):  # parameters of other shapes: no grid is known
                    grid = None
                if grid is not None:
                    self.grids[node.output[0]] = grid

    def piece(self, target: str, known_tensors: Container[str]) -> Piece:
        """All nodes between known tensors and this one."""
        needed, sources = {target}, set()
        nodes: list[onnx.NodeProto] = []
        constant: list[onnx.NodeProto] = []
        for node in reversed(self.nodes):
            if not needed.intersection(node.output):
                continue
            (nodes if self.computed.intersection(node.output) else constant).insert(0, node)
            for name in filter(None, node.input):
                if name in known_tensors:
                    sources.add(name)
                else:
                    needed.add(name)
        return Piece(nodes, constant, sorted(sources), target)

    def walk(self, piece: Piece, trace: Mapping[str, Array]) -> dict[str, Array]:
        """All tensors of the piece: from a trace, else computed by the nodes. Raises Unable if both exist and
        differ."""
        values = {name: trace[name] for name in piece.sources}
        for node in piece.nodes:
            outputs = [o for o in node.output if o]
            if all(o in trace for o in outputs) and not self.is_part(node):
                values.update((o, trace[o]) for o in outputs)
                continue
            results = run_node(self.executor, node, self.arrays(node, values), self.opsets)
            values.update(zip(outputs, results, strict=False))
            for output in outputs:
                if output in trace and not all_equal(trace[output], values[output]):
                    raise Unable(f"{node.name} in {self.executor} differs from its parts run one by one")
        return values

    def is_part(self, node: onnx.NodeProto) -> bool:
        """True if a node is a part of a node that the runtime has fused."""
        return bool(self.parts.intersection(node.output))

    def arrays(self, node: onnx.NodeProto, values: Mapping[str, Array]) -> list[Array]:
        """The inputs of a node, without the missing ones. Raises Unable."""
        names = [i for i in node.input if i]
        missing = next((i for i in names if i not in values and i not in self.constants), None)
        if missing is not None:
            raise Unable(f"{node.op_type}: its input {missing} is not known")
        return [values[i] if i in values else self.constants[i] for i in names]
