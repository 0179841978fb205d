"""Codes as a function of an integer source, such as pixels or samples of a microphone.

The function is a shift, a lookup table, or thresholds. It equals the head for every integer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np

from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.interpreter.graph import encode_array
from hlsgen.ir import ArgMax, HostOp, IntegerSource, Reshape, Shape, Step, Transpose, Value
from hlsgen.ir.evaluate import constant_shapes
from hlsgen.ir.ops import Quantizer
from hlsgen.numerics.fixed import Array, IntType

#: Most codes that the search for a function evaluates, most entries of a lookup table, most thresholds.
MAX_CODES, MAX_ENTRIES, MAX_THRESHOLDS = 1 << 23, 1 << 17, 1 << 12
#: Axes of the tensors in which a function of one integer is evaluated.
_RANK = 8


@dataclass(frozen=True)
class Shift:
    """Code = (n * 2^up + add + (bit `down` of n, if `even`)) >> down, plus `offset`, limited to `type`.

    `even`: a half goes to the even neighbour.
    """

    up: int
    down: int
    add: int
    even: bool
    offset: int
    type: IntType

    def codes(self, source: Array) -> Array:
        """The codes of integers int64."""
        bit = (source >> self.down) & 1 if self.even else np.int64(0)
        shifted = ((source << self.up) + self.add + bit) >> self.down
        return np.asarray(np.clip(shifted + self.offset, self.type.lo, self.type.hi))


@dataclass(frozen=True, eq=False)
class Entries:
    """A table of codes: integer n has the code `table[n - first]`; further axes broadcast with the tensor."""

    first: int
    table: Array


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Code = `base` + `sign` * (the number of thresholds that n reaches); axes as in `Entries`."""

    thresholds: Array
    base: int
    sign: int


CodeFunction: TypeAlias = Shift | Entries | Thresholds


@dataclass(frozen=True, eq=False)
class SourceTest:
    """A test of a head on every integer: in frame f element i is first + (f * stride + i) % count.

    total: the sum of all codes, the first one times 1, the next one times 3 and so on, modulo 2^64.
    """

    first: int
    count: int
    frames: int
    stride: int
    total: int

    def integers(self, frames: Array, elements: int) -> Array:
        """The integers of these frames, int64 (frames, elements)."""
        return self.first + (frames[:, None] * self.stride + np.arange(elements)) % self.count


@dataclass(frozen=True, eq=False)
class SourceHead:
    """A head whose numbers are integers times a scale.

    steps, encode: make codes of `port` from a tensor of this shape and dtype.
    """

    source: IntegerSource
    steps: tuple[Step, ...]
    encode: Quantizer | None
    port: Value
    shape: Shape
    dtype: str

    @cached_property
    def integers(self) -> Array:
        """All integers of the source, int64."""
        info = np.iinfo(self.source.dtype)
        return np.arange(info.min, int(info.max) + 1, dtype=np.int64)

    @cached_property
    def _numbers(self) -> Array:
        """The numbers of the model that the integers are, each rounded once. Raises HG040 if a dtype lacks one."""
        exact, numbers = _rounded(self.source, self.dtype)
        if numbers.dtype.kind != "f":
            for number, integer in zip(exact, numbers.tolist(), strict=True):
                if number != integer:
                    text = f"{number} is no number of type {self.dtype}, the type of the model's input."
                    raise self._refused(text, "Give another scale.")
        return numbers

    def numbers(self, integers: Array) -> Array:
        """The numbers of the model that these integers are."""
        return np.asarray(self._numbers[integers.astype(np.int64) - int(self.integers[0])])

    @cached_property
    def function(self) -> CodeFunction:
        """The codes for each integer. Raises HG040 if they are no function of it that fits into host code."""
        for step in self.steps:
            if isinstance(step.op, ArgMax | HostOp):
                raise self._refused(f"{step.name} computes with several elements.", "Leave the option out.")
        table = self._table
        if table[0].size == 1 and (shift := _shift(self.integers, table.ravel())):
            return shift
        if len(self.integers) > 256 and (thresholds := _thresholds(self.integers, table)):
            return thresholds
        if table.size > MAX_ENTRIES:
            text = f"a lookup table would need {table.size} codes, more than {MAX_ENTRIES}."
            raise self._refused(text, "Name a type of 8 bits, or leave the option out.")
        return Entries(int(self.integers[0]), table)

    @cached_property
    def test(self) -> SourceTest:
        """The test of the head on every integer; in each element, unless all elements have the same function."""
        elements, count = math.prod(self.shape), len(self.integers)
        is_uniform = self._table[0].size == 1
        stride, frames = (elements, -(-count // elements)) if is_uniform else (1, count)
        test, total, factor = SourceTest(int(self.integers[0]), count, frames, stride, 0), 0, 1
        for start in range(0, frames, 256):
            integers = test.integers(np.arange(start, min(start + 256, frames)), elements)
            codes = self._codes(self.steps, self.numbers(integers).reshape(-1, *self.shape)).ravel()
            factors = factor + 2 * np.arange(codes.size)
            total += int((codes.astype(np.uint64) * factors.astype(np.uint64)).sum(dtype=np.uint64))
            factor += 2 * codes.size
        return replace(test, total=total % (1 << 64))

    @cached_property
    def _table(self) -> Array:
        """Codes int64 (integers, *axes) that broadcast with the tensor of codes. Raises HG040."""
        elementwise = [step for step in self.steps if not isinstance(step.op, Reshape | Transpose)]
        operations: list[Any] = [step.op for step in elementwise] + ([] if self.encode is None else [self.encode])
        shapes = [shape for op in operations for shape in constant_shapes(op)]
        if all(math.prod(shape) == 1 for shape in shapes):
            codes = self._codes(tuple(elementwise), self._numbers.reshape(-1, *(1,) * _RANK))
            return codes.reshape(-1, *(1,) * len(self.port.shape))
        size = len(self.integers) * math.prod(self.shape)
        if size > MAX_CODES:
            text = f"the elements have different constants, so that it needs {size} codes, more than {MAX_CODES}."
            raise self._refused(text, "Name a type of 8 bits, or leave the option out.")
        parts = np.split(self._numbers.reshape(-1, *(1,) * len(self.shape)), len(self.integers) // 256)
        codes = np.concatenate([self._codes(self.steps, np.broadcast_to(part, (256, *self.shape))) for part in parts])
        for axis in range(1, codes.ndim):
            first = codes.take([0], axis)
            codes = first if (codes == first).all() else codes
        return codes

    def _codes(self, steps: tuple[Step, ...], numbers: Array) -> Array:
        """The codes of numbers (frames, ...). Raises HG040 if one is no code."""
        try:
            with np.errstate(all="ignore"):
                return encode_array(self.source.name, steps, self.encode, self.port, numbers, False)
        except HlsgenError as error:
            text = f"an integer is no code of the input: {error.diagnostics[0].message}"
            raise self._refused(text, "Build with an --input that has a code for each integer.") from None

    def _refused(self, text: str, hint: str) -> HlsgenError:
        return fail("HG040", f"--source {self.source.name}", text, hint)


@lru_cache(maxsize=8)
def _rounded(source: IntegerSource, dtype: str) -> tuple[list[Fraction], Array]:
    """The products of all integers and the scale, and the nearest number of a dtype to each; of two the even one."""
    info = np.iinfo(source.dtype)
    exact = [value * source.scale for value in range(info.min, int(info.max) + 1)]
    if np.dtype(dtype).kind != "f":
        lo, hi = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, int(np.iinfo(dtype).max))
        return exact, np.array([min(max(round(number), lo), hi) for number in exact], dtype)
    doubles = np.array([float(number) for number in exact])
    numbers = doubles.astype(dtype)
    # Halfway between two numbers, a double may itself be rounded.
    above = np.where(numbers < doubles, np.nextafter(numbers, np.inf, dtype=dtype), numbers)
    below = np.where(numbers > doubles, np.nextafter(numbers, -np.inf, dtype=dtype), numbers)
    for place in np.flatnonzero((above != below) & (above.astype(np.float64) + below == 2 * doubles)):
        error = exact[place] - Fraction(float(doubles[place]))
        numbers[place] = above[place] if error > 0 else below[place] if error < 0 else numbers[place]
    return exact, numbers


def _shift(integers: Array, codes: Array) -> Shift | None:
    """A shift that gives these codes of all integers."""
    bits = int(integers[-1] - integers[0]).bit_length()
    type_ = IntType(int(codes.min()), int(codes.max()))
    inner = np.flatnonzero((codes > type_.lo) & (codes < type_.hi))
    place = int(inner[len(inner) // 2]) if len(inner) else 0
    halves = [(0, 0, 0, False)] + [(up, 0, 0, False) for up in range(1, 17)]
    for down in range(1, bits + 1):
        half = 1 << (down - 1)
        halves += [(0, down, half - 1, True), (0, down, half, False), (0, down, half - 1, False), (0, down, 0, False)]
    for up, down, add, even in halves:
        plain = Shift(up, down, add, even, 0, IntType(-(1 << 40), 1 << 40))
        offset = int(codes[place]) - int(plain.codes(integers[place : place + 1])[0])
        shift = Shift(up, down, add, even, offset, type_)
        if np.array_equal(shift.codes(integers), codes):
            return shift
    return None


def _thresholds(integers: Array, table: Array) -> Thresholds | None:
    """The thresholds of a table whose columns all rise or all fall, or None for any other table."""
    rises, falls = (np.diff(table, axis=0) >= 0).all(), (np.diff(table, axis=0) <= 0).all()
    low, high = int(table.min()), int(table.max())
    if not (rises or falls) or high - low > MAX_THRESHOLDS or (high - low) * table[0].size > MAX_ENTRIES:
        return None
    sign, base = (1, low) if rises else (-1, high)
    counts = (table - base) * sign
    # If no integer reaches a count, the threshold is above all of them.
    places = [(counts < count).sum(axis=0) for count in range(1, high - low + 1)]
    return Thresholds(integers[0] + np.stack(places), base, sign) if places else None
