"""Every number that is computed: integer types, rounding, activations, the quantized add."""
