"""The constants that a graph of ONNX comes with."""

from __future__ import annotations

import onnx
from onnx import TensorProto, numpy_helper

from hlsgen.diagnostics import Collector, fail
from hlsgen.frontend.constant_folding import Const, Dynamic, Tensor
from hlsgen.numerics.fixed import Array

#: A tensor of which nothing is known, because something before it is wrong.
UNKNOWN = Dynamic(None, "float32", None)


def read_initializers(graph: onnx.GraphProto, problems: Collector) -> dict[str, Tensor]:
    """By name; what is wrong goes to `problems`, HG002, HG015 and HG026, and is unknown."""
    found: dict[str, Tensor] = {}
    for sparse in graph.sparse_initializer:
        problems.error("HG026", sparse.values.name, "a sparse initializer.", "Store the tensor densely.")
        found[sparse.values.name] = UNKNOWN
    for tensor in graph.initializer:
        with problems.catching():
            if tensor.name in found:
                raise fail("HG015", tensor.name, "two initializers have this name.", "Names must be unique.")
            found[tensor.name] = UNKNOWN
            found[tensor.name] = Const(tensor_array(tensor, tensor.name))
    return found


def tensor_array(tensor: TensorProto, name: str) -> Array:
    """The numpy array of an initializer; HG002 if its data does not fit its shape."""
    try:
        array: Array = numpy_helper.to_array(tensor)
    except Exception:  # whatever numpy or protobuf make of it
        raise fail(
            "HG002", name, f"the data of the tensor of shape {list(tensor.dims)} does not fit its shape or type.",
            "Export the model again.",
        ) from None  # fmt: skip
    return array
