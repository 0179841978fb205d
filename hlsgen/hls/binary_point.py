"""Binary point of codes that are fixed-point numbers."""

from __future__ import annotations

import numpy as np

from hlsgen.dataflow.units import Node
from hlsgen.ir import Graph
from hlsgen.ir.encoding import Affine

#: Binary points further from the last bit do not help a reader.
_MAX_DISTANCE = 64


def binary_point(graph: Graph, node: Node) -> int | None:
    """Fraction bits of the codes that a node emits: a code means code / 2^bits, in all channels alike.

    Returns None if the encoding has no such form, or the node does not emit a layer's result.
    """
    if node.position < 0:
        return None
    match graph.layers[node.position].result.encoding:
        case Affine(scale, zero_point) if not zero_point.any() and (scale == scale.flat[0]).all():
            mantissa, exponent = np.frexp(scale.flat[0])
            bits = 1 - int(exponent)
            return bits if mantissa == 0.5 and abs(bits) <= _MAX_DISTANCE else None
        case _:
            return None
