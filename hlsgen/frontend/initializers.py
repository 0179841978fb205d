"""Initializers of an ONNX graph as constants."""

from __future__ import annotations

import onnx
from onnx import TensorProto, numpy_helper

from hlsgen.diagnostics import Collector, fail
from hlsgen.frontend.constant_folding import Const, Dynamic, Tensor
from hlsgen.numerics.fixed import Array

#: A tensor of unknown shape, because of an error before it.
UNKNOWN = Dynamic(None, "float32", None)


def read_initializers(graph: onnx.GraphProto, problems: Collector) -> dict[str, Tensor]:
    """The initializers by name. Errors go to `problems` (HG002, HG015, HG026), and such a tensor is UNKNOWN."""
    tensors: dict[str, Tensor] = {}
    for sparse in graph.sparse_initializer:
        text = "the initializer is sparse, which is not supported."
        problems.error("HG026", sparse.values.name, text, "Store the tensor densely.")
        tensors[sparse.values.name] = UNKNOWN
    for tensor in graph.initializer:
        with problems.catching():
            if tensor.name in tensors:
                raise fail("HG015", tensor.name, "two initializers have this name.", "Names must be unique.")
            tensors[tensor.name] = UNKNOWN
            tensors[tensor.name] = Const(tensor_array(tensor, tensor.name))
    return tensors


def tensor_array(tensor: TensorProto, name: str) -> Array:
    """The numpy array of an initializer. Raises HG002 if its data does not fit its shape or type."""
    try:
        array: Array = numpy_helper.to_array(tensor)
    except Exception:  # numpy and protobuf raise different types
        raise fail(
            "HG002",
            name,
            f"the data of the tensor of shape {list(tensor.dims)} does not fit its shape or type.",
            "Export the model again.",
        ) from None
    return array
