"""The HLS target: binds units to functions of the C++ library, and prints the core, its constants and its test bench."""
