"""Import of a graph in three steps: scan (`import_scan`), then expand and convert node by node.

The nodes of an expansion (`import_expand`) are converted (`import_convert`) like nodes of the graph.
"""

from __future__ import annotations

from dataclasses import replace

import onnx

from hlsgen.diagnostics import Collector, fail
from hlsgen.frontend import multiple_ports
from hlsgen.frontend.arithmetic_quantizers import with_quantizers
from hlsgen.frontend.constant_folding import Const, Dynamic, Tensor, attributes, check_schema, label
from hlsgen.frontend.control_flow import check_copies, is_expanded
from hlsgen.frontend.declarations import versions_of
from hlsgen.frontend.dialect_float8 import check_float8_inputs
from hlsgen.frontend.domains import ONNX
from hlsgen.frontend.expansion import Expansion
from hlsgen.frontend.graph_inputs import declared_type, input_dtype, input_shape
from hlsgen.frontend.im2col import with_convolutions
from hlsgen.frontend.import_convert import NodeConverter
from hlsgen.frontend.import_expand import expand
from hlsgen.frontend.import_options import ImportOptions
from hlsgen.frontend.import_scan import GraphEnds, Usage, prepare, scan
from hlsgen.frontend.initializers import UNKNOWN, read_initializers
from hlsgen.frontend.moved_codes import move_codes
from hlsgen.frontend.node_context import NodeContext
from hlsgen.frontend.onnx_graph import captured, used_inputs, with_outputs
from hlsgen.frontend.operator_rule import Role
from hlsgen.frontend.ops_interpolate import RESIZE, is_interpolated
from hlsgen.frontend.rules import rule_of
from hlsgen.frontend.softmax_in_hardware import move_softmax_to_hardware
from hlsgen.frontend.step_builder import StepBuilder
from hlsgen.ir import Model, ModelInput, ModelOutput, Shape
from hlsgen.numerics.fixed import IntType


class GraphImporter:
    """One pass over the nodes of a graph in order.

    graph    the graph, rewritten for the import
    tensors  all tensors so far by name
    builder  steps of the Model so far
    usage    uses of the graph's tensors
    roles    (node, role, operator) of every node with computed inputs, in order
    """

    def __init__(self, proto: onnx.ModelProto, name: str, problems: Collector, options: ImportOptions) -> None:
        self.graph, self.name, self.problems, self.options = proto.graph, name, problems, options
        self._versions = versions_of(proto)
        self._opset = max(1, min(self._versions[""], onnx.defs.onnx_opset_version()))
        quantizers = prepare(self.graph, self._opset, options.runtime)
        self.tensors: dict[str, Tensor] = read_initializers(self.graph, problems)
        self.builder, self.usage = StepBuilder(), Usage()
        self._converter = NodeConverter(self.tensors, self.builder, self.usage, quantizers, problems)
        self.roles: list[tuple[str, Role, str]] = []
        self._copies = 0

    def run(self) -> Model | None:
        """The Model, or None if an error was added to `problems`."""
        ends: GraphEnds | None = None
        with self.problems.catching():
            ends = scan(self.graph, self.name, self.tensors, self._opset, self.options, self.usage, self.problems)
        if ends is None:
            self._check_nodes()
            return None
        inputs = self._add_inputs(ends.inputs)
        if ends.pair:
            source = self.tensors[inputs[0].name]
            assert isinstance(source, Dynamic)
            index = self.builder.add(ends.pair.name, ends.pair.op, inputs[0].shape, (0,))
            self.tensors[ends.pair.output] = Dynamic(source.shape, ends.pair.dtype, index)
        for node in ends.nodes:
            self._copies = 0
            with self.problems.catching():
                self._import_node(node)
        results = [self._result(name) for name in ends.outputs]
        if any(result is None or result.index is None for result in results):
            return None
        return self._model(ends, inputs, [result for result in results if result is not None])

    def _model(self, ends: GraphEnds, inputs: tuple[ModelInput, ...], results: list[Dynamic]) -> Model:
        """The Model from the imported steps, after rewrites of the steps."""
        outputs, last = self._add_outputs(ends.outputs, results)
        steps = move_codes(self.builder.steps, self.builder.code_types, last.index or 0)
        steps = with_convolutions(move_softmax_to_hardware(with_quantizers(steps)))
        steps, inputs = multiple_ports.without_unused_inputs(steps, inputs)
        combined = multiple_ports.combined_input(inputs)
        source = combined or inputs[0]
        return Model(
            self.name,
            source.name,
            source.shape,
            source.dtype,
            all(part.batched for part in inputs),
            (IntType(0, 65535), 0) if ends.pair else None if combined else source.type,
            steps,
            ", ".join(ends.outputs),
            last.dtype,
            ends.pair.inputs[1] if ends.pair else None,
            inputs if combined else (),
            outputs,
            self.options.runtime,
        )

    # ----------------------------------------------------------------------- the ends of the graph

    def _add_inputs(self, sources: list[onnx.ValueInfoProto]) -> tuple[ModelInput, ...]:
        """Add the tensors of the inputs; if there are several, each is a step."""
        inputs: list[ModelInput] = []
        for source in sources:
            shape: Shape = (1,)
            known_shape: Shape | None = None
            batched, dtype = False, "float32"
            with self.problems.catching():
                shape, batched = input_shape(source)
                known_shape = shape
            with self.problems.catching():
                dtype = input_dtype(source)
            self.tensors[source.name] = Dynamic(known_shape, dtype, 0)
            inputs.append(ModelInput(source.name, shape, dtype, batched, declared_type(self.graph, source)))
        if len(inputs) > 1:
            for source, step in zip(sources, multiple_ports.split_steps(inputs, self._node_names()), strict=True):
                index = self.builder.add(step.name, step.op, step.shape, (0,))
                tensor = self.tensors[source.name]
                assert isinstance(tensor, Dynamic)
                self.tensors[source.name] = replace(tensor, index=index)
        return tuple(inputs)

    def _add_outputs(self, names: list[str], results: list[Dynamic]) -> tuple[tuple[ModelOutput, ...], Dynamic]:
        """(the outputs if there are several, the value that all steps lead to)."""
        if len(results) == 1:
            return (), results[0]
        outputs = tuple(ModelOutput(n, r.shape or (), r.dtype) for n, r in zip(names, results, strict=True))
        step = multiple_ports.assemble_step(outputs, self._node_names())
        index = self.builder.add(step.name, step.op, step.shape, tuple(r.index or 0 for r in results))
        return outputs, Dynamic(step.shape, "float64", index)

    def _node_names(self) -> set[str]:
        return {node.name for node in self.graph.node}

    def _result(self, output: str) -> Dynamic | None:
        """The tensor of a graph's output, or None if there is an error."""
        result = self.tensors.get(output)
        if result is None:
            text = "no node computes this output of the graph."
            self.problems.error("HG015", output, text, "Export the model again.")
        elif isinstance(result, Const):
            text = "this output of the graph does not depend on its input."
            self.problems.error("HG015", output, text, "Remove the output from the graph: there is nothing to build.")
        with self.problems.catching():
            check_float8_inputs(output, "the graph's output", [result] if isinstance(result, Dynamic) else [])
        return result if isinstance(result, Dynamic) and not self.problems.errors else None

    def _check_nodes(self) -> None:
        """Report further errors of a graph with wrong inputs or outputs: every node is checked, none becomes a step."""
        for source in used_inputs(self.graph, self.tensors):
            if source.name:
                self.tensors[source.name] = UNKNOWN
                with self.problems.catching():
                    dtype = input_dtype(source)
                    self.tensors[source.name] = Dynamic(input_shape(source)[0], dtype, None)
        self.usage.add_all(self.graph)
        for node in self.graph.node:
            self._copies = 0
            with self.problems.catching():
                self._import_node(node)

    # ----------------------------------------------------------------------- one node

    def _import_node(self, proto: onnx.NodeProto) -> None:
        """Add the tensors of the node's outputs, and its steps if it has a computed input."""
        name = label(proto)
        for i, output in enumerate(proto.output):
            if output and (output in self.tensors or output in proto.output[:i]):
                raise fail("HG015", name, f"tensor {output!r} is computed twice.", "Names must be unique.")
        missing = [i for i in (*proto.input, *captured(proto)) if i and i not in self.tensors]
        self._assume(proto, UNKNOWN)
        if missing:
            text = f"input {missing[0]!r} is not computed by any node before it."
            raise fail("HG014", name, text, "Nodes must be in the order of computation, without cycles.")
        if is_expanded(proto) or self._is_interpolated(proto, name):
            self._expand(proto, name)
            return
        rule = rule_of(proto.domain, proto.op_type, name)
        inputs = tuple(self.tensors[i] if i else None for i in proto.input)
        computed = [t for t in inputs if isinstance(t, Dynamic)]
        if computed:
            self._assume(proto, computed[0] if rule.keeps_type else UNKNOWN)
            self.roles.append((name, rule.role, proto.op_type))
        node = self._context(proto, name, inputs)
        check_float8_inputs(name, proto.op_type, computed)
        if proto.domain in ONNX:
            check_schema(proto, self._opset)
        self._converter.convert(node, rule)

    def _is_interpolated(self, proto: onnx.NodeProto, name: str) -> bool:
        """True for a linear Resize between quantizers; the host computes others."""
        data = self.tensors.get(proto.input[0]) if proto.op_type == RESIZE and proto.input else None
        if not isinstance(data, Dynamic) or data.shape is None or data.dtype != "float32":
            return False
        after_hardware = proto.input[0] in self.usage.branching or self.builder.is_after_hardware(data)
        followed = not self.usage.followed.isdisjoint(proto.output)
        return after_hardware and followed and is_interpolated(Expansion(proto, name, self.tensors, self._opset))

    def _expand(self, proto: onnx.NodeProto, name: str) -> None:
        """Import the nodes that replace `proto`, up to the first error."""
        operands = (self.tensors[i] for i in (*proto.input, *captured(proto)) if i)
        if any(isinstance(tensor, Dynamic) and tensor.shape is None for tensor in operands):
            return
        for output in proto.output:
            self.tensors.pop(output, None)
        errors_before = len(self.problems.errors)
        with self.problems.catching():
            nodes = expand(proto, name, self.tensors, self.usage, self._opset, self.options.once, self.problems)
            for node in nodes:
                self._copies += 1
                check_copies(name, self._copies)
                with self.problems.catching():
                    self._import_node(node)
        if len(self.problems.errors) > errors_before:
            self._assume(proto, UNKNOWN)

    def _assume(self, proto: onnx.NodeProto, like: Dynamic) -> None:
        """Set the tensors of a node's outputs for the case that the node has an error: shape and type of `like`."""
        for output in filter(None, proto.output):
            self.tensors[output] = Dynamic(like.shape, like.dtype, None)

    def _context(self, proto: onnx.NodeProto, name: str, inputs: tuple[Tensor | None, ...]) -> NodeContext:
        outputs = tuple(o if o in self.usage.used else "" for o in proto.output)
        return NodeContext(
            proto=with_outputs(proto, outputs),
            name=name,
            attrs=attributes(proto),
            inputs=inputs,
            outputs=outputs,
            opset=self._opset,
            version=self._versions.get(proto.domain, 1) if proto.domain else 1,
            fixed_point=self.options.fixed_point,
            last=self.usage.followed.isdisjoint(proto.output),
        )
