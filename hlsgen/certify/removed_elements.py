"""Proves that elements which certificate.json calls removed need no hardware, and derives the graph without them.

The ranges of codes are the checker's own. A removed element must have one code, or only weights of 0 in the rows that
stay, or consumers that are removed as well. The inputs and the outputs of the model keep all elements.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np

from hlsgen import ir
from hlsgen.certify.models.line_buffer import has_border
from hlsgen.certify.netlist_reader import broken
from hlsgen.certify.reachable_codes import limit_codes, limit_pool, reachable_sums
from hlsgen.certify.stream_contents import Elements
from hlsgen.ir.kept_elements import Positions, part_of_constants, part_of_value
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.passes.hoist_views import relabel

#: Most elements of a tensor whose codes are bounded.
_MAX_ELEMENTS = 1 << 20
#: Layers that read the codes of sums as numbers, so that a constant may be part of the encoding.
_READERS = (ir.Map, ir.BinaryMap, ir.FloatBinary)


def without_removed(graph: ir.Graph, certificate: dict[str, Any]) -> ir.Graph:
    """The graph of a build. `graph`: of the model. Raises HG055 for an element that the output needs."""
    if "removed" not in certificate:
        return graph
    remaining = _remaining_positions(graph, certificate["removed"])
    elements, layers = _bounded(graph), list[ir.Layer]()
    values = [graph.input]
    for i, layer in enumerate(graph.layers):
        layers.append(_Remaining(graph, elements, remaining, values, i).layer(layer))
        values.append(layers[-1].result)
    return replace(graph, layers=tuple(layers), output=values[-1])


def _remaining_positions(graph: ir.Graph, entries: list[dict[str, Any]]) -> list[Positions]:
    """The positions of each axis of each value that stay. Raises HG055 for a statement that is none about the graph."""
    values = (graph.input, *(layer.result for layer in graph.layers))
    remaining: list[Positions] = [tuple(np.arange(size) for size in value.shape) for value in values]
    for entry in entries:
        number, axes = entry["value"], entry["positions"]
        is_hidden = 0 < number < len(graph.layers)
        if not is_hidden or len(axes) != len(values[number].shape):
            raise broken(
                "certificate.json",
                f"removed elements of value {number}, which is no hidden tensor with {len(axes)} axes.",
            )
        of_value = tuple(np.setdiff1d(all_, axis) for all_, axis in zip(remaining[number], axes, strict=True))
        if not all(len(positions) for positions in of_value):
            raise broken(graph.layers[number - 1].name, "certificate.json: all its elements are removed.")
        remaining[number] = of_value
    return remaining


def _bounded(graph: ir.Graph) -> Elements:
    """The elements of the graph with the codes that they can have."""
    elements = Elements(graph)
    for i, layer in enumerate(graph.layers):
        match layer:
            case ir.Linear() | ir.Convolution():
                elements.limit(i + 1, *reachable_sums(layer, elements))
            case ir.Map():
                limit_codes(layer, elements, i + 1, _MAX_ELEMENTS)
            case ir.Pooling():
                limit_pool(layer, elements, i + 1)
            case _:
                pass
    return elements


class _Remaining:
    """Derives layer `i` of the smaller graph. `values`: those before the layer. `remaining`: the positions of all."""

    def __init__(
        self, graph: ir.Graph, elements: Elements, remaining: list[Positions], values: list[ir.Value], i: int
    ) -> None:
        self.graph, self.elements, self.values, self.i = graph, elements, values, i
        self.remaining = remaining
        self.inputs = graph.layers[i].inputs
        self.sources = tuple(values[j] for j in self.inputs)
        self.positions = remaining[i + 1]
        self.result = part_of_value(graph.layers[i].result, self.positions)

    def layer(self, layer: ir.Layer) -> ir.Layer:
        """The layer between the remaining elements. Raises HG055."""
        match layer:
            case ir.Map():
                self._equal(layer)
                parts = [part_of_constants(op, self.positions) for op in layer.ops]
                quantizer = part_of_constants(layer.quantizer, self.positions)
                return replace(layer, ops=tuple(parts), quantizer=quantizer, source=self.sources[0], result=self.result)
            case ir.BinaryMap() | ir.FloatBinary():
                self._equal(layer)
                return self._joined(layer)
            case ir.View():
                return self._view(layer)
            case ir.Pooling():
                self._whole_channels(layer)
                self._require(layer, np.array_equal(self.remaining[self.inputs[0]][-1], self.positions[-1]))
                return replace(layer, source=self.sources[0], result=self.result)
            case ir.Linear() | ir.Convolution():
                return self._sums(layer)
            case _:
                self._require(layer, all(self._is_complete(value) for value in (*self.inputs, self.i + 1)))
                return layer

    def _require(self, layer: ir.Layer, condition: bool, reason: str = "that the layer needs") -> None:
        if not condition:
            raise broken(layer.name, f"certificate.json: elements are removed {reason}.")

    def _is_complete(self, value: int) -> bool:
        shape = (self.graph.layers[value - 1].result if value else self.graph.input).shape
        return tuple(len(positions) for positions in self.remaining[value]) == shape

    def _equal(self, layer: ir.Layer) -> None:
        """Check that the same elements are removed from all operands and from the result."""
        for value in self.inputs:
            pairs = zip(self.remaining[value], self.positions, strict=True)
            self._require(layer, all(np.array_equal(a, b) for a, b in pairs))

    def _whole_channels(self, layer: ir.Pooling | ir.Linear | ir.Convolution) -> None:
        """Check that elements are only removed along the last axis."""
        for positions, shape in (
            (self.remaining[self.inputs[0]], layer.source.shape),
            (self.positions, layer.result.shape),
        ):
            self._require(layer, tuple(len(p) for p in positions[:-1]) == shape[:-1])

    def _joined(self, layer: ir.BinaryMap | ir.FloatBinary) -> ir.Layer:
        branches = tuple(tuple(part_of_constants(op, self.positions) for op in ops) for ops in layer.branches)
        operands = cast(Any, branches), cast(Any, self.sources)
        if isinstance(layer, ir.FloatBinary):
            return replace(layer, branches=operands[0], sources=operands[1], result=self.result)
        ops = tuple(part_of_constants(op, self.positions) for op in layer.ops)
        quantizer = part_of_constants(layer.quantizer, self.positions)
        return replace(
            layer, branches=operands[0], ops=ops, quantizer=quantizer, sources=operands[1], result=self.result
        )

    def _view(self, layer: ir.View) -> ir.View:
        """The view, if it moves the remaining elements to their places in the result."""
        numbers = self.elements.numbers
        source_elements = numbers[self.inputs[0]].reshape(layer.source.shape)[np.ix_(*self.remaining[self.inputs[0]])]
        result_elements = numbers[self.i + 1].reshape(layer.result.shape)[np.ix_(*self.positions)]
        self._require(layer, source_elements.size == result_elements.size)
        moved = source_elements.transpose(layer.op.perm) if isinstance(layer.op, ir.Transpose) else source_elements
        self._require(layer, np.array_equal(moved.ravel(), result_elements.ravel()))
        (source,) = self.sources
        encoding = relabel(source.encoding, layer.op, source.shape, self.result.shape)
        return replace(layer, source=source, result=replace(self.result, type=source.type, encoding=encoding))

    def _sums(self, layer: ir.Linear | ir.Convolution) -> ir.Layer:
        """The sums of the remaining rows and columns; the other columns must be constant for these rows."""
        self._whole_channels(layer)
        columns, rows = self.remaining[self.inputs[0]][-1], self.positions[-1]
        weight, is_depthwise = layer.weight[rows], isinstance(layer, ir.Convolution) and layer.groups > 1
        constant = np.zeros(len(rows), np.int64)
        if isinstance(layer, ir.Convolution) and is_depthwise:
            if self._is_complete(self.inputs[0]) and self._is_complete(self.i + 1):
                return layer
            outputs = len(layer.weight) // layer.groups
            of_columns = (columns[:, None] * outputs + np.arange(outputs)).ravel()
            self._require(layer, weight.shape[-1] == 1 and np.array_equal(rows, of_columns))
            layer = replace(layer, groups=len(columns))
        else:
            removed = np.setdiff1d(np.arange(weight.shape[-1]), columns)
            constant = self._constant(layer, weight[..., removed], removed)
            weight = weight[..., columns]
        if weight.shape == layer.weight.shape and self._is_complete(self.inputs[0]):
            return layer
        self._require(layer, self._is_read_as_numbers(self.i + 1), "whose codes another layer compares or moves")
        weight = np.ascontiguousarray(weight)
        bounds = _interval(weight.reshape(len(rows), -1), layer.binary, self.sources[0].type)
        encoding = self.result.encoding
        if isinstance(encoding, ir.Accumulator):
            encoding = replace(encoding, offset=encoding.offset + encoding.factor * constant)
        elif isinstance(encoding, ir.IntegerEncoding):
            encoding = replace(encoding, offset=encoding.offset + constant)
        else:
            raise broken(layer.name, "certificate.json: elements are removed, but its sums have another encoding.")
        type_ = IntType(int(bounds[0].min()), int(bounds[1].max()))
        result = replace(self.result, type=type_, encoding=encoding)
        return replace(layer, weight=weight, lo=bounds[0], hi=bounds[1], source=self.sources[0], result=result)

    def _constant(self, layer: ir.Linear | ir.Convolution, weight: Array, columns: Array) -> Array:
        """The terms of removed columns in the sum of each row, int64 (rows,). Raises HG055 if they vary."""
        if not len(columns):
            return np.zeros(len(weight), np.int64)
        numbers = self.elements.numbers[self.inputs[0]].reshape(-1, layer.source.shape[-1])[:, columns]
        low, high = self.elements.code_range(numbers)
        low, high = low.min(axis=0), high.max(axis=0)
        if isinstance(layer, ir.Convolution) and has_border(layer):
            low, high = np.minimum(low, layer.pad), np.maximum(high, layer.pad)
        used = np.ones(len(columns), bool) if layer.binary else (weight.reshape(-1, len(columns)) != 0).any(axis=0)
        self._require(layer, bool((~used | (low == high)).all()), "whose codes vary and have weights")
        terms = (weight == low) if layer.binary else weight * np.where(used, low, 0)
        return np.asarray(terms.reshape(len(weight), -1).sum(axis=1))

    def _is_read_as_numbers(self, value: int) -> bool:
        """True if only functions of numbers consume a value, or the host that decodes the only output."""
        if value == len(self.graph.layers):
            return not self.graph.outputs and not self.graph.output_is_index
        consumers = [(i, layer) for i, layer in enumerate(self.graph.layers) if value in layer.inputs]
        loops = any(isinstance(layer, ir.Delay) and layer.delayed == value for layer in self.graph.layers)
        return not loops and all(
            isinstance(layer, _READERS) or (isinstance(layer, ir.View) and self._is_read_as_numbers(i + 1))
            for i, layer in consumers
        )


def _interval(weight: Array, binary: bool, type_: IntType) -> tuple[Array, Array]:
    """The lowest and the greatest sum of each row, int64 (rows,), over all codes of a type."""
    if binary:
        return np.zeros(len(weight), np.int64), np.full(len(weight), weight.shape[1])
    positive, negative = np.maximum(weight, 0).sum(axis=1), np.minimum(weight, 0).sum(axis=1)
    return positive * type_.lo + negative * type_.hi, positive * type_.hi + negative * type_.lo
