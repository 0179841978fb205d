"""Checks of hg_axil_split against cocotbext-axi, run by cocotb; the environment variable AXI_JOB names a JSON file."""

from __future__ import annotations

import json
import logging
import os
import random
from pathlib import Path
from typing import Any

import cocotb
from axi_bus import LIMIT, READY, read
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge
from cocotbext.axi import AddressSpace, AxiLiteBus, AxiLiteMaster, AxiLiteSlave, AxiResp, MemoryRegion
from dma_pauses import pauses

JOB: dict[str, Any] = json.loads(Path(os.environ["AXI_JOB"]).read_text())
COUNT, ADDR_W = JOB["COUNT"], JOB["ADDR_W"]
#: Bytes of the registers of each port; addresses beyond them answer with an error.
SIZE = 64


class System:
    """A master, and a memory at each port, with random pauses."""

    def __init__(self, dut: Any, seed: int, chance: float) -> None:
        logging.getLogger("cocotb.split").setLevel(logging.ERROR)
        self.dut, self.rng = dut, random.Random(seed)
        Clock(dut.clk, 10, unit="ns").start()
        dut.rst.value = 1
        self.master = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
        self.regions = [MemoryRegion(SIZE) for _ in range(COUNT)]
        ends: list[Any] = [self.master]
        for k, region in enumerate(self.regions):
            space = AddressSpace(1 << 12)
            space.register_region(region, 0)
            ends.append(AxiLiteSlave(AxiLiteBus.from_prefix(dut, f"p{k}"), dut.clk, dut.rst, target=space))
        for end in ends:
            reads, writes = end.read_if, end.write_if
            for channel in (reads.ar_channel, reads.r_channel, writes.aw_channel, writes.w_channel, writes.b_channel):
                channel.set_pause_generator(pauses(random.Random(self.rng.random()), chance))

    async def reset(self, cycles: int) -> None:
        self.dut.rst.value = 1
        for _ in range(cycles):
            await RisingEdge(self.dut.clk)
            await FallingEdge(self.dut.clk)
            assert not any(read(self.dut, name) for name in READY)
        await RisingEdge(self.dut.clk)
        self.dut.rst.value = 0

    async def access(self, held: list[bytearray]) -> None:
        """A read or write, compared with `held`: the bytes of each port."""
        port = self.rng.randrange(1 << (ADDR_W - 12))
        place = self.rng.randrange(0, SIZE + 16, 4)
        exists = port < COUNT and place < SIZE
        expected = AxiResp.OKAY if exists else AxiResp.SLVERR
        if self.rng.random() < 0.5:
            got = await self.master.read(port << 12 | place, 4)
            assert got.resp == expected
            assert bytes(got.data) == (held[port][place : place + 4] if exists else bytes(4))
        else:
            data = self.rng.randbytes(self.rng.randint(1, 4))
            written = await self.master.write(port << 12 | place, data)
            assert written.resp == expected
            if exists:
                held[port][place : place + len(data)] = data
        for region, data in zip(self.regions, held, strict=True):
            assert await region.read(0, SIZE) == data


@cocotb.test(**LIMIT)
async def accesses(dut: Any) -> None:
    system = System(dut, 1, 0.4)
    await system.reset(3)
    held = [bytearray(SIZE) for _ in range(COUNT)]
    for _ in range(JOB["accesses"]):
        await system.access(held)
    reading = cocotb.start_soon(system.master.read(0, 4))
    written = await system.master.write(0, b"abcd")
    assert written.resp == AxiResp.OKAY
    await reading


@cocotb.test(**LIMIT)
async def resets(dut: Any) -> None:
    """A reset at any time forgets the access in progress."""
    system = System(dut, 2, 0.3)
    await system.reset(3)
    for _ in range(12):
        tasks = [cocotb.start_soon(system.master.write(0, b"abcd")), cocotb.start_soon(system.master.read(4, 4))]
        for _ in range(system.rng.randrange(14)):
            await RisingEdge(dut.clk)
        for task in tasks:
            task.cancel()
        await system.reset(system.rng.randint(1, 3))
        held = [bytearray(await region.read(0, SIZE)) for region in system.regions]
        for _ in range(3):
            await system.access(held)
