"""What the library's RTL does with a network of nodes, in Icarus Verilog; the data does not matter."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np
from paths import ROOT

from hlsgen.cycle_model.simulate import INPUT, OUTPUT
from hlsgen.dataflow import units
from hlsgen.ir.window import Reduction
from hlsgen.verilog.unit_table import latency

RTL = ROOT / "templates" / "rtl"
#: What stands for adders that stand still with their taker.
_JOINED = """
module joined #(parameter integer WIDTH = 1, parameter integer STAGES = 1) (
    input wire clk, input wire rst, input wire [WIDTH-1:0] s_data, input wire s_valid, output wire s_ready,
    output wire [WIDTH-1:0] m_data, output wire m_valid, input wire m_ready
);
    wire en;
    hg_stages #(.STAGES(STAGES), .JOINED(1)) stages (
        .clk(clk), .rst(rst), .s_valid(s_valid), .s_ready(s_ready), .m_valid(m_valid), .m_ready(m_ready), .en(en)
    );
    assign m_data = s_data;
endmodule
"""


def _bind(node: units.Node) -> tuple[str, dict[str, object]]:
    """Module and parameters; the arithmetic does not matter."""
    unit, source, result = node.unit, node.source, node.result
    match unit:
        case units.RescaleUnit():
            return "hg_shift", {
                "LANES": source.lanes,
                "FOLDS": 1,
                "IN_W": 8,
                "IN_SIGNED": 0,
                "B_W": 1,
                "SHIFT": 0,
                "OUT_W": 8,
                "LOW": "9'd0",
                "HIGH": "9'd255",
                "FILE": '"zero.mem"',
            }
        case units.AdderMatVec(joined=True):
            return "joined", {"WIDTH": source.bits, "STAGES": latency(unit)}
        case units.FloatKeyUnit():
            return "hg_float_key", {"LANES": source.lanes}
        case units.Fifo():
            return "hg_fifo", {"WIDTH": source.bits, "DEPTH": unit.depth}
        case units.Slice():
            return "hg_slice", {"WIDTH": source.bits, "FULL": int(unit.full)}
        case units.WidthConverter():
            return "hg_width", {
                "UNIT": 8,
                "IN": source.lanes,
                "OUT": result.lanes,
                "IN_GROUP": source.group,
                "OUT_GROUP": result.group,
            }
        case units.MatVec():
            return "hg_mvu", {
                "SIMD": unit.simd,
                "PE": unit.pe,
                "COL_FOLDS": unit.col_folds,
                "ROW_FOLDS": unit.row_folds,
                "X_W": 8,
                "W_W": 2,
                "ACC_W": 8,
                "FILE": '"zero.mem"',
            }
        case units.ArgMaxUnit():
            return "hg_argmax", {"LANES": source.lanes, "BEATS": unit.beats, "IN_W": 8, "INDEX_W": 8}
        case units.ConvUnit() | units.PoolUnit():
            window = unit.window
            names = ("KH", "KW", "SH", "SW", "DH", "DW", "PT", "PL", "OUT_H", "OUT_W")
            values = (*window.kernel, *window.strides, *window.dilations, *window.pads[:2])
            values += window.size(unit.height, unit.width)
            shape = {"HEIGHT": unit.height, "WIDTH": unit.width, **dict(zip(names, values, strict=True))}
            shape["DEPTH"] = unit.depth
            if isinstance(unit, units.PoolUnit):
                summed = int(unit.kind is Reduction.SUM)
                return "hg_pool", {
                    **shape,
                    "LANES": source.lanes,
                    "X_W": 8,
                    "GROUPS": unit.folds,
                    "SUM": summed,
                    "ACC_W": 8,
                }
            shape |= {
                "GROUPS": unit.groups,
                "REPEAT": unit.repeat,
                "X_W": 8,
                "W_W": 2,
                "ACC_W": 8,
                "FILE": '"zero.mem"',
            }
            if unit.depthwise:
                return "hg_dwconv", {**shape, "PE": unit.pe}
            return "hg_conv", {**shape, "FOLDS": unit.folds, "PE": unit.pe, "SIMD": unit.simd}
        case units.Fork():
            return "hg_fork", {"WIDTH": source.bits, "COUNT": unit.count}
        case units.JoinStreams():
            return "hg_join_sum", {"LANES": source.lanes, "A_W": 8, "B_W": 8, "OUT_W": 8}
        case units.ConcatBeats():
            return "hg_concat", {
                "UNIT_A": 8,
                "UNIT_B": 8,
                "UNIT_OUT": 8,
                "LANES": source.lanes,
                "BEATS_A": unit.beats[0],
                "BEATS_B": unit.beats[1],
            }
        case units.Crop():
            ranges = zip("YXC", (unit.rows, unit.columns, unit.beats), strict=True)
            bounds = {f"{axis}{mark}": value for axis, r in ranges for mark, value in zip("01S", r, strict=True)}
            height, width, folds = unit.sizes
            return "hg_take", {"WIDTH": source.bits, "HEIGHT": height, "COLUMNS": width, "FOLDS": folds, **bounds}
        case units.PadBorder():
            sides = dict(zip(("TOP", "LEFT", "BOTTOM", "RIGHT"), unit.pads, strict=True))
            return "hg_pad", {
                "UNIT": 8,
                "LANES": source.lanes,
                "HEIGHT": unit.height,
                "COLUMNS": unit.width,
                "FOLDS": unit.folds,
                "VALUE": 0,
                **sides,
            }
        case units.Reorder():
            packed = [", ".join(f"32'd{loop[n]}" for loop in reversed(unit.loops)) for n in (0, 1)]
            return "hg_gather", {
                "WIDTH": source.bits,
                "BLOCK": unit.block,
                "DIMS": len(unit.loops),
                "EXTENTS": f"{{{packed[0]}}}",
                "STRIDES": f"{{{packed[1]}}}",
            }
        case _:
            raise AssertionError(unit)


def verilog(nodes: Sequence[units.Node], ready: Sequence[bool], beats: int, cycles: int) -> str:
    """A testbench that prints valid and ready of all streams in every cycle from 0 on."""
    first, *inner, last = nodes
    early = isinstance(first.unit, units.Port) and first.unit.cuts_ready
    wires = {name: node.result.bits for node in nodes[:-1] for name in node.outputs}
    names = [INPUT, *wires, OUTPUT]
    into, out = -(-first.source.bits // 8) * 8, -(-last.result.bits // 8) * 8
    pattern = "".join("1" if r else "0" for r in reversed(ready or (True,)))
    lines = [
        "`timescale 1ns/1ps",
        "module bench;",
        "reg clk = 0, rst = 1; integer cycle = -8, sent = 0;",
        f'reg [63:0] due [0:{beats - 1}]; initial $readmemh("due.mem", due);',
        f"localparam integer PERIOD = {len(pattern)}; localparam [PERIOD-1:0] PATTERN = {len(pattern)}'b{pattern};",
        f"wire {INPUT}_valid = cycle >= 0 && sent < {beats} && due[(sent < {beats}) ? sent : 0] <= cycle;",
        f"wire {INPUT}_ready, {OUTPUT}_valid, tlast, error;",
        f"wire {OUTPUT}_ready = cycle >= 0 && PATTERN[cycle % PERIOD]; wire [{out - 1}:0] tdata;",
        *(f"wire [{bits - 1}:0] {name}_data; wire {name}_valid, {name}_ready;" for name, bits in wires.items()),
        f"hg_axis_in #(.WIDTH({first.source.bits}), .TDATA_W({into}), .BEATS({first.source.beats}), .CUT({int(early)})) s_axis_unit (",
        f".clk(clk), .rst(rst), .s_axis_tdata({{{into // 8}{{sent[7:0]}}}}), .s_axis_tvalid({INPUT}_valid),",
        f".s_axis_tready({INPUT}_ready), .s_axis_tlast(1'b0), .m_data({first.outputs[0]}_data),",
        f".m_valid({first.outputs[0]}_valid), .m_ready({first.outputs[0]}_ready), .frame_error(error));",
        f"hg_axis_out #(.WIDTH({last.result.bits}), .TDATA_W({out}), .BEATS({last.result.beats}), .CUT({int(not early)})) m_axis_unit (",
        f".clk(clk), .rst(rst), .s_data({last.inputs[0]}_data), .s_valid({last.inputs[0]}_valid),",
        f".s_ready({last.inputs[0]}_ready), .m_axis_tdata(tdata), .m_axis_tvalid({OUTPUT}_valid),",
        f".m_axis_tready({OUTPUT}_ready), .m_axis_tlast(tlast));",
    ]
    for node in inner:
        module, parameters = _bind(node)
        ports = [".clk(clk), .rst(rst)"]
        for prefix, name in zip("s" if len(node.inputs) == 1 else "ab", node.inputs, strict=True):
            ports.append(", ".join(f".{prefix}_{p}({name}_{p})" for p in ("data", "valid", "ready")))
        outs = node.outputs
        if len(outs) > 1:
            bits = node.result.bits
            lines.append(f"wire [{bits - 1}:0] {node.name}_shared;")
            lines += [f"assign {name}_data = {node.name}_shared;" for name in outs]
            both = [f".m_{p}({{{', '.join(f'{n}_{p}' for n in reversed(outs))}}})" for p in ("valid", "ready")]
            ports.append(", ".join([f".m_data({node.name}_shared)", *both]))
        else:
            ports.append(", ".join(f".m_{p}({outs[0]}_{p})" for p in ("data", "valid", "ready")))
        values = ", ".join(f".{name}({value})" for name, value in parameters.items())
        lines.append(f"{module} #({values}) {node.name}_unit ({', '.join(ports)});")
    states = [f"{{{', '.join(f'{n}_{p}' for n in reversed(names))}}}" for p in ("valid", "ready")]
    lines += [
        "always #5 clk = !clk;",
        "always @(posedge clk) begin",
        f'if (cycle >= 0) $display("%b %b", {states[0]}, {states[1]});',
        f"if ({INPUT}_valid && {INPUT}_ready) sent <= sent + 1;",
        f"rst <= cycle < -4; cycle <= cycle + 1; if (cycle == {cycles}) $finish;",
        "end",
        "endmodule",
    ]
    return "\n".join(lines) + "\n" + _JOINED


def play(
    nodes: Sequence[units.Node], due: Sequence[int], ready: Sequence[bool], cycles: int, work: Path
) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """(offered, taken) of every stream in the first cycles, as Flow says it."""
    (work / "bench.v").write_text(verilog(nodes, ready, len(due), cycles))
    (work / "due.mem").write_text("".join(f"{t:x}\n" for t in due))
    words = max([1, *(prod(getattr(s.unit, "weight", np.zeros(0)).shape) for s in nodes)])
    (work / "zero.mem").write_text("0\n" * words)
    command = ["iverilog", "-g2005", "-Wno-timescale", "-o", "bench", "-s", "bench", "-y", str(RTL), "bench.v"]
    subprocess.run(command, cwd=work, check=True)
    printed = subprocess.run(["vvp", "-n", "bench"], cwd=work, check=True, capture_output=True, text=True).stdout
    lines = [line for line in printed.splitlines() if not line.startswith(("WARNING", "bench.v"))]
    names = [INPUT, *(name for node in nodes[:-1] for name in node.outputs), OUTPUT]
    offered: dict[str, list[int]] = {name: [] for name in names}
    taken: dict[str, list[int]] = {name: [] for name in names}
    for cycle, line in enumerate(lines):
        valid, ready_now = line.split()
        for name, v, r in zip(reversed(names), valid, ready_now, strict=True):
            assert {v, r} <= {"0", "1"}, (cycle, name, v, r)
            if v == "1" and len(offered[name]) == len(taken[name]):
                offered[name].append(cycle)
            if v == "1" and r == "1":
                taken[name].append(cycle)
    return offered, taken
