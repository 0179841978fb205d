"""Sets of weights over the load bus, one after the other, and sums with each; run by cocotb, with a JSON file as AXI_JOB."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import cocotb
from axi_bus import LIMIT, drive, read, reset
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge

JOB: dict[str, Any] = json.loads(Path(os.environ["AXI_JOB"]).read_text())


@cocotb.test(**LIMIT)
async def sets(dut: Any) -> None:
    """Every set counts from the first beat behind it on; words for another unit change nothing."""
    Clock(dut.clk, 10, unit="ns").start()
    drive(dut, {"load": 0, "s_valid": 0, "s_data": 0, "m_ready": 1})
    await reset(dut)
    for one in JOB["sets"]:
        for word in one["load"]:
            drive(dut, {"load": word})
            await RisingEdge(dut.clk)
        drive(dut, {"load": 0})
        for _ in range(4):
            await RisingEdge(dut.clk)
        sent, got = 0, list[int]()
        while len(got) < len(one["sums"]):
            drive(dut, {"s_valid": int(sent < len(one["codes"]))})
            if sent < len(one["codes"]):
                drive(dut, {"s_data": one["codes"][sent]})
            await ReadOnly()
            taken = read(dut, "s_valid") and read(dut, "s_ready")
            if read(dut, "m_valid"):
                got.append(read(dut, "m_data"))
            await RisingEdge(dut.clk)
            sent += taken
        assert got == one["sums"]
