"""Third step of an import: a node with known input tensors, converted to constants or to steps of the Model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from hlsgen.diagnostics import Collector, HlsgenError, fail
from hlsgen.frontend.constant_folding import Const, Dynamic, Tensor, check_size
from hlsgen.frontend.import_scan import Usage
from hlsgen.frontend.integer_clips import quantized_clips
from hlsgen.frontend.integer_weights import integer_weights
from hlsgen.frontend.node_context import Imported, NodeContext, ShapedOps
from hlsgen.frontend.op_results import result_dtype
from hlsgen.frontend.operator_rule import JOINS, Dtypes, Operands, Role, Rule, check_operands
from hlsgen.frontend.ops_host import on_host
from hlsgen.frontend.step_builder import StepBuilder

#: Maximum number of elements of all computed constants together.
MAX_FOLDED = 1 << 27
#: Rules of layers whose input 1 may be float weights.
_FLOAT_WEIGHTS = (Operands.EITHER, Operands.LAYER)


class NodeConverter:
    """Conversion of nodes in order.

    tensors     all tensors so far by name; results are added
    builder     the steps so far
    usage       uses of the graph's tensors
    quantizers  name of the quantizer in a fused node, by the node's name
    """

    def __init__(
        self,
        tensors: dict[str, Tensor],
        builder: StepBuilder,
        usage: Usage,
        quantizers: Mapping[str, str],
        problems: Collector,
    ) -> None:
        self.tensors, self.builder, self.usage, self.problems = tensors, builder, usage, problems
        self._quantizers, self._folded_elements = quantizers, 0

    def convert(self, node: NodeContext, rule: Rule) -> None:
        """Add the results of a node to `tensors`, and its steps if an input is computed."""
        computed = node.computed
        if not computed:
            self._set_constants(node, rule.fold(node))
        elif any(t.shape is None for t in computed):
            self._check_constants(node, rule)
        elif len(computed) > 1:
            self._add(node, self._import_several(node, rule))
        else:
            self._add(node, self._import_single(node, rule))

    def _check_constants(self, node: NodeContext, rule: Rule) -> None:
        """Check the constants of a node after an unsupported operator, whose data has no known shape."""
        if rule.operands is Operands.PARAMETERS and node.constant(0) is None:
            shape = max((c.array.shape for c in node.constants if c), key=len, default=())
            rule.convert(node.with_data(shape))
        weights = node.constant(1)
        if rule.role is Role.LAYER and rule.operands in _FLOAT_WEIGHTS and weights and weights.codes is None:
            integer_weights(node.name, Const(weights.array.reshape(1, -1)))

    def _import_several(self, node: NodeContext, rule: Rule) -> Imported:
        """The operations of a node with several computed inputs. Raises HG015 if the operator does not support them."""
        if rule.operands is Operands.PARAMETERS:
            rule.convert(node.with_data(node.shape))
        if rule.join is None:
            text = f"{node.op_type} of {len(node.computed)} computed tensors is not supported."
            raise fail("HG015", node.name, text, JOINS)
        return rule.join(node)

    def _import_single(self, node: NodeContext, rule: Rule) -> Imported:
        """The operations of a node with one computed input."""
        if rule.dtypes is Dtypes.FLOATS and not node.dtype.startswith("float"):
            text = f"{node.op_type} of {node.dtype} data."
            raise fail("HG026", node.name, text, "Cast it to float32 first (operator Cast).")
        check_operands(node, rule.operands)
        data = node.proto.input[node.position]
        if (
            rule.host_first
            and data not in self.usage.branching
            and not self.builder.is_after_hardware(node.computed[0])
        ):
            return on_host(node)
        try:
            return rule.convert(node)
        except HlsgenError as error:
            weights = node.constant(1)
            if weights is None or [d.code for d in error.diagnostics] != ["HG031"]:
                raise
            # Downstream nodes are checked as well: the result has the same shape with other weights.
            self.problems.items.extend(error.diagnostics)
            zeros = Const(np.zeros_like(weights.array))
            return rule.convert(replace(node, inputs=(node.inputs[0], zeros, *node.inputs[2:])))

    def _add(self, node: NodeContext, imported: Imported) -> None:
        """Add the results of a node."""
        if imported.constant is not None:
            self._set_constants(node, [imported.constant])
            return
        if len(imported.outputs) == 1 and len(node.used) != 1:
            text = f"{len(node.used)} outputs of {node.op_type} are used."
            raise fail("HG010", node.name, text, "Supported: one used output.")
        data = self._add_join(node, imported) if imported.join else node.computed[0]
        names = [o for o in node.outputs if o] if len(imported.outputs) == 1 else node.outputs
        dtypes = imported.dtypes or (imported.dtype,) * len(names)
        for output, ops, dtype in zip(names, imported.outputs, dtypes, strict=True):
            if output:
                if data.index is not None:
                    ops = quantized_clips(self.builder.steps, data.index, data.dtype, ops)
                self._add_output(node, output, data, ops, dtype)
        if imported.then:
            following = replace(node, inputs=(self.tensors[names[0]],))
            self._add(following, replace(imported.then[0](following), then=imported.then[1:]))

    def _add_join(self, node: NodeContext, imported: Imported) -> Dynamic:
        """Add the steps up to the operation on all computed inputs; returns its result. Raises HG004."""
        assert imported.join is not None
        op, shape = imported.join
        check_size(node.name, shape)
        last_chain = imported.operand_ops[-1]
        dtype = result_dtype([*(operand_op for operand_op, _ in last_chain), op], node.computed[-1].dtype)
        if any(t.index is None for t in node.computed):
            return Dynamic(shape, dtype, None)
        operands = node.computed * (len(imported.operand_ops) // len(node.computed))
        chains = zip(operands, imported.operand_ops, strict=True)
        indices = [self.builder.append(node.name, operand, ops) for operand, ops in chains]
        index = self.builder.add(node.name, op, shape, tuple(indices[::-1] if imported.swapped else indices))
        return Dynamic(shape, dtype, index)

    def _add_output(self, node: NodeContext, output: str, data: Dynamic, ops: ShapedOps, dtype: str | None) -> None:
        """Add the steps of one output. Raises HG004."""
        for _, shape in ops:
            check_size(node.name, shape)
        assert data.shape is not None
        shape = ops[-1][1] if ops else data.shape
        dtype = dtype or result_dtype([op for op, _ in ops], data.dtype)
        quantizer = self._quantizers.get(node.name)
        index = None if data.index is None else self.builder.append(node.name, data, ops, quantizer)
        self.tensors[output] = Dynamic(shape, dtype, index)

    def _set_constants(self, node: NodeContext, constants: list[Const]) -> None:
        """Add constant results. Raises HG004 if all computed constants together are too large."""
        for output, constant in zip([o for o in node.proto.output if o], constants, strict=False):
            self._folded_elements += constant.array.size
            if self._folded_elements > MAX_FOLDED:
                text = f"the computed constants of the graph have more than {MAX_FOLDED} elements together."
                raise fail("HG004", node.name, text, "Fold them in the exporter, and remove large unused ones.")
            self.tensors[output] = constant
