"""Block memories of families: as many as Yosys takes for memories of constants and for the buffers of the library."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from hlsgen.library import library_text
from hlsgen.synthesis.netlist import Size, size
from hlsgen.synthesis.programs import run_yosys
from hlsgen.verilog.memory_sizes import buffer, memory

PASSES = {"ecp5": "synth_ecp5 -nodsp", "ice40": "synth_ice40", "gowin": "synth_gowin -nodsp"}
#: Words and bits: in tables, at the border, in one block, in several of several shapes.
CONSTANTS = (
    (16, 8), (48, 36), (64, 34), (64, 36), (96, 8), (132, 8), (192, 8), (256, 8), (300, 7), (128, 36), (512, 36), (600, 9),
    (1024, 20), (2300, 4),
)  # fmt: skip
#: Length of vectors that are repeated, in a memory of twice as many words, and bits.
REPEATED = ((2, 8), (256, 1), (4, 9), (4, 10), (16, 8), (32, 24), (40, 24), (64, 8), (128, 8), (100, 40), (300, 36))
#: Depth and bits of FIFOs, the last two of which are read ahead.
FIFOS = ((8, 8), (16, 4), (16, 5), (64, 8), (100, 24), (300, 12), (512, 8), (1100, 9))


def synthesized(family: str, folder: Path) -> dict[str, Size]:
    """What Yosys makes of each of these, by name."""
    rng, ports, cells, name = random.Random(1), ["input wire clk, rst, en"], [], ""
    for words, width in CONSTANTS:
        name = f"rom_{words}_{width}"
        text = "\n".join(f"{rng.getrandbits(width):x}" for _ in range(words))
        (folder / f"{name}.mem").write_text(text + "\n")
        ports.append(f"output wire [{width - 1}:0] q_{name}")
        cells.append(
            f'hg_weights #(.FILE("{name}.mem"), .WORDS({words}), .WIDTH({width})) {name} (.clk(clk), .rst(rst), .en(en), '
            f".step(en), .data(q_{name}), .we(1'b0), .waddr({(words - 1).bit_length()}'b0), .wdata({width}'b0));"
        )
    for kind, which in (("replay", REPEATED), ("fifo", FIFOS)):
        for words, width in which:
            name = f"{kind}_{words}_{width}"
            size_of = f".LENGTH({words}), .REPEAT(3)" if kind == "replay" else f".DEPTH({words})"
            ports += [f"input wire [{width + 1}:0] i_{name}", f"output wire [{width + 1}:0] q_{name}"]
            cells.append(
                f"hg_{kind} #(.WIDTH({width}), {size_of}) {name} (.clk(clk), .rst(rst), .s_data(i_{name}[{width - 1}:0]), "
                f".s_valid(i_{name}[{width}]), .m_ready(i_{name}[{width + 1}]), .m_data(q_{name}[{width - 1}:0]), "
                f".m_valid(q_{name}[{width}]), .s_ready(q_{name}[{width + 1}]));"
            )
    (folder / "top.v").write_text("\n".join([f"module top ({', '.join(ports)});", *cells, "endmodule", ""]))
    kept, names = ("hg_weights", "hg_replay", "hg_fifo"), ("hg_weights", "hg_replay", "hg_fifo", "hg_index")
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


@pytest.mark.cases(1)
@pytest.mark.parametrize("family", PASSES)
def test_blocks_are_those_of_yosys(family: str, tmp_path: Path) -> None:
    found = synthesized(family, tmp_path)
    expected = {f"rom_{words}_{width}": memory(words, width, 0, family).bram for words, width in CONSTANTS}
    expected |= {
        f"replay_{words}_{width}": buffer(2 * words, width, family, apart=True).bram for words, width in REPEATED
    }
    expected |= {f"fifo_{words}_{width}": buffer(words, width, family, new=words < 512).bram for words, width in FIFOS}
    assert {cell: of.bram for cell, of in found.items()} == expected
