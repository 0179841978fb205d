"""Other weights for a build with loadable ones: what to write over its AXI4-Lite port.

The model is lowered again with the new weights. All that comes out must be the build's network, but for
the weights: every unit besides is made for the old graph.
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
from hlsgen.driver.compile import Build
from hlsgen.driver.options import parse_inputs
from hlsgen.frontend import import_model
from hlsgen.ir import Conv, ConvInteger, Convolution, Graph, Linear, MatMul, MatMulInteger, Model, Pooling, Value
from hlsgen.numerics.fixed import Array
from hlsgen.passes import lower, typed

#: Registers of hg_axil_weights.
UNIT, DATA = 0x0, 0x4
_WEIGHTED = MatMul | MatMulInteger | Conv | ConvInteger
_HINT = "Build again with these weights."


@dataclass(frozen=True)
class Load:
    """The words of a unit's memory as pieces of 32 bits, in the order in which they are written."""

    layer: str
    unit: int
    pieces: tuple[int, ...]

    @property
    def writes(self) -> list[tuple[int, int]]:
        """(byte address, data) of every write."""
        return [(UNIT, self.unit), *((DATA, piece) for piece in self.pieces)]


def load_sequence(build: Build, weights: Mapping[str, Array] | Path) -> list[Load]:
    """What to write so that the build computes with other weights.

    weights: by layer, integers of the shape of the layer's own, (rows, columns) or (outputs, kernel
    height, kernel width, channels / groups), with the zero point of the weights taken off; or a model
    file that differs from the build's in the weights alone. Gives the layers named, or all of them.
    Raises HG040, HG056, and what the model file gives.
    """
    pieces = next(iter(backends_of(build.options.target).values())).load_pieces
    if not build.options.loadable or pieces is None:
        raise fail("HG040", "--loadable-weights", "the build's weights are constant.", "Build with this option.")
    graph = reweighted(build, weights)
    found = []
    for node in build.network.nodes:
        if not isinstance(node.unit, WeightedUnit):
            continue
        new = graph.layers[node.position]
        assert isinstance(new, Linear | Convolution)
        if isinstance(weights, Path) or node.layer in weights:
            number = sum(isinstance(s.unit, WeightedUnit) for s in _before(build, node))
            found.append(Load(node.layer, number, tuple(pieces(node.unit, new.weight))))
    return found


def other_weights(build: Build, names: Iterable[str], seed: int) -> dict[str, Array]:
    """Weights for which the build's hardware is made, too: of every row the same ones, in another order.

    By layer, of those that are named, without those for which `load_sequence` would refuse that.
    """
    rng = np.random.default_rng(seed)
    found = {
        name: rng.permuted(weight.reshape(len(weight), -1), axis=1).reshape(weight.shape)
        for name, weight in own_weights(build, names).items()
    }
    if not _refused(build, found):
        return found
    return {name: weight for name, weight in found.items() if not _refused(build, {name: weight})}


def own_weights(build: Build, names: Iterable[str] | None = None) -> dict[str, Array]:
    """The weights of the build, by layer; of `names` alone, if they are given."""
    layers = {s.name: s.op.weight for s in build.graph.model.steps if isinstance(s.op, _WEIGHTED)}
    kept = set(layers) if names is None else set(names)
    return {name: weight for name, weight in layers.items() if name in kept}


def _refused(build: Build, weights: Mapping[str, Array]) -> bool:
    try:
        load_sequence(build, weights)
    except HlsgenError:
        return True
    return False


def reweighted(build: Build, weights: Mapping[str, Array] | Path) -> Graph:
    """The build's graph with other weights; arguments and errors as of `load_sequence`."""
    problems, modes = Collector(), parse_inputs(build.options.input)
    if isinstance(weights, Path):
        fixed_point, pairs = build.options.add == "fixed-point", not build.options.separate
        model = import_model(
            weights,
            problems,
            fixed_point,
            typed(modes),
            pairs=pairs,
            runtime=build.options.runtime,
            outputs=build.options.outputs,
        )
        problems.finish()
        assert model is not None
    else:
        model = _with_weights(build.graph.model, weights)
    graph = lower(model, modes, problems, build.options.separate)
    problems.finish()
    if len(graph.layers) != len(build.graph.layers):
        raise fail("HG056", graph.model.name, "the network has other layers with these weights.", _HINT)
    for old, new in zip(build.graph.layers, graph.layers, strict=True):
        _fits(old, new)
    ends = ("input", "encode", "output", "output_is_index")
    if any(not _same(getattr(graph, name), getattr(build.graph, name)) for name in ends):
        raise fail("HG056", graph.model.name, "the network's input or output is another.", _HINT)
    for node in build.network.nodes:
        layer = graph.layers[node.position] if node.position >= 0 else None
        if isinstance(layer, Linear | Convolution):
            _held(node, layer)
    return graph


def _with_weights(model: Model, weights: Mapping[str, Array]) -> Model:
    steps, left = list(model.steps), dict(weights)
    for n, step in enumerate(steps):
        op = step.op
        if step.name in left and isinstance(op, _WEIGHTED):
            new = np.asarray(left.pop(step.name))
            if new.shape != op.weight.shape or new.dtype.kind not in "iu":
                raise fail(
                    "HG056", step.name, f"an array of {new.dtype} of shape {list(new.shape)}; the layer has integers "
                    f"of shape {list(op.weight.shape)}.",
                )  # fmt: skip
            steps[n] = replace(step, op=replace(op, weight=new.astype(np.int64)))
    if left:
        names = [s.name for s in steps if isinstance(s.op, _WEIGHTED)]
        raise fail("HG056", next(iter(left)), "no layer with weights has this name.", f"Layers: {', '.join(names)}.")
    return replace(model, steps=tuple(steps))


def _fits(old: object, new: object) -> None:
    """Whether the old layer's unit is right for the new one, weights aside. Raises HG056."""
    name = getattr(old, "name", "")
    free = {"weight", "lo", "hi"} if isinstance(old, Linear | Convolution) else set()
    if isinstance(old, Pooling):
        free = {"pad"}
    if type(old) is not type(new):
        raise fail("HG056", name, "the network has other layers with these weights.", _HINT)
    if isinstance(old, Linear | Convolution) and isinstance(new, Linear | Convolution):
        if old.weight.shape != new.weight.shape:
            raise fail("HG056", name, f"weights of shape {list(new.weight.shape)}, not {list(old.weight.shape)}.")
        for row in np.flatnonzero((new.lo < old.lo) | (new.hi > old.hi))[:1]:
            raise fail(
                "HG056", name, f"sums of row {row} reach {new.lo[row]} to {new.hi[row]}; the build holds for "
                f"{old.lo[row]} to {old.hi[row]}.", _HINT,
            )  # fmt: skip
    for field in fields(old):  # type: ignore[arg-type]
        before, after = getattr(old, field.name), getattr(new, field.name)
        if field.name not in free and not _same(before, after):
            what = "what its codes mean (the zero point of its input makes this depend on the weights)"
            text = what if field.name == "result" else f"its {field.name}"
            raise fail("HG056", name, f"{text} would change.", _HINT)
    if isinstance(old, Pooling) and isinstance(new, Pooling) and new.pad < old.pad:
        raise fail("HG056", name, "its padding would change.", _HINT)


def _same(old: object, new: object) -> bool:
    """Equal in all parts; the interval of a value may be narrower."""
    if isinstance(old, Value) and isinstance(new, Value):
        narrower = old.type.lo <= new.type.lo and new.type.hi <= old.type.hi
        return narrower and old.shape == new.shape and _same(old.encoding, new.encoding)
    if isinstance(old, np.ndarray):
        return isinstance(new, np.ndarray) and old.dtype == new.dtype and np.array_equal(old, new)
    if isinstance(old, tuple | list):
        return type(old) is type(new) and len(old) == len(new) and all(map(_same, old, new))
    if is_dataclass(old):
        names = [f.name for f in fields(old)]
        return type(old) is type(new) and all(_same(getattr(old, n), getattr(new, n)) for n in names)
    return old == new


def _held(node: Node, layer: Linear | Convolution) -> None:
    """Whether the memory's words can hold the weights. Raises HG056."""
    unit = node.unit
    assert isinstance(unit, WeightedUnit)
    if unit.product is Product.BIPOLAR and (np.abs(layer.weight) != 1).any():
        raise fail("HG056", layer.name, "the unit holds weights of -1 and 1 alone.", _HINT)
    new = replace(unit, weight=layer.weight.reshape(unit.weight.shape))
    bits, wanted = weight_bits(unit), weight_bits(new)
    if wanted > bits:
        raise fail("HG056", layer.name, f"weights of {wanted} bits; the unit holds {bits}.", _HINT)


def _before(build: Build, node: Node) -> list[Node]:
    return list(build.network.nodes[: build.network.nodes.index(node)])
