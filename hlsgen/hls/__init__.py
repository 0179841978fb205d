"""The HLS target: binds units to functions of the C++ library, and prints core, constants and test bench."""
