"""Writes TFLite files: graphs of tensors and operators as flatbuffers, with own numbers of the schema and numpy only."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray
#: Numbers of element types.
TYPES = {
    "float32": 0,
    "float16": 1,
    "int32": 2,
    "uint8": 3,
    "int64": 4,
    "bool": 6,
    "int16": 7,
    "int8": 9,
    "resource": 13,
    "int4": 17,
}
ACTIVATIONS = {"NONE": 0, "RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3, "TANH": 4, "SIGN_BIT": 5}
PADDINGS = {"SAME": 0, "VALID": 1}

_ACTIVATION = "fused_activation_function"
_WINDOW = {"padding": (0, "b", 0), "stride_w": (1, "i", 0), "stride_h": (2, "i", 0)}
_CONV = {**_WINDOW, _ACTIVATION: (3, "b", 0), "dilation_w_factor": (4, "i", 1), "dilation_h_factor": (5, "i", 1)}
_DEPTHWISE = {
    **_WINDOW,
    "depth_multiplier": (3, "i", 0),
    _ACTIVATION: (4, "b", 0),
    "dilation_w_factor": (5, "i", 1),
    "dilation_h_factor": (6, "i", 1),
}
_POOL = {**_WINDOW, "filter_width": (3, "i", 0), "filter_height": (4, "i", 0), _ACTIVATION: (5, "b", 0)}
_ADD = {_ACTIVATION: (0, "b", 0), "pot_scale_int16": (1, "b", 1)}
_SLICE = {
    "begin_mask": (0, "i", 0),
    "end_mask": (1, "i", 0),
    "ellipsis_mask": (2, "i", 0),
    "new_axis_mask": (3, "i", 0),
    "shrink_axis_mask": (4, "i", 0),
    "offset": (5, "b", 0),
}
_LSTM = {_ACTIVATION: (0, "b", 0), "cell_clip": (1, "f", 0.0), "proj_clip": (2, "f", 0.0), "time_major": (3, "b", 0)}
_FULL = {_ACTIVATION: (0, "b", 0), "weights_format": (1, "b", 0), "keep_num_dims": (2, "b", 0)}
#: By operator: its number, the number of its options, and of each option the field, `struct` kind and default.
OPERATORS: dict[str, tuple[int, int, dict[str, tuple[int, str, Any]]]] = {
    "ADD": (0, 11, _ADD),
    "AVERAGE_POOL_2D": (1, 5, _POOL),
    "CONCATENATION": (2, 10, {"axis": (0, "i", 0), _ACTIVATION: (1, "b", 0)}),
    "CONV_2D": (3, 1, _CONV),
    "DEPTHWISE_CONV_2D": (4, 2, _DEPTHWISE),
    "DEQUANTIZE": (6, 38, {}),
    "FULLY_CONNECTED": (9, 8, _FULL),
    "LOGISTIC": (14, 0, {}),
    "MAX_POOL_2D": (17, 5, _POOL),
    "MUL": (18, 21, {_ACTIVATION: (0, "b", 0)}),
    "RELU": (19, 0, {}),
    "RELU_N1_TO_1": (20, 0, {}),
    "RELU6": (21, 0, {}),
    "RESHAPE": (22, 17, {"new_shape": (0, "ints", None)}),
    "RESIZE_BILINEAR": (23, 15, {"align_corners": (2, "b", 0), "half_pixel_centers": (3, "b", 0)}),
    "SOFTMAX": (25, 9, {"beta": (0, "f", 0.0)}),
    "SVDF": (27, 6, {"rank": (0, "i", 0), _ACTIVATION: (1, "b", 0)}),
    "TANH": (28, 0, {}),
    "CUSTOM": (32, 0, {}),
    "PAD": (34, 22, {}),
    "GATHER": (36, 23, {"axis": (0, "i", 0), "batch_dims": (1, "i", 0)}),
    "TRANSPOSE": (39, 26, {}),
    "MEAN": (40, 27, {"keep_dims": (0, "b", 0)}),
    "SUB": (41, 28, _ADD),
    "SQUEEZE": (43, 30, {"squeeze_dims": (0, "ints", None)}),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": (44, 71, _LSTM),
    "STRIDED_SLICE": (45, 32, _SLICE),
    "EXP": (47, 33, {}),
    "SPLIT": (49, 35, {"num_splits": (0, "i", 0)}),
    "PRELU": (54, 0, {}),
    "PADV2": (60, 43, {}),
    "SLICE": (65, 47, {}),
    "TRANSPOSE_CONV": (67, 49, {**_WINDOW, _ACTIVATION: (3, "b", 0)}),
    "EXPAND_DIMS": (70, 52, {}),
    "PACK": (83, 59, {"values_count": (0, "i", 0), "axis": (1, "i", 0)}),
    "UNPACK": (88, 64, {"num": (0, "i", 0), "axis": (1, "i", 0)}),
    "RESIZE_NEAREST_NEIGHBOR": (97, 74, {"align_corners": (0, "b", 0), "half_pixel_centers": (1, "b", 0)}),
    "LEAKY_RELU": (98, 75, {"alpha": (0, "f", 0.0)}),
    "SPLIT_V": (102, 79, {"num_splits": (0, "i", 0)}),
    "QUANTIZE": (114, 89, {}),
    "HARD_SWISH": (117, 91, {}),
    "WHILE": (119, 93, {}),
    "CALL_ONCE": (129, 103, {"init_subgraph_index": (0, "i", 0)}),
    "VAR_HANDLE": (142, 111, {"container": (0, "text", ""), "shared_name": (1, "text", "")}),
    "READ_VARIABLE": (143, 112, {}),
    "ASSIGN_VARIABLE": (144, 113, {}),
}


@dataclass(frozen=True)
class Scalar:
    """A number in a table. kind: of `struct`."""

    kind: str
    value: float


#: What a field of a table holds: a number, a text, a vector of numbers, a table, or a vector of tables.
Value = Any
Table = dict[int, Value]
#: Values still to be written, each with the places that refer to it.
Waiting = list[tuple[list[int], Value]]


def encode(root: Table) -> bytes:
    """A flatbuffer of the table, with the identifier of TFLite. Tables come before those to which they refer.

    A table that is in a list more than once is written once.
    """
    out = bytearray(b"\0\0\0\0TFL3")
    waiting: Waiting = [([0], root)]
    while waiting:
        places, value = waiting.pop()
        target = _append(out, value, waiting)
        for place in places:
            struct.pack_into("<I", out, place, target - place)
    return bytes(out)


def _align(out: bytearray, width: int, ahead: int = 0) -> None:
    out.extend(bytes(-(len(out) + ahead) % width))


def _append(out: bytearray, value: Value, waiting: Waiting) -> int:
    """The place of the value at the end of `out`; its references are added to `waiting`."""
    if isinstance(value, dict):
        return _append_table(out, value, waiting)
    if isinstance(value, list):
        _align(out, 4)
        start = len(out)
        out.extend(struct.pack("<I", len(value)) + bytes(4 * len(value)))
        by_identity: dict[int, tuple[list[int], Value]] = {}
        for n, inner in enumerate(value):
            by_identity.setdefault(id(inner), ([], inner))[0].append(start + 4 + 4 * n)
        waiting.extend(reversed(by_identity.values()))
        return start
    content = value.encode() + b"\0" if isinstance(value, str) else np.ascontiguousarray(value).tobytes()
    elements = len(content) - 1 if isinstance(value, str) else np.size(value)
    _align(out, 16 if len(content) >= 16 else 8, 4)
    start = len(out)
    out.extend(struct.pack("<I", elements) + content)
    return start


def _append_table(out: bytearray, table: Table, waiting: Waiting) -> int:
    slots = [0] * (max(table, default=-1) + 1)
    body = bytearray(4)
    references = []
    for number, value in sorted(table.items()):
        packed = struct.pack("<" + value.kind, value.value) if isinstance(value, Scalar) else bytes(4)
        body.extend(bytes(-len(body) % len(packed)))
        slots[number] = len(body)
        if not isinstance(value, Scalar):
            references.append((len(body), value))
        body.extend(packed)
    listed = struct.pack(f"<{2 + len(slots)}H", 4 + 2 * len(slots), len(body), *slots)
    _align(out, 8, len(listed))
    start = len(out) + len(listed)
    out.extend(listed)
    struct.pack_into("<i", body, 0, len(listed))
    out.extend(body)
    waiting.extend(([start + offset], value) for offset, value in reversed(references))
    return start


@dataclass
class Tensor:
    """A tensor to be written. scale, zero_point: of all its elements, or one for each channel along `axis`."""

    shape: tuple[int, ...]
    type: str
    scale: Array | None = None
    zero_point: Array | int = 0
    axis: int = 0
    buffer: int = 0
    is_variable: bool = False
    name: str = ""

    def table(self) -> Table:
        fields: Table = {
            0: np.array(self.shape, "<i4"),
            1: Scalar("b", TYPES[self.type]),
            2: Scalar("I", self.buffer),
            3: self.name,
        }
        if self.scale is not None:
            scale = np.atleast_1d(np.asarray(self.scale, "<f4"))
            zero = np.broadcast_to(np.asarray(self.zero_point, "<i8"), scale.shape)
            fields[4] = {2: scale, 3: zero, 6: Scalar("i", self.axis)}
        if self.is_variable:
            fields[5] = Scalar("b", 1)
        return fields


@dataclass
class Operator:
    name: str
    inputs: list[int]
    outputs: list[int]
    options: dict[str, Any]
    intermediates: list[int]

    def table(self, code: int) -> Table:
        _, kind, schema = OPERATORS[self.name]
        unknown = set(self.options) - set(schema)
        assert not unknown, (self.name, unknown)
        fields: Table = {0: Scalar("I", code), 1: np.array(self.inputs, "<i4"), 2: np.array(self.outputs, "<i4")}
        if kind:
            fields[3] = Scalar("B", kind)
            fields[4] = {
                number: _option(key, form, self.options[key])
                for key, (number, form, default) in schema.items()
                if self.options.get(key, default) != default
            }
        if self.intermediates:
            fields[8] = np.array(self.intermediates, "<i4")
        return fields


def _option(key: str, form: str, value: Any) -> Value:
    if form == "ints":
        return np.array(value, "<i4")
    if form == "text":
        return value
    names = {"padding": PADDINGS, _ACTIVATION: ACTIVATIONS}.get(key, {})
    return Scalar(form, names.get(value, value))


@dataclass
class Graph:
    """A graph that grows. `tensor` and `operator` return numbers of tensors."""

    writer: Writer
    tensors: list[Tensor] = field(default_factory=list)
    operators: list[Operator] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)

    def tensor(
        self,
        shape: Sequence[int],
        type: str,
        scale: Any = None,
        zero_point: Any = 0,
        *,
        data: Any = None,
        axis: int = 0,
        is_variable: bool = False,
        name: str = "",
    ) -> int:
        """Add a tensor; data: elements of a constant."""
        buffer = 0 if data is None else self.writer.buffer(np.asarray(data).astype(type).tobytes())
        number = len(self.tensors)
        self.tensors.append(
            Tensor(
                tuple(int(n) for n in shape), type, scale, zero_point, axis, buffer, is_variable, name or f"t{number}"
            )
        )
        return number

    def integers(self, values: Any) -> int:
        """Add a constant of int32."""
        array = np.asarray(values)
        return self.tensor(array.shape, "int32", data=array)

    def operator(
        self,
        name: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        *,
        intermediates: Sequence[int] = (),
        **options: Any,
    ) -> int:
        """Add an operator and return its first output, -1 if it has none. Options by their names in the schema."""
        self.operators.append(Operator(name, list(inputs), list(outputs), options, list(intermediates)))
        return outputs[0] if outputs else -1


class Writer:
    """A file that grows. A runtime runs its first graph."""

    def __init__(self) -> None:
        self.buffers: list[bytes] = [b""]
        self.graphs: list[Graph] = []
        #: Names of (inputs, outputs) of the first graph, as the signature gives them.
        self.signature: tuple[list[str], list[str]] | None = None

    def buffer(self, data: bytes) -> int:
        self.buffers.append(data)
        return len(self.buffers) - 1

    def graph(self) -> Graph:
        self.graphs.append(Graph(self))
        return self.graphs[-1]

    def table(self) -> Table:
        """The root table of the file."""
        names = sorted({operator.name for graph in self.graphs for operator in graph.operators})
        graphs = [
            {
                0: [tensor.table() for tensor in graph.tensors],
                1: np.array(graph.inputs, "<i4"),
                2: np.array(graph.outputs, "<i4"),
                3: [operator.table(names.index(operator.name)) for operator in graph.operators],
            }
            for graph in self.graphs
        ]
        codes = [
            {0: Scalar("b", min(number, 127)), 2: Scalar("i", 1), 3: Scalar("i", number)}
            for number in (OPERATORS[name][0] for name in names)
        ]
        buffers = [{0: np.frombuffer(data, np.uint8)} if data else {} for data in self.buffers]
        root: Table = {0: Scalar("I", 3), 1: codes, 2: graphs, 3: "written by a test", 4: buffers}
        if self.signature:
            graph = self.graphs[0]
            maps = [
                [{0: name, 1: Scalar("I", index)} for name, index in zip(names, indices, strict=True)]
                for names, indices in zip(self.signature, (graph.inputs, graph.outputs), strict=True)
            ]
            root[7] = [{0: maps[0], 1: maps[1], 2: "serving_default"}]
        return root

    def bytes(self) -> bytes:
        return encode(self.table())
