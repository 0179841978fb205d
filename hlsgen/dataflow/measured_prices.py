"""Prices of foldings after a network was laid out: the costs of its units correct the expected costs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from hlsgen.dataflow.folding_search import FoldingPrice
from hlsgen.dataflow.units import AdderMatVec, MatVec, Node, Port, RescaleUnit, SlidingWindow, WidthConverter
from hlsgen.dataflow.workload import Folding, Workload
from hlsgen.ir import Graph, Map, View

#: Smallest and largest ratio of a measured to an expected cost that counts: other foldings of a layer differ.
LEAST, MOST = 0.5, 1.5


@dataclass(frozen=True)
class _Measured:
    """Costs of the units of a layer, against expected ones.

    `stored`, `constants`: factors of the expected costs without the consumer. `consumer`: LUTs of the quantizer after
    the layer for each row at once; None: as expected. `single`: each lane of this quantizer has the parameters of one
    channel. `alike`: all lanes of it have the same parameters.
    """

    stored: float = 1.0
    constants: float = 1.0
    consumer: float | None = None
    single: bool = False
    alike: bool = False


def measured(
    price: FoldingPrice,
    graph: Graph,
    works: Mapping[str, Workload],
    folding: Folding,
    nodes: Sequence[Node],
    lut_of: Callable[[Sequence[Node]], float],
) -> FoldingPrice:
    """The price, corrected by the nodes of a network with this folding.

    `lut_of`: LUTs of nodes of one layer. The units of a layer cost the same multiple of their expected cost in all
    foldings with the same kind of weights. A quantizer costs the same for each row at once, if its parameters are of
    the same kind. Streams have the same beats.
    """
    nodes_of: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        nodes_of[node.layer].append(node)
    consumers = _consumers(graph)
    by_layer = {
        name: _measured(price, work, *folding[name], nodes_of[name], nodes_of[consumers.get(name, "")], lut_of)
        for name, work in works.items()
    }

    def consumer(work: Workload, pe: int) -> float:
        layer = by_layer[work.layer.name]
        if layer.consumer is None or not (layer.alike or layer.single == (pe >= work.outputs)):
            return price.consumer(work, pe)
        return layer.consumer

    def stored(work: Workload, pe: int, simd: int) -> float:
        unit = price.layer(work, pe, simd) - pe * price.consumer(work, pe)
        return by_layer[work.layer.name].stored * unit + pe * consumer(work, pe)

    def constants(work: Workload, pe: int, simd: int) -> float:
        assert price.constants is not None
        unit = price.constants(work, pe, simd) - pe * price.consumer(work, pe)
        return by_layer[work.layer.name].constants * unit + pe * consumer(work, pe)

    return replace(
        price,
        layer=stored,
        constants=None if price.constants is None else constants,
        consumer=consumer,
        sources=_sources(works, nodes),
    )


def _measured(
    price: FoldingPrice,
    work: Workload,
    pe: int,
    simd: int,
    layer_nodes: Sequence[Node],
    quantizer: Sequence[Node],
    lut_of: Callable[[Sequence[Node]], float],
) -> _Measured:
    """Measured costs of a layer, from its own nodes and the nodes of the quantizer after it."""
    result = _Measured()
    units = [node.unit for node in quantizer if isinstance(node.unit, RescaleUnit)]
    if units:
        folds, single = len(units[-1].table), pe >= work.outputs
        result = _Measured(consumer=lut_of(quantizer) / pe, single=single, alike=folds == 1 and not single)
    fixed = any(isinstance(n.unit, AdderMatVec) or (isinstance(n.unit, MatVec) and n.unit.sums) for n in layer_nodes)
    expected_cost = price.constants if fixed else price.layer
    expected = expected_cost(work, pe, simd) - pe * price.consumer(work, pe) if expected_cost else 0.0
    if not layer_nodes or expected <= 0:
        return result
    factor = min(max(lut_of(layer_nodes) / expected, LEAST), MOST)
    return replace(result, constants=factor) if fixed else replace(result, stored=factor)


def _sources(works: Mapping[str, Workload], nodes: Sequence[Node]) -> dict[str, tuple[int, int]]:
    """(lanes, group) of the streams that arrive at layers, except those from ports, which may have any lanes."""
    producer_of = {wire: node for node in nodes for wire in node.outputs}
    sources: dict[str, tuple[int, int]] = {}
    for node in nodes:
        if node.layer in works and node.layer not in sources:
            producer = producer_of[node.inputs[0]]
            while isinstance(producer.unit, WidthConverter | SlidingWindow):
                producer = producer_of[producer.inputs[0]]
            if not isinstance(producer.unit, Port):
                sources[node.layer] = producer.result.lanes, producer.result.group
    return sources


def _consumers(graph: Graph) -> dict[str, str]:
    """The Map that consumes the sums of each layer, possibly through views, by name."""
    consumers: dict[str, str] = {}
    for layer in graph.layers:
        if not isinstance(layer, Map):
            continue
        value = layer.inputs[0]
        while value and isinstance(graph.layers[value - 1], View):
            value = graph.layers[value - 1].inputs[0]
        if value:
            consumers[graph.layers[value - 1].name] = layer.name
    return consumers
