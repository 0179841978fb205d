"""Checks of hg_kernel_regs, run by cocotb: random accesses and jobs, against a model of its registers."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import cocotb
from axi_bus import ALL_BITS, LIMIT, OKAY, READY, Lite, drive, merged, read, reset_with_offers
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

JOB: dict[str, Any] = json.loads(Path(os.environ["AXI_JOB"]).read_text())
POINTERS, WORD_BITS = JOB["POINTERS"], JOB["WORD_BITS"]
CONTROL, ENABLE, SOURCES, PENDING = 0, 4, 8, 12
HALVES = [16 + 12 * k + part for k in range(POINTERS) for part in (0, 4)]
FRAMES = 16 + 12 * POINTERS
OPTIONS, ERRORS = FRAMES + 8, FRAMES + 16
START, DONE, IDLE, READY_BIT = 1, 2, 4, 8
FLAGS = ("read_failed", "write_failed", "misplaced")
UNALIGNED = 8
#: Bits of the registers that a write changes without other effects.
MASKS = {ENABLE: 1, SOURCES: 3, FRAMES: ALL_BITS, OPTIONS: 1, **dict.fromkeys(HALVES, ALL_BITS)}
ABSENT = [24, ERRORS + 4, 0xFFC]


class Registers:
    """The module, and what its registers have to contain."""

    def __init__(self, dut: Any, seed: int, pause: float) -> None:
        self.dut, self.rng = dut, random.Random(seed)
        Clock(dut.clk, 10, unit="ns").start()
        self.bus = Lite(dut, self.rng, pause)
        self.forget()
        drive(dut, {"rst": 1, "active": 0, **dict.fromkeys(FLAGS, 0)})

    def forget(self) -> None:
        self.values = dict.fromkeys(MASKS, 0)
        self.pending = 0
        self.bus.quiet()

    async def write(self, address: int, data: int, strobe: int = 15) -> None:
        assert await self.bus.write(address, data, strobe) == OKAY
        if address in MASKS:
            self.values[address] = merged(self.values[address], data, strobe, MASKS[address]) & MASKS[address]

    async def expect(self, address: int, value: int) -> None:
        assert await self.bus.read(address) == (value, OKAY), hex(address)

    async def accesses(self, count: int) -> None:
        """Writes to registers, and reads of any."""
        for _ in range(count):
            strobe = self.rng.choice([15, 15, self.rng.randrange(16)])
            await self.write(self.rng.choice([*MASKS, *ABSENT, ERRORS]), self.rng.getrandbits(32), strobe)
            address = self.rng.choice([*MASKS, *ABSENT])
            await self.expect(address, self.values.get(address, 0))
            await self.expect(PENDING, self.pending)

    async def job(self, frames: int, aligned: bool) -> None:
        """Starts a job, ends it after some cycles with some errors, and compares all that is visible."""
        low = 0 if aligned else self.rng.randrange(1, 1 << WORD_BITS)
        chosen = self.rng.randrange(POINTERS)
        for k in range(POINTERS):
            address = self.rng.getrandbits(32) >> WORD_BITS << WORD_BITS | (low if k == chosen else 0)
            await self.write(HALVES[2 * k], address)
            await self.write(HALVES[2 * k + 1], self.rng.getrandbits(32))
        await self.write(FRAMES, frames)
        await self.write(OPTIONS, self.rng.getrandbits(1))
        watched = cocotb.start_soon(self.engine(bool(frames and aligned)))
        await self.write(CONTROL, START)
        if frames and aligned:
            await self.expect(CONTROL, START)
            self.ends = True
        errors = await watched
        self.pending |= self.values[SOURCES]
        await RisingEdge(self.dut.clk)
        assert read(self.dut, "irq") == int(bool(self.values[ENABLE] and self.pending))
        await self.expect(CONTROL, DONE | IDLE | READY_BIT)
        await self.expect(CONTROL, IDLE)
        await self.expect(ERRORS, errors | (0 if aligned else UNALIGNED))
        toggled = self.rng.getrandbits(2)
        await self.write(PENDING, toggled, 15)
        self.pending ^= toggled
        await self.expect(PENDING, self.pending)

    async def engine(self, runs: bool) -> int:
        """What an engine does with a pulse of start; returns the errors that it reported."""
        self.ends, errors = not runs, 0
        for _ in range(200):
            await RisingEdge(self.dut.clk)
            if read(self.dut, "start"):
                break
        else:
            assert not runs, "no start"
            return 0
        assert runs, "a job that is not legal started"
        addresses = [
            self.values[low] | self.values[high] << 32 for low, high in zip(HALVES[::2], HALVES[1::2], strict=True)
        ]
        assert read(self.dut, "pointers") == sum(address << 64 * k for k, address in enumerate(addresses))
        assert (read(self.dut, "count"), read(self.dut, "sequence_start")) == (
            self.values[FRAMES],
            self.values[OPTIONS],
        )
        drive(self.dut, {"active": 1})
        left = self.rng.randrange(12)
        while left or not self.ends:
            flags = {name: int(self.rng.random() < 0.05) for name in FLAGS}
            drive(self.dut, flags)
            errors |= sum(flag << place for place, flag in enumerate(flags.values()))
            await RisingEdge(self.dut.clk)
            assert not read(self.dut, "start")
            left = max(0, left - 1)
        drive(self.dut, {"active": 0, **dict.fromkeys(FLAGS, 0)})
        for _ in range(3):
            await RisingEdge(self.dut.clk)
        return errors

    async def reset(self) -> None:
        """No register keeps its value, and no access is accepted meanwhile."""
        self.forget()
        ((value, response),) = await reset_with_offers(self.dut, READY, 1, self.bus.read(CONTROL))
        assert (value, response) == (IDLE, OKAY)


@cocotb.test(**LIMIT)
async def random_jobs(dut: Any) -> None:
    registers = Registers(dut, JOB["seed"], JOB["pause"])
    for _ in range(2):
        await registers.reset()
        for address in [*MASKS, PENDING, ERRORS]:
            await registers.expect(address, 0)
        for turn in range(JOB["jobs"]):
            await registers.accesses(8)
            await registers.job(0 if turn % 5 == 3 else registers.rng.getrandbits(32) | 1, turn % 4 != 1)
