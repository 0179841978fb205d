"""Reads the C++ of a core back: its ports, its processes and loops, and the top function that calls them in order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hlsgen.certify.cpp.loop_text import LoopState, LoopText, read_loop
from hlsgen.certify.cpp.process_text import Call, Wiring, read_head, read_names, read_process, read_streams
from hlsgen.certify.cpp.tokens import Beats, Reader, source
from hlsgen.certify.netlist_reader import broken
from hlsgen.certify.port_wiring import SINGLE, Labels

_ENABLE = "AXIS_ENABLE_DATA | AXIS_ENABLE_LAST"


@dataclass(frozen=True)
class CoreText:
    """What a core consists of. `wires`: streams and their beats; `links`: process -> streams that it takes and sends.

    `inputs`, `outputs`: the processes at the ports. `loops`: what is called for each step. Their processes and streams are
    among the others; a state comes back on the stream that `way_back` names.
    """

    calls: dict[str, Call]
    wires: dict[str, Beats]
    links: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
    inputs: tuple[Call, ...]
    outputs: tuple[Call, ...]
    headers: tuple[str, ...]
    loops: tuple[LoopText, ...]


@dataclass(frozen=True)
class _Port:
    """A port: its name, the process behind or in front of it, and the type of its words."""

    name: str
    process: str
    word: str


def read_core(folder: Path, top: str, labels: Labels = SINGLE) -> CoreText:
    """The core in folder/TOP.cpp and folder/TOP.hpp. `labels`: what ends the names of its ports. Raises HG055 for
    anything that is never emitted."""
    into = [_Port(f"s_axis{end}", f"take_frame{end}", f"{top}_input{end}_t") for end in labels[0]]
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
            raise broken(reader.name, f"{loop.name} has streams or processes that are used elsewhere as well.")
        wires |= loop.wires
        links |= loop.links
        for state in loop.states:
            back = way_back(state)
            wires[back] = calls[state.recall].gives[0]
            links[state.recall] = (state.initial, back), links[state.recall][1]
            links[state.remember] = links[state.remember][0], (back,)
    if set(links) != {*calls, *(call.name for call in (*ends[0], *ends[1]))}:
        raise broken(reader.name, "a process is never called.")
    return CoreText(calls, wires, links, *ends, tuple(headers), loops)


def way_back(state: LoopState) -> str:
    """The name of the stream that a state comes back on, which is an array in C++. No other has a space in its name."""
    return f"{state.recall} back"


def _functions(
    reader: Reader, types: Mapping[str, Beats], words: Mapping[str, tuple[str, Beats]]
) -> tuple[dict[str, Call], tuple[LoopText, ...]]:
    """All processes, and the loops behind them."""
    calls, loops = dict[str, Call](), list[LoopText]()
    names = set(types)
    while reader.peek() == "static":
        head = read_head(reader, types, words)
        if reader.peek() == "#pragma HLS DATAFLOW":
            loops.append(read_loop(reader, head, types, calls))
            new = {head.name, loops[-1].name}
        else:
            calls[head.name] = read_process(reader, head)
            new = {head.name}
        if names & new:
            raise broken(reader.name, f"{head.name} is declared twice.")
        names |= new
    return calls, tuple(loops)


def _read_ports(
    text: str, name: str, top: str, into: Sequence[_Port], out: Sequence[_Port]
) -> dict[str, tuple[str, Beats]]:
    """For the process of each port the type of its words, and their bits."""
    guard, ports = f"{top.upper()}_HPP", (*into, *out)
    words = "".join(
        rf"typedef hls::axis_data<ap_uint<(\d{{1,5}})>, {re.escape(_ENABLE)}> {port.word};\n" for port in ports
    )
    streams = r",\s+".join(f"hls::stream<{port.word}> &{port.name}" for port in ports)
    form = (
        rf"#ifndef {guard}\n#define {guard}\n\n(?:#define AP_INT_MAX_W (\d{{1,5}})\n)?#include \"hg/ports.hpp\"\n\n"
        rf"{words}\nvoid {top}\({streams}\);\n\n#endif\n"
    )
    match = re.fullmatch(form, text)
    if match is None:
        raise broken(name, "is not as it is emitted.")
    bits = [int(found) for found in match.groups()[1:]]
    if max(bits) > int(match[1] or 1024):
        raise broken(name, f"ap_int has {match[1] or 1024} bits at most, a port has {max(bits)}.")
    return {port.process: (port.word, Beats(n, False, 1)) for port, n in zip(ports, bits, strict=True)}


def _top(
    reader: Reader,
    top: str,
    types: dict[str, Beats],
    calls: dict[str, Call],
    loops: Sequence[LoopText],
    ports: tuple[Sequence[_Port], Sequence[_Port]],
    ends: tuple[tuple[Call, ...], tuple[Call, ...]],
) -> tuple[dict[str, Beats], dict[str, tuple[tuple[str, ...], tuple[str, ...]]]]:
    """The streams, and who takes and sends them: each is sent before it is taken, by one process each."""
    both = (*ports[0], *ports[1])
    reader.all(f"void {top} ( {' , '.join(f'hls::stream < {port.word} > & {port.name}' for port in both)} ) {{")
    for port in both:
        reader.line(f"#pragma HLS INTERFACE axis port={port.name}")
    reader.line("#pragma HLS INTERFACE ap_ctrl_none port=return")
    reader.line("#pragma HLS DATAFLOW disable_start_propagation")
    wires = read_streams(reader, types, {port.name: port for port in both})
    ports_in = {port.name: call.takes[0] for port, call in zip(ports[0], ends[0], strict=True)}
    last = {call.name: {port.name: call.gives[0]} for port, call in zip(ports[1], ends[1], strict=True)}
    first = {call.name: (port.name,) for port, call in zip(ports[0], ends[0], strict=True)}
    links: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    every = calls | {call.name: call for call in (*ends[0], *ends[1])}
    own = {loop.name: loop for loop in loops}
    done = set[str]()
    wiring = Wiring(reader, wires, ports_in)
    while reader.peek() != "}":
        name = reader.identifier()
        given = read_names(reader)
        reader.next(";")
        if name in links or name in done or name not in every.keys() | own.keys():
            raise broken(reader.name, f"{name} is called, which is no process, or twice.")
        if name in own:
            _call_loop(wiring, own[name], given)
            done.add(name)
            continue
        call = every[name]
        taken, sent = tuple(given[: len(call.takes)]), tuple(given[len(call.takes) :])
        wiring.take(name, taken, call.takes)
        if call.keeps or (name in first and taken != first[name]):
            raise broken(reader.name, f"{name} takes {taken}, not its port, or is part of a loop.")
        wiring.send(name, sent, call.gives, last.get(name))
        links[name] = taken, sent
    reader.next("}")
    leaving = {port.name for port in ports[1]}
    if reader.peek() or set(wiring.open) != leaving or done != set(own) or wiring.sent != {*wires, *leaving}:
        raise broken(reader.name, "a stream is taken by nobody, or a loop is never called.")
    return wires, links


def _call_loop(wiring: Wiring, loop: LoopText, given: list[str]) -> None:
    """The call of a loop, with streams of the names that it has for them."""
    if given != list(loop.parameters):
        raise broken(wiring.reader.name, f"{loop.name} is called with {given}, not {list(loop.parameters)}.")
    taken = tuple(name for name in given if name not in loop.gives)
    wiring.take(loop.name, taken, tuple(loop.parameters[name] for name in taken))
    wiring.send(loop.name, loop.gives, tuple(loop.parameters[name] for name in loop.gives))
