"""Checked constant inputs and attributes of a QONNX quantizer."""

from __future__ import annotations

from typing import Literal

import numpy as np

from hlsgen.diagnostics import Collector, Diagnostic, HlsgenError, fail
from hlsgen.frontend.dialect_integer import NEGATIVE_SCALE, POSITIVE_SCALE
from hlsgen.frontend.node_context import NodeContext
from hlsgen.numerics.fixed import Array, Rounding, parse_rounding

MAX_BITS = 32


class QuantizerParameters:
    """Reader of the constant inputs and attributes of a quantizer, which collects all errors.

    It is a context manager that raises the errors together at its end. `names`: names of the inputs after the data;
    input 0 here is the first of these. Arrays have the data's rank and their own dtype.
    """

    def __init__(self, node: NodeContext, names: list[str]) -> None:
        self.node, self.shape, self.attrs, self.names = node.name, node.shape, node.attrs, names
        self.inputs = node.constants[1:]
        self.problems = Collector()

    def __enter__(self) -> QuantizerParameters:
        if len(self.inputs) < len(self.names):
            missing = ", ".join(self.names[len(self.inputs) :])
            hint = f"The inputs are X, {', '.join(self.names)}."
            raise fail("HG014", self.node, f"input {missing} is missing.", hint)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> Literal[False]:
        if isinstance(error, HlsgenError):
            self.problems.items.extend(error.diagnostics)
        elif kind is not None:
            return False
        self.problems.finish()
        return False

    def error(self, code: str, message: str, hint: str = "") -> None:
        """Add an error of this node."""
        self.problems.items.append(Diagnostic(code, self.node, message, hint))

    def raw(self, i: int) -> Array:
        """The array of an input without changes. Raises HG020."""
        const = self.inputs[i]
        if const is None:
            raise fail(
                "HG020",
                self.node,
                f"input {self.names[i]} is not a constant.",
                "It must be an initializer or computed from constants only.",
            )
        return const.array

    def array(self, i: int) -> Array:
        """The array of an input, which must be numbers and not empty. Raises HG020, HG023, HG026."""
        array = self.raw(i)
        if array.dtype.kind not in "fiu":
            raise fail(
                "HG026",
                self.node,
                f"input {self.names[i]} is of type {array.dtype}, no numbers.",
                "Store it as float32.",
            )
        if not array.size:
            raise fail(
                "HG023",
                self.node,
                f"input {self.names[i]} of shape {list(array.shape)} is empty.",
                "Supported: a scalar, or one value per channel.",
            )
        return array

    def channel(self, i: int, *, any_axes: bool = False) -> Array:
        """A scalar or per-channel parameter, with the data's rank. `any_axes`: it may differ along several axes."""
        array = self.array(i)
        while array.ndim > len(self.shape) and array.shape[0] == 1:
            array = array[0]
        array = array.reshape((1,) * (len(self.shape) - array.ndim) + array.shape)
        shape: tuple[int, ...] = array.shape
        channel_axes = [axis for axis, size in enumerate(shape) if size > 1]
        fits = array.ndim == len(self.shape) and all(array.shape[a] == self.shape[a] for a in channel_axes)
        if not fits or (len(channel_axes) > 1 and not any_axes):
            self.error(
                "HG023",
                f"{self.names[i]} has the shape {list(self.raw(i).shape)}, the data {list(self.shape)}.",
                "Supported: each axis of the data's length or 1."
                if any_axes
                else "Supported: a scalar, or one value per channel (one axis longer than 1).",
            )
            return np.ones((1,) * len(self.shape), array.dtype)
        return array

    def scale(self, i: int, *, any_axes: bool = False) -> Array:
        """A finite scale greater than 0."""
        scale = self.channel(i, any_axes=any_axes)
        real = scale.astype(np.float64)
        if not np.isfinite(real).all() or (real <= 0).any():
            bad = real.ravel()[~(np.isfinite(real) & (real > 0)).ravel()][0]
            self.error("HG022", f"{self.names[i]} is {bad}.", f"{POSITIVE_SCALE} {NEGATIVE_SCALE}")
            return np.ones_like(scale)
        return _simplest(scale, 1)

    def zero_point(self, i: int, *, any_axes: bool = False) -> Array:
        """A finite zero point."""
        zero = self.channel(i, any_axes=any_axes)
        if not np.isfinite(zero.astype(np.float64)).all():
            self.error("HG024", f"{self.names[i]} is not finite.", "It must be a finite number, preferably an integer.")
            return np.zeros_like(zero)
        return _simplest(zero, 0)

    def bits(self, i: int, minimum: int = 1, maximum: int = MAX_BITS) -> int:
        """A bit width, or another whole property of a number format, from `minimum` to `maximum`."""
        array = self.array(i)
        if array.size != 1:
            text = f"{self.names[i]} has the shape {list(array.shape)}."
            self.error("HG021", text, "It must be a single number.")
            return maximum
        number = float(array.reshape(()))
        if number != number or number != np.floor(number):
            self.error("HG021", f"{self.names[i]} is {number}.", "It must be a whole number.")
        elif not minimum <= number <= maximum:
            self.error("HG021", f"{self.names[i]} is {number:g}.", f"Supported: {minimum} to {maximum}.")
        else:
            return int(number)
        return minimum

    def widths(self, i: int) -> Array:
        """Bit widths int64 with the data's rank, 0 for a pruned element; of one element if all are equal."""
        array = self.array(i)
        if array.size == 1:
            return np.full((1,) * len(self.shape), self.bits(i))
        numbers = self.channel(i, any_axes=True).astype(np.float64)
        if not ((numbers == np.round(numbers)) & (numbers >= 0) & (numbers <= MAX_BITS)).all():
            self.error("HG021", f"{self.names[i]} holds numbers other than 0 to {MAX_BITS}.", "0 prunes an element.")
            numbers = np.full(numbers.shape, MAX_BITS)
        equal = numbers.min() == numbers.max() > 0
        return (numbers.reshape(-1)[:1].reshape((1,) * numbers.ndim) if equal else numbers).astype(np.int64)

    def flag(self, key: str, default: int) -> bool:
        """An attribute that is 0 or 1."""
        flag = self.attrs.get(key, default)
        if flag not in (0, 1):
            self.error("HG013", f"attribute {key} is {flag!r}.", "It must be 0 or 1.")
        return bool(flag in (1, True))

    def number(self, key: str, default: float) -> float:
        """An attribute that is a number."""
        number = self.attrs.get(key, default)
        if isinstance(number, (int, float)):
            return float(number)
        self.error("HG013", f"attribute {key} is {number!r}.", "It must be a number.")
        return default

    def mode(self, default: str) -> Rounding:
        """The attribute rounding_mode."""
        name = str(self.attrs.get("rounding_mode", default))
        mode = parse_rounding(name)
        if mode is None:
            self.error(
                "HG025",
                f"attribute rounding_mode is {name!r}.",
                "Supported: " + ", ".join([*Rounding.__members__, "HALF_EVEN"]) + ", in upper or lower case.",
            )
        return mode or Rounding.ROUND


def _simplest(array: Array, neutral: int) -> Array:
    """The array as float32 if results stay the same: for floats of up to 32 bits, and for the neutral element."""
    if array.dtype in (np.float16, np.float32) or bool((array == neutral).all()):
        return array.astype(np.float32)
    return array if np.result_type(np.float32, array.dtype) == np.float64 else array.astype(np.float32)
