"""cocotb testbench of a generated core: sends beats, and compares the output beats.

Run it with run.py (or make). It reads beats from <vectors>/input.hex and <vectors>/expected.hex; a core with several
ports has a file for each. Each line is a hexadecimal word. config.json describes the interface. Results are written as
JSON. Add tests of your own below: `Core` does the handshakes.

For a core with loadable weights, <vectors>/load.hex is written first, if it exists. Each line has a byte address and
the data of a write over AXI4-Lite. The test other_weights writes other.hex and expects other_expected.hex. It then
writes own.hex, the weights of the memory files.

Environment:
- HLSGEN_TB: folder of config.json.
- HLSGEN_VECTORS: folder of the beats.
- HLSGEN_RESULT: file for the results.
- HLSGEN_SEED: seed of the stalls.
- HLSGEN_MONITOR: 1 to compare the streams between the layers, too.
- HLSGEN_UNTIL: value of time.monotonic() after which full_rate sends no further frame.
- HLSGEN_PROGRESS: file for the name of the test and the number of frames that it has received.
"""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

HERE = Path(os.environ.get("HLSGEN_TB", Path(__file__).parent))
VECTORS = Path(os.environ.get("HLSGEN_VECTORS", HERE))
RESULT = Path(os.environ.get("HLSGEN_RESULT", HERE / "result.json"))
SEED = int(os.environ.get("HLSGEN_SEED", "1"))
MONITOR = os.environ.get("HLSGEN_MONITOR") == "1"
CONFIG = json.loads((HERE / "config.json").read_text())
INPUTS, OUTPUTS = CONFIG["inputs"], CONFIG["outputs"]
RESULTS: dict[str, object] = {}
UNTIL = float(os.environ.get("HLSGEN_UNTIL", "inf"))
PROGRESS = os.environ.get("HLSGEN_PROGRESS")
#: Fewest frames that full_rate sends, to show the interval.
FEWEST = 4
#: How a sequence of frames starts besides after reset, in a core with states between frames.
STARTS_BY = CONFIG.get("starts_by", "")
#: True for a core without handshake: it takes a word in every cycle, and sends it CONFIG["latency"] cycles later.
PLAIN = CONFIG.get("plain", False)
#: Cycles of a reset.
RESET_CYCLES = 4


def words(name: str) -> list[int]:
    """The beats of a file in the vector folder."""
    return [int(line, 16) for line in (VECTORS / name).read_text().split()]


def frames_of(ports, frames=None, prefix="") -> list[list[int]]:
    """The beats of this number of frames, or of all frames, for each of these ports."""
    return [words(prefix + port["vectors"])[: frames and frames * port["words"]] for port in ports]


def available_frames(limit: int) -> int:
    """The number of frames in the vectors, at most `limit`."""
    return min(limit, *(len(beats) // port["words"] for port, beats in zip(INPUTS, frames_of(INPUTS), strict=True)))


def writes(name: str) -> list[tuple[int, int]]:
    """Address and data of the writes of a file in the vector folder."""
    lines = (VECTORS / name).read_text().splitlines()
    return [(int(address, 16), int(data, 16)) for address, data in (line.split() for line in lines)]


def record(name: str, value: object) -> None:
    """Adds an entry to the result file."""
    RESULTS[name] = value
    RESULT.write_text(json.dumps(RESULTS, indent=2) + "\n")


def differs(port, beat: int, actual: int, expected: int) -> bool:
    """True if two words differ in elements of a frame; the last beat of a group may have fewer elements."""
    used = min(port["lanes"], port["group"] - beat % -(-port["group"] // port["lanes"]) * port["lanes"])
    return (actual ^ expected) & ((1 << used * port["bits"]) - 1) != 0


def beats_of(port, words):
    """The core's beats in the words of an output on a bus, each with the number of its last word.

    An incomplete frame gives its complete beats.
    """
    size, slot, per_frame = port["tdata"], 8 * port["slot_bytes"], port["words"]
    slots, parts = max(1, size // slot), max(1, slot // size)
    beats = []
    for start in range(0, len(words), per_frame):
        frame = words[start : start + per_frame]
        for beat in range(min(port["beats"], len(frame) // parts * slots)):
            first = beat // slots * parts
            word = sum(part << (size * k) for k, part in enumerate(frame[first : first + parts]))
            beats.append((word >> (beat % slots * slot) & ((1 << slot) - 1), start + first + parts - 1))
    return beats


def padding(port, words) -> bool:
    """True if a word of an output has nonzero bits outside its elements."""
    if "slot_bytes" not in port:
        return any(word >> port["bits"] * port["lanes"] for word in words)
    beats, per_frame = beats_of(port, words), port["words"]
    slots = max(1, port["tdata"] // (8 * port["slot_bytes"]))
    used = (port["beats"] - 1) % slots + 1
    nonzero_after_last = any(word >> (used * 8 * port["slot_bytes"]) for word in words[per_frame - 1 :: per_frame])
    return any(beat >> port["bits"] * port["lanes"] for beat, _ in beats) or (slots > 1 and nonzero_after_last)


def keep(port, last: bool):
    """tkeep of a word of a port; None without tkeep."""
    if "keep" not in port:
        return None
    return (1 << (port["keep"] if last else port["tdata"] // 8)) - 1


def steady():
    """A pace: offers and accepts a beat in every cycle, at all ports."""
    all_ports = [True] * len(INPUTS), [True] * len(OUTPUTS)
    while True:
        yield all_ports


def at_random(rng, idle, stall, cycles: int | None = None):
    """A pace: in each cycle, no beat is offered with probability `idle`, and none accepted with probability `stall`.

    Each is one probability for all ports, or a list with one for each port.
    """
    idles = idle if isinstance(idle, list) else [idle] * len(INPUTS)
    stalls = stall if isinstance(stall, list) else [stall] * len(OUTPUTS)
    while cycles is None or cycles > 0:
        yield [rng.random() >= idle for idle in idles], [rng.random() >= stall for stall in stalls]
        cycles = None if cycles is None else cycles - 1


def each_alone(low, high):
    """(values of the inputs, values of the outputs): `high` at one port, `low` at all others; for each port in turn.

    Nothing for a core with one input and one output.
    """
    if len(INPUTS) + len(OUTPUTS) == 2:
        return
    for place in range(len(INPUTS) + len(OUTPUTS)):
        values = [high if n == place else low for n in range(len(INPUTS) + len(OUTPUTS))]
        yield values[: len(INPUTS)], values[len(INPUTS) :]


class Tied:
    """In place of a pin that a core without handshake does not have: reads as `value`; what is written is lost."""

    def __init__(self, value: int) -> None:
        self.constant = value

    @property
    def value(self) -> int:
        return self.constant

    @value.setter
    def value(self, value) -> None:
        pass


def pins(dut, port) -> tuple:
    """valid, ready, data and last of a port."""
    name = port["port"]
    if PLAIN:
        return getattr(dut, f"{name}_valid"), Tied(1), getattr(dut, f"{name}_data"), Tied(1)
    return tuple(getattr(dut, f"{name}_t{part}") for part in ("valid", "ready", "data", "last"))


class Coverage:
    """Records which streams were stalled (valid && !ready) and starved (ready && !valid), at ports and inside."""

    def __init__(self, dut) -> None:
        self.open = {
            f"port_{direction}{port['label']}": pins(dut, port)[:2]
            for direction, ports in (("in", INPUTS), ("out", OUTPUTS))
            for port in ports
        }
        self.open |= {s: (getattr(dut, f"{s}_valid"), getattr(dut, f"{s}_ready")) for s in CONFIG["streams"]}
        self.never = {"stalled": list(self.open), "starved": list(self.open)}
        self.streams = len(self.open)

    def look(self) -> None:
        """Reads the state of this cycle, for the streams that are not yet covered."""
        for name, (valid, ready) in list(self.open.items()):
            is_valid, is_ready = valid.value == 1, ready.value == 1
            if is_valid == is_ready:
                continue
            never = self.never["stalled" if is_valid else "starved"]
            if name in never:
                never.remove(name)
                if not any(name in names for names in self.never.values()):
                    del self.open[name]


def starts() -> list[int]:
    """For each frame of the vectors, 1 if it starts a sequence."""
    return words("starts.hex") if STARTS_BY == "tuser" else []


class Source:
    """An input port while beats are sent.

    first: cycle of the first accepted beat. wrong: frame_error must be set. starts: tuser of each frame, or nothing;
    tuser is 1 at all words that do not begin a frame, where it counts for nothing.
    """

    def __init__(self, dut, port, beats, lasts, keeps) -> None:
        name = port["port"]
        self.valid, self.ready, self.data, self.last = pins(dut, port)
        self.keep, self.error = getattr(dut, f"{name}_tkeep", None), error_pin(dut, port)
        self.port, self.beats, self.lasts, self.keeps, self.words = port, beats, lasts, keeps, port["words"]
        self.user, self.starts = getattr(dut, f"{name}_tuser", None), starts() if port is INPUTS[0] else []
        self.sent, self.offered, self.first, self.wrong, self.times = 0, False, None, False, []

    def took(self, cycle: int) -> bool:
        """True if the core accepts a beat in this cycle."""
        if self.lasts is not None:
            assert self.error.value == self.wrong, f"frame_error is not {int(self.wrong)} after {self.sent} beats"
        if not self.offered or self.ready.value != 1:
            return False
        self.first = cycle if self.first is None else self.first
        self.times.append(cycle)
        if self.lasts is not None:
            self.wrong |= self.lasts[self.sent] != ((self.sent + 1) % self.words == 0)
        self.sent, self.offered = self.sent + 1, False
        return True

    def drive(self, offer: bool, total: int | None) -> None:
        """Offers the next of `total` beats, or of any number, in the next cycle. An offered beat stays until it is
        accepted."""
        if self.offered:
            return
        if not offer or (total is not None and self.sent >= total):
            self.valid.value = 0
            return
        number = self.sent
        last = (number + 1) % self.words == 0
        self.data.value = self.beats[number % len(self.beats)]
        self.last.value = last if self.lasts is None else self.lasts[number]
        if self.user is not None:
            frame, word = divmod(number % len(self.beats), self.words)
            self.user.value = 1 if word else self.starts[frame]
        if self.keep is not None:
            self.keep.value = keep(self.port, last) if self.keeps is None else self.keeps[number]
        self.valid.value = 1
        self.offered = True

    @property
    def begun(self) -> int:
        """The number of frames of which a beat was offered."""
        return -(-(self.sent + self.offered) // self.words)


class Sink:
    """An output port while beats are received: the words `received`, and the cycle of each in `times`.

    The port must not change while it is stalled.
    """

    def __init__(self, dut, port) -> None:
        name = port["port"]
        self.valid, self.ready, self.data, self.last = pins(dut, port)
        self.keep, self.port, self.words = getattr(dut, f"{name}_tkeep", None), port, port["words"]
        self.received, self.times, self.taking, self.held = [], [], False, None

    def took(self, cycle: int) -> bool:
        """True if a beat is received in this cycle."""
        if self.valid.value != 1:
            assert self.held is None, f"tvalid fell during a stall in cycle {cycle}"
            return False
        data = int(self.data.value)
        assert self.held is None or self.held == data, f"tdata changed during a stall in cycle {cycle}"
        if not self.taking:
            self.held = data
            return False
        self.held = None
        last = (len(self.received) + 1) % self.words == 0
        assert (self.last.value == 1) == last, f"tlast wrong at output beat {len(self.received)}"
        assert self.keep is None or self.keep.value == keep(self.port, last), (
            f"tkeep wrong at output beat {len(self.received)}"
        )
        self.received.append(data)
        self.times.append(cycle)
        return True

    def drive(self, take: bool) -> None:
        """Sets whether a beat is accepted in the next cycle."""
        self.taking = take or PLAIN
        self.ready.value = 1 if take else 0


class Core:
    """The core under test and its ports."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.clk = getattr(dut, CONFIG["clock"])
        self.reset = getattr(dut, CONFIG["reset"])
        self.cycle = self.moved = 0
        self.test, self.reported, self.end = "", 0.0, float("inf")
        self.coverage: Coverage | None = None
        self.probes = [
            (
                getattr(dut, f"{m['stream']}_data"),
                getattr(dut, f"{m['stream']}_valid"),
                getattr(dut, f"{m['stream']}_ready"),
                [],
                m,
            )
            for m in (CONFIG["monitors"] if MONITOR else [])
        ]

    async def start(self) -> None:
        """Starts the clock and resets."""
        cocotb.start_soon(Clock(self.clk, 10, "ns").start())
        for port in INPUTS:
            valid, _, data, last = pins(self.dut, port)
            for pin in (valid, data, last, *((getattr(self.dut, f"{port['port']}_tkeep"),) if "keep" in port else ())):
                pin.value = 0
        if STARTS_BY == "tuser":
            getattr(self.dut, f"{INPUTS[0]['port']}_tuser").value = 0
        for port in OUTPUTS:
            pins(self.dut, port)[1].value = 0
        for port, present in (("s_axil", CONFIG["weights"]), ("s_axil_ctrl", "control" in CONFIG)):
            for name in ("awaddr", "awvalid", "wdata", "wstrb", "wvalid", "bready", "araddr", "arvalid", "rready"):
                if present:
                    getattr(self.dut, f"{port}_{name}").value = 0
        await self.pulse_reset()
        load = VECTORS / "load.hex"
        for address, data in writes("load.hex") if CONFIG["weights"] and load.exists() else ():
            await self.write(address, data)

    async def write(self, address, data, strobe=15, response=0, wait=0, late=None, port="s_axil") -> None:
        """One write over AXI4-Lite. The response is accepted after `wait` cycles; channel `late` ("aw" or "w") follows
        that late."""
        dut = self.dut
        for name, value in (("awaddr", address), ("wdata", data), ("wstrb", strobe)):
            getattr(dut, f"{port}_{name}").value = value
        pending = {"aw", "w"}
        for cycle in range(100):
            for name in pending if cycle >= wait else pending - {late}:
                getattr(dut, f"{port}_{name}valid").value = 1
            getattr(dut, f"{port}_bready").value = 0
            await RisingEdge(self.clk)
            valid = {name for name in pending if cycle >= wait or name != late}
            accepted = {name for name in valid if getattr(dut, f"{port}_{name}ready").value == 1}
            for name in accepted:
                getattr(dut, f"{port}_{name}valid").value = 0
            pending -= accepted
            if not pending:
                break
        answer = await self.answer("b", wait, port)
        assert answer[0] == response, f"write of {data:x} to {address:x}: response {answer[0]}"

    async def read(self, address, wait=0, port="s_axil"):
        """One read over AXI4-Lite; returns response and data."""
        getattr(self.dut, f"{port}_araddr").value = address
        getattr(self.dut, f"{port}_arvalid").value = 1
        for _ in range(100):
            await RisingEdge(self.clk)
            if getattr(self.dut, f"{port}_arready").value == 1:
                break
        getattr(self.dut, f"{port}_arvalid").value = 0
        return await self.answer("r", wait, port)

    async def answer(self, channel, wait, port):
        """The answer of a channel. It must not change in the `wait` cycles before it is accepted, and must come
        once."""
        dut, names = self.dut, ("resp", "data") if channel == "r" else ("resp",)
        valid, ready = getattr(dut, f"{port}_{channel}valid"), getattr(dut, f"{port}_{channel}ready")
        answers = []
        ready.value = int(wait == 0)
        for _ in range(100 + wait):
            await RisingEdge(self.clk)
            if valid.value != 1:
                assert not answers, f"{port}_{channel}valid fell before it was taken"
                continue
            answers.append([int(getattr(dut, f"{port}_{channel}{name}").value) for name in names])
            assert answers[0] == answers[-1], f"the answer at {port}_{channel} has changed before it was taken"
            if len(answers) > wait:
                break
            ready.value = int(len(answers) == wait)
        else:
            raise AssertionError(f"no answer at {port}_{channel}")
        ready.value = 0
        await RisingEdge(self.clk)
        assert valid.value == 0, f"{port}_{channel}valid stays after it was taken"
        return answers[0]

    async def hold_reset(self, cycles) -> None:
        """Holds reset for this number of cycles, in any state of the ports."""
        self.reset.value = 0 if CONFIG["reset_active_low"] else 1
        for _ in range(cycles):
            await RisingEdge(self.clk)
        self.reset.value = 1 if CONFIG["reset_active_low"] else 0

    async def pulse_reset(self) -> None:
        """Holds reset for a few cycles, and offers no beat for two more."""
        for port in INPUTS:
            pins(self.dut, port)[0].value = 0
        await self.hold_reset(RESET_CYCLES)
        await RisingEdge(self.clk)
        await RisingEdge(self.clk)

    async def restart(self) -> None:
        """Makes the next frame start a sequence, where the vectors do not."""
        if STARTS_BY == "register":
            await self.write(0, 2, port="s_axil_ctrl")
        elif STARTS_BY == "reset":
            await self.pulse_reset()

    async def stream(self, beats, frames=None, pace=None, stop_at=None, lasts=None, keeps=None):
        """Sends the beats of each input, and receives `frames` frames at every output. Returns (data, first input
        cycle, cycles).

        - frames: if it is None, the beats repeat until `pace` ends; the last frame is then completed.
        - pace: yields, for each cycle, whether each input offers and each output accepts a beat. After its end, beats
        move at
          full rate. The default is steady().
        - stop_at: leave after this number of cycles.
        - lasts: tlast of the beats of each input, or None. frame_error must then be right.
        - keeps: tkeep of the beats of each input, or None.

        All ports run independently.
        """
        clk, pace, stride, start = self.clk, pace or steady(), CONFIG["coverage_stride"], self.cycle
        settings = zip(INPUTS, beats, lasts or [None] * len(INPUTS), keeps or [None] * len(INPUTS), strict=True)
        sources, sinks = (
            [Source(self.dut, *setting) for setting in settings],
            [Sink(self.dut, port) for port in OUTPUTS],
        )
        patience, quiet = 20 * (CONFIG["latency"] + CONFIG["interval"]) + 2000, 0
        totals = [None if frames is None else len(port_beats) for port_beats in beats]
        word_counts = [0 if frames is None else frames * sink.words for sink in sinks]
        while (
            frames is None
            or any(len(sink.received) < count for sink, count in zip(sinks, word_counts, strict=True))
            or (stop_at is None and any(x.offered or x.sent < n for x, n in zip(sources, totals, strict=True)))
        ):
            moved = 0
            for end in sources:
                moved += end.took(self.cycle)
            for end in sinks:
                moved += end.took(self.cycle)
            self.moved += moved
            if self.probes:
                self.probe()
            if self.coverage and self.cycle % stride == 0:
                self.coverage.look()
            if stop_at is not None and self.cycle - start >= stop_at:
                break
            ended = self.cycle % 64 == 0 and self.late(min(len(sink.received) // sink.words for sink in sinks))
            quiet = 0 if moved else quiet + 1
            places = [source.sent for source in sources], [len(sink.received) for sink in sinks]
            assert quiet < patience, f"no beat moved for {quiet} cycles (sent {places[0]}, got {places[1]})"
            now = next(pace, None)
            if now is None:
                pace, ended = steady(), ended or frames is None
                now = next(pace)
            if ended:
                begun = max(source.begun for source in sources)
                frames_to_send = begun if frames is None else min(frames, max(FEWEST, begun))
                frames, self.end = frames_to_send, float("inf")
                totals = [frames_to_send * source.words for source in sources]
                word_counts = [frames_to_send * sink.words for sink in sinks]
            for end, offer, total in zip(sources, now[0], totals, strict=True):
                end.drive(offer, total)
            for end, take in zip(sinks, now[1], strict=True):
                end.drive(take)
            await RisingEdge(clk)
            self.cycle += 1
        if PLAIN:
            on_time(sources[0].times, sinks[0].times)
        for source in sources:
            source.valid.value = 0
        for sink in sinks:
            sink.ready.value = 0
        first = min((source.first for source in sources if source.first is not None), default=None)
        return [sink.received for sink in sinks], first, [sink.times for sink in sinks]

    def late(self, frames: int) -> bool:
        """True if the time for more frames is up. Writes the number of frames to the progress file once a second."""
        now = time.monotonic()
        if PROGRESS and self.test and now > self.reported + 1:
            self.reported = now
            Path(PROGRESS).write_text(f"{self.test} {frames}\n")
        return now > self.end

    def bursts(self, coverage: Coverage):
        """A pace: fills the core until nothing moves, lets it run, empties it, continues at random, and repeats this.

        It ends when every stream was stalled and starved, after at least two rounds. The limits are
        CONFIG["burst_rounds"]
        rounds and CONFIG["burst_cycles"] cycles.
        """
        rng, settled = random.Random(SEED + 1), CONFIG["latency"] + CONFIG["interval"]
        end = self.cycle + CONFIG["burst_cycles"]
        for number in range(CONFIG["burst_rounds"]):
            yield from self.until_still([True] * len(INPUTS), [False] * len(OUTPUTS), settled, end)
            coverage.look()
            yield from at_random(rng, 0, 0, rng.randint(1, settled))
            yield from self.until_still([False] * len(INPUTS), [True] * len(OUTPUTS), settled, end)
            coverage.look()
            for offers, takes in each_alone(True, False):
                yield from self.until_still(offers, takes, settled, end)
                yield from at_random(rng, 0, 0, rng.randint(1, settled))
            yield from at_random(rng, rng.choice((0, 0.2, 0.8)), rng.choice((0.1, 0.5, 0.9)), rng.randint(1, settled))
            if self.cycle >= end or (number and not coverage.open):
                return

    def until_still(self, offers, takes, settled: int, end: int):
        """A constant pace until no beat has passed a port for `settled` cycles, at most until cycle `end`.

        Ports that do not depend on a blocked port never stop: then it ends after as many cycles as all buffers can
        absorb.
        """
        quiet, previous_moves, start = 0, None, self.cycle
        # Every stream holds fewer than four frames.
        limit = 20 * settled + 2000 + 4 * CONFIG["interval"] * len(CONFIG["streams"])
        while quiet < settled and self.cycle < end:
            yield offers, takes
            quiet, previous_moves = quiet + 1 if self.moved == previous_moves else 0, self.moved
            if all(offers) != all(takes) and not (any(offers) and any(takes)):
                port = "output was stalled" if any(offers) else "input was idle"
                assert self.cycle - start < limit, f"beats still move after {limit} cycles in which the {port}"
            elif self.cycle - start >= limit:
                return

    def forget(self) -> None:
        """Deletes the recorded beats between the layers: the next frame is the first one."""
        for probe in self.probes:
            probe[3].clear()

    def probe(self) -> None:
        """Records the beats that move between the layers in this cycle."""
        for data, valid, ready, recorded, _ in self.probes:
            if valid.value == 1 and ready.value == 1:
                recorded.append((int(data.value), self.cycle))

    def compare(self, test: str, received, times, expected) -> None:
        """Records the number of differing beats, and raises at the first. `expected` repeats if there are more output
        beats."""
        self.compare_layers(test)
        count, first = 0, None
        for port, beats, cycles, right in zip(OUTPUTS, received, times, expected, strict=True):
            if "slot_bytes" in port:
                beats_and_words = beats_of(port, beats)
                beats, cycles = [x for x, _ in beats_and_words], [cycles[k] for _, k in beats_and_words]
                right = [x for x, _ in beats_of(port, right)]
            wrong = [i for i, word in enumerate(beats) if differs(port, i, word, right[i % len(right)])]
            count += len(wrong)
            if wrong and first is None:
                place = wrong[0] % len(right)
                first = port, place, beats[wrong[0]], right[place], cycles[wrong[0]]
        record(f"{test}.mismatches", count)
        if first is not None:
            self.diverge(test, *first)

    def compare_layers(self, test: str) -> None:
        """Raises at the first differing beat between the layers."""
        for *_, recorded, monitor in self.probes:
            expected = words(f"{monitor['stream']}.hex")
            for i, (data, cycle) in enumerate(recorded):
                place = i % len(expected)
                if differs(monitor, i, data, expected[place]):
                    self.diverge(test, monitor, place, data, expected[place], cycle)

    @staticmethod
    def diverge(test: str, port, beat: int, actual: int, expected: int, cycle: int) -> None:
        """Records the place of the first difference (layer, frame, element, cycle), and raises."""
        bits, lanes, beats = port["bits"], port["lanes"], port["beats"]
        lane = next(n for n in range(10**9) if ((actual ^ expected) >> (n * bits)) & ((1 << bits) - 1))

        def code(word: int) -> int:
            value = (word >> (lane * bits)) & ((1 << bits) - 1)
            return value - (1 << bits) if port["signed"] and value >> (bits - 1) else value

        part = -(-port["group"] // lanes)
        position = beat % beats // part * port["group"] + beat % part * lanes + lane
        order = [] if port["order"] is None else CONFIG["orders"][port["order"]]
        divergence = {
            "test": test,
            "layer": port["layer"],
            "frame": beat // beats,
            "beat": beat % beats,
            "element": order[position] if position < len(order) else position,
            "channel": position % port["channels"],
            "cycle": cycle,
            "expected": code(expected),
            "actual": code(actual),
        }
        record("first_divergence", RESULTS.get("first_divergence", divergence))
        raise AssertionError("first divergence: " + ", ".join(f"{key} {value}" for key, value in divergence.items()))


def on_time(sent, received) -> None:
    """Raises if a word without handshake did not leave exactly CONFIG["latency"] cycles after it came."""
    expected = [cycle + CONFIG["latency"] for cycle in sent][: len(received)]
    late = next((n for n, pair in enumerate(zip(received, expected, strict=True)) if pair[0] != pair[1]), None)
    assert late is None, f"word {late} leaves in cycle {received[late]}, not in {expected[late]}"


@cocotb.test()
async def full_rate(dut):
    """Successive frames without stalls: values, and the cycle in which each frame ends."""
    core, beats, frames = Core(dut), frames_of(INPUTS), available_frames(10**9)
    for port in (*INPUTS, *OUTPUTS):
        bits = len(pins(dut, port)[2])
        assert bits == port["tdata"], f"{port['port']} has {bits} bits, not {port['tdata']}"
    await core.start()
    core.test, core.end = "full_rate", UNTIL
    received, first, times = await core.stream(beats, frames)
    for port, port_data in zip(OUTPUTS, received, strict=True):
        assert not padding(port, port_data), f"the padding of {port['port']}_tdata is not zero"
    lasts = [port_data[port["words"] - 1 :: port["words"]] for port, port_data in zip(OUTPUTS, times, strict=True)]
    # Some of several outputs may have sent beats of an incomplete frame.
    ends = [max(last) for last in zip(*lasts, strict=False)]
    record("full_rate.frames", len(ends))
    record("ends", [end - first for end in ends])
    record("latency", ends[0] - first)
    if len(ends) > 3:
        record("interval", max(ends[k] - ends[k - 1] for k in range(len(ends) * 3 // 4, len(ends))))
    core.compare("full_rate", received, times, frames_of(OUTPUTS))
    for port in INPUTS:
        assert error_of(dut, port) == 0, "frame_error after well-formed frames"


def error_pin(dut, port):
    """frame_error of an input port, 0 without handshake."""
    return Tied(0) if PLAIN else getattr(dut, f"frame_error{port['label']}")


def error_of(dut, port):
    """The value of frame_error of an input port."""
    return error_pin(dut, port).value


@cocotb.test()
async def random_stalls(dut):
    """Random idle cycles at the inputs and stalls at the outputs, independent at each port."""
    core, frames = Core(dut), available_frames(CONFIG["stall_frames"])
    beats, expected = frames_of(INPUTS, frames), frames_of(OUTPUTS, frames)
    core.test = "random_stalls"
    await core.start()
    for idle, stall in ((0.5, 0.0), (0.0, 0.6), (0.4, 0.4), *each_alone(0.1, 0.8)):
        await core.restart()
        received, _, times = await core.stream(beats, frames, at_random(random.Random(SEED), idle, stall))
        core.compare("random_stalls", received, times, expected)
        core.forget()


@cocotb.test()
async def long_stalls(dut):
    """Stalls and pauses longer than all buffers, until every stream was stalled and starved, if that is possible."""
    core, beats, expected = Core(dut), frames_of(INPUTS), frames_of(OUTPUTS)
    core.test = "long_stalls"
    await core.start()
    core.coverage = Coverage(dut)
    # Frames of one sequence cannot repeat.
    frames = available_frames(10**9) if STARTS_BY in ("register", "reset") else None
    received, _, times = await core.stream(beats, frames, pace=core.bursts(core.coverage))
    never = core.coverage.never
    record("coverage", {"streams": core.coverage.streams, **{f"never_{kind}": names for kind, names in never.items()}})
    core.compare("long_stalls", received, times, expected)


@cocotb.test()
async def reset_mid_frame(dut):
    """Reset while frames are in flight; the core then works as after power-up."""
    core, frames = Core(dut), available_frames(2)
    beats, few, expected = frames_of(INPUTS), frames_of(INPUTS, frames), frames_of(OUTPUTS, frames)
    core.test = "reset_mid_frame"
    await core.start()
    # Just before a frame is complete at the output, and at random times, so that every unit is interrupted. Every
    # second time there are stalls, so that buffers are full.
    rng, latency, interval = random.Random(SEED), CONFIG["latency"], CONFIG["interval"]
    points = [latency, latency + interval // 2, *(rng.randint(1, latency + 2 * interval) for _ in range(6))]
    for i, cycles in enumerate(points):
        stall = 0.3 if i % 2 else 0.0
        await core.stream(beats, 10**9, at_random(rng, stall, stall), stop_at=cycles)
        await core.pulse_reset()
        core.forget()
        received, _, times = await core.stream(few, frames)
        core.compare("reset_mid_frame", received, times, expected)
        core.forget()


@cocotb.test()
async def offers_in_reset(dut):
    """A beat that is offered in any cycle of a reset, or right after it, waits and becomes the first of a frame."""
    core, beats, expected = Core(dut), frames_of(INPUTS, 1), frames_of(OUTPUTS, 1)
    core.test = "offers_in_reset"
    await core.start()
    # From the second cycle of the reset on; for a large core only around its end.
    small = CONFIG["latency"] < 2000
    for cycles in range(1 if small else RESET_CYCLES - 1, RESET_CYCLES + (4 if small else 2)):
        cocotb.start_soon(core.hold_reset(RESET_CYCLES))
        for _ in range(cycles):
            await RisingEdge(core.clk)
        received, _, times = await core.stream(beats, 1)
        core.compare("offers_in_reset", received, times, expected)
        core.forget()
        for port in INPUTS:
            assert error_of(dut, port) == 0, f"frame_error after a beat offered {cycles} cycles after reset began"


@cocotb.test()
async def words_in_reset(dut):
    """Without handshake: words that come during a reset, or in the cycle after it, are lost; the next one counts."""
    core, beats, expected, port = Core(dut), frames_of(INPUTS)[0], frames_of(OUTPUTS)[0], OUTPUTS[0]
    core.test = "words_in_reset"
    await core.start()
    (valid, _, data, _), (out_valid, _, out_data, _) = pins(dut, INPUTS[0]), pins(dut, port)
    cocotb.start_soon(core.hold_reset(RESET_CYCLES))
    valid.value, first = 1, RESET_CYCLES + 1 + CONFIG["latency"]
    for cycle in range(first + min(len(beats), 20)):
        data.value = beats[cycle % len(beats)]
        await RisingEdge(core.clk)
        assert cycle < 2 or (out_valid.value == 1) == (cycle >= first), f"out_valid, {cycle} cycles after reset began"
        right = expected[(cycle - CONFIG["latency"]) % len(beats)]
        assert cycle < first or not differs(port, 0, int(out_data.value), right), (
            f"out_data, {cycle - first} words later"
        )


@cocotb.test()
async def frame_errors(dut):
    """tlast early, late and missing: frame_error stays set from the wrong beat to reset, and beats are counted as
    before."""
    core = Core(dut)
    core.test = "frame_errors"
    await core.start()
    for number in range(len(INPUTS)):
        await wrong_lasts(core, number)
    received, _, times = await core.stream(frames_of(INPUTS, 1), 1)
    core.compare("frame_errors", received, times, frames_of(OUTPUTS, 1))
    for port in INPUTS:
        assert error_of(dut, port) == 0, "frame_error after reset and a well-formed frame"


async def wrong_lasts(core, number):
    """tlast of one input port is wrong, tlast of all others is right."""
    beats, expected, frame = frames_of(INPUTS, 2), frames_of(OUTPUTS, 2), INPUTS[number]["words"]
    count = len(beats[number]) // frame
    beats = [port_beats[: count * port["words"]] for port, port_beats in zip(INPUTS, beats, strict=True)]
    end, middle = frame - 1, (frame - 1) // 2
    # Beats whose tlast is wrong: missing; too early, in addition; moved forward; moved back.
    for wrong in [{end}] + ([{middle}, {middle, end}, {end, frame}] if frame > 1 else []):
        lasts = [[(i + 1) % port["words"] == 0 for i in range(2 * port["words"])] for port in INPUTS]
        lasts[number] = [last != (i in wrong) for i, last in enumerate(lasts[number])]
        all_frames = wrong == {end}
        received, _, times = await core.stream(beats, count if all_frames else 0, lasts=lasts)
        if all_frames:
            core.compare("frame_errors", received, times, expected)
        for n, port in enumerate(INPUTS):
            error = error_of(core.dut, port)
            assert error == int(n == number), f"frame_error is {error}, with tlast wrong at {sorted(wrong)} of {number}"
        await core.pulse_reset()
        core.forget()
        for port in INPUTS:
            assert error_of(core.dut, port) == 0, "frame_error survived reset"


@cocotb.test()
async def missing_bytes(dut):
    """A byte of an element that is not kept is a frame_error; a kept byte outside the elements is none."""
    core, beats, expected = Core(dut), frames_of(INPUTS, 1), frames_of(OUTPUTS, 1)
    await core.start()
    for number, port in enumerate(INPUTS):
        frame = port["words"]
        right = [keep(port, k == frame - 1) for k in range(frame)]
        ends = [
            (place, end) for place in sorted({0, frame // 2, frame - 1}) for end in (0, right[place].bit_length() - 1)
        ]
        for place, byte in dict.fromkeys(ends):
            keeps = list(right)
            keeps[place] ^= 1 << byte
            keeps_by_port = [keeps if n == number else None for n in range(len(INPUTS))]
            received, _, times = await core.stream(beats, 1, keeps=keeps_by_port)
            core.compare("missing_bytes", received, times, expected)
            for n, checked_port in enumerate(INPUTS):
                assert error_of(dut, checked_port) == int(n == number), (
                    f"frame_error, where word {place} lacks byte {byte}"
                )
            await core.pulse_reset()
            core.forget()
    keeps = [[(1 << port["tdata"] // 8) - 1] * port["words"] for port in INPUTS]
    received, _, times = await core.stream(beats, 1, keeps=keeps)
    core.compare("missing_bytes", received, times, expected)
    for port in INPUTS:
        assert error_of(dut, port) == 0, "frame_error, though all bytes are kept"


@cocotb.test()
async def control_port(dut):
    """The port for control and status: version, model, counters of frames and errors, and rejected accesses."""
    core, beats, sizes = Core(dut), frames_of(INPUTS), [port["words"] for port in INPUTS]
    core.probes = []
    await core.start()

    async def counters():
        for _ in range(4):
            await RisingEdge(core.clk)
        answers = [await core.read(address, wait=address % 3, port="s_axil_ctrl") for address in (12, 16)]
        assert all(response == 0 for response, _ in answers)
        return [value for _, value in answers]

    version, model = CONFIG["control"]
    assert await core.read(4, port="s_axil_ctrl") == [0, version], "VERSION"
    assert await core.read(8, port="s_axil_ctrl") == [0, model], "MODEL"
    for address in (4, 8, 12, 16, 20):
        await core.write(address, 1, response=2, port="s_axil_ctrl")
    assert await core.read(20, port="s_axil_ctrl") == [2, 0], "an address beyond the last"
    assert await counters() == [0, 0], "counters after reset"
    frames = available_frames(2)
    await core.stream([port_beats[: frames * size] for port_beats, size in zip(beats, sizes, strict=True)], frames)
    assert await counters() == [frames, 0], "counters after well-formed frames"
    # At each port in turn: no tlast; tlast too early; tlast too early and again at the end.
    sent_beats = [(port_beats * 3)[: 3 * size] for port_beats, size in zip(beats, sizes, strict=True)]
    for number, frame in enumerate(sizes):
        early = [k == 0 and frame > 1 for k in range(frame)]
        lasts = [False] * frame + early + [(k == frame - 1 and frame > 1) or first for k, first in enumerate(early)]
        await core.stream(sent_beats, 3, lasts=[lasts if n == number else None for n in range(len(INPUTS))])
        text = f"counters after three frames without the right tlast at {INPUTS[number]['port']}"
        assert await counters() == [frames + 3 * (number + 1), 3 * (number + 1)], text
    await core.write(0, 3, port="s_axil_ctrl")
    held = 3 if STARTS_BY == "register" else 1
    assert await core.read(0, port="s_axil_ctrl") == [0, held], "CONTROL"
    assert await counters() == [0, 0], "counters while CONTROL is 1"
    if held == 3:
        await core.write(0, 1, port="s_axil_ctrl")
        assert await core.read(0, port="s_axil_ctrl") == [0, 3], "a write of 0 must not clear bit 1 of CONTROL"
    await core.stream(frames_of(INPUTS, 1), 1)
    assert await core.read(0, port="s_axil_ctrl") == [0, 1], "CONTROL after a frame"
    assert await counters() == [0, 0], "counters while CONTROL is 1"
    await core.write(0, 0, port="s_axil_ctrl")
    await core.stream(frames_of(INPUTS, 1), 1)
    assert await counters() == [1, 0], "counters after CONTROL"
    await core.pulse_reset()
    assert await counters() == [0, 0], "counters after reset"


@cocotb.test()
async def other_weights(dut):
    """Other weights over AXI4-Lite, the first access during a reset; then the weights of the files; and rejected
    accesses."""
    core, frames = Core(dut), available_frames(CONFIG["stall_frames"])
    beats = frames_of(INPUTS, frames)
    # The values between the layers differ from the listed ones.
    core.probes = []
    await core.start()
    count, unknown = CONFIG["weights"], CONFIG["weights"]
    assert await core.read(8, wait=2) == [0, 0x48470000 + count - 1], "INFO"
    assert await core.read(4) == [2, 0], "DATA cannot be read"
    await core.write(4, 1, response=2)  # no unit is chosen
    for name, prefix in (("other.hex", "other_"), ("own.hex", "")):
        loads = writes(name)
        cocotb.start_soon(core.hold_reset(RESET_CYCLES))
        await RisingEdge(core.clk)
        await RisingEdge(core.clk)
        await core.write(*loads[0])
        assert await core.read(0, wait=1) == [0, loads[0][1]], "UNIT"
        for number, (address, data) in enumerate(loads[1:]):
            await core.write(address, data, wait=number % 3, late=(None, "aw", "w")[number % 5 % 3])
        # Rejected writes change nothing.
        await core.write(0, 0, strobe=7, response=2)
        await core.write(0, unknown, response=2)
        await core.write(12, 0, response=2)
        received, _, times = await core.stream(beats, frames)
        core.compare("other_weights", received, times, frames_of(OUTPUTS, frames, prefix))


@cocotb.test()
async def capture(dut):
    """Writes the output beats to <vectors>/output.hex, or a file per port; with monitors, each layer's to
    <stream>.got.hex."""
    core, beats = Core(dut), frames_of(INPUTS)
    await core.start()
    received, _, _ = await core.stream(beats, available_frames(10**9))
    for port, port_data in zip(OUTPUTS, received, strict=True):
        (VECTORS / port["captured"]).write_text("".join(f"{word:x}\n" for word in port_data))
    for *_, recorded, monitor in core.probes:
        (VECTORS / f"{monitor['stream']}.got.hex").write_text("".join(f"{word:x}\n" for word, _ in recorded))
