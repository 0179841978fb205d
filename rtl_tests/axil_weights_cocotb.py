"""Checks of hg_axil_weights, run by cocotb; the environment variable AXI_JOB names a JSON file."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import cocotb
from axi_bus import LIMIT, OKAY, READY, SLVERR, Lite, read, reset, reset_with_offers
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge
from cocotb.utils import get_sim_time

JOB: dict[str, Any] = json.loads(Path(os.environ["AXI_JOB"]).read_text())
UNIT, DATA, INFO = 0, 4, 8


class Bus:
    """Events on the load bus: ("start", unit) and ("piece", unit, data)."""

    def __init__(self, dut: Any) -> None:
        self.dut, self.seen = dut, []  # type: ignore[var-annotated]
        cocotb.start_soon(self.watch())

    async def watch(self) -> None:
        while True:
            await RisingEdge(self.dut.clk)
            reset = read(self.dut, "rst")
            await ReadOnly()
            load = self.dut.load.value
            if not load.is_resolvable:
                continue
            word = int(load)
            unit, data = word >> 32 & 0xFFFF, word & 0xFFFFFFFF
            assert word >> 48 != 3, "start and piece at once"
            assert not (reset and word >> 48), "not quiet in a reset"
            if word >> 48 == 1:
                self.seen.append(("start", unit))
            elif word >> 48 == 2:
                self.seen.append(("piece", unit, data))


@cocotb.test(**LIMIT)
async def accesses(dut: Any) -> None:
    """Random writes and reads at several speeds: the bus, responses, latencies."""
    Clock(dut.clk, 10, unit="ns").start()
    units = JOB["units"]
    bus = Bus(dut)
    for seed, pause in enumerate((0.0, 0.3, 0.7)):
        rng = random.Random(seed)
        lite = Lite(dut, rng, pause)
        lite.quiet()
        await reset(dut)
        await RisingEdge(dut.clk)
        bus.seen.clear()
        chosen, expected = -1, []
        for k in range(300):
            edge, low = get_sim_time("ns"), rng.randrange(4)
            if rng.random() < 0.7:
                # Data alone at first: no unit is chosen yet.
                address = (
                    rng.choice([DATA, DATA, INFO, 12]) if k < 6 else rng.choice([UNIT, DATA, DATA, DATA, INFO, 12])
                )
                strobe = rng.choice([15, 15, 15, 15, rng.randrange(15)])
                data = rng.getrandbits(32)
                if address == UNIT:
                    data = rng.choice([rng.randrange(units), units - 1, units, units + 1, data, units - 1 + (1 << 16)])
                good = strobe == 15 and ((address == UNIT and data < units) or (address == DATA and chosen >= 0))
                if good:
                    chosen = data if address == UNIT else chosen
                    expected.append(("start", data) if address == UNIT else ("piece", chosen, data))
                assert await lite.write(address + low, data, strobe) == (OKAY if good else SLVERR)
                cycles = 3
            else:
                address = rng.choice([UNIT, DATA, INFO, 12])
                readable = {UNIT: (max(chosen, 0), OKAY), INFO: (0x48470000 + units - 1, OKAY)}
                assert await lite.read(address + low) == readable.get(address, (0, SLVERR))
                cycles = 2
            if pause == 0.0:
                assert get_sim_time("ns") - edge == 10 * cycles, "not the stated latency"
            assert bus.seen == expected, (bus.seen[-3:], expected[-3:])
        assert len(expected) > 30


@cocotb.test(**LIMIT)
async def queued_writes(dut: Any) -> None:
    """Addresses and data that do not wait for responses: every piece comes, in order; reset ends all."""
    Clock(dut.clk, 10, unit="ns").start()
    bus = Bus(dut)
    for seed in range(6):
        rng = random.Random(seed)
        lite = Lite(dut, rng, rng.choice([0.0, 0.2]))
        lite.b.pause = rng.choice([0.0, 0.5, 0.8])
        lite.quiet()
        await reset(dut)
        await RisingEdge(dut.clk)
        bus.seen.clear()
        unit = JOB["units"] - 1
        words = [rng.getrandbits(32) for _ in range(50)]

        async def addresses(lite: Lite = lite, count: int = len(words)) -> None:
            for address in (UNIT, *[DATA] * count):
                await lite.aw.send(address)

        async def data(lite: Lite = lite, all_: list[int] = [unit, *words]) -> None:  # noqa: B006
            for word in all_:
                await lite.w.send(word, 15)

        tasks = [cocotb.start_soon(addresses()), cocotb.start_soon(data())]
        stop = 20 if seed % 3 == 2 else len(words) + 1
        for _ in range(stop):
            assert await lite.b.take() == [OKAY]
        if stop == len(words) + 1:
            assert bus.seen == [("start", unit), *(("piece", unit, word) for word in words)]
        await reset(dut)
        for task in tasks:
            task.cancel()
        lite.quiet()
        await RisingEdge(dut.clk)
        assert not read(dut, "s_axil_bvalid")
        assert not read(dut, "s_axil_rvalid")
        assert read(dut, "load") >> 48 == 0
        assert await lite.read(UNIT) == (0, OKAY)
        assert await lite.write(DATA, 1) == SLVERR


@cocotb.test(**LIMIT)
async def offers_in_reset(dut: Any) -> None:
    """An access that is offered in any cycle of a reset waits, and is the first one after it."""
    Clock(dut.clk, 10, unit="ns").start()
    bus = Bus(dut)
    for early in range(5):
        lite = Lite(dut, random.Random(early), 0.0)
        lite.quiet()
        await reset(dut)
        await RisingEdge(dut.clk)
        bus.seen.clear()
        unit = JOB["units"] - 1
        offers = lite.write(UNIT, unit), lite.read(INFO)
        assert await reset_with_offers(dut, READY, early, *offers) == [OKAY, (0x48470000 + unit, OKAY)]
        assert await lite.write(DATA, early) == OKAY
        assert bus.seen == [("start", unit), ("piece", unit, early)]
