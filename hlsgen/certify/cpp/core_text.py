"""Reads the C++ of a core back: its ports, its processes and loops, and the top function that calls them in order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hlsgen.certify.cpp import process_text
from hlsgen.certify.cpp.loop_text import LoopState, LoopText, read_loop
from hlsgen.certify.cpp.tokens import Beats, Reader, source
from hlsgen.certify.netlist_reader import broken
from hlsgen.certify.port_wiring import SINGLE, Labels

_ENABLE = "AXIS_ENABLE_DATA | AXIS_ENABLE_LAST"


@dataclass(frozen=True)
class CoreText:
    """The parts of a core. `wires`: streams and their beats; `links`: process -> streams that it consumes and sends.

    `inputs`, `outputs`: the processes at the ports. `loops`: the loops over steps; their processes and streams are
    included in the other fields. A state returns on the stream that `feedback_stream` names.
    """

    calls: dict[str, process_text.Call]
    wires: dict[str, Beats]
    links: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
    inputs: tuple[process_text.Call, ...]
    outputs: tuple[process_text.Call, ...]
    headers: tuple[str, ...]
    loops: tuple[LoopText, ...]


@dataclass(frozen=True)
class _Port:
    """A port: its name, the process next to it, and the type of its words. `starts`: True if they have TUSER."""

    name: str
    process: str
    word: str
    starts: bool = False


def read_core(folder: Path, top: str, labels: Labels = SINGLE, tuser: bool = False) -> CoreText:
    """Read the core in folder/TOP.cpp and folder/TOP.hpp. `labels`: the suffixes of its port names.

    `tuser`: the words of the first input port have TUSER.

    Raises HG055 for any text that hlsgen never emits.
    """
    into = [_Port(f"s_axis{end}", f"take_frame{end}", f"{top}_input{end}_t") for end in labels[0]]
    into[0] = replace(into[0], starts=tuser)
    out = [_Port(f"m_axis{end}", f"send_frame{end}", f"{top}_output{end}_t") for end in labels[1]]
    words = _read_ports(source(folder / f"{top}.hpp", f"hls/{top}.hpp"), f"hls/{top}.hpp", top, into, out)
    reader = Reader(source(folder / f"{top}.cpp", f"hls/{top}.cpp"), f"hls/{top}.cpp")
    reader.line(f'#include "{top}.hpp"')
    headers = []
    while match := re.fullmatch(r'#include "hg/(\w+)\.hpp"', reader.peek()):
        headers.append(match[1])
        reader.next()
    reader.line('#include "weights.hpp"')
    types: dict[str, Beats] = {}
    while reader.peek() == "typedef":
        reader.all("typedef hg::vec <")
        bits, signed = reader.integers()
        reader.next(",")
        lanes = reader.number()
        reader.next(">")
        name = reader.identifier()
        reader.next(";")
        if name in types or lanes < 1:
            raise broken(reader.name, f"{name} is declared twice, or has {lanes} lanes.")
        types[name] = Beats(bits, signed, lanes)
    calls, loops = _functions(reader, types, words)
    missing = [port.process for port in (*into, *out) if port.process not in calls]
    if missing:
        raise broken(reader.name, f"has no {missing[0]}.")
    ends = tuple(calls.pop(port.process) for port in into), tuple(calls.pop(port.process) for port in out)
    wires, links = _top(reader, top, types, calls, loops, (into, out), ends)
    for loop in loops:
        if set(loop.wires) & set(wires) or set(loop.links) & set(links):
            raise broken(reader.name, f"{loop.name} has streams or processes that are also used elsewhere.")
        wires |= loop.wires
        links |= loop.links
        for state in loop.states:
            if not state.initial:
                # The stream that is stored returns to the process that finds it.
                links[state.recall] = (*links[state.recall][0], *links.pop(state.remember)[0]), links[state.recall][1]
                del calls[state.remember]
                continue
            feedback = feedback_stream(state)
            wires[feedback] = calls[state.recall].outputs[0]
            links[state.recall] = (state.initial, feedback), links[state.recall][1]
            links[state.remember] = links[state.remember][0], (feedback,)
    if set(links) != {*calls, *(call.name for call in (*ends[0], *ends[1]))}:
        raise broken(reader.name, "a process is never called.")
    _take_starts(reader, calls, links, ends[0][0], tuser)
    return CoreText(calls, wires, links, *ends, tuple(headers), loops)


def _take_starts(
    reader: Reader,
    calls: Mapping[str, process_text.Call],
    links: dict[str, tuple[tuple[str, ...], tuple[str, ...]]],
    port: process_text.Call,
    tuser: bool,
) -> None:
    """Check that TUSER goes from the first input port to the process that makes the bit of a frame, and nowhere else.

    The stream between the two is then removed from the links. Raises HG055.
    """
    makers = [call for call in calls.values() if call.later]
    if (
        any(call.function != (process_text.FRAME_START if tuser else process_text.FIRST_FRAME) for call in makers)
        or len(makers) > 1
    ):
        raise broken(reader.name, f"{[call.name for call in makers]} do not start sequences as the manifest says.")
    if not tuser:
        return
    (words, streams), (maker,) = links[port.name], makers or (None,)
    if maker is None or len(streams) != 2 or links[maker.name][0][1:] != streams[1:]:
        raise broken(port.name, f"its TUSER does not reach {maker.name if maker else 'any process'}.")
    links[port.name] = words, streams[:1]
    links[maker.name] = links[maker.name][0][:1], links[maker.name][1]


def feedback_stream(state: LoopState) -> str:
    """Name of the stream on which a state returns; in C++ it is an array. No other name contains a space."""
    return f"{state.recall} back"


def _functions(
    reader: Reader, types: Mapping[str, Beats], words: Mapping[str, tuple[str, Beats]]
) -> tuple[dict[str, process_text.Call], tuple[LoopText, ...]]:
    """All processes, and the loops after them."""
    calls, loops = dict[str, process_text.Call](), list[LoopText]()
    names = set(types)
    while reader.peek() in ("static", "struct"):
        shape_name, shape = process_text.read_shape(reader)
        head = process_text.read_head(reader, types, words)
        if not shape and reader.peek() == "#pragma HLS DATAFLOW":
            loops.append(read_loop(reader, head, types, calls))
            new = {head.name, loops[-1].name}
        else:
            calls[head.name] = process_text.read_process(reader, head, shape_name, shape)
            new = {head.name, *([shape_name] if shape_name else [])}
        if names & new:
            raise broken(reader.name, f"{head.name} is declared twice.")
        names |= new
    return calls, tuple(loops)


def _read_ports(
    text: str, name: str, top: str, into: Sequence[_Port], out: Sequence[_Port]
) -> dict[str, tuple[str, Beats]]:
    """The type of the words of each port, and their bits, by the process of the port."""
    guard, ports = f"{top.upper()}_HPP", (*into, *out)
    words = "".join(_word_pattern(port) for port in ports)
    streams = r",\s+".join(f"hls::stream<{port.word}> &{port.name}" for port in ports)
    pattern = (
        rf"#ifndef {guard}\n#define {guard}\n\n(?:#define AP_INT_MAX_W (\d{{1,5}})\n)?#include \"hg/ports.hpp\"\n\n"
        rf"{words}\nvoid {top}\({streams}\);\n\n#endif\n"
    )
    match = re.fullmatch(pattern, text)
    if match is None:
        raise broken(name, "is not what hlsgen emits.")
    bits = [int(width) for width in match.groups()[1:]]
    if max(bits) > int(match[1] or 1024):
        raise broken(name, f"ap_int has at most {match[1] or 1024} bits, a port has {max(bits)}.")
    return {port.process: (port.word, Beats(n, False, 1)) for port, n in zip(ports, bits, strict=True)}


def _word_pattern(port: _Port) -> str:
    """A pattern of the declaration of the words of a port, with their bits as its group."""
    if port.starts:
        return rf"typedef hg::word_with_start<ap_uint<(\d{{1,5}})> > {port.word};\n"
    return rf"typedef hls::axis_data<ap_uint<(\d{{1,5}})>, {re.escape(_ENABLE)}> {port.word};\n"


def _top(
    reader: Reader,
    top: str,
    types: dict[str, Beats],
    calls: dict[str, process_text.Call],
    loops: Sequence[LoopText],
    ports: tuple[Sequence[_Port], Sequence[_Port]],
    ends: tuple[tuple[process_text.Call, ...], tuple[process_text.Call, ...]],
) -> tuple[dict[str, Beats], dict[str, tuple[tuple[str, ...], tuple[str, ...]]]]:
    """The streams and the two processes at each: every stream is sent before it is consumed."""
    all_ports = (*ports[0], *ports[1])
    reader.all(f"void {top} ( {' , '.join(f'hls::stream < {port.word} > & {port.name}' for port in all_ports)} ) {{")
    for port in all_ports:
        reader.line(f"#pragma HLS INTERFACE axis port={port.name}")
    reader.line("#pragma HLS INTERFACE ap_ctrl_none port=return")
    reader.line("#pragma HLS DATAFLOW disable_start_propagation")
    wires = process_text.read_streams(reader, types, {port.name: port for port in all_ports})
    ports_in = {port.name: call.inputs[0] for port, call in zip(ports[0], ends[0], strict=True)}
    port_outputs = {call.name: {port.name: call.outputs[0]} for port, call in zip(ports[1], ends[1], strict=True)}
    port_inputs = {call.name: (port.name,) for port, call in zip(ports[0], ends[0], strict=True)}
    links: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    all_calls = calls | {call.name: call for call in (*ends[0], *ends[1])}
    loop_by_name = {loop.name: loop for loop in loops}
    called_loops = set[str]()
    wiring = process_text.StreamWiring(reader, wires, ports_in)
    while reader.peek() != "}":
        name = reader.identifier()
        names = process_text.read_names(reader)
        reader.next(";")
        if name in links or name in called_loops or name not in all_calls.keys() | loop_by_name.keys():
            raise broken(reader.name, f"{name} is called, which is no process, or twice.")
        if name in loop_by_name:
            _call_loop(wiring, loop_by_name[name], names)
            called_loops.add(name)
            continue
        call = all_calls[name]
        in_names, out_names = tuple(names[: len(call.inputs)]), tuple(names[len(call.inputs) :])
        wiring.take(name, in_names, call.inputs)
        if call.state_array or (name in port_inputs and in_names != port_inputs[name]):
            raise broken(reader.name, f"{name} reads {in_names}, not its port, or is part of a loop.")
        wiring.send(name, out_names, call.outputs, port_outputs.get(name))
        links[name] = in_names, out_names
    reader.next("}")
    output_names = {port.name for port in ports[1]}
    if (
        reader.peek()
        or set(wiring.open) != output_names
        or called_loops != set(loop_by_name)
        or wiring.sent != {*wires, *output_names}
    ):
        raise broken(reader.name, "a stream is never read, or a loop is never called.")
    return wires, links


def _call_loop(wiring: process_text.StreamWiring, loop: LoopText, names: list[str]) -> None:
    """Check the call of a loop: the streams have the names of its parameters."""
    if names != list(loop.parameters):
        raise broken(wiring.reader.name, f"{loop.name} is called with {names}, not {list(loop.parameters)}.")
    in_names = tuple(name for name in names if name not in loop.outputs)
    wiring.take(loop.name, in_names, tuple(loop.parameters[name] for name in in_names))
    wiring.send(loop.name, loop.outputs, tuple(loop.parameters[name] for name in loop.outputs))
