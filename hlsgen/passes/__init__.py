"""Model -> Graph: float steps become integer layers."""

from hlsgen.passes.lower import InputMode, lower

__all__ = ["InputMode", "lower"]
