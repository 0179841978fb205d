"""Implements matrices with constant weights as products or, if cheaper, as adder graphs, counters or DA tables."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from hlsgen.adder_graph import MOST_AGREEMENTS, MOST_DIGITS, AdderGraph, AgreementGraph, agreements, count_digits, find
from hlsgen.dataflow.builder import NamedStream, NetworkBuilder
from hlsgen.dataflow.units import AdderMatVec, MatVec, Node, Product, Stream
from hlsgen.ir import Convolution


def append_matrix(b: NetworkBuilder, name: str, unit: MatVec, flow: NamedStream, result: Stream, i: int) -> NamedStream:
    """The stream of a matrix, the node of layer i."""
    adders = _adders(b, unit, flow.stream, i)
    layer = b.graph.layers[i].name
    products = Node(name, unit, (flow.wire,), (flow.stream,), (name,), result, layer, i)
    if adders is not None and b.adders_pay is not None and b.adders_pay(products, replace(products, unit=adders)):
        return b.append(name, adders, [flow], result, layer, i)
    if b.tables_of is not None and b.targets.wires(layer):
        unit = replace(unit, sums=b.tables_of(products, b.targets))
    return b.append(name, unit, [flow], result, layer, i)


def _adders(b: NetworkBuilder, unit: MatVec, stream: Stream, i: int) -> AdderMatVec | None:
    """The unit as an adder graph.

    Returns None if the weights change, are for DSP blocks, or are too many.
    """
    fixed = b.adders_pay is not None and b.targets.wires(b.graph.layers[i].name)
    if not fixed or unit.folds > 1 or unit.windows > 1:
        return None
    matrix = np.ascontiguousarray(unit.weight[:, :, unit.order].reshape(len(unit.weight), -1))
    if unit.product is Product.AGREEMENTS:
        few = matrix.size <= MOST_AGREEMENTS
        return AdderMatVec(unit, _agreements(matrix.tobytes(), matrix.shape[0])) if few else None
    low, high, layer = stream.type.lo, stream.type.hi, b.graph.layers[i]
    if isinstance(layer, Convolution):
        low, high = min(low, layer.pad), max(high, layer.pad)
    if low > 0 or high < 0 or low == high or count_digits(unit.weight) > MOST_DIGITS:
        return None
    return AdderMatVec(unit, _graph(matrix.tobytes(), matrix.shape[0], low, high))


@lru_cache(maxsize=64)
def _graph(weights: bytes, rows: int, low: int, high: int) -> AdderGraph:
    """The adder graph of a matrix, cached for all networks that are tried."""
    matrix = np.frombuffer(weights, np.int64).reshape(rows, -1)
    return find(matrix, [(low, high)] * matrix.shape[1])


@lru_cache(maxsize=64)
def _agreements(weights: bytes, rows: int) -> AgreementGraph:
    """The counters of a binary matrix, cached for all networks that are tried."""
    return agreements(np.frombuffer(weights, np.int64).reshape(rows, -1))
