"""What waits in products is held in registers: shift registers take tables and are slow to read."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from hlsgen.library import library_text
from hlsgen.synthesis.programs import run_yosys


@pytest.mark.sweep
@pytest.mark.cases(1)
@pytest.mark.parametrize(("cycles", "expected"), [(3, {"FDRE": 4}), (5, {"FDRE": 6}), (9, {"SRL16E": 1, "FDRE": 1})])
def test_delays_end_in_a_register(cycles: int, expected: dict[str, int], tmp_path: Path) -> None:
    """Behind a register, as weights have one in front."""
    text = library_text("rtl", "hg_delay.v")
    top = (
        "module top (input wire clk, en, d, output wire q); reg d_reg; always @(posedge clk) if (en) d_reg <= d; "
        f"hg_delay #(.WIDTH(1), .CYCLES({cycles})) delay (.clk(clk), .en(en), .d(d_reg), .q(q)); endmodule\n"
    )
    (tmp_path / "all.v").write_text(text + top)
    passes = ["read_verilog all.v", "synth_xilinx -flatten -noiopad -noclkbuf -top top", "write_json out.json"]
    run_yosys(passes, tmp_path, 100)
    cells = json.loads((tmp_path / "out.json").read_text())["modules"]["top"]["cells"].values()
    counts = Counter(cell["type"] for cell in cells if not cell["type"].startswith("$"))
    assert counts == expected
