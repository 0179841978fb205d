"""Model -> Graph: float steps become integer layers."""

from hlsgen.passes.input_mode import InputMode, typed
from hlsgen.passes.lower import lower

__all__ = ["InputMode", "lower", "typed"]
