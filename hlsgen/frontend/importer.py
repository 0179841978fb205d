"""One pass over the nodes of a graph: float steps between its input and its output."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import onnx

from hlsgen.diagnostics import Collector, fail, stuck
from hlsgen.frontend import (
    dialect_integer,
    dialect_qlinear,
    dialect_qonnx,
    domain_hlsgen,
    ops_compare_select,
    ops_conv,
    ops_image,
    ops_multi_operand,
    ops_pool,
    ops_standard,
    two_inputs,
)
from hlsgen.frontend.constant_folding import (
    FOLDED,
    Const,
    Dynamic,
    Tensor,
    attributes,
    check_schema,
    check_size,
    fold,
    label,
    quantized,
)
from hlsgen.frontend.graph_inputs import declared_type, input_dtype, input_shape
from hlsgen.frontend.im2col import with_convolutions
from hlsgen.frontend.load import tensor_array
from hlsgen.frontend.onnx_graph import (
    computed_outputs,
    constant_linear,
    name_all,
    result_dtype,
    used_inputs,
    with_outputs,
)
from hlsgen.frontend.pattern_match import Source
from hlsgen.frontend.qdq_fusion import fuse
from hlsgen.ir import Binary, Concat, Conv, ConvInteger, MatMul, MatMulInteger, Model, Pack, Shape, Step
from hlsgen.ir.ops import QUANTIZERS, Add, Div, QuantizeLinear
from hlsgen.numerics.fixed import IntType

#: Oldest opset of the default domain: before it, arithmetic broadcasts by other rules.
MIN_OPSET = 7
#: Most elements of all computed constants together.
MAX_FOLDED = 1 << 27
REARRANGING = ops_standard.SHAPES | ops_standard.PASSED | {"Transpose"}
#: What may follow integer data.
INTEGER_OPERATORS = (
    REARRANGING | dialect_integer.OPERATORS | dialect_qlinear.OPERATORS | ops_standard.ARITHMETIC | {"QuantizedAdd", "Requantize"}
    | ops_conv.CONV_OPERATORS | ops_image.SPATIAL_OPERATORS | ops_multi_operand.OPERATORS | ops_compare_select.OPERATORS
    | {"Cast", "MatMul", "Gemm", "ArgMax", "TopK", "Relu", "Max", "Min", "Clip", "Neg", "Abs", "Sign"}
)  # fmt: skip

#: Operators whose result has another shape or type than the data.
_CHANGING = (
    ops_conv.CONV_OPERATORS | ops_image.SPATIAL_OPERATORS | dialect_qlinear.LAYERS | dialect_integer.OPERATORS | ops_standard.SHAPES
    | ops_compare_select.OPERATORS | {"Cast", "Concat", "Gemm", "MatMul", "QLinearConcat", "Requantize", "Transpose"}
) - {"RequantShift"}  # fmt: skip
#: Domains of custom operators on images.
IMAGE_DOMAINS = dialect_qonnx.DOMAINS - {""} | {"qonnx.custom_op.channels_last", dialect_qlinear.DOMAIN}
#: Operators of onnxruntime's own domain.
MICROSOFT = dialect_qlinear.OPERATORS | dialect_qlinear.SHARED | ops_pool.QLINEAR | {"QLinearConcat", "QLinearConv"}
#: Steps that hardware does; what comes before the first of them can be left to the host.
HARDWARE = (*QUANTIZERS, MatMul, MatMulInteger, Conv, ConvInteger, Concat, Binary, Pack)

_LATER = {
    **dict.fromkeys(["RequantizedConv", "RequantizedGemm"], "Give the model before Deeploy fuses its RequantShift."),
    "DynamicQuantizeLinear": "Its scale depends on the data of each frame; quantize the model statically.",
}


class Importer:
    """One pass over the nodes in order, with what is known of every tensor."""

    def __init__(self, proto: onnx.ModelProto, name: str, problems: Collector, fixed_point: bool = False) -> None:
        self.graph, self.name, self.problems, self.fixed_point = proto.graph, name, problems, fixed_point
        self.functions = {(f.domain, f.name) for f in proto.functions}
        self.kinds: list[tuple[str, str]] = []
        self.folded = 0
        name_all(self.graph)
        self.versions = {o.domain: o.version for o in proto.opset_import}
        self.opset = max(
            1, min(self.versions.get("", self.versions.get("ai.onnx", 13)), onnx.defs.onnx_opset_version())
        )
        self.tensors: dict[str, Tensor] = {}
        self.steps: list[Step] = []
        self.sources: dict[int, Source] = {}

    def run(self) -> Model | None:
        if self.versions.get("", MIN_OPSET) < MIN_OPSET:
            self.problems.error(
                "HG015", self.name, f"opset {self.versions['']}.",
                f"Supported: {MIN_OPSET} and newer; convert the model with onnx.version_converter.",
            )  # fmt: skip
        for sparse in self.graph.sparse_initializer:
            self.problems.error("HG026", sparse.values.name, "a sparse initializer.", "Store the tensor densely.")
            self.tensors[sparse.values.name] = Dynamic(None, "float32", None)
        for tensor in self.graph.initializer:
            with self.problems.catching():
                if tensor.name in self.tensors:
                    raise fail("HG015", tensor.name, "two initializers have this name.", "Names must be unique.")
                self.tensors[tensor.name] = Dynamic(None, "float32", None)
                self.tensors[tensor.name] = Const(tensor_array(tensor, tensor.name))
        inputs = used_inputs(self.graph, self.tensors)
        outputs = computed_outputs(self.graph, [i.name for i in inputs], self.problems)
        if not 1 <= len(inputs) <= 2 or len(outputs) != 1:
            raise fail(
                "HG015", self.name,
                f"{len(inputs)} inputs ({', '.join(i.name for i in inputs)}), {len(outputs)} outputs.",
                "Supported: one output; one input, or two that the first operation adds or multiplies.",
            )  # fmt: skip
        joined = self._join(inputs) if len(inputs) == 2 else None
        if joined:
            inputs = [next(i for i in inputs if i.name == joined.inputs[0])]
        source, output = inputs[0], outputs[0]
        if not source.name or not output.name:
            raise fail("HG015", self.name, "an input or output without a name.", "Export the model again.")
        shape: Shape = (1,)
        known: Shape | None = None
        batched, dtype = False, "float32"
        with self.problems.catching():
            shape, batched = input_shape(source)
            known = shape
        with self.problems.catching():
            dtype = input_dtype(source)
        self.tensors[source.name] = Dynamic(known, dtype, 0)
        if joined:
            self.steps.append(Step(joined.name, joined.op, shape, (0,)))
            self.tensors[joined.output] = Dynamic(known, joined.dtype, 1)
        needed = self._needed(output.name)
        for i, node in enumerate(self.graph.node):
            if i in needed and not (joined and i in joined.nodes):
                with self.problems.catching():
                    self._node(node)
        result = self.tensors.get(output.name)
        if result is None:
            self.problems.error("HG015", output.name, "no node computes the graph's output.", "Export the model again.")
        elif isinstance(result, Const):
            self.problems.error(
                "HG015", output.name, "the graph's output does not depend on its input.", "There is nothing to build."
            )
        if not isinstance(result, Dynamic) or any(d.severity == "error" for d in self.problems.items):
            return None
        assert result.index is not None
        steps = with_convolutions(fuse(self.steps, self.sources, result.index, self.fixed_point))
        return Model(
            self.name, source.name, shape, dtype, batched,
            (IntType(0, 65535), 0) if joined else declared_type(self.graph, source),
            steps, output.name, result.dtype,
            joined.inputs[1] if joined else None,
        )  # fmt: skip

    def _join(self, inputs: list[onnx.ValueInfoProto]) -> two_inputs.Found:
        """The operation that takes both inputs of a graph."""
        constants = {name: tensor for name, tensor in self.tensors.items() if isinstance(tensor, Const)}
        for node in self.graph.node:
            if node.op_type == "Constant" and node.output and not node.domain:
                with self.problems.catching():
                    constants[node.output[0]] = fold(node, [], self.opset)[0]
        shapes = [input_shape(i)[0] for i in inputs]
        dtypes = [input_dtype(i) for i in inputs]
        return two_inputs.find(self.graph, [i.name for i in inputs], dtypes, shapes, constants, self.fixed_point)

    def _needed(self, output: str) -> set[int]:
        """Nodes on which the output depends. Nodes must stand in order, as ONNX demands."""
        wanted, needed = {output}, set()
        self.used = wanted
        for i in reversed(range(len(self.graph.node))):
            node = self.graph.node[i]
            if wanted & set(node.output):
                needed.add(i)
                wanted.update(i for i in node.input if i)
        return needed

    def report_stuck(self) -> None:
        """Host operations between hardware, for a model that cannot be lowered because of other errors."""
        kinds = [kind for _, kind in self.kinds]
        ends = [i for i, kind in enumerate(kinds) if kind in ("layer", "quantizer")]
        layers = [i for i in ends if kinds[i] == "layer"] or ends
        for name, kind in self.kinds[ends[0] : layers[-1]] if ends else []:
            if kind not in ("layer", "quantizer"):
                self.problems.items.append(stuck(name, kind))

    def _node(self, node: onnx.NodeProto) -> None:
        name, quantizer = label(node), False
        is_qonnx = node.op_type in dialect_qonnx.OPERATORS and node.domain in dialect_qonnx.DOMAINS
        for i, output in enumerate(node.output):
            if output and (output in self.tensors or output in node.output[:i]):
                raise fail("HG015", name, f"tensor {output!r} is computed twice.", "Names must be unique.")
        missing = [i for i in node.input if i and i not in self.tensors]
        if missing:
            self._poison(node, None)
            raise fail(
                "HG014", name, f"input {missing[0]!r} is not computed by any node before it.",
                "Nodes must stand in the order of computation, without cycles.",
            )  # fmt: skip
        tensors = [self.tensors[i] if i else None for i in node.input]
        constants = [t if isinstance(t, Const) else None for t in tensors]
        dynamic = [(i, t) for i, t in enumerate(tensors) if isinstance(t, Dynamic)]
        first = dynamic[0][1] if dynamic else None
        self._poison(node, None)
        self._check_operator(node, name, is_qonnx)
        self._poison(node, first)
        if dynamic:
            self._note_kind(node, name, is_qonnx)
        attrs = attributes(node)
        if is_qonnx:
            quantizer = True
        elif node.domain in ("", "ai.onnx"):
            check_schema(node, self.opset)
        if not dynamic:
            self._constant(node, name, constants, attrs, quantizer)
            return
        if node.op_type == "Shape" and first is not None and first.shape is not None:
            self._set(node, fold(node, [Const(np.broadcast_to(np.float32(0), first.shape))], self.opset))
            return
        if any(t.shape is None for _, t in dynamic):
            # Behind an operator that is not supported: only the parameters can be checked.
            if quantizer and constants[0] is None:
                shape = max((c.array.shape for c in constants if c), key=len, default=())
                dialect_qonnx.import_quantizer(node.op_type, name, shape, constants[1:], attrs, self._version(node))
            return
        if len(dynamic) > 1:
            if quantizer:
                shape = dynamic[0][1].shape or ()
                dialect_qonnx.import_quantizer(node.op_type, name, shape, constants[1:], attrs, self._version(node))
            self._join_branches(node, name, tensors, attrs)
            return
        position, data = dynamic[0]
        self._step(node, name, position, data, constants, attrs, quantizer)

    def _join_branches(
        self, node: onnx.NodeProto, name: str, tensors: list[Tensor | None], attrs: dict[str, Any]
    ) -> None:  # fmt: skip
        """A node of several computed tensors."""
        dynamic = [t for t in tensors if isinstance(t, Dynamic)]
        found = ops_multi_operand.import_joining(node, name, tensors, attrs, self.fixed_point)
        check_size(name, found.shape)
        if any(t.index is None for t in dynamic):
            self.tensors[node.output[0]] = Dynamic(found.shape, dynamic[0].dtype, None)
            return
        ends = [self._append(name, t.index, steps) for t, steps in zip(dynamic, found.before, strict=True)]
        self.steps.append(Step(name, found.op, found.shape, tuple(ends[::-1] if found.swapped else ends)))
        index = self._append(name, len(self.steps), found.after)
        ops = [*(op for op, _ in found.before[-1]), found.op, *(op for op, _ in found.after)]
        shape = found.after[-1][1] if found.after else found.shape
        self.tensors[node.output[0]] = Dynamic(shape, result_dtype(ops, dynamic[-1].dtype), index)

    def _append(self, name: str, index: int | None, steps: ops_standard.Imported) -> int:
        """Adds steps that follow value `index`; gives the value behind them.

        What rescales the sums of an integer layer gets a name of its own.
        """
        assert index is not None
        linear = any(isinstance(op, MatMulInteger | ConvInteger) for op, _ in steps)
        for op, shape in steps:
            own = f"{name} (rescaled)" if linear and isinstance(op, QuantizeLinear) else name
            self.steps.append(Step(own, op, shape, (index,)))
            index = len(self.steps)
        return index

    def _step(
        self, node: onnx.NodeProto, name: str, position: int, data: Dynamic, constants: list[Const | None],
        attrs: dict[str, Any], quantizer: bool,
    ) -> None:  # fmt: skip
        assert data.shape is not None
        used = [o for o in node.output if o in self.used]
        if not data.dtype.startswith("float") and not quantizer and node.op_type not in INTEGER_OPERATORS:
            raise fail(
                "HG026", name, f"{node.op_type} of {data.dtype} data.", "Cast it to float32 first (operator Cast)."
            )
        found = self._import(node, name, position, data, constants, attrs, quantizer, used)
        if isinstance(found, dict):
            for output, steps in found.items():
                if output in self.used:
                    self._result(node, name, output, data, steps)
            return
        if len(used) != 1:
            raise fail("HG010", name, f"{len(used)} outputs of {node.op_type} are used.", "Supported: one of them.")
        self._note_source(node, position, constants, attrs, data.dtype, found)
        self._result(node, name, used[0], data, found)

    def _result(
        self, node: onnx.NodeProto, name: str, output: str, data: Dynamic, steps: ops_standard.Imported
    ) -> None:  # fmt: skip
        """Adds the steps of one output."""
        assert data.shape is not None
        for _, result in steps:
            check_size(name, result)
        index = None if data.index is None else self._append(name, data.index, steps)
        shape = steps[-1][1] if steps else data.shape
        dtype = result_dtype([op for op, _ in steps], data.dtype)
        which = list(node.output).index(output)
        if node.op_type in ("ArgMax", "ArgMin") or (node.op_type == "TopK" and which == 1):
            dtype = "int64"
        elif (node.op_type, which) == ("Dropout", 1):
            raise fail("HG010", name, "the mask output of Dropout is used.", "Export the model in evaluation mode.")
        self.tensors[output] = Dynamic(shape, dtype, index)

    def _import(
        self, node: onnx.NodeProto, name: str, position: int, data: Dynamic, constants: list[Const | None],
        attrs: dict[str, Any], quantizer: bool, used: list[str],
    ) -> ops_standard.Imported | dict[str, ops_standard.Imported]:  # fmt: skip
        """The steps of a node of one computed tensor; of each output by name, where it has several."""
        shape, op_type, dtype = data.shape, node.op_type, data.dtype
        assert shape is not None
        if quantizer:
            if position != 0:
                raise fail("HG020", name, "a parameter of the quantizer is computed from the input.")
            op = dialect_qonnx.import_quantizer(op_type, name, shape, constants[1:], attrs, self._version(node))
            return [(op, shape)]
        if op_type in ops_conv.CONV_OPERATORS:
            return ops_conv.import_conv(node, name, shape, constants, attrs, self.opset, position, dtype)
        last = (node.domain, op_type) == (ops_conv.CHANNELS_LAST, "BatchNormalization")
        if last or (op_type in ops_image.SPATIAL_OPERATORS and self._in_hardware(data)):
            node = node if op_type == "Split" else with_outputs(node, used)
            found = ops_image.import_spatial(node, name, shape, constants, attrs, self.opset, dtype)
            if op_type != "Split":
                return cast("ops_standard.Imported", found)
            parts = cast("list[ops_standard.Imported]", found)
            return {output: steps for output, steps in zip(node.output, parts, strict=True) if output}
        if op_type in dialect_integer.OPERATORS:
            return dialect_integer.import_integer(op_type, name, shape, constants, attrs, position, dtype)
        if op_type in ops_compare_select.OPERATORS:
            return ops_compare_select.import_choosing(op_type, name, shape, constants, attrs, position, dtype)
        if op_type in dialect_qlinear.OPERATORS:
            return dialect_qlinear.import_qlinear(
                op_type, name, shape, constants, attrs, position, dtype, self.fixed_point
            )
        if node.domain == domain_hlsgen.DOMAIN and op_type == "Requantize":
            return [(dialect_integer.requantize(name, shape, dtype, constants, attrs), shape)]
        if node.domain == domain_hlsgen.DOMAIN:
            return [(two_inputs.with_constant(name, node, shape, dtype, constants, position), shape)]
        return ops_standard.import_standard(
            with_outputs(node, used), name, shape, constants, attrs, self.opset, position, dtype
        )

    def _in_hardware(self, data: Dynamic) -> bool:
        """Whether a quantizer or an integer layer comes before; what comes earlier is left to the host."""
        if not data.dtype.startswith("float"):
            return True
        wanted = {data.index}
        for i in reversed(range(len(self.steps))):
            if i + 1 in wanted:
                if isinstance(self.steps[i].op, HARDWARE):
                    return True
                wanted.update(self.steps[i].inputs)
        return False

    def _note_source(
        self, node: onnx.NodeProto, position: int, constants: list[Const | None], attrs: dict[str, Any], dtype: str,
        steps: ops_standard.Imported,
    ) -> None:  # fmt: skip
        """Remembers what the steps of QDQ layers are made from, before they are added."""
        start = len(self.steps)
        linear = [i for i, (op, _) in enumerate(steps) if isinstance(op, MatMul | Conv)]
        if node.op_type in ("DequantizeLinear", "Flatten") and steps:
            self.sources[start + len(steps) - 1] = Source(None, position, dtype)
        elif node.op_type in ("AveragePool", "GlobalAveragePool"):
            means = [i for i, (op, _) in enumerate(steps) if isinstance(op, Div)]
            self.sources.update({start + i: Source(None, position, dtype) for i in means})
        elif node.op_type in ("Add", "Mul") and steps:
            self.sources[start] = Source(constants[1 - position], position, dtype)
        elif (
            linear
            and len(constants) > 1
            and not (node.op_type == "Gemm" and (attrs.get("alpha", 1.0), attrs.get("beta", 1.0)) != (1.0, 1.0))
        ):
            self.sources[start + min(linear)] = Source(constants[1 - position], position, dtype)
            if isinstance(steps[-1][0], Add):
                self.sources[start + len(steps) - 1] = Source(constants[2], position, dtype)

    def _note_kind(self, node: onnx.NodeProto, name: str, is_qonnx: bool) -> None:
        if node.op_type in ops_conv.CONV_OPERATORS | {"MatMul", "Gemm", "MatMulInteger"} | dialect_qlinear.LAYERS:
            self.kinds.append((name, "layer"))
        elif node.op_type in ops_standard.HOST | {"QLinearSoftmax"}:
            self.kinds.append((name, node.op_type))
        elif is_qonnx or node.op_type in dialect_integer.OPERATORS | dialect_qlinear.OPERATORS | {
            "QuantizedAdd",
            "Requantize",
        }:
            self.kinds.append((name, "quantizer"))

    def _constant(
        self,
        node: onnx.NodeProto,
        name: str,
        constants: list[Const | None],
        attrs: dict[str, Any],
        quantizer: bool,
    ) -> None:
        data = constants[0] if constants else None
        if node.op_type in ("QuantizeLinear", "DequantizeLinear") and data is not None:
            self._set(node, [constant_linear(node.op_type, name, data, constants, attrs)])
            return
        if not quantizer:
            self._set(node, fold(node, constants, self.opset))
            return
        if data is None:
            raise fail("HG014", name, "the data input is missing.", "It is the first input.")
        if data.array.dtype.kind not in "fiub" or not data.array.size:
            text = f"a constant of type {data.array.dtype} and shape {list(data.array.shape)} cannot be quantized."
            raise fail("HG026", name, text, "Store it as float32.")
        op = dialect_qonnx.import_quantizer(
            node.op_type, name, data.array.shape, constants[1:], attrs, self._version(node)
        )
        self._set(node, [quantized(op, data)])

    def _check_operator(self, node: onnx.NodeProto, name: str, is_qonnx: bool) -> None:
        if (node.domain, node.op_type) in self.functions:
            raise fail(
                "HG010", name, f"{node.op_type} is a function of the model.",
                "Inline it first: onnx.inliner.inline_local_functions.",
            )  # fmt: skip
        if is_qonnx:
            return
        images = ops_conv.CONV_OPERATORS | ops_image.SPATIAL_OPERATORS
        if node.domain in IMAGE_DOMAINS and node.op_type in images:
            return
        if (node.domain, node.op_type) == (ops_conv.CHANNELS_LAST, "BatchNormalization"):
            return
        if node.domain in dialect_qonnx.DOMAINS - {""}:
            raise fail(
                "HG010", name, f"operator {node.op_type} of domain {node.domain!r} is not supported.",
                f"Of the QONNX operators, these are: {', '.join(sorted(dialect_qonnx.OPERATORS))}.",
            )  # fmt: skip
        if node.domain == domain_hlsgen.DOMAIN and node.op_type in ("QuantizedAdd", "Requantize"):
            return
        if (
            node.domain == dialect_qlinear.DOMAIN
            and node.op_type in dialect_qlinear.OPERATORS | dialect_qlinear.SHARED | ops_multi_operand.OPERATORS
        ):
            return
        if node.domain == dialect_qlinear.DOMAIN:
            raise fail(
                "HG010", name, f"operator {node.op_type} of domain {node.domain!r} is not supported.",
                f"Of onnxruntime's own operators, these are: {', '.join(sorted(MICROSOFT))}.",
            )  # fmt: skip
        if node.domain not in ("", "ai.onnx"):
            known = ", ".join(sorted(d for d in dialect_qonnx.DOMAINS if d))
            text = f"operator {node.op_type} of domain {node.domain!r}."
            raise fail("HG011", name, text, f"QONNX domains: {known}.")
        known_here = (
            ops_standard.OPERATORS | dialect_integer.OPERATORS | ops_conv.CONV_OPERATORS | ops_image.SPATIAL_OPERATORS
            | ops_multi_operand.OPERATORS | ops_compare_select.OPERATORS | FOLDED | {"Shape", "QLinearMatMul"}
        )  # fmt: skip
        if node.op_type not in known_here:
            raise fail(
                "HG010", name, f"operator {node.op_type} is not supported.",
                _LATER.get(node.op_type, "docs/operators.md lists what is."),
            )  # fmt: skip

    def _version(self, node: onnx.NodeProto) -> int:
        return self.versions.get(node.domain, 1) if node.domain else 1

    def _set(self, node: onnx.NodeProto, values: list[Const]) -> None:
        for output, value in zip([o for o in node.output if o], values, strict=False):
            self.folded += value.array.size
            if self.folded > MAX_FOLDED:
                raise fail("HG004", label(node), f"constants of more than {MAX_FOLDED} computed elements together.")
            self.tensors[output] = value

    def _poison(self, node: onnx.NodeProto, data: Dynamic | None) -> None:
        """What is assumed of a node's outputs if the node turns out to be wrong."""
        same = data if data and node.op_type not in _CHANGING else Dynamic(None, "float32", None)
        for output in filter(None, node.output):
            self.tensors[output] = Dynamic(same.shape, same.dtype, None)
