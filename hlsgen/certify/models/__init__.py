"""An integer model of each module of the Verilog library, written a second time from the contract in its file."""
