"""Reads the C++ of a core back: beats, processes that each call one function of the library, streams, and the order."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from hlsgen.certify.cpp.tokens import Beats, Reader, source
from hlsgen.certify.netlist_reader import broken

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
    """What a core consists of. `wires`: streams and their beats; `links`: process -> streams that it takes and sends."""

    calls: dict[str, Call]
    wires: dict[str, Beats]
    links: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
    input: Call
    output: Call
    headers: tuple[str, ...]


def read_core(folder: Path, top: str) -> CoreText:
    """The core in folder/TOP.cpp and folder/TOP.hpp. Raises HG055 for anything that is never emitted."""
    ports = _read_ports(source(folder / f"{top}.hpp", f"hls/{top}.hpp"), f"hls/{top}.hpp", top)
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
        call = _process(reader, top, types, ports)
        if call.name in calls or call.name in types:
            raise broken(reader.name, f"{call.name} is declared twice.")
        calls[call.name] = call
    ends = calls.pop("take_frame", None), calls.pop("send_frame", None)
    if ends[0] is None or ends[1] is None:
        raise broken(reader.name, "has no take_frame or no send_frame.")
    wires, links = _top(reader, top, types, calls, (ends[0], ends[1]))
    return CoreText(calls, wires, links, ends[0], ends[1], tuple(headers))


def _read_ports(text: str, name: str, top: str) -> tuple[int, int]:
    """Bits of the words of both ports."""
    guard = f"{top.upper()}_HPP"
    word = rf"typedef hls::axis_data<ap_uint<(\d{{1,5}})>, {re.escape(_ENABLE)}> "
    form = (
        rf"#ifndef {guard}\n#define {guard}\n\n(?:#define AP_INT_MAX_W (\d{{1,5}})\n)?#include \"hg/ports.hpp\"\n\n"
        rf"{word}{top}_input_t;\n{word}{top}_output_t;\n\n"
        rf"void {top}\(hls::stream<{top}_input_t> &s_axis, hls::stream<{top}_output_t> &m_axis\);\n\n#endif\n"
    )
    match = re.fullmatch(form, text)
    if match is None:
        raise broken(name, "is not as it is emitted.")
    bits = int(match[2]), int(match[3])
    if max(bits) > int(match[1] or 1024):
        raise broken(name, f"ap_int has {match[1] or 1024} bits at most, a port has {max(bits)}.")
    return bits


def _process(reader: Reader, top: str, types: dict[str, Beats], ports: tuple[int, int]) -> Call:
    reader.all("static void")
    name = reader.identifier()
    known = types | ({f"{top}_input_t": Beats(ports[0], False, 1)} if name == "take_frame" else {})
    known |= {f"{top}_output_t": Beats(ports[1], False, 1)} if name == "send_frame" else {}
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
    reader: Reader, top: str, types: dict[str, Beats], calls: dict[str, Call], ends: tuple[Call, Call]
) -> tuple[dict[str, Beats], dict[str, tuple[tuple[str, ...], tuple[str, ...]]]]:
    """The streams, and who takes and sends them: each is sent before it is taken, by one process each."""
    reader.all(f"void {top} ( hls::stream < {top}_input_t > & s_axis , hls::stream < {top}_output_t > & m_axis ) {{")
    for line in ("INTERFACE axis port=s_axis", "INTERFACE axis port=m_axis", "INTERFACE ap_ctrl_none port=return"):
        reader.line(f"#pragma HLS {line}")
    reader.line("#pragma HLS DATAFLOW disable_start_propagation")
    wires: dict[str, Beats] = {}
    while reader.peek() == "hls::stream":
        reader.all("hls::stream <")
        type_ = reader.identifier()
        reader.next(">")
        name = reader.identifier()
        reader.all(f'( "{name}" ) ;')
        match = re.fullmatch(rf"#pragma HLS STREAM variable={name} depth=([1-9]\d*)", reader.next())
        if match is None or type_ not in types or name in wires or name in ("s_axis", "m_axis"):
            raise broken(reader.name, f"{name} is no stream of its own of a known type, with its depth.")
        wires[name] = types[type_]
    open_, done = dict[str, Beats](s_axis=ends[0].takes[0]), set[str]()
    links: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    every = {ends[0].name: ends[0], **calls, ends[1].name: ends[1]}
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
        known = {**wires, "m_axis": ends[1].gives[0]} if call is ends[1] else wires
        if [known.get(n) for n in sent] != list(call.gives) or done & set(sent) or len(set(sent)) < len(sent):
            raise broken(reader.name, f"{name} sends {sent}: sent by another, or of another type.")
        open_ |= {n: known[n] for n in sent}
        done |= set(sent)
        links[name] = taken, sent
    reader.next("}")
    if reader.peek() or set(open_) != {"m_axis"} or set(links) != set(every) or done != {*wires, "m_axis"}:
        raise broken(reader.name, "a stream is taken by nobody, or a process is never called.")
    return wires, links
