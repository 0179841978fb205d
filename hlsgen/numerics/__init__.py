"""Number formats and arithmetic: integer types, rounding, activations, the quantized add."""
