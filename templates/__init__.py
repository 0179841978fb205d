"""Template files: rtl/ the Verilog library, verilog/ the top level, tb/ the testbench."""
