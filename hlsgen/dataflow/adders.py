"""Implements matrices with constant weights as products or, if cheaper, as adder graphs, counters or DA tables."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from hlsgen.adder_graph import MOST_AGREEMENTS, MOST_DIGITS, AdderGraph, AgreementGraph, agreements, count_digits, find
from hlsgen.dataflow.builder import NamedStream, NetworkBuilder
from hlsgen.dataflow.code_ranges import column_ranges
from hlsgen.dataflow.units import AdderMatVec, MatVec, Node, Product, Stream
from hlsgen.ir import Convolution, Linear
from hlsgen.numerics.fixed import Array


def append_matrix(b: NetworkBuilder, name: str, unit: MatVec, flow: NamedStream, result: Stream, i: int) -> NamedStream:
    """The stream of a matrix, the node of layer i."""
    node = matrix_node(b, name, unit, flow, result, i)
    return b.append(name, node.unit, [flow], result, node.layer, i)


def matrix_node(b: NetworkBuilder, name: str, unit: MatVec, flow: NamedStream, result: Stream, i: int) -> Node:
    """The cheapest node of a matrix, layer i."""
    adders = _adders(b, unit, flow.stream, i)
    layer = b.graph.layers[i].name
    products = Node(name, unit, (flow.wire,), (flow.stream,), (name,), result, layer, i)
    if adders is not None and b.adders_pay is not None and b.adders_pay(products, replace(products, unit=adders)):
        return replace(products, unit=adders)
    if b.tables_of is not None and b.targets.wires(layer):
        unit = replace(unit, sums=b.tables_of(products, b.targets))
    return replace(products, unit=unit)


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
    layer = b.graph.layers[i]
    few = count_digits(unit.weight) <= MOST_DIGITS
    if b.narrows and isinstance(layer, Linear):
        low, high = (end[unit.order] for end in column_ranges(layer, b.code_range(layer.inputs[0])))
        matrix, inputs = _narrowed(matrix, low, high)
        return AdderMatVec(unit, _graph(matrix.tobytes(), matrix.shape[0], inputs)) if few else None
    lowest, highest = stream.type.lo, stream.type.hi
    if isinstance(layer, Convolution):
        lowest, highest = min(lowest, layer.pad), max(highest, layer.pad)
    if lowest > 0 or highest < 0 or lowest == highest or not few:
        return None
    return AdderMatVec(unit, _graph(matrix.tobytes(), matrix.shape[0], ((lowest, highest),) * matrix.shape[1]))


@lru_cache(maxsize=64)
def _graph(weights: bytes, rows: int, inputs: tuple[tuple[int, int], ...]) -> AdderGraph:
    """The adder graph of a matrix, cached for all networks that are tried. `inputs`: the codes of each column."""
    return find(np.frombuffer(weights, np.int64).reshape(rows, -1), inputs)


def _narrowed(matrix: Array, low: Array, high: Array) -> tuple[Array, tuple[tuple[int, int], ...]]:
    """The matrix and the codes of each column, 0 among them. A column that is always 0 has no weights."""
    always_zero = (low == 0) & (high == 0)
    ends = zip(np.minimum(low, 0).tolist(), np.where(always_zero, 1, np.maximum(high, 0)).tolist(), strict=True)
    return np.ascontiguousarray(np.where(always_zero, 0, matrix)), tuple(ends)


@lru_cache(maxsize=64)
def _agreements(weights: bytes, rows: int) -> AgreementGraph:
    """The counters of a binary matrix, cached for all networks that are tried."""
    return agreements(np.frombuffer(weights, np.int64).reshape(rows, -1))
