"""Value ranges derived from weights: often narrower than the tensor's type."""

from __future__ import annotations

import numpy as np

from hlsgen.ir.graph import Convolution, Graph, Linear, Pooling, View
from hlsgen.ir.model import Transpose
from hlsgen.ir.window import Reduction
from hlsgen.numerics.fixed import Array

#: Lowest and highest code, as arrays that broadcast to the tensor.
ValueRange = tuple[Array, Array]


def value_range(graph: Graph, value: int) -> ValueRange | None:
    """The interval of each channel of a value after a linear layer, or None for other values."""
    if not value:
        return None
    layer = graph.layers[value - 1]
    if isinstance(layer, Linear | Convolution):
        channel_shape = (1,) * (len(layer.result.shape) - 1) + (-1,)
        return layer.lo.reshape(channel_shape), layer.hi.reshape(channel_shape)
    if isinstance(layer, Pooling) and layer.kind is Reduction.MAX:
        source_range = value_range(graph, layer.inputs[0])
        # After a View the arrays may have an entry for each pixel.
        return source_range and (
            source_range[0].min((-3, -2), keepdims=True),
            source_range[1].max((-3, -2), keepdims=True),
        )
    if isinstance(layer, View):
        source_range = value_range(graph, layer.inputs[0])
        if source_range is None:
            return None
        return relabelled(layer, source_range[0]), relabelled(layer, source_range[1])
    return None


def relabelled(layer: View, values: Array) -> Array:
    """An array that broadcasts to the source of a View, as one that broadcasts to its result."""
    source, result = layer.source.shape, layer.result.shape
    if values.size == 1:
        return values.reshape((1,) * len(result))
    if isinstance(layer.op, Transpose):
        return np.asarray(values.transpose(layer.op.perm))
    return np.broadcast_to(values, source).reshape(result)
