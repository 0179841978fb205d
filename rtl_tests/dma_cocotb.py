"""Checks of hg_dma against cocotbext-axi, run by cocotb; the environment variable AXI_JOB names a JSON file."""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import os
import random
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge
from cocotbext.axi import (
    AddressSpace,
    AxiBus,
    AxiLiteBus,
    AxiLiteMaster,
    AxiResp,
    AxiSlave,
    AxiStreamBus,
    AxiStreamFrame,
    AxiStreamSink,
    AxiStreamSource,
    MemoryRegion,
)
from dma_pauses import pauses

JOB: dict[str, Any] = json.loads(Path(os.environ["AXI_JOB"]).read_text())
ADDR_W, DATA_W, IN_WORDS, OUT_WORDS, BURST = (
    JOB[name] for name in ("ADDR_W", "DATA_W", "IN_WORDS", "OUT_WORDS", "BURST")
)
WORD = DATA_W // 8
IN_BYTES, OUT_BYTES = IN_WORDS * WORD, OUT_WORDS * WORD
CONTROL, STATUS, SRC, DST, FRAMES, SENT, RECEIVED, CYCLES, IN_SIZE, OUT_SIZE = 0, 4, 8, 16, 24, 28, 32, 36, 40, 44
START, IRQ_ENABLE, SEQUENCE = 1, 2, 4
BUSY, DONE, READ_ERROR, WRITE_ERROR, MISPLACED, REFUSED = (1 << bit for bit in range(6))
#: Memory at the bottom and at the top of the address space. Other addresses answer with an error.
SIZE = min(1 << 17, 1 << (ADDR_W - 2))
HIGH = (1 << ADDR_W) - SIZE
#: Bytes next to the output that have to keep their value.
GUARD = 2 * WORD
LIMIT: dict[str, Any] = {"timeout_time": 20, "timeout_unit": "ms"}


def answer(frame: bytes) -> bytes:
    """Output frame of the core of these tests."""
    return hashlib.shake_128(frame).digest(OUT_BYTES)


class Bursts:
    """Observes the AXI port: its rules, and the bursts since `forget`."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.forget()

    def forget(self) -> None:
        self.requests: dict[str, list[tuple[int, int]]] = {"ar": [], "aw": []}
        self.beats, self.sent = 0, [0]

    def value(self, name: str) -> int:
        return int(getattr(self.dut, f"m_axi_{name}").value)

    async def run(self) -> None:
        payloads = {
            side: [side + part for part in ("addr", "len", "size", "burst", "cache", "prot", "id")]
            for side in ("ar", "aw")
        } | {"w": ["wdata", "wstrb", "wlast"]}
        held: dict[str, list[int]] = {}
        while True:
            await FallingEdge(self.dut.clk)
            if self.dut.rst.value:
                held.clear()
                await RisingEdge(self.dut.clk)
                if int(self.dut.rst.value):
                    continue
            assert self.value("rready")
            assert self.value("bready")
            for side, names in payloads.items():
                if not self.value(f"{side}valid"):
                    assert side not in held, f"{side}valid fell"
                    continue
                words = [self.value(name) for name in names]
                assert held.get(side, words) == words, f"{side} changed"
                held[side] = words
                if self.value(f"{side}ready"):
                    del held[side]
                    self.accept(side, words)

    def accept(self, side: str, words: list[int]) -> None:
        if side == "w":
            _, strobe, last = words
            assert strobe == (1 << WORD) - 1
            self.sent[-1] += 1
            if last:
                self.sent.append(0)
            return
        address, length, *constants = words
        assert constants == [WORD.bit_length() - 1, 1, 3, 0, 0]
        assert address % WORD == 0
        assert address // 4096 == (address + (length + 1) * WORD - 1) // 4096, "a burst crosses 4 KB"
        self.requests[side].append((address, length + 1))

    def check(self, side: str, address: int, words: int) -> None:
        """The requests cover `words` words from an address on, in the fewest bursts."""
        want = []
        while words:
            length = min(words, BURST, (4096 - address % 4096) // WORD)
            want.append((address, length))
            address, words = address + length * WORD, words - length
        assert self.requests[side] == want
        if side == "aw":
            assert self.sent == [*(length for _, length in want), 0]


async def replies_follow_requests(dut: Any) -> None:
    """Check that the registers reply only to what they have accepted: read data to an address, a response to both
    parts of a write."""
    accepted = dict.fromkeys(("ar", "aw", "w"), 0)
    while True:
        await FallingEdge(dut.clk)
        if dut.rst.value:
            accepted = dict.fromkeys(accepted, 0)
            continue
        moves = {
            side: (int(getattr(dut, f"s_axil_{side}valid").value), int(getattr(dut, f"s_axil_{side}ready").value))
            for side in (*accepted, "r", "b")
        }
        for reply, requests in (("r", ["ar"]), ("b", ["aw", "w"])):
            valid, ready = moves[reply]
            assert not valid or all(accepted[side] for side in requests), f"{reply}valid before a request"
            for side in requests:
                accepted[side] += all(moves[side]) - (valid and ready)


class System:
    """hg_dma between memory, a processor and a core, all of cocotbext-axi but the function of the core."""

    def __init__(self, dut: Any, seed: int, has_memory: bool = True) -> None:
        logging.getLogger("cocotb.hg_dma").setLevel(logging.ERROR)
        self.dut, self.rng = dut, random.Random(seed)
        Clock(dut.clk, 10, unit="ns").start()
        dut.rst.value = 1
        self.registers = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
        self.space = AddressSpace(1 << ADDR_W)
        self.regions = {base: MemoryRegion(SIZE) for base in (0, HIGH)}
        for base, region in self.regions.items():
            self.space.register_region(region, base)
        if has_memory:
            self.memory = AxiSlave(AxiBus.from_prefix(dut, "m_axi"), dut.clk, dut.rst, target=self.space)
        self.sink = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis"), dut.clk, dut.rst)
        self.source = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis"), dut.clk, dut.rst)
        self.bursts = Bursts(dut)
        cocotb.start_soon(self.bursts.run())
        cocotb.start_soon(replies_follow_requests(dut))
        self.core = cocotb.start_soon(self.compute())

    async def reset(self, cycles: int = 3) -> None:
        self.dut.rst.value = 1
        self.core.cancel()
        for _ in range(cycles):
            await RisingEdge(self.dut.clk)
        self.sink.clear()
        self.source.clear()
        self.dut.rst.value = 0
        self.bursts.forget()
        self.core = cocotb.start_soon(self.compute())
        await RisingEdge(self.dut.clk)

    async def compute(self) -> None:
        while True:
            frame = await self.sink.recv()
            assert len(frame.tdata) == IN_BYTES, "tlast at a wrong word"
            await self.source.send(AxiStreamFrame(answer(bytes(frame.tdata))))

    def stall(self, memory: float, stream: float) -> None:
        """Probabilities of pauses: in each channel of memory, and of the core."""
        reads, writes = self.memory.read_if, self.memory.write_if
        channels = (reads.ar_channel, reads.r_channel, writes.aw_channel, writes.w_channel, writes.b_channel)
        for port, chance in [*((channel, memory) for channel in channels), (self.sink, stream), (self.source, stream)]:
            port.set_pause_generator(pauses(random.Random(self.rng.random()), chance))

    def address(self, base: int, size: int) -> int:
        """A place for `size` bytes and guards: often across, or exactly before, a multiple of 4 KB."""
        low, high = base + GUARD, base + SIZE - size - GUARD
        near = self.rng.randrange(base, base + SIZE, 4096) - self.rng.choice([0, size, self.rng.randrange(size + 1)])
        place = self.rng.choice([self.rng.randint(low, high), near, near])
        return min(max(place, low), high) // WORD * WORD

    async def read(self, register: int) -> int:
        return int(await self.registers.read_dword(register))

    async def order(self, source: int, target: int, count: int, control: int = START) -> None:
        """Write the registers of a job, in any order, CONTROL last."""
        writes = [(SRC, source & 0xFFFFFFFF), (DST, target & 0xFFFFFFFF), (FRAMES, count)]
        if ADDR_W > 32:
            writes += [(SRC + 4, source >> 32), (DST + 4, target >> 32)]
        self.rng.shuffle(writes)
        for register, value in writes:
            await self.registers.write_dword(register, value)
        await self.registers.write_dword(CONTROL, control)

    async def finished(self) -> int:
        """STATUS at the end of a job."""
        while (status := await self.read(STATUS)) & BUSY:
            pass
        return status

    async def job(self, count: int, interrupt: bool = False) -> None:
        """A job of random frames, checked."""
        self.bursts.forget()
        source_base, target_base = self.rng.choice([(0, HIGH), (HIGH, 0)])
        source = self.address(source_base, count * IN_BYTES)
        target = self.address(target_base, count * OUT_BYTES)
        frames = [self.rng.randbytes(IN_BYTES) for _ in range(count)]
        await self.space.write(source, b"".join(frames))
        around = self.rng.randbytes(count * OUT_BYTES + 2 * GUARD)
        await self.space.write(target - GUARD, around)
        await self.order(source, target, count, START | IRQ_ENABLE * interrupt)
        assert await self.read(CONTROL) == IRQ_ENABLE * interrupt
        if interrupt:
            if not self.dut.irq.value:
                await RisingEdge(self.dut.irq)
            assert await self.read(STATUS) == DONE
        else:
            assert await self.finished() == DONE
            assert not self.dut.irq.value
        got = await self.space.read(target - GUARD, len(around))
        assert got == around[:GUARD] + b"".join(map(answer, frames)) + around[-GUARD:]
        assert [await self.read(register) for register in (SENT, RECEIVED)] == [count, count]
        self.bursts.check("ar", source, count * IN_WORDS)
        self.bursts.check("aw", target, count * OUT_WORDS)
        await self.registers.write_dword(STATUS, DONE)
        assert await self.read(STATUS) == 0
        assert not self.dut.irq.value


@cocotb.test(**LIMIT)
async def jobs(dut: Any) -> None:
    """Random jobs, with every kind of pause."""
    system = System(dut, JOB["seed"])
    await system.reset()
    assert [await system.read(register) for register in (CONTROL, STATUS, SRC, DST, FRAMES)] == [0] * 5
    assert [await system.read(register) for register in (IN_SIZE, OUT_SIZE)] == [IN_BYTES, OUT_BYTES]
    chances = [(0.0, 0.0), (0.5, 0.0), (0.0, 0.5), (0.5, 0.5), (0.9, 0.2), (0.2, 0.9)]
    for turn in range(JOB["jobs"]):
        system.stall(*chances[turn % len(chances)])
        most = max(1, JOB["words"] // max(IN_WORDS, OUT_WORDS))
        await system.job(system.rng.randint(1, most), bool(turn % 2))


@cocotb.test(**LIMIT)
async def sequences(dut: Any) -> None:
    """tuser is 1 with the first word of a job with SEQUENCE alone, written with START or before it."""
    system = System(dut, 7)
    await system.reset()
    system.stall(0.3, 0.3)
    seen: list[int] = []

    async def watch() -> None:
        while True:
            await RisingEdge(dut.clk)
            if dut.m_axis_tvalid.value and dut.m_axis_tready.value:
                seen.append(int(dut.m_axis_tuser.value))

    cocotb.start_soon(watch())
    for early, late in ((0, 0), (1, 0), (0, 1), (0, 0), (1, 1), (0, 0)):
        seen.clear()
        if early:
            await system.registers.write_dword(CONTROL, SEQUENCE)
            await system.registers.write_dword(CONTROL, 0)
            assert await system.read(CONTROL) == SEQUENCE
        await system.order(0, HIGH, 2, START | SEQUENCE * late)
        assert await system.finished() == DONE
        assert await system.read(CONTROL) == 0
        assert seen == [early | late] + [0] * (2 * IN_WORDS - 1)


@cocotb.test(**LIMIT)
async def full_rate(dut: Any) -> None:
    """CYCLES of a job whose memory and core never pause."""
    system = System(dut, 2)
    await system.reset()
    most = max(IN_WORDS, OUT_WORDS)
    count = -(-max(400, 6 * BURST) // most)
    await system.job(count)
    cycles = await system.read(CYCLES)
    assert count * most < cycles < 1.2 * count * most + 60
    for _ in range(20):
        await RisingEdge(dut.clk)
    assert await system.read(CYCLES) == cycles


@cocotb.test(**LIMIT)
async def errors(dut: Any) -> None:
    """Error responses are reported by side, and the job goes on to its end. The next one is right."""
    system = System(dut, 3)
    await system.reset()
    count = 2 + 2 * min(BURST, 4096 // WORD) // min(IN_WORDS, OUT_WORDS)
    for side in (READ_ERROR, WRITE_ERROR, READ_ERROR | WRITE_ERROR):
        # Part of the job lies beyond memory.
        source = SIZE - WORD if side & READ_ERROR else HIGH
        target = SIZE - WORD if side & WRITE_ERROR else HIGH + SIZE // 2
        system.bursts.forget()
        await system.order(source, target, count)
        assert await system.finished() == DONE | side
        assert await system.read(RECEIVED) == count
        assert sum(system.bursts.sent) == count * OUT_WORDS
        await system.job(1)


@cocotb.test(**LIMIT)
async def refused(dut: Any) -> None:
    """START is refused during a job, without frames, and at addresses within a word."""
    system = System(dut, 4)
    await system.reset()
    for source, target, count in ((0, 0, 0), *((at, 0, 1) for at in _parts()), *((0, at, 1) for at in _parts())):
        await system.order(source, target, count)
        assert await system.read(STATUS) == REFUSED
        assert not system.bursts.requests["ar"]
    await system.job(1)
    # A job that cannot end: the core waits.
    system.source.pause = True
    system.sink.pause = True
    frame = system.rng.randbytes(IN_BYTES)
    await system.space.write(0, frame * 2)
    await system.order(0, HIGH, 2)
    await system.order(4096, 8192, 1)
    assert await system.read(STATUS) == BUSY | REFUSED
    system.sink.pause = system.source.pause = False
    assert await system.finished() == DONE | REFUSED
    assert await system.space.read(HIGH, 2 * OUT_BYTES) == answer(frame) * 2
    assert await system.read(RECEIVED) == 2


def _parts() -> list[int]:
    """Powers of two below a word."""
    return [1 << bit for bit in range(WORD.bit_length() - 1)]


@cocotb.test(**LIMIT)
async def registers(dut: Any) -> None:
    """Bytes of registers, bits that do not exist, and error responses."""
    system = System(dut, 5)
    await system.reset()
    mask = (1 << ADDR_W) - 1
    masks = {SRC: mask, SRC + 4: mask >> 32, DST: mask, DST + 4: mask >> 32, FRAMES: 0xFFFFFFFF}
    held = dict.fromkeys(masks, 0)
    for _ in range(60):
        register = system.rng.choice(list(held))
        place = system.rng.randrange(4)
        data = system.rng.randbytes(system.rng.randint(1, 4 - place))
        response = await system.registers.write(register + place, data)
        assert response.resp == AxiResp.OKAY
        word = bytearray(held[register].to_bytes(4, "little"))
        word[place : place + len(data)] = data
        held[register] = int.from_bytes(word, "little") & masks[register] & 0xFFFFFFFF
        assert {name: await system.read(name) for name in held} == held
    for register in range(0, 64, 4):
        response = await system.registers.read(register, 4)
        assert response.resp == (AxiResp.OKAY if register <= OUT_SIZE else AxiResp.SLVERR)
        if register > OUT_SIZE:
            assert response.data == bytes(4)
    for register in range(SENT, 64, 4):
        response = await system.registers.write(register, b"\xff" * 4)
        assert response.resp == AxiResp.SLVERR
    assert [await system.read(register) for register in (SENT, RECEIVED, CYCLES)] == [0] * 3
    # A byte of CONTROL or STATUS that is not written does nothing.
    await system.order(0, HIGH, 1, 0)
    for register, data in ((CONTROL + 1, b"\xff\xff\xff"), (STATUS, b"\xff")):
        await system.registers.write(register, data)
        assert [await system.read(name) for name in (CONTROL, STATUS)] == [0, 0]
    await system.job(1, interrupt=True)
    assert await system.read(CONTROL) == IRQ_ENABLE
    await system.registers.write(CONTROL + 1, b"\0")
    assert await system.read(CONTROL) == IRQ_ENABLE


@cocotb.test(**LIMIT)
async def irq_stays(dut: Any) -> None:
    """DONE stays until it is cleared; IRQ_ENABLE only masks the interrupt; START clears both."""
    system = System(dut, 6)
    await system.reset()
    await system.space.write(0, bytes(2 * IN_BYTES))
    await system.order(0, HIGH, 1)
    assert await system.finished() == DONE
    assert not dut.irq.value
    await system.registers.write_dword(CONTROL, IRQ_ENABLE)
    assert dut.irq.value
    for written in (0, BUSY, READ_ERROR):
        await system.registers.write_dword(STATUS, written)
        assert await system.read(STATUS) == DONE
    await system.registers.write(STATUS + 1, b"\xff")
    assert await system.read(STATUS) == DONE
    system.sink.pause = True
    await system.registers.write_dword(CONTROL, START | IRQ_ENABLE)
    assert await system.read(STATUS) == BUSY
    assert not dut.irq.value
    # SRC, DST and FRAMES are of the job that started.
    for register in (SRC, DST, FRAMES):
        await system.registers.write_dword(register, 4096)
    system.sink.pause = False
    assert await system.finished() == DONE
    assert await system.space.read(HIGH, OUT_BYTES) == answer(bytes(IN_BYTES))
    assert await system.read(RECEIVED) == 1


@cocotb.test(**LIMIT)
async def misplaced(dut: Any) -> None:
    """A wrong tlast of the core is reported. Words outside of a job wait and belong to the next one."""
    system = System(dut, 7)
    await system.reset()
    system.core.cancel()
    data = system.rng.randbytes(OUT_BYTES)
    await system.source.send(AxiStreamFrame(data))
    for _ in range(50):
        await RisingEdge(dut.clk)
        assert not dut.s_axis_tready.value
    await system.order(0, HIGH, 1)
    assert await system.finished() == DONE
    assert await system.space.read(HIGH, OUT_BYTES) == data
    for lengths in _cuts():
        data = system.rng.randbytes(OUT_BYTES * 2)
        places = list(itertools.accumulate(lengths, initial=0))
        for begin, end in itertools.pairwise(places):
            await system.source.send(AxiStreamFrame(data[begin * WORD : end * WORD]))
        await system.order(0, HIGH, 2)
        assert await system.finished() == DONE | MISPLACED * (lengths != [OUT_WORDS, OUT_WORDS]), lengths
        assert await system.space.read(HIGH, OUT_BYTES * 2) == data
        assert await system.read(RECEIVED) == 2


def _cuts() -> list[list[int]]:
    """Words with tlast at other places than the end of each of two frames, and at these."""
    wrong = [[2 * OUT_WORDS]]
    if OUT_WORDS > 1:
        wrong += [[OUT_WORDS - 1, OUT_WORDS + 1], [OUT_WORDS, OUT_WORDS - 1, 1], [1] * (2 * OUT_WORDS)]
    return [*wrong, [OUT_WORDS, OUT_WORDS]]


@cocotb.test(**LIMIT)
async def late_responses(dut: Any) -> None:
    """At most 255 bursts wait for their responses; a job ends when memory has answered all of them."""
    system = System(dut, 8, has_memory=False)
    await system.reset()
    memory = Answering(dut)
    cocotb.start_soon(memory.run())
    limit = 255 if BURST == 2 else 3
    count = -(-(limit + 20) * BURST // OUT_WORDS) if BURST < 16 else 20
    await system.order(0, HIGH, count)
    for _ in range(100 + 4 * count * max(IN_WORDS, OUT_WORDS)):
        await RisingEdge(dut.clk)
    requests = system.bursts.requests["aw"]
    assert len(requests) == limit if limit == 255 else requests
    assert await system.read(STATUS) == BUSY
    for _ in range(len(requests) - 1):
        memory.responses = 1
        await RisingEdge(dut.clk)
        assert await system.read(STATUS) == BUSY
    while sum(system.bursts.sent) < count * OUT_WORDS:
        memory.responses = 1
        await RisingEdge(dut.clk)
    memory.responses = 1 << 20
    assert await system.finished() == DONE
    assert await system.read(RECEIVED) == count


class Answering:
    """Memory of zeros that accepts everything at once. It answers `responses` writes when it is told to."""

    def __init__(self, dut: Any) -> None:
        self.dut, self.words, self.pending, self.responses = dut, 0, 0, 0
        for name in ("arready", "awready", "wready"):
            getattr(dut, f"m_axi_{name}").value = 1
        for name in ("rvalid", "bvalid", "rdata", "rresp", "bresp", "rlast", "rid", "bid"):
            getattr(dut, f"m_axi_{name}").value = 0

    async def run(self) -> None:
        while True:
            await FallingEdge(self.dut.clk)
            self.words -= int(self.dut.m_axi_rvalid.value)
            self.pending -= int(self.dut.m_axi_bvalid.value)
            self.responses -= int(self.dut.m_axi_bvalid.value)
            if self.dut.m_axi_arvalid.value:
                self.words += int(self.dut.m_axi_arlen.value) + 1
            self.pending += bool(int(self.dut.m_axi_wvalid.value) and int(self.dut.m_axi_wlast.value))
            await RisingEdge(self.dut.clk)
            self.dut.m_axi_rvalid.value = int(self.words > 0)
            self.dut.m_axi_bvalid.value = int(min(self.pending, self.responses) > 0)


@cocotb.test(**LIMIT)
async def resets(dut: Any) -> None:
    """Resets at any time of a job, also of one cycle; everything after them is right."""
    system = System(dut, 9)
    await system.reset()
    for turn in range(JOB["resets"]):
        system.stall(*((0.0, 0.0), (0.3, 0.3), (0.8, 0.1))[turn % 3])
        count = system.rng.randint(1, 1 + JOB["words"] // max(IN_WORDS, OUT_WORDS))
        await system.order(0, HIGH, count, START | IRQ_ENABLE)
        for _ in range(system.rng.randint(0, 20 + system.rng.choice([1, 3]) * count * max(IN_WORDS, OUT_WORDS))):
            await RisingEdge(dut.clk)
        await system.reset(system.rng.choice([1, 2, 5]))
        state = [await system.read(register) for register in (CONTROL, STATUS, SRC, FRAMES, SENT, RECEIVED, CYCLES)]
        assert state == [0] * 7
        assert not system.bursts.requests["ar"]
        assert not system.bursts.requests["aw"]
        await system.job(system.rng.randint(1, 3))
