"""Cuts chains of ready signals: where a taker's ready would go through too many units in one cycle, a slice stands.

A core through which it may go as a whole has its cut at the output port or, if that has more bits, at the input port.
The registers of a slice are enough behind a quantizer that can send codes before they are in its own.
Adders in front of hg_shift stand still with it only: so ready goes around them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from typing_extensions import assert_never

from hlsgen.adder_graph import AdderGraph, find, schedule
from hlsgen.dataflow.ends import divided, leaves
from hlsgen.dataflow.units import (
    AdderMatVec,
    ArgMaxUnit,
    ConcatBeats,
    ConcatChannels,
    ConvUnit,
    Crop,
    DynamicMatVec,
    Fifo,
    FloatKeyUnit,
    FloatUnit,
    Fork,
    GroupedMatVec,
    JoinStreams,
    MatVec,
    Node,
    NormMoments,
    NormRoot,
    NormScale,
    PadBorder,
    PoolUnit,
    Port,
    ReduceTree,
    Reorder,
    RescaleUnit,
    RowsUnit,
    SelectLanes,
    Slice,
    SlidingWindow,
    SoftmaxUnit,
    TiledPool,
    Unit,
    WidthConverter,
)
from hlsgen.dataflow.weighted_units import weight_bits
from hlsgen.rescale import Correct
from hlsgen.rescale.realize.shift import Shift
from hlsgen.verilog.latency import latency

#: Units one behind the other that a ready signal may go through in a cycle. The unit with the registers that it
#: enables in the end is not counted.
LONGEST_CHAIN = 1
#: Bits of a stream from which a slice is dear, and the units that a ready signal may go through rather than take one.
WIDE, LONGEST_WIDE = 65, 7
#: At a clock for which adder graphs have a register after every adder it goes through one of these, and the input port cuts it.
LONGEST_FAST = 1
#: Bits of codes and weights that a unit moves on one enable, in all and for each bit of a beat of its sums, from which
#: that enable follows from registers alone: it goes far then, and a slice behind the sums is cheap beside the unit.
FAR, CHEAP = 96, 6
#: Bits of sums for each bit that a quantizer makes of them, from which the slice belongs behind it.
FEW = 4
#: Picoseconds from sums to the registers of a slice, and of hg_shift if it drops no bits, or at most FEW_BITS: a table rounds then.
FEW_BITS = 4
MULTIPLEXER, CLAMPING, ROUNDING = 1200, 2000, 2300
#: Picoseconds from a register to what is read in a small memory, of a FIFO or an input port that cuts ready.
READ = 1500
#: Picoseconds of a stage of adders that a graph with a level more may have, if it has no more than the other.
SOON = 5000
#: Bits of a code up to which hg_correct can leave out its last register: its last sum has no carry chain, see SHORT there.
SHORT_CODE = 4


def hops(unit: Unit) -> int | None:
    """Units that a ready signal goes through here: 1 if s_ready depends on m_ready, None if on registers only."""
    match unit:
        case Port() | Slice() | WidthConverter() | MatVec() | ConvUnit() | PoolUnit() | SlidingWindow() | Reorder():
            return None
        case RowsUnit() | SoftmaxUnit() | NormRoot():
            return None
        case Fifo() | SelectLanes():
            # A FIFO that is of no use is left out later; choosing lanes takes no logic.
            return 0
        case FloatKeyUnit() | RescaleUnit() | FloatUnit() | AdderMatVec() | GroupedMatVec() | TiledPool():
            return 1
        case ReduceTree() | ArgMaxUnit() | JoinStreams() | DynamicMatVec() | ConcatBeats() | ConcatChannels() | Fork():
            return 1
        case Crop() | PadBorder() | NormMoments() | NormScale():
            return 1
        case _:
            assert_never(unit)


def enabled(node: Node) -> int:
    """Bits of codes and weights that move on one enable behind the memories of a unit with weights."""
    match node.unit:
        case MatVec(pe=pe, simd=simd, windows=windows) as unit:
            return windows * simd * node.source.type.bits + pe * simd * weight_bits(unit)
        case ConvUnit(pe=pe, simd=simd, depthwise=depthwise) as unit:
            return simd * node.source.type.bits + (1 if depthwise else pe) * simd * weight_bits(unit)
        case _:
            return 0


def _pauses(unit: Unit) -> bool:
    """Whether there is a cycle without a beat after each one that the unit sends: it reads two words for each, or more."""
    match unit:
        case MatVec():
            return unit.col_folds > 1
        case ConvUnit():
            return unit.window.taps * unit.folds > 1
        case _:
            return False


def cut_ready_chains(nodes: Sequence[Node], longest: int = LONGEST_CHAIN) -> list[Node]:
    """The nodes, with slices where a ready signal would go through more than `longest` units, or LONGEST_WIDE.

    Behind a unit whose enable goes far it may go through none, or, but for a unit with a register after every adder,
    through a quantizer with a slice behind its few bits: the enable follows from a register more then.
    """
    early = _early(nodes)
    if early and not _cuts(early, longest):
        return _joined(_opened(early))
    return _joined(_opened(_sliced(nodes, _cuts(nodes, longest))))


def _early(nodes: Sequence[Node]) -> list[Node]:
    """The nodes with ready cut at the input port, if beats are narrower there and nothing cuts it between."""
    first, inner, last = divided(nodes)
    if [node.unit for node in (*first, *last)] != [Port()] * 2 or any(hops(node.unit) is None for node in inner):
        return []
    if first[0].result.bits + WIDE > last[0].source.bits:
        return []
    return [replace(node, unit=Port(early=True)) if node.unit == Port() else node for node in nodes]


def _cuts(nodes: Sequence[Node], longest: int) -> set[str]:
    """The streams on which slices have to stand."""
    chain: dict[str, int] = {}  # of each stream, units that its ready goes through
    cut: set[str] = set()
    short, fast = (
        _short(nodes),
        any(isinstance(node.unit, AdderMatVec) and node.unit.adders_per_stage == 1 for node in nodes),
    )
    converted = {wire for node in nodes if isinstance(node.unit, WidthConverter) for wire in node.inputs}
    for node in reversed(nodes):
        own = hops(node.unit)
        back = [wire for wire in node.outputs if wire not in chain and node is not nodes[-1]]
        cut.update(back)  # a loop ends at a slice
        chain |= dict.fromkeys(back, 0)
        far = _goes_far(node)
        if fast and node is nodes[0]:
            cut |= {wire for wire in node.outputs if chain[wire]}
        elif node.inputs and node.inputs[0] in short:
            cut |= {wire for wire in node.outputs if chain[wire] or wire in converted}
        elif far or own is not None:
            wide = LONGEST_FAST if fast else LONGEST_WIDE
            most = 0 if far else wide if node.result.bits >= WIDE else longest
            cut |= {wire for wire in node.outputs if chain[wire] + (own or 0) > most and wire not in short}
        if own is not None:
            length = own + max(0 if wire in cut else chain[wire] for wire in node.outputs)
        through = isinstance(node.unit, Port) and node.unit.early
        chain |= dict.fromkeys(node.inputs, int(through) if own is None else length)
    return cut


def _opened(nodes: Sequence[Node]) -> list[Node]:
    """The nodes, where units leave out their last register as the taker has one: see `_open`."""
    slices = {
        node.inputs[0]
        for node in nodes
        if isinstance(node.unit, Slice) or (isinstance(node.unit, Port) and leaves(node) and _cuts_ready(node.unit))
    }
    shifts = {
        node.inputs[0]: ROUNDING if node.unit.realization.shift else CLAMPING
        for node in nodes
        if isinstance(node.unit, RescaleUnit)
        and isinstance(node.unit.realization, Shift)
        and node.unit.realization.shift <= FEW_BITS
    }
    reads = {
        node.outputs[0]
        for node in nodes
        if isinstance(node.unit, Fifo) or (node.unit == Port(early=True) and not leaves(node))
    }
    return [replace(node, unit=_open(node, slices, shifts, reads)) for node in nodes]


def _cuts_ready(port: Port) -> bool:
    """Whether an output port is a slice as wide as its beats."""
    return not port.early and (port.bus is None or port.bus.plain)


def _open(node: Node, slices: set[str], shifts: dict[str, int], reads: set[str]) -> Unit:
    """A quantizer to few bits in front of slices and output ports, adders also in front of hg_shift that drops few bits."""
    match node.unit:
        case RescaleUnit(realization=Correct()) as unit if node.result.type.bits <= SHORT_CODE and slices >= {
            *node.outputs
        }:
            return replace(unit, open=True)
        case AdderMatVec(graph=AdderGraph()) as unit:
            behind = MULTIPLEXER if slices >= {*node.outputs} else shifts.get(node.outputs[0])
            unit = replace(unit, consumer_ps=behind, producer_ps=READ if reads & {*node.inputs} else 0)
            found = replace(unit, graph=_deeper(unit.graph))
            now, then = (
                schedule(own.graph, own.adders_per_stage, own.consumer_ps, own.producer_ps) for own in (unit, found)
            )
            soon = then.latency <= now.latency and then.limit <= max(now.limit, SOON)
            return found if soon and then.graph.bits < now.graph.bits else unit
        case _:
            return node.unit


def _joined(nodes: Sequence[Node]) -> list[Node]:
    """The nodes, where adders with wide sums stand still with the hg_shift behind them only: ready skips them."""
    adders = {
        node.outputs[0]: latency(node.unit)
        for node in nodes
        if isinstance(node.unit, AdderMatVec) and isinstance(node.unit.graph, AdderGraph) and node.result.bits >= WIDE
    }
    ahead = {
        node.name: adders[node.inputs[0]]
        for node in nodes
        if node.inputs and node.inputs[0] in adders
        if isinstance(node.unit, RescaleUnit) and isinstance(node.unit.realization, Shift)
    }
    joined = {node.inputs[0] for node in nodes if node.name in ahead}
    result: list[Node] = []
    for node in nodes:
        unit = node.unit
        if isinstance(unit, AdderMatVec) and joined & {*node.outputs}:
            unit = replace(unit, joined=True)
        elif isinstance(unit, RescaleUnit) and node.name in ahead:
            unit = replace(unit, ahead=ahead[node.name])
        result.append(replace(node, unit=unit))
    return result


@lru_cache(maxsize=64)
def _deeper(graph: AdderGraph) -> AdderGraph:
    """The same matrix with a level of adders more: fewer sums of three terms, whose high bits take two tables each."""
    return find(graph.evaluate(np.eye(len(graph.inputs), dtype=np.int64)).T, graph.inputs, 1)


def _goes_far(node: Node) -> bool:
    """Whether a slice behind a unit with weights is cheap beside it, or needed: the counts of a window wait for ready,
    which at a fast clock goes through no unit before."""
    return enabled(node) >= max(FAR, CHEAP * node.result.bits) or _fast_window(node.unit)


def _fast_window(unit: Unit) -> bool:
    """Whether a unit with a window has a register after every adder."""
    return isinstance(unit, ConvUnit) and unit.adders_per_stage == 1


def _short(nodes: Sequence[Node]) -> set[str]:
    """Sums of units with weights from which a quantizer makes beats of few bits: a slice is cheap behind those."""
    slow = [node for node in nodes if getattr(node.unit, "every", 2) != 1]
    sums = {wire for node in slow if _goes_far(node) or isinstance(node.unit, ConvUnit) for wire in node.outputs}
    takers = (node for node in nodes if isinstance(node.unit, RescaleUnit) and node.inputs[0] in sums)
    return {node.inputs[0] for node in takers if FEW * node.result.bits <= node.source.bits}


def _sliced(nodes: Sequence[Node], cut: set[str]) -> list[Node]:
    """The nodes, with a slice on each of these streams: of one register behind units that do not send in every cycle."""
    full = {wire: not _pauses(node.unit) for node in nodes for wire in node.outputs}
    result: list[Node] = []
    for node in nodes:
        inputs = list(node.inputs)
        for n, wire in enumerate(inputs):
            if wire in cut:
                inputs[n], stream = f"{wire}_slice", node.sources[n]
                result.append(Node(inputs[n], Slice(full[wire]), (wire,), (stream,), (inputs[n],), stream))
        result.append(replace(node, inputs=tuple(inputs)))
    return result
