"""Checks of an hg_dma that serves an input or an output alone, run by cocotb; AXI_JOB names a JSON file."""

from __future__ import annotations

import json
import logging
import os
import random
from pathlib import Path
from typing import Any

import cocotb
from axi_bus import LIMIT
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from cocotbext.axi import (
    AxiBus,
    AxiLiteBus,
    AxiLiteMaster,
    AxiRam,
    AxiStreamBus,
    AxiStreamFrame,
    AxiStreamSink,
    AxiStreamSource,
)
from dma_pauses import pauses

JOB: dict[str, Any] = json.loads(Path(os.environ["AXI_JOB"]).read_text())
DATA_W, IN_WORDS, OUT_WORDS = JOB["DATA_W"], JOB["IN_WORDS"], JOB["OUT_WORDS"]
WORD = DATA_W // 8
FRAME = WORD * (IN_WORDS or OUT_WORDS)
CONTROL, STATUS, SRC, DST, FRAMES, SENT, RECEIVED = 0, 4, 8, 16, 24, 28, 32
START, BUSY, DONE = 1, 1, 2
SIZE = 1 << 13
#: Bytes next to the output that have to keep their value.
GUARD = 2 * WORD


@cocotb.test(**LIMIT)
async def jobs(dut: Any) -> None:
    """Random jobs with pauses. The other side of the engine is silent, and its count stays 0."""
    logging.getLogger("cocotb.hg_dma").setLevel(logging.ERROR)
    rng = random.Random(JOB["seed"])
    Clock(dut.clk, 10, unit="ns").start()
    dut.rst.value = 1
    registers = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
    memory = AxiRam(AxiBus.from_prefix(dut, "m_axi"), dut.clk, dut.rst, size=SIZE)
    sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
    source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
    silent = ["m_axi_awvalid", "m_axi_wvalid", "s_axis_tready"] if IN_WORDS else ["m_axi_arvalid", "m_axis_tvalid"]

    async def watch() -> None:
        while True:
            await RisingEdge(dut.clk)
            assert not any(int(getattr(dut, name).value) for name in silent)

    async def read(register: int) -> int:
        return int(await registers.read_dword(register))

    for _ in range(3):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    cocotb.start_soon(watch())
    channels = [memory.read_if.ar_channel, memory.read_if.r_channel, memory.write_if.aw_channel]
    channels += [memory.write_if.w_channel, memory.write_if.b_channel, source]
    for turn in range(JOB["jobs"]):
        for channel in channels:
            channel.set_pause_generator(pauses(random.Random(rng.random()), (0.0, 0.4, 0.8)[turn % 3]))
        count = rng.randint(1, 12)
        frames = [rng.randbytes(FRAME) for _ in range(count)]
        place = GUARD + rng.randrange((SIZE - count * FRAME - 2 * GUARD) // WORD) * WORD
        around = rng.randbytes(count * FRAME + 2 * GUARD)
        memory.write(place - GUARD, around)
        if IN_WORDS:
            memory.write(place, b"".join(frames))
        sink.clear_pause_generator()
        sink.pause = True
        for register, value in ((SRC, place), (DST, place), (FRAMES, count), (CONTROL, START)):
            await registers.write_dword(register, value)
        assert await read(STATUS) == BUSY
        if IN_WORDS:
            # A job without an output ends when the core has accepted the last word.
            for _ in range(30):
                await RisingEdge(dut.clk)
            assert [await read(STATUS), await read(SENT)] == [BUSY, 0]
            sink.pause = False
            sink.set_pause_generator(pauses(random.Random(rng.random()), (0.0, 0.4, 0.8)[turn % 3]))
            assert [bytes((await sink.recv()).tdata) for _ in range(count)] == frames
        else:
            for frame in frames:
                assert await read(STATUS) == BUSY
                await source.send(AxiStreamFrame(frame))
        while (status := await read(STATUS)) & BUSY:
            pass
        assert status == DONE
        if OUT_WORDS:
            data = memory.read(place - GUARD, len(around))
            assert data == around[:GUARD] + b"".join(frames) + around[-GUARD:]
        assert [await read(SENT), await read(RECEIVED)] == ([count, 0] if IN_WORDS else [0, count])
        await registers.write_dword(STATUS, DONE)
