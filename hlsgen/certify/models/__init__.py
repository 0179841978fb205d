"""An integer model of each module of the Verilog library, written independently from the contract in its file."""
