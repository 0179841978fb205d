"""Checks of hg_control and hg_control_starts, run by cocotb; the environment variable AXI_JOB names a JSON file."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import cocotb
from axi_bus import LIMIT, OKAY, READY, SLVERR, Lite, drive, reset, reset_with_offers
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

JOB: dict[str, Any] = json.loads(Path(os.environ["AXI_JOB"]).read_text())
QUIET = {f"{side}_{name}": 0 for side in ("in", "out") for name in ("valid", "ready", "last")}


INPUTS, OUTPUTS = len(JOB["words"]), JOB["outputs"]
#: None: hg_control. True or False: hg_control_starts, in which bit 1 of CONTROL works or not.
STARTS: bool | None = JOB.get("starts")
if STARTS is not None:
    QUIET["started"] = 0


def bits(values: Iterable[object]) -> int:
    """The first one at bit 0."""
    return sum(bool(value) << place for place, value in enumerate(values))


class Watched:
    """All ports: random words; counts frames that have left every output, and frames with a wrong tlast."""

    def __init__(self, dut: Any, rng: random.Random) -> None:
        self.dut, self.rng = dut, rng
        self.word = [0] * INPUTS
        self.bad = [False] * INPUTS
        self.left = [0] * OUTPUTS
        self.errors = self.before = 0

    @property
    def frames(self) -> int:
        return min(self.left) - self.before

    def forget(self) -> None:
        """Both counters stood at 0."""
        self.before, self.errors = min(self.left), 0

    def take(self, row: dict[str, list[bool]]) -> None:
        for port in range(INPUTS):
            if row["in_valid"][port] and row["in_ready"][port]:
                end = self.word[port] == JOB["words"][port] - 1
                self.bad[port] |= row["in_last"][port] != end
                self.errors += end and self.bad[port]
                self.bad[port] = self.bad[port] and not end
                self.word[port] = 0 if end else self.word[port] + 1
        for port in range(OUTPUTS):
            self.left[port] += all(row[f"out_{name}"][port] for name in ("valid", "ready", "last"))

    async def run(self, cycles: int) -> None:
        rng = self.rng
        often = [rng.random() for _ in range(OUTPUTS)]
        for _ in range(cycles):
            row = {name: [rng.random() < 0.5 for _ in range(INPUTS)] for name in QUIET if name.startswith("in_")}
            row |= {
                name: [rng.random() < ready_chance for ready_chance in often]
                for name in QUIET
                if name.startswith("out")
            }
            for port in range(INPUTS):
                if rng.random() < 0.9:
                    row["in_last"][port] = self.word[port] == JOB["words"][port] - 1
            drive(self.dut, {name: bits(values) for name, values in row.items()})
            await RisingEdge(self.dut.clk)
            self.take(row)
        drive(self.dut, QUIET)
        await RisingEdge(self.dut.clk)
        await RisingEdge(self.dut.clk)


async def counters(lite: Lite) -> list[int]:
    registers = [await lite.read(address) for address in (12, 16)]
    assert all(response == OKAY for _, response in registers)
    return [data for data, _ in registers]


@cocotb.test(**LIMIT)
async def counts(dut: Any) -> None:
    """Frames and errors; nothing while CONTROL is 1; a reset in mid-frame begins a frame."""
    Clock(dut.clk, 10, unit="ns").start()
    drive(dut, QUIET)
    for seed, pause in enumerate((0.0, 0.5)):
        rng = random.Random(seed)
        lite = Lite(dut, rng, pause)
        lite.quiet()
        # Port activity during a reset is ignored.
        sizes = {"in": INPUTS, "ou": OUTPUTS, "st": 1}
        drive(dut, {name: (1 << sizes[name[:2]]) - 1 for name in QUIET})
        await reset(dut)
        drive(dut, QUIET)
        assert await counters(lite) == [0, 0]
        watched = Watched(dut, rng)
        for _ in range(6):
            await watched.run(rng.randrange(150))
            assert await counters(lite) == [watched.frames, watched.errors]
        assert watched.frames
        assert watched.errors
        written = rng.getrandbits(32) | 1
        assert await lite.write(0, written) == OKAY
        assert await lite.read(0) == (1 | (written & 2 if STARTS else 0), OKAY)
        watched.forget()
        assert await counters(lite) == [0, 0]
        await watched.run(50)
        assert await counters(lite) == [0, 0]
        assert await lite.write(0, 0) == OKAY
        watched.forget()
        await watched.run(80)
        assert await counters(lite) == [watched.frames, watched.errors]


@cocotb.test(**LIMIT)
async def what_can_only_be_read(dut: Any) -> None:
    Clock(dut.clk, 10, unit="ns").start()
    drive(dut, QUIET)
    lite = Lite(dut, random.Random(3), 0.2)
    lite.quiet()
    await reset(dut)
    for address in (4, 8, 12, 16, 20, 28):
        assert await lite.write(address, 1) == SLVERR
    assert await lite.read(4) == (JOB["version"], OKAY)
    assert await lite.read(8) == (JOB["model"], OKAY)
    assert await lite.read(20) == (0, SLVERR)
    assert await lite.read(0) == (0, OKAY)


@cocotb.test(**LIMIT)
async def offered_in_reset(dut: Any) -> None:
    """An access that is offered in a reset waits."""
    Clock(dut.clk, 10, unit="ns").start()
    drive(dut, QUIET)
    lite = Lite(dut, random.Random(4), 0.0)
    lite.quiet()
    await reset(dut)
    registers = await reset_with_offers(dut, READY, 2, lite.write(0, 1), lite.read(4))
    assert registers == [OKAY, (JOB["version"], OKAY)]


@cocotb.test(**LIMIT)
async def a_sequence_is_started(dut: Any) -> None:
    """Bit 1 of CONTROL is 1 from a write of 1 to the first word of the next frame, whatever else is written."""
    if STARTS is None:
        return
    Clock(dut.clk, 10, unit="ns").start()
    drive(dut, QUIET)
    rng = random.Random(5)
    lite = Lite(dut, rng, 0.3)
    lite.quiet()
    await reset(dut)
    assert int(dut.start.value) == 0
    waits = False
    for _ in range(60):
        if rng.random() < 0.4:
            drive(dut, {"started": 1})
            await RisingEdge(dut.clk)
            drive(dut, {"started": 0})
            await RisingEdge(dut.clk)
            waits = False
        else:
            written = rng.randrange(4)
            assert await lite.write(0, written) == OKAY
            waits |= STARTS and bool(written & 2)
            assert await lite.read(0) == ((written & 1) | waits << 1, OKAY)
        assert int(dut.start.value) == waits
    assert await lite.write(0, 2) == OKAY
    await reset(dut)
    assert int(dut.start.value) == 0
    assert await lite.read(0) == (0, OKAY)
