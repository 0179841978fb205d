"""Reads a loop of a core back: the function of one step, and the function that calls it for each step.

For state between frames, the function of one frame and the function that calls it once are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hlsgen.certify.cpp import process_text
from hlsgen.certify.cpp.tokens import Beats, Reader
from hlsgen.certify.netlist_reader import broken


@dataclass(frozen=True)
class LoopState:
    """The processes that emit and store a state, and the stream with the initial state; "" between frames."""

    recall: str
    remember: str
    initial: str


@dataclass(frozen=True)
class LoopText:
    """A loop with this number of steps. `parameters`: its streams; `outputs`: the ones that it sends.

    A loop of states between frames has one step.

    `wires`: streams of a step; `links`: process -> streams that it consumes and sends.
    """

    name: str
    steps: int
    parameters: dict[str, Beats]
    outputs: tuple[str, ...]
    wires: dict[str, Beats]
    links: dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
    states: tuple[LoopState, ...]


def read_loop(
    reader: Reader, step: process_text.ProcessHead, types: Mapping[str, Beats], calls: Mapping[str, process_text.Call]
) -> LoopText:
    """Read a loop, after the head of its step. `calls`: all processes. Raises HG055."""
    reader.line("#pragma HLS DATAFLOW")
    wires = process_text.read_streams(reader, types, step.parameters)
    links, users, outputs = _calls(reader, step, wires, calls)
    head = process_text.read_head(reader, types, {})
    if step.name != f"{head.name}_step" or head.arrays:
        raise broken(reader.name, f"{head.name} is where the loop of {step.name} is expected.")
    if reader.peek() == "static":
        arrays = _frame_calls(reader, step, types, head)
        frame_states = tuple(
            LoopState(users[read_array], users[written_array], "") for read_array, written_array in arrays.items()
        )
        if any(calls[state.recall].function != process_text.FIND for state in frame_states):
            raise broken(reader.name, f"{head.name} keeps a state of a loop over steps.")
        return LoopText(head.name, 1, head.streams, outputs, wires, links, frame_states)
    pairs, initial = dict[str, str](), dict[str, str]()
    while reader.peek() != "for":
        read_array, written_array = _declared_arrays(reader, types, step)
        reader.all("hg::remember (")
        pairs[read_array], initial[read_array] = written_array, reader.identifier()
        reader.all(f", {read_array} ) ;")
    reader.all("for ( int step = 0 ; step <")
    steps = reader.number()
    reader.all("; step ++ ) {")
    reader.line("#pragma HLS PIPELINE off")
    reader.next(step.name)
    if process_text.read_names(reader) != list(step.parameters):
        raise broken(reader.name, f"{step.name} is called with other names than it has.")
    reader.next(";")
    for read_array, written_array in pairs.items():
        reader.all(f"hg::renew ( {written_array} , {read_array} ) ;")
    reader.all("} }")
    initial_streams = {wire: step.arrays[read_array].beats for read_array, wire in initial.items()}
    if (
        steps < 2
        or head.parameters != initial_streams | step.streams
        or len(head.parameters) != len(initial_streams) + len(step.streams)
    ):
        raise broken(
            reader.name, f"{head.name} has other streams than its steps and its initial states have, or only one step."
        )
    if len(initial_streams) != len(pairs):
        raise broken(reader.name, f"{head.name} uses an initial state twice.")
    if any(calls[users[read_array]].function == process_text.FIND for read_array in pairs):
        raise broken(reader.name, f"{head.name} repeats a state between frames.")
    states = tuple(
        LoopState(users[read_array], users[written_array], initial[read_array])
        for read_array, written_array in pairs.items()
    )
    return LoopText(head.name, steps, head.streams, outputs, wires, links, states)


def _frame_calls(
    reader: Reader, step: process_text.ProcessHead, types: Mapping[str, Beats], head: process_text.ProcessHead
) -> dict[str, str]:
    """Read the body of a function that calls `step` once. Returns each static array and the one that replaces it."""
    pairs: dict[str, str] = {}
    while reader.peek() == "static":
        names: list[str] = []
        for const in (True, False):
            reader.all("static" if const else "")
            type_ = process_text.known_type(reader, step.name, types)
            names.append(reader.identifier())
            reader.next("[")
            if (
                step.arrays.get(names[-1]) != process_text.StateArray(type_, reader.number(), const)
                or names[-1] in pairs
            ):
                raise broken(reader.name, f"{names[-1]} is no array parameter of {step.name}.")
            reader.all("] ;")
        for name in names:
            reader.line(f"#pragma HLS AGGREGATE variable={name}")
        pairs[names[0]] = names[1]
    reader.next(step.name)
    if process_text.read_names(reader) != list(step.parameters):
        raise broken(reader.name, f"{step.name} is called with other names than it has.")
    reader.next(";")
    for read_array, written_array in pairs.items():
        reader.all(f"hg::renew ( {written_array} , {read_array} ) ;")
    reader.next("}")
    arrays = {*pairs, *pairs.values()}
    if head.parameters != step.streams or arrays != set(step.arrays) or len(arrays) != 2 * len(pairs):
        raise broken(reader.name, f"{head.name} has other streams or arrays than {step.name}.")
    return pairs


def _declared_arrays(reader: Reader, types: Mapping[str, Beats], step: process_text.ProcessHead) -> tuple[str, str]:
    """The two arrays of a state: the one that a step reads, and the one that it writes."""
    type_ = process_text.known_type(reader, step.name, types)
    names: list[str] = []
    for end in (",", ";"):
        name = reader.identifier()
        reader.next("[")
        if step.arrays.get(name) != process_text.StateArray(type_, reader.number(), const=not names) or name in names:
            raise broken(reader.name, f"{name} is no array parameter of {step.name}.")
        reader.all(f"] {end}")
        names.append(name)
    for name in names:
        reader.line(f"#pragma HLS AGGREGATE variable={name}")
    return names[0], names[1]


def _calls(
    reader: Reader, step: process_text.ProcessHead, wires: dict[str, Beats], calls: Mapping[str, process_text.Call]
) -> tuple[dict[str, tuple[tuple[str, ...], tuple[str, ...]]], dict[str, str], tuple[str, ...]]:
    """The processes of a step: their streams, the user of each array, and the outputs of the step.

    Every stream and every array has one user at each end.
    """
    links: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    users: dict[str, str] = {}
    outputs: list[str] = []
    wiring = process_text.StreamWiring(reader, wires, step.streams)
    while reader.peek() != "}":
        name = reader.identifier()
        call = calls.get(name)
        if call is None or name in links:
            raise broken(reader.name, f"{name} is called, which is no process, or twice.")
        names = process_text.read_names(reader)
        reader.next(";")
        if call.state_array:
            array = names.pop(0 if call.state_array.const else -1)
            if step.arrays.get(array) != call.state_array or array in users:
                raise broken(reader.name, f"{name} uses {array}, which is no array of its own.")
            users[array] = name
        in_names, out_names = tuple(names[: len(call.inputs)]), tuple(names[len(call.inputs) :])
        wiring.take(name, in_names, call.inputs)
        step_outputs = [n for n in out_names if n in step.streams]
        for n in step_outputs:
            wiring.open.pop(n, None)
        wiring.send(name, out_names, call.outputs, wires | step.streams)
        for n in step_outputs:
            wiring.open.pop(n)
        outputs += step_outputs
        links[name] = in_names, out_names
    reader.next("}")
    if wiring.open or wiring.sent != {*wires, *outputs} or set(users) != set(step.arrays):
        raise broken(reader.name, f"{step.name} has a stream or an array without a reader or a writer.")
    if set(outputs) & {n for in_names, _ in links.values() for n in in_names}:
        raise broken(reader.name, f"{step.name} reads a stream that it sends.")
    return links, users, tuple(outputs)
