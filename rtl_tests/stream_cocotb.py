"""Driver, monitor and checks of any module of the library, run by cocotb inside a simulator.

The environment variable STREAM_JOB names a JSON file with the fields of `streams.Stream` or
`streams.Pipeline`; the tests that do not apply to a job skip themselves.
"""

from __future__ import annotations

import json
import os
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, Timer

JOB: dict[str, Any] = json.loads(Path(os.environ["STREAM_JOB"]).read_text())
STREAM: bool = JOB["kind"] == "stream"


def table(columns: dict[str, list[str]]) -> list[dict[str, int]]:
    """Columns of hexadecimal words, one for each port, as rows."""
    rows = zip(*([int(word, 16) for word in column] for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


SENT = table(JOB["inputs"])
EXPECTED = table(JOB["outputs"])
LATENCY: int = JOB["latency"]
# Ports other than *_valid and *_ready that belong to the stream. For ports outside the handshake, levels[port][n] is
# the value after n input beats.
S, M = (next(iter(JOB[side])).removesuffix("data") for side in ("inputs", "outputs"))
LEVELS: dict[str, list[int]] = JOB.get("levels", {})


@dataclass
class Trace:
    """The clock edges at which beats went in and came out."""

    went_in: list[int] = field(default_factory=list)
    came_out: list[int] = field(default_factory=list)


def drive(dut: Any, values: dict[str, int]) -> None:
    for name, value in values.items():
        getattr(dut, name).value = value


def sample(dut: Any, names: dict[str, int]) -> dict[str, int]:
    return {name: int(getattr(dut, name).value) for name in names}


def noise(dut: Any, rng: random.Random) -> dict[str, int]:
    """Arbitrary data for cycles in which it must go nowhere."""
    return {name: rng.getrandbits(len(getattr(dut, name))) for name in JOB["inputs"]}


def due(count: int) -> int:
    """Output beats that `count` input beats complete."""
    return sum(last < count for last in JOB["completes"])


async def reset(dut: Any, rng: random.Random) -> None:
    """Reset for one to three cycles, with random handshakes of source and sink."""
    for _ in range(rng.randint(1, 3)):
        handshake = {f"{S}valid": rng.getrandbits(1), f"{M}ready": rng.getrandbits(1)}
        drive(dut, {"rst": 1, **handshake, **noise(dut, rng)})
        await RisingEdge(dut.clk)
    drive(dut, {"rst": 0, f"{S}valid": 0, f"{M}ready": 0})


async def stream(
    dut: Any,
    rng: random.Random,
    idle: float,
    stall: float,
    beats: int,
    patience: int | None = None,
) -> Trace:
    """Send `beats` beats and check all that comes out of them.

    `idle` and `stall` are the chances that a cycle offers no beat and takes none. It ends when
    everything came out, or after `patience` cycles, with the pipeline left as it is.
    """
    trace = Trace()
    valid = ready = False
    waiting: dict[str, int] | None = None  # what a stalled output has to keep
    outputs, cycle = due(beats), 0
    limit = 50 * (beats + outputs * JOB["gap"]) + 1000
    s_ready, m_valid = getattr(dut, f"{S}ready"), getattr(dut, f"{M}valid")
    while len(trace.came_out) < outputs or len(trace.went_in) < beats:
        if cycle == patience:
            break
        await RisingEdge(dut.clk)  # every value read here is the one before this edge
        for port, values in LEVELS.items():
            assert int(getattr(dut, port).value) == values[len(trace.went_in)], f"{port} at cycle {cycle}"
        if int(m_valid.value):
            words, place = sample(dut, JOB["outputs"]), len(trace.came_out)
            assert place < due(len(trace.went_in)), f"beat {place} came before its inputs"
            assert words == EXPECTED[place], f"beat {place}: {words}, not {EXPECTED[place]}"
            waiting = None if ready else words
            if ready:
                trace.came_out.append(cycle)
        else:
            assert waiting is None, "a stalled beat disappeared"
        if int(s_ready.value) and valid:
            trace.went_in.append(cycle)
            valid = False
        if not valid and len(trace.went_in) < beats:
            valid = rng.random() >= idle
        ready = rng.random() >= stall
        drive(dut, SENT[len(trace.went_in)] if valid else noise(dut, rng))
        drive(dut, {f"{S}valid": int(valid), f"{M}ready": int(ready)})
        cycle += 1
        assert cycle < limit, f"no progress after {trace.went_in[-1:]}, {trace.came_out[-1:]}"
    return trace


async def drained(dut: Any) -> None:
    """Nothing comes after the last beat."""
    drive(dut, {f"{S}valid": 0, f"{M}ready": 1})
    for _ in range(LATENCY + 3):
        await RisingEdge(dut.clk)
        assert not int(getattr(dut, f"{M}valid").value), "a beat too many"


def check_timing(trace: Trace) -> None:
    """If the sink never stalls, a beat leaves as soon as the stated latency allows."""
    previous = -JOB["gap"]
    for place, (edge, last) in enumerate(zip(trace.came_out, JOB["completes"], strict=False)):
        expected = max(trace.went_in[last] + LATENCY, previous + JOB["gap"])
        assert edge == expected, f"beat {place} came at {edge}, not at {expected}"
        previous = edge


def short_run() -> int:
    """Number of beats for the slow runs, chosen so that no output is incomplete."""
    expected = min(JOB["short"], len(SENT))
    return min((last + 1 for last in JOB["completes"] if last + 1 >= expected), default=len(SENT))


@cocotb.test(skip=not STREAM)
async def full_rate(dut: Any) -> None:
    """All beats without a pause: right values, the stated latency, no bubble on the fast side."""
    Clock(dut.clk, 10, unit="ns").start()
    rng = random.Random(1)
    await reset(dut, rng)
    trace = await stream(dut, rng, 0.0, 0.0, len(SENT))
    assert (len(trace.went_in), len(trace.came_out)) == (len(SENT), len(EXPECTED))
    check_timing(trace)
    edges, step = (trace.went_in, 1) if JOB["continuous"] == "input" else (trace.came_out, JOB["gap"])
    assert edges == list(range(edges[0], edges[0] + step * len(edges), step)), "a bubble"
    await drained(dut)


@cocotb.test(skip=not STREAM)
async def idle_and_stalls(dut: Any) -> None:
    """The same beats under random idle cycles, back-pressure, and both."""
    Clock(dut.clk, 10, unit="ns").start()
    rng, beats = random.Random(2), short_run()
    for idle, stall in [(0.5, 0.0), (0.0, 0.5), (0.4, 0.4), (0.1, 0.8), (0.9, 0.1)]:
        await reset(dut, rng)
        trace = await stream(dut, rng, idle, stall, beats)
        assert (len(trace.went_in), len(trace.came_out)) == (beats, due(beats))
        if stall == 0.0:
            check_timing(trace)
        await drained(dut)


@cocotb.test(skip=not STREAM or JOB.get("capacity") is None)
async def fills_while_stalled(dut: Any) -> None:
    """If the output is never accepted, the unit accepts as many beats as it has room for."""
    Clock(dut.clk, 10, unit="ns").start()
    rng, capacity = random.Random(3), JOB["capacity"]
    assert len(SENT) > capacity, "the job is too short for this test"
    await reset(dut, rng)
    trace = await stream(dut, rng, 0.0, 1.0, len(SENT), patience=3 * capacity + LATENCY + 8)
    assert len(trace.went_in) == capacity


@cocotb.test(skip=not STREAM)
async def reset_in_between(dut: Any) -> None:
    """A reset at any moment empties the module and starts its counters again."""
    Clock(dut.clk, 10, unit="ns").start()
    rng, beats = random.Random(4), short_run()
    for patience in (2, 5, 11, 3 * LATENCY + 7, 4 * LATENCY + 30):
        await reset(dut, rng)
        await stream(dut, rng, 0.2, 0.2, beats, patience)
        await reset(dut, rng)
        await RisingEdge(dut.clk)
        assert not int(getattr(dut, f"{M}valid").value), "a beat survived the reset"
        for port, values in LEVELS.items():
            assert int(getattr(dut, port).value) == values[0], f"{port} survived the reset"
        trace = await stream(dut, rng, 0.2, 0.2, min(beats, 60) if patience < 11 else beats)
        assert trace.came_out


@cocotb.test(skip=not STREAM or not JOB.get("waits_for_reset"))
async def a_beat_offered_in_reset_waits(dut: Any) -> None:
    """It is not taken while reset lasts, and is the first one afterwards; so is one that is offered right then."""
    Clock(dut.clk, 10, unit="ns").start()
    rng = random.Random(8)
    await reset(dut, rng)
    for offered in range(6):
        for cycle in range(max(4, offered) + 1):
            beat = SENT[0] if cycle >= offered else noise(dut, rng)
            drive(dut, {**beat, "rst": int(cycle < 4), f"{S}valid": int(cycle >= offered), f"{M}ready": cycle % 2})
            await Timer(1, unit="ns")
            assert int(getattr(dut, f"{S}ready").value) == (cycle >= 4), f"ready in cycle {cycle}"
            await RisingEdge(dut.clk)
        drive(dut, {f"{S}valid": 0})
        await Timer(1, unit="ns")
        assert int(getattr(dut, f"{M}valid").value)
        assert sample(dut, JOB["outputs"]) == EXPECTED[0]


@cocotb.test(skip=not STREAM or not JOB.get("registered"))
async def ready_is_registered(dut: Any) -> None:
    """Within a cycle neither s_ready nor m_valid nor m_data follows an input."""
    Clock(dut.clk, 10, unit="ns").start()
    rng = random.Random(5)
    await reset(dut, rng)
    await RisingEdge(dut.clk)
    watched = {f"{S}ready": 0, f"{M}valid": 0}
    for _ in range(60):
        port_values = []
        for s_valid, m_ready in ((0, 0), (0, 1), (1, 0), (1, 1)):
            drive(dut, {f"{S}valid": s_valid, f"{M}ready": m_ready, **noise(dut, rng)})
            await Timer(1, unit="ns")
            data = JOB["outputs"] if int(getattr(dut, f"{M}valid").value) else {}
            port_values.append(sample(dut, {**watched, **data}))
        assert all(state == port_values[0] for state in port_values)
        drive(dut, {f"{S}valid": rng.getrandbits(1), f"{M}ready": rng.getrandbits(1)})
        await RisingEdge(dut.clk)


async def run_pipeline(dut: Any, rng: random.Random, pause: float) -> None:
    """One row of inputs an enabled cycle, each seen LATENCY enabled edges later."""
    enable: str | None = JOB["enable"]
    row, enabled = 0, True
    await RisingEdge(dut.clk)
    drive(dut, SENT[0] | ({enable: 1} if enable else {}))
    while row < len(SENT) + LATENCY:
        await RisingEdge(dut.clk)
        place = row - LATENCY
        if place >= JOB["unknown"] and (enabled or LATENCY):
            words = sample(dut, JOB["outputs"])
            assert words == EXPECTED[place], f"row {place}: {words}, not {EXPECTED[place]}"
        row += enabled
        enabled = enable is None or rng.random() >= pause
        drive(dut, SENT[row] if enabled and row < len(SENT) else noise(dut, rng))
        if enable:
            drive(dut, {enable: int(enabled)})


@cocotb.test(skip=STREAM)
async def pipeline_at_full_rate(dut: Any) -> None:
    """All rows, one a cycle, with the stated latency."""
    Clock(dut.clk, 10, unit="ns").start()
    await run_pipeline(dut, random.Random(6), pause=0.0)


@cocotb.test(skip=STREAM or JOB.get("enable") is None)
async def pipeline_with_pauses(dut: Any) -> None:
    """While disabled, no register changes, independent of the inputs."""
    Clock(dut.clk, 10, unit="ns").start()
    for pause in (0.3, 0.8):
        await run_pipeline(dut, random.Random(7), pause)
