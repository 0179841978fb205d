"""A file cut behind its quantizers, and its pieces run in an executor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx

from hlsgen.frontend import norm_patterns
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.defined_operators import DEFINED
from hlsgen.simulation.exact_values import Grid, constant_grid
from hlsgen.simulation.oracles import Unable, by_session, constant_of, run_node


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
    quantizer made. `computed`: names of tensors that depend on an input. `makers`: the node of each tensor.
    `normalizations`: those that the file has taken apart, each as one node, by the tensor that it gives.
    Raises Unable if the executor cannot evaluate a constant.
    """

    def __init__(self, proto: onnx.ModelProto, executor: str, inputs: list[str]) -> None:
        self.executor = executor
        self.opsets = {o.domain: o.version for o in proto.opset_import}
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

    def piece(self, target: str, known: Mapping[str, object]) -> Piece:
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

    def run(self, piece: Piece, feeds: Mapping[str, Array]) -> Array:
        """The piece as the executor runs it: onnxruntime with its optimizer, the others node by node. Raises Unable."""
        if self.executor != "onnxruntime" or any(node.op_type in DEFINED for node in piece.nodes):
            return self.walk(piece, feeds)[piece.target]
        used = {i for node in (*piece.nodes, *piece.constant) for i in node.input}
        tensors = {name: t for name, t in self.tensors.items() if name in used and name not in feeds}
        return by_session([*piece.constant, *piece.nodes], tensors, feeds, piece.target, self.opsets)

    def walk(self, piece: Piece, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Node by node: all tensors of the piece. Raises Unable."""
        values = dict(feeds)
        for node in piece.nodes:
            found = run_node(self.executor, node, self.arrays(node, values), self.opsets)
            values.update((o, v) for o, v in zip([o for o in node.output if o], found, strict=False))
        return values

    def arrays(self, node: onnx.NodeProto, values: Mapping[str, Array]) -> list[Array]:
        """The inputs of a node, without the missing ones. Raises Unable."""
        names = [i for i in node.input if i]
        missing = next((i for i in names if i not in values and i not in self.constants), None)
        if missing is not None:
            raise Unable(f"{node.op_type}: the tensor {missing} in front of it is not known")
        return [values[i] if i in values else self.constants[i] for i in names]
