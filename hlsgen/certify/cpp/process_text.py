"""Reads processes back: heads of functions, the call of a library function in each, streams, and who takes and sends them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hlsgen.certify.cpp.tokens import Beats, Reader
from hlsgen.certify.netlist_reader import broken

#: Functions that are processes between streams of their own: what calls them is a dataflow region.
_NETWORKS = frozenset(
    f"hg::{name}"
    for name in (
        "rows_max",
        "rows_share",
        "rows_norm",
        "softmax",
        "softmax_products",
        "softmax_masked",
        "softmax_products_masked",
    )
)


@dataclass(frozen=True)
class Kept:
    """An array for a state, as a parameter: so many beats; `const` if it is read."""

    beats: Beats
    count: int
    const: bool


@dataclass(frozen=True)
class Call:
    """A process: the function that it calls, the values of its arguments as they are written, its tables.

    `takes`, `gives`: beats of its streams, in order. `keeps`: the state that it reads or writes.
    """

    name: str
    function: str
    arguments: dict[str, str]
    tables: tuple[str, ...]
    takes: tuple[Beats, ...]
    gives: tuple[Beats, ...]
    keeps: Kept | None = None

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
class Head:
    """The head of a function: its name, and its parameters, in order."""

    name: str
    parameters: dict[str, Beats | Kept]

    @property
    def streams(self) -> dict[str, Beats]:
        return {name: beats for name, beats in self.parameters.items() if isinstance(beats, Beats)}

    @property
    def kept(self) -> dict[str, Kept]:
        return {name: kept for name, kept in self.parameters.items() if isinstance(kept, Kept)}


def read_head(reader: Reader, types: Mapping[str, Beats], words: Mapping[str, tuple[str, Beats]]) -> Head:
    """From `static void` to the first directive. `words`: of processes at ports, the type of the port."""
    reader.all("static void")
    name = reader.identifier()
    known = dict(types) | (dict([words[name]]) if name in words else {})
    found: dict[str, Beats | Kept] = {}
    reader.next("(")
    while True:
        own, parameter = _parameter(reader, name, known)
        if own in found:
            raise broken(reader.name, f"{name} has two parameters {own}.")
        found[own] = parameter
        if reader.next(",", ")") == ")":
            break
    reader.next("{")
    reader.line("#pragma HLS INLINE off")
    return Head(name, found)


def _parameter(reader: Reader, name: str, types: Mapping[str, Beats]) -> tuple[str, Beats | Kept]:
    """Name and type of a parameter: a stream, or an array."""
    if reader.peek() == "hls::stream":
        reader.all("hls::stream <")
        type_ = known_type(reader, name, types)
        reader.all("> &")
        return reader.identifier(), type_
    const = reader.peek() == "const"
    if const:
        reader.next()
    type_ = known_type(reader, name, types)
    reader.all("( &")
    own = reader.identifier()
    reader.all(") [")
    count = reader.number()
    reader.next("]")
    return own, Kept(type_, count, const)


def known_type(reader: Reader, name: str, types: Mapping[str, Beats]) -> Beats:
    """A type of beats."""
    found = types.get(reader.identifier())
    if found is None:
        raise broken(reader.name, f"{name} has a stream, or an array, of no known type.")
    return found


def read_names(reader: Reader) -> list[str]:
    """What a call gives, with the brackets around."""
    reader.next("(")
    given = [reader.identifier()]
    while reader.next(",", ")") == ",":
        given.append(reader.identifier())
    return given


def read_process(reader: Reader, head: Head) -> Call:
    """The rest of a process: the call of a function of the library, which may be a network of processes itself."""
    name = head.name
    network = reader.peek() == "#pragma HLS DATAFLOW disable_start_propagation"
    if network:
        reader.next()
    function = reader.identifier()
    if network != (function in _NETWORKS):
        raise broken(reader.name, f"{name} calls {function}, and is {'' if network else 'no '}dataflow region.")
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
    given = read_names(reader)
    reader.all("; }")
    streams, kept = head.streams, head.kept
    taken = [n for n in streams if n in ("s", "a", "b")]
    sent = [n for n in streams if n not in taken]
    wanted = sent == (["m"] if len(sent) == 1 else [f"m{n}" for n in range(len(sent))]) and taken in (["s"], ["a", "b"])
    if kept:
        wanted = list(head.parameters) in (["found", "m"], ["s", "left"])
    if not wanted or given[: len(head.parameters)] != list(head.parameters):
        raise broken(reader.name, f"{name} does not pass its streams on in order.")
    tables = tuple(given[len(head.parameters) :])
    call = Call(
        name,
        function,
        arguments,
        tables,
        tuple(streams[n] for n in taken),
        tuple(streams[n] for n in sent),
        next(iter(kept.values()), None),
    )
    if call.keeps:
        _state(call, call.keeps)
    return call


def _state(call: Call, kept: Kept) -> None:
    """A process that sends a state from its array, or keeps it there. Raises HG055."""
    call.only("BEATS")
    reads = not call.takes
    wanted = ("hg::recall" if reads else "hg::remember", (), (kept.beats,), reads, kept.count)
    if (call.function, call.tables, (*call.takes, *call.gives), kept.const, call.number("BEATS", 1)) != wanted:
        raise broken(call.name, f"{call.function} does not fit its array of {kept.count} beats.")


def read_streams(reader: Reader, types: Mapping[str, Beats], others: Mapping[str, object]) -> dict[str, Beats]:
    """The streams that a function declares, none of them with a name of `others`."""
    wires: dict[str, Beats] = {}
    while reader.peek() == "hls::stream":
        reader.all("hls::stream <")
        type_ = reader.identifier()
        reader.next(">")
        name = reader.identifier()
        reader.all(f'( "{name}" ) ;')
        match = re.fullmatch(rf"#pragma HLS STREAM variable={name} depth=([1-9]\d*)", reader.next())
        if match is None or type_ not in types or name in wires or name in others:
            raise broken(reader.name, f"{name} is no stream of its own of a known type, with its depth.")
        wires[name] = types[type_]
    return wires


class Wiring:
    """Calls in order: each takes streams that were sent before and that nobody has taken, and sends streams of its own."""

    def __init__(self, reader: Reader, wires: Mapping[str, Beats], there: Mapping[str, Beats]) -> None:
        self.reader, self.wires = reader, wires
        self.open = dict(there)
        self.sent = set[str]()

    def take(self, name: str, given: tuple[str, ...], wanted: tuple[Beats, ...]) -> None:
        """Raises HG055."""
        if tuple(self.open.pop(n, None) for n in given) != wanted:
            text = f"{name} takes {given}: not sent before, taken by another, or of another type."
            raise broken(self.reader.name, text)

    def send(
        self, name: str, given: tuple[str, ...], wanted: tuple[Beats, ...], known: Mapping[str, Beats] | None = None
    ) -> None:
        """Raises HG055. `known`: streams that it may send, if these are not all."""
        known = self.wires if known is None else known
        if tuple(known.get(n) for n in given) != wanted or self.sent & set(given) or len(set(given)) < len(given):
            raise broken(self.reader.name, f"{name} sends {given}: sent by another, or of another type.")
        self.open |= {n: known[n] for n in given}
        self.sent |= set(given)
