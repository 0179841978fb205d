"""The Verilog target: binds units to library modules, packs weights, estimates resources, prints the text."""
