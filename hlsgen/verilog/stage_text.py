"""The frame of generated modules between two streams, whose registers all advance at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

#: Registers in series that a bit may pass. Tools turn three and more into a shift register, whose output settles a
#: nanosecond later than a register's. They do not if one of them is reset.
MOST_WAITS = 2


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


def clocked_lines(widths: Mapping[int, int], reset: Collection[int], cycle: int) -> Iterator[str]:
    """Registers that move results to this cycle. `widths`: bits by number of result; `reset`: those that are reset."""
    for n, bits in widths.items():
        yield f"    reg [{bits - 1}:0] n{n}_{cycle};"
    for group in ([n for n in widths if n in reset], [n for n in widths if n not in reset]):
        if not group:
            continue
        yield f"    always @(posedge clk) if ({'rst' if group[0] in reset else 'en'}) begin"
        if group[0] in reset:
            yield from (f"        n{n}_{cycle} <= {widths[n]}'h0;" for n in group)
            yield "    end else if (en) begin"
        yield from (f"        n{n}_{cycle} <= n{n}_{cycle - 1};" for n in group)
        yield "    end"
