"""The checker of C++ cores: reads their text back and proves that each process computes its part of a layer."""
