"""Many units in one simulation: a generated bench plays stimuli per cycle and records the outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from streams import RTL, memory
from verilated import POWER_UP, call, compile_model

Stimulus = tuple[int, int, int]  # rst, s_valid, m_ready

PLAYER = """
module player_{k} (input wire clk, output wire [1:0] control, output wire [{out_w}-1:0] data);
    reg [2:0] stimuli [0:{cycles}-1];
    reg [{in_w}-1:0] words [0:{words}-1];
    initial $readmemh("s{k}.mem", stimuli);
    initial $readmemh("x{k}.mem", words);
    integer cycle, place;
    initial begin cycle = 0; place = 0; end
    wire live = cycle < {cycles};
    wire [2:0] now = stimuli[live ? cycle : {cycles}-1];
    wire [{in_w}-1:0] word = words[place];
    wire s_ready, m_valid;
    wire [{out_w}-1:0] m_data;
    {module} #({parameters}) dut (
        .clk(clk), .rst(now[2]), .s_data(now[1] ? word : ~word), .s_valid(now[1]), .s_ready(s_ready),
        .m_data(m_data), .m_valid(m_valid), .m_ready(now[0])
    );
    assign control = {{2{{live}}}} & {{s_ready, m_valid}};
    assign data = {{{out_w}{{live && m_valid}}}} & m_data;
    always @(posedge clk) begin
        if (!now[2] && now[1] && s_ready && place < {words}-1) place <= place + 1;
        if (live) cycle <= cycle + 1;
    end
endmodule
"""


MAIN = """
int main() {
    VerilatedContext context;
    context.randReset(2);
    context.randSeed(5);
    Vdut top(&context);
    for (int edge = 0; edge < 2 * %d; ++edge) { top.clk = edge & 1; top.eval(); context.timeInc(5); }
    top.final();
    return 0;
}
"""


@dataclass(frozen=True)
class Player:
    """A module with one input and one output stream, its memory files, and its stimuli.

    `words` are sent in order, except words accepted during a reset. The last word repeats.
    """

    module: str
    parameters: dict[str, object]
    memories: dict[str, str]
    in_w: int
    out_w: int
    words: Sequence[int]
    stimuli: Sequence[Stimulus]


def play(simulator: str, players: Sequence[Player], folder: Path) -> list[list[tuple[str, str, str]]]:
    """Record of each player before every clock edge: s_ready, m_valid and m_data (hexadecimal, 0 if not valid).

    The bench prints a line for every cycle except the first, before any reset. The first record is ("x", "x", "x").
    """
    text = []
    for k, player in enumerate(players):
        for name, content in player.memories.items():
            (folder / name).write_text(content)
        (folder / f"x{k}.mem").write_text(memory(player.words))
        (folder / f"s{k}.mem").write_text(memory(4 * a + 2 * b + c for a, b, c in player.stimuli))
        sizes = {"in_w": player.in_w, "out_w": player.out_w, "words": len(player.words), "cycles": len(player.stimuli)}
        parameters = ", ".join(f".{name}({value})" for name, value in player.parameters.items())
        text.append(PLAYER.format(k=k, module=player.module, parameters=parameters, **sizes))
    cycles = max(len(player.stimuli) for player in players) + 2
    text.append("module players (input wire clk);")
    for k, player in enumerate(players):
        text.append(f"wire [1:0] c{k}; wire [{player.out_w - 1}:0] d{k}; player_{k} p{k}(clk, c{k}, d{k});")
    form, shown = " ".join("%b %h" for _ in players), ", ".join(f"c{k}, d{k}" for k in range(len(players)))
    text.append(f'reg begun = 0; always @(posedge clk) begin begun <= 1; if (begun) $display("{form}", {shown}); end')
    text.append("endmodule")
    if simulator == "icarus":
        clock = f"reg clk = 0; always #5 clk = !clk; initial #{10 * cycles} $finish;"
        text.append(f"module bench; {clock} players players (clk); endmodule")
    (folder / "bench.v").write_text("\n".join(text))
    if simulator == "icarus":
        call(["iverilog", "-g2005", "-y", str(RTL), "-s", "bench", "-o", "bench.vvp", "bench.v"], folder)
        said = call(["vvp", "bench.vvp"], folder)
    else:
        compile_model(
            [*POWER_UP, "-y", str(RTL), "--top-module", "players", "bench.v"], MAIN % cycles, folder / "bench", "-O0"
        )
        said = call([str(folder / "bench")], folder)
    rows = [line.split() for line in said.splitlines() if ".v:" not in line]
    records = []
    for k, player in enumerate(players):
        cells = [row[2 * k : 2 * k + 2] for row in rows[: len(player.stimuli) - 1]]
        records.append([("x", "x", "x"), *((control[0], control[1], data) for control, data in cells)])
    return records
