"""The constants that a graph of ONNX comes with."""

from __future__ import annotations

import onnx

from hlsgen.diagnostics import Collector, fail
from hlsgen.frontend.constant_folding import Const, Dynamic, Tensor
from hlsgen.frontend.load import tensor_array

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
