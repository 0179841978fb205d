"""Functions of two operands: proven plans that join both streams into one integer, and the steps over it."""
