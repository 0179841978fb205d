"""Where the binary point of codes is, if they are fixed-point numbers."""

from __future__ import annotations

import numpy as np

from hlsgen.dataflow.units import Node
from hlsgen.ir import Graph
from hlsgen.ir.encoding import Affine

#: Points that are further from the last bit say nothing to a reader.
_MOST = 64


def binary_point(graph: Graph, node: Node) -> int | None:
    """Bits behind the point of the codes that a node gives: they stand for code / 2^bits, in all channels alike.

    None if there is no such number, or the node gives no layer's result.
    """
    if node.position < 0:
        return None
    match graph.layers[node.position].result.encoding:
        case Affine(scale, zero_point) if not zero_point.any() and (scale == scale.flat[0]).all():
            mantissa, exponent = np.frexp(scale.flat[0])
            bits = 1 - int(exponent)
            return bits if mantissa == 0.5 and abs(bits) <= _MOST else None
        case _:
            return None
