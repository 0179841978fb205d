"""Computes the AXI4-Lite writes that load other weights into a build with loadable weights.

The model is lowered again with the new weights. The new network must equal the network of the build except for the
weights, because all other units were made for the old graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path

import numpy as np

from hlsgen.dataflow.units import Node, Product, WeightedUnit
from hlsgen.dataflow.weighted_units import weight_bits
from hlsgen.diagnostics import Collector, HlsgenError, fail
from hlsgen.driver.backends import backends_of
from hlsgen.driver.compile import Build, imported
from hlsgen.driver.options import parse_inputs
from hlsgen.ir import Conv, ConvInteger, Convolution, Graph, Linear, MatMul, MatMulInteger, Model, Pooling, Value
from hlsgen.numerics.fixed import Array
from hlsgen.passes import lower

#: Registers of hg_axil_weights.
UNIT, DATA = 0x0, 0x4
_WEIGHTED = MatMul | MatMulInteger | Conv | ConvInteger
_HINT = "Build again with these weights."


@dataclass(frozen=True)
class Load:
    """Words of a unit's memory as pieces of 32 bits, in the order of writing."""

    layer: str
    unit: int
    pieces: tuple[int, ...]

    @property
    def writes(self) -> list[tuple[int, int]]:
        """(byte address, data) of each write."""
        return [(UNIT, self.unit), *((DATA, piece) for piece in self.pieces)]


def load_sequence(build: Build, weights: Mapping[str, Array] | Path) -> list[Load]:
    """The writes that make the build compute with other weights: one `Load` for each named layer, or for all layers.

    weights: integers by layer, without zero point, of the shape (rows, columns) or (outputs, kernel height, kernel
    width, channels / groups) of the layer; or a model file that differs from the build's only in its weights. Raises
    HG040, HG056, and errors of the model file.
    """
    pieces = next(iter(backends_of(build.options.target).values())).load_pieces
    if not build.options.loadable or pieces is None:
        raise fail("HG040", "--loadable-weights", "the build's weights are constant.", "Build with this option.")
    graph = reweighted(build, weights)
    loads = []
    for node in build.network.nodes:
        if not isinstance(node.unit, WeightedUnit):
            continue
        layer = graph.layers[node.position]
        assert isinstance(layer, Linear | Convolution)
        if isinstance(weights, Path) or node.layer in weights:
            number = sum(isinstance(s.unit, WeightedUnit) for s in _nodes_before(build, node))
            loads.append(Load(node.layer, number, tuple(pieces(node.unit, layer.weight))))
    return loads


def other_weights(build: Build, names: Iterable[str], seed: int) -> dict[str, Array]:
    """Random weights that the build's hardware supports: each row of weights in another order.

    Returns arrays by layer, for named layers whose weights `load_sequence` accepts.
    """
    rng = np.random.default_rng(seed)
    permuted = {
        name: rng.permuted(weight.reshape(len(weight), -1), axis=1).reshape(weight.shape)
        for name, weight in current_weights(build, names).items()
    }
    if not _refused(build, permuted):
        return permuted
    return {name: weight for name, weight in permuted.items() if not _refused(build, {name: weight})}


def current_weights(build: Build, names: Iterable[str] | None = None) -> dict[str, Array]:
    """Weights of the build by layer, or of the layers in `names` only."""
    layers = {s.name: s.op.weight for s in build.graph.model.steps if isinstance(s.op, _WEIGHTED)}
    selected = set(layers) if names is None else set(names)
    return {name: weight for name, weight in layers.items() if name in selected}


def _refused(build: Build, weights: Mapping[str, Array]) -> bool:
    try:
        load_sequence(build, weights)
    except HlsgenError:
        return True
    return False


def reweighted(build: Build, weights: Mapping[str, Array] | Path) -> Graph:
    """The build's graph with other weights. Arguments and errors: see `load_sequence`."""
    problems, modes = Collector(), parse_inputs(build.options.input)
    if isinstance(weights, Path):
        model = imported(weights, problems, build.options)
        problems.finish()
        assert model is not None
    else:
        model = _with_weights(build.graph.model, weights)
    graph = lower(model, modes, problems, build.options.separate)
    problems.finish()
    if len(graph.layers) != len(build.graph.layers):
        raise fail("HG056", graph.model.name, "the network has other layers with these weights.", _HINT)
    for old, new in zip(build.graph.layers, graph.layers, strict=True):
        _check_layer(old, new)
    ends = ("input", "encode", "output", "output_is_index")
    if any(not _equal(getattr(graph, name), getattr(build.graph, name)) for name in ends):
        raise fail("HG056", graph.model.name, "the network's input or output would change.", _HINT)
    for node in build.network.nodes:
        layer = graph.layers[node.position] if node.position >= 0 else None
        if isinstance(layer, Linear | Convolution):
            _check_memory(node, layer)
    return graph


def _with_weights(model: Model, weights: Mapping[str, Array]) -> Model:
    steps, remaining = list(model.steps), dict(weights)
    for n, step in enumerate(steps):
        op = step.op
        if step.name in remaining and isinstance(op, _WEIGHTED):
            array = np.asarray(remaining.pop(step.name))
            if array.shape != op.weight.shape or array.dtype.kind not in "iu":
                raise fail(
                    "HG056",
                    step.name,
                    f"an array of {array.dtype} of shape {list(array.shape)}; the layer has integers "
                    f"of shape {list(op.weight.shape)}.",
                )
            steps[n] = replace(step, op=replace(op, weight=array.astype(np.int64)))
    if remaining:
        names = [s.name for s in steps if isinstance(s.op, _WEIGHTED)]
        raise fail(
            "HG056", next(iter(remaining)), "no layer with weights has this name.", f"Layers: {', '.join(names)}."
        )
    return replace(model, steps=tuple(steps))


def _check_layer(old: object, new: object) -> None:
    """Checks that the unit of the old layer fits the new layer, except for weights. Raises HG056."""
    name = getattr(old, "name", "")
    ignored = {"weight", "lo", "hi"} if isinstance(old, Linear | Convolution) else set()
    if isinstance(old, Pooling):
        ignored = {"pad"}
    if type(old) is not type(new):
        raise fail("HG056", name, "the network has other layers with these weights.", _HINT)
    if isinstance(old, Linear | Convolution) and isinstance(new, Linear | Convolution):
        if old.weight.shape != new.weight.shape:
            raise fail("HG056", name, f"weights of shape {list(new.weight.shape)}, not {list(old.weight.shape)}.")
        for row in np.flatnonzero((new.lo < old.lo) | (new.hi > old.hi))[:1]:
            raise fail(
                "HG056",
                name,
                f"sums of row {row} reach {new.lo[row]} to {new.hi[row]}; the build holds for "
                f"{old.lo[row]} to {old.hi[row]}.",
                _HINT,
            )
    for field in fields(old):  # type: ignore[arg-type]
        old_value, new_value = getattr(old, field.name), getattr(new, field.name)
        if field.name not in ignored and not _equal(old_value, new_value):
            meaning = "the meaning of its codes (which depends on the weights through the zero point of its input)"
            text = meaning if field.name == "result" else f"its {field.name}"
            raise fail("HG056", name, f"{text} would change.", _HINT)
    if isinstance(old, Pooling) and isinstance(new, Pooling) and new.pad < old.pad:
        raise fail("HG056", name, "its padding would change.", _HINT)


def _equal(old: object, new: object) -> bool:
    """True if two objects are equal in all parts; the interval of a value may be narrower."""
    if isinstance(old, Value) and isinstance(new, Value):
        narrower = old.type.lo <= new.type.lo and new.type.hi <= old.type.hi
        return narrower and old.shape == new.shape and _equal(old.encoding, new.encoding)
    if isinstance(old, np.ndarray):
        return isinstance(new, np.ndarray) and old.dtype == new.dtype and np.array_equal(old, new)
    if isinstance(old, tuple | list):
        return type(old) is type(new) and len(old) == len(new) and all(map(_equal, old, new))
    if is_dataclass(old):
        names = [f.name for f in fields(old)]
        return type(old) is type(new) and all(_equal(getattr(old, n), getattr(new, n)) for n in names)
    return old == new


def _check_memory(node: Node, layer: Linear | Convolution) -> None:
    """Checks that the words of the unit's memory can hold the weights. Raises HG056."""
    unit = node.unit
    assert isinstance(unit, WeightedUnit)
    if unit.product is Product.BIPOLAR and (np.abs(layer.weight) != 1).any():
        raise fail("HG056", layer.name, "the unit holds only weights -1 and 1.", _HINT)
    reweighted_unit = replace(unit, weight=layer.weight.reshape(unit.weight.shape))
    bits, needed_bits = weight_bits(unit), weight_bits(reweighted_unit)
    if needed_bits > bits:
        raise fail("HG056", layer.name, f"weights of {needed_bits} bits; the unit holds {bits}.", _HINT)


def _nodes_before(build: Build, node: Node) -> list[Node]:
    return list(build.network.nodes[: build.network.nodes.index(node)])
