"""The layer table of manifest, report and `hlsgen check`: realization, folding, cycles and memory of each layer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from typing_extensions import assert_never

from hlsgen import ir
from hlsgen.cycle_model.timing_models import busy
from hlsgen.dataflow import units
from hlsgen.dataflow.network import Network, Timing
from hlsgen.dataflow.weighted_units import has_weight_memory, weight_bits, weight_words
from hlsgen.dataflow.workload import work_of
from hlsgen.rescale import Choice

#: Estimate of nodes, and of the realizations of their layers, in a target: lut, ff, bram and dsp of the chosen device.
#: Without a device: LUT of six inputs, and block RAM of 18 Kbit.
Estimator = Callable[[Iterable[units.Node], Mapping[str, Choice]], dict[str, int]]


def layer_table(network: Network, timing: Timing, estimator: Estimator) -> list[dict[str, Any]]:
    """One row for each layer. utilization: share of the frame interval in which the multipliers work."""
    rows = []
    nodes_by_layer = nodes_of(network)
    for layer in network.graph.layers:
        nodes = nodes_by_layer.get(layer.name, []) if not isinstance(layer, ir.View) else []
        choices = {layer.name: network.choices[layer.name]} if layer.name in network.choices else {}
        rows.append({**_row(network, timing, layer, nodes), "estimate": estimator(nodes, choices)})
    return rows


def fifo_table(network: Network, timing: Timing) -> list[dict[str, Any]]:
    """One row for each FIFO. A smaller `critical` FIFO would raise latency or interval, or deadlock."""
    return [
        {"instance": s.name, "depth": s.unit.depth, "bits": s.source.bits, "critical": s.name in timing.critical}
        for s in network.nodes
        if isinstance(s.unit, units.Fifo)
    ]


def nodes_of(network: Network) -> dict[str, list[units.Node]]:
    """Nodes of each layer by name, including the routing nodes upstream of them (FIFOs, forks, width converters)."""
    nodes_by_layer: dict[str, list[units.Node]] = {}
    routing: list[units.Node] = []
    for node in network.inner:
        routing.append(node)
        if node.layer:
            nodes_by_layer.setdefault(node.layer, []).extend(routing)
            routing = []
    return nodes_by_layer


def _row(network: Network, timing: Timing, layer: ir.Layer, nodes: list[units.Node]) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": layer.name,
        "kind": "",
        "input": ", ".join(str(source.type) for source in ir.sources_of(layer)),
        "output": str(layer.result.type),
        "shape": list(layer.result.shape),
        "cycles": max((busy(s) for s in nodes), default=0),
        "instance": nodes[-1].name if nodes else None,
        **_memories(nodes),
    }
    match layer:
        case ir.Linear() | ir.Convolution():
            row |= _multiplying(timing, layer, nodes[-1] if nodes else None)
        case ir.MatrixProduct():
            row |= _product(timing, layer, nodes[-1])
        case ir.Map() | ir.BinaryMap():
            choice = network.choices[layer.name]
            row |= {"kind": "quantizer" if isinstance(layer, ir.Map) else layer.kind.value}
            row |= {"realization": describe_choice(choice), "taken": choice.name, "lanes": nodes[-1].source.lanes}
            row |= {"tried": [asdict(trial) for trial in choice.trials]}
        case ir.Pooling():
            row |= {"kind": f"{layer.kind.value} pool", "lanes": nodes[-1].source.lanes}
        case ir.Rearrange():
            row |= {"kind": type(layer.op).__name__.lower(), "lanes": nodes[-1].source.lanes}
        case ir.Concatenation():
            row |= {"kind": "concat", "lanes": nodes[-1].source.lanes}
        case ir.Delay():
            row |= {"kind": "state", "lanes": nodes[-1].source.lanes}
        case ir.FloatBinary():
            row |= {"kind": f"{layer.kind.value} of float32", "lanes": nodes[-1].source.lanes}
        case ir.PackBytes():
            row |= {"kind": "pair", "lanes": nodes[-1].source.lanes}
        case ir.View():
            row |= {"kind": "rename"}
        case ir.StreamedInput() | ir.StreamedOutputs():
            row |= {"kind": "port"}
        case ir.ArgMaxLayer():
            row |= {"kind": "argmax"}
        case ir.SoftmaxRows():
            row |= {"kind": "softmax", "lanes": nodes[-1].source.lanes}
        case ir.IntegerRows():
            row |= {"kind": "integer rows", "lanes": nodes[-1].source.lanes}
            row |= {"merged": list(layer.merged)} if layer.merged else {}
        case ir.NormRows():
            row |= {"kind": f"{layer.kind.value} norm", "lanes": nodes[-1].source.lanes}
        case _:
            assert_never(layer)
    return row


def _multiplying(timing: Timing, layer: ir.Linear | ir.Convolution, node: units.Node | None) -> dict[str, Any]:
    """Sizes of a matrix; `node` is None if lookup tables compute it together with its quantizer."""
    work = work_of(layer)
    pe, simd = (work.rows, work.columns) if node is None else _folding(node.unit)
    kind = "popcount" if layer.binary else "linear" if isinstance(layer, ir.Linear) else "conv"
    return {
        "kind": "depthwise" if work.depthwise else kind,
        "rows": work.groups * work.rows,
        "columns": work.taps * work.columns,
        "pe": pe,
        "simd": simd,
        "macs": work.macs,
        "utilization": round(work.macs / (pe * simd * timing.interval), 4),
        "accumulator": [int(layer.lo.min()), int(layer.hi.max())],
    }


def _folding(unit: units.Unit) -> tuple[int, int]:
    """(PE, SIMD) of a unit with weights."""
    unit = unit.matrix if isinstance(unit, units.AdderMatVec) else unit
    assert isinstance(unit, units.WeightedUnit)
    pe = unit.pe * unit.windows if isinstance(unit, units.MatVec) else unit.pe
    return pe, 1 if isinstance(unit, units.ConvUnit) and unit.depthwise else unit.simd


def _product(timing: Timing, layer: ir.MatrixProduct, node: units.Node) -> dict[str, Any]:
    unit, work = node.unit, work_of(layer)
    assert isinstance(unit, units.DynamicMatVec)
    return {
        "kind": "product",
        "rows": work.rows,
        "columns": work.columns,
        "pe": unit.pe,
        "simd": unit.simd,
        "macs": work.macs,
        "utilization": round(work.macs / (unit.pe * unit.simd * timing.interval), 4),
        "accumulator": [layer.interval.lo, layer.interval.hi],
    }


def _memories(nodes: list[units.Node]) -> dict[str, int]:
    """Bits of the weights, bits of the buffers, and the depth of the deepest FIFO."""
    sizes = {"weight_bits": 0, "buffer_bits": 0, "fifo_depth": 0}
    for node in nodes:
        unit = node.unit
        if isinstance(unit, units.WeightedUnit) and has_weight_memory(unit):
            sizes["weight_bits"] += weight_words(unit) * unit.lanes * weight_bits(unit)
        if isinstance(unit, units.Fifo):
            sizes["fifo_depth"] = max(sizes["fifo_depth"], unit.depth)
        sizes["buffer_bits"] += units.buffer_bits(node)
    return sizes


def describe_choice(choice: Choice) -> str:
    """The name of a realization and the number of its steps, if it has any."""
    steps = choice.steps
    counts = f", {steps.steps} steps x {steps.sets} sets" if steps is not None else ""
    return f"{choice.name}{counts}"
