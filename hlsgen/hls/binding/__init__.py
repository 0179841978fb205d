"""Binds units, and the realizations of step functions, to functions of the C++ library."""
