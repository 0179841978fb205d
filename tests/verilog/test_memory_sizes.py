"""Block memories of families: as many as Yosys takes for memories of constants and for the buffers of the library."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from hlsgen.library import library_text
from hlsgen.synthesis.netlist import Size, size
from hlsgen.synthesis.programs import run_yosys
from hlsgen.verilog.memory_sizes import buffer, memory, weights_style

PASSES = {
    "xc7": "synth_xilinx -nodsp",
    "ecp5": "synth_ecp5 -nodsp",
    "ice40": "synth_ice40",
    "gowin": "synth_gowin -nodsp",
}
#: Words and bits: in tables, at the border, in one block, in several of several shapes.
CONSTANTS = (
    (16, 8),
    (48, 36),
    (64, 34),
    (64, 36),
    (96, 8),
    (132, 8),
    (192, 8),
    (256, 8),
    (300, 7),
    (128, 36),
    (512, 36),
    (600, 9),
    (1024, 20),
    (2300, 4),
)
#: Length of vectors that are repeated, in a memory of twice as many words, and bits.
REPEATED = ((2, 8), (256, 1), (4, 9), (4, 10), (16, 8), (32, 24), (40, 24), (64, 8), (128, 8), (100, 40), (300, 36))
#: Depth and bits of FIFOs, the last two of which are read ahead.
FIFOS = ((8, 8), (16, 4), (16, 5), (64, 8), (100, 24), (300, 12), (512, 8), (1100, 9))


def synthesized(family: str, folder: Path) -> dict[str, Size]:
    """What Yosys makes of each of these, by name."""
    rng, ports, cells, name = random.Random(1), ["input wire clk, rst, en, input wire [15:0] a"], [], ""
    for words, width in CONSTANTS:
        name = f"rom_{words}_{width}"
        text = "\n".join(f"{rng.getrandbits(width):x}" for _ in range(words))
        (folder / f"{name}.mem").write_text(text + "\n")
        ports.append(f"output wire [{width - 1}:0] q_{name}")
        address_bits = (words - 1).bit_length()
        cells.append(
            f'hg_weights #(.FILE("{name}.mem"), .WORDS({words}), .WIDTH({width})) {name} ('
            f".clk(clk), .rst(rst), .en(en), .step(en), .addr(a[0 +: {max(1, address_bits)}]), .data(q_{name}), "
            f".we(1'b0), .waddr({address_bits}'b0), .wdata({width}'b0));"
        )
    for kind, which in (("replay", REPEATED), ("fifo", FIFOS)):
        for words, width in which:
            name = f"{kind}_{words}_{width}"
            size_of = f".LENGTH({words}), .REPEAT(3)" if kind == "replay" else f".DEPTH({words})"
            ports += [f"input wire [{width + 1}:0] i_{name}", f"output wire [{width + 1}:0] q_{name}"]
            cells.append(
                f"hg_{kind} #(.WIDTH({width}), {size_of}) {name} (.clk(clk), .rst(rst), "
                f".s_data(i_{name}[{width - 1}:0]), .s_valid(i_{name}[{width}]), .m_ready(i_{name}[{width + 1}]), "
                f".m_data(q_{name}[{width - 1}:0]), "
                f".m_valid(q_{name}[{width}]), .s_ready(q_{name}[{width + 1}]));"
            )
    (folder / "top.v").write_text("\n".join([f"module top ({', '.join(ports)});", *cells, "endmodule", ""]))
    kept, names = ("hg_weights", "hg_replay", "hg_fifo"), ("hg_weights", "hg_replay", "hg_fifo", "hg_index", "hg_next")
    for each in names:
        keep = "(* keep_hierarchy *) " if each in kept else ""
        (folder / f"{each}.v").write_text(
            library_text("rtl", f"{each}.v").replace(f"module {each}", f"{keep}module {each}")
        )
    lines = [f"read_verilog -defer {each}.v" for each in (*names, "top")]
    lines += ["scratchpad -set abc9.verify 0", f"{PASSES[family]} -top top", "write_json out.json"]
    run_yosys(lines, folder, 500)
    modules = json.loads((folder / "out.json").read_text())["modules"]
    return {
        cell: size(modules, of["type"], family) for cell, of in modules["top"]["cells"].items() if "hg_" in of["type"]
    }


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("family", PASSES)
def test_blocks_are_those_of_yosys(family: str, tmp_path: Path) -> None:
    found = synthesized(family, tmp_path)
    expected = {f"rom_{words}_{width}": memory(words, width, 0, family).bram for words, width in CONSTANTS}
    expected |= {
        f"replay_{words}_{width}": buffer(2 * words, width, family, no_collision=True).bram for words, width in REPEATED
    }
    expected |= {
        f"fifo_{words}_{width}": buffer(words, width, family, write_first=words < 512).bram for words, width in FIFOS
    }
    if family == "xc7":  # 100 words of 24 bits are at the border
        del expected["fifo_100_24"], found["fifo_100_24"]
    assert {cell: of.bram for cell, of in found.items()} == expected


#: Words of weights in tables, at the borders of multiplexers that cost nothing.
WORDS = (9, 40, 64, 72, 128, 132, 200, 256, 320, 512)


@pytest.mark.slow
@pytest.mark.cases(1)
def test_tables_of_weights_are_about_those_of_yosys(tmp_path: Path) -> None:
    """24 bits of each word."""
    rng, width, cells = random.Random(2), 24, []
    for words in WORDS:
        text = "\n".join(f"{rng.getrandbits(width):x}" for _ in range(words))
        (tmp_path / f"{words}.mem").write_text(text + "\n")
        cells.append(
            f'hg_weights #(.FILE("{words}.mem"), .WORDS({words}), .WIDTH({width}), .STYLE(1)) w{words} (.clk(clk), .rst(rst), '
            f".en(en), .step(en), .addr(a[0 +: {(words - 1).bit_length()}]), .data(q[{len(cells) * width} +: {width}]), .we(1'b0), .waddr(0), .wdata(0));"
        )
    ports = f"input wire clk, rst, en, input wire [8:0] a, output wire [{len(WORDS) * width - 1}:0] q"
    (tmp_path / "top.v").write_text("\n".join([f"module top ({ports});", *cells, "endmodule", ""]))
    weights = library_text("rtl", "hg_weights.v").replace("module hg_weights", "(* keep_hierarchy *) module hg_weights")
    (tmp_path / "hg_weights.v").write_text(weights)
    lines = [f"read_verilog -defer {name}.v" for name in ("hg_weights", "top")]
    lines += ["scratchpad -set abc9.verify 0", "synth_xilinx -flatten -nodsp -top top", "write_json out.json"]
    run_yosys(lines, tmp_path, 300)
    modules = json.loads((tmp_path / "out.json").read_text())["modules"]
    found = {
        int(cell[1:]): size(modules, of["type"], "xc7").lut
        for cell, of in modules["top"]["cells"].items()
        if "hg_weights" in of["type"]
    }
    assert set(found) == set(WORDS)
    for words, tables in found.items():
        assert 0.85 * tables - 8 <= memory(words, width, 1).lut <= 1.15 * tables, found


@pytest.mark.parametrize(
    ("words", "width", "style"),
    [(128, 360, 0), (129, 360, 2), (208, 360, 2), (512, 36, 2), (64, 1024, 0), (208, 8, 0), (2048, 9, 2), (2, 9999, 0)],
)
def test_weights_are_in_blocks_that_are_worth_less_than_their_tables(words: int, width: int, style: int) -> None:
    assert weights_style(words, width) == style
    assert weights_style(words, width, 1) == 1
    assert (memory(words, width, weights_style(words, width)).bram > 0) == (style == 2)
