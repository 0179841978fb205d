"""The second reader's view of a model file: nodes, names, attributes, and constants with their codes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from hlsgen.frontend.load import read_model
from hlsgen.numerics.fixed import Array

#: Operators that leave the order of elements as it is, or only rename them.
LAYOUT = ("Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Identity")
#: Names of roundings in the files, in capitals -> how numpy rounds so.
ROUNDINGS: dict[str, Callable[[Array], Array]] = {
    "ROUND": np.round,
    "HALF_EVEN": np.round,
    "CEIL": np.ceil,
    "FLOOR": np.floor,
    "DOWN": np.trunc,
    "ROUND_TO_ZERO": np.trunc,
    "UP": lambda x: np.sign(x) * np.ceil(np.abs(x)),
    "HALF_UP": lambda x: np.sign(x) * np.floor(np.abs(x) + np.asarray(0.5, x.dtype)),
    "HALF_DOWN": lambda x: np.sign(x) * np.ceil(np.abs(x) - np.asarray(0.5, x.dtype)),
}


@dataclass(frozen=True, eq=False)
class Numbers:
    """A constant tensor.

    After a quantizer: real = (codes - zero) * scale, all of one shape. `kind`: type of the codes.
    """

    array: Array
    codes: Array | None = None
    scale: Array | None = None
    zero: Array | None = None
    kind: str = ""

    def change(self, move: Callable[[Array], Array]) -> Numbers:
        """The same constant with its elements moved by `move`."""
        codes, scale, zero = (None if x is None else np.asarray(move(x)) for x in (self.codes, self.scale, self.zero))
        return Numbers(np.asarray(move(self.array)), codes, scale, zero, self.kind)

    @property
    def real(self) -> Array:
        """float64: without the rounding of a float32 product."""
        if self.codes is None or self.scale is None or self.zero is None:
            return self.array.astype(np.float64)
        return np.asarray((self.codes - self.zero.astype(np.float64)) * self.scale.astype(np.float64))


class ModelFile:
    """A model file. computing: indices of the nodes between input and output, in order. names: as in diagnostics.

    opset: version of the standard operators.
    """

    def __init__(self, source: Path | onnx.ModelProto) -> None:
        model = read_model(source) if isinstance(source, Path) else source
        graph = model.graph
        self.opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 1)
        self.nodes = list(graph.node)
        self.names = _names(self.nodes)
        self.attributes = [{a.name: _attribute(a) for a in node.attribute} for node in self.nodes]
        self.constants = {t.name: Numbers(_array(t)) for t in graph.initializer}
        self.inputs = [i.name for i in graph.input if i.name not in self.constants]
        self.outputs = [o.name for o in graph.output]
        self.producer: dict[str, int] = {}
        self.users: dict[str, list[int]] = {}
        computed = set(self.inputs)
        for n, node in enumerate(self.nodes):
            self.producer.update({output: n for output in node.output if output})
            for name in filter(None, node.input):
                self.users.setdefault(name, []).append(n)
            if computed & set(node.input):
                computed |= set(filter(None, node.output))
            else:
                self._fold(n)
        needed = set(self.outputs)
        computing = []
        for n in reversed(range(len(self.nodes))):
            if needed & set(self.nodes[n].output):
                needed |= set(self.nodes[n].input)
                computing += [n] if computed & set(self.nodes[n].input) else []
        self.computing = computing[::-1]
        self.computed = computed

    def constant(self, n: int, i: int) -> Numbers | None:
        """Input i of node n as a constant, or None if it is missing or not constant."""
        names = self.nodes[n].input
        return self.constants.get(names[i]) if i < len(names) else None

    def has_input(self, n: int, i: int) -> bool:
        """True if node n has an input i."""
        return i < len(self.nodes[n].input) and bool(self.nodes[n].input[i])

    def is_used(self, name: str) -> bool:
        """True if the graph's output depends on a tensor."""
        return name in self.outputs or any(n in self.computing for n in self.users.get(name, []))

    def upstream_node(self, n: int, i: int = 0) -> int:
        """The node that computes input i of node n, skipping layout operators; -1 if there is none."""
        while True:
            n = self.producer.get(self.nodes[n].input[i], -1)
            if n < 0 or self.nodes[n].op_type not in LAYOUT:
                return n
            i = 0

    def downstream_nodes(self, n: int, through: tuple[str, ...] = ()) -> list[int]:
        """The chain of single consumers after node n, up to the first node that moves or computes elements.

        Nodes of `through` are passed like layout operators.
        """
        chain: list[int] = []
        while True:
            users = self.users.get(self.nodes[n].output[0], [])
            if len(users) != 1 or self.nodes[n].output[0] in self.outputs:
                return chain
            n = users[0]
            chain.append(n)
            if self.nodes[n].op_type not in (*LAYOUT, *through):
                return chain

    def _fold(self, n: int) -> None:
        """Compute the output of a node whose inputs are constants, if its operator is supported here."""
        node, attributes = self.nodes[n], self.attributes[n]
        fold = _FOLDS.get(node.op_type)
        inputs = [self.constants.get(name) for name in node.input if name]
        if fold is None or None in inputs:
            return
        with np.errstate(all="ignore"):
            folded = fold(inputs, attributes)
        if folded is not None:
            self.constants[node.output[0]] = folded


def _names(nodes: list[onnx.NodeProto]) -> list[str]:
    """Names of the nodes; a node without a name, or with an earlier node's name, is named after its output."""
    counts, used_names, names = Counter(node.name for node in nodes), {""}, []
    for n, node in enumerate(nodes):
        name = node.name
        if name in used_names:
            name = _plain(f"{node.op_type} -> {node.output[0] if node.output else '?'}")
            name = f"{name} ({n})" if counts[name] else name
        used_names.add(name)
        names.append(_plain(name))
    return names


def _plain(name: str) -> str:
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in name).replace("\\", "/")


def _attribute(attribute: onnx.AttributeProto) -> Any:
    match attribute.type:
        case onnx.AttributeProto.INT:
            return attribute.i
        case onnx.AttributeProto.FLOAT:
            return attribute.f
        case onnx.AttributeProto.STRING:
            return attribute.s.decode(errors="replace")
        case onnx.AttributeProto.INTS:
            return list(attribute.ints)
        case onnx.AttributeProto.FLOATS:
            return list(attribute.floats)
        case onnx.AttributeProto.TENSOR:
            return _array(attribute.t)
        case _:
            return None


def _array(tensor: onnx.TensorProto) -> Array:
    return np.asarray(numpy_helper.to_array(tensor))


# --------------------------------------------------------------------------- constants

FoldInputs = list[Any]
Attributes = dict[str, Any]


def code_range(bits: int, signed: bool, narrow: bool) -> tuple[int, int]:
    """(lowest, highest) code of this many bits."""
    if signed:
        return -(2 ** (bits - 1)) + narrow, 2 ** (bits - 1) - 1
    return 0, 2**bits - 1 - narrow


def kind_of(array: Array) -> str:
    """The ONNX type of integers, for example int4."""
    return str(array.dtype.name)


def limits(kind: str) -> tuple[int, int]:
    """(lowest, highest) integer of an ONNX type."""
    signed = not kind.startswith("u")
    return code_range(int(kind.lstrip("uint")), signed, False)


def along(values: Array, rank: int, axis: int) -> Array:
    """One number, or numbers along an axis, reshaped to a rank."""
    if values.size == 1:
        return values.reshape((1,) * rank)
    shape = [1] * rank
    shape[axis] = values.size
    return values.reshape(shape)


def _constant(inputs: FoldInputs, attributes: Attributes) -> Numbers | None:
    for key, kind in (
        ("value_float", np.float32),
        ("value_floats", np.float32),
        ("value_int", np.int64),
        ("value_ints", np.int64),
    ):
        if key in attributes:
            return Numbers(np.asarray(attributes[key], kind))
    return Numbers(attributes["value"]) if attributes.get("value") is not None else None


def _quant(inputs: FoldInputs, attributes: Attributes) -> Numbers | None:
    """IntQuant: the codes are clamp(x / scale + zero), rounded."""
    if len(inputs) != 4 or inputs[3].array.size != 1:
        return None
    x, scale, zero = (part.array for part in inputs[:3])
    bits, signed, narrow = int(inputs[3].array.ravel()[0]), attributes.get("signed", 1), attributes.get("narrow", 0)
    rounding = ROUNDINGS.get(str(attributes.get("rounding_mode", "ROUND")).upper())
    if rounding is None or (bits == 1 and signed):
        return None
    lo, hi = code_range(bits, bool(signed), bool(narrow))
    codes = rounding(np.clip(x / scale + zero, lo, hi))
    return _decoded(codes, scale, zero, "")


def _bipolar(inputs: FoldInputs, attributes: Attributes) -> Numbers | None:
    x, scale = inputs[0].array, inputs[1].array
    codes = np.where(x >= 0, 1.0, -1.0)
    return _decoded(codes, scale, np.zeros(1), "")


def _dequantize(inputs: FoldInputs, attributes: Attributes) -> Numbers | None:
    codes, scale = inputs[0].array, inputs[1].array
    zero = inputs[2].array if len(inputs) > 2 else np.zeros(1)
    size, axis = attributes.get("block_size", 0), attributes.get("axis", 1)
    if codes.dtype.kind not in "iu" and not codes.dtype.name.startswith(("int", "uint")):
        return None  # floats of 8 or 4 bits: only the frontend reads them
    if size:
        blocks = np.arange(codes.shape[axis]) // size
        scale, zero = (part.take(blocks, axis=axis) if part.size > 1 else part for part in (scale, zero))
        return _decoded(codes.astype(np.int64), scale, zero.astype(np.int64), kind_of(codes))
    scale, zero = (along(part, codes.ndim, axis) for part in (scale, zero))
    return _decoded(codes.astype(np.int64), scale, zero.astype(np.int64), kind_of(codes))


def _quantize(inputs: FoldInputs, attributes: Attributes) -> Numbers | None:
    if len(inputs) != 3 or attributes.get("block_size"):
        return None
    x, scale, zero = (part.array for part in inputs)
    lo, hi = limits(kind_of(zero))
    scale_, zero_ = (along(part, x.ndim, attributes.get("axis", 1)) for part in (scale, zero))
    codes = np.clip(np.round(x / scale_) + zero_.astype(np.int64), lo, hi)
    return Numbers(codes.astype(zero.dtype))


def _decoded(codes: Array, scale: Array, zero: Array, kind: str) -> Numbers:
    """The decoded constant. A negative scale is made positive: codes and zero point change their sign."""
    scales, zeros = (np.broadcast_to(part, codes.shape) for part in (scale, zero))
    real = ((codes - zeros).astype(scales.dtype) * scales).astype(scales.dtype)
    sign = np.where(scales < 0, -1, 1)
    return Numbers(np.asarray(real), codes.astype(np.float64) * sign, np.abs(scales), zeros * sign, kind)


def _transposed(inputs: FoldInputs, attributes: Attributes) -> Numbers | None:
    return inputs[0].change(lambda x: x.transpose(attributes.get("perm") or None))  # type: ignore[no-any-return]


def _reshaped(inputs: FoldInputs, attributes: Attributes) -> Numbers | None:
    if len(inputs) != 2 or attributes.get("allowzero"):
        return None
    old_shape = inputs[0].array.shape
    target = [old_shape[n] if size == 0 else int(size) for n, size in enumerate(inputs[1].array.tolist())]
    return inputs[0].change(lambda x: x.reshape(target))  # type: ignore[no-any-return]


def _triangle(inputs: FoldInputs, attributes: Attributes) -> Numbers | None:
    keep = np.triu if attributes.get("upper", 1) else np.tril
    diagonal = int(inputs[1].array.ravel()[0]) if len(inputs) > 1 else 0
    return Numbers(keep(inputs[0].array, diagonal))


_FOLDS: dict[str, Callable[[FoldInputs, Attributes], Numbers | None]] = {
    "Constant": _constant,
    "Identity": lambda inputs, attributes: inputs[0],
    "Quant": _quant,
    "IntQuant": _quant,
    "BipolarQuant": _bipolar,
    "DequantizeLinear": _dequantize,
    "QuantizeLinear": _quantize,
    "Transpose": _transposed,
    "Reshape": _reshaped,
    "Trilu": _triangle,
}
