"""Sums and differences of several branches."""

from __future__ import annotations

import numpy as np
import onnx
from models import DOMAIN, Net, newer


def network(scales: list[float], ops: str, end: float = 0.4, bits: float = 8.0) -> onnx.ModelProto:
    """A branch for each scale (0: not quantized), joined from left to right, and a quantizer."""
    r = np.random.default_rng(len(scales))
    n = Net((1, 6)).quant(2.0**-3, bits=6.0)
    data, ends = n.last, []
    for scale in scales:
        n.node("IntQuant", np.float32(r.integers(-7, 8, (6, 3)) / 8), 0.125, 0.0, 4.0, domain=DOMAIN)
        n.node("MatMul", data, n.last)
        ends.append(n.quant(scale, bits=bits).last if scale else n.last)
    n.last = ends[0]
    for op, other in zip(ops.split(), ends[1:], strict=True):
        n.node(op, n.last, other)
    return newer(n.quant(end, bits=7.0, name="last").model())
