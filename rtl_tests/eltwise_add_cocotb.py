"""Checks of hg_eltwise_add_axi, run by cocotb; the environment variable AXI_JOB names a JSON file."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import cocotb
from axi_bus import ALL_BITS, LIMIT, OKAY, READY, SLVERR, Channel, Lite, drive, merged, read, reset, reset_with_offers
from cocotb.clock import Clock
from cocotb.triggers import Combine, RisingEdge, Timer

JOB: dict[str, Any] = json.loads(Path(os.environ["AXI_JOB"]).read_text())
PORT: bool = JOB["port"]
FRAMES: list[dict[str, Any]] = JOB["frames"]
SETS: list[list[int]] = JOB["sets"]
LATENCY = 9


class Bench:
    """Both sources, the sink with its list of beats, and the master of the registers."""

    def __init__(self, dut: Any, seed: int, idle: float, stall: float) -> None:
        self.dut, self.rng = dut, random.Random(seed)
        payload = ["tdata", "tkeep", "tlast"]
        self.sources = [Channel(dut, f"s{k}_axis_t", [n[1:] for n in payload], self.rng, idle) for k in (0, 1)]
        self.sink = Channel(dut, "m_axis_t", [n[1:] for n in payload], self.rng, stall)
        self.lite = Lite(dut, self.rng, 0.3)
        self.beats: list[list[int]] = []

    async def start(self) -> None:
        for source in self.sources:
            source.quiet()
        drive(self.dut, {self.sink.ready: 0})
        self.lite.quiet()
        await reset(self.dut)
        self.collector = cocotb.start_soon(self.collect())

    async def collect(self) -> None:
        while True:
            self.beats.append(await self.sink.take())

    async def until(self, count: int) -> None:
        for _ in range(5000):
            if len(self.beats) >= count:
                return
            await RisingEdge(self.dut.clk)
        raise AssertionError(f"{len(self.beats)} beats, {count} wanted")

    async def send(self, frame: dict[str, Any], first: int, stop: int) -> None:
        """Beats first .. stop - 1 of a frame into both inputs, independently."""

        async def send_all(source: Channel, words: list[str]) -> None:
            for k in range(first, stop):
                last = k == len(words) - 1
                await source.send(int(words[k], 16), frame["keep"] if last else JOB["full"], int(last))

        await Combine(*(cocotb.start_soon(send_all(s, frame[n])) for s, n in zip(self.sources, "ab", strict=True)))

    async def program(self, words: list[int], look: bool = True) -> None:
        """Writes the words of a set, their bytes in two portions, and reads them."""
        for index in self.rng.sample(range(3), 3):
            cut = self.rng.choice([15, self.rng.getrandbits(4)])
            for strobe in self.rng.sample([cut, 15 - cut], 2):
                data = merged(self.rng.getrandbits(32), words[index], strobe)
                assert await self.lite.write(4 * index, data, strobe) == OKAY
        for index in range(3 if look else 0):
            assert await self.lite.read(4 * index) == (words[index], OKAY)

    def check(self, frames: list[dict[str, Any]], name: str = "c") -> None:
        want = [
            [int(word, 16), frame["keep"] if k == len(frame["a"]) - 1 else JOB["full"], int(k == len(frame["a"]) - 1)]
            for frame in frames
            for k, word in enumerate(frame[name])
        ]
        for place, (actual, expected) in enumerate(zip(self.beats, want, strict=True)):
            assert actual == expected, f"beat {place}: {actual}, not {expected}"


@cocotb.test(**LIMIT)
async def at_full_rate(dut: Any) -> None:
    """Frames with the parameters after reset: the stated latency and no bubble."""
    Clock(dut.clk, 10, unit="ns").start()
    bench = Bench(dut, 1, 0.0, 0.0)
    await bench.start()
    clock = 0
    went_in: list[int] = []
    came_out: list[int] = []

    async def watch() -> None:
        nonlocal clock
        while True:
            await RisingEdge(dut.clk)
            clock += 1
            if read(dut, "s0_axis_tvalid") and read(dut, "s0_axis_tready"):
                went_in.append(clock)
            if read(dut, "m_axis_tvalid") and read(dut, "m_axis_tready"):
                came_out.append(clock)

    cocotb.start_soon(watch())
    for frame in FRAMES:
        await bench.send(frame, 0, len(frame["a"]))
    await bench.until(sum(len(frame["a"]) for frame in FRAMES))
    bench.check(FRAMES, "initial")
    assert came_out == [edge + LATENCY for edge in went_in]
    assert came_out[-1] - came_out[0] == len(came_out) - 1, "a bubble"


@cocotb.test(**LIMIT)
async def idle_and_stalls(dut: Any) -> None:
    """The same under idle cycles of either input and back-pressure, frame after frame."""
    Clock(dut.clk, 10, unit="ns").start()
    for seed, (idle, stall) in enumerate([(0.5, 0.0), (0.0, 0.6), (0.4, 0.4), (0.85, 0.1), (0.1, 0.85)]):
        bench = Bench(dut, seed, idle, stall)
        await bench.start()
        for frame in FRAMES:
            await bench.send(frame, 0, len(frame["a"]))
        await bench.until(sum(len(frame["a"]) for frame in FRAMES))
        for _ in range(LATENCY + 3):
            await RisingEdge(dut.clk)
        bench.check(FRAMES, "initial")
        assert not read(dut, "frame_error")
        bench.collector.cancel()


@cocotb.test(skip=not PORT, **LIMIT)
async def new_parameters_between_frames(dut: Any) -> None:
    """The first beats follow right after the last response."""
    Clock(dut.clk, 10, unit="ns").start()
    for idle, look in ((0.0, False), (0.3, True)):
        bench = Bench(dut, 2, idle, 0.3)
        await bench.start()
        sent_beats = 0
        for frame in FRAMES:
            await bench.program(SETS[frame["set"]], look)
            await bench.send(frame, 0, len(frame["a"]))
            sent_beats += len(frame["a"])
            # The first pair has to be in the pipeline, the others may be anywhere.
            await bench.until(sent_beats if bench.rng.random() < 0.5 else sent_beats - len(frame["a"]) + 1)
        await bench.until(sent_beats)
        bench.check(FRAMES)
        bench.collector.cancel()


@cocotb.test(skip=not PORT, **LIMIT)
async def new_parameters_within_frames(dut: Any) -> None:
    """Written while a frame is under way, they count from the next one on, without a gap between."""
    Clock(dut.clk, 10, unit="ns").start()
    bench = Bench(dut, 3, 0.2, 0.3)
    await bench.start()
    frames = [frame for frame in FRAMES if len(frame["a"]) > 2]
    await bench.program(SETS[frames[0]["set"]])
    sent_beats = 0
    for place, frame in enumerate(frames):
        stop = bench.rng.randrange(1, len(frame["a"]) - 1)
        await bench.send(frame, 0, stop)
        await bench.until(sent_beats + 1)  # the first pair is in the pipeline
        assert await bench.lite.read(16) == (2, OKAY)  # inside a frame
        last_beat = cocotb.start_soon(bench.send(frame, stop, len(frame["a"]) - 1))
        if place + 1 < len(frames):
            await bench.program(SETS[frames[place + 1]["set"]])
        await last_beat
        await bench.send(frame, len(frame["a"]) - 1, len(frame["a"]))
        sent_beats += len(frame["a"])
    await bench.until(sent_beats)
    bench.check(frames)
    assert await bench.lite.read(16) == (0, OKAY)


@cocotb.test(skip=not PORT, **LIMIT)
async def hold(dut: Any) -> None:
    """While hold is set, writes between frames have no effect on any frame."""
    Clock(dut.clk, 10, unit="ns").start()
    bench = Bench(dut, 4, 0.2, 0.2)
    await bench.start()
    await bench.program(SETS[FRAMES[0]["set"]])
    sent_beats = 0
    for place, frame in enumerate(FRAMES):
        await RisingEdge(dut.clk)
        assert await bench.lite.write(12, ALL_BITS) == OKAY
        assert await bench.lite.read(12) == (1, OKAY)
        await bench.program(SETS[FRAMES[(place + 1) % len(FRAMES)]["set"]])
        await bench.send(frame, 0, len(frame["a"]))
        sent_beats += len(frame["a"])
        await bench.until(sent_beats)
        assert await bench.lite.write(12, 0, 14) == OKAY
        assert await bench.lite.read(12) == (1, OKAY)
        assert await bench.lite.write(12, 0, 1) == OKAY
    bench.check(FRAMES)


@cocotb.test(**LIMIT)
async def errors_and_reset(dut: Any) -> None:
    """frame_error rises with the first pair whose tlast or tkeep differ; reset restores everything."""
    Clock(dut.clk, 10, unit="ns").start()
    frame = next(frame for frame in FRAMES if len(frame["a"]) > 2)
    for field, wrong in (("last", 1), ("keep", JOB["full"] ^ 1)):
        bench = Bench(dut, 5, 0.2, 0.2)
        await bench.start()
        assert not read(dut, "frame_error")
        if PORT:
            await bench.program(SETS[1])
        first = [JOB["full"], 0]
        await Combine(*(cocotb.start_soon(source.send(7, *first)) for source in bench.sources))
        await bench.until(1)
        assert not read(dut, "frame_error")
        second = [JOB["full"], wrong] if field == "last" else [wrong, 0]
        flags = [second, first] if bench.rng.random() < 0.5 else [first, second]
        await Combine(*(cocotb.start_soon(s.send(7, *f)) for s, f in zip(bench.sources, flags, strict=True)))
        await bench.until(2)
        assert bench.beats[1][1:] == flags[0], "flags that are not those of s0"
        assert read(dut, "frame_error")
        if PORT:
            assert await bench.lite.read(16) == (1 + 2 * (1 - flags[0][1]), OKAY)
            assert await bench.lite.read(20) == (0, SLVERR)
            assert await bench.lite.write(16, 0) == SLVERR
        assert read(dut, "frame_error"), "it stays"
        bench.collector.cancel()
        restarted = Bench(dut, 6, 0.2, 0.2)
        await restarted.start()
        await RisingEdge(dut.clk)
        assert not read(dut, "frame_error")
        await restarted.send(frame, 0, len(frame["a"]))
        await restarted.until(len(frame["a"]))
        restarted.check([frame], "initial")
        restarted.collector.cancel()


@cocotb.test(**LIMIT)
async def offers_in_reset(dut: Any) -> None:
    """Beats and accesses that are offered in any cycle of a reset wait, and are the first ones after it."""
    Clock(dut.clk, 10, unit="ns").start()
    frame, ready = FRAMES[0], ("s0_axis_tready", "s1_axis_tready")
    for early in range(5):
        bench = Bench(dut, early, 0.0, 0.2)
        await bench.start()
        offers = [bench.send(frame, 0, len(frame["a"]))]
        offers += [bench.lite.read(20), bench.lite.write(12, 1)] if PORT else []
        responses = await reset_with_offers(dut, ready + READY * PORT, early, *offers)
        assert responses[1:] == ([(0, SLVERR), OKAY] if PORT else [])
        await bench.until(len(frame["a"]))
        bench.check([frame], "initial")
        assert not read(dut, "frame_error")
        bench.collector.cancel()


@cocotb.test(**LIMIT)
async def outputs_are_registered(dut: Any) -> None:
    """Within a cycle no output follows an input."""
    Clock(dut.clk, 10, unit="ns").start()
    bench = Bench(dut, 7, 0.3, 0.5)
    await bench.start()
    bench.collector.cancel()
    ports = [name for name in JOB["outputs"] if PORT or not name.startswith("s_axil")]
    inputs = [name for name in JOB["inputs"] if PORT or not name.startswith("s_axil")]
    is_known: dict[str, bool] = {}
    for _ in range(150):
        port_values = []
        for _ in range(5):
            drive(dut, {name: bench.rng.getrandbits(len(getattr(dut, name))) for name in inputs})
            await Timer(1, unit="ns")
            port_values.append([str(getattr(dut, name).value) for name in ports])
        assert all(state == port_values[0] for state in port_values)
        is_known |= {name: True for name, value in zip(ports, port_values[0], strict=True) if "1" in value}
        await RisingEdge(dut.clk)
    assert {name for name in ports if name.endswith(("valid", "ready"))} <= set(is_known), "never active"
