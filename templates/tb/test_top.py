"""cocotb testbench of a generated core: streams beats in, compares the beats that come out.

Run it with run.py (or make). Beats are read from <vectors>/input.hex and <vectors>/expected.hex,
one hexadecimal word a line; the interface is described in config.json. Results are written as
JSON. Add tests of your own below: `Core` does the handshakes.

Of a core with loadable weights <vectors>/load.hex, if it is there, is written first: a line is a byte
address and the data of a write over AXI4-Lite.

Environment: HLSGEN_TB (folder of config.json), HLSGEN_VECTORS, HLSGEN_RESULT, HLSGEN_SEED,
HLSGEN_MONITOR=1 (compare the streams between the layers too).
"""

from __future__ import annotations

import json
import os
import random
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


def words(name: str) -> list[int]:
    """The beats of a file in the vector folder."""
    return [int(line, 16) for line in (VECTORS / name).read_text().split()]


def record(name: str, value: object) -> None:
    """Adds to the result file."""
    RESULTS[name] = value
    RESULT.write_text(json.dumps(RESULTS, indent=2) + "\n")


def differs(port, beat: int, actual: int, expected: int) -> bool:
    """Whether two words differ in the elements of a frame; the last beat of a group may hold fewer."""
    used = min(port["lanes"], port["group"] - beat % -(-port["group"] // port["lanes"]) * port["lanes"])
    return (actual ^ expected) & ((1 << used * port["bits"]) - 1) != 0


class Core:
    """The core under test and its two ports."""

    def __init__(self, dut) -> None:
        self.dut = dut
        self.clk = dut.clk
        self.reset = getattr(dut, CONFIG["reset"])
        self.cycle = 0
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
        self.dut.m_axis_tready.value = 0
        if CONFIG["weights"]:
            for name in ("awaddr", "awvalid", "wdata", "wstrb", "wvalid", "bready", "araddr", "arvalid", "rready"):
                getattr(self.dut, f"s_axil_{name}").value = 0
        await self.pulse_reset()
        load = VECTORS / "load.hex"
        for line in load.read_text().splitlines() if CONFIG["weights"] and load.exists() else ():
            await self.write(*(int(word, 16) for word in line.split()))

    async def write(self, address, data) -> None:
        """One write over AXI4-Lite."""
        dut = self.dut
        for name, value in (("awaddr", address), ("awvalid", 1), ("wdata", data), ("wstrb", 15), ("wvalid", 1)):
            getattr(dut, f"s_axil_{name}").value = value
        dut.s_axil_bready.value = 1
        open_ = {"aw", "w"}
        for _ in range(100):
            taken = {name for name in open_ if getattr(dut, f"s_axil_{name}ready").value == 1}
            answered = not open_ and dut.s_axil_bvalid.value == 1
            await RisingEdge(self.clk)
            for name in taken:
                getattr(dut, f"s_axil_{name}valid").value = 0
            open_ -= taken
            if answered:
                assert dut.s_axil_bresp.value == 0, f"write of {data:x} to {address:x} refused"
                dut.s_axil_bready.value = 0
                return
        raise AssertionError(f"no response to the write of {data:x} to {address:x}")

    async def pulse_reset(self) -> None:
        """Holds reset for a few cycles."""
        self.reset.value = 0 if CONFIG["reset_active_low"] else 1
        self.dut.s_axis_tvalid.value = 0
        for _ in range(4):
            await RisingEdge(self.clk)
        self.reset.value = 1 if CONFIG["reset_active_low"] else 0
        await RisingEdge(self.clk)
        await RisingEdge(self.clk)

    async def stream(self, beats, count, idle=0.0, stall=0.0, burst=0, stop_at=None):
        """Sends `beats` and takes `count` beats; gives (data, first input cycle, output cycles).

        idle, stall: probability of withholding tvalid, tready in a cycle. burst: now and
        then tready is withheld for up to so many cycles. stop_at: leave after
        so many cycles. The output must hold still while it is stalled.
        """
        dut, clk, rng = self.dut, self.clk, random.Random(SEED)
        s_ready, m_valid, m_data, m_last = dut.s_axis_tready, dut.m_axis_tvalid, dut.m_axis_tdata, dut.m_axis_tlast
        s_valid, s_data, s_last, m_ready = dut.s_axis_tvalid, dut.s_axis_tdata, dut.s_axis_tlast, dut.m_axis_tready
        per_frame, out_frame = CONFIG["beats_in"], CONFIG["beats_out"]
        patience = 20 * (CONFIG["latency"] + CONFIG["interval"]) + 2000
        got, times, first = [], [], None
        held_back = 0
        sent, offered, ready, quiet, held, start = 0, False, False, 0, None, self.cycle
        while len(got) < count or (stop_at is None and (offered or sent < len(beats))):
            if offered and s_ready.value == 1:
                first = self.cycle if first is None else first
                sent, offered, quiet = sent + 1, False, 0
            valid = m_valid.value == 1
            if valid and (ready or stall or burst):
                data = int(m_data.value)
                assert held is None or held == data, f"tdata changed during a stall in cycle {self.cycle}"
                held = None if ready else data
            if valid and ready:
                last = (len(got) + 1) % out_frame == 0
                assert (m_last.value == 1) == last, f"tlast wrong at output beat {len(got)}"
                got.append(data)
                times.append(self.cycle)
                quiet = 0
            elif not valid:
                assert held is None, f"tvalid fell during a stall in cycle {self.cycle}"
            if self.probes:
                self.probe()
            if stop_at is not None and self.cycle - start >= stop_at:
                break
            quiet += 1
            assert quiet < patience, f"no beat moved for {quiet} cycles (sent {sent}, got {len(got)})"
            if not offered and sent < len(beats) and (not idle or rng.random() >= idle):
                s_data.value = beats[sent]
                s_last.value = 1 if (sent + 1) % per_frame == 0 else 0
                s_valid.value = 1
                offered = True
            elif not offered:
                s_valid.value = 0
            if held_back:
                held_back -= 1
            elif burst and rng.random() < 2 / burst:
                held_back = rng.randint(1, burst)
            ready = not held_back and (not stall or rng.random() >= stall)
            m_ready.value = 1 if ready else 0
            await RisingEdge(clk)
            self.cycle += 1
        s_valid.value = 0
        m_ready.value = 0
        return got, first, times

    def probe(self) -> None:
        """Takes what moves between the layers in this cycle."""
        for data, valid, ready, taken, _ in self.probes:
            if valid.value == 1 and ready.value == 1:
                taken.append((int(data.value), self.cycle))

    def compare(self, test: str, got, times, expected) -> None:
        """Records and raises at the first differing beat."""
        self.compare_layers(test)
        port = CONFIG["output"]
        wrong = [i for i, pair in enumerate(zip(got, expected, strict=True)) if differs(port, i, *pair)]
        record(f"{test}.mismatches", len(wrong))
        if wrong:
            self.diverge(test, port, wrong[0], got[wrong[0]], expected[wrong[0]], times[wrong[0]])

    def compare_layers(self, test: str) -> None:
        for *_, taken, monitor in self.probes:
            expected = words(f"{monitor['stream']}.hex")
            for i, ((data, cycle), wanted) in enumerate(zip(taken, expected, strict=False)):
                if differs(monitor, i, data, wanted):
                    self.diverge(test, monitor, i, data, wanted, cycle)

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
        where = {
            "test": test, "layer": port["layer"], "frame": beat // beats, "beat": beat % beats,
            "element": port["order"][position] if port["order"] and position < len(port["order"]) else position,
            "channel": position % port["channels"], "cycle": cycle, "expected": code(expected), "actual": code(actual),
        }  # fmt: skip
        record("first_divergence", RESULTS.get("first_divergence", where))
        raise AssertionError("first divergence: " + ", ".join(f"{key} {value}" for key, value in where.items()))


@cocotb.test()
async def full_rate(dut):
    """Frames back to back, no stalls: values, latency and interval."""
    core, beats, expected = Core(dut), words("input.hex"), words("expected.hex")
    await core.start()
    got, first, times = await core.stream(beats, len(expected))
    ends = times[CONFIG["beats_out"] - 1 :: CONFIG["beats_out"]]
    record("full_rate.frames", len(ends))
    record("latency", ends[0] - first)
    if len(ends) > 3:
        record("interval", ends[-1] - ends[-2])
    core.compare("full_rate", got, times, expected)
    assert dut.frame_error.value == 0, "frame_error after well-formed frames"


@cocotb.test()
async def random_stalls(dut):
    """Random idle cycles at the input and stalls at the output."""
    core, beats, expected = Core(dut), words("input.hex"), words("expected.hex")
    frames = min(len(expected) // CONFIG["beats_out"], CONFIG["stall_frames"])
    beats, expected = beats[: frames * CONFIG["beats_in"]], expected[: frames * CONFIG["beats_out"]]
    await core.start()
    # Bursts of a frame's length fill every buffer up to the input.
    for idle, stall, burst in ((0.5, 0.0, 0), (0.0, 0.6, 0), (0.4, 0.4, 0), (0.0, 0.0, 2 * CONFIG["interval"])):
        got, _, times = await core.stream(beats, len(expected), idle, stall, burst)
        core.compare("random_stalls", got, times, expected)
        for probe in core.probes:
            probe[3].clear()


@cocotb.test()
async def reset_mid_frame(dut):
    """Reset while frames are in flight; what follows is as if nothing had been."""
    core, beats, expected = Core(dut), words("input.hex"), words("expected.hex")
    frames = min(len(expected) // CONFIG["beats_out"], 2)
    count = frames * CONFIG["beats_out"]
    await core.start()
    # Just before a frame is complete at the output, and anywhere else, so that every unit is caught
    # in the middle of something; every other time with stalls, so that full buffers are too.
    rng, latency, interval = random.Random(SEED), CONFIG["latency"], CONFIG["interval"]
    points = [latency, latency + interval // 2, *(rng.randint(1, latency + 2 * interval) for _ in range(6))]
    for i, cycles in enumerate(points):
        stall = 0.3 if i % 2 else 0.0
        await core.stream(beats, 10**9, stall, stall, stop_at=cycles)
        await core.pulse_reset()
        for probe in core.probes:
            probe[3].clear()
        got, _, times = await core.stream(beats[: frames * CONFIG["beats_in"]], count)
        core.compare("reset_mid_frame", got, times, expected[:count])
        for probe in core.probes:
            probe[3].clear()


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
