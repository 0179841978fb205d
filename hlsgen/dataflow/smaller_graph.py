"""Leaves elements out of a graph that `dead_channels` does not keep. The output keeps its value for every input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hlsgen.dataflow.code_ranges import code_ranges, column_ranges
from hlsgen.dataflow.dead_channels import kept_elements
from hlsgen.ir import (
    Accumulator,
    BinaryMap,
    Convolution,
    FloatBinary,
    Graph,
    IntegerEncoding,
    Layer,
    Linear,
    Map,
    Pooling,
    Value,
    View,
    sources_of,
)
from hlsgen.ir.kept_elements import Positions, part_of_constants, part_of_value
from hlsgen.ir.value_ranges import ValueRange
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.passes.hoist_views import relabel


def smaller_graph(graph: Graph, multiple: int = 1) -> Graph:
    """The graph without the elements that need no hardware; the graph itself if it needs all of them.

    `multiple`: the number of channels of sums is a multiple of this where possible.
    """
    ranges = code_ranges(graph)
    of_value = kept_elements(graph, ranges, multiple)
    values = (graph.input, *(layer.result for layer in graph.layers))
    removed = tuple(
        tuple(tuple(np.setdiff1d(np.arange(n), p).tolist()) for n, p in zip(value.shape, positions, strict=True))
        for value, positions in zip(values, of_value, strict=True)
    )
    if not any(map(any, removed)):
        return graph
    new_values, layers = [graph.input], list[Layer]()
    for i, layer in enumerate(graph.layers):
        sources = tuple(new_values[j] for j in layer.inputs)
        source_positions = [of_value[j] for j in layer.inputs]
        layers.append(_part(layer, sources, source_positions, of_value[i + 1], ranges[layer.inputs[0]]))
        new_values.append(layers[-1].result)
    return replace(graph, layers=tuple(layers), output=new_values[-1], removed=removed)


def _part(
    layer: Layer,
    sources: tuple[Value, ...],
    source_positions: Sequence[Positions],
    positions: Positions,
    source_range: ValueRange | None,
) -> Layer:
    """A layer between the remaining elements. `source_range`: the codes of the first source, with all its elements."""
    result = part_of_value(layer.result, positions)
    if result is layer.result and all(new is old for new, old in zip(sources, sources_of(layer), strict=True)):
        return layer
    match layer:
        case Map(ops=ops, quantizer=quantizer):
            ops, quantizer = (
                tuple(part_of_constants(op, positions) for op in ops),
                part_of_constants(quantizer, positions),
            )
            return replace(layer, ops=ops, quantizer=quantizer, source=sources[0], result=result)
        case BinaryMap() | FloatBinary():
            first_ops, second_ops = (
                tuple(part_of_constants(op, positions) for op in branch) for branch in layer.branches
            )
            layer = replace(layer, branches=(first_ops, second_ops), sources=(sources[0], sources[1]), result=result)
            if isinstance(layer, FloatBinary):
                return layer
            ops = tuple(part_of_constants(op, positions) for op in layer.ops)
            return replace(layer, ops=ops, quantizer=part_of_constants(layer.quantizer, positions))
        case View():
            encoding = relabel(sources[0].encoding, layer.op, sources[0].shape, result.shape)
            result = replace(result, type=sources[0].type, encoding=encoding)
            return replace(layer, source=sources[0], result=result)
        case Pooling():
            return replace(layer, source=sources[0], result=result)
        case Linear() | Convolution():
            return _part_of_sums(layer, sources[0], source_positions[0][-1], positions[-1], result, source_range)
        case _:
            return layer


def _part_of_sums(
    layer: Linear | Convolution,
    source: Value,
    columns: Array,
    rows: Array,
    result: Value,
    source_range: ValueRange | None,
) -> Linear | Convolution:
    """The sums of the rows over the columns that stay. The other columns are constant, and part of the encoding."""
    weight = layer.weight[rows]
    constant = np.zeros(len(rows), np.int64)
    if isinstance(layer, Convolution) and layer.groups > 1:
        layer = replace(layer, groups=layer.groups * len(columns) // layer.source.shape[-1])
    else:
        dropped = np.setdiff1d(np.arange(weight.shape[-1]), columns)
        codes = column_ranges(layer, source_range)[0][dropped]
        terms = weight[..., dropped] == codes if layer.binary else weight[..., dropped] * codes
        constant = terms.sum(axis=tuple(range(1, terms.ndim)))
        weight = weight[..., columns]
    weight = np.ascontiguousarray(weight)
    table = weight.reshape(len(rows), -1)
    if layer.binary:
        low, high = np.zeros(len(rows), np.int64), np.full(len(rows), table.shape[1])
    else:
        ends = table * source.type.lo, table * source.type.hi
        low, high = np.minimum(*ends).sum(axis=1), np.maximum(*ends).sum(axis=1)
    encoding = result.encoding
    assert isinstance(encoding, Accumulator | IntegerEncoding)
    if constant.any():
        factor = encoding.factor if isinstance(encoding, Accumulator) else 1
        encoding = replace(encoding, offset=encoding.offset + factor * constant)
    result = replace(result, type=IntType(int(low.min()), int(high.max())), encoding=encoding)
    return replace(layer, weight=weight, lo=low, hi=high, source=source, result=result)
