"""First step of an import: rewrites of the graph, its inputs and outputs, and the uses of its tensors."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import onnx

from hlsgen.diagnostics import Collector, HlsgenError, fail
from hlsgen.frontend import two_inputs
from hlsgen.frontend.cast_like import as_casts
from hlsgen.frontend.constant_folding import Tensor
from hlsgen.frontend.expansion import Part
from hlsgen.frontend.host_prefix import before_quantizers, integers_until_hardware, pools_of_codes
from hlsgen.frontend.import_options import ImportOptions
from hlsgen.frontend.many_operands import split_operands
from hlsgen.frontend.norm_patterns import fuse_normalizations
from hlsgen.frontend.onnx_graph import captured, computed_outputs, name_all, used_inputs
from hlsgen.frontend.onnxruntime_groups import fuse_groups
from hlsgen.frontend.rules import is_hardware


def prepare(graph: onnx.GraphProto, opset: int, runtime: str) -> dict[str, str]:
    """Rewrite a graph in place for the import; returns the quantizer's name by name of a fused node."""
    name_all(graph)
    as_casts(graph)
    quantizers = fuse_groups(graph, opset, runtime)
    split_operands(graph)
    fuse_normalizations(graph)
    return quantizers


@dataclass
class Usage:
    """Uses of the tensors of a graph, extended when a node is expanded.

    used       tensors that the outputs depend on
    followed   tensors before a quantizer or a layer
    branching  tensors that the host does not compute: they have several consumers, or belong to hardware
    """

    used: set[str] = field(default_factory=set)
    followed: set[str] = field(default_factory=set)
    branching: set[str] = field(default_factory=set)

    def add_graph(self, graph: onnx.GraphProto, outputs: list[str]) -> list[int]:
        """Add the uses in a graph; returns the indices of the nodes that the outputs depend on, in order.

        The nodes must be in the order of computation, as in ONNX.
        """
        needed = []
        self.used = set(outputs)
        for i, node in reversed(list(enumerate(graph.node))):
            self._follow(node)
            if self.used & set(node.output):
                needed.append(i)
                operands = set(filter(None, (*node.input, *captured(node))))
                self.branching |= operands & self.used
                self.used |= operands
        return needed[::-1]

    def add_all(self, graph: onnx.GraphProto) -> None:
        """Count all inputs of nodes and all outputs of a graph as used."""
        self.used = {name for node in graph.node for name in (*node.input, *captured(node))}
        self.used |= {o.name for o in graph.output}

    def add_part(self, part: Part) -> None:
        """Add the uses in a part of an expanded node."""
        self.used.update(part.results, *((*node.input, *captured(node)) for node in part.nodes))
        self.followed.update(part.results)
        for node in reversed(part.nodes):
            self._follow(node)

    def assign(
        self,
        nodes: list[onnx.NodeProto],
        inputs: list[onnx.ValueInfoProto],
        constants: Collection[str],
        typed: Mapping[str, bool],
    ) -> None:
        """Assign the tensors before the first quantizers and layers to the host or to hardware."""
        names = [source.name for source in inputs]
        self.branching -= before_quantizers(nodes, names, set(constants) - set(names), typed)
        hardware = integers_until_hardware(nodes, names, typed)
        hardware |= pools_of_codes(nodes, {source.name: source.type.tensor_type.elem_type for source in inputs})
        self.branching |= hardware
        self.followed |= hardware

    def _follow(self, node: onnx.NodeProto) -> None:
        if is_hardware(node) or not self.followed.isdisjoint(node.output):
            self.followed.update(node.input)


@dataclass(frozen=True)
class GraphEnds:
    """Inputs and outputs of a graph.

    inputs   the inputs that outputs depend on; only the first one of a pair
    outputs  names of the outputs
    pair     the operation on two inputs that are passed side by side, or None
    nodes    the nodes that the outputs depend on, without the nodes of the pair
    """

    inputs: list[onnx.ValueInfoProto]
    outputs: list[str]
    pair: two_inputs.InputPair | None
    nodes: list[onnx.NodeProto]


def scan(
    graph: onnx.GraphProto,
    name: str,
    tensors: Mapping[str, Tensor],
    opset: int,
    options: ImportOptions,
    usage: Usage,
    problems: Collector,
) -> GraphEnds:
    """The ends of a graph with initializers `tensors`; adds its uses to `usage`. Raises HG015."""
    inputs = used_inputs(graph, tensors)
    outputs = [o.name for o in computed_outputs(graph, [i.name for i in inputs], problems)]
    if not inputs or not outputs or not all([*outputs, *(i.name for i in inputs)]):
        text = "an input or output of the graph is missing, or has no name."
        raise fail("HG015", name, text, "Export the model again.")
    needed = usage.add_graph(graph, outputs)
    used = [i for i in inputs if i.name in usage.used]
    if used and len(used) < len(inputs):
        unused = ", ".join(i.name for i in inputs if i.name not in usage.used)
        text = f"inputs that no output depends on are omitted: {unused}."
        problems.warn("HG090", name, text, "Remove them from the graph.")
        inputs = used
    pair = None
    if options.pairs and len(inputs) == 2 and len(outputs) == 1:
        try:
            pair = two_inputs.of_graph(graph, inputs, tensors, opset, options.fixed_point)
        except HlsgenError:  # the inputs are not passed as a pair
            pair = None
    if pair is not None:
        inputs = [i for i in inputs if i.name == pair.inputs[0]]
    usage.assign([graph.node[i] for i in needed], inputs, tensors.keys(), options.typed)
    of_pair = pair.nodes if pair is not None else frozenset()
    return GraphEnds(inputs, outputs, pair, [graph.node[i] for i in needed if i not in of_pair])
