"""A TFLite file as data: graphs, tensors and operators with their options, checked as far as they are used."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hlsgen.diagnostics import Collector, fail
from hlsgen.frontend.load import MAX_ELEMENTS, MAX_FILE_BYTES, read_bytes
from hlsgen.frontend.tflite.flatbuffer import Flatbuffer, Malformed, Table
from hlsgen.frontend.tflite.schema import (
    HANDLES,
    OPERATORS,
    OPTIONS,
    PLAIN_TYPES,
    QUANTIZATION_DETAILS,
    TYPES,
    Option,
    is_tflite,
)
from hlsgen.ir.model import Shape
from hlsgen.numerics.fixed import Array

#: The runtimes' own bound of dimensions.
MAX_RANK = 8
_AGAIN = "Export or download the file again."
#: Operators that run other graphs.
_CALLS = frozenset({"CALL", "CALL_ONCE", "IF", "WHILE", "STABLEHLO_WHILE", "STABLEHLO_CASE", "STABLEHLO_COMPOSITE"})


@dataclass(frozen=True, eq=False)
class Quantization:
    """Scales and zero points as the file has them, not checked: real files have wrong ones that nothing uses.

    scale: float32 (n,). zero_point: int64 (n,). axis: of one scale for each channel.
    """

    scale: Array
    zero_point: Array
    axis: int


@dataclass(frozen=True, eq=False)
class TfliteTensor:
    """A tensor. type: as in `schema.TYPES`. data: elements of a constant, of its shape; else None.

    unsupported: why no operator may use it, else empty.
    """

    name: str
    shape: Shape
    type: str
    data: Array | None
    quantization: Quantization | None
    is_variable: bool
    unsupported: str


@dataclass(frozen=True)
class TfliteOperator:
    """An operator. name: as in `schema.OPERATORS`. node: its name in diagnostics. custom: the name of a CUSTOM one.

    inputs, intermediates: numbers of tensors, or -1 for absent ones. options: values by their names in the schema.
    """

    name: str
    node: str
    version: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    intermediates: tuple[int, ...]
    options: Mapping[str, Any]
    custom: str


@dataclass(frozen=True)
class TfliteGraph:
    """Tensors, operators in their order of execution, and the numbers of the tensors that are inputs and outputs."""

    name: str
    tensors: tuple[TfliteTensor, ...]
    operators: tuple[TfliteOperator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class TfliteFile:
    """A file; a runtime runs its first graph.

    input_names, output_names: of the first graph, from the file's signature or its tensors; each name is there once.
    """

    version: int
    description: str
    graphs: tuple[TfliteGraph, ...]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]


def read_file(source: Path | bytes, label: str) -> TfliteFile:
    """The file, from its path or its bytes. label: its name in diagnostics.

    Raises HlsgenError: HG001 unreadable, HG002 malformed, HG003 data elsewhere, HG004 too large; HG012, HG013, HG015,
    HG026 for operators and tensors of forms that nothing here supports.
    """
    data = read_bytes(source) if isinstance(source, Path) else source
    if len(data) > MAX_FILE_BYTES:
        raise fail("HG004", label, f"the file has {len(data)} bytes.", f"At most {MAX_FILE_BYTES} bytes are read.")
    if not is_tflite(data):
        raise fail("HG002", label, "not a TFLite file: it does not have TFL3 at byte 4.", _AGAIN)
    with _reading(label):
        return _file(Flatbuffer(data), label)


@contextmanager
def _reading(owner: str) -> Iterator[None]:
    """Raises HG002 with the owner's name for Malformed."""
    try:
        yield
    except Malformed as error:
        raise fail("HG002", owner, str(error), _AGAIN) from None


def _file(flatbuffer: Flatbuffer, label: str) -> TfliteFile:
    root = flatbuffer.root()
    version = root.integer(0, "I")
    if version != 3:
        raise fail("HG002", label, f"version {version} of the TFLite schema.", "Version 3 is supported.")
    codes = [_operator_code(table) for table in root.tables(1)]
    buffers, tables = root.tables(4), root.tables(2)
    graphs = tuple(_graph(table, codes, buffers, n) for n, table in enumerate(tables))
    if not graphs or not graphs[0].operators:
        raise fail("HG002", label, "no graph with at least one operator in it.", _AGAIN)
    _check_dynamic_inputs(tables[0], graphs[0])
    for graph in graphs:
        _check_calls(graph, graphs)
        _check_order(graph)
        _check_supported(graph)
    inputs, outputs = _signature(root, graphs[0])
    return TfliteFile(version, root.text(3), graphs, inputs, outputs)


def _operator_code(table: Table) -> tuple[str, int, str]:
    """(name, version, custom name) of a kind of operator."""
    number = max(table.integer(0, "b"), table.integer(3, "i"))
    name = OPERATORS[number] if 0 <= number < len(OPERATORS) else f"operator {number}"
    return name, table.integer(2, "i", 1), table.text(1) if name == "CUSTOM" else ""


def _graph(table: Table, codes: list[tuple[str, int, str]], buffers: list[Table], number: int) -> TfliteGraph:
    prefix = f"graph {number}, " if number else ""
    with _reading(f"graph {number}"):
        tensors = tuple(_tensor(t, buffers, f"{prefix}tensor {n}") for n, t in enumerate(table.tables(0)))
        inputs, outputs = (_indices(table, field, len(tensors)) for field in (1, 2))
        tables = table.tables(3)
        written = [_indices(operator, 2, len(tensors)) for operator in tables]
        names = [tensors[first[0]].name if first else "" for first in written]
        count = Counter(names)
        nodes = [name if name and count[name] == 1 else f"{prefix}OP_{n}" for n, name in enumerate(names)]
        operators = tuple(
            _operator(t, node, codes, first, len(tensors))
            for t, node, first in zip(tables, nodes, written, strict=True)
        )
        return TfliteGraph(table.text(4), tensors, operators, inputs, outputs)


def _indices(table: Table, field: int, tensors: int, optional: bool = False) -> tuple[int, ...]:
    """Numbers of tensors. optional: -1 is an absent one."""
    indices = table.integers(field)
    for index in indices:
        if not (0 <= index < tensors or (optional and index == -1)):
            raise Malformed(f"it refers to tensor {index}; the graph has {tensors}.")
    return indices


def _tensor(table: Table, buffers: list[Table], place: str) -> TfliteTensor:
    with _reading(place):
        owner = table.text(3) or place
    with _reading(owner):
        kind, shape = _type(table), table.integers(0)
        if len(shape) > MAX_RANK:
            raise Malformed(f"{len(shape)} dimensions; the runtimes have at most {MAX_RANK}.")
        if any(size < 0 for size in shape):
            raise Malformed(f"a dimension of the tensor's shape {list(shape)} is negative.")
        if math.prod(shape) > MAX_ELEMENTS:
            text = f"a tensor of shape {list(shape)} has {math.prod(shape)} elements."
            raise fail("HG004", owner, text, f"At most {MAX_ELEMENTS} are supported.")
        quantization, unsupported = _quantization(table.table(4))
        if kind not in PLAIN_TYPES | HANDLES:
            unsupported = f"elements of type {kind}"
        elif table.has(6):
            unsupported = "sparse elements"
        elif table.integer(10, "I"):
            unsupported = "data in another file"
        data = _data(buffers, table.integer(2, "I"), kind, shape, owner)
        return TfliteTensor(table.text(3), shape, kind, data, quantization, bool(table.integer(5, "b")), unsupported)


def _type(table: Table) -> str:
    number = table.integer(1, "b")
    if not 0 <= number < len(TYPES):
        raise Malformed(f"type {number} of elements is not in the schema.")
    return TYPES[number]


def _quantization(table: Table | None) -> tuple[Quantization | None, str]:
    """The quantization, None without scales, and why it is not supported."""
    if table is None:
        return None, ""
    scale, zero_point = table.view(2, np.float32), table.view(3, np.int64)
    details = table.integer(4, "B")
    unsupported = f"quantization {QUANTIZATION_DETAILS.get(details, f'of kind {details}')}" if details else ""
    if scale is None or not len(scale):
        return None, unsupported
    if zero_point is None:
        zero_point = np.zeros(0, np.int64)
    return Quantization(scale, zero_point, table.integer(6, "i")), unsupported


def _data(buffers: list[Table], index: int, kind: str, shape: Shape, owner: str) -> Array | None:
    """The elements of a constant. Packed elements and texts stay bytes, uint8 (n,)."""
    if index >= len(buffers):
        raise Malformed(f"its data is in buffer {index}; the file has {len(buffers)}.")
    buffer = buffers[index]
    if buffer.integer(1, "Q") > 1 or buffer.integer(2, "Q") > 1:
        text = f"its data in buffer {index} is behind the flatbuffer."
        raise fail("HG003", owner, text, "Not every runtime reads it there: save the model with its data inside.")
    content = buffer.view(0, np.uint8)
    elements = math.prod(shape)
    if content is None or not len(content):
        return np.zeros(shape, kind) if kind in PLAIN_TYPES and not elements else None
    if not index:
        raise Malformed("its data is in buffer 0, which stands for no data.")
    if kind not in PLAIN_TYPES:
        return content
    dtype = np.dtype(kind).newbyteorder("<")
    if len(content) != elements * dtype.itemsize:
        needed = elements * dtype.itemsize
        raise Malformed(f"its buffer has {len(content)} bytes; shape {list(shape)} of {kind} needs {needed}.")
    if kind == "bool":
        buffer.spend(elements)
        return np.asarray(content != 0).reshape(shape)
    return np.asarray(content.view(dtype)).reshape(shape)


def _operator(
    table: Table, node: str, codes: list[tuple[str, int, str]], outputs: tuple[int, ...], tensors: int
) -> TfliteOperator:
    with _reading(node):
        code = table.integer(0, "I")
        if code >= len(codes):
            raise Malformed(f"its operator code is {code}; the file has {len(codes)}.")
        name, version, custom = codes[code]
        inputs, intermediates = (_indices(table, field, tensors, optional=True) for field in (1, 8))
        return TfliteOperator(name, node, version, inputs, outputs, intermediates, _options(table, name), custom)


def _options(table: Table, name: str) -> Mapping[str, Any]:
    """The options by name; the schema's defaults if the operator has none. Options of CUSTOM are never parsed."""
    options = OPTIONS.get(name)
    if options is None:
        return {}
    kind = table.integer(3, "B")
    if kind not in (0, options.type):
        raise Malformed(f"{name} has options of kind {kind}; its own are of kind {options.type}.")
    fields = table.table(4) if kind else None
    return {key: _option(fields, key, option) for key, option in options.fields.items()}


def _option(table: Table | None, key: str, option: Option) -> Any:
    """The value of an option, its default if the operator has no table of options."""
    if table is None:
        return option.default
    match option.kind:
        case "int32":
            return table.integer(option.number, "i", option.default)
        case "bool":
            return bool(table.integer(option.number, "b", option.default))
        case "float32":
            real = table.real(option.number, option.default)
            if not math.isfinite(real):
                raise Malformed(f"option {key} is {real}.")
            return real
        case "name":
            index = table.integer(option.number, "b", option.names.index(option.default))
            if not 0 <= index < len(option.names):
                raise Malformed(f"option {key} is {index}; the schema has {', '.join(option.names)}.")
            return option.names[index]
        case "text":
            return table.text(option.number)
        case "int32s":
            return table.integers(option.number)


def _check_dynamic_inputs(table: Table, graph: TfliteGraph) -> None:
    """Raises HG012 for inputs with an open dimension other than the first: shapes inside follow from the inputs."""
    problems = Collector()
    tensors = table.tables(0)
    for index in graph.inputs:
        signature = tensors[index].integers(7)
        if len(signature) == len(graph.tensors[index].shape) and any(size < 0 for size in signature[1:]):
            text = f"the input has the shape {list(signature)}: dimensions of -1 are open."
            problems.error("HG012", graph.tensors[index].name, text)
    problems.finish()


def _check_calls(graph: TfliteGraph, graphs: Sequence[TfliteGraph]) -> None:
    """Raises HG002 or HG015 for operators that run other graphs, beside CALL_ONCE of one that runs none."""
    for operator in graph.operators:
        if operator.name != "CALL_ONCE":
            continue
        index = operator.options["init_subgraph_index"]
        if not 0 < index < len(graphs):
            raise fail("HG002", operator.node, f"CALL_ONCE of graph {index}; the file has {len(graphs)}.", _AGAIN)
        inner = next((inside for inside in graphs[index].operators if inside.name in _CALLS), None)
        if inner is not None:
            text = f"CALL_ONCE of graph {index}, which has {inner.name} in it."
            raise fail("HG015", operator.node, text, "The graph of CALL_ONCE cannot run others.")


def _check_order(graph: TfliteGraph) -> None:
    """Raises HG002 unless each tensor has one origin, and operators come after those whose results they use."""
    origins = {index for index, tensor in enumerate(graph.tensors) if tensor.data is not None or tensor.is_variable}
    constants = frozenset(origins)

    def write(indices: Sequence[int], owner: str) -> None:
        for index in indices:
            if index in origins and graph.tensors[index].shape.count(0) == 0:
                origin = "a constant or a variable" if index in constants else "written before"
                raise fail("HG002", owner, f"its result {graph.tensors[index].name!r} is {origin}.", _AGAIN)
            origins.add(index)

    def read(indices: Sequence[int], owner: str) -> None:
        for index in indices:
            if index != -1 and index not in origins:
                text = f"it uses {graph.tensors[index].name!r} before any operator computes it."
                raise fail("HG002", owner, text, _AGAIN)

    write(graph.inputs, "input")
    for operator in graph.operators:
        read(operator.inputs, operator.node)
        write(operator.outputs, operator.node)
    read(graph.outputs, "output")


def _check_supported(graph: TfliteGraph) -> None:
    """Raises HG026 for operators with tensors whose elements are not read, HG013 for weights in another order."""
    problems = Collector()
    for operator in graph.operators:
        for index in (*operator.inputs, *operator.outputs):
            tensor = graph.tensors[index]
            if index != -1 and tensor.unsupported:
                text = f"{operator.custom or operator.name}: {tensor.name!r} has {tensor.unsupported}."
                problems.error("HG026", operator.node, text, "Convert the model to int8, without other packing.")
        weights_format = operator.options.get("weights_format", "DEFAULT")
        if weights_format != "DEFAULT":
            text = f"{operator.name}: weights in the order {weights_format}."
            problems.error("HG013", operator.node, text, "Convert the model with weights in the default order.")
    problems.finish()


def _signature(root: Table, graph: TfliteGraph) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of inputs and outputs of the first graph: of its first signature if it names them all, else of tensors."""
    named: list[dict[int, str]] = [{}, {}]
    for signature in root.tables(7):
        if signature.integer(4, "I") == 0:
            named = [{t.integer(1, "I"): t.text(0) for t in signature.tables(field)} for field in (0, 1)]
            break
    used: set[str] = set()
    return (
        _distinct(graph.inputs, named[0], graph, "input", used),
        _distinct(graph.outputs, named[1], graph, "output", used),
    )


def _distinct(
    indices: Sequence[int], named: Mapping[int, str], graph: TfliteGraph, role: str, used: set[str]
) -> tuple[str, ...]:
    """A name for each tensor that is not yet in `used`; a number at its end makes it new."""
    complete = all(named.get(index) for index in indices)
    names = []
    for position, index in enumerate(indices):
        name = base = (named[index] if complete else graph.tensors[index].name) or f"{role}_{position}"
        number = 2
        while name in used:
            name, number = f"{base}_{number}", number + 1
        used.add(name)
        names.append(name)
    return tuple(names)
