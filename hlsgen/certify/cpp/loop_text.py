"""Reads a loop of a core back: the function of one step, and the one that calls it for each step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hlsgen.certify.cpp.process_text import Call, Head, Kept, Wiring, known_type, read_head, read_names, read_streams
from hlsgen.certify.cpp.tokens import Beats, Reader
from hlsgen.certify.netlist_reader import broken


@dataclass(frozen=True)
class LoopState:
    """The processes that send a state and keep it, and the stream with the initial one."""

    recall: str
    remember: str
    initial: str


@dataclass(frozen=True)
class LoopText:
    """A loop of so many steps. `parameters`: its streams; those of `gives` it sends.

    `wires`: streams of a step; `links`: process -> streams that it takes and sends.
    """

    name: str
    steps: int
    parameters: dict[str, Beats]
    gives: tuple[str, ...]
    wires: dict[str, Beats]
    links: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
    states: tuple[LoopState, ...]


def read_loop(reader: Reader, step: Head, types: Mapping[str, Beats], calls: Mapping[str, Call]) -> LoopText:
    """A loop, from behind the head of its step on. `calls`: all processes. Raises HG055."""
    reader.line("#pragma HLS DATAFLOW")
    wires = read_streams(reader, types, step.parameters)
    links, users, gives = _calls(reader, step, wires, calls)
    head = read_head(reader, types, {})
    if step.name != f"{head.name}_step" or head.kept:
        raise broken(reader.name, f"{head.name} stands where the loop of {step.name} is expected.")
    pairs, initial = dict[str, str](), dict[str, str]()
    while reader.peek() != "for":
        found, left = _declared(reader, types, step)
        reader.all("hg::remember (")
        pairs[found], initial[found] = left, reader.identifier()
        reader.all(f", {found} ) ;")
    reader.all("for ( int step = 0 ; step <")
    steps = reader.number()
    reader.all("; step ++ ) {")
    reader.line("#pragma HLS PIPELINE off")
    reader.next(step.name)
    if read_names(reader) != list(step.parameters):
        raise broken(reader.name, f"{step.name} is called with other names than it has.")
    reader.next(";")
    for found, left in pairs.items():
        reader.all(f"hg::renew ( {left} , {found} ) ;")
    reader.all("} }")
    firsts = {wire: step.kept[found].beats for found, wire in initial.items()}
    if steps < 2 or head.parameters != firsts | step.streams or len(head.parameters) != len(firsts) + len(step.streams):
        raise broken(reader.name, f"{head.name} has other streams than its steps and its initial states, or one step.")
    if len(firsts) != len(pairs):
        raise broken(reader.name, f"{head.name} takes an initial state twice.")
    states = tuple(LoopState(users[found], users[left], initial[found]) for found, left in pairs.items())
    return LoopText(head.name, steps, head.streams, gives, wires, links, states)


def _declared(reader: Reader, types: Mapping[str, Beats], step: Head) -> tuple[str, str]:
    """The arrays of a state: what a step finds, and what it leaves."""
    type_ = known_type(reader, step.name, types)
    names: list[str] = []
    for end in (",", ";"):
        name = reader.identifier()
        reader.next("[")
        if step.kept.get(name) != Kept(type_, reader.number(), const=not names) or name in names:
            raise broken(reader.name, f"{name} is no array that {step.name} takes.")
        reader.all(f"] {end}")
        names.append(name)
    for name in names:
        reader.line(f"#pragma HLS AGGREGATE variable={name}")
    return names[0], names[1]


def _calls(
    reader: Reader, step: Head, wires: dict[str, Beats], calls: Mapping[str, Call]
) -> tuple[dict[str, tuple[tuple[str, ...], tuple[str, ...]]], dict[str, str], tuple[str, ...]]:
    """The processes of a step: their streams, who uses each array, and which streams of the step they send.

    Every stream and every array has one user at each end.
    """
    links: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    users: dict[str, str] = {}
    gives: list[str] = []
    wiring = Wiring(reader, wires, step.streams)
    while reader.peek() != "}":
        name = reader.identifier()
        call = calls.get(name)
        if call is None or name in links:
            raise broken(reader.name, f"{name} is called, which is no process, or twice.")
        given = read_names(reader)
        reader.next(";")
        if call.keeps:
            array = given.pop(0 if call.keeps.const else -1)
            if step.kept.get(array) != call.keeps or array in users:
                raise broken(reader.name, f"{name} uses {array}: no array for it alone.")
            users[array] = name
        taken, sent = tuple(given[: len(call.takes)]), tuple(given[len(call.takes) :])
        wiring.take(name, taken, call.takes)
        leaving = [n for n in sent if n in step.streams]
        for n in leaving:
            wiring.open.pop(n, None)
        wiring.send(name, sent, call.gives, wires | step.streams)
        for n in leaving:
            wiring.open.pop(n)
        gives += leaving
        links[name] = taken, sent
    reader.next("}")
    if wiring.open or wiring.sent != {*wires, *gives} or set(users) != set(step.kept):
        raise broken(reader.name, f"{step.name} has a stream or an array that nobody takes, or nobody sends.")
    if set(gives) & {n for taken, _ in links.values() for n in taken}:
        raise broken(reader.name, f"{step.name} takes a stream that it sends.")
    return links, users, tuple(gives)
