"""A trigger network: most weights are 0; each weight and activation has a width and a binary point of its own."""

from __future__ import annotations

import itertools
import sys
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from places import ROOT

sys.path.insert(0, str(ROOT / "tests" / "support"))

from models import Net

#: Bits of weights, the sign aside, with their shares; bits of activations likewise.
_WEIGHT_BITS, _WEIGHT_SHARES = (1, 2, 3, 4), (0.35, 0.3, 0.2, 0.15)
_CODE_BITS, _CODE_SHARES = (2, 3, 4, 5, 6), (0.2, 0.25, 0.25, 0.2, 0.1)
#: The finest binary point of weights.
_POINT = 5


@dataclass(frozen=True)
class MixedWidths:
    """Dense layers with biases and Relu. Quantizers round down. `wraps`: they drop high bits; else they saturate."""

    sizes: tuple[int, ...]
    zeros: float
    seed: int
    wraps: bool = False

    @cached_property
    def parameters(self) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
        """Of each layer: weights, biases, and the bits and binary points of the codes before it."""
        rng = np.random.default_rng(self.seed)
        weights, biases = [], []
        bits = [rng.choice(_CODE_BITS, size, p=_CODE_SHARES) for size in self.sizes[:-1]]
        points = [np.maximum(bits[0] - 3, 0)]
        spread = np.full(self.sizes[0], 2.0)
        for columns, rows in itertools.pairwise(self.sizes):
            digits = rng.choice(_WEIGHT_BITS, (columns, rows), p=_WEIGHT_SHARES)
            codes = rng.integers(1, 2**digits) * rng.choice([-1, 1], (columns, rows))
            weight = np.where(
                rng.random(codes.shape) < self.zeros, 0, codes * 2.0 ** -rng.integers(2, _POINT, codes.shape)
            )
            size = np.maximum(np.sqrt((weight**2 * spread[:, None] ** 2).sum(axis=0)), 0.25)
            weights.append(weight)
            biases.append(np.round(rng.normal(0, 0.3, rows) * size * 8) / 8)
            if len(weights) < len(bits):
                points.append(bits[len(weights)] - np.ceil(np.log2(3 * size)).astype(int))
            spread = 0.6 * size
        return weights, biases, bits, points

    def numbers(self, x: np.ndarray) -> np.ndarray:
        """The outputs for inputs (frames, inputs), which the first quantizer rounds."""
        weights, biases, bits, points = self.parameters
        for n, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            codes = np.floor((np.maximum(x, 0) if n else x) * 2.0 ** points[n])
            low = -(2.0 ** (bits[n] - 1)) * (n == 0)
            high = low + 2.0 ** bits[n] - 1
            codes = (codes - low) % 2.0 ** bits[n] + low if self.wraps else np.clip(codes, low, high)
            x = (codes * 2.0 ** -points[n]) @ weight + bias
        return x

    def model(self) -> onnx.ModelProto:
        """QONNX, with IntQuant that have a scale and a width for each element."""
        assert not self.wraps, "IntQuant saturates"
        weights, biases, bits, points = self.parameters
        net = Net((1, self.sizes[0]))
        for n, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            if n:
                net.then("Relu")
            scale, width = (2.0 ** -points[n]).astype(np.float32)[None], bits[n].astype(np.float32)[None]
            net.quant(scale, 0.0, width, signed=int(not n), narrow=0, rounding_mode="FLOOR")
            step = 2.0 ** (1 - _POINT)
            net.linear(weight=weight.astype(np.float32), scale=step, bits=8.0, name=f"fc{n}")
            net.then("Add", bias.astype(np.float32))
        return net.model()

    def traced(self) -> Any:
        """The network as alkaid's program. Raises FileNotFoundError if alkaid is not installed."""
        try:
            from alkaid.trace import FVArrayInput, HWConfig, trace
            from alkaid.trace.ops import quantize, relu
        except ImportError as error:
            raise FileNotFoundError("alkaid is not installed: pip install -e '.[csim]'") from error
        weights, biases, bits, points = self.parameters
        mode = "WRAP" if self.wraps else "SAT"
        x = FVArrayInput((self.sizes[0],), solver_options={"hard_dc": 2}, hwconf=HWConfig(1, -1, -1))
        # Inputs are codes: their quantizer needs no hardware.
        value = quantize(x, 1, bits[0] - 1 - points[0], points[0], "WRAP", "TRN")
        for n, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            if n:
                value = quantize(relu(value), 0, bits[n] - points[n], points[n], mode, "TRN")
            value = value @ weight + bias
        return trace(x, value)

    def alir(self) -> Path:
        """The file of alkaid's program."""
        path = Path(tempfile.mkdtemp(), "model.alir.json")
        self.traced().save(path)
        return path


MIXED, MIXED_WRAPS = (MixedWidths((16, 64, 32, 32, 5), 0.87, 8, wraps) for wraps in (False, True))
