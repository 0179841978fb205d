"""Reads the C++ of a core back: beats, processes that each call one function of the library, streams, and the order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hlsgen.certify.cpp.tokens import Beats, Reader, source
from hlsgen.certify.netlist_reader import broken
from hlsgen.certify.port_wiring import SINGLE, Labels

_ENABLE = "AXIS_ENABLE_DATA | AXIS_ENABLE_LAST"


@dataclass(frozen=True)
class Call:
    """A process: the function that it calls, the values of its arguments as they are written, its tables.

    `takes`, `gives`: beats of its streams, in order.
    """

    name: str
    function: str
    arguments: dict[str, str]
    tables: tuple[str, ...]
    takes: tuple[Beats, ...]
    gives: tuple[Beats, ...]

    def number(self, name: str, least: int = 0) -> int:
        """An argument that is a plain integer, not below `least`. Raises HG055."""
        text = self.arguments.get(name, "")
        match = re.fullmatch(r"(-?\d{1,18})(?:LL)?", text, re.ASCII)
        if match is None or int(match[1]) < least:
            raise broken(self.name, f"argument {name} of {self.function} is {text or 'missing'}.")
        return int(match[1])

    def flag(self, name: str) -> bool:
        text = self.arguments.get(name)
        if text not in ("true", "false"):
            raise broken(self.name, f"argument {name} of {self.function} is {text or 'missing'}.")
        return text == "true"

    def only(self, names: str) -> None:
        """The arguments are exactly these, in this order. Raises HG055."""
        if list(self.arguments) != names.split():
            raise broken(self.name, f"{self.function} has the arguments {list(self.arguments)}, not {names.split()}.")


@dataclass(frozen=True)
class CoreText:
    """What a core consists of. `wires`: streams and their beats; `links`: process -> streams that it takes and sends.

    `inputs`, `outputs`: the processes at the ports.
    """

    calls: dict[str, Call]
    wires: dict[str, Beats]
    links: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
    inputs: tuple[Call, ...]
    outputs: tuple[Call, ...]
    headers: tuple[str, ...]


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
    calls: dict[str, Call] = {}
    while reader.peek() == "static":
        call = _process(reader, types, words)
        if call.name in calls or call.name in types:
            raise broken(reader.name, f"{call.name} is declared twice.")
        calls[call.name] = call
    missing = [port.process for port in (*into, *out) if port.process not in calls]
    if missing:
        raise broken(reader.name, f"has no {missing[0]}.")
    ends = tuple(calls.pop(port.process) for port in into), tuple(calls.pop(port.process) for port in out)
    wires, links = _top(reader, top, types, calls, (into, out), ends)
    return CoreText(calls, wires, links, *ends, tuple(headers))


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


def _process(reader: Reader, types: dict[str, Beats], words: dict[str, tuple[str, Beats]]) -> Call:
    reader.all("static void")
    name = reader.identifier()
    known = types | (dict([words[name]]) if name in words else {})
    streams: dict[str, Beats] = {}
    reader.next("(")
    while True:
        reader.all("hls::stream <")
        type_ = reader.identifier()
        reader.all("> &")
        own = reader.identifier()
        if type_ not in known or own in streams:
            raise broken(reader.name, f"{name}: {own} is no stream of its own of a known type.")
        streams[own] = known[type_]
        if reader.next(",", ")") == ")":
            break
    reader.next("{")
    reader.line("#pragma HLS INLINE off")
    function = reader.identifier()
    arguments: dict[str, str] = {}
    if reader.peek() == "<":
        reader.next("<")
        while True:
            value, depth = list[str](), 0
            while depth or not reader.peek().startswith("/*"):
                value.append(reader.next())
                depth += (value[-1] == "<") - (value[-1] == ">")
            title = reader.next()[3:-3]
            if title in arguments or not value:
                raise broken(reader.name, f"{name}: argument {title} is given twice, or empty.")
            arguments[title] = "".join(value).replace(" ", "")
            if reader.next(",", ">") == ">":
                break
    reader.next("(")
    given = [reader.identifier()]
    while reader.next(",", ")") == ",":
        given.append(reader.identifier())
    reader.all("; }")
    taken = [n for n in streams if n in ("s", "a", "b")]
    sent = [n for n in streams if n not in taken]
    wanted = sent == (["m"] if len(sent) == 1 else [f"m{n}" for n in range(len(sent))]) and taken in (["s"], ["a", "b"])
    if not wanted or given[: len(streams)] != list(streams):
        raise broken(reader.name, f"{name} does not pass its streams on in order.")
    tables = tuple(given[len(streams) :])
    return Call(
        name, function, arguments, tables, tuple(streams[n] for n in taken), tuple(streams[n] for n in sent)
    )  # fmt: skip


def _top(
    reader: Reader, top: str, types: dict[str, Beats], calls: dict[str, Call],
    ports: tuple[Sequence[_Port], Sequence[_Port]], ends: tuple[tuple[Call, ...], tuple[Call, ...]],
) -> tuple[dict[str, Beats], dict[str, tuple[tuple[str, ...], tuple[str, ...]]]]:  # fmt: skip
    """The streams, and who takes and sends them: each is sent before it is taken, by one process each."""
    both = (*ports[0], *ports[1])
    reader.all(f"void {top} ( {' , '.join(f'hls::stream < {port.word} > & {port.name}' for port in both)} ) {{")
    for port in both:
        reader.line(f"#pragma HLS INTERFACE axis port={port.name}")
    reader.line("#pragma HLS INTERFACE ap_ctrl_none port=return")
    reader.line("#pragma HLS DATAFLOW disable_start_propagation")
    named = [port.name for port in both]
    wires: dict[str, Beats] = {}
    while reader.peek() == "hls::stream":
        reader.all("hls::stream <")
        type_ = reader.identifier()
        reader.next(">")
        name = reader.identifier()
        reader.all(f'( "{name}" ) ;')
        match = re.fullmatch(rf"#pragma HLS STREAM variable={name} depth=([1-9]\d*)", reader.next())
        if match is None or type_ not in types or name in wires or name in named:
            raise broken(reader.name, f"{name} is no stream of its own of a known type, with its depth.")
        wires[name] = types[type_]
    open_, done = {port.name: call.takes[0] for port, call in zip(ports[0], ends[0], strict=True)}, set[str]()
    last = {call.name: {port.name: call.gives[0]} for port, call in zip(ports[1], ends[1], strict=True)}
    first = {call.name: (port.name,) for port, call in zip(ports[0], ends[0], strict=True)}
    links: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    every = calls | {call.name: call for call in (*ends[0], *ends[1])}
    while reader.peek() != "}":
        name = reader.identifier()
        call = every.get(name)
        if call is None or name in links:
            raise broken(reader.name, f"{name} is called, which is no process, or twice.")
        reader.next("(")
        given = [reader.identifier()]
        while reader.next(",", ")") == ",":
            given.append(reader.identifier())
        reader.next(";")
        taken, sent = tuple(given[: len(call.takes)]), tuple(given[len(call.takes) :])
        if [open_.pop(n, None) for n in taken] != list(call.takes):
            raise broken(reader.name, f"{name} takes {taken}: not sent before, taken by another, or of another type.")
        if name in first and taken != first[name]:
            raise broken(reader.name, f"{name} takes {taken}, not its port.")
        known = last.get(name, wires)
        if [known.get(n) for n in sent] != list(call.gives) or done & set(sent) or len(set(sent)) < len(sent):
            raise broken(reader.name, f"{name} sends {sent}: sent by another, or of another type.")
        open_ |= {n: known[n] for n in sent}
        done |= set(sent)
        links[name] = taken, sent
    reader.next("}")
    leaving = {port.name for port in ports[1]}
    if reader.peek() or set(open_) != leaving or set(links) != set(every) or done != {*wires, *leaving}:
        raise broken(reader.name, "a stream is taken by nobody, or a process is never called.")
    return wires, links
