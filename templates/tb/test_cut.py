"""One layer alone: what goes in by the model, and what must come out of it.

config.json names the streams; <stream>.hex hold the beats of some frames. Fails at the first beat that
differs from the model.
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
    """Offers all beats of a stream, one after the other."""
    data, valid, ready = (
        getattr(dut, port["data"]), getattr(dut, f"{port['wire']}_valid"), getattr(dut, f"{port['wire']}_ready"),
    )  # fmt: skip
    for word in words(port["wire"]):
        data.value, valid.value = word, 1
        await RisingEdge(dut.clk)
        while ready.value != 1:
            await RisingEdge(dut.clk)
    valid.value = 0


@cocotb.test()
async def cut(dut):
    """Every beat that comes out is the model's."""
    output = CONFIG["output"]
    data, valid, ready = (
        getattr(dut, output["data"]), getattr(dut, f"{output['wire']}_valid"), getattr(dut, f"{output['wire']}_ready"),
    )  # fmt: skip
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
        got, wanted = int(data.value) & ((1 << used) - 1), expected & ((1 << used) - 1)
        assert got == wanted, f"layer {CONFIG['layer']}, beat {beat}: expected {wanted:x}, got {got:x}"
