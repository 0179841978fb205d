"""Finds elements of hidden tensors that hardware need not compute: constant ones, and ones that nothing uses.

An element that is constant belongs to the constant of each sum that uses it. An element is dead if all weights on it
are 0, or if only dead elements use it. Elements are only left out along whole axes, so the rest is a tensor again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlsgen.dataflow.code_ranges import column_ranges
from hlsgen.ir import (
    BinaryMap,
    Convolution,
    Delay,
    FloatBinary,
    Graph,
    Layer,
    Linear,
    Map,
    Pooling,
    View,
)
from hlsgen.ir.kept_elements import Positions, block, positions_of
from hlsgen.ir.stream_order import relabelled_indices
from hlsgen.ir.value_ranges import ValueRange
from hlsgen.numerics.fixed import Array


def kept_elements(graph: Graph, ranges: Sequence[ValueRange | None], multiple: int = 1) -> list[Positions]:
    """The positions of each value that stay.

    `ranges`: the lowest and the highest code of each value's elements. `multiple`: dead channels of sums stay until
    their number is a multiple of this.
    """
    masks = [np.zeros(value.shape, bool) for value in (graph.input, *(layer.result for layer in graph.layers))]
    for mask in masks if _needs_all(graph, ranges) else (masks[0], masks[-1]):
        mask[...] = True
    _grow_all(graph, masks, ranges)
    for i, layer in enumerate(graph.layers if multiple > 1 else ()):
        if isinstance(layer, Linear | Convolution):
            dead = np.flatnonzero(~_channels(masks[i + 1]))
            alive = len(layer.weight) - len(dead)
            masks[i + 1][..., dead[: -alive % multiple]] = True
    _grow_all(graph, masks, ranges)
    return [positions_of(mask) for mask in masks]


def _needs_all(graph: Graph, ranges: Sequence[ValueRange | None]) -> bool:
    """True if it is clear that no element can be left out."""
    return any(isinstance(layer, Delay) for layer in graph.layers) or not any(
        unneeded_columns(layer, np.arange(len(layer.weight)), ranges[layer.inputs[0]]).any()
        for layer in graph.layers
        if isinstance(layer, Linear | Convolution) and _sums_all(layer)
    )


def _grow_all(graph: Graph, masks: Sequence[Array], ranges: Sequence[ValueRange | None]) -> None:
    """Add all elements to the masks that their other elements need."""
    movable = [sums_are_decoded(graph, value) for value in range(len(masks))]
    count = -1
    while count != (count := sum(int(mask.sum()) for mask in masks)):
        for i, layer in reversed(list(enumerate(graph.layers))):
            inputs = [masks[j] for j in layer.inputs]
            _grow(layer, inputs, masks[i + 1], movable[i + 1], ranges[layer.inputs[0]])
            for mask in (*inputs, masks[i + 1]):
                mask.flat[0] |= not mask.any()
                mask |= block(mask.shape, positions_of(mask))


def sums_are_decoded(graph: Graph, value: int) -> bool:
    """True if only functions of real or integer numbers use the codes of a value, or the host as the only output."""
    if value == len(graph.layers):
        return not graph.outputs and not graph.output_is_index
    consumers = [(i, layer) for i, layer in enumerate(graph.layers) if value in layer.inputs]
    return all(
        isinstance(layer, Map | BinaryMap | FloatBinary) or (isinstance(layer, View) and sums_are_decoded(graph, i + 1))
        for i, layer in consumers
    )


def unneeded_columns(layer: Linear | Convolution, rows: Array, source_range: ValueRange | None) -> Array:
    """Which columns only add a constant to these rows, bool (columns,). Columns of a Convolution are its channels."""
    low, high = column_ranges(layer, source_range)
    weights = layer.weight[rows].reshape(-1, layer.weight.shape[-1])
    unused = np.zeros(len(low), bool) if layer.binary else ~(weights != 0).any(axis=0)
    return np.asarray(unused | (low == high))


def _grow(layer: Layer, inputs: Sequence[Array], result: Array, movable: bool, source_range: ValueRange | None) -> None:
    """Add the elements that a layer needs of its inputs, and those that its result has besides `result`.

    `movable`: the result may have fewer elements, and sums without constants.
    """
    match layer:
        case Map() | BinaryMap() | FloatBinary():
            result |= np.logical_or.reduce(inputs)
            for mask in inputs:
                mask |= result
        case View():
            place = relabelled_indices(layer)
            inputs[0].reshape(-1)[...] |= result.reshape(-1)[place]
            result.reshape(-1)[place] |= inputs[0].reshape(-1)
        case Pooling():
            result |= _channels(result) | _channels(inputs[0])
            inputs[0][...] |= _channels(result)
        case Linear() | Convolution() if movable and _sums_all(layer):
            result |= _channels(result)
            inputs[0][...] |= _channels(inputs[0]) | ~unneeded_columns(layer, _channels(result), source_range)
        case Convolution() if movable and layer.weight.shape[3] == 1:
            outputs = len(layer.weight) // layer.groups
            of_result = _channels(result).reshape(-1, outputs).any(axis=1)
            inputs[0][...] |= _channels(inputs[0]) | of_result
            result |= np.repeat(_channels(inputs[0]), outputs)
        case _:
            result[...] = True
            for mask in inputs:
                mask[...] = True


def _channels(mask: Array) -> Array:
    """The positions of the last axis at which there is an element, bool."""
    return np.asarray(mask.reshape(-1, mask.shape[-1]).any(axis=0))


def _sums_all(layer: Linear | Convolution) -> bool:
    """True if each row sums all columns or channels."""
    return isinstance(layer, Linear) or layer.groups == 1
