"""Constants longer than a token of Icarus Verilog are written in pieces, and read back as one number."""

from __future__ import annotations

import random

import pytest

from hlsgen.certify.netlist_reader import SizedConstant, parse
from hlsgen.verilog.binding.memory_files import Bits
from hlsgen.verilog.render import LONGEST, constant

TOP = """module top(input wire clk);
    top_unit #(
        .TABLES({value})
    ) u0 (
        .clk(clk)
    );
endmodule
"""


@pytest.mark.parametrize("width", [1, LONGEST, LONGEST + 1, 3 * LONGEST, 5 * LONGEST - 7])
def test_written_and_read_back(width: int) -> None:
    value = random.Random(width).getrandbits(width)
    text = constant(Bits(width, value))
    assert max(map(len, text.split())) < 1 << 13
    assert str(SizedConstant(width, value)) == text
    assert parse(TOP.replace("{value}", text), "top").cells["u0"].parameters["TABLES"] == SizedConstant(width, value)
