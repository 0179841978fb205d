"""The second reader's view of a TFLite file: tables walked by a list of their fields, without the frontend's reader.

Fields are written as "name:kind@number=default". A kind is a letter of `struct`, s for a text, or the name of a table.
In brackets it is a list; an empty name of a table in brackets makes a list of places: "[@]".
"""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlsgen.numerics.fixed import Array

Record = dict[str, Any]
#: Tables by name, with the fields that are read.
_TABLES = {
    "Model": "codes:[Code]@1 graphs:[Graph]@2 buffers:[@]@4",
    "Code": "old:b@0 number:i@3",
    "Graph": "tensors:[Tensor]@0 inputs:[i]@1 outputs:[i]@2 operators:[Operator]@3",
    "Tensor": "shape:[i]@0 type:b@1 buffer:I@2 name:s@3 quantization:Quantization@4 variable:b@5",
    "Quantization": "scale:[f]@2 zero:[q]@3 axis:i@6",
    "Buffer": "data:[B]@0",
    "Operator": "code:I@0 inputs:[i]@1 outputs:[i]@2 options:B@3 intermediates:[i]@8",
}
_WINDOW = "same:b@0 across:i@1 down:i@2"
#: By the operator's number: its name and its options.
_OPERATORS = {
    0: ("ADD", "activation:b@0 powers:b@1=1"),
    1: ("AVERAGE_POOL_2D", f"{_WINDOW} width:i@3 height:i@4 activation:b@5"),
    2: ("CONCATENATION", "axis:i@0"),
    3: ("CONV_2D", f"{_WINDOW} activation:b@3 dilation_across:i@4=1 dilation_down:i@5=1"),
    4: ("DEPTHWISE_CONV_2D", f"{_WINDOW} multiplier:i@3 activation:b@4 dilation_across:i@5=1 dilation_down:i@6=1"),
    6: ("DEQUANTIZE", ""),
    9: ("FULLY_CONNECTED", "activation:b@0"),
    14: ("LOGISTIC", ""),
    17: ("MAX_POOL_2D", f"{_WINDOW} width:i@3 height:i@4 activation:b@5"),
    18: ("MUL", "activation:b@0"),
    19: ("RELU", ""),
    20: ("RELU_N1_TO_1", ""),
    21: ("RELU6", ""),
    22: ("RESHAPE", ""),
    23: ("RESIZE_BILINEAR", "aligned:b@2 half:b@3"),
    25: ("SOFTMAX", "beta:f@0"),
    27: ("SVDF", "rank:i@0"),
    28: ("TANH", ""),
    34: ("PAD", ""),
    39: ("TRANSPOSE", ""),
    36: ("GATHER", "axis:i@0 lead:i@1"),
    40: ("MEAN", ""),
    41: ("SUB", "activation:b@0 powers:b@1=1"),
    43: ("SQUEEZE", ""),
    44: ("UNIDIRECTIONAL_SEQUENCE_LSTM", "clip:f@1 time_major:b@3"),
    45: ("STRIDED_SLICE", "begin_mask:i@0 end_mask:i@1 ellipsis:i@2 new_axis:i@3 shrink:i@4 offset:b@5"),
    49: ("SPLIT", ""),
    54: ("PRELU", ""),
    60: ("PADV2", ""),
    65: ("SLICE", ""),
    67: ("TRANSPOSE_CONV", _WINDOW),
    70: ("EXPAND_DIMS", ""),
    83: ("PACK", "axis:i@1"),
    88: ("UNPACK", "axis:i@1"),
    97: ("RESIZE_NEAREST_NEIGHBOR", "aligned:b@0 half:b@1"),
    98: ("LEAKY_RELU", "alpha:f@0"),
    102: ("SPLIT_V", ""),
    114: ("QUANTIZE", ""),
    117: ("HARD_SWISH", ""),
    129: ("CALL_ONCE", ""),
    142: ("VAR_HANDLE", "container:s@0 variable:s@1"),
    143: ("READ_VARIABLE", ""),
    144: ("ASSIGN_VARIABLE", ""),
}
_TYPES = {0: "float32", 2: "int32", 3: "uint8", 4: "int64", 7: "int16", 9: "int8"}


@dataclass(frozen=True, eq=False)
class Tensor:
    """scale float32 (n,), zero int64 (n,), axis: as in the file. codes: a constant's elements, else None."""

    name: str
    shape: tuple[int, ...]
    type: str
    scale: Array
    zero: Array
    axis: int
    codes: Array | None

    @property
    def one_scale(self) -> np.float32:
        scale: np.float32 = self.scale[0]
        return scale

    @property
    def one_zero(self) -> int:
        return int(self.zero[0]) if len(self.zero) else 0


@dataclass(frozen=True)
class Operator:
    """kind: "" for operators that are not read a second time. node: its name in diagnostics."""

    kind: str
    node: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Record
    intermediates: tuple[int, ...] = ()


class FileRecords:
    """The first graph of a TFLite file. Raises ValueError or struct.error for bytes that are none."""

    def __init__(self, data: bytes) -> None:
        self._view = memoryview(data)
        root = self._record(_number(self._view, 0, "I"), _TABLES["Model"])
        graph = root["graphs"][0]
        self.tensors = [self._tensor(record, root["buffers"]) for record in graph["tensors"]]
        self.inputs, self.outputs = tuple(graph["inputs"]), tuple(graph["outputs"])
        first = [record["outputs"][0] if record["outputs"] else -1 for record in graph["operators"]]
        count = Counter(self.tensors[n].name for n in first if n >= 0)
        self.operators = []
        for n, record in enumerate(graph["operators"]):
            name = self.tensors[first[n]].name if first[n] >= 0 else ""
            code = root["codes"][record["code"]]
            kind, fields = _OPERATORS.get(max(code["old"], code["number"]), ("", ""))
            place = record["place"]
            options = {part.partition(":")[0]: _default(part) for part in fields.split()}
            if fields and record["options"] and _slot(self._view, place, 4):
                options = self._record(self._follow(place, 4), fields)
            node = name if name and count[name] == 1 else f"OP_{n}"
            inputs, outputs, inner = (tuple(record[part]) for part in ("inputs", "outputs", "intermediates"))
            self.operators.append(Operator(kind, node, inputs, outputs, options, inner))

    @property
    def used_inputs(self) -> tuple[int, ...]:
        """The graph's inputs that its outputs or variables depend on."""
        used = set(self.outputs)
        for operator in reversed(self.operators):
            if operator.kind == "ASSIGN_VARIABLE" or used & set(operator.outputs):
                used.update(operator.inputs)
        return tuple(n for n in self.inputs if n in used)

    def _tensor(self, record: Record, buffers: list[int]) -> Tensor:
        quantization = record["quantization"] or {"scale": [], "zero": [], "axis": 0}
        kind, data = _TYPES.get(record["type"], ""), self._record(buffers[record["buffer"]], _TABLES["Buffer"])["data"]
        shape = tuple(int(n) for n in record["shape"])
        codes = None
        if len(data) and kind:
            codes = np.frombuffer(bytes(data), np.dtype(kind).newbyteorder("<")).reshape(shape)
        return Tensor(
            record["name"],
            shape,
            kind,
            np.array(quantization["scale"], np.float32),
            np.array(quantization["zero"], np.int64),
            quantization["axis"],
            codes,
        )

    def _follow(self, table: int, number: int) -> int:
        place = table + _slot(self._view, table, number)
        offset: int = _number(self._view, place, "I")
        return place + offset

    def _record(self, table: int, fields: str) -> Record:
        record: Record = {"place": table}
        for part in fields.split():
            name, _, form = part.partition(":")
            kind, _, number = form.partition("=")[0].rpartition("@")
            offset = _slot(self._view, table, int(number))
            record[name] = self._value(table + offset, kind) if offset else _default(part)
        return record

    def _value(self, place: int, kind: str) -> Any:
        if len(kind) == 1 and kind != "s":
            return _number(self._view, place, kind)
        place += _number(self._view, place, "I")
        if kind in _TABLES:
            return self._record(place, _TABLES[kind])
        length, start = _number(self._view, place, "I"), place + 4
        if kind == "s":
            return bytes(self._view[start : start + length]).decode("utf-8", "backslashreplace")
        inner = kind[1:-1]
        if inner == "B":
            return self._view[start : start + length]
        if inner == "@" or inner in _TABLES:
            offsets = struct.unpack_from(f"<{length}I", self._view, start)
            places = [start + 4 * n + offset for n, offset in enumerate(offsets)]
            return places if inner == "@" else [self._record(p, _TABLES[inner]) for p in places]
        return list(struct.unpack_from(f"<{length}{inner}", self._view, start))


def _number(view: memoryview, place: int, kind: str) -> Any:
    return struct.unpack_from("<" + kind, view, place)[0]


def _slot(view: memoryview, table: int, number: int) -> int:
    """The offset of a field in its table, 0 for an absent one."""
    fields = table - int(_number(view, table, "i"))
    size: int = _number(view, fields, "H")
    offset: int = _number(view, fields + 4 + 2 * number, "H") if 4 + 2 * number < size else 0
    return offset


def _default(part: str) -> Any:
    kind, _, default = part.partition(":")[2].partition("=")
    kind = kind.rpartition("@")[0]
    if kind[0] == "[":
        return []
    if kind == "s":
        return ""
    return None if kind in _TABLES else int(default or 0)
