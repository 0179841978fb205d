"""AXI handshakes for tests that cocotb runs: channels with random pauses, an AXI4-Lite master."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge

OKAY, SLVERR = 0, 2
ALL_BITS = 0xFFFFFFFF
#: Time limit of every test: a hundred thousand cycles.
LIMIT: dict[str, Any] = {"timeout_time": 1, "timeout_unit": "ms"}


def drive(dut: Any, values: dict[str, int]) -> None:
    for name, value in values.items():
        getattr(dut, name).value = value


def read(dut: Any, name: str) -> int:
    return int(getattr(dut, name).value)


class Channel:
    """One valid/ready channel of the module. `pause`: probability of an idle or stalled cycle."""

    def __init__(self, dut: Any, prefix: str, payload: list[str], rng: random.Random, pause: float) -> None:
        self.dut, self.rng, self.pause = dut, rng, pause
        self.valid, self.ready = f"{prefix}valid", f"{prefix}ready"
        self.payload = [prefix + name for name in payload]

    def quiet(self) -> None:
        drive(self.dut, {name: self.rng.getrandbits(len(getattr(self.dut, name))) for name in self.payload})
        drive(self.dut, {self.valid: 0})

    async def send(self, *words: int) -> None:
        while self.rng.random() < self.pause:
            await RisingEdge(self.dut.clk)
        drive(self.dut, dict(zip(self.payload, words, strict=True)))
        drive(self.dut, {self.valid: 1})
        await RisingEdge(self.dut.clk)
        while not read(self.dut, self.ready):
            await RisingEdge(self.dut.clk)
        self.quiet()

    async def take(self, on_offer: Callable[[], None] | None = None) -> list[int]:
        """Return the next words, checked to be stable until accepted. `on_offer` runs when they first appear."""
        waiting: list[int] | None = None
        while True:
            ready = self.rng.random() >= self.pause
            drive(self.dut, {self.ready: int(ready)})
            await RisingEdge(self.dut.clk)
            if not read(self.dut, self.valid):
                assert waiting is None, f"{self.valid} fell without {self.ready}"
                continue
            words = [read(self.dut, name) for name in self.payload]
            assert waiting in (None, words), f"{self.valid}: {waiting} became {words}"
            if waiting is None and on_offer is not None:
                on_offer()
            waiting = words
            if ready:
                drive(self.dut, {self.ready: 0})
                return words


class Lite:
    """An AXI4-Lite master."""

    def __init__(self, dut: Any, rng: random.Random, pause: float) -> None:
        self.dut = dut
        self.aw = Channel(dut, "s_axil_aw", ["addr"], rng, pause)
        self.w = Channel(dut, "s_axil_w", ["data", "strb"], rng, pause)
        self.b = Channel(dut, "s_axil_b", ["resp"], rng, pause)
        self.ar = Channel(dut, "s_axil_ar", ["addr"], rng, pause)
        self.r = Channel(dut, "s_axil_r", ["data", "resp"], rng, pause)

    def quiet(self) -> None:
        for channel in (self.aw, self.w, self.ar):
            channel.quiet()
        drive(self.dut, {self.b.ready: 0, self.r.ready: 0})

    async def write(self, address: int, data: int, strobe: int = 15, on_offer: Callable[[], None] | None = None) -> int:
        requests = [cocotb.start_soon(self.aw.send(address)), cocotb.start_soon(self.w.send(data, strobe))]
        (response,) = await self.b.take(on_offer)
        assert all(task.done() for task in requests), "a response before its write"
        return response

    async def read(self, address: int) -> tuple[int, int]:
        request = cocotb.start_soon(self.ar.send(address))
        data, response = await self.r.take()
        assert request.done(), "data before its address"
        return data, response


async def reset(dut: Any) -> None:
    drive(dut, {"rst": 1})
    for _ in range(2):
        await RisingEdge(dut.clk)
    drive(dut, {"rst": 0})


#: Ready outputs of an AXI4-Lite slave.
READY = ("s_axil_awready", "s_axil_wready", "s_axil_arready")


async def reset_with_offers(dut: Any, ready: Sequence[str], early: int, *offers: Coroutine[Any, Any, Any]) -> list[Any]:
    """Reset for five cycles and check that all `ready` outputs stay low. Returns the results of `offers`.

    The offers begin in cycle `early` of the reset.
    """
    tasks = []
    drive(dut, {"rst": 1})
    for cycle in range(5):
        if cycle == early:
            tasks = [cocotb.start_soon(offer) for offer in offers]
        await ReadOnly()
        assert not any(read(dut, name) for name in ready), f"ready is high in cycle {cycle} of a reset"
        await RisingEdge(dut.clk)
    drive(dut, {"rst": 0})
    return [await task for task in tasks]


def merged(old: int, new: int, strobe: int, mask: int = ALL_BITS) -> int:
    chosen = sum(0xFF << (8 * k) for k in range(4) if strobe >> k & 1)
    return (old & ~chosen) | (new & chosen & mask)
