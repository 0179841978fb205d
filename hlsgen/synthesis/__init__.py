"""Synthesizes, places and routes a build with Yosys and nextpnr or with vendor tools, and measures size and clock."""
