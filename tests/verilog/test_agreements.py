"""Binary layers as Yosys maps them: nothing of a table is shared that would be three tables then."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from hlsgen.library import library_text
from hlsgen.synthesis.programs import run_yosys


@pytest.mark.sweep
def test_three_positions_take_two_tables(tmp_path: Path) -> None:
    """A row of 31: eight times three in two tables, seven in one, and four, two and one adders of 2, 3 and 4 bits."""
    text = "".join(library_text("rtl", f"hg_{name}.v") for name in ("agreements", "popcount", "delay"))
    top = (
        "module top (input wire clk, en, input wire [30:0] x, input wire [30:0] w, output wire [5:0] counts); "
        "hg_agreements #(.SIMD(31), .ROWS(1)) dot (.clk(clk), .en(en), .x(x), .w(w), .counts(counts)); endmodule\n"
    )
    (tmp_path / "all.v").write_text(text + top)
    passes = ["read_verilog all.v", "synth_xilinx -flatten -noiopad -noclkbuf -top top", "write_json out.json"]
    run_yosys(passes, tmp_path, 100)
    cells = json.loads((tmp_path / "out.json").read_text())["modules"]["top"]["cells"].values()
    counts = Counter(cell["type"] for cell in cells if cell["type"].startswith("LUT"))
    assert counts == {"LUT6": 16, "LUT2": 7 + 4 * 2 + 2 * 3 + 4}
