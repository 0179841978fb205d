"""Checks manifest.json: every entry follows from the model, the netlist and the certificate, or is listed as not
proven.

Written independently, from docs/commands.md and the fields of the operations. No code of the writer is used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from hlsgen import ir
from hlsgen.certify.checker import Checker
from hlsgen.certify.input_codes import input_codes
from hlsgen.certify.json_compare import NotProven, differences
from hlsgen.certify.manifest_layers import ESTIMATE, fifos, producers_of, rows, units, weight_units
from hlsgen.certify.netlist_reader import Cell, ParameterValue
from hlsgen.certify.port_wiring import PLAIN_ENDS, port_name
from hlsgen.diagnostics import Collector
from hlsgen.frontend.runtimes import CHOICES as RUNTIMES
from hlsgen.library import tool_version
from hlsgen.numerics.fixed import Array, IntType, Rounding

#: Constants of host operations with more elements are not written.
_MAX_CONSTANTS = 1024
_STYLES = ("auto", "lutram", "bram")
_LAYOUT = (
    "element e of a frame is in beat e // lanes, tdata bits [(e % lanes) * element_bits +: element_bits]; "
    "unused high bits are zero; tlast with the last beat"
)


_PLAIN_LAYOUT = (
    "element e of a frame is in bits [e * element_bits +: element_bits] of a word; in files, words are whole bytes"
)
_BUS_LAYOUT = (
    "element e of a frame is in beat e // lanes, bits [(e % lanes) * element_bits +: element_bits]; beat b is in bytes "
    "b * slot_bytes and up of the frame, byte n in word n // (width / 8), the lowest first; unused bits are zero; "
    "tlast "
    "with the last word"
)


@dataclass(frozen=True)
class PortStream:
    """The contents of a port: `beats` a frame of `lanes` elements of a type."""

    type: IntType
    lanes: int
    beats: int

    def __str__(self) -> str:
        return f"{self.beats} beats a frame of {self.lanes} x {self.type}"


def stream_of(cell: Cell, value: ir.Value) -> PortStream:
    """The contents of a port, from its parameters and its value."""
    type_ = IntType(0, 0xFFFFFFFF) if isinstance(value.encoding, ir.FloatKey) else value.type
    return PortStream(
        type_, cell.number("WIDTH", 1) // type_.bits, cell.number("BEATS", 1) if "BEATS" in cell.parameters else 1
    )


def check(
    manifest: dict[str, Any],
    certificate: dict[str, Any],
    checker: Checker,
    named: dict[str, str],
    hashes: dict[str, str],
    problems: Collector,
    state_entries: list[dict[str, Any]],
    latency: int | None,
) -> None:
    """Report an HG055 for every wrong entry. `named`: layer -> its instance. `hashes`: file -> hash.

    `latency`: the proven latency of a core without handshake.
    """
    cells = list(checker.network.cells.values())
    cycles, options = manifest.get("cycles"), manifest["options"]
    interval = cycles.get("interval") if isinstance(cycles, dict) else None
    loads = weight_units(cells, certificate["layers"], checker.memories)
    graph, is_active_low = checker.graph.host_graph, options.get("reset_active_low") is True
    expected = {
        "hlsgen": tool_version(),
        "model": certificate["model"],
        "options": _options(options, cells),
        "top": {
            "module": options.get("top"),
            "clock": options.get("clock_name"),
            "reset": {
                "name": options.get("reset_name") or f"rst{'_n' * is_active_low}",
                "active": ("high", "low")[is_active_low],
                "kind": "synchronous",
            },
            "sources": "files.f",
        },
        **_inputs(graph, checker),
        **_outputs(graph, checker),
        **_states(checker),
        "cycles": _cycles(cycles, latency),
        **({"cpp": NotProven("cpp-cycles", _is_prediction)} if "hls" in str(options.get("target")).split(",") else {}),
        "frames_per_second_per_mhz": round(1e6 / int(interval or 1), 3)
        if _is_count(interval)
        else NotProven("cycles", _is_float),
        "estimate": ESTIMATE,
        "layers": rows(checker, certificate["layers"], named, interval if _is_count(interval) else None, state_entries),
        "units": units(checker.network),
        "fifos": fifos(cells),
        **({"weights": loads} if loads else {}),
        "host": {
            "head": _head(graph),
            "tail": _tail(graph),
            "left": {part: NotProven("other-files", _is_names) for part in ("head", "tail")},
        },
        "warnings": list(graph.notes),
        "files": {**_other_files(manifest.get("files"), str(options.get("target")).split(",")), **hashes},
    }
    for text in differences(manifest, expected):
        problems.error("HG055", "manifest.json", f"{text}.", "Build again.")


def _other_files(listed: Any, targets: list[str]) -> dict[str, NotProven]:
    """Files that are not certified here, but whose hashes a build lists. C++ files have their own checker."""
    unproven = dict.fromkeys(("report.html", "report.md", "folding.yaml"), NotProven("other-files", _is_hash))
    for name in listed if isinstance(listed, dict) else ():
        if name.startswith(("tb/", "host/")):
            unproven[name] = NotProven("other-files", _is_hash)
        elif name.startswith("hls/") and "hls" in targets:
            unproven[name] = NotProven("cpp-other-files", _is_hash)
    return unproven


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _cycles(cycles: Any, latency: int | None) -> dict[str, Any]:
    """`estimated` is allowed; it is missing if the cycles are exact. Plain ports take a frame in each cycle."""
    if latency is not None:
        return {"latency": latency, "interval": 1, "fixed": True}
    expected: dict[str, Any] = {key: NotProven("cycles", _is_count) for key in ("latency", "interval")}
    if isinstance(cycles, dict) and "estimated" in cycles:
        expected["estimated"] = NotProven("cycles", lambda value: value is True)
    return expected


def _is_prediction(value: Any) -> bool:
    return isinstance(value, dict) and _is_count(value.get("interval")) and isinstance(value.get("slowest"), str)


def _is_count(value: Any) -> bool:
    return type(value) is int and value > 0


def _is_text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_types(value: Any) -> bool:
    by_name = isinstance(value, dict) and all(isinstance(text, str) for text in (*value, *value.values()))
    return by_name or _is_text_or_none(value)


def _is_float(value: Any) -> bool:
    return isinstance(value, float)


def _is_count_or_none(value: Any) -> bool:
    return value is None or (type(value) is int and value >= 0)


def _is_valid_clock(value: Any, cells: Iterable[Cell]) -> bool:
    """True if all units are pipelined equally; deeper pipelines are allowed only with a target clock."""
    depths = {depth for cell in cells if (depth := _depth(cell)) is not None}
    if value is None:
        return depths <= {2}
    return type(value) in (int, float) and value > 0 and (depths <= {1} or depths <= {2})


def _depth(cell: Cell) -> ParameterValue | None:
    """Adders between registers, as EVERY states, or None for units without it.

    Special case: hg_correct with LUT tables of cells, more than four address bits, and no finer thresholds. The depth
    is 1 if registers follow these tables, else 2. Other units with DEEP have None, or 0 if they have such registers.
    """
    if "DEEP" not in cell.parameters:
        return cell.parameters.get("EVERY")
    lanes, deep = cell.number("LANES", 1), cell.parameters["DEEP"] != 0
    shapes = cell.sized("SHAPES", 32 * lanes).value
    if (
        cell.number("FOLDS", 1) > 1
        or cell.number("REST")
        or all((shapes >> (32 * lane + 8)) & 255 <= 4 for lane in range(lanes))
    ):
        return 0 if deep else None
    return 1 if deep else 2


def _is_name_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _options(options: dict[str, Any], cells: Iterable[Cell]) -> dict[str, Any]:
    """Options that determine the hardware are accepted as they are; the hardware was compared with them.

    Others are wishes.
    """
    styles = {cell.parameters["STYLE"] for cell in cells if "STYLE" in cell.parameters and "W_W" in cell.parameters}
    auto = options.get("weights") == "auto"
    tables = any(options.get(name) is not None for name in ("clock_mhz", "device", "max_lut", "max_bram"))
    chosen = ({2} if auto else set[int]()) | ({3} if auto and tables else set[int]())
    style = _STYLES.index(options["weights"]) if options.get("weights") in _STYLES else None
    switch = NotProven("options", lambda value: type(value) is bool)
    text = NotProven("options", lambda value: isinstance(value, str))
    count, table = NotProven("wishes", _is_count_or_none), NotProven("wishes", lambda value: isinstance(value, dict))
    any_text = NotProven("wishes", lambda value: isinstance(value, str))
    name = NotProven("wishes", lambda value: value is None or isinstance(value, str))
    return {
        **dict.fromkeys(("input", "source"), NotProven("options", _is_types)),
        "add": NotProven("options", lambda value: value in ("exact", "fixed-point")),
        "recurrence": NotProven("options", lambda value: value in ("auto", "unrolled", "once")),
        "ports": NotProven("options", lambda value: value in ("packed", "separate", "plain")),
        "outputs": NotProven("options", _is_name_list),
        "state": NotProven("options", _is_name_list),
        "state_start": NotProven("options", lambda value: value in ("auto", "tuser", "register", "reset")),
        "runtime": NotProven("options", lambda value: value in RUNTIMES),
        "softmax": NotProven("options", lambda value: value in ("host", "hardware")),
        "merge_layers": switch,
        "reset_active_low": switch,
        "loadable": switch,
        "tkeep": switch,
        "control": switch,
        "top": text,
        "name": text,
        "clock_name": text,
        **dict.fromkeys(("bus_width", "reset_name"), NotProven("options", _is_text_or_none)),
        "weights": NotProven("wishes", lambda value: style is not None and styles <= {style, *chosen}),
        "clock_mhz": NotProven("wishes", lambda value: _is_valid_clock(value, cells)),
        "target": any_text,
        "prefer": any_text,
        "folding": table,
        "realize": table,
        "lanes": count,
        "target_cycles": count,
        "latency_cycles": count,
        "device": name,
        "max_lut": count,
        "max_dsp": count,
        "max_bram": count,
    }


# --------------------------------------------------------------------------- ports


def _inputs(graph: ir.Graph, checker: Checker) -> dict[str, Any]:
    """The entry `input`, or `inputs` if each has a port."""
    sources = [graph.model.all_inputs[part.source] for part in graph.inputs]
    if len(checker.network.inputs) > 1:
        return {"inputs": _separate_ports(checker, 0, sources, graph.inputs, "head")}
    second = graph.model.second_input
    pair = {"second_tensor": second, "element": "the first in the low, the second in the high byte"} if second else {}
    entry = {"tensor": graph.model.input_name, "shape": list(graph.model.input_shape)}
    entry["port"] = port_name(checker.network.inputs[0][0])
    port = _port(checker, 0, 0)
    # The port's `element` replaces the one of two inputs.
    ranges = _element_ranges(checker.graph)
    return {"input": {**entry, **pair, **port, **ranges, **_parts(sources, graph.inputs, "head")}}


def _element_ranges(graph: ir.Graph) -> dict[str, Any]:
    """The codes that bounds before the quantizer leave to each element of the last axis, or of the frame."""
    codes = input_codes(graph)
    if codes is None:
        return {}
    shape = graph.input.shape if math.prod(codes[0].shape[:-1]) > 1 else graph.input.shape[-1:]
    low, high = (np.broadcast_to(end.reshape(end.shape[-len(shape) :]), shape).ravel() for end in codes)
    return {"element_ranges": {"low": low.tolist(), "high": high.tolist()}}


def _outputs(graph: ir.Graph, checker: Checker) -> dict[str, Any]:
    """The entry `output`, or `outputs` if each has a port."""
    producers = producers_of(checker.network)
    if len(checker.network.outputs) > 1:
        rows = _separate_ports(checker, 1, output_parts(graph), graph.outputs, "tail")
        ends = [{"instance": producers[wire]} for _, wire in checker.network.outputs]
        return {"outputs": [row | end for row, end in zip(rows, ends, strict=True)]}
    port = port_name(checker.network.outputs[0][0])
    entry = {"tensor": graph.model.output_name, "port": port, **_port(checker, 1, 0)}
    return {"output": {**entry, **_parts(output_parts(graph), graph.outputs, "tail")}}


def _states(checker: Checker) -> dict[str, Any]:
    """The entry `states`, if there are states between frames."""
    graph, rows = checker.graph, []
    count = len(graph.states)
    ends = zip(graph.model.inputs[-count:], graph.model.outputs[-count:], graph.streamed_inputs[-count:], strict=True)
    for n, (source, target, (_, _, value)) in enumerate(ends if count else ()):
        (cell, _), initial = checker.states.proven[n], graph.states[n].initial
        rows.append(
            {
                "input": source.name,
                "output": target.name,
                "instance": cell.name,
                "beats": cell.number("BEATS", 1),
                "lanes": checker.states.lanes[n],
                "element_bits": value.type.bits,
                "range": [value.type.lo, value.type.hi],
                "frame_shape": list(value.shape),
                "meaning": meaning(value.encoding),
                "initial": int(initial[0]) if (initial == initial[0]).all() else initial.tolist(),
            }
        )
    return {"states": rows} if rows else {}


def output_parts(graph: ir.Graph) -> list[ir.ModelOutput]:
    """The tensor of each part of the output: an output of the model, or one of the two operands of a float join."""
    if not graph.outputs:
        return []
    outputs = graph.model.outputs or (
        ir.ModelOutput(graph.model.output_name, graph.model.steps[-1].shape, graph.model.output_dtype),
    )
    parts, remaining_outputs = [], list(graph.outputs)
    for output, joint in zip(outputs, graph.host_binaries, strict=True):
        count = 1 if joint is None else 2
        for number in range(count):
            shape = remaining_outputs.pop(0).value.shape
            parts.append(
                output if joint is None else ir.ModelOutput(f"{output.name} ({number + 1})", shape, joint.dtype)
            )
    return parts


def _tail(graph: ir.Graph) -> list[dict[str, Any]]:
    """Host steps after a single output, or after two parts are joined."""
    steps, names = [_step(step.name, step.op) for step in graph.tail], [output.name for output in output_parts(graph)]
    for joint in graph.host_binaries:
        operands = [names.pop(0) for _ in range(1 if joint is None else 2)]
        if joint is not None:
            steps.append({"node": joint.name, "op": "Binary", "kind": joint.kind.value, "tensors": operands})
            steps += [_step(step.name, step.op) for step in joint.steps]
    return steps


def _separate_ports(
    checker: Checker,
    end: int,
    tensors: Sequence[ir.ModelInput | ir.ModelOutput],
    parts: Sequence[ir.GraphInput | ir.GraphOutput],
    steps: str,
) -> list[dict[str, Any]]:
    """Entries of several tensors, each with its own port."""
    entries = []
    for index, (tensor, part) in enumerate(zip(tensors, parts, strict=True)):
        cell = (checker.network.inputs, checker.network.outputs)[end][index][0]
        tensor_entry = {
            "tensor": tensor.name,
            "tensor_shape": list(tensor.shape),
            "dtype": tensor.dtype,
            "port": port_name(cell),
        }
        entries.append({**tensor_entry, **_port(checker, end, index), steps: _host(part)})
    return entries


def _host(part: ir.GraphInput | ir.GraphOutput) -> list[dict[str, Any]]:
    """Host steps before an input port, or after an output port."""
    host = [_step(step.name, step.op) for step in part.steps]
    if isinstance(part, ir.GraphInput) and part.encode is not None:
        host.append(_step("input quantizer", part.encode))
    return host


def _parts(
    tensors: Sequence[ir.ModelInput | ir.ModelOutput], parts: Sequence[ir.GraphInput | ir.GraphOutput], steps: str
) -> dict[str, Any]:
    """Entries of several tensors that share a port, in their order; empty for a single tensor."""
    rows, offset = [], 0
    for tensor, part in zip(tensors, parts, strict=True):
        count = math.prod(part.value.shape)
        row = {"tensor": tensor.name, "tensor_shape": list(tensor.shape), "dtype": tensor.dtype, "offset": offset}
        row |= {"elements": count, "frame_shape": list(part.value.shape), "meaning": meaning(part.value.encoding)}
        rows.append({**row, "range": [part.value.type.lo, part.value.type.hi], steps: _host(part)})
        offset += count
    return {"parts": rows} if rows else {}


def _port(checker: Checker, end: int, index: int) -> dict[str, Any]:
    """The contents of an input port (end 0) or output port."""
    graph, ports = checker.graph, (checker.network.inputs, checker.network.outputs)[end]
    number, _, value = (graph.streamed_inputs, graph.streamed_outputs)[end][index]
    cell, frame, order = ports[index][0], checker.frames[end][index], checker.layout.orders[number]
    stream, has_slots = stream_of(cell, value), "SLOT" in cell.parameters
    keys = isinstance(value.encoding, ir.FloatKey)
    return {
        "tdata_bits": frame.pins,
        "bus": {
            "width": frame.width,
            "slot_bytes": frame.slot // 8,
            "words": frame.words,
            "last_bytes": frame.last,
            "keep": checker.keep,
        },
        "beats": stream.beats,
        "lanes": stream.lanes,
        "element_bits": stream.type.bits,
        "element": "float32 bits" if keys else "signed" if stream.type.lo < 0 else "unsigned",
        "range": [stream.type.lo, stream.type.hi],
        "layout": _PLAIN_LAYOUT if cell.module in PLAIN_ENDS else _BUS_LAYOUT if has_slots else _LAYOUT,
        "frame_shape": list(value.shape),
        **_order(order, value.shape),
        "meaning": meaning(value.encoding),
    }


def _order(order: Array, shape: tuple[int, ...]) -> dict[str, Any]:
    """The axes of the frame, the outermost first, if only one axis is moved to the inside; else the entire order."""
    index = np.arange(math.prod(shape)).reshape(shape)
    for last in reversed(range(len(shape))):
        if (np.moveaxis(index, last, -1).ravel() == order).all():
            return {"axes": [axis for axis in range(len(shape)) if axis != last] + [last]}
    return {"axes": []} if len(order) == 1 else {"order": order.tolist()}


def meaning(encoding: ir.Encoding) -> str:
    """The number that a code means, as the manifest states it."""
    match encoding:
        case ir.FloatKey():
            return "real = float32; NaN is lowest code of the first quantizer, infinities saturate"
        case ir.Fixed(fraction=bits):
            return f"real = code * 2^-{bits}"
        case ir.Affine(scale=scale, zero_point=zero):
            return (
                f"real = (code - {_number(zero, 'zero_point[channel]', 'g')}) * "
                f"{_number(scale, 'scale[channel]', '.9g')}"
            )
        case ir.Accumulator(factor=factor, offset=offset, scale=scale):
            sum_ = "code" if factor == 1 else f"code * {factor}"
            if np.ptp(offset) != 0:
                sum_ += " + offset[channel]"
            elif offset.flat[0] != 0:
                sum_ += f" + {offset.flat[0]}"
            return f"real = round_to_float32(({sum_}) * {_number(scale, 'scale[channel]', '.17g')})"
        case ir.IntegerEncoding(dtype=dtype, offset=offset):
            if np.ptp(offset) != 0:
                return f"{dtype} = code + offset[channel]"
            return f"{dtype} = code" + (f" + {offset.flat[0]}" if offset.flat[0] else "")
        case _:
            return f"real = {encoding.scale:g} * code + {encoding.bias:g}"


def _number(values: Array, text_for_different: str, form: str) -> str:
    """The number that all values have in common, else `text_for_different`."""
    first = values.flat[0]
    return format(first, form) if (values == first).all() else text_for_different


# --------------------------------------------------------------------------- host


def _head(graph: ir.Graph) -> list[dict[str, Any]]:
    steps = [_step(step.name, step.op) for step in graph.head]
    return steps if graph.encode is None else [*steps, _step("input quantizer", graph.encode)]


def _step(name: str, op: Any) -> dict[str, Any]:
    return {"node": name, **_operation(op)}


def _operation(op: Any) -> dict[str, Any]:
    """An operation with its fields; an ONNX operation only by its name."""
    if isinstance(op, ir.HostOp):
        return {"op": op.op_type}
    return {"op": type(op).__name__, **{part.name: _json_value(getattr(op, part.name)) for part in fields(op)}}


def _json_value(value: Any) -> Any:
    """A field as a JSON value."""
    match value:
        case np.ndarray():
            shape = list(value.shape)
            return value.tolist() if math.prod(shape) <= _MAX_CONSTANTS else f"array of shape {shape}"
        case Rounding():
            return value.name
        case Enum():
            return value.value
        case IntType(lo=lo, hi=hi):
            return [lo, hi]
        case tuple():
            return [_json_value(part) for part in value]
        case _:
            return _operation(value) if is_dataclass(value) else value
