"""Units that move beats and do not compute: ports, FIFOs, forks, converters, slices of tensors."""

from __future__ import annotations

import math

from hlsgen.dataflow import units
from hlsgen.dataflow.ends import enters
from hlsgen.dataflow.network import bus_streams
from hlsgen.verilog.binding.memory_files import Binding, Bits, Parameter, words
from hlsgen.verilog.memory_sizes import buffer
from hlsgen.verilog.parts import Parts
from hlsgen.verilog.units.parameters import code_bits
from hlsgen.verilog.units.spec import CostOptions, UnitSpec, beat_registers, cycles, without_style


def _bind_width(node: units.Node, _unit: units.WidthConverter) -> Binding:
    source, result = node.source, node.result
    parameters: dict[str, Parameter] = {"UNIT": source.type.bits, "IN": source.lanes, "OUT": result.lanes}
    if source.group % source.lanes or result.group % result.lanes:
        parameters |= {"IN_GROUP": source.group, "OUT_GROUP": result.group}
    return Binding("hg_width", parameters, f"{source.lanes} to {result.lanes} elements a beat")


def _bind_register_slice(node: units.Node, unit: units.Slice) -> Binding:
    if unit.full:
        summary = "register slice of 2 beats, ready is registered"
        return Binding("hg_slice", {"WIDTH": node.source.bits}, summary)
    summary = "register slice of 1 beat, ready while it is empty"
    return Binding("hg_slice", {"WIDTH": node.source.bits, "FULL": 0}, summary)


def _bind_concat(node: units.Node, unit: units.ConcatBeats) -> Binding:
    a, b = (stream.type for stream in node.sources)
    return Binding(
        "hg_concat",
        {
            "UNIT_A": a.bits,
            "A_SIGNED": int(a.signed),
            "UNIT_B": b.bits,
            "B_SIGNED": int(b.signed),
            "UNIT_OUT": node.result.type.bits,
            "LANES": node.result.lanes,
            "BEATS_A": unit.beats[0],
            "BEATS_B": unit.beats[1],
        },
        f"{unit.beats[0]} and {unit.beats[1]} beats in turn",
    )


def _bind_concat_channels(node: units.Node, unit: units.ConcatChannels) -> Binding:
    a, b = (stream.type for stream in node.sources)
    parameters: dict[str, Parameter] = {
        "UNIT_A": a.bits,
        "A_SIGNED": int(a.signed),
        "UNIT_B": b.bits,
        "B_SIGNED": int(b.signed),
        "UNIT_OUT": node.result.type.bits,
        "LANES_A": unit.lanes[0],
        "LANES_B": unit.lanes[1],
        "PIXELS": unit.pixels,
    }
    return Binding("hg_beside", parameters, f"{unit.lanes[0]} and {unit.lanes[1]} elements side by side")


def _bind_select_lanes(node: units.Node, unit: units.SelectLanes) -> Binding:
    lane_map = sum(lane << (32 * n) for n, lane in enumerate(unit.places))
    parameters: dict[str, Parameter] = {
        "UNIT": node.source.type.bits,
        "IN": node.source.lanes,
        "OUT": node.result.lanes,
        "MAP": Bits(32 * len(unit.places), lane_map),
    }
    return Binding("hg_pick", parameters, "selects elements of each beat")


def _bind_crop(node: units.Node, unit: units.Crop) -> Binding:
    parameters: dict[str, Parameter] = {"WIDTH": node.source.bits}
    parameters |= zip(("HEIGHT", "COLUMNS", "FOLDS"), unit.sizes, strict=True)
    for axis, cut in zip("YXC", (unit.rows, unit.columns, unit.beats), strict=True):
        parameters |= {f"{axis}{suffix}": value for suffix, value in zip("01S", cut, strict=True)}
    return Binding("hg_take", parameters, "slice of the tensor")


def _bind_pad(node: units.Node, unit: units.PadBorder) -> Binding:
    bits = node.source.type.bits
    parameters: dict[str, Parameter] = {
        "UNIT": bits,
        "LANES": node.source.lanes,
        "HEIGHT": unit.height,
        "COLUMNS": unit.width,
        "FOLDS": unit.folds,
        "TOP": unit.pads[0],
        "LEFT": unit.pads[1],
        "BOTTOM": unit.pads[2],
        "RIGHT": unit.pads[3],
        "VALUE": code_bits(unit.value, bits),
    }
    return Binding("hg_pad", parameters, "border of constant elements")


def _bind_gather(node: units.Node, unit: units.Reorder) -> Binding:
    extents = sum(extent << (32 * d) for d, (extent, _) in enumerate(unit.loops))
    strides = sum(stride << (32 * d) for d, (_, stride) in enumerate(unit.loops))
    bits = 32 * len(unit.loops)
    return Binding(
        "hg_gather",
        {
            "WIDTH": node.source.bits,
            "BLOCK": unit.block,
            "DIMS": len(unit.loops),
            "EXTENTS": Bits(bits, extents),
            "STRIDES": Bits(bits, strides),
        },
        "reorders elements",
    )


def _bind_port(node: units.Node, unit: units.Port, style: int) -> Binding:
    raise AssertionError("ports are not bound")


def _bind_fork(node: units.Node, unit: units.Fork) -> Binding:
    parameters: dict[str, Parameter] = {"WIDTH": node.source.bits, "COUNT": unit.count}
    return Binding("hg_fork", parameters, f"fork to {unit.count} consumers")


def _bind_fifo(node: units.Node, unit: units.Fifo) -> Binding:
    parameters: dict[str, Parameter] = {"WIDTH": node.source.bits, "DEPTH": unit.depth}
    return Binding("hg_fifo", parameters, f"FIFO of {unit.depth} beats")


def _fork_parts(_node: units.Node, unit: units.Fork, _options: CostOptions) -> Parts:
    return Parts("Fork", {"control": 3.0 * unit.count}, {"control": float(unit.count)})


def _fifo_parts(node: units.Node, unit: units.Fifo, options: CostOptions) -> Parts:
    """A large FIFO is read ahead, with a bypass for the word that is being written."""
    depth, bits = unit.depth, node.source.bits
    parts = Parts("Fifo", {"control": 25.0}, {"control": 15.0, "out": float(node.result.bits)})
    large = depth >= 512 or (depth > 64 and depth * bits > 16384)
    parts.hold("buffer", buffer(depth, bits, options.family, write_first=not large))
    return parts


def _register_slice_parts(node: units.Node, unit: units.Slice, _options: CostOptions) -> Parts:
    lut = float(node.result.bits * unit.full)
    return Parts("Slice", {"control": 3.0, "data": lut}, {"control": 2.0, "data": lut + node.result.bits})


def _gather_parts(node: units.Node, unit: units.Reorder, options: CostOptions) -> Parts:
    parts = Parts("Reorder", {"control": 60.0}, {"control": 40.0, "out": float(node.result.bits)})
    parts.hold("buffer", buffer(2 * unit.block, node.source.bits, options.family))
    return parts


def _concat_parts(node: units.Node, _unit: units.ConcatBeats | units.ConcatChannels, _options: CostOptions) -> Parts:
    return Parts("Concat", {"control": 20.0, "data": float(node.result.bits)}, beat_registers(node))


def _crop_parts(node: units.Node, _unit: units.Crop | units.PadBorder, _options: CostOptions) -> Parts:
    return Parts("Crop", {"control": 40.0, "data": float(node.result.bits)}, beat_registers(node))


def _width_parts(node: units.Node, _unit: units.WidthConverter, _options: CostOptions) -> Parts:
    return regrouping(node.source, node.result)


def _select_lanes_parts(_node: units.Node, _unit: units.SelectLanes, _options: CostOptions) -> Parts:
    return Parts("SelectLanes")


def regrouping(source: units.Stream, result: units.Stream) -> Parts:
    """Parts of hg_width."""
    step, _ = units.regrouping_step(source, result)
    if step == result.lanes:
        # A multiplexer of the parts of a beat.
        lut = {"control": 8.0, "data": result.bits * (1 + source.lanes // step / 3)}
        return Parts("narrow", lut, {"control": 4.0, "data": float(source.bits)})
    if step == source.lanes and result.group % result.lanes not in range(1, step + 1):
        alike = result.group % result.lanes == 0 or result.group < result.lanes
        # Elements are shifted in from one end or one of two, or each place has an enable of its own.
        places = result.lanes / step
        shift = 1.2 * math.log2(places) + (0.0 if alike else 2.0 * source.bits)
        lut = {"control": 8.0, "data": shift if alike or 2 * source.bits <= places else 1.2 * places}
        return Parts("widen", lut, {"control": 4.0, "data": float(result.bits)})
    # Each stored step can go to any place.
    lut = {"control": 8.0, "data": (source.bits + 2 * result.bits) * (1.5 + math.log2(result.lanes / step) / 2)}
    return Parts("gearbox", lut, {"control": 8.0, "data": float(source.bits + result.bits)})


def _port_parts(node: units.Node, port: units.Port, options: CostOptions) -> Parts:
    """A register, and a counter of beats; a port that cuts ready holds two beats. Bus words become beats after it."""
    if port.plain:
        return Parts("plain port")
    first, bus = enters(node), port.bus
    stream = node.source if first else node.result
    count = (stream.beats if bus is None else bus.words).bit_length()
    bits = float(stream.bits if bus is None else bus.beat_bits * bus.slots if bus.parts == 1 else bus.width)
    if first:
        parts = Parts("input port", {"count": 2.0 * count}, {"count": 2.0 * count})
        if port.cuts_ready:
            parts.lut["control"], parts.ff["control"] = 8.0, 8.0
            parts.hold("buffer", buffer(2, int(bits), options.family, write_first=True))
        else:
            parts.ff["data"] = bits
    elif port.cuts_ready:
        parts = Parts("output port", {"control": 2.0, "count": 1.5 * count}, {"count": float(count), "data": bits + 2})
    else:
        lut = {"control": 10.0, "count": 1.5 * count, "data": 0.7 * bits}
        parts = Parts("output port", lut, {"control": 8.0, "count": float(count), "data": 2.0 * bits})
    if bus is not None and not bus.plain:
        outer, inner = bus_streams(bus)
        change = regrouping(outer, inner) if first else regrouping(inner, outer)
        parts.lut["bus"], parts.ff["bus"] = sum(change.lut.values()), sum(change.ff.values())
    return parts


def _bind_frame_start(node: units.Node, unit: units.FrameStart) -> Binding:
    parameters: dict[str, Parameter] = {"WIDTH": node.source.bits, "BEATS": unit.beats, "WORDS": unit.words}
    return Binding("hg_frame_start", parameters, "starts of sequences, a bit for each frame")


def _bind_frame_memory(node: units.Node, unit: units.FrameMemory) -> Binding:
    """A constant beat is a parameter, other initial states are a memory file."""
    text = words(unit.initial, node.result.type.bits)
    parameters: dict[str, Parameter] = {"WIDTH": node.result.bits, "BEATS": unit.beats}
    summary = f"state of {unit.beats} beats from frame to frame"
    beats = text.split()
    if len(set(beats)) == 1:
        return Binding("hg_state", parameters | {"INITIAL": Bits(node.result.bits, int(beats[0], 16))}, summary)
    file = f"{node.name}.mem"
    return Binding("hg_state", parameters | {"TABLE": 1, "FILE": file}, summary, {file: text})


def _frame_start_parts(_node: units.Node, unit: units.FrameStart, _options: CostOptions) -> Parts:
    count = float(unit.beats.bit_length() + unit.words.bit_length())
    return Parts("FrameStart", {"control": 20.0, "count": count}, {"control": 12.0, "count": count})


def _frame_memory_parts(node: units.Node, unit: units.FrameMemory, options: CostOptions) -> Parts:
    """Counters of words, two registers, and a multiplexer between initial and stored beat."""
    bits, constant = node.result.bits, (unit.initial == unit.initial[0]).all()
    count = float(unit.beats.bit_length())
    parts = Parts(
        "FrameMemory",
        {"control": 24.0, "count": 3 * count, "data": float(bits)},
        {"control": 16.0, "count": 3 * count, "out": float(bits)},
    )
    parts.hold("buffer", buffer(unit.beats, bits, options.family))
    if not constant:
        parts.lut["initial"] = bits * -(-unit.beats // 64)
        parts.ff["initial"] = float(bits)
    return parts


PORT = UnitSpec(_bind_port, lambda port: int(not port.plain), _port_parts, ready_hops=None)
WIDTH = UnitSpec(without_style(_bind_width), cycles(1), _width_parts, ready_hops=None)
# A useless FIFO is removed later; selecting lanes needs no logic.
FIFO = UnitSpec(without_style(_bind_fifo), cycles(1), _fifo_parts, ready_hops=0)
SELECT_LANES = UnitSpec(without_style(_bind_select_lanes), cycles(0), _select_lanes_parts, ready_hops=0)
REGISTER_SLICE = UnitSpec(without_style(_bind_register_slice), cycles(1), _register_slice_parts, ready_hops=None)
FORK = UnitSpec(without_style(_bind_fork), cycles(0), _fork_parts, ready_hops=1)
CONCAT = UnitSpec(without_style(_bind_concat), cycles(0), _concat_parts, ready_hops=1)
CONCAT_CHANNELS = UnitSpec(without_style(_bind_concat_channels), cycles(1), _concat_parts, ready_hops=1)
CROP = UnitSpec(without_style(_bind_crop), cycles(0), _crop_parts, ready_hops=1)
PAD = UnitSpec(without_style(_bind_pad), cycles(0), _crop_parts, ready_hops=1)
FRAME_START = UnitSpec(without_style(_bind_frame_start), cycles(0), _frame_start_parts, ready_hops=1)
FRAME_MEMORY = UnitSpec(without_style(_bind_frame_memory), cycles(1), _frame_memory_parts, ready_hops=None)
GATHER = UnitSpec(without_style(_bind_gather), cycles(1), _gather_parts, ready_hops=None)
