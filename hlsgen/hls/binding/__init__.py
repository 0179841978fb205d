"""Binds units, and the realizations of quantizers, to functions of the C++ library."""
