"""Cuts combinational ready paths: inserts a register slice where a ready signal would pass too many units in one cycle.

A core whose ready path may pass from end to end is cut at the output port or, if that has more bits, at the input port.
The registers of a slice suffice after a quantizer that can produce codes before its own output register. Adders before
hg_shift stall only together with it, so ready bypasses them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from hlsgen.adder_graph import AdderGraph, find, schedule
from hlsgen.dataflow import units
from hlsgen.dataflow.ends import divided, leaves
from hlsgen.dataflow.plain_ports import has_plain_ports
from hlsgen.dataflow.weighted_units import weight_bits
from hlsgen.rescale import Correct
from hlsgen.rescale.realize.shift import Shift
from hlsgen.verilog.unit_table import hops, latency

#: Units in series that a ready signal may pass in a cycle. The unit with the registers that it finally enables is not
#: counted.
LONGEST_CHAIN = 1
#: Bits of a stream from which a slice is expensive, and the units that a ready signal may pass there to avoid one.
WIDE, LONGEST_WIDE = 65, 7
#: At target clocks for which adder graphs have a register after every adder, ready passes this many units, and the
#: input port cuts it.
LONGEST_FAST = 1
#: Bits of codes and weights that one enable moves in a unit, in total and per bit of a beat of its sums. From both
#: limits on, the enable has high fan-out and must come from registers alone; a slice after the sums is cheap for such a
#: unit.
FAR, CHEAP = 96, 6
#: Bits of sums per bit of the quantizer's output from which the slice belongs after the quantizer.
FEW = 4
#: Picoseconds from sums to the registers of a slice, or of hg_shift. An hg_shift that drops bits rounds in a LUT, which
#: is possible for at most FEW_BITS dropped bits.
FEW_BITS = 4
MULTIPLEXER, CLAMPING, ROUNDING = 1200, 2000, 2300
#: Picoseconds from a register through the read port of a small memory, in a FIFO or an input port that cuts ready.
READ = 1500
#: Picoseconds that a stage of adders may take in a graph with one more level, if it is not faster than the other one.
SOON = 5000
#: Bits of a code up to which hg_correct can leave out its last register: its last sum has no carry chain, see SHORT
#: there.
SHORT_CODE = 4


def enabled(node: units.Node) -> int:
    """Bits of codes and weights that one enable moves after the memories of a unit with weights."""
    match node.unit:
        case units.MatVec(pe=pe, simd=simd, windows=windows) as unit:
            return windows * simd * node.source.type.bits + pe * simd * weight_bits(unit)
        case units.ConvUnit(pe=pe, simd=simd, depthwise=depthwise) as unit:
            return simd * node.source.type.bits + (1 if depthwise else pe) * simd * weight_bits(unit)
        case _:
            return 0


def _pauses(unit: units.Unit) -> bool:
    """True if the unit pauses for a cycle after each output beat, because it reads two or more words for each."""
    match unit:
        case units.MatVec():
            return unit.col_folds > 1
        case units.ConvUnit():
            return unit.window.taps * unit.folds > 1
        case _:
            return False


def cut_ready_chains(nodes: Sequence[units.Node], longest: int = LONGEST_CHAIN) -> list[units.Node]:
    """The nodes, with slices where a ready signal would pass more than `longest` units, or LONGEST_WIDE.

    After a unit whose enable has high fan-out, ready may pass no unit. An exception is a quantizer with a slice after
    its few bits: the enable then depends on one more register. The exception does not apply to a unit with a register
    after every adder. Plain ports need no slices.
    """
    if has_plain_ports(nodes):
        return _opened(nodes)
    early = _early(nodes)
    if early and not _cuts(early, longest):
        return _joined(_opened(early))
    return _joined(_opened(_sliced(nodes, _cuts(nodes, longest))))


def _early(nodes: Sequence[units.Node]) -> list[units.Node]:
    """The nodes with ready cut at the input port, if beats are narrower there and nothing between cuts it."""
    first, inner, last = divided(nodes)
    if [node.unit for node in (*first, *last)] != [units.Port()] * 2 or any(hops(node.unit) is None for node in inner):
        return []
    if first[0].result.bits + WIDE > last[0].source.bits:
        return []
    return [replace(node, unit=units.Port(cuts_ready=True)) if node.unit == units.Port() else node for node in nodes]


def _cuts(nodes: Sequence[units.Node], longest: int) -> set[str]:
    """The streams that need slices."""
    # Units that the ready of each stream passes.
    chain: dict[str, int] = {}
    cut: set[str] = set()
    short, fast = (
        _sums_of_short_codes(nodes),
        any(isinstance(node.unit, units.AdderMatVec) and node.unit.adders_per_stage == 1 for node in nodes),
    )
    # A slice costs as much as the neurons between two slices.
    in_tables = any(isinstance(node.unit, units.NeuronUnit) for node in nodes)
    converted = {wire for node in nodes if isinstance(node.unit, units.WidthConverter) for wire in node.inputs}
    for node in reversed(nodes):
        unit_hops = hops(node.unit)
        loop_wires = [wire for wire in node.outputs if wire not in chain and node is not nodes[-1]]
        # A loop ends at a slice.
        cut.update(loop_wires)
        chain |= dict.fromkeys(loop_wires, 0)
        high_fan_out = _slice_pays(node)
        if fast and node is nodes[0]:
            cut |= {wire for wire in node.outputs if chain[wire]}
        elif node.inputs and node.inputs[0] in short:
            cut |= {wire for wire in node.outputs if chain[wire] or wire in converted}
        elif high_fan_out or unit_hops is not None:
            wide_limit = LONGEST_FAST if fast else LONGEST_WIDE
            expensive = node.result.bits >= WIDE or in_tables
            limit = 0 if high_fan_out else wide_limit if expensive else longest
            cut |= {wire for wire in node.outputs if chain[wire] + (unit_hops or 0) > limit and wire not in short}
        if unit_hops is not None:
            length = unit_hops + max(0 if wire in cut else chain[wire] for wire in node.outputs)
        passes_early_port = isinstance(node.unit, units.Port) and node.unit.cuts_ready
        chain |= dict.fromkeys(node.inputs, int(passes_early_port) if unit_hops is None else length)
    return cut


def _opened(nodes: Sequence[units.Node]) -> list[units.Node]:
    """The nodes, where units leave out their last register if the consumer has one: see `_open`."""
    slices = {
        node.inputs[0]
        for node in nodes
        if isinstance(node.unit, units.Slice)
        or (isinstance(node.unit, units.Port) and leaves(node) and _cuts_ready(node.unit))
    }
    shifts = {
        node.inputs[0]: ROUNDING if node.unit.realization.shift else CLAMPING
        for node in nodes
        if isinstance(node.unit, units.RescaleUnit)
        and isinstance(node.unit.realization, Shift)
        and node.unit.realization.shift <= FEW_BITS
    }
    reads = {
        node.outputs[0]
        for node in nodes
        if isinstance(node.unit, units.Fifo) or (node.unit == units.Port(cuts_ready=True) and not leaves(node))
    }
    return [replace(node, unit=_open(node, slices, shifts, reads)) for node in nodes]


def _cuts_ready(port: units.Port) -> bool:
    """True if an output port is a slice as wide as its beats."""
    return not port.cuts_ready and not port.plain and (port.bus is None or port.bus.plain)


def _open(node: units.Node, slices: set[str], shifts: dict[str, int], reads: set[str]) -> units.Unit:
    """The unit without its last register, if its consumers have one.

    This applies to a quantizer to few bits before slices and output ports, and to adders before these or before an
    hg_shift that drops few bits.
    """
    match node.unit:
        case units.RescaleUnit(realization=Correct()) as unit if node.result.type.bits <= SHORT_CODE and slices >= {
            *node.outputs
        }:
            return replace(unit, omits_register=True)
        case units.AdderMatVec(graph=AdderGraph()) as unit:
            consumer_ps = MULTIPLEXER if slices >= {*node.outputs} else shifts.get(node.outputs[0])
            unit = replace(unit, consumer_ps=consumer_ps, producer_ps=READ if reads & {*node.inputs} else 0)
            deeper_unit = replace(unit, graph=_deeper(unit.graph))
            current, deeper = (
                schedule(candidate.graph, candidate.adders_per_stage, candidate.consumer_ps, candidate.producer_ps)
                for candidate in (unit, deeper_unit)
            )
            fast_enough = deeper.latency <= current.latency and deeper.limit <= max(current.limit, SOON)
            return deeper_unit if fast_enough and deeper.graph.bits < current.graph.bits else unit
        case _:
            return node.unit


def _joined(nodes: Sequence[units.Node]) -> list[units.Node]:
    """The nodes, where adders with wide sums stall only together with the hg_shift after them: ready bypasses them."""
    adders = {
        node.outputs[0]: latency(node.unit)
        for node in nodes
        if isinstance(node.unit, units.AdderMatVec)
        and isinstance(node.unit.graph, AdderGraph)
        and node.result.bits >= WIDE
    }
    ahead = {
        node.name: adders[node.inputs[0]]
        for node in nodes
        if node.inputs and node.inputs[0] in adders
        if isinstance(node.unit, units.RescaleUnit) and isinstance(node.unit.realization, Shift)
    }
    joined = {node.inputs[0] for node in nodes if node.name in ahead}
    result: list[units.Node] = []
    for node in nodes:
        unit = node.unit
        if isinstance(unit, units.AdderMatVec) and joined & {*node.outputs}:
            unit = replace(unit, joined=True)
        elif isinstance(unit, units.RescaleUnit) and node.name in ahead:
            unit = replace(unit, joined_latency=ahead[node.name])
        result.append(replace(node, unit=unit))
    return result


@lru_cache(maxsize=64)
def _deeper(graph: AdderGraph) -> AdderGraph:
    """The same matrix with one more level of adders: fewer sums of three terms, whose high bits take two LUTs each."""
    return find(graph.evaluate(np.eye(len(graph.inputs), dtype=np.int64)).T, graph.inputs, 1)


def _slice_pays(node: units.Node) -> bool:
    """True if a slice after a unit with weights is cheap compared with the unit, or needed.

    It is needed for the counters of a window, which wait for ready: at a fast clock, ready passes no unit before them.
    """
    return enabled(node) >= max(FAR, CHEAP * node.result.bits) or _fast_window(node.unit)


def _fast_window(unit: units.Unit) -> bool:
    """True if a unit with a window has a register after every adder."""
    return isinstance(unit, units.ConvUnit) and unit.adders_per_stage == 1


def _sums_of_short_codes(nodes: Sequence[units.Node]) -> set[str]:
    """Sums of units with weights that a quantizer converts to beats of few bits, so that a slice is cheap after it."""
    sums = {
        wire
        for node in nodes
        if isinstance(node.unit, units.MatVec | units.ConvUnit) and node.unit.adders_per_stage != 1
        if _slice_pays(node) or isinstance(node.unit, units.ConvUnit)
        for wire in node.outputs
    }
    quantizers = (node for node in nodes if isinstance(node.unit, units.RescaleUnit) and node.inputs[0] in sums)
    return {node.inputs[0] for node in quantizers if FEW * node.result.bits <= node.source.bits}


def _sliced(nodes: Sequence[units.Node], cut: set[str]) -> list[units.Node]:
    """The nodes, with a slice on each of these streams.

    The slice has one register after a unit that does not produce a beat in every cycle, else two.
    """
    needs_two_beats = {wire: not _pauses(node.unit) for node in nodes for wire in node.outputs}
    result: list[units.Node] = []
    for node in nodes:
        inputs = list(node.inputs)
        for n, wire in enumerate(inputs):
            if wire in cut:
                inputs[n], stream = f"{wire}_slice", node.sources[n]
                result.append(
                    units.Node(inputs[n], units.Slice(needs_two_beats[wire]), (wire,), (stream,), (inputs[n],), stream)
                )
        result.append(replace(node, inputs=tuple(inputs)))
    return result
