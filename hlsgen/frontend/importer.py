"""One pass over the nodes of a graph: steps between its input and its output."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import onnx

from hlsgen.diagnostics import Collector, HlsgenError, fail
from hlsgen.frontend import several_ends, two_inputs
from hlsgen.frontend.cast_like import as_casts
from hlsgen.frontend.constant_folding import Const, Dynamic, Tensor, attributes, check_schema, check_size, label
from hlsgen.frontend.control_flow import expanded, is_expanded
from hlsgen.frontend.declarations import versions_of
from hlsgen.frontend.dialect_float8 import check_taken
from hlsgen.frontend.domains import ONNX
from hlsgen.frontend.expansion import Part
from hlsgen.frontend.graph_inputs import declared_type, input_dtype, input_shape
from hlsgen.frontend.host_prefix import before_quantizers, integers_until_hardware, pools_of_codes
from hlsgen.frontend.im2col import with_convolutions
from hlsgen.frontend.initializers import UNKNOWN, read_initializers
from hlsgen.frontend.integer_weights import integer_weights
from hlsgen.frontend.many_operands import in_pairs
from hlsgen.frontend.moved_codes import move_codes
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps
from hlsgen.frontend.norm_patterns import put_together
from hlsgen.frontend.onnx_graph import captured, computed_outputs, name_all, of_used, used_inputs, with_outputs
from hlsgen.frontend.onnxruntime_groups import fuse_groups
from hlsgen.frontend.op_results import result_dtype, starts_hardware
from hlsgen.frontend.operator_rule import JOINS, Dtypes, Operands, Role, Rule, check_operands
from hlsgen.frontend.ops_host import on_host
from hlsgen.frontend.rules import is_hardware, rule_of
from hlsgen.frontend.softmax_in_hardware import in_hardware
from hlsgen.frontend.whole_clips import quantized_clips
from hlsgen.frontend.written_quantizers import with_quantizers
from hlsgen.ir import (
    BatchMatMulInteger,
    ConvInteger,
    MatMulInteger,
    Model,
    ModelInput,
    ModelOutput,
    Op,
    Reshape,
    Shape,
    Step,
    Transpose,
)
from hlsgen.ir.ops import Dequantize, QuantizeLinear
from hlsgen.numerics.fixed import IntType

#: Most elements of all computed constants together.
MAX_FOLDED = 1 << 27
#: Most elements of all tensors of the network together, of every step one.
MAX_TOGETHER = 1 << 29
#: Layers whose input 1 is weights that may be floats have these.
_FLOAT_WEIGHTS = (Operands.EITHER, Operands.LAYER)


class Importer:
    """One pass over the nodes in order, with what is known of every tensor.

    tensors  by name: every one that was met so far
    branching  names of tensors that several nodes take, where what the host does is straight, or that hardware has
    steps    those of the Model so far
    quantizers  of nodes that stand for a group: the name of the QuantizeLinear at its end
    code_types  of steps that dequantize, by index: the type of the codes
    roles    (node, role, operator) of every node of computed inputs, in order
    followed names of tensors behind which there is a quantizer or a layer
    once     whether loops keep one body where all steps can share it
    pairs    whether two inputs that one operation joins come side by side
    runtime  the program whose integers the Model has
    """

    def __init__(
        self, proto: onnx.ModelProto, name: str, problems: Collector, fixed_point: bool, typed: Mapping[str, bool],
        runtime: str,
    ) -> None:  # fmt: skip
        self.graph, self.name, self.problems, self.fixed_point = proto.graph, name, problems, fixed_point
        self.typed = typed
        name_all(self.graph)
        as_casts(self.graph)
        self.versions = versions_of(proto)
        newest = onnx.defs.onnx_opset_version()
        self.opset = max(1, min(self.versions[""], newest))
        self.quantizers = fuse_groups(self.graph, self.opset, runtime)
        in_pairs(self.graph)
        put_together(self.graph)
        self.folded, self.elements, self.once, self.pairs, self.runtime = 0, 0, False, True, runtime
        self.used: set[str] = set()
        self.followed: set[str] = set()
        self.branching: set[str] = set()
        self.tensors: dict[str, Tensor] = {}
        self.steps: list[Step] = []
        self.code_types: dict[int, str] = {}
        self.roles: list[tuple[str, Role, str]] = []

    def run(self) -> Model | None:
        """The Model; None if an error went to `problems`."""
        self.tensors = read_initializers(self.graph, self.problems)
        try:
            sources, outputs, joined = self._ends()
        except HlsgenError as error:
            with self.problems.catching():
                raise error
            self._survey()
            return None
        inputs = self._add_inputs(sources)
        needed = self._needed(outputs)
        nodes, ends = [node for i, node in enumerate(self.graph.node) if i in needed], [one.name for one in sources]
        self.branching -= before_quantizers(nodes, ends, self.tensors.keys() - set(ends), self.typed)
        integers = integers_until_hardware(nodes, ends, self.typed)  # hardware has them from the start
        integers |= pools_of_codes(nodes, {one.name: one.type.tensor_type.elem_type for one in sources})
        self.branching, self.followed = self.branching | integers, self.followed | integers
        if joined:
            self._add_step(joined.name, joined.op, inputs[0].shape, (0,))
            known = self.tensors[inputs[0].name]
            assert isinstance(known, Dynamic)
            self.tensors[joined.output] = Dynamic(known.shape, joined.dtype, 1)
        for i, node in enumerate(self.graph.node):
            if i in needed and not (joined and i in joined.nodes):
                with self.problems.catching():
                    self._node(node)
        results = [self._result(name) for name in outputs]
        if any(result is None or result.index is None for result in results):
            return None
        found, last = self._add_outputs(outputs, [r for r in results if r is not None])
        moved = with_quantizers(move_codes(self.steps, self.code_types, last.index or 0))
        steps, inputs = several_ends.kept(with_convolutions(in_hardware(moved)), inputs)
        first, several = inputs[0], several_ends.described(inputs)
        return Model(
            self.name,
            several.name if several else first.name,
            several.shape if several else first.shape,
            several.dtype if several else first.dtype,
            all(one.batched for one in inputs),
            (IntType(0, 65535), 0) if joined else None if several else first.type,
            steps,
            ", ".join(outputs),
            last.dtype,
            joined.inputs[1] if joined else None,
            inputs if several else (),
            found,
            self.runtime,
        )

    def _add_inputs(self, sources: list[onnx.ValueInfoProto]) -> tuple[ModelInput, ...]:
        """What is known of the inputs; of several each becomes a step."""
        found: list[ModelInput] = []
        for source in sources:
            shape: Shape = (1,)
            known: Shape | None = None
            batched, dtype = False, "float32"
            with self.problems.catching():
                shape, batched = input_shape(source)
                known = shape
            with self.problems.catching():
                dtype = input_dtype(source)
            self.tensors[source.name] = Dynamic(known, dtype, 0)
            found.append(ModelInput(source.name, shape, dtype, batched, declared_type(self.graph, source)))
        if len(found) > 1:
            for name, step in zip((one.name for one in found), several_ends.parts(found, self._names()), strict=True):
                self._add_step(step.name, step.op, step.shape, (0,))
                before = self.tensors[name]
                assert isinstance(before, Dynamic)
                self.tensors[name] = replace(before, index=len(self.steps))
        return tuple(found)

    def _add_outputs(self, names: list[str], results: list[Dynamic]) -> tuple[tuple[ModelOutput, ...], Dynamic]:
        """The outputs if there are several, and the value that all steps lead to."""
        if len(results) == 1:
            return (), results[0]
        found = tuple(ModelOutput(n, r.shape or (), r.dtype) for n, r in zip(names, results, strict=True))
        step = several_ends.joined(found, self._names())
        self._add_step(step.name, step.op, step.shape, tuple(r.index or 0 for r in results))
        return found, Dynamic(step.shape, "float64", len(self.steps))

    def _names(self) -> set[str]:
        return {node.name for node in self.graph.node}

    # ----------------------------------------------------------------------- the ends of the graph

    def _survey(self) -> None:
        """Looks for what else is wrong in a graph whose ends are: every node is read, none becomes a step."""
        for source in used_inputs(self.graph, self.tensors):
            if source.name:
                self.tensors[source.name] = UNKNOWN
                with self.problems.catching():
                    dtype = input_dtype(source)
                    self.tensors[source.name] = Dynamic(input_shape(source)[0], dtype, None)
        self.used = {name for node in self.graph.node for name in (*node.input, *captured(node))}
        self.used |= {o.name for o in self.graph.output}
        for node in self.graph.node:
            with self.problems.catching():
                self._node(node)

    def _ends(self) -> tuple[list[onnx.ValueInfoProto], list[str], two_inputs.InputPair | None]:
        """(inputs, names of the outputs, the operation that joins two inputs). Raises HG015.

        Inputs on which no output depends are left out. Where two are joined, the first of them stands for both.
        """
        inputs = used_inputs(self.graph, self.tensors)
        outputs = [o.name for o in computed_outputs(self.graph, [i.name for i in inputs], self.problems)]
        if not inputs or not outputs or not all([*outputs, *(i.name for i in inputs)]):
            raise fail("HG015", self.name, "an input or output is missing, or has no name.", "Export the model again.")
        self._needed(outputs)
        known = [i for i in inputs if i.name in self.used]
        if known and len(known) < len(inputs):
            left = ", ".join(i.name for i in inputs if i.name not in self.used)
            self.problems.warn(
                "HG090", self.name, f"inputs on which no output depends ({left}) are left out.",
                "Remove them from the graph.",
            )  # fmt: skip
            inputs = known
        if self.pairs and len(inputs) == 2 and len(outputs) == 1:
            try:
                joined = two_inputs.of_graph(self.graph, inputs, self.tensors, self.opset, self.fixed_point)
            except HlsgenError:  # no quick way: an input each
                return inputs, outputs, None
            return [i for i in inputs if i.name == joined.inputs[0]], outputs, joined
        return inputs, outputs, None

    def _needed(self, outputs: list[str]) -> set[int]:
        """Nodes on which the outputs depend. Nodes must stand in order, as ONNX demands."""
        needed = set()
        self.used = set(outputs)
        for i in reversed(range(len(self.graph.node))):
            node = self.graph.node[i]
            if is_hardware(node) or not self.followed.isdisjoint(node.output):
                self.followed.update(node.input)
            if self.used & set(node.output):
                needed.add(i)
                taken = set(filter(None, (*node.input, *captured(node))))
                self.branching |= taken & self.used
                self.used |= taken
        return needed

    def _result(self, output: str) -> Dynamic | None:
        """The graph's output; None if there is an error."""
        result = self.tensors.get(output)
        if result is None:
            self.problems.error("HG015", output, "no node computes the graph's output.", "Export the model again.")
        elif isinstance(result, Const):
            text = "the graph's output does not depend on its input."
            self.problems.error("HG015", output, text, "There is nothing to build.")
        with self.problems.catching():
            check_taken(output, "the graph's output", [result] if isinstance(result, Dynamic) else [])
        return result if isinstance(result, Dynamic) and not self.problems.errors else None

    # ----------------------------------------------------------------------- one node

    def _node(self, proto: onnx.NodeProto) -> None:
        """Adds what is known of the node's outputs, and its steps if it has a computed input."""
        name = label(proto)
        for i, output in enumerate(proto.output):
            if output and (output in self.tensors or output in proto.output[:i]):
                raise fail("HG015", name, f"tensor {output!r} is computed twice.", "Names must be unique.")
        missing = [i for i in (*proto.input, *captured(proto)) if i and i not in self.tensors]
        self._assume(proto, UNKNOWN)
        if missing:
            raise fail(
                "HG014", name, f"input {missing[0]!r} is not computed by any node before it.",
                "Nodes must stand in the order of computation, without cycles.",
            )  # fmt: skip
        if is_expanded(proto):
            self._expand(proto, name)
            return
        rule = rule_of(proto.domain, proto.op_type, name)
        inputs = tuple(self.tensors[i] if i else None for i in proto.input)
        computed = [t for t in inputs if isinstance(t, Dynamic)]
        if computed:
            self._assume(proto, computed[0] if rule.alike else UNKNOWN)
            self.roles.append((name, rule.role, proto.op_type))
        node = self._context(proto, name, inputs)
        check_taken(name, proto.op_type, computed)
        if proto.domain in ONNX:
            check_schema(proto, self.opset)
        if not computed:
            self._set_constants(node, rule.fold(node))
        elif any(t.shape is None for t in computed):
            # Behind an operator that is not supported: only the parameters can be checked.
            if rule.operands is Operands.PARAMETERS and node.constant(0) is None:
                shape = max((c.array.shape for c in node.constants if c), key=len, default=())
                rule.convert(node.with_data(shape))
            weights = node.constant(1)
            if rule.role is Role.LAYER and rule.operands in _FLOAT_WEIGHTS and weights and weights.codes is None:
                integer_weights(name, Const(weights.array.reshape(1, -1)))
        elif len(computed) > 1:
            self._add(node, self._joined(node, rule))
        else:
            self._add(node, self._converted(node, rule))

    def _expand(self, proto: onnx.NodeProto, name: str) -> None:
        """Adds what nodes that stand for many become, until one of them is wrong."""
        taken = (self.tensors[i] for i in (*proto.input, *captured(proto)) if i)
        if any(isinstance(tensor, Dynamic) and tensor.shape is None for tensor in taken):
            return
        for output in proto.output:
            self.tensors.pop(output, None)
        self.branching |= set(proto.input)
        before = len(self.problems.errors)
        with self.problems.catching():
            for part in expanded(of_used(proto, self.used), name, self.tensors, self.opset, self.once):
                self._import_part(part)
                if len(self.problems.errors) > before:
                    break
        if len(self.problems.errors) > before:
            self._assume(proto, UNKNOWN)

    def _import_part(self, part: Part) -> None:
        self.tensors.update(part.constants)
        self.used.update(part.results, *((*node.input, *captured(node)) for node in part.nodes))
        self.followed.update(part.results)
        for node in reversed(part.nodes):
            if is_hardware(node) or not self.followed.isdisjoint(node.output):
                self.followed.update(node.input)
        for node in part.nodes:
            if self.used.intersection(node.output):
                with self.problems.catching():
                    self._node(node)

    def _assume(self, proto: onnx.NodeProto, like: Dynamic) -> None:
        """What is taken for the outputs of a node if it turns out to be wrong."""
        for output in filter(None, proto.output):
            self.tensors[output] = Dynamic(like.shape, like.dtype, None)

    def _context(self, proto: onnx.NodeProto, name: str, inputs: tuple[Tensor | None, ...]) -> NodeContext:
        outputs = tuple(o if o in self.used else "" for o in proto.output)
        version = self.versions.get(proto.domain, 1) if proto.domain else 1
        return NodeContext(
            proto=with_outputs(proto, outputs),
            name=name,
            attrs=attributes(proto),
            inputs=inputs,
            outputs=outputs,
            opset=self.opset,
            version=version,
            fixed_point=self.fixed_point,
            last=self.followed.isdisjoint(proto.output),
        )

    def _joined(self, node: NodeContext, rule: Rule) -> Imported:
        """What becomes of several computed inputs."""
        if rule.operands is Operands.PARAMETERS:
            rule.convert(node.with_data(node.shape))
        if rule.join is None:
            raise fail("HG015", node.name, f"{node.op_type} of {len(node.computed)} computed tensors.", JOINS)
        return rule.join(node)

    def _converted(self, node: NodeContext, rule: Rule) -> Imported:
        """What becomes of one computed input."""
        if rule.dtypes is Dtypes.FLOATS and not node.dtype.startswith("float"):
            text = f"{node.op_type} of {node.dtype} data."
            raise fail("HG026", node.name, text, "Cast it to float32 first (operator Cast).")
        check_operands(node, rule.operands)
        first = node.proto.input[node.position]
        if rule.host_first and first not in self.branching and not self._behind_hardware(node.computed[0]):
            return on_host(node)
        try:
            return rule.convert(node)
        except HlsgenError as error:
            weights = node.constant(1)
            if weights is None or [d.code for d in error.diagnostics] != ["HG031"]:
                raise
            # What follows is looked at as well: the result has the shape that it has with other weights.
            self.problems.items.extend(error.diagnostics)
            return rule.convert(
                replace(node, inputs=(node.inputs[0], Const(np.zeros_like(weights.array)), *node.inputs[2:]))
            )

    def _behind_hardware(self, data: Dynamic) -> bool:
        """Whether a quantizer or an integer layer comes before; what comes earlier is left to the host."""
        if not data.dtype.startswith("float"):
            return True
        wanted = {data.index}
        for i in reversed(range(len(self.steps))):
            if i + 1 in wanted:
                if starts_hardware(self.steps[i].op):
                    return True
                wanted.update(self.steps[i].inputs)
        return False

    # ----------------------------------------------------------------------- what becomes of it

    def _add(self, node: NodeContext, imported: Imported) -> None:
        """Adds the steps of a node."""
        if imported.constant is not None:
            self._set_constants(node, [imported.constant])
            return
        if len(imported.outputs) == 1 and len(node.used) != 1:
            raise fail("HG010", node.name, f"{len(node.used)} outputs of {node.op_type} are used.", "Supported: one.")
        data = self._join(node, imported) if imported.join else node.computed[0]
        names = [o for o in node.outputs if o] if len(imported.outputs) == 1 else node.outputs
        dtypes = imported.dtypes or (imported.dtype,) * len(names)
        for output, ops, dtype in zip(names, imported.outputs, dtypes, strict=True):
            if output:
                if data.index is not None:
                    ops = quantized_clips(self.steps, data.index, data.dtype, ops)
                self._add_output(node, output, data, ops, dtype)
        if imported.then:
            again = replace(node, inputs=(self.tensors[names[0]],))
            self._add(again, replace(imported.then[0](again), then=imported.then[1:]))

    def _join(self, node: NodeContext, imported: Imported) -> Dynamic:
        """Adds the steps up to the operation that takes all computed inputs; its result."""
        assert imported.join is not None
        op, shape = imported.join
        check_size(node.name, shape)
        last = imported.before[-1]
        dtype = result_dtype([*(before for before, _ in last), op], node.computed[-1].dtype)
        if any(t.index is None for t in node.computed):
            return Dynamic(shape, dtype, None)
        taken = node.computed * (len(imported.before) // len(node.computed))
        ends = [self._append(node.name, t, ops) for t, ops in zip(taken, imported.before, strict=True)]
        self._add_step(node.name, op, shape, tuple(ends[::-1] if imported.swapped else ends))
        return Dynamic(shape, dtype, len(self.steps))

    def _add_output(
        self, node: NodeContext, output: str, data: Dynamic, ops: ShapedOps, dtype: str | None
    ) -> None:  # fmt: skip
        """Adds the steps of one output."""
        for _, shape in ops:
            check_size(node.name, shape)
        assert data.shape is not None
        shape = ops[-1][1] if ops else data.shape
        dtype = dtype or result_dtype([op for op, _ in ops], data.dtype)
        index = None if data.index is None else self._append(node.name, data, ops, self.quantizers.get(node.name))
        self.tensors[output] = Dynamic(shape, dtype, index)

    def _append(self, name: str, data: Dynamic, ops: ShapedOps, last: str | None = None) -> int:
        """Adds steps that follow a tensor; returns the number of the value that they compute.

        What rescales the sums of an integer layer gets a name of its own; `last`: that of the last step that computes.
        """
        assert data.index is not None
        index = data.index
        linear = any(isinstance(op, MatMulInteger | ConvInteger) for op, _ in ops)
        linear |= bool(index) and isinstance(self.steps[index - 1].op, BatchMatMulInteger)
        if ops and isinstance(ops[0][0], Dequantize):
            self.code_types[len(self.steps)] = data.dtype
        end = max((n for n, (op, _) in enumerate(ops) if not isinstance(op, Reshape | Transpose)), default=-1)
        for number, (op, shape) in enumerate(ops):
            own = f"{name} (rescaled)" if linear and isinstance(op, QuantizeLinear) else name
            self._add_step(last if last and number == end else own, op, shape, (index,))
            index = len(self.steps)
        return index

    def _add_step(self, name: str, op: Op, shape: Shape, inputs: tuple[int, ...]) -> None:
        """Raises HG004 if all tensors together become too large."""
        self.elements += math.prod(shape)
        if self.elements > MAX_TOGETHER:
            raise fail("HG004", name, f"tensors of more than {MAX_TOGETHER} elements together.")
        self.steps.append(Step(name, op, shape, inputs))

    def _set_constants(self, node: NodeContext, values: list[Const]) -> None:
        for output, value in zip([o for o in node.proto.output if o], values, strict=False):
            self.folded += value.array.size
            if self.folded > MAX_FOLDED:
                raise fail("HG004", node.name, f"constants of more than {MAX_FOLDED} computed elements together.")
            self.tensors[output] = value
