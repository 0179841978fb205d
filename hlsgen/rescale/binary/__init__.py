"""Functions of two operands: every way to join two streams into one step function."""
