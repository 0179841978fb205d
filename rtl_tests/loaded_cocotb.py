"""Loads sets of weights over the load bus and checks the sums with each. Run by cocotb; AXI_JOB: a JSON file."""

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
    """Every set takes effect from the next beat on. Words for another unit have no effect."""
    Clock(dut.clk, 10, unit="ns").start()
    drive(dut, {"load": 0, "s_valid": 0, "s_data": 0, "m_ready": 1})
    await reset(dut)
    for weight_set in JOB["sets"]:
        for word in weight_set["load"]:
            drive(dut, {"load": word})
            await RisingEdge(dut.clk)
        drive(dut, {"load": 0})
        for _ in range(4):
            await RisingEdge(dut.clk)
        sent_beats, results = 0, list[int]()
        while len(results) < len(weight_set["sums"]):
            drive(dut, {"s_valid": int(sent_beats < len(weight_set["codes"]))})
            if sent_beats < len(weight_set["codes"]):
                drive(dut, {"s_data": weight_set["codes"][sent_beats]})
            await ReadOnly()
            accepted = read(dut, "s_valid") and read(dut, "s_ready")
            if read(dut, "m_valid"):
                results.append(read(dut, "m_data"))
            await RisingEdge(dut.clk)
            sent_beats += accepted
        assert results == weight_set["sums"]
