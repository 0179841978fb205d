"""One layer of a core: beats that the model sends into it, and beats that must come out of it.

config.json names the streams; <stream>.hex has the beats of some frames. Fails at the first beat that differs from the
model.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge

HERE = Path(os.environ["HLSGEN_TB"])
CONFIG = json.loads((HERE / "config.json").read_text())


def words(name: str) -> list[int]:
    return [int(line, 16) for line in (HERE / f"{name}.hex").read_text().split()]


async def send(dut, port) -> None:
    """Sends all beats of a stream in order."""
    data = getattr(dut, port["data"])
    valid, ready = getattr(dut, f"{port['wire']}_valid"), getattr(dut, f"{port['wire']}_ready")
    for word in words(port["wire"]):
        data.value, valid.value = word, 1
        await RisingEdge(dut.clk)
        while ready.value != 1:
            await RisingEdge(dut.clk)
    valid.value = 0


@cocotb.test()
async def cut(dut):
    """Every output beat equals the model's."""
    output = CONFIG["output"]
    data = getattr(dut, output["data"])
    valid, ready = getattr(dut, f"{output['wire']}_valid"), getattr(dut, f"{output['wire']}_ready")
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    for port in CONFIG["inputs"]:
        getattr(dut, f"{port['wire']}_valid").value = 0
    ready.value, dut.rst_core.value = 1, 1
    for _ in range(4):
        await RisingEdge(dut.clk)
    dut.rst_core.value = 0
    for port in CONFIG["inputs"]:
        cocotb.start_soon(send(dut, port))
    part, lanes, bits = -(-output["group"] // output["lanes"]), output["lanes"], output["bits"]
    quiet = 0
    for beat, expected in enumerate(words("expected")):
        await RisingEdge(dut.clk)
        while valid.value != 1:
            quiet += 1
            assert quiet < CONFIG["patience"], f"no beat came for {quiet} cycles, after {beat} beats"
            await RisingEdge(dut.clk)
        quiet = 0
        used = min(lanes, output["group"] - beat % part * lanes) * bits
        actual_bits, expected_bits = int(data.value) & ((1 << used) - 1), expected & ((1 << used) - 1)
        assert actual_bits == expected_bits, (
            f"layer {CONFIG['layer']}, beat {beat}: expected {expected_bits:x}, got {actual_bits:x}"
        )
