"""Handshake tests of one streaming unit, run by cocotb inside a simulator.

The environment variable F32_JOB names a JSON file: `latency` in cycles, and `beats` and
`expected`, the input and output words of the stream in hexadecimal.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

JOB: dict[str, Any] = json.loads(Path(os.environ["F32_JOB"]).read_text())
LATENCY: int = JOB["latency"]
BEATS = [int(word, 16) for word in JOB["beats"]]
EXPECTED = [int(word, 16) for word in JOB["expected"]]


async def reset(dut: Any) -> None:
    dut.rst.value = 1
    dut.s_valid.value = 0
    dut.m_ready.value = 0
    dut.s_data.value = 0
    for _ in range(2):
        await RisingEdge(dut.clk)
    dut.rst.value = 0


async def stream(
    dut: Any, rng: random.Random, idle: float, stall: float, accept: int | None = None
) -> list[tuple[int, int]]:
    """Send BEATS and check the results. Returns the edges at which each beat entered and left.

    `idle` and `stall` are the probabilities that a cycle offers or accepts no beat. With `accept`, sending stops after
    that many accepted beats, and the pipeline stays filled.
    """
    went_in: list[int] = []
    came_out: list[int] = []
    valid = ready = False
    waiting: int | None = None  # the word that a stalled output has to keep
    cycle = 0
    while len(came_out) < len(BEATS) and (accept is None or len(went_in) < accept):
        await RisingEdge(dut.clk)  # every value read here is the one before this edge
        if valid and int(dut.s_ready.value):
            went_in.append(cycle)
            valid = False
        if int(dut.m_valid.value):
            word = int(dut.m_data.value)
            assert word == EXPECTED[len(came_out)], f"beat {len(came_out)}: {word:x}"
            assert waiting is None or word == waiting, "a stalled beat changed"
            waiting = None if ready else word
            if ready:
                came_out.append(cycle)
        else:
            assert waiting is None, "a stalled beat disappeared"
        if not valid and len(went_in) < len(BEATS):
            valid = rng.random() >= idle
        ready = rng.random() >= stall
        dut.s_valid.value = int(valid)
        # Data without valid is random and must have no effect.
        dut.s_data.value = BEATS[len(went_in)] if valid else rng.getrandbits(len(dut.s_data))
        dut.m_ready.value = int(ready)
        cycle += 1
        assert cycle < 100 * len(BEATS) + 1000, "no progress"
    return list(zip(went_in, came_out, strict=False))


@cocotb.test()
async def full_speed(dut: Any) -> None:
    """One beat a cycle, each LATENCY cycles after it went in, and nothing after the last."""
    Clock(dut.clk, 10, unit="ns").start()
    await reset(dut)
    edges = await stream(dut, random.Random(1), idle=0.0, stall=0.0)
    assert len(edges) == len(BEATS)
    assert [b - a for a, b in edges] == [LATENCY] * len(BEATS)
    assert [a for a, _ in edges] == list(range(edges[0][0], edges[0][0] + len(BEATS)))
    for _ in range(LATENCY + 3):
        await RisingEdge(dut.clk)
        assert not int(dut.m_valid.value)


@cocotb.test()
async def idle_and_stalls(dut: Any) -> None:
    """The same words under random idle cycles, back-pressure, and both."""
    Clock(dut.clk, 10, unit="ns").start()
    for seed, (idle, stall) in enumerate([(0.5, 0.0), (0.0, 0.5), (0.4, 0.4), (0.1, 0.8), (0.9, 0.1)]):
        await reset(dut)
        edges = await stream(dut, random.Random(seed), idle, stall)
        assert len(edges) == len(BEATS)
        if stall == 0.0:
            assert {b - a for a, b in edges} == {LATENCY}


@cocotb.test()
async def fills_while_stalled(dut: Any) -> None:
    """If the output is never accepted, the unit accepts as many beats as it has stages."""
    Clock(dut.clk, 10, unit="ns").start()
    await reset(dut)
    await stream(dut, random.Random(5), idle=0.0, stall=1.0, accept=LATENCY)
    dut.s_valid.value = 1
    for _ in range(3):
        await RisingEdge(dut.clk)
        assert not int(dut.s_ready.value)
        assert int(dut.m_valid.value)
        assert int(dut.m_data.value) == EXPECTED[0]


@cocotb.test()
async def reset_in_between(dut: Any) -> None:
    """A reset empties the pipeline and starts the constants again."""
    Clock(dut.clk, 10, unit="ns").start()
    await reset(dut)
    await stream(dut, random.Random(7), 0.2, 0.2, accept=3 * len(BEATS) // 7)
    await reset(dut)
    edges = await stream(dut, random.Random(8), 0.2, 0.2)
    assert len(edges) == len(BEATS)
