"""Lowering: turns a Model's float steps into a Graph's integer layers."""

from hlsgen.passes.input_mode import InputMode, numeric_inputs
from hlsgen.passes.lower import lower

__all__ = ["InputMode", "lower", "numeric_inputs"]
