"""Checks of NAME_dma against cocotbext-axi, run by cocotb; the environment variable BENCH_JOB names a JSON file."""

from __future__ import annotations

import json
import logging
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam, AxiResp

JOB: dict[str, Any] = json.loads(Path(os.environ["BENCH_JOB"]).read_text())
CONTROL, STATUS, SRC, DST, FRAMES, IN_BYTES, OUT_BYTES = 0, 4, 8, 16, 24, 40, 44
GROUP = 4096
SIZE = 1 << 16


def pauses(seed: int, chance: float) -> Iterator[bool]:
    rng = random.Random(seed)
    while True:
        yield rng.random() < chance


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def system(dut: Any) -> None:
    """Frames in jobs of several sizes, then resets in the middle of jobs, then the registers of the core."""
    logging.getLogger(f"cocotb.{dut._name}").setLevel(logging.ERROR)
    clock, reset = getattr(dut, JOB["clock"]), getattr(dut, JOB["reset"])
    frames, count = bytes.fromhex(JOB["frames"]), JOB["count"]
    into, out = len(frames) // count, JOB["output_bytes"]
    answers = b""
    Clock(clock, 10, unit="ns").start()
    high = not JOB["reset_low"]
    reset.value = int(high)
    registers = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), clock, reset, reset_active_level=high)
    memory = AxiRam(AxiBus.from_prefix(dut, "m_axi"), clock, reset, reset_active_level=high, size=SIZE)

    async def restart() -> None:
        reset.value = int(high)
        for _ in range(8):
            await RisingEdge(clock)
        reset.value = int(not high)
        await RisingEdge(clock)

    async def start(first: int, number: int, source: int, target: int) -> None:
        memory.write(source, frames[first * into : (first + number) * into])
        for register, value in ((SRC, source), (DST, target), (FRAMES, number), (CONTROL, 3)):
            await registers.write_dword(register, value)

    async def job(first: int, number: int, source: int, target: int) -> bytes:
        memory.write(target - 16, b"\xee" * (number * out + 32))
        await start(first, number, source, target)
        if not dut.irq.value:
            await RisingEdge(dut.irq)
        assert await registers.read_dword(STATUS) == 2
        data = memory.read(target - 16, number * out + 32)
        assert data[:16] == data[-16:] == b"\xee" * 16
        await registers.write_dword(STATUS, 2)
        return bytes(data[16:-16])

    await restart()
    assert [await registers.read_dword(register) for register in (IN_BYTES, OUT_BYTES)] == [into, out]
    channels = [memory.read_if.ar_channel, memory.read_if.r_channel]
    channels += [memory.write_if.aw_channel, memory.write_if.w_channel, memory.write_if.b_channel]
    # The first job is compared with the model by the caller, the others with it.
    answers = await job(0, count, 4096 - into // 64 * 64, 0x8000 - 128)
    Path(JOB["answers"]).write_bytes(answers)
    for turn, chance in enumerate((0.5, 0.9)):
        for place, channel in enumerate(channels):
            channel.set_pause_generator(pauses(10 * turn + place, chance))
        assert await job(turn, 2, 0x1000 - 64, 0x6000 - 64) == answers[turn * out : (turn + 2) * out]
    if JOB["control"]:
        assert await registers.read_dword(GROUP + 12) == count + 4
        assert await registers.read_dword(GROUP + 16) == 0
    outside = await registers.read(2 * GROUP - 4, 4)
    assert outside.resp == AxiResp.SLVERR
    rng = random.Random(5)
    for _ in range(JOB["resets"]):
        await start(0, count, 64, 0x8000)
        for _ in range(rng.randrange(JOB["cycles"])):
            await RisingEdge(clock)
        await restart()
        assert await job(1, 2, 64, 0x9000) == answers[out : 3 * out]
