"""The checker of cores in C++: their text is read back, and each process is proven to do what its layer does."""
