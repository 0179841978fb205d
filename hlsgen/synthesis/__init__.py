"""Synthesis, placement and routing of a build's Verilog by Yosys and nextpnr, or by vendors' tools, and what they measure."""
