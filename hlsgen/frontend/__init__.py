"""ONNX -> Model. The only package that knows onnx."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from hlsgen.errors import Collector, fail
from hlsgen.fixed import IntType
from hlsgen.frontend import qonnx, standard
from hlsgen.frontend.load import read_model, self_contained, tensor_array
from hlsgen.frontend.tensors import FOLDED, Const, Dynamic, Tensor, attributes, fold, label, quantized
from hlsgen.ir import Model, Shape, Step

__all__ = ["import_model", "parse_datatype", "self_contained"]

_LATER = {
    "Conv": "Convolutions are not supported yet.",
    "MaxPool": "Pooling is not supported yet.",
    "MatMulInteger": "Integer ONNX models are not supported yet.",
    "QuantizeLinear": "QDQ models are not supported yet; export to QONNX.",
    "DequantizeLinear": "QDQ models are not supported yet; export to QONNX.",
}


def import_model(path: Path, problems: Collector) -> Model | None:
    """Reads a file and walks its graph; None if an error went to `problems`."""
    before = len(problems.items)
    with problems.catching():
        proto = read_model(path)
        model = _Walk(proto, path.stem, problems).run()
        return model if len(problems.items) == before or model is None else None
    return None


class _Walk:
    """One pass over the nodes in order, with what is known of every tensor."""

    def __init__(self, proto: onnx.ModelProto, name: str, problems: Collector) -> None:
        self.graph, self.name, self.problems = proto.graph, name, problems
        self.versions = {o.domain: o.version for o in proto.opset_import}
        self.opset = max(
            1, min(self.versions.get("", self.versions.get("ai.onnx", 13)), onnx.defs.onnx_opset_version())
        )
        self.tensors: dict[str, Tensor] = {}
        self.steps: list[Step] = []
        self.consumed_at: dict[str, int] = {}

    def run(self) -> Model | None:
        if self.graph.sparse_initializer:
            self.problems.error("HG026", "", "sparse initializers are not supported.")
        for tensor in self.graph.initializer:
            with self.problems.catching():
                self.tensors[tensor.name] = Const(tensor_array(tensor, tensor.name))
        inputs = [i for i in self.graph.input if i.name not in self.tensors]
        if len(inputs) != 1 or len(self.graph.output) != 1:
            raise fail(
                "HG015", self.name,
                f"{len(inputs)} inputs ({', '.join(i.name for i in inputs)}), {len(self.graph.output)} outputs.",
                "Supported: one input and one output.",
            )  # fmt: skip
        source, output = inputs[0], self.graph.output[0]
        shape, batched = _input_shape(source)
        dtype = _float_type(source)
        self.tensors[source.name] = Dynamic(shape, dtype, 0)
        needed = self._needed(output.name)
        for i, node in enumerate(self.graph.node):
            if i in needed:
                with self.problems.catching():
                    self._node(node)
        result = self.tensors.get(output.name)
        if result is None:
            self.problems.error("HG015", output.name, "no node computes the graph's output.")
        elif isinstance(result, Const):
            self.problems.error("HG015", output.name, "the graph's output does not depend on its input.")
        if not isinstance(result, Dynamic) or any(d.severity == "error" for d in self.problems.items):
            return None
        if result.index != len(self.steps):
            self.problems.error("HG015", output.name, "the graph branches.", "Supported: a straight sequence of nodes.")
            return None
        return Model(
            self.name, source.name, shape, dtype, batched, self._declared(source), tuple(self.steps), output.name,
            result.dtype,
        )  # fmt: skip

    def _needed(self, output: str) -> set[int]:
        """Nodes on which the output depends. Nodes must stand in order, as ONNX demands."""
        wanted, needed = {output}, set()
        for i in reversed(range(len(self.graph.node))):
            node = self.graph.node[i]
            if wanted & set(node.output):
                needed.add(i)
                wanted.update(node.input)
        return needed

    def _node(self, node: onnx.NodeProto) -> None:
        name, quantizer = label(node), False
        is_qonnx = node.op_type in qonnx.OPERATORS and node.domain in qonnx.DOMAINS
        for output in node.output:
            if output in self.tensors:
                raise fail("HG015", name, f"tensor {output!r} is computed twice.")
        missing = [i for i in node.input if i and i not in self.tensors]
        if missing:
            self._poison(node, None)
            raise fail("HG014", name, f"input {missing[0]!r} is not computed by any node before it.")
        tensors = [self.tensors[i] if i else None for i in node.input]
        constants = [t if isinstance(t, Const) else None for t in tensors]
        dynamic = [(i, t) for i, t in enumerate(tensors) if isinstance(t, Dynamic)]
        first = dynamic[0][1] if dynamic else None
        self._poison(node, None)
        self._check_operator(node, name, is_qonnx)
        self._poison(node, first)
        attrs = attributes(node)
        if is_qonnx:
            quantizer = True
        if not dynamic:
            self._constant(node, name, constants, attrs, quantizer)
            return
        if node.op_type == "Shape" and first is not None and first.shape is not None:
            self._set(node, [Const(np.asarray(first.shape, np.int64))])
            return
        if any(t.shape is None for _, t in dynamic):
            # Behind an operator that is not supported: only the parameters can be checked.
            if quantizer and constants[0] is None:
                shape = max((c.array.shape for c in constants if c), key=len, default=())
                qonnx.import_quantizer(node.op_type, name, shape, constants[1:], attrs, self._version(node))
            return
        if len(dynamic) > 1:
            if quantizer:
                shape = dynamic[0][1].shape or ()
                qonnx.import_quantizer(node.op_type, name, shape, constants[1:], attrs, self._version(node))
            raise fail(
                "HG015", name, f"{node.op_type} of {len(dynamic)} computed tensors.",
                "The graph must be a straight sequence of nodes.",
            )  # fmt: skip
        position, data = dynamic[0]
        self._step(node, name, position, data, constants, attrs, quantizer)

    def _step(
        self, node: onnx.NodeProto, name: str, position: int, data: Dynamic, constants: list[Const | None],
        attrs: dict[str, Any], quantizer: bool,
    ) -> None:  # fmt: skip
        assert data.shape is not None
        if quantizer:
            if position != 0:
                raise fail("HG020", name, "a parameter of the quantizer is computed from the input.")
            op = qonnx.import_quantizer(node.op_type, name, data.shape, constants[1:], attrs, self._version(node))
            steps: standard.Imported = [(op, data.shape)]
        else:
            steps = standard.import_standard(node, name, data.shape, constants, attrs, self.opset, position)
        if data.index is None:
            index = None
        elif data.index != len(self.steps) and steps:
            raise fail(
                "HG015", name, f"{node.input[position]!r} is used by more than one node.",
                "The graph must be a straight sequence of nodes.",
            )  # fmt: skip
        else:
            self.steps.extend(Step(name, op, shape) for op, shape in steps)
            index = len(self.steps) if steps else data.index
        shape = steps[-1][1] if steps else data.shape
        dtype = "int64" if node.op_type in ("ArgMax", "ArgMin", "TopK") else "float32"
        used = next(o for o in node.output if o)
        self.tensors[used] = Dynamic(shape, dtype, index)
        if node.op_type == "TopK" and len(node.output) > 1 and node.output[1]:
            self.tensors[node.output[1]] = self.tensors[used]

    def _constant(
        self,
        node: onnx.NodeProto,
        name: str,
        constants: list[Const | None],
        attrs: dict[str, Any],
        quantizer: bool,
    ) -> None:
        if not quantizer:
            self._set(node, fold(node, constants, self.opset))
            return
        data = constants[0] if constants else None
        if data is None:
            raise fail("HG014", name, "the data input is missing.")
        op = qonnx.import_quantizer(node.op_type, name, data.array.shape, constants[1:], attrs, self._version(node))
        self._set(node, [quantized(op, data)])

    def _check_operator(self, node: onnx.NodeProto, name: str, is_qonnx: bool) -> None:
        if is_qonnx:
            return
        if node.domain not in ("", "ai.onnx"):
            known = ", ".join(sorted(d for d in qonnx.DOMAINS if d))
            raise fail(
                "HG011",
                name,
                f"operator {node.op_type} of domain {node.domain!r}.",
                f"QONNX domains: {known}.",
            )
        if node.op_type not in standard.OPERATORS and node.op_type not in FOLDED and node.op_type != "Shape":
            raise fail(
                "HG010", name, f"operator {node.op_type} is not supported.",
                _LATER.get(node.op_type, "docs/operators.md lists what is."),
            )  # fmt: skip

    def _version(self, node: onnx.NodeProto) -> int:
        return self.versions.get(node.domain, 1) if node.domain else 1

    def _set(self, node: onnx.NodeProto, values: list[Const]) -> None:
        for output, value in zip([o for o in node.output if o], values, strict=False):
            self.tensors[output] = value

    def _poison(self, node: onnx.NodeProto, data: Dynamic | None) -> None:
        """What is assumed of a node's outputs if the node turns out to be wrong."""
        shape = data.shape if data else None
        for output in node.output:
            if output:
                self.tensors[output] = Dynamic(shape, "float32", None)

    def _declared(self, source: onnx.ValueInfoProto) -> tuple[IntType, int] | None:
        """The integer type that an annotation or the tensor's own type gives the input."""
        for note in self.graph.quantization_annotation:
            if note.tensor_name == source.name:
                for entry in note.quant_parameter_tensor_names:
                    if entry.key == "finn_datatype" and (found := parse_datatype(entry.value)):
                        return found
        kind = source.type.tensor_type.elem_type
        if kind in (TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.UINT16):
            info = np.iinfo(helper.tensor_dtype_to_np_dtype(kind))
            return IntType(int(info.min), int(info.max)), 0
        return None


def parse_datatype(text: str) -> tuple[IntType, int] | None:
    """(integer type, fraction bits) of a QONNX datatype name: INT4, UINT8, FIXED<8,3>, BIPOLAR ..."""
    text = text.strip().upper()
    plain = {"BINARY": IntType(0, 1), "BIPOLAR": IntType(-1, 1), "TERNARY": IntType(-1, 1)}
    if text in plain:
        return plain[text], 0
    if (match := re.fullmatch(r"(U?)INT(\d+)", text)) and 1 <= int(match[2]) <= 32:
        bits = int(match[2])
        return (IntType(0, 2**bits - 1) if match[1] else IntType(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)), 0
    if (match := re.fullmatch(r"(U?)FIXED[<:](\d+),(-?\d+)>?", text)) and 1 <= int(match[2]) <= 32:
        bits, whole = int(match[2]), int(match[3])
        if abs(bits - whole) > 64:
            return None
        return (IntType(0, 2**bits - 1) if match[1] else IntType(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)), bits - whole
    return None


def _input_shape(source: onnx.ValueInfoProto) -> tuple[Shape, bool]:
    kind = source.type.tensor_type
    if not source.type.HasField("tensor_type") or not kind.HasField("shape"):
        raise fail("HG012", source.name, "the input has no shape.", "Give it one, or export with fixed shapes.")
    dims = list(kind.shape.dim)
    unknown = [i for i, d in enumerate(dims) if not (d.HasField("dim_value") and d.dim_value > 0)]
    if any(i > 0 for i in unknown):
        text = ", ".join(d.dim_param or (str(d.dim_value) if d.HasField("dim_value") else "?") for d in dims)
        raise fail(
            "HG012", source.name, f"the input's shape is [{text}].",
            "Only the first dimension (the batch) may be left open; fix the others in the export.",
        )  # fmt: skip
    shape = tuple(d.dim_value if i not in unknown else 1 for i, d in enumerate(dims))
    if int(np.prod([float(s) for s in shape])) > 1 << 24:
        raise fail("HG004", source.name, f"the input has shape {list(shape)}; at most 2^24 elements.")
    return shape, bool(shape) and shape[0] == 1


def _float_type(source: onnx.ValueInfoProto) -> str:
    kind = source.type.tensor_type.elem_type
    accepted: dict[int, str] = {
        TensorProto.FLOAT: "float32",
        TensorProto.INT8: "int8",
        TensorProto.UINT8: "uint8",
        TensorProto.INT16: "int16",
        TensorProto.UINT16: "uint16",
    }
    if kind not in accepted:
        name = TensorProto.DataType.Name(kind) if kind in TensorProto.DataType.values() else str(kind)
        raise fail("HG026", source.name, f"the input is of type {name}.", "Supported: float32, (u)int8, (u)int16.")
    return accepted[kind]
