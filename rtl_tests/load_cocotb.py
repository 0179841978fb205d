"""Checks of hg_load, run by cocotb; the environment variable AXI_JOB names a JSON file."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import cocotb
from axi_bus import LIMIT, drive, read, reset
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

JOB: dict[str, Any] = json.loads(Path(os.environ["AXI_JOB"]).read_text())


@cocotb.test(**LIMIT)
async def words(dut: Any) -> None:
    """Random starts, pieces and resets, for this unit and others. Checks the written words and their cycles."""
    Clock(dut.clk, 10, unit="ns").start()
    unit, count, width = (JOB[name] for name in ("unit", "words", "width"))
    loadable = unit >= 0
    pieces, rng = -(-width // 32), random.Random(width)
    drive(dut, {"load": 0})
    await reset(dut)
    live, received_pieces, place = False, [0] * pieces, 0
    due: tuple[int, int] | None = None
    complete_loads = written = 0
    for _ in range(3000):
        to = unit if rng.random() < 0.9 else rng.choice([unit ^ 1, unit ^ 0x8000, 0, 65535])
        kind = rng.choices(["start", "piece", "none", "reset"], [1 / (2 * count * pieces), 1, 0.3, 0.005])[0]
        data = rng.getrandbits(32)
        # A piece that arrives during a reset is lost.
        drive(dut, {"load": (kind in ("piece", "reset")) << 49 | (kind == "start") << 48 | to << 32 | data})
        drive(dut, {"rst": int(kind == "reset")})
        await RisingEdge(dut.clk)
        # A reset suppresses all writes, including words completed before it.
        assert read(dut, "we") == (due is not None and kind != "reset")
        if due is not None:
            assert (read(dut, "waddr"), read(dut, "wdata")) == due
        due = None
        if kind == "reset":
            live = False
        elif to == unit and kind == "start":
            live, place = loadable, 0
        elif to == unit and kind == "piece" and live:
            received_pieces[place % pieces] = data
            place += 1
            if place % pieces == 0:
                word = sum(piece << (32 * n) for n, piece in enumerate(received_pieces)) & ((1 << width) - 1)
                due = place // pieces - 1, word
                written += 1
            if place == count * pieces:
                live = False
                complete_loads += 1
    assert not loadable or (complete_loads > 3 and written > 10)
