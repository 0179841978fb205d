"""Random pauses for the channels of cocotbext-axi."""

from __future__ import annotations

import random
from collections.abc import Iterator


def pauses(rng: random.Random, chance: float) -> Iterator[bool]:
    """Per cycle: the channel pauses."""
    while True:
        yield rng.random() < chance
