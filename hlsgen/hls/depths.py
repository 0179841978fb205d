"""Depths of the streams between processes that exclude a deadlock of the core.

A process of the C++ library stalls while one of its output streams is full. It then reads nothing, even if it has room
inside. Depths that suffice in Verilog, whose line buffers keep reading, may therefore be too small in C++.

In this model, every process reads the beats of `read_order.read_beats` before it emits a beat. It takes the last beat
of each input when it emits, because a state of a pipeline waits for all its reads and writes together. No process
here holds a beat between its streams. Stages of pipelines do, and that needs no deeper streams, because the pipelines
empty while there is no input (`style=flp`). No decision depends on the data: a frame that passes here passes at any
rate and with any latency. In a loop, no process begins a step before all its processes have ended the previous one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hlsgen.dataflow.units import Fifo, MatVec, Node, Port, Reorder, Slice
from hlsgen.hls.loops import NetworkLoop, find_loops, restrict_to_step, streams_before_fifos
from hlsgen.hls.read_order import read_beats

#: Frames after which every process has begun a frame while others still process the previous one.
_FRAMES = 3


def room_for_next(node: Node) -> int:
    """Beats to buffer before a process that emits its input several times: the next vector, or the next frame's block.

    If they had no room, the upstream process would stall during the repetitions.
    """
    unit = node.unit
    if isinstance(unit, MatVec) and unit.row_folds > 1:
        return unit.col_folds
    if isinstance(unit, Reorder) and unit.block == node.source.beats:
        return unit.block
    return 0


@dataclass(eq=False)
class _Loop:
    """Processes that begin a step together. `initial`: readers of the initial states, before a frame's first step."""

    steps: int
    initial: list[_Process] = field(default_factory=list)
    members: list[_Process] = field(default_factory=list)

    def waits_for(self, process: _Process) -> _Process | None:
        """A process that must advance before this one begins its next step or frame, or None."""
        begun_steps = process.calls
        if process in self.initial:
            begun_steps *= self.steps
        elif unfinished := next((p for p in self.initial if p.calls * self.steps <= begun_steps), None):
            return unfinished
        return next((p for p in self.members if p.calls < begun_steps), None)


@dataclass(eq=False)
class _Process:
    """Progress of a process. It is called `frames` times and emits `count` beats per call.

    `needed`: its `read_beats`. `beats_per_call`: per input. `reads`, `emitted`: beats so far.
    """

    inputs: Sequence[str]
    outputs: Sequence[str]
    needed: list[list[int]]
    beats_per_call: list[int]
    count: int
    frames: int = _FRAMES
    loop: _Loop | None = None
    emitted: int = 0

    def __post_init__(self) -> None:
        self.reads = [0] * len(self.inputs)

    @property
    def calls(self) -> int:
        """Number of completed calls."""
        return self.emitted // self.count


class _Run:
    """Simulation of frames through processes, between streams of limited depths."""

    def __init__(self, nodes: Sequence[Node], depths: Mapping[str, int]) -> None:
        self.depths = dict(depths)
        self.stream_before = streams_before_fifos(nodes)
        self.processes: list[_Process] = []
        self.writer: dict[str, _Process] = {}
        self.reader: dict[str, _Process] = {}
        self.bits = {wire: node.result.bits for node in nodes for wire in node.outputs}
        loops = find_loops(nodes)
        loop_nodes = {node for loop in loops for node in loop.nodes}
        for node in nodes:
            if not (isinstance(node.unit, Port | Fifo | Slice) or node in loop_nodes):
                self._add(self._process_of(node))
        for loop in loops:
            self._add_loop(loop)
        self.written = dict.fromkeys(self.writer, 0)
        self.consumed = dict.fromkeys(self.reader, 0)

    def _process_of(self, node: Node) -> _Process:
        inputs = [self.stream_before.get(wire, wire) for wire in node.inputs]
        needed = [beats.tolist() for beats in read_beats(node)]
        return _Process(inputs, node.outputs, needed, [s.beats for s in node.sources], len(needed[0]))

    def _add_loop(self, network_loop: NetworkLoop) -> None:
        """Add the processes of a loop. They are called per step; readers of the initial states are called per frame."""
        loop, steps = _Loop(network_loop.steps), network_loop.steps * _FRAMES
        joints = {state.joint: state for state in network_loop.states}
        end_states = {state.rows: state for state in network_loop.states}
        for node in network_loop.nodes:
            if node in joints and network_loop.of_frames:
                beats = node.result.beats
                process = _Process([joints[node].initial], node.outputs, [[1] * beats], [1], beats)
            elif node in joints:
                beats, wire = node.result.beats // network_loop.steps, joints[node].initial
                loop.initial.append(_Process([wire], [], [[beats]], [beats], 1, loop=loop))
                self._add(loop.initial[-1])
                process = _Process([], node.outputs, [], [], beats)
            elif node in end_states:
                beats = node.source.beats // network_loop.steps
                inputs = [self.stream_before.get(wire, wire) for wire in node.inputs]
                process = _Process(inputs, [], [list(range(1, beats + 1))], [beats], beats)
            else:
                process = self._process_of(restrict_to_step(node, network_loop.steps))
            process.frames, process.loop = steps, loop
            loop.members.append(process)
            self._add(process)

    def _add(self, process: _Process) -> None:
        self.processes.append(process)
        self.writer.update(dict.fromkeys(process.outputs, process))
        self.reader.update(dict.fromkeys(process.inputs, process))

    def advance(self, process: _Process) -> str | _Process:
        """Advance a process until it waits. Returns the stream or process it waits for; "" if it has ended."""
        while True:
            frame, place = divmod(process.emitted, process.count)
            if place == 0:
                # Read the remaining beats of a frame before the next frame.
                if wire := self._read(process, frame, None):
                    return wire
                if frame == process.frames:
                    return ""
                if process.loop and (unfinished := process.loop.waits_for(process)):
                    return unfinished
            if wire := self._read(process, frame, place):
                return wire
            for wire in process.outputs:
                if self.full(wire):
                    return wire
            for n, wire in enumerate(process.inputs):
                process.reads[n] = self.consumed[wire] = self._target(process, n, frame, place)
            for wire in process.outputs:
                self.written[wire] += 1
            process.emitted += 1

    def _read(self, process: _Process, frame: int, place: int | None) -> str:
        """Read the beats that an output beat needs but the last one of each input, which the emission takes itself.

        `place` None: read the remaining beats of earlier calls. Returns the first stream with too few beats, or "".
        """
        for n, wire in enumerate(process.inputs):
            target = self._target(process, n, frame, place)
            if process.reads[n] < target:
                available = min(target, self.written[wire]) if wire in self.writer else target
                process.reads[n] = self.consumed[wire] = available if place is None else min(available, target - 1)
                if available < target:
                    return wire
        return ""

    def _target(self, process: _Process, n: int, frame: int, place: int | None) -> int:
        """Beats of input n, of all frames, up to an output beat of a frame, or before this frame."""
        needed = 0 if place is None else process.needed[n][place]
        return max(process.reads[n], frame * process.beats_per_call[n] + needed)

    def full(self, wire: str) -> bool:
        return wire in self.reader and self.written[wire] - self.consumed[wire] >= self.depths[wire]

    def run(self) -> None:
        """Run until every process has emitted its frames. Deepen a full stream whenever processes wait in a cycle."""
        waits: dict[int, str | _Process] = {}
        runnable = list(self.processes)
        while True:
            while runnable:
                process = runnable.pop()
                progress = (process.emitted, *process.reads)
                waits[id(process)] = self.advance(process)
                if (process.emitted, *process.reads) != progress:
                    runnable += [self.writer[wire] for wire in process.inputs if wire in self.writer]
                    runnable += [self.reader[wire] for wire in process.outputs if wire in self.reader]
                    runnable += [*process.loop.initial, *process.loop.members] if process.loop else []
            waiting = next((process for process in self.processes if waits[id(process)]), None)
            if waiting is None:
                return
            wire = self._stream_to_deepen(waiting, waits)
            self.depths[wire] += 1
            runnable.append(self.writer[wire])

    def _stream_to_deepen(self, process: _Process, waits: Mapping[int, str | _Process]) -> str:
        """The full stream with the narrowest beats in the cycle of waiting processes."""
        visited: list[_Process] = []
        while process not in visited:
            visited.append(process)
            obstacle = waits[id(process)]
            if isinstance(obstacle, str):
                process = self.writer[obstacle] if obstacle in process.inputs else self.reader[obstacle]
            else:
                process = obstacle
        cycle = visited[visited.index(process) :]
        full = [obstacle for p in cycle if isinstance(obstacle := waits[id(p)], str) and obstacle in p.outputs]
        return min(full, key=lambda wire: self.bits[wire])


def safe_depths(nodes: Sequence[Node], depths: Mapping[str, int]) -> dict[str, int]:
    """The smallest depths, at least `depths`, with which every frame passes, by stream (before FIFOs)."""
    if not any(len(node.inputs) > 1 for node in nodes):
        return dict(depths)  # no cycle is possible
    run = _Run(nodes, depths)
    run.run()
    return run.depths
