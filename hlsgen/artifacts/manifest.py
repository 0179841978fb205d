"""manifest.json describes a build for programs: ports, layers, FIFOs, cycles and host operations."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from typing import Any

import numpy as np

from hlsgen.artifacts.layer_table import Estimator, fifo_table, layer_table
from hlsgen.artifacts.unit_table import unit_table
from hlsgen.dataflow.backend import Emitted
from hlsgen.dataflow.network import CorePort, Network, Timing
from hlsgen.dataflow.units import FrameMemory
from hlsgen.host.plan import left_to_user
from hlsgen.ir import Accumulator, Affine, Encoding, Fixed, FloatKey, Graph, HostOp, IntegerEncoding, Op, Step, Value
from hlsgen.ir.input_codes import input_range
from hlsgen.ir.stream_order import axes_of
from hlsgen.numerics.fixed import Array, IntType, Rounding

#: Constants of host operations with at most this number of elements are written in full.
MAX_HOST_CONSTANTS = 1024


def _named_order(order: Array, shape: tuple[int, ...]) -> dict[str, Any]:
    """Axes of the frame from outermost to innermost, or the row-major index of every element."""
    axes = axes_of(order, shape)
    return {"axes": axes} if axes is not None else {"order": order.tolist()}


def manifest(
    network: Network,
    timing: Timing,
    emitted: Emitted,
    options: dict[str, Any],
    model: dict[str, str],
    version: str,
    estimator: Estimator,
) -> dict[str, Any]:
    """Content of manifest.json without `files`. estimator: of a target."""
    graph = network.graph.host_graph
    return {
        "hlsgen": version,
        "model": model,
        "options": options,
        "top": emitted.top,
        **_inputs(network, options.get("tkeep") is True),
        **_outputs(network, options.get("tkeep") is True),
        **_states(network),
        "cycles": timing.cycles,
        **({"cpp": emitted.schedule} if emitted.schedule else {}),
        "frames_per_second_per_mhz": round(1e6 / timing.interval, 3),
        "estimate": estimator(network.nodes, network.choices),
        "layers": layer_table(network, timing, estimator),
        "units": unit_table(network, estimator),
        "fifos": fifo_table(network, timing),
        **({"weights": emitted.weights} if emitted.weights else {}),
        "host": {
            "head": host_steps(graph, "head"),
            "tail": host_steps(graph, "tail"),
            "left": left_to_user(graph),
        },
        "warnings": list(graph.notes),
    }


LAYOUT = (
    "element e of a frame is in beat e // lanes, tdata bits [(e % lanes) * element_bits +: element_bits]; "
    "unused high bits are zero; tlast with the last beat"
)
BUS_LAYOUT = (
    "element e of a frame is in beat e // lanes, bits [(e % lanes) * element_bits +: element_bits]; beat b is in bytes "
    "b * slot_bytes and up of the frame, byte n in word n // (width / 8), the lowest first; unused bits are zero; "
    "tlast with the last word"
)
PLAIN_LAYOUT = (
    "element e of a frame is in bits [e * element_bits +: element_bits] of a word; in files, words are whole bytes"
)


def _inputs(network: Network, keep: bool) -> dict[str, Any]:
    """The entry `input`, or `inputs` with one port each."""
    graph, ports = network.graph.host_graph, network.inputs
    parts = _input_parts(graph)
    if any(port.label for port in ports):
        return {"inputs": [_tensor_port(port, part, keep) for port, part in zip(ports, parts, strict=True)]}
    second = graph.model.second_input
    pair = {"second_tensor": second, "element": "the first in the low, the second in the high byte"} if second else {}
    entry = {"tensor": graph.model.input_name, **pair, "shape": list(graph.model.input_shape), "port": ports[0].name}
    ranges = _element_ranges(network.graph)
    return {"input": {**entry, **_stream(ports[0], keep), **ranges, **({"parts": parts} if parts else {})}}


def _element_ranges(graph: Graph) -> dict[str, Any]:
    """The codes of each element of the last axis, or of the frame, if Min and Max leave fewer than `range`."""
    ends = input_range(graph)
    if ends is None:
        return {}
    return {"element_ranges": {"low": ends[0].ravel().tolist(), "high": ends[1].ravel().tolist()}}


def _outputs(network: Network, keep: bool) -> dict[str, Any]:
    """The entry `output`, or `outputs` with one port each."""
    graph, ports = network.graph.host_graph, network.outputs
    parts = _output_parts(graph)
    if any(port.label for port in ports):
        senders = {wire: node.name for node in network.nodes for wire in node.outputs}
        rows = [_tensor_port(port, part, keep) for port, part in zip(ports, parts, strict=True)]
        instances = [{"instance": senders[port.node.inputs[0]]} for port in ports]
        return {"outputs": [row | instance for row, instance in zip(rows, instances, strict=True)]}
    entry = {"tensor": graph.model.output_name, "port": ports[0].name}
    return {"output": {**entry, **_stream(ports[0], keep), **({"parts": parts} if parts else {})}}


def _states(network: Network) -> dict[str, Any]:
    """The entry `states`: for each state its tensors, its memory and the codes at the start of a sequence."""
    graph = network.graph
    count = len(graph.states)
    if not count:
        return {}
    memories = {node.position: node for node in network.nodes if isinstance(node.unit, FrameMemory)}
    rows = []
    tensors = zip(graph.states, graph.model.inputs[-count:], graph.model.outputs[-count:], strict=True)
    for (state, source, target), (number, _, value) in zip(tensors, graph.streamed_inputs[-count:], strict=True):
        node, distinct = memories[number - 1], np.unique(state.initial)
        rows.append(
            {
                "input": source.name,
                "output": target.name,
                "instance": node.name,
                "beats": node.result.beats,
                "lanes": node.result.lanes,
                "element_bits": value.type.bits,
                "range": [value.type.lo, value.type.hi],
                "frame_shape": list(value.shape),
                "meaning": describe(value.encoding),
                "initial": int(distinct[0]) if len(distinct) == 1 else state.initial.tolist(),
            }
        )
    return {"states": rows}


def _tensor_port(port: CorePort, part: dict[str, Any], keep: bool) -> dict[str, Any]:
    """The entry of a tensor that has its own port."""
    entry = {key: part[key] for key in ("tensor", "tensor_shape", "dtype")}
    host: dict[str, Any] = {key: part[key] for key in ("head", "tail") if key in part}
    return {**entry, "port": port.name, **_stream(port, keep), **host}


def _stream(port: CorePort, keep: bool) -> dict[str, Any]:
    """The stream of a port: bus, beats, element type, layout and meaning of codes."""
    stream, shape, decode, bus = port.stream, port.value.shape, port.value.encoding, port.layout
    return {
        "tdata_bits": port.data_bits,
        "bus": {
            "width": bus.width,
            "slot_bytes": bus.slot_bytes,
            "words": bus.words,
            "last_bytes": bus.last_bytes,
            "keep": keep,
        },
        "beats": stream.beats,
        "lanes": stream.lanes,
        "element_bits": stream.type.bits,
        "element": "float32 bits" if isinstance(decode, FloatKey) else ("signed" if stream.type.signed else "unsigned"),
        "range": [stream.type.lo, stream.type.hi],
        "layout": PLAIN_LAYOUT if port.is_plain else BUS_LAYOUT if port.on_bus else LAYOUT,
        "frame_shape": list(shape),
        **_named_order(port.order, shape),
        "meaning": describe(decode),
    }


def _input_parts(graph: Graph) -> list[dict[str, Any]]:
    """For each part of the input: its place in the frame, the meaning of its codes, and the host preprocessing."""
    named = ((graph.model.all_inputs[part.source], part) for part in graph.inputs)
    return [
        {
            "tensor": source.name,
            "tensor_shape": list(source.shape),
            "dtype": source.dtype,
            **_part(part.offset, part.value),
            "head": [
                *({"node": s.name, **_host_op(s.op)} for s in part.steps),
                *([] if part.encode is None else [{"node": "input quantizer", **_host_op(part.encode)}]),
            ],
        }
        for source, part in named
    ]


def _output_parts(graph: Graph) -> list[dict[str, Any]]:
    """For each part of each output: its place in the frame, the meaning of its codes, and the host postprocessing."""
    parts, names = [], iter(graph.part_names)
    for end in graph.output_assemblies:
        output = end.output
        for part in end.parts:
            joint = end.host_binary
            entry = {
                "tensor": next(names),
                "tensor_shape": list(part.value.shape if joint else output.shape),
                "dtype": joint.dtype if joint else output.dtype,
                **_part(part.offset, part.value),
            }
            parts.append({**entry, "tail": [{"node": s.name, **_host_op(s.op)} for s in part.steps]})
    return parts


def _part(offset: int, value: Value) -> dict[str, Any]:
    return {
        "offset": offset,
        "elements": value.size,
        "frame_shape": list(value.shape),
        "range": [value.type.lo, value.type.hi],
        "meaning": describe(value.encoding),
    }


def describe(decode: Encoding) -> str:
    """The real value of a code, as a formula in words."""
    match decode:
        case FloatKey():
            return "real = float32; NaN is lowest code of the first quantizer, infinities saturate"
        case Fixed(fraction):
            return f"real = code * 2^-{fraction}"
        case Affine(scale, zero):
            s, z = np.unique(scale), np.unique(zero)
            text = f"{s[0]:.9g}" if len(s) == 1 else "scale[channel]"
            return f"real = (code - {f'{z[0]:g}' if len(z) == 1 else 'zero_point[channel]'}) * {text}"
        case Accumulator(factor, offset, scale):
            s, o = np.unique(scale), np.unique(offset)
            text = f"{s[0]:.17g}" if len(s) == 1 else "scale[channel]"
            inner = f"code * {factor}" if factor != 1 else "code"
            shift = (
                f"{inner} + {o[0]}" if len(o) == 1 and o[0] else inner if len(o) == 1 else f"{inner} + offset[channel]"
            )
            return f"real = round_to_float32(({shift}) * {text})"
        case IntegerEncoding(dtype, offset):
            o = np.unique(offset)
            add = "" if not o.any() else f" + {o[0]}" if len(o) == 1 else " + offset[channel]"
            return f"{dtype} = code{add}"
        case _:
            return f"real = {decode.scale:g} * code + {decode.bias:g}"


def host_steps(graph: Graph, part: str) -> list[dict[str, Any]]:
    """Host operations in order, with small constants. The operation that joins parts follows these parts."""
    steps: list[Step] = list(graph.head if part == "head" else graph.tail)
    steps_left = [{"node": s.name, **_host_op(s.op)} for s in steps]
    if part == "head" and graph.encode is not None:
        steps_left.append({"node": "input quantizer", **_host_op(graph.encode)})
    names = iter(graph.part_names if part == "tail" else ())
    for end in graph.output_assemblies if part == "tail" else ():
        tensors = [next(names) for _ in end.parts]
        if end.host_binary is not None:
            steps_left.append(
                {"node": end.host_binary.name, "op": "Binary", "kind": end.host_binary.kind.value, "tensors": tensors}
            )
            steps_left += [{"node": s.name, **_host_op(s.op)} for s in end.host_binary.steps]
    return steps_left


def _host_op(op: Op) -> dict[str, Any]:
    if isinstance(op, HostOp):
        return {"op": op.op_type}
    row: dict[str, Any] = {"op": type(op).__name__}
    for name in (f.name for f in fields(op)):
        value = getattr(op, name)
        if isinstance(value, np.ndarray):
            row[name] = value.tolist() if value.size <= MAX_HOST_CONSTANTS else f"array of shape {list(value.shape)}"
        elif isinstance(value, Enum):
            row[name] = value.name if isinstance(value, Rounding) else value.value
        elif name == "ways":
            row[name] = [[_host_op(inner) for inner in branch] for branch in value]
        else:
            row[name] = [value.lo, value.hi] if isinstance(value, IntType) else value
    return row
