"""Reading of untrusted model files: bounded, and never outside the file's folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from onnx import GraphProto, NodeProto, TensorProto, helper

from hlsgen.diagnostics import Collector, Diagnostic, HlsgenError, fail
from hlsgen.frontend.chosen_outputs import cut_to
from hlsgen.frontend.foreign_attributes import drop_foreign_attributes
from hlsgen.frontend.local_functions import inlined
from hlsgen.frontend.tflite.schema import is_tflite

#: Bounds of a file, of a tensor, and of a graph.
MAX_FILE_BYTES = 1 << 30
MAX_ELEMENTS = 1 << 27
MAX_NODES = 100_000
#: Maximum number of names in a message.
_LISTED = 5


def read_model(path: Path, problems: Collector | None = None, outputs: Sequence[str] = ()) -> onnx.ModelProto:
    """Parse `path` and read its external tensor data, from the model's own folder only.

    Calls of the model's own functions are replaced by their nodes. Attributes of other tools on standard nodes are
    removed, with a warning in `problems`. The graph is cut to `outputs` if there are any. Raises HlsgenError with
    HG001..HG004, HG010, HG015, HG040.
    """
    model = _parse(path, read_bytes(path), outputs)
    foreign = drop_foreign_attributes(model.graph)
    if foreign and problems is not None:
        problems.items.append(foreign)
    return model


def read_bytes(path: Path) -> bytes:
    """The bytes of a model file. Raises HG001, HG004."""
    try:
        if path.is_dir():
            inside = sorted(
                file.name for pattern in ("*.onnx", "*.tflite", "*.alir.json") for file in path.glob(pattern)
            )[:3]
            hint = (
                f"Name a file in it: {', '.join(str(path / name) for name in inside)}."
                if inside
                else "Name an .onnx, .tflite or .alir.json file."
            )
            raise fail("HG001", str(path), "is a directory, not a model file.", hint)
        if not path.is_file():
            raise fail("HG001", str(path), "no such file.", "Give the path of an .onnx, .tflite or .alir.json file.")
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            hint = f"At most {MAX_FILE_BYTES} bytes are read: keep large tensors in external data files."
            raise fail("HG004", str(path), f"the file has {size} bytes.", hint)
        return path.read_bytes()
    except (OSError, ValueError) as error:
        text = f"the file cannot be read: {getattr(error, 'strerror', None) or error}."
        raise fail("HG001", str(path), text, "Check the path and its permissions.") from None


def _message(path: Path, data: bytes) -> onnx.ModelProto:
    """The parsed protobuf message. Raises HG002."""
    if is_tflite(data):
        hint = "TFLite files are quantized by their converter; build them as they are."
        raise fail("HG002", str(path), "is a TFLite file, where an ONNX file is needed.", hint)
    try:
        model: onnx.ModelProto = onnx.ModelProto.FromString(data)
        return model
    except DecodeError:
        text = "no ONNX, TFLite or ALIR file, or cut short."
        raise fail("HG002", str(path), text, "Export or download the file again.") from None


def _parse(path: Path, data: bytes, outputs: Sequence[str] = ()) -> onnx.ModelProto:
    model = _message(path, data)
    wrong = next(_not_text(model), None)
    if wrong is not None:
        raise fail("HG002", str(path), f"the name {wrong[:80]!r} is not UTF-8 text.", "Export the model again.")
    if not model.HasField("graph") or not model.graph.node or not model.ir_version:
        raise fail(
            "HG002",
            str(path),
            "no ONNX graph with at least one node in it.",
            "Is this a model file? PyTorch files must be exported to ONNX first.",
        )
    if len(model.graph.node) > MAX_NODES:
        text = f"the graph has {len(model.graph.node)} nodes."
        raise fail("HG004", str(path), text, f"At most {MAX_NODES} are supported: simplify the model.")
    if outputs:
        cut_to(model.graph, outputs)
    problems, external = Collector(), 0
    missing: dict[str, list[str]] = {}
    for owner, tensor in chain(_tensors(model.graph), *(_tensors_of(f.node) for f in model.functions)):
        with problems.catching():
            elements = _check_shape(owner, tensor)
            if tensor.data_location == TensorProto.EXTERNAL:
                try:
                    external += _read_external(owner, tensor, path.parent, elements, MAX_FILE_BYTES - external)
                except _MissingFile as error:
                    missing.setdefault(error.location, []).append(owner)
    if missing:
        problems.items.append(_missing_files(path, missing))
    problems.finish()
    return inlined(model, path, MAX_NODES, MAX_FILE_BYTES)


class _MissingFile(Exception):
    """The model's folder has no file `location`."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.location = location


def _missing_files(path: Path, missing: dict[str, list[str]]) -> Diagnostic:
    """HG003 for all data files that do not exist. `missing`: by file the names of its tensors."""
    files = [f"{location[:80]!r} ({_listed(tensors)})" for location, tensors in missing.items()]
    subject = "this external data file does" if len(files) == 1 else f"{len(files)} external data files do"
    return Diagnostic(
        "HG003",
        str(path),
        f"{subject} not exist: {_listed(files)}.",
        "Put each at its place in the model's folder, or save the model with its data inside.",
    )


def _listed(names: list[str]) -> str:
    """The first names, and the number of the remaining ones."""
    omitted = len(names) - _LISTED
    return ", ".join(names) if omitted <= 0 else f"{', '.join(names[:_LISTED])} and {omitted} more"


def _not_text(message: Message) -> Iterator[bytes]:
    """Strings of the message that are not UTF-8, which protobuf returns as bytes."""
    for field, value in message.ListFields():
        parts = value if hasattr(value, "__len__") and not isinstance(value, (str, bytes)) else [value]
        if field.type == FieldDescriptor.TYPE_STRING:
            yield from (part for part in parts if isinstance(part, bytes))
        elif field.type == FieldDescriptor.TYPE_MESSAGE:
            for part in parts:
                yield from _not_text(part)


def _tensors(graph: GraphProto) -> Iterator[tuple[str, TensorProto]]:
    """(owner, tensor) of all initializers and of the attributes of all nodes, subgraphs included."""
    for tensor in graph.initializer:
        yield tensor.name, tensor
    yield from _tensors_of(graph.node)


def _tensors_of(nodes: Iterable[NodeProto]) -> Iterator[tuple[str, TensorProto]]:
    for node in nodes:
        owner = node.name or node.op_type
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield owner, attribute.t
            for tensor in attribute.tensors:
                yield owner, tensor
            for inner in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
                yield from _tensors(inner)


def self_contained(path: Path, outputs: Sequence[str] = ()) -> bytes:
    """The bytes of the file, cut to `outputs`, with any external data included. Raises HG001..HG004, HG040."""
    data = read_bytes(path)
    model = _message(path, data)
    if any(t.data_location == TensorProto.EXTERNAL for _, t in _tensors(model.graph)):
        model = read_model(path)
    elif not outputs:
        return data
    if outputs:
        cut_to(model.graph, outputs)
    contained: bytes = model.SerializeToString(deterministic=True)
    return contained


def _check_shape(owner: str, tensor: TensorProto) -> int:
    """The number of elements of a tensor. Raises HG002 or HG004."""
    elements = 1
    for dim in tensor.dims:
        elements *= dim
    shape = list(tensor.dims)
    if any(dim < 0 for dim in shape):
        text = f"a dimension of the tensor's shape {shape} is negative."
        raise fail("HG002", owner, text, "Export the model again.")
    if elements > MAX_ELEMENTS:
        text = f"a tensor of shape {shape} has {elements} elements."
        raise fail("HG004", owner, text, f"At most {MAX_ELEMENTS} are supported.")
    return elements


def _read_external(owner: str, tensor: TensorProto, folder: Path, elements: int, allowed: int) -> int:
    """Read the tensor's data into it and return the number of bytes.

    Raises HG003, HG004 for more than `allowed` bytes, or _MissingFile.
    """
    try:
        return _inline(owner, tensor, folder, elements, allowed)
    except (HlsgenError, _MissingFile):
        raise
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        hint = "Save the data inside the model."
        raise fail("HG003", owner, f"external data cannot be read: {error}.", hint) from None


def _inline(owner: str, tensor: TensorProto, folder: Path, elements: int, allowed: int) -> int:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    base = folder.resolve()
    file = (base / location).resolve()
    if not location or not file.is_relative_to(base):
        raise fail(
            "HG003",
            owner,
            f"its external data is in {location!r}, outside the model's folder.",
            "Put the data file beside the model, or save the model with its data inside.",
        )
    if not file.is_file():
        raise _MissingFile(location)
    offset, size = int(entries.get("offset", 0)), file.stat().st_size
    expected_length = elements * int(helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)
    length = int(entries.get("length", expected_length))
    if offset < 0 or length != expected_length or offset + length > size:
        text = f"external data at offset {offset}, length {length}, in {location!r} of {size} bytes; "
        text += f"shape {list(tensor.dims)} needs {expected_length} bytes."
        raise fail("HG003", owner, text, "Save the model and its data again.")
    if length > allowed:
        text = f"the external data of the model has more than {MAX_FILE_BYTES} bytes."
        raise fail("HG004", owner, text, "Larger models are not supported.")
    with file.open("rb") as stream:
        stream.seek(offset)
        tensor.raw_data = stream.read(length)
    tensor.data_location = TensorProto.DEFAULT
    del tensor.external_data[:]
    return length
