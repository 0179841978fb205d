"""Checks of NAME_kernel against cocotbext-axi, run by cocotb; the environment variable BENCH_JOB names a JSON file."""

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
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiRam

JOB: dict[str, Any] = json.loads(Path(os.environ["BENCH_JOB"]).read_text())
CONTROL, ENABLE, SOURCES, PENDING, SOURCE, TARGET, FRAMES, SEQUENCE, ERRORS = 0, 4, 8, 12, 16, 28, 40, 48, 56
START, DONE, IDLE, READY = 1, 2, 4, 8
READ_ERROR, MISPLACED, UNALIGNED = 1, 4, 8
SIZE = 1 << 16


def pauses(seed: int, chance: float) -> Iterator[bool]:
    rng = random.Random(seed)
    while True:
        yield rng.random() < chance


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def kernel(dut: Any) -> None:
    """Jobs as XRT runs them: polled, with interrupts, without frames, at wrong addresses, and after resets."""
    logging.getLogger(f"cocotb.{dut._name}").setLevel(logging.ERROR)
    clock, reset = dut.ap_clk, dut.ap_rst_n
    frames, count = bytes.fromhex(JOB["frames"]), JOB["count"]
    into, out = len(frames) // count, JOB["output_bytes"]
    Clock(clock, 10, unit="ns").start()
    reset.value = 0
    registers = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axi_control"), clock, reset, reset_active_level=False)
    memory = AxiRam(AxiBus.from_prefix(dut, "m_axi_gmem"), clock, reset, reset_active_level=False, size=SIZE)

    async def restart() -> None:
        reset.value = 0
        for _ in range(8):
            await RisingEdge(clock)
        reset.value = 1
        await RisingEdge(clock)

    async def write(register: int, value: int) -> None:
        await registers.write_dword(register, value)

    async def start(first: int, number: int, source: int, target: int) -> None:
        memory.write(source, frames[first * into : (first + number) * into])
        for register, value in ((SOURCE, source), (TARGET, target)):
            await write(register, value)
            await write(register + 4, 0)
        await write(FRAMES, number)
        await write(SEQUENCE, 1)
        await write(CONTROL, START)

    async def job(first: int, number: int, source: int, target: int, polled: bool) -> bytes:
        memory.write(target - 16, b"\xee" * (number * out + 32))
        await start(first, number, source, target)
        if polled:
            while not (control := await registers.read_dword(CONTROL)) & DONE:
                assert control == START
        else:
            if not dut.interrupt.value:
                await RisingEdge(dut.interrupt)
            assert await registers.read_dword(PENDING) == 1
            await write(PENDING, 1)
            assert not dut.interrupt.value
            control = await registers.read_dword(CONTROL)
        assert control == DONE | IDLE | READY
        assert await registers.read_dword(CONTROL) == IDLE
        assert await registers.read_dword(ERRORS) == 0
        data = memory.read(target - 16, number * out + 32)
        assert data[:16] == data[-16:] == b"\xee" * 16
        return bytes(data[16:-16])

    async def refused(number: int, source: int, errors: int) -> None:
        """A job that ends at once, and writes nothing."""
        memory.write(0xA000, b"\xee" * 64)
        await start(0, number, source, 0xA000)
        for _ in range(8):
            await RisingEdge(clock)
        assert await registers.read_dword(CONTROL) == DONE | IDLE | READY
        assert await registers.read_dword(ERRORS) == errors
        assert memory.read(0xA000, 64) == b"\xee" * 64

    await restart()
    assert await registers.read_dword(CONTROL) == IDLE
    # The first job is compared with the model by the caller, the others with it.
    answers = await job(0, count, 4096 - into // 64 * 64, 0x8000 - 128, polled=True)
    Path(JOB["answers"]).write_bytes(answers)
    await write(ENABLE, 1)
    await write(SOURCES, 1)
    channels = [memory.read_if.ar_channel, memory.read_if.r_channel]
    channels += [memory.write_if.aw_channel, memory.write_if.w_channel, memory.write_if.b_channel]
    for turn, chance in enumerate((0.5, 0.9)):
        for place, channel in enumerate(channels):
            channel.set_pause_generator(pauses(10 * turn + place, chance))
        began = 0 if JOB["state"] else turn
        came = await job(began, 2, 0x1000 - 64, 0x6000 - 64, polled=False)
        assert came == answers[began * out : (began + 2) * out]
    await write(ENABLE, 0)
    await refused(0, 64, 0)
    await refused(1, 62, UNALIGNED)
    # Registers that do not exist read as 0, and ignore what is written.
    await write(SOURCE + 8, 5)
    assert await registers.read_dword(SOURCE + 8) == await registers.read_dword(0xFFC) == 0
    rng = random.Random(5)
    for _ in range(JOB["resets"]):
        await start(0, count, 64, 0x8000)
        for _ in range(rng.randrange(JOB["cycles"])):
            await RisingEdge(clock)
        await restart()
        assert await job(0, 2, 64, 0x9000, polled=True) == answers[: 2 * out]
