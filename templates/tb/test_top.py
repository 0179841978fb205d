"""cocotb testbench of a generated core: streams beats in, compares the beats that come out.

Run it with run.py (or make). Beats are read from <vectors>/input.hex and <vectors>/expected.hex,
one hexadecimal word a line; the interface is described in config.json. Results are written as
JSON. Add tests of your own below: `Core` does the handshakes.

Of a core with loadable weights <vectors>/load.hex, if it is there, is written first: a line is a byte
address and the data of a write over AXI4-Lite. other_weights writes other.hex, with which the core has to
give other_expected.hex, and own.hex, the weights of the memory files.

Environment: HLSGEN_TB (folder of config.json), HLSGEN_VECTORS, HLSGEN_RESULT, HLSGEN_SEED,
HLSGEN_MONITOR=1 (compare the streams between the layers too), HLSGEN_UNTIL (of time.monotonic(): from then
on full_rate sends no further frame), HLSGEN_PROGRESS (a file that takes the name of the test and the frames that it has taken).
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
RESULTS: dict[str, object] = {}
UNTIL = float(os.environ.get("HLSGEN_UNTIL", "inf"))
PROGRESS = os.environ.get("HLSGEN_PROGRESS")
#: Frames that full_rate sends at least: so many show the interval.
FEWEST = 4
#: Cycles of a reset.
RESET_CYCLES = 4


def words(name: str) -> list[int]:
    """The beats of a file in the vector folder."""
    return [int(line, 16) for line in (VECTORS / name).read_text().split()]


def writes(name: str) -> list[tuple[int, int]]:
    """Address and data of the writes of a file in the vector folder."""
    lines = (VECTORS / name).read_text().splitlines()
    return [(int(address, 16), int(data, 16)) for address, data in (line.split() for line in lines)]


def record(name: str, value: object) -> None:
    """Adds to the result file."""
    RESULTS[name] = value
    RESULT.write_text(json.dumps(RESULTS, indent=2) + "\n")


def differs(port, beat: int, actual: int, expected: int) -> bool:
    """Whether two words differ in the elements of a frame; the last beat of a group may hold fewer."""
    used = min(port["lanes"], port["group"] - beat % -(-port["group"] // port["lanes"]) * port["lanes"])
    return (actual ^ expected) & ((1 << used * port["bits"]) - 1) != 0


def beats_of(words):
    """The beats of the core in words of the output bus, with the number of the word in which each ends.

    A frame that is not complete gives the beats that are.
    """
    size, slot, per_frame = CONFIG["tdata"][1], 8 * CONFIG["bus"]["slot_bytes"], CONFIG["beats_out"]
    slots, parts = max(1, size // slot), max(1, slot // size)
    found = []
    for start in range(0, len(words), per_frame):
        frame = words[start : start + per_frame]
        for beat in range(min(CONFIG["output"]["beats"], len(frame) // parts * slots)):
            first = beat // slots * parts
            word = sum(part << (size * k) for k, part in enumerate(frame[first : first + parts]))
            found.append((word >> (beat % slots * slot) & ((1 << slot) - 1), start + first + parts - 1))
    return found


def padding(words) -> bool:
    """Whether a word of the output has bits that are not zero where there is no element."""
    port = CONFIG["output"]
    if "bus" not in CONFIG:
        return any(word >> port["bits"] * port["lanes"] for word in words)
    found, per_frame = beats_of(words), CONFIG["beats_out"]
    slots = max(1, CONFIG["tdata"][1] // (8 * CONFIG["bus"]["slot_bytes"]))
    used = (port["beats"] - 1) % slots + 1
    behind = any(word >> (used * 8 * CONFIG["bus"]["slot_bytes"]) for word in words[per_frame - 1 :: per_frame])
    return any(beat >> port["bits"] * port["lanes"] for beat, _ in found) or (slots > 1 and behind)


def keep(port: int, last: bool):
    """tkeep of a word: of the input (0) or of the output (1); None without tkeep."""
    if "keep" not in CONFIG:
        return None
    return (1 << (CONFIG["keep"][port] if last else CONFIG["tdata"][port] // 8)) - 1


def steady():
    """A pace: offers and takes in every cycle."""
    while True:
        yield True, True


def at_random(rng, idle: float, stall: float, cycles: int | None = None):
    """A pace: no beat is offered with probability `idle`, none taken with probability `stall`, in each cycle."""
    while cycles is None or cycles > 0:
        yield rng.random() >= idle, rng.random() >= stall
        cycles = None if cycles is None else cycles - 1


class Coverage:
    """Which streams have been seen stalled (valid && !ready) and starved (ready && !valid): ports and all inside."""

    def __init__(self, dut) -> None:
        self.open = {
            "port_in": (dut.s_axis_tvalid, dut.s_axis_tready),
            "port_out": (dut.m_axis_tvalid, dut.m_axis_tready),
        }
        self.open |= {s: (getattr(dut, f"{s}_valid"), getattr(dut, f"{s}_ready")) for s in CONFIG["streams"]}
        self.never = {"stalled": list(self.open), "starved": list(self.open)}
        self.streams = len(self.open)

    def look(self) -> None:
        """Takes the state of this cycle, of the streams of which something has not been seen."""
        for name, (valid, ready) in list(self.open.items()):
            is_valid, is_ready = valid.value == 1, ready.value == 1
            if is_valid == is_ready:
                continue
            never = self.never["stalled" if is_valid else "starved"]
            if name in never:
                never.remove(name)
                if not any(name in names for names in self.never.values()):
                    del self.open[name]


class Core:
    """The core under test and its two ports."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.clk = getattr(dut, CONFIG["clock"])
        self.reset = getattr(dut, CONFIG["reset"])
        self.cycle = self.sent = self.taken = 0
        self.test, self.told, self.end = "", 0.0, float("inf")
        self.coverage: Coverage | None = None
        self.probes = [
            (getattr(dut, f"{m['stream']}_data"), getattr(dut, f"{m['stream']}_valid"),
             getattr(dut, f"{m['stream']}_ready"), [], m)
            for m in (CONFIG["monitors"] if MONITOR else [])
        ]  # fmt: skip

    async def start(self) -> None:
        """Starts the clock and resets."""
        cocotb.start_soon(Clock(self.clk, 10, "ns").start())
        self.dut.s_axis_tvalid.value = 0
        self.dut.s_axis_tdata.value = 0
        self.dut.s_axis_tlast.value = 0
        if "keep" in CONFIG:
            self.dut.s_axis_tkeep.value = 0
        self.dut.m_axis_tready.value = 0
        for port, there in (("s_axil", CONFIG["weights"]), ("s_axil_ctrl", "control" in CONFIG)):
            for name in ("awaddr", "awvalid", "wdata", "wstrb", "wvalid", "bready", "araddr", "arvalid", "rready"):
                if there:
                    getattr(self.dut, f"{port}_{name}").value = 0
        await self.pulse_reset()
        load = VECTORS / "load.hex"
        for address, data in writes("load.hex") if CONFIG["weights"] and load.exists() else ():
            await self.write(address, data)

    async def write(self, address, data, strobe=15, response=0, wait=0, late=None, port="s_axil") -> None:
        """One write over AXI4-Lite. The response waits for so many cycles; `late`, "aw" or "w", comes as many later."""
        dut = self.dut
        for name, value in (("awaddr", address), ("wdata", data), ("wstrb", strobe)):
            getattr(dut, f"{port}_{name}").value = value
        open_ = {"aw", "w"}
        for cycle in range(100):
            for name in open_ if cycle >= wait else open_ - {late}:
                getattr(dut, f"{port}_{name}valid").value = 1
            getattr(dut, f"{port}_bready").value = 0
            await RisingEdge(self.clk)
            valid = {name for name in open_ if cycle >= wait or name != late}
            taken = {name for name in valid if getattr(dut, f"{port}_{name}ready").value == 1}
            for name in taken:
                getattr(dut, f"{port}_{name}valid").value = 0
            open_ -= taken
            if not open_:
                break
        found = await self.answer("b", wait, port)
        assert found[0] == response, f"write of {data:x} to {address:x}: response {found[0]}"

    async def read(self, address, wait=0, port="s_axil"):
        """One read over AXI4-Lite: response and data."""
        getattr(self.dut, f"{port}_araddr").value = address
        getattr(self.dut, f"{port}_arvalid").value = 1
        for _ in range(100):
            await RisingEdge(self.clk)
            if getattr(self.dut, f"{port}_arready").value == 1:
                break
        getattr(self.dut, f"{port}_arvalid").value = 0
        return await self.answer("r", wait, port)

    async def answer(self, channel, wait, port):
        """What a channel answers; it holds still for the cycles in which nobody takes it, and is taken once."""
        dut, names = self.dut, ("resp", "data") if channel == "r" else ("resp",)
        valid, ready = getattr(dut, f"{port}_{channel}valid"), getattr(dut, f"{port}_{channel}ready")
        seen = []
        ready.value = int(wait == 0)
        for _ in range(100 + wait):
            await RisingEdge(self.clk)
            if valid.value != 1:
                assert not seen, f"{port}_{channel}valid fell before it was taken"
                continue
            seen.append([int(getattr(dut, f"{port}_{channel}{name}").value) for name in names])
            assert seen[0] == seen[-1], f"the answer at {port}_{channel} has changed before it was taken"
            if len(seen) > wait:
                break
            ready.value = int(len(seen) == wait)
        else:
            raise AssertionError(f"no answer at {port}_{channel}")
        ready.value = 0
        await RisingEdge(self.clk)
        assert valid.value == 0, f"{port}_{channel}valid stays after it was taken"
        return seen[0]

    async def hold_reset(self, cycles) -> None:
        """Reset for so many cycles, whatever the ports do meanwhile."""
        self.reset.value = 0 if CONFIG["reset_active_low"] else 1
        for _ in range(cycles):
            await RisingEdge(self.clk)
        self.reset.value = 1 if CONFIG["reset_active_low"] else 0

    async def pulse_reset(self) -> None:
        """Reset for a few cycles, and some more in which no beat is offered."""
        self.dut.s_axis_tvalid.value = 0
        await self.hold_reset(RESET_CYCLES)
        await RisingEdge(self.clk)
        await RisingEdge(self.clk)

    async def stream(self, beats, count=None, pace=None, stop_at=None, lasts=None, keeps=None):
        """Sends `beats` and takes `count` beats; gives (data, first input cycle, output cycles).

        pace: yields, for each cycle, whether a beat is offered and whether one is taken; steady() if not given.
        When it ends, the rest goes at full rate. Without `count` the beats are sent again and again until then,
        and the last frame is completed. stop_at: leave after so many cycles. lasts: tlast of the beats, which
        frame_error must judge; keeps: tkeep of them. The output must hold still while it is stalled.
        """
        dut, clk, pace = self.dut, self.clk, pace or steady()
        s_ready, m_valid, m_data, m_last = dut.s_axis_tready, dut.m_axis_tvalid, dut.m_axis_tdata, dut.m_axis_tlast
        s_valid, s_data, s_last, m_ready = dut.s_axis_tvalid, dut.s_axis_tdata, dut.s_axis_tlast, dut.m_axis_tready
        per_frame, out_frame = CONFIG["beats_in"], CONFIG["beats_out"]
        keep_in, keep_out = (getattr(dut, f"{port}_axis_tkeep", None) for port in "sm")
        patience = 20 * (CONFIG["latency"] + CONFIG["interval"]) + 2000
        got, times, first, wrong = [], [], None, False
        endless, total, stride = count is None, len(beats), CONFIG["coverage_stride"]
        sent, offered, ready, quiet, held, start = 0, False, False, 0, None, self.cycle
        while endless or len(got) < count or (stop_at is None and (offered or sent < total)):
            if lasts is not None:
                assert dut.frame_error.value == wrong, f"frame_error is not {int(wrong)} after {sent} beats"
            if offered and s_ready.value == 1:
                first = self.cycle if first is None else first
                wrong |= lasts is not None and lasts[sent] != ((sent + 1) % per_frame == 0)
                sent, offered, quiet = sent + 1, False, 0
            valid = m_valid.value == 1
            if valid:
                data = int(m_data.value)
                assert held is None or held == data, f"tdata changed during a stall in cycle {self.cycle}"
                held = None if ready else data
            if valid and ready:
                last = (len(got) + 1) % out_frame == 0
                assert (m_last.value == 1) == last, f"tlast wrong at output beat {len(got)}"
                wanted = keep(1, last)
                assert wanted is None or keep_out.value == wanted, f"tkeep wrong at output beat {len(got)}"
                got.append(data)
                times.append(self.cycle)
                quiet = 0
            elif not valid:
                assert held is None, f"tvalid fell during a stall in cycle {self.cycle}"
            if self.probes:
                self.probe()
            if self.coverage and self.cycle % stride == 0:
                self.coverage.look()
            if stop_at is not None and self.cycle - start >= stop_at:
                break
            if self.cycle % 64 == 0 and self.late(len(got)):
                total = min(total, max(FEWEST, -(-(sent + offered) // per_frame)) * per_frame)
                count, self.end = total // per_frame * out_frame, float("inf")
            quiet += 1
            assert quiet < patience, f"no beat moved for {quiet} cycles (sent {sent}, got {len(got)})"
            self.sent, self.taken = sent, len(got)
            offer, ready = next(pace, (None, True))
            if offer is None:
                offer, pace = True, steady()
                if endless:
                    endless, total = False, -(-(sent + offered) // per_frame) * per_frame
                    count = total // per_frame * out_frame
            if not offered and offer and (endless or sent < total):
                s_data.value = beats[sent % len(beats)]
                s_last.value = lasts[sent] if lasts is not None else (sent + 1) % per_frame == 0
                if "keep" in CONFIG:
                    keep_in.value = keeps[sent] if keeps is not None else keep(0, (sent + 1) % per_frame == 0)
                s_valid.value = 1
                offered = True
            elif not offered:
                s_valid.value = 0
            m_ready.value = 1 if ready else 0
            await RisingEdge(clk)
            self.cycle += 1
        s_valid.value = 0
        m_ready.value = 0
        return got, first, times

    def late(self, got: int) -> bool:
        """Whether the time for more frames is up. Tells, once a second, how many came."""
        now = time.monotonic()
        if PROGRESS and self.test and now > self.told + 1:
            self.told = now
            Path(PROGRESS).write_text(f"{self.test} {got // CONFIG['beats_out']}\n")
        return now > self.end

    def bursts(self, coverage: Coverage):
        """A pace: fills the core until nothing moves, lets it run, empties it, goes on at random, and again.

        Until every stream has been seen stalled and starved, and at least twice; at most
        CONFIG["burst_rounds"] times, and CONFIG["burst_cycles"] cycles if the core is large.
        """
        rng, settled = random.Random(SEED + 1), CONFIG["latency"] + CONFIG["interval"]
        end = self.cycle + CONFIG["burst_cycles"]
        for number in range(CONFIG["burst_rounds"]):
            yield from self.until_still(True, False, settled, end)
            coverage.look()
            yield from at_random(rng, 0, 0, rng.randint(1, settled))
            yield from self.until_still(False, True, settled, end)
            coverage.look()
            yield from at_random(rng, rng.choice((0, 0.2, 0.8)), rng.choice((0.1, 0.5, 0.9)), rng.randint(1, settled))
            if self.cycle >= end or (number and not coverage.open):
                return

    def until_still(self, offer: bool, take: bool, settled: int, end: int):
        """A pace: the same until no beat has passed a port for `settled` cycles, but not beyond the cycle `end`."""
        quiet, before, start = 0, None, self.cycle
        # Every stream holds less than four frames.
        limit = 20 * settled + 2000 + 4 * CONFIG["interval"] * len(CONFIG["streams"])
        while quiet < settled and self.cycle < end:
            yield offer, take
            now = (self.sent, self.taken)
            quiet, before = quiet + 1 if now == before else 0, now
            port = "output was stalled" if offer else "input was idle"
            assert self.cycle - start < limit, f"beats still move after {limit} cycles in which the {port}"

    def forget(self) -> None:
        """Takes what comes between the layers for the first frame again."""
        for probe in self.probes:
            probe[3].clear()

    def probe(self) -> None:
        """Takes what moves between the layers in this cycle."""
        for data, valid, ready, taken, _ in self.probes:
            if valid.value == 1 and ready.value == 1:
                taken.append((int(data.value), self.cycle))

    def compare(self, test: str, got, times, expected) -> None:
        """Records and raises at the first differing beat. `expected` again and again, if more came out."""
        self.compare_layers(test)
        port = CONFIG["output"]
        if "bus" in CONFIG:
            found = beats_of(got)
            got, times, expected = (
                [x for x, _ in found],
                [times[k] for _, k in found],
                [x for x, _ in beats_of(expected)],
            )
        wrong = [i for i, word in enumerate(got) if differs(port, i, word, expected[i % len(expected)])]
        record(f"{test}.mismatches", len(wrong))
        if wrong:
            at = wrong[0] % len(expected)
            self.diverge(test, port, at, got[wrong[0]], expected[at], times[wrong[0]])

    def compare_layers(self, test: str) -> None:
        for *_, taken, monitor in self.probes:
            expected = words(f"{monitor['stream']}.hex")
            for i, (data, cycle) in enumerate(taken):
                at = i % len(expected)
                if differs(monitor, i, data, expected[at]):
                    self.diverge(test, monitor, at, data, expected[at], cycle)

    @staticmethod
    def diverge(test: str, port, beat: int, actual: int, expected: int, cycle: int) -> None:
        """Says where the first difference is: layer, frame, element, cycle."""
        bits, lanes, beats = port["bits"], port["lanes"], port["beats"]
        lane = next(n for n in range(10**9) if ((actual ^ expected) >> (n * bits)) & ((1 << bits) - 1))

        def code(word: int) -> int:
            value = (word >> (lane * bits)) & ((1 << bits) - 1)
            return value - (1 << bits) if port["signed"] and value >> (bits - 1) else value

        part = -(-port["group"] // lanes)
        position = beat % beats // part * port["group"] + beat % part * lanes + lane
        order = [] if port["order"] is None else CONFIG["orders"][port["order"]]
        where = {
            "test": test, "layer": port["layer"], "frame": beat // beats, "beat": beat % beats,
            "element": order[position] if position < len(order) else position,
            "channel": position % port["channels"], "cycle": cycle, "expected": code(expected), "actual": code(actual),
        }  # fmt: skip
        record("first_divergence", RESULTS.get("first_divergence", where))
        raise AssertionError("first divergence: " + ", ".join(f"{key} {value}" for key, value in where.items()))


@cocotb.test()
async def full_rate(dut):
    """Frames back to back, no stalls: values, and the cycle in which each frame ends."""
    core, beats, expected = Core(dut), words("input.hex"), words("expected.hex")
    ports = [len(dut.s_axis_tdata), len(dut.m_axis_tdata)]
    assert ports == CONFIG["tdata"], f"the ports have {ports} bits, not {CONFIG['tdata']}"
    await core.start()
    core.test, core.end = "full_rate", UNTIL
    got, first, times = await core.stream(beats, len(expected))
    expected = expected[: len(got)]
    assert not padding(got), "the padding of m_axis_tdata is not zero"
    ends = times[CONFIG["beats_out"] - 1 :: CONFIG["beats_out"]]
    record("full_rate.frames", len(ends))
    record("ends", [end - first for end in ends])
    record("latency", ends[0] - first)
    if len(ends) > 3:
        record("interval", max(ends[k] - ends[k - 1] for k in range(len(ends) * 3 // 4, len(ends))))
    core.compare("full_rate", got, times, expected)
    assert dut.frame_error.value == 0, "frame_error after well-formed frames"


@cocotb.test()
async def random_stalls(dut):
    """Random idle cycles at the input and stalls at the output."""
    core, beats, expected = Core(dut), words("input.hex"), words("expected.hex")
    frames = min(len(expected) // CONFIG["beats_out"], CONFIG["stall_frames"])
    beats, expected = beats[: frames * CONFIG["beats_in"]], expected[: frames * CONFIG["beats_out"]]
    core.test = "random_stalls"
    await core.start()
    for idle, stall in ((0.5, 0.0), (0.0, 0.6), (0.4, 0.4)):
        got, _, times = await core.stream(beats, len(expected), at_random(random.Random(SEED), idle, stall))
        core.compare("random_stalls", got, times, expected)
        core.forget()


@cocotb.test()
async def long_stalls(dut):
    """Stalls and pauses longer than all buffers, until every stream has been seen stalled and starved, if it can be."""
    core, beats, expected = Core(dut), words("input.hex"), words("expected.hex")
    core.test = "long_stalls"
    await core.start()
    core.coverage = Coverage(dut)
    got, _, times = await core.stream(beats, pace=core.bursts(core.coverage))
    never = core.coverage.never
    record("coverage", {"streams": core.coverage.streams, **{f"never_{kind}": names for kind, names in never.items()}})
    core.compare("long_stalls", got, times, expected)


@cocotb.test()
async def reset_mid_frame(dut):
    """Reset while frames are in flight; what follows is as if nothing had been."""
    core, beats, expected = Core(dut), words("input.hex"), words("expected.hex")
    frames = min(len(expected) // CONFIG["beats_out"], 2)
    count = frames * CONFIG["beats_out"]
    core.test = "reset_mid_frame"
    await core.start()
    # Just before a frame is complete at the output, and anywhere else, so that every unit is caught
    # in the middle of something; every other time with stalls, so that full buffers are too.
    rng, latency, interval = random.Random(SEED), CONFIG["latency"], CONFIG["interval"]
    points = [latency, latency + interval // 2, *(rng.randint(1, latency + 2 * interval) for _ in range(6))]
    for i, cycles in enumerate(points):
        stall = 0.3 if i % 2 else 0.0
        await core.stream(beats, 10**9, at_random(rng, stall, stall), stop_at=cycles)
        await core.pulse_reset()
        core.forget()
        got, _, times = await core.stream(beats[: frames * CONFIG["beats_in"]], count)
        core.compare("reset_mid_frame", got, times, expected[:count])
        core.forget()


@cocotb.test()
async def offers_in_reset(dut):
    """A beat that is offered in any cycle of a reset, or right after it, waits and is the first of a frame."""
    core, beats, expected = Core(dut), words("input.hex"), words("expected.hex")
    core.test = "offers_in_reset"
    await core.start()
    # From the second cycle of the reset on; of a large core around its end only.
    small = CONFIG["latency"] < 2000
    for cycles in range(1 if small else RESET_CYCLES - 1, RESET_CYCLES + (4 if small else 2)):
        cocotb.start_soon(core.hold_reset(RESET_CYCLES))
        for _ in range(cycles):
            await RisingEdge(core.clk)
        got, _, times = await core.stream(beats[: CONFIG["beats_in"]], CONFIG["beats_out"])
        core.compare("offers_in_reset", got, times, expected)
        core.forget()
        assert dut.frame_error.value == 0, f"frame_error after a beat offered {cycles} cycles after reset began"


@cocotb.test()
async def frame_errors(dut):
    """tlast early, late and missing: frame_error stays from the wrong beat to reset, and beats are counted all the same."""
    core, beats, expected, frame = Core(dut), words("input.hex"), words("expected.hex"), CONFIG["beats_in"]
    core.test = "frame_errors"
    await core.start()
    beats, expected = beats[: 2 * frame], expected[: 2 * CONFIG["beats_out"]]
    end, middle = frame - 1, (frame - 1) // 2
    # Beats whose tlast is wrong: missing; too early, in addition; moved forward; moved back.
    for wrong in [{end}] + ([{middle}, {middle, end}, {end, frame}] if frame > 1 else []):
        lasts = [((i + 1) % frame == 0) != (i in wrong) for i in range(2 * frame)]
        whole = wrong == {end}
        got, _, times = await core.stream(beats, len(expected) if whole else 0, lasts=lasts)
        if whole:
            core.compare("frame_errors", got, times, expected)
        assert dut.frame_error.value == 1, f"no frame_error, with tlast wrong at {sorted(wrong)}"
        await core.pulse_reset()
        core.forget()
        assert dut.frame_error.value == 0, "frame_error survived reset"
    got, _, times = await core.stream(beats[:frame], CONFIG["beats_out"])
    core.compare("frame_errors", got, times, expected)
    assert dut.frame_error.value == 0, "frame_error after reset and a well-formed frame"


@cocotb.test()
async def missing_bytes(dut):
    """A byte that counts and is not kept is a frame_error; one that is kept and does not count is none."""
    core, beats, expected, frame = Core(dut), words("input.hex"), words("expected.hex"), CONFIG["beats_in"]
    await core.start()
    expected, size = expected[: CONFIG["beats_out"]], CONFIG["tdata"][0] // 8
    right = [keep(0, k == frame - 1) for k in range(frame)]
    ends = [(place, end) for place in sorted({0, frame // 2, frame - 1}) for end in (0, right[place].bit_length() - 1)]
    for place, byte in dict.fromkeys(ends):
        keeps = list(right)
        keeps[place] ^= 1 << byte
        got, _, times = await core.stream(beats[:frame], len(expected), keeps=keeps)
        core.compare("missing_bytes", got, times, expected)
        assert dut.frame_error.value == 1, f"no frame_error, though word {place} lacks byte {byte}"
        await core.pulse_reset()
        core.forget()
    got, _, times = await core.stream(beats[:frame], len(expected), keeps=[(1 << size) - 1] * frame)
    core.compare("missing_bytes", got, times, expected)
    assert dut.frame_error.value == 0, "frame_error, though all bytes are kept"


@cocotb.test()
async def control_port(dut):
    """Version, model, counters of frames and errors, and what is refused, at the port for control and status."""
    core, beats, frame, made = Core(dut), words("input.hex"), CONFIG["beats_in"], CONFIG["beats_out"]
    core.probes = []
    await core.start()

    async def counters():
        for _ in range(4):
            await RisingEdge(core.clk)
        found = [await core.read(address, wait=address % 3, port="s_axil_ctrl") for address in (12, 16)]
        assert all(response == 0 for response, _ in found)
        return [value for _, value in found]

    version, model = CONFIG["control"]
    assert await core.read(4, port="s_axil_ctrl") == [0, version], "VERSION"
    assert await core.read(8, port="s_axil_ctrl") == [0, model], "MODEL"
    for address in (4, 8, 12, 16, 20):
        await core.write(address, 1, response=2, port="s_axil_ctrl")
    assert await core.read(20, port="s_axil_ctrl") == [2, 0], "an address beyond the last"
    assert await counters() == [0, 0], "counters after reset"
    frames = min(len(beats) // frame, 2)
    await core.stream(beats[: frames * frame], frames * made)
    assert await counters() == [frames, 0], "counters after well-formed frames"
    # Without tlast; too early; too early and again at the end.
    early = [k == 0 and frame > 1 for k in range(frame)]
    lasts = [False] * frame + early + [(k == frame - 1 and frame > 1) or first for k, first in enumerate(early)]
    await core.stream((beats * 3)[: 3 * frame], 3 * made, lasts=lasts)
    assert await counters() == [frames + 3, 3], "counters after three frames without the right tlast"
    await core.write(0, 3, port="s_axil_ctrl")
    assert await core.read(0, port="s_axil_ctrl") == [0, 1], "CONTROL"
    assert await counters() == [0, 0], "counters while CONTROL is 1"
    await core.stream(beats[:frame], made)
    assert await counters() == [0, 0], "counters while CONTROL is 1"
    await core.write(0, 0, port="s_axil_ctrl")
    await core.stream(beats[:frame], made)
    assert await counters() == [1, 0], "counters after CONTROL"
    await core.pulse_reset()
    assert await counters() == [0, 0], "counters after reset"


@cocotb.test()
async def other_weights(dut):
    """Other weights over AXI4-Lite, the first access during a reset; then those of the files; and what is refused."""
    core, beats = Core(dut), words("input.hex")
    frames = min(len(beats) // CONFIG["beats_in"], CONFIG["stall_frames"])
    # Between the layers are other values than those that are listed.
    core.probes = []
    await core.start()
    count, unknown = CONFIG["weights"], CONFIG["weights"]
    assert await core.read(8, wait=2) == [0, 0x48470000 + count - 1], "INFO"
    assert await core.read(4) == [2, 0], "DATA cannot be read"
    await core.write(4, 1, response=2)  # no unit is chosen
    for name, wanted in (("other.hex", "other_expected.hex"), ("own.hex", "expected.hex")):
        loads = writes(name)
        cocotb.start_soon(core.hold_reset(RESET_CYCLES))
        await RisingEdge(core.clk)
        await RisingEdge(core.clk)
        await core.write(*loads[0])
        assert await core.read(0, wait=1) == [0, loads[0][1]], "UNIT"
        for number, (address, data) in enumerate(loads[1:]):
            await core.write(address, data, wait=number % 3, late=(None, "aw", "w")[number % 5 % 3])
        # None of these changes anything.
        await core.write(0, 0, strobe=7, response=2)
        await core.write(0, unknown, response=2)
        await core.write(12, 0, response=2)
        expected = words(wanted)[: frames * CONFIG["beats_out"]]
        got, _, times = await core.stream(beats[: frames * CONFIG["beats_in"]], len(expected))
        core.compare("other_weights", got, times, expected)


@cocotb.test()
async def capture(dut):
    """Writes the output beats to <vectors>/output.hex, with monitors those of every layer to <stream>.got.hex."""
    core, beats = Core(dut), words("input.hex")
    frames = len(beats) // CONFIG["beats_in"]
    await core.start()
    got, _, _ = await core.stream(beats, frames * CONFIG["beats_out"])
    (VECTORS / "output.hex").write_text("".join(f"{word:x}\n" for word in got))
    for *_, taken, monitor in core.probes:
        (VECTORS / f"{monitor['stream']}.got.hex").write_text("".join(f"{word:x}\n" for word, _ in taken))
