"""Which values a tensor can have, as far as the weights in front of it say: narrower than its type."""

from __future__ import annotations

import numpy as np

from hlsgen.ir.graph import Convolution, Graph, Linear, Pooling, View
from hlsgen.ir.model import Transpose
from hlsgen.ir.window import Reduction
from hlsgen.numerics.fixed import Array

#: Lowest and highest code, arrays that broadcast to the tensor.
ValueRange = tuple[Array, Array]


def value_range(graph: Graph, value: int) -> ValueRange | None:
    """The interval of every channel of a value behind a linear layer; None elsewhere."""
    if not value:
        return None
    layer = graph.layers[value - 1]
    if isinstance(layer, Linear | Convolution):
        form = (1,) * (len(layer.result.shape) - 1) + (-1,)
        return layer.lo.reshape(form), layer.hi.reshape(form)
    if isinstance(layer, Pooling) and layer.kind is Reduction.MAX:
        before = value_range(graph, layer.inputs[0])
        # Behind a View the arrays may have all points.
        return before and (before[0].min((-3, -2), keepdims=True), before[1].max((-3, -2), keepdims=True))
    if isinstance(layer, View):
        before = value_range(graph, layer.inputs[0])
        if before is None:
            return None
        return _relabelled(layer, before[0]), _relabelled(layer, before[1])
    return None


def _relabelled(layer: View, values: Array) -> Array:
    source, result = layer.source.shape, layer.result.shape
    if values.size == 1:
        return values.reshape((1,) * len(result))
    if isinstance(layer.op, Transpose):
        return np.asarray(values.transpose(layer.op.perm))
    return np.broadcast_to(values, source).reshape(result)
