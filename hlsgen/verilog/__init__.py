"""The Verilog target: binding of units to library modules, weight memories, prices, text."""
