"""Registers with random values at power-up: the reset mends all of them, and nothing is written before it acts."""

from __future__ import annotations

from pathlib import Path

import pytest
from streams import RTL, memory
from verilated import POWER_UP, call, compile_model

WORDS = [0x123456789A, 0xFFFFFFFFFF, 0, 0x5555555555, 0x8000000001, 0x0F0F0F0F0F]
#: STYLE of each unit's memory.
STYLES = (0, 1, 2, 3)
SEEDS = range(1, 41)
_UNIT = """
    wire we{n}; wire [2:0] waddr{n}; wire [39:0] wdata{n}, data{n};
    hg_load #(.UNIT({n}), .WORDS(6), .WIDTH(40)) load{n} (
        .clk(clk), .rst(rst), .load(load), .we(we{n}), .waddr(waddr{n}), .wdata(wdata{n}));
    hg_weights #(.FILE("words.mem"), .WORDS(6), .WIDTH(40), .STYLE({style}), .LOADABLE(1)) memory{n} (
        .clk(clk), .rst(rst), .en(1'b1), .step(1'b0), .addr(place), .data(data{n}),
        .we(we{n}), .waddr(waddr{n}), .wdata(wdata{n}));
"""
#: A reset of `held` cycles from the first edge on, then every word of every unit.
_BENCH = """
module clock; reg clk = 0; always #1 clk = !clk; bench bench (clk); endmodule
module bench (input clk);
    integer cycle = 0;
    wire rst;
    hg_reset reset (.clk(clk), .reset_in(cycle < 3), .rst(rst));
    wire [49:0] load;
    hg_axil_weights #(.UNITS({units})) port (
        .clk(clk), .rst(rst), .s_axil_awaddr(4'd0), .s_axil_awvalid(1'b0), .s_axil_wdata(32'd0), .s_axil_wstrb(4'd0),
        .s_axil_wvalid(1'b0), .s_axil_bready(1'b0), .s_axil_araddr(4'd0), .s_axil_arvalid(1'b0), .s_axil_rready(1'b0),
        .load(load));
    wire [2:0] place = cycle - 20;
{parts}
    always @(posedge clk) begin
        if (cycle > 20) $display("%h", {{{shown}}});
        cycle <= cycle + 1;
        if (cycle == 26) $finish;
    end
endmodule
"""
_MAIN = """
int main(int argc, char** argv) {
    VerilatedContext context;
    context.commandArgs(argc, argv);
    Vdut bench(&context);
    while (!context.gotFinish()) {
        bench.clk = !bench.clk;
        bench.eval();
        context.timeInc(1);
    }
    bench.final();
}
"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("power_up")
    (folder / "words.mem").write_text(memory(WORDS))
    parts = "".join(_UNIT.format(n=n, style=style) for n, style in enumerate(STYLES))
    shown = ", ".join(f"data{n}" for n in reversed(range(len(STYLES))))
    (folder / "bench.v").write_text(_BENCH.format(units=len(STYLES), parts=parts, shown=shown))
    options = ["--no-timing", *POWER_UP, "-y", str(RTL), "--top-module", "bench", "bench.v"]
    compile_model(options, _MAIN, folder / "bench", "-O0")
    return folder


def _words(text: str) -> list[list[int]]:
    rows = [int(line, 16) for line in text.split("\n") if line and not line.startswith("-") and ".v:" not in line]
    return [[row >> 40 * n & ((1 << 40) - 1) for row in rows] for n in range(len(STYLES))]


def test_weights_are_those_of_their_files(bench: Path) -> None:
    for seed in SEEDS:
        text = call([str(bench / "bench"), "+verilator+rand+reset+2", f"+verilator+seed+{seed}"], bench)
        assert _words(text) == [WORDS] * len(STYLES), seed


def test_weights_are_those_of_their_files_in_icarus(bench: Path) -> None:
    """Registers without an initial value begin with x."""
    call(["iverilog", "-g2005", "-y", str(RTL), "-s", "clock", "-o", "bench.vvp", "bench.v"], bench)
    assert _words(call(["vvp", "-n", "bench.vvp"], bench)) == [WORDS] * len(STYLES)
