"""The frame of generated modules between two streams, whose registers all advance at once."""

from __future__ import annotations

from collections.abc import Iterable


def between_streams(
    name: str,
    head: Iterable[str],
    contract: str,
    latency: int,
    bits: tuple[int, int],
    lines: Iterable[str],
    *,
    joined: bool = False,
) -> str:
    """The module `name` with `lines` in it, which use s_data and en and drive m_data.

    `head`: the first lines of its comment. `contract`: the first line of its contract. `bits`: widths of s_data and
    m_data. `joined`: JOINED of hg_stages.
    """
    text = [
        *head,
        f"// Latency     {latency} cycles, all advancing on en; one beat a cycle",
        f"// Contract    exact: {contract}",
        "//             hlsgen, which proves it with `hlsgen certify`.",
        "`default_nettype none",
        f"module {name} (",
        "    input  wire clk,",
        "    input  wire rst,",
        f"    input  wire [{bits[0] - 1}:0] s_data,",
        "    input  wire s_valid,",
        "    output wire s_ready,",
        f"    output wire [{bits[1] - 1}:0] m_data,",
        "    output wire m_valid,",
        "    input  wire m_ready",
        ");",
        "    wire en;",
        "    hg_stages #(",
        f"        .STAGES({latency})" + ("," if joined else ""),
        *(["        .JOINED(1)"] if joined else []),
        "    ) stages (",
        "        .clk(clk), .rst(rst),",
        "        .s_valid(s_valid), .s_ready(s_ready), .m_valid(m_valid), .m_ready(m_ready), .en(en)",
        "    );",
        "    wire unused = &{1'b0, s_data};",
        *lines,
        "endmodule",
        "`default_nettype wire",
    ]
    return "\n".join(text) + "\n"
