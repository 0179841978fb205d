"""What the C++ of a network consists of: processes, the streams between them, loops, ports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hlsgen.dataflow.ends import divided
from hlsgen.dataflow.network import CorePort, Network
from hlsgen.dataflow.units import Fifo, Node, Slice, Stream
from hlsgen.hls.binary_point import binary_point
from hlsgen.hls.binding.loops import bind_recall, bind_remember
from hlsgen.hls.binding.units import bind_node
from hlsgen.hls.depths import room_for_next, safe_depths
from hlsgen.hls.loops import Circle, circles_of, in_front_of_fifos, of_step
from hlsgen.hls.names import loop_title, process_names
from hlsgen.hls.process import Process, Rom

_COLUMNS = 120
#: Beats that a stream between two processes holds where no FIFO stands.
_DEPTH = 2


def comment(text: str) -> str:
    """Text for a comment on one line: names of a model's nodes may hold anything."""
    return re.sub(r"[^ -~]|[\\?]|\*/", "_", text)


def wrapped(text: str, indent: int, first: int = 4) -> str:
    """Code on lines of at most 120 columns, broken behind commas."""
    lines, line = [], " " * first
    for part in re.split(r"(?<=, )", text):
        if len(line) + len(part.rstrip()) > _COLUMNS and line.strip():
            lines.append(line.rstrip())
            line = " " * indent
        line += part
    return "\n".join([*lines, line.rstrip()])


@dataclass(frozen=True, eq=False)
class Channel:
    """A stream between two processes, or at a port. `depth`: beats that it holds."""

    name: str
    wire: str
    type: str
    depth: int


@dataclass(frozen=True, eq=False)
class Part:
    """A process of the core: the node, its call, its name, and the names of its streams and of their types.

    `keeps`: the array of a state that it reads, or writes.
    """

    node: Node
    call: Process
    name: str
    inputs: tuple[Channel, ...]
    outputs: tuple[Channel, ...]
    keeps: Kept | None = None

    @property
    def roms(self) -> dict[str, Rom]:
        return {f"{self.name}_{end}": table for end, table in self.call.tables.items()}

    @property
    def about(self) -> str:
        """What a comment says in front of it."""
        layer = f"layer {self.node.layer}: " if self.node.layer else ""
        return comment(f"{layer}{self.call.about}")

    @property
    def ports(self) -> dict[str, str]:
        """Names and declarations of what it takes, s or a, b, and of what it sends, m or m0, m1, ...; found and left are
        states."""
        taken = ["s"] if len(self.inputs) == 1 else ["a", "b"][: len(self.inputs)]
        sent = ["m"] if len(self.outputs) == 1 else [f"m{n}" for n in range(len(self.outputs))]
        streams = zip([*taken, *sent], [*self.inputs, *self.outputs], strict=True)
        own = {name: stream_of_beats(channel.type, name) for name, channel in streams}
        if self.keeps is None:
            return own
        return own | {"left": self.keeps.left("left")} if taken else {"found": self.keeps.found("found")} | own

    @property
    def text(self) -> str:
        """The call."""
        arguments = ", ".join(f"{value} /* {name} */" for name, value in self.call.arguments)
        head = f"{self.call.function}<{arguments}>" if arguments else self.call.function
        return wrapped(f"{head}({', '.join([*self.ports, *self.roms])});", 4 + len(self.call.function) + 1)

    @property
    def signature(self) -> str:
        return wrapped(f"static void {self.name}({', '.join(self.ports.values())}) {{", 13 + len(self.name), 0)

    @property
    def given(self) -> str:
        """What it is called with."""
        names = [channel.name for channel in (*self.inputs, *self.outputs)]
        if self.keeps is None:
            return ", ".join(names)
        return ", ".join([*names, f"{self.keeps.name}_left"] if self.inputs else [f"{self.keeps.name}_found", *names])


def stream_of_beats(type_: str, name: str) -> str:
    """The declaration of a parameter."""
    return f"hls::stream<{type_}> &{name}"


@dataclass(frozen=True, eq=False)
class Kept:
    """A state of a loop: the name of the process that sends it, its beats, and the stream that brings the initial ones."""

    name: str
    type: str
    beats: int
    initial: Channel

    def found(self, name: str) -> str:
        """The parameter for what a step finds."""
        return f"const {self.type} (&{name})[{self.beats}]"

    def left(self, name: str) -> str:
        """The parameter for what a step leaves."""
        return f"{self.type} (&{name})[{self.beats}]"


@dataclass(frozen=True, eq=False)
class Loop:
    """Processes that are called for each step. `channels`: between them; `inputs`, `outputs`: streams from and to others."""

    name: str
    about: str
    steps: int
    parts: tuple[Part, ...]
    states: tuple[Kept, ...]
    channels: tuple[Channel, ...]
    inner: tuple[Channel, ...]
    outputs: tuple[Channel, ...]

    @property
    def inputs(self) -> tuple[Channel, ...]:
        return (*(state.initial for state in self.states), *self.inner)

    @property
    def given(self) -> str:
        return ", ".join(channel.name for channel in (*self.inputs, *self.outputs))

    @property
    def signature(self) -> str:
        streams = ", ".join(stream_of_beats(c.type, c.name) for c in (*self.inputs, *self.outputs))
        return wrapped(f"static void {self.name}({streams}) {{", 13 + len(self.name), 0)

    @property
    def step_signature(self) -> str:
        """The head of the function of a step: states that it finds, streams, states that it leaves."""
        found = [state.found(f"{state.name}_found") for state in self.states]
        left = [state.left(f"{state.name}_left") for state in self.states]
        streams = [stream_of_beats(c.type, c.name) for c in (*self.inner, *self.outputs)]
        return wrapped(
            f"static void {self.name}_step({', '.join([*found, *streams, *left])}) {{", 18 + len(self.name), 0
        )

    @property
    def step_text(self) -> str:
        """The call of a step."""
        names = [c.name for c in (*self.inner, *self.outputs)]
        found, left = ([f"{state.name}_{end}" for state in self.states] for end in ("found", "left"))
        return wrapped(f"{self.name}_step({', '.join([*found, *names, *left])});", 14 + len(self.name), 8)


@dataclass(frozen=True, eq=False)
class End:
    """A port of the core. `label`: what ends its names, "" of an only one; `channel`: the stream inside.

    `process`: what lies between both; `word`: the type of its words; `stream`: their beats.
    """

    port: str
    label: str
    process: str
    word: str
    channel: Channel
    stream: Stream

    @property
    def tail(self) -> int:
        """Bits of the last word of a group that hold no element."""
        stream = self.stream
        return stream.port_bits - ((stream.group - 1) % stream.lanes + 1) * stream.type.bits


@dataclass(frozen=True, eq=False)
class Core:
    """What the C++ of a network consists of. `parts`: all processes; `calls`: those of the top function, and loops.

    `channels`: between the calls.
    """

    top: str
    title: str
    parts: tuple[Part, ...]
    calls: tuple[Part | Loop, ...]
    channels: tuple[Channel, ...]
    inputs: tuple[End, ...]
    outputs: tuple[End, ...]

    @property
    def loops(self) -> list[Loop]:
        return [call for call in self.calls if isinstance(call, Loop)]

    @property
    def bits(self) -> int:
        """Those of the widest word of a port."""
        return max(end.stream.port_bits for end in (*self.inputs, *self.outputs))


def core_of(network: Network, top: str, title: str) -> Core:
    """Binds every node. FIFOs become depths of the streams in front of them, which are deeper where processes need it.

    Raises HG040 for a loop whose processes work on several steps at once.
    """
    nodes = network.nodes
    circles = circles_of(nodes)
    names = process_names(nodes, top, circles)
    depths = _depths(nodes, circles)
    into, _, out = divided(nodes)
    made = [node for node in nodes if not isinstance(node.unit, Fifo | Slice) and node not in out]
    ends = [state.rows for circle in circles for state in circle.states]
    channels: dict[str, Channel] = {}
    for node in made:
        for n, wire in enumerate(node.outputs):
            name = names[node.name] if len(node.outputs) == 1 else f"{names[node.name]}_{n}"
            channels[wire] = Channel(f"{name}_out", wire, f"{names[node.name]}_beat", depths[wire])
    front = in_front_of_fifos(nodes)
    channels |= {wire: channels[first] for wire, first in front.items()}
    inside = {node.name: circle for circle in circles for node in circle.nodes}
    parts = {
        node.name: Part(
            node, bind_node(node, binary_point(network.graph, node)), names[node.name],
            tuple(channels[wire] for wire in node.inputs), tuple(channels[wire] for wire in node.outputs),
        )
        for node in made[len(into) :] if node.name not in inside
    }  # fmt: skip
    loops = [_loop(network, circle, names, channels) for circle in circles]
    parts |= {part.node.name: part for loop in loops for part in loop.parts}
    calls: list[Part | Loop] = [part for name, part in parts.items() if name not in inside]
    inner = {channel for loop in loops for channel in loop.channels}
    inputs = tuple(_end(top, "input", "take_frame", port, channels[port.node.outputs[0]]) for port in network.inputs)
    outputs = tuple(_end(top, "output", "send_frame", port, channels[port.node.inputs[0]]) for port in network.outputs)
    return Core(
        top, comment(title), tuple(parts[node.name] for node in made[len(into) :]),
        _in_order([*calls, *loops], [end.channel for end in inputs]) if loops else tuple(calls),
        tuple(
            channels[wire] for node in made if node not in ends for wire in node.outputs if channels[wire] not in inner
        ),
        inputs, outputs,
    )  # fmt: skip


def _depths(nodes: Sequence[Node], circles: Sequence[Circle]) -> dict[str, int]:
    """Beats that each stream holds."""
    front = in_front_of_fifos(nodes)
    inside = {node for circle in circles for node in circle.nodes}
    depths = {wire: _DEPTH for node in nodes for wire in node.outputs}
    for node in nodes:
        wire = front.get(node.inputs[0], node.inputs[0])
        if isinstance(node.unit, Fifo | Slice):
            depths[wire] += node.unit.depth
        elif wire in depths and node not in inside:
            depths[wire] += room_for_next(node)
    return safe_depths(nodes, {wire: depth for wire, depth in depths.items() if wire not in front})


def _loop(network: Network, circle: Circle, names: dict[str, str], channels: dict[str, Channel]) -> Loop:
    """The processes of a loop, each with the beats of a step."""
    joints, kept = {}, []
    ends: dict[Node, Kept] = {}
    for state in circle.states:
        name, beats = names[state.joint.name], state.joint.result.beats // circle.steps
        kept.append(Kept(name, f"{name}_beat", beats, channels[state.initial]))
        joints[state.joint] = ends[state.rows] = kept[-1]
    parts = []
    for node in circle.nodes:
        taken, sent = (tuple(channels[wire] for wire in wires) for wires in (node.inputs, node.outputs))
        if node in joints:
            call, taken = bind_recall(joints[node].beats), ()
        elif node in ends:
            call, sent = bind_remember(ends[node].beats), ()
        else:
            call = bind_node(of_step(node, circle.steps), binary_point(network.graph, node))
        parts.append(Part(node, call, names[node.name], taken, sent, joints.get(node, ends.get(node))))
    own = [channel for part in parts for channel in part.outputs]
    used = [channel for part in parts for channel in part.inputs]
    first = circle.states[0].joint
    return Loop(
        names[f"{first.name} loop"], comment(loop_title(first.layer)), circle.steps, tuple(parts), tuple(kept),
        tuple(channel for channel in own if channel in used), tuple(channel for channel in used if channel not in own),
        tuple(channel for channel in own if channel not in used),
    )  # fmt: skip


def _in_order(calls: Iterable[Part | Loop], there: Iterable[Channel]) -> tuple[Part | Loop, ...]:
    """The calls so that every stream is sent before it is taken."""
    sent, left, found = set(there), list(calls), list[Part | Loop]()
    while left:
        ready = []
        for call in left:
            if sent.issuperset(call.inputs):
                ready.append(call)
                sent.update(call.outputs)
        found += ready
        left = [call for call in left if call not in ready]
    return tuple(found)


def _end(top: str, side: str, process: str, port: CorePort, channel: Channel) -> End:
    return End(port.name, port.label, f"{process}{port.label}", f"{top}_{side}{port.label}_t", channel, port.stream)
