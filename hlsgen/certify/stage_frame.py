"""The frame of modules that are generated for one layer: ports, control, and the lines around their body."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from hlsgen.certify.netlist_reader import broken
from hlsgen.library import licence_line

#: Maximum bytes of a file.
_MAX_BYTES = 1 << 26

_FRAME = """\
// Latency     {latency} cycles, all advancing on en; one beat a cycle
// Contract    exact: {exact}
//             hlsgen, which proves it with `hlsgen certify`.
`default_nettype none
module {name} (
    input  wire clk,
    input  wire rst,
    input  wire [{s_top}:0] s_data,
    input  wire s_valid,
    output wire s_ready,
    output wire [{m_top}:0] m_data,
    output wire m_valid,
    input  wire m_ready
);
    wire en;
    {prefix}hg_stages #(
        .STAGES({latency}){joined}
    ) stages (
        .clk(clk), .rst(rst),
        .s_valid(s_valid), .s_ready(s_ready), .m_valid(m_valid), .m_ready(m_ready), .en(en)
    );
    wire unused = &{{1'b0, s_data}};
"""
#: Parameter with which the stages advance only together with the consumer's stages.
JOINED = ",\n        .JOINED(1)"
TAIL = "endmodule\n`default_nettype wire\n"
#: The first line of a block of registers, of one with a reset, and the line between the reset and the rest.
CLOCK, RESET, _ELSE = (
    "    always @(posedge clk) if (en) begin",
    "    always @(posedge clk) if (rst) begin",
    "    end else if (en) begin",
)
_CLEAR = re.compile(r"        (n\d{1,7}_\d{1,7}) <= (\d{1,7})'h0;", re.ASCII)


def frame(name: str, prefix: str, exact: str, latency: int, bits: tuple[int, int], *, joined: bool = False) -> str:
    """The text between the description and the body of a module. `bits`: widths of both streams."""
    tops = {"s_top": bits[0] - 1, "m_top": bits[1] - 1}
    return _FRAME.format(
        name=name, prefix=prefix, exact=exact, latency=latency, joined=JOINED if joined else "", **tops
    )


def module_text(folder: Path, file: str) -> str:
    """The text of a generated module without the line of its licence. Raises HG055 if it cannot be read."""
    path = folder / f"{file}.v"
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise broken(f"rtl/{path.name}", f"has more than {_MAX_BYTES} bytes.")
        return path.read_bytes().decode("ascii").removeprefix(licence_line(path.name))
    except (OSError, UnicodeDecodeError):
        raise broken(f"rtl/{path.name}", "cannot be read.") from None


def cleared_registers(lines: Iterator[str], widths: Mapping[str, int], place: str) -> list[str]:
    """Read the first half of a block of registers with a reset, and return the registers that become 0.

    `widths`: bits of the registers that are declared and not written yet, by name. `place`: the file. Raises HG055.
    """
    cleared: list[str] = []
    for line in lines:
        if line == _ELSE:
            return cleared
        clear = _CLEAR.fullmatch(line)
        if clear is None or clear[1] in cleared or widths.get(clear[1]) != int(clear[2]):
            raise broken(place, f"has no such register of that width: {line.strip()[:60]!r}.")
        cleared.append(clear[1])
    raise broken(place, "has a block without an end.")
