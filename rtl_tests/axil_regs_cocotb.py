"""Checks of hg_axil_regs, run by cocotb; the environment variable AXI_JOB names a JSON file."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import cocotb
from axi_bus import LIMIT, OKAY, READY, SLVERR, Lite, drive, merged, read, reset, reset_with_offers
from cocotb.clock import Clock
from cocotb.triggers import Combine, RisingEdge
from cocotb.utils import get_sim_time

JOB: dict[str, Any] = json.loads(Path(os.environ["AXI_JOB"]).read_text())


@cocotb.test(**LIMIT)
async def accesses(dut: Any) -> None:
    """Random writes and reads at several speeds: values, bytes, masks, responses, latencies."""
    Clock(dut.clk, 10, unit="ns").start()
    words, masks, status_words, address_bits = JOB["reset"], JOB["masks"], JOB["status"], JOB["address_bits"]
    for seed, pause in enumerate((0.0, 0.3, 0.7)):
        rng = random.Random(seed)
        lite = Lite(dut, rng, pause)
        lite.quiet()
        await reset(dut)
        values = [word & mask for word, mask in zip(words, masks, strict=True)]
        status = [rng.getrandbits(32) for _ in range(status_words)]
        drive(dut, {"status": sum(word << (32 * k) for k, word in enumerate(status))})

        def packed(values: list[int]) -> int:
            return sum(word << (32 * k) for k, word in enumerate(values))

        await RisingEdge(dut.clk)
        assert read(dut, "values") == packed(values)
        for _ in range(250):
            address = rng.randrange(1 << address_bits) if rng.random() < 0.3 else rng.randrange(4 * len(words) + 8)
            address %= 1 << address_bits
            index = address // 4
            edge = get_sim_time("ns")
            if rng.random() < 0.5:
                data, strobe = rng.getrandbits(32), rng.choice([15, rng.getrandbits(4)])
                if index < len(values):
                    values[index] = merged(values[index], data, strobe, masks[index])
                want = OKAY if index < len(values) else SLVERR

                def landed(want: int = packed(values)) -> None:
                    assert read(dut, "values") == want, "not the new value when bvalid rises"

                assert await lite.write(address, data, strobe, landed) == want
                cycles = 3
            else:
                readable = [*values, *status]
                assert await lite.read(address) == ((readable[index], OKAY) if index < len(readable) else (0, SLVERR))
                cycles = 2
            assert read(dut, "values") == packed(values)
            if pause == 0.0:
                assert get_sim_time("ns") - edge == 10 * cycles, "not the stated latency"


@cocotb.test(**LIMIT)
async def both_directions_at_once(dut: Any) -> None:
    """Writes of one word while others are read; a reset at any moment restores all."""
    Clock(dut.clk, 10, unit="ns").start()
    words, masks = JOB["reset"], JOB["masks"]
    for seed in range(12):
        rng = random.Random(seed)
        lite = Lite(dut, rng, rng.choice([0.0, 0.5]))
        lite.quiet()
        await reset(dut)

        async def write(lite: Lite = lite, rng: random.Random = rng) -> None:
            for _ in range(20):
                assert await lite.write(0, rng.getrandbits(32)) == OKAY

        async def look(lite: Lite = lite, rng: random.Random = rng) -> None:
            for _ in range(20):
                index = rng.randrange(1, len(words))
                assert await lite.read(4 * index) == (words[index] & masks[index], OKAY)

        tasks = [cocotb.start_soon(write()), cocotb.start_soon(look())]
        if seed % 2:
            await Combine(*tasks)
        else:
            for _ in range(rng.randrange(3, 40)):
                await RisingEdge(dut.clk)
        await reset(dut)
        for task in tasks:
            task.cancel()
        lite.quiet()
        await RisingEdge(dut.clk)
        assert not read(dut, "s_axil_bvalid")
        assert not read(dut, "s_axil_rvalid")
        assert await lite.read(0) == (words[0] & masks[0], OKAY)


@cocotb.test(**LIMIT)
async def queued_writes(dut: Any) -> None:
    """Addresses and data that do not wait for responses: none is lost, all are in order."""
    Clock(dut.clk, 10, unit="ns").start()
    words, masks = JOB["reset"], JOB["masks"]
    for seed in range(4):
        rng = random.Random(seed)
        lite = Lite(dut, rng, 0.2)
        lite.b.pause = rng.choice([0.0, 0.5, 0.8])
        lite.quiet()
        await reset(dut)
        values = [word & mask for word, mask in zip(words, masks, strict=True)]
        writes = [(4 * rng.randrange(len(words) + 1), rng.getrandbits(32), rng.getrandbits(4)) for _ in range(60)]

        async def addresses(lite: Lite = lite, writes: list[tuple[int, int, int]] = writes) -> None:
            for address, _, _ in writes:
                await lite.aw.send(address)

        async def data(lite: Lite = lite, writes: list[tuple[int, int, int]] = writes) -> None:
            for _, word, strobe in writes:
                await lite.w.send(word, strobe)

        tasks = [cocotb.start_soon(addresses()), cocotb.start_soon(data())]
        for address, word, strobe in writes:
            index = address // 4
            assert await lite.b.take() == [OKAY if index < len(values) else SLVERR]
            if index < len(values):
                values[index] = merged(values[index], word, strobe, masks[index])
        await Combine(*tasks)
        for index, word in enumerate(values):
            assert await lite.read(4 * index) == (word, OKAY)


@cocotb.test(**LIMIT)
async def offers_in_reset(dut: Any) -> None:
    """An access that is offered in any cycle of a reset waits, and is the first one after it."""
    Clock(dut.clk, 10, unit="ns").start()
    words, masks = JOB["reset"], JOB["masks"]
    values = [word & mask for word, mask in zip(words, masks, strict=True)]
    for early in range(5):
        lite = Lite(dut, random.Random(early), 0.0)
        lite.quiet()
        await reset(dut)
        data = ~words[0] & 0xFFFFFFFF
        offers = lite.write(0, data), lite.read(4)
        assert await reset_with_offers(dut, READY, early, *offers) == [OKAY, (values[1], OKAY)]
        assert await lite.read(0) == (data & masks[0], OKAY)
