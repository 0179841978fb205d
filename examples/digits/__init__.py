"""The network for 8x8 digits, installed with the package as `hlsgen.example`."""
