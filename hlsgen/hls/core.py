"""Parts of a network's C++ core: processes, the streams between them, loops, ports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hlsgen.dataflow.ends import divided
from hlsgen.dataflow.network import CorePort, Network
from hlsgen.dataflow.units import Fifo, FrameMemory, FrameStart, Node, Slice, Stream
from hlsgen.hls.binary_point import binary_point
from hlsgen.hls.binding.loops import bind_find, bind_frame_start, bind_recall, bind_remember
from hlsgen.hls.binding.units import bind_node
from hlsgen.hls.depths import room_for_next, safe_depths
from hlsgen.hls.loops import (
    NetworkLoop,
    find_loops,
    restrict_to_step,
    streams_before_fifos,
    with_divided_memories,
)
from hlsgen.hls.names import STARTS, loop_title, process_names
from hlsgen.hls.process import Process, Rom

_COLUMNS = 120
#: Depth in beats of a stream between two processes without a FIFO.
_DEPTH = 2


def comment(text: str) -> str:
    """Text that is safe in a one-line comment: names of a model's nodes may contain any character."""
    return re.sub(r"[^ -~]|[\\?]|\*/", "_", text)


def wrap_code(text: str, indent: int, first: int = 4) -> str:
    """Code wrapped after commas to lines of at most 120 columns."""
    lines, line = [], " " * first
    for part in re.split(r"(?<=, )", text):
        if len(line) + len(part.rstrip()) > _COLUMNS and line.strip():
            lines.append(line.rstrip())
            line = " " * indent
        line += part
    return "\n".join([*lines, line.rstrip()])


@dataclass(frozen=True, eq=False)
class Channel:
    """A stream between two processes, or at a port. `depth`: its capacity in beats."""

    name: str
    wire: str
    type: str
    depth: int


@dataclass(frozen=True, eq=False)
class Part:
    """A process of the core: its node, its call, its name, and its input and output streams.

    `state`: the arrays of the loop state that the process reads or writes.
    """

    node: Node
    call: Process
    name: str
    inputs: tuple[Channel, ...]
    outputs: tuple[Channel, ...]
    state: StateArrays | None = None

    @property
    def roms(self) -> dict[str, Rom]:
        return {f"{self.name}_{end}": table for end, table in self.call.tables.items()}

    @property
    def comment(self) -> str:
        """Text of the comment before the function."""
        layer = f"layer {self.node.layer}: " if self.node.layer else ""
        return comment(f"{layer}{self.call.summary}")

    @property
    def ports(self) -> dict[str, str]:
        """Declarations of the function's parameters, by name.

        Input streams are s, or a and b. Output streams are m, or m0, m1, ... Arrays of states are found and left.
        """
        input_names = ["s"] if len(self.inputs) == 1 else ["a", "b"][: len(self.inputs)]
        output_names = ["m"] if len(self.outputs) == 1 else [f"m{n}" for n in range(len(self.outputs))]
        streams = zip([*input_names, *output_names], [*self.inputs, *self.outputs], strict=True)
        parameters = {name: stream_of_beats(channel.type, name) for name, channel in streams}
        if self.state is None:
            return parameters
        return (
            {"found": self.state.start_parameter("found")} | parameters
            if self.outputs
            else parameters | {"left": self.state.end_parameter("left")}
        )

    @property
    def text(self) -> str:
        """The call of the library function."""
        later = ["later"] if self.call.later else []
        passed = ", ".join([*self.ports, *later, *self.roms])
        return wrap_code(f"{self.call.head(self.shape_name)}({passed});", 4 + len(self.call.function) + 1)

    @property
    def shape_name(self) -> str:
        return f"{self.name}_shape"

    @property
    def shape_text(self) -> str:
        """Definition of the structure with the constants of the process, or ""."""
        return self.call.shape_text(self.shape_name)

    @property
    def signature(self) -> str:
        return wrap_code(f"static void {self.name}({', '.join(self.ports.values())}) {{", 13 + len(self.name), 0)

    @property
    def call_arguments(self) -> str:
        """Arguments with which the caller calls the function."""
        names = [channel.name for channel in (*self.inputs, *self.outputs)]
        if self.state is None:
            return ", ".join(names)
        return ", ".join([f"{self.state.name}_found", *names] if self.outputs else [*names, f"{self.state.name}_left"])


def stream_of_beats(type_: str, name: str) -> str:
    """Declaration of a stream parameter."""
    return f"hls::stream<{type_}> &{name}"


@dataclass(frozen=True, eq=False)
class StateArrays:
    """Arrays of a loop state: its emitting process, type and number of its beats, stream of the initial state.

    There is no such stream for state between frames, whose process gets constants.
    """

    name: str
    type: str
    beats: int
    initial: Channel | None

    def start_parameter(self, name: str) -> str:
        """Parameter declaration of the state at the start of a step."""
        return f"const {self.type} (&{name})[{self.beats}]"

    def end_parameter(self, name: str) -> str:
        """Parameter declaration of the state at the end of a step."""
        return f"{self.type} (&{name})[{self.beats}]"


@dataclass(frozen=True, eq=False)
class Loop:
    """Processes that are called for each step.

    `channels`: streams between them. `inner`: other input streams. `outputs`: streams to other processes. `of_frames`:
    its states go from frame to frame, and there is one step.
    """

    name: str
    title: str
    steps: int
    parts: tuple[Part, ...]
    states: tuple[StateArrays, ...]
    channels: tuple[Channel, ...]
    inner: tuple[Channel, ...]
    outputs: tuple[Channel, ...]
    of_frames: bool

    @property
    def inputs(self) -> tuple[Channel, ...]:
        return (*(state.initial for state in self.states if state.initial), *self.inner)

    @property
    def call_arguments(self) -> str:
        return ", ".join(channel.name for channel in (*self.inputs, *self.outputs))

    @property
    def signature(self) -> str:
        streams = ", ".join(stream_of_beats(c.type, c.name) for c in (*self.inputs, *self.outputs))
        return wrap_code(f"static void {self.name}({streams}) {{", 13 + len(self.name), 0)

    @property
    def step_signature(self) -> str:
        """Signature of the step function: states at its start, streams, states at its end."""
        start_parameters = [state.start_parameter(f"{state.name}_found") for state in self.states]
        end_parameters = [state.end_parameter(f"{state.name}_left") for state in self.states]
        streams = [stream_of_beats(c.type, c.name) for c in (*self.inner, *self.outputs)]
        return wrap_code(
            f"static void {self.name}_step({', '.join([*start_parameters, *streams, *end_parameters])}) {{",
            18 + len(self.name),
            0,
        )

    @property
    def step_text(self) -> str:
        """Call of the step function."""
        names = [c.name for c in (*self.inner, *self.outputs)]
        start_arrays, end_arrays = ([f"{state.name}_{suffix}" for state in self.states] for suffix in ("found", "left"))
        return wrap_code(
            f"{self.name}_step({', '.join([*start_arrays, *names, *end_arrays])});",
            (10 if self.of_frames else 14) + len(self.name),
            4 if self.of_frames else 8,
        )


@dataclass(frozen=True, eq=False)
class End:
    """A port of the core.

    `label`: suffix of its names, "" for an only port. `process`: the process between port and core. `word`: the type
    of the port's words. `channel`: the stream inside the core. `stream`: its beats. `starts`: the stream of TUSER, of
    which a frame has one bit; None without TUSER.
    """

    port: str
    label: str
    process: str
    word: str
    channel: Channel
    stream: Stream
    starts: Channel | None = None

    @property
    def input_signature(self) -> str:
        """Signature of the process after an input port."""
        streams = [stream_of_beats(self.word, "s"), stream_of_beats(self.channel.type, "m0" if self.starts else "m")]
        if self.starts:
            streams.append(stream_of_beats(self.starts.type, "m1"))
        return wrap_code(f"static void {self.process}({', '.join(streams)}) {{", 13 + len(self.process), 0)

    @property
    def tail(self) -> int:
        """Unused bits in the last word of a group."""
        stream = self.stream
        return stream.port_bits - ((stream.group - 1) % stream.lanes + 1) * stream.type.bits


@dataclass(frozen=True, eq=False)
class Core:
    """A network's C++ core.

    `parts`: all processes. `calls`: processes and loops called by the top function. `channels`: streams between them.
    `starts_by`: as in Options.
    """

    top: str
    title: str
    parts: tuple[Part, ...]
    calls: tuple[Part | Loop, ...]
    channels: tuple[Channel, ...]
    inputs: tuple[End, ...]
    outputs: tuple[End, ...]
    starts_by: str = ""

    @property
    def loops(self) -> list[Loop]:
        return [call for call in self.calls if isinstance(call, Loop)]

    @property
    def bits(self) -> int:
        """Bits of the widest port word."""
        return max(end.stream.port_bits for end in (*self.inputs, *self.outputs))


def core_of(network: Network, top: str, title: str, starts_by: str = "") -> Core:
    """The core of a network. A FIFO becomes depth of the stream before it; streams are deeper where processes need it.

    `starts_by`: as in Options. Raises HG040 for a loop whose processes work on several steps at once.
    """
    nodes = with_divided_memories(network.nodes)
    loops_in_network = find_loops(nodes)
    names = process_names(nodes, top, loops_in_network)
    depths = _depths(nodes, loops_in_network)
    input_nodes, _, output_nodes = divided(nodes)
    process_nodes = [node for node in nodes if not isinstance(node.unit, Fifo | Slice) and node not in output_nodes]
    end_nodes = [state.rows for network_loop in loops_in_network for state in network_loop.states]
    channels: dict[str, Channel] = {}
    for node in process_nodes:
        for n, wire in enumerate(node.outputs):
            name = names[node.name] if len(node.outputs) == 1 else f"{names[node.name]}_{n}"
            channels[wire] = Channel(f"{name}_out", wire, f"{names[node.name]}_beat", depths[wire])
    stream_before = streams_before_fifos(nodes)
    channels |= {wire: channels[first_stream] for wire, first_stream in stream_before.items()}
    loop_of_node = {node.name: network_loop for network_loop in loops_in_network for node in network_loop.nodes}
    frame_start = next((node for node in nodes if isinstance(node.unit, FrameStart)), None)
    starts = None
    if frame_start and starts_by == "tuser":
        starts = Channel(STARTS, STARTS, channels[frame_start.outputs[0]].type, _DEPTH)
    parts = {
        node.name: Part(
            node,
            _call(network, node, starts),
            names[node.name],
            (*(channels[wire] for wire in node.inputs), *([starts] if starts and node is frame_start else [])),
            tuple(channels[wire] for wire in node.outputs),
        )
        for node in process_nodes[len(input_nodes) :]
        if node.name not in loop_of_node
    }
    loops = [_loop(network, network_loop, names, channels) for network_loop in loops_in_network]
    parts |= {part.node.name: part for loop in loops for part in loop.parts}
    calls: list[Part | Loop] = [part for name, part in parts.items() if name not in loop_of_node]
    inner = {channel for loop in loops for channel in loop.channels}
    inputs = [_port_end(top, "input", "take_frame", port, channels[port.node.outputs[0]]) for port in network.inputs]
    inputs[0] = replace(inputs[0], starts=starts)
    outputs = tuple(
        _port_end(top, "output", "send_frame", port, channels[port.node.inputs[0]]) for port in network.outputs
    )
    return Core(
        top,
        comment(title),
        tuple(parts[node.name] for node in process_nodes[len(input_nodes) :]),
        _topological_order([*calls, *loops], [*(end.channel for end in inputs), *([starts] if starts else [])])
        if loops
        else tuple(calls),
        (
            *([starts] if starts else []),
            *(
                channels[wire]
                for node in process_nodes
                if node not in end_nodes
                for wire in node.outputs
                if channels[wire] not in inner
            ),
        ),
        tuple(inputs),
        outputs,
        starts_by,
    )


def _call(network: Network, node: Node, starts: Channel | None) -> Process:
    """The call of a process outside of loops. `starts`: the stream of TUSER, if there is one."""
    if isinstance(node.unit, FrameStart):
        return bind_frame_start(node.unit, starts is not None)
    return bind_node(node, binary_point(network.graph, node))


def _depths(nodes: Sequence[Node], loops: Sequence[NetworkLoop]) -> dict[str, int]:
    """Depth of each stream in beats."""
    stream_before = streams_before_fifos(nodes)
    loop_nodes = {node for loop in loops for node in loop.nodes}
    depths = {wire: _DEPTH for node in nodes for wire in node.outputs}
    for node in nodes:
        wire = stream_before.get(node.inputs[0], node.inputs[0])
        if isinstance(node.unit, Fifo | Slice):
            depths[wire] += node.unit.depth
        elif wire in depths and node not in loop_nodes:
            depths[wire] += room_for_next(node)
    return safe_depths(nodes, {wire: depth for wire, depth in depths.items() if wire not in stream_before})


def _loop(network: Network, network_loop: NetworkLoop, names: dict[str, str], channels: dict[str, Channel]) -> Loop:
    """Bind the processes of a loop, each for the beats of one step."""
    state_at_start, states = {}, []
    state_at_end: dict[Node, StateArrays] = {}
    for state in network_loop.states:
        name, beats = names[state.joint.name], state.joint.result.beats // network_loop.steps
        initial = None if network_loop.of_frames else channels[state.initial]
        states.append(StateArrays(name, f"{name}_beat", beats, initial))
        state_at_start[state.joint] = state_at_end[state.rows] = states[-1]
    parts = []
    for node in network_loop.nodes:
        input_channels, output_channels = (
            tuple(channels[wire] for wire in wires) for wires in (node.inputs, node.outputs)
        )
        if node in state_at_start and isinstance(node.unit, FrameMemory):
            call, input_channels = bind_find(node, node.unit), input_channels[:1]
        elif node in state_at_start:
            call, input_channels = bind_recall(state_at_start[node].beats), ()
        elif node in state_at_end:
            call, output_channels = bind_remember(state_at_end[node].beats), ()
        else:
            call = bind_node(restrict_to_step(node, network_loop.steps), binary_point(network.graph, node))
        parts.append(
            Part(
                node,
                call,
                names[node.name],
                input_channels,
                output_channels,
                state_at_start.get(node, state_at_end.get(node)),
            )
        )
    emitted = [channel for part in parts for channel in part.outputs]
    consumed = [channel for part in parts for channel in part.inputs]
    first_joint = network_loop.states[0].joint
    return Loop(
        names[f"{first_joint.name} loop"],
        comment(first_joint.layer if network_loop.of_frames else loop_title(first_joint.layer)),
        network_loop.steps,
        tuple(parts),
        tuple(states),
        tuple(channel for channel in emitted if channel in consumed),
        tuple(channel for channel in consumed if channel not in emitted),
        tuple(channel for channel in emitted if channel not in consumed),
        network_loop.of_frames,
    )


def _topological_order(calls: Iterable[Part | Loop], available: Iterable[Channel]) -> tuple[Part | Loop, ...]:
    """The calls ordered so that every stream is written before it is read."""
    emitted, pending, ordered = set(available), list(calls), list[Part | Loop]()
    while pending:
        ready = []
        for call in pending:
            if emitted.issuperset(call.inputs):
                ready.append(call)
                emitted.update(call.outputs)
        ordered += ready
        pending = [call for call in pending if call not in ready]
    return tuple(ordered)


def _port_end(top: str, side: str, process: str, port: CorePort, channel: Channel) -> End:
    return End(port.name, port.label, f"{process}{port.label}", f"{top}_{side}{port.label}_t", channel, port.stream)
