"""Model -> Graph: float steps become integer layers."""

from hlsgen.passes.lower import lower
from hlsgen.passes.mode import InputMode

__all__ = ["InputMode", "lower"]
