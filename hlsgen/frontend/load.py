"""Reading a model file that is not to be trusted: bounded, and never leaving its folder."""

from __future__ import annotations

from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto, helper, numpy_helper

from hlsgen.errors import Collector, fail
from hlsgen.fixed import Array

#: Larger files and tensors are refused.
MAX_FILE_BYTES = 1 << 30
MAX_ELEMENTS = 1 << 27


def read_model(path: Path) -> onnx.ModelProto:
    """Parses `path`; external tensor data is read in, from the model's own folder only.

    Raises HlsgenError with HG001..HG004.
    """
    try:
        if not path.is_file():
            raise fail("HG001", str(path), "no such file.", "Give the path of an .onnx file.")
        size = path.stat().st_size
        if size > MAX_FILE_BYTES:
            raise fail("HG004", str(path), f"{size} bytes; at most {MAX_FILE_BYTES} are read.")
        data = path.read_bytes()
    except OSError as error:
        raise fail("HG001", str(path), f"{error.strerror}.") from None
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError:
        raise fail(
            "HG002", str(path), "not a protobuf message, or cut short.", "Export or download the file again."
        ) from None
    if not model.HasField("graph") or not model.graph.node or not model.ir_version:
        raise fail(
            "HG002",
            str(path),
            "no ONNX graph with at least one node in it.",
            "Is this an .onnx file? TensorFlow Lite and PyTorch files must be exported to ONNX first.",
        )
    problems = Collector()
    for tensor in model.graph.initializer:
        with problems.catching():
            _check_tensor(tensor, path.parent)
    problems.finish()
    return model


def self_contained(path: Path) -> bytes:
    """The bytes of the file; with its external data inside, if it has any."""
    data = path.read_bytes()
    tensors = onnx.ModelProto.FromString(data).graph.initializer
    if any(t.data_location == TensorProto.EXTERNAL for t in tensors):
        inlined: bytes = read_model(path).SerializeToString(deterministic=True)
        return inlined
    return data


def _check_tensor(tensor: TensorProto, folder: Path) -> None:
    elements = 1
    for dim in tensor.dims:
        elements *= max(dim, 0)
    if elements > MAX_ELEMENTS or any(dim < 0 for dim in tensor.dims):
        raise fail("HG004", tensor.name, f"tensor of shape {list(tensor.dims)}; at most {MAX_ELEMENTS} elements.")
    if tensor.data_location == TensorProto.EXTERNAL:
        _read_external(tensor, folder, elements)


def _read_external(tensor: TensorProto, folder: Path, elements: int) -> None:
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    base = folder.resolve()
    file = (base / location).resolve()
    if not location or not file.is_relative_to(base):
        raise fail(
            "HG003",
            tensor.name,
            f"external data in {location!r}, outside the model's folder.",
            "Put the data file beside the model, or save the model with its data inside.",
        )
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", -1))
        if not file.is_file():
            raise fail("HG003", tensor.name, f"external data file {location!r} does not exist.")
        width = helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    except (ValueError, KeyError, TypeError):
        raise fail("HG003", tensor.name, "external data with an invalid offset, length or type.") from None
    length = elements * width if length < 0 else length
    if offset < 0 or length != elements * width or offset + length > file.stat().st_size:
        raise fail("HG003", tensor.name, f"external data file {location!r} is shorter than the tensor.")
    with file.open("rb") as stream:
        stream.seek(offset)
        tensor.raw_data = stream.read(length)
    tensor.data_location = TensorProto.DEFAULT
    del tensor.external_data[:]


def tensor_array(tensor: TensorProto, name: str) -> Array:
    """The numpy array of an initializer; HG002 if its data does not fit its shape."""
    try:
        array: Array = numpy_helper.to_array(tensor)
    except Exception:
        raise fail("HG002", name, "tensor data does not match its shape or type.") from None
    return array
