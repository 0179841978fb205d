"""The constant inputs and the attributes of a quantizer, checked."""

from __future__ import annotations

from typing import Literal

import numpy as np

from hlsgen.diagnostics import Collector, Diagnostic, HlsgenError, fail
from hlsgen.frontend.dialect_integer import NEGATIVE_SCALE, POSITIVE_SCALE
from hlsgen.frontend.node_context import NodeContext
from hlsgen.numerics.fixed import Array, Rounding, parse_rounding

MAX_BITS = 32


class QuantizerParameters:
    """Reads the constant inputs of a quantizer, collecting what is wrong with them.

    Used as a context: all problems are raised together at its end. `names` are those of the inputs
    behind the data; input 0 here is the first of these. Arrays come back with the data's rank, in
    their own dtype.
    """

    def __init__(self, node: NodeContext, names: list[str]) -> None:
        self.node, self.shape, self.attrs, self.names = node.name, node.shape, node.attrs, names
        self.inputs = node.constants[1:]
        self.problems = Collector()

    def __enter__(self) -> QuantizerParameters:
        if len(self.inputs) < len(self.names):
            missing = ", ".join(self.names[len(self.inputs) :])
            raise fail("HG014", self.node, f"input {missing} is missing.", f"Inputs: X, {', '.join(self.names)}.")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> Literal[False]:
        if isinstance(error, HlsgenError):
            self.problems.items.extend(error.diagnostics)
        elif kind is not None:
            return False
        self.problems.finish()
        return False

    def error(self, code: str, message: str, hint: str = "") -> None:
        self.problems.items.append(Diagnostic(code, self.node, message, hint))

    def raw(self, i: int) -> Array:
        """The constant as it stands; a scalar keeps its dtype as a 0-d array."""
        const = self.inputs[i]
        if const is None:
            raise fail(
                "HG020", self.node, f"input {self.names[i]} is not a constant.",
                "It must be an initializer or computed from constants only.",
            )  # fmt: skip
        return const.array

    def array(self, i: int) -> Array:
        array = self.raw(i)
        if array.dtype.kind not in "fiu":
            raise fail(
                "HG026", self.node, f"input {self.names[i]} is of type {array.dtype}; numbers are needed.",
                "Store it as float32.",
            )  # fmt: skip
        if not array.size:
            raise fail(
                "HG023", self.node, f"input {self.names[i]} of shape {list(array.shape)} is empty.",
                "Supported: a scalar, or one value per channel.",
            )  # fmt: skip
        return array

    def channel(self, i: int) -> Array:
        """A scalar or per-channel parameter, brought to the data's rank."""
        array = self.array(i)
        while array.ndim > len(self.shape) and array.shape[0] == 1:
            array = array[0]
        array = array.reshape((1,) * (len(self.shape) - array.ndim) + array.shape)
        shape: tuple[int, ...] = array.shape
        wide = [axis for axis, size in enumerate(shape) if size > 1]
        fits = array.ndim == len(self.shape) and all(array.shape[a] == self.shape[a] for a in wide)
        if not fits or len(wide) > 1:
            self.error(
                "HG023",
                f"{self.names[i]} of shape {list(self.raw(i).shape)} for data of shape {list(self.shape)}.",
                "Supported: a scalar, or one value per channel (one axis longer than 1).",
            )
            return np.ones((1,) * len(self.shape), array.dtype)
        return array

    def scale(self, i: int) -> Array:
        scale = self.channel(i)
        real = scale.astype(np.float64)
        if not np.isfinite(real).all() or (real <= 0).any():
            bad = real.ravel()[~(np.isfinite(real) & (real > 0)).ravel()][0]
            self.error("HG022", f"{self.names[i]} is {bad}.", f"{POSITIVE_SCALE} {NEGATIVE_SCALE}")
            return np.ones_like(scale)
        return _simplest(scale, 1)

    def zero_point(self, i: int) -> Array:
        zero = self.channel(i)
        if not np.isfinite(zero.astype(np.float64)).all():
            self.error("HG024", f"{self.names[i]} is not finite.", "It must be a number, best a whole one.")
            return np.zeros_like(zero)
        return _simplest(zero, 0)

    def bits(self, i: int, least: int = 1, most: int = MAX_BITS) -> int:
        """A whole number of bits, or another property of a number format."""
        array = self.array(i)
        if array.size != 1:
            self.error("HG021", f"{self.names[i]} of shape {list(array.shape)}.", "It must be a single number.")
            return most
        value = float(array.reshape(()))
        if value != value or value != np.floor(value):
            self.error("HG021", f"{self.names[i]} is {value}.", "It must be a whole number of bits.")
        elif not least <= value <= most:
            self.error("HG021", f"{self.names[i]} is {value:g}.", f"Supported: {least} to {most}.")
        else:
            return int(value)
        return least

    def flag(self, key: str, default: int) -> bool:
        value = self.attrs.get(key, default)
        if value not in (0, 1):
            self.error("HG013", f"attribute {key} is {value!r}.", "It must be 0 or 1.")
        return bool(value in (1, True))

    def number(self, key: str, default: float) -> float:
        value = self.attrs.get(key, default)
        if isinstance(value, (int, float)):
            return float(value)
        self.error("HG013", f"attribute {key} is {value!r}.", "It must be a number.")
        return default

    def mode(self, default: str) -> Rounding:
        name = str(self.attrs.get("rounding_mode", default))
        mode = parse_rounding(name)
        if mode is None:
            self.error(
                "HG025", f"rounding_mode is {name!r}.",
                "Supported: " + ", ".join([*Rounding.__members__, "HALF_EVEN"]) + ", in any case.",
            )  # fmt: skip
        return mode or Rounding.ROUND


def _simplest(array: Array, neutral: int) -> Array:
    """float32 where that changes nothing: for floats of up to 32 bits and the neutral integer."""
    if array.dtype in (np.float16, np.float32) or bool((array == neutral).all()):
        return array.astype(np.float32)
    return array if np.result_type(np.float32, array.dtype) == np.float64 else array.astype(np.float32)
