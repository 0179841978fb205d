"""What each module of the Verilog library computes, written again from its contract."""
