"""A Map as a bundle of functions of one integer: one for each distinct set of constants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from hlsgen.ir.encoding import Encoding, FloatKey
from hlsgen.ir.evaluate import apply, constants, decode, lead_axes, quantize, with_constants
from hlsgen.ir.graph import Map
from hlsgen.ir.model import Shape
from hlsgen.ir.ops import Elementwise, Quantizer
from hlsgen.numerics.fixed import Array, IntType

T = TypeVar("T", bound=Elementwise | Encoding)


@dataclass(frozen=True, eq=False)
class StepFunction:
    """`sets` functions code -> code. All constants have shape (lead..., sets).

    `index` (elements,): which set the p-th element of the stream uses. `lo`, `hi` (sets,):
    reachable input interval. For float32 input the domain is the keys of -inf..+inf and 0 for NaN.
    """

    name: str
    source: Encoding
    ops: tuple[Elementwise, ...]
    quantizer: Quantizer
    index: Array
    lo: Array
    hi: Array
    input_type: IntType
    output_type: IntType

    @property
    def sets(self) -> int:
        return len(self.lo)

    @property
    def is_float(self) -> bool:
        return isinstance(self.source, FloatKey)

    def evaluate(self, codes: Array) -> Array:
        """int64 codes (..., sets) -> int64 codes, by the model's own operations."""
        return quantize(self.quantizer, self.before(len(self.ops), codes))

    def before(self, count: int, codes: Array) -> Array:
        """The values behind the first `count` operations."""
        x = decode(self.source, codes)
        for op in self.ops[:count]:
            x = apply(op, x)
        return x

    def take(self, columns: Array, lo: Array, hi: Array) -> StepFunction:
        """The functions of these sets (one may come several times), each on an interval of its own."""

        def chosen(item: T) -> T:
            return with_constants(item, {name: value[..., columns] for name, value in constants(item).items()})

        ops = tuple(chosen(op) for op in self.ops)
        return replace(self, source=chosen(self.source), ops=ops, quantizer=chosen(self.quantizer), lo=lo, hi=hi)


def specialize(layer: Map, order: Array, lo: Array | None = None, hi: Array | None = None) -> StepFunction:
    """The step functions of a Map whose tensors arrive in that order.

    `lo`, `hi`: reachable interval of each element of the last axis, default the source's type.
    """
    source = layer.source.type
    ends = [np.asarray(source.lo) if lo is None else lo, np.asarray(source.hi) if hi is None else hi]
    items = [layer.source.encoding, *layer.ops, layer.quantizer]
    chosen, (low, high), index = distinct(items, ends, layer.source.shape, order)
    return StepFunction(
        layer.name, chosen[0], tuple(chosen[1:-1]), chosen[-1], index,  # type: ignore[arg-type]
        low, high, source, layer.result.type,
    )  # fmt: skip


def merged(f: StepFunction) -> StepFunction:
    """Sets with the same constants as one, on the interval from the least to the largest input of all of them."""
    items = (f.source, *f.ops, f.quantizer)
    own = [value.reshape(-1, f.sets).T for item in items for value in constants(item).values()]
    numbers: dict[bytes, int] = {}
    rows = (b"".join(columns[s].tobytes() for columns in own) for s in range(f.sets))
    number = np.array([numbers.setdefault(row, len(numbers)) for row in rows], np.int64)
    lo, hi = np.full(len(numbers), f.lo.max()), np.full(len(numbers), f.hi.min())
    np.minimum.at(lo, number, f.lo)
    np.maximum.at(hi, number, f.hi)
    return replace(f.take(np.unique(number, return_index=True)[1], lo, hi), index=number[f.index])


def distinct(
    items: Sequence[Elementwise | Encoding], ends: Sequence[Array], shape: Shape, order: Array
) -> tuple[list[Elementwise | Encoding], list[Array], Array]:
    """The sets of constants of a tensor's elements: `items` with constants (lead..., sets), `ends`, integers
    that broadcast to the tensor, as int64 (sets,), and the set of each stream position."""
    numbers = [_spread(end, shape, 0) for end in ends]
    wide: list[tuple[int, str, Array]] = []
    for number, item in enumerate(items):
        for name, value in constants(item).items():
            wide.append((number, name, _spread(value, shape, lead_axes(item, name))))
    own = [(end, 0) for end in ends]
    own += [(value, lead_axes(item, name)) for item in items for name, value in constants(item).items()]
    index, chosen = _distinct([_with_axes(value, shape, lead) for value, lead in own], shape, order)

    def taken(value: Array) -> Array:
        return np.asarray(value[..., chosen] if value.shape[-1] > 1 else np.repeat(value, len(chosen), -1))

    new: list[dict[str, Array]] = [{} for _ in items]
    for number, name, value in wide:
        new[number][name] = taken(value)
    specialized = [with_constants(item, values) for item, values in zip(items, new, strict=True)]
    return specialized, [taken(a).astype(np.int64) for a in numbers], index


def _spread(value: Array, shape: Shape, lead: int) -> Array:
    """(lead..., elements), or (lead..., 1) if the same for all elements."""
    front, own = value.shape[:lead], value.shape[lead:]
    if all(s == 1 for s in own):
        return value.reshape(*front, 1)
    own = (1,) * (len(shape) - len(own)) + own
    return np.broadcast_to(value.reshape(front + own), front + shape).reshape(*front, -1)


def _with_axes(value: Array, shape: Shape, lead: int) -> Array:
    """(number, axes...): all leading axes as one, and those of the tensor, each as long as there or 1."""
    front, own = value.shape[:lead], value.shape[lead:]
    own = own[max(0, len(own) - len(shape)) :]
    return value.reshape(math.prod(front), *(1,) * (len(shape) - len(own)), *own)


def _distinct(arrays: list[Array], shape: Shape, order: Array) -> tuple[Array, Array]:
    """(set of each stream position, an element of each set), sets in order of first use.

    Elements are compared only along the axes along which something varies at all: mostly there are as many as
    channels, in a tensor of millions of elements.
    """
    arrays = [a for a in arrays if math.prod(a.shape[1:]) > 1]
    if not arrays:
        return np.zeros(len(order), np.int64), order[:1]
    small = np.broadcast_shapes(*(a.shape[1:] for a in arrays))
    size = math.prod(small)
    columns = [np.broadcast_to(a, (len(a), *small)).reshape(len(a), size).T for a in arrays]
    key = np.concatenate([np.ascontiguousarray(c).view(np.uint8).reshape(size, -1) for c in columns], axis=1)
    rows = np.ascontiguousarray(key).view(np.dtype((np.void, key.shape[1]))).ravel()
    known, kind = np.unique(rows, return_inverse=True)
    kinds = np.broadcast_to(kind.reshape(small), shape).reshape(-1)[order]
    first = np.full(len(known), len(order))
    first[kinds[::-1]] = np.arange(len(order))[::-1]  # of several positions the last one written, which is the first
    used = np.argsort(first)[: np.count_nonzero(first < len(order))]
    rank = np.empty(len(known), np.int64)
    rank[used] = np.arange(len(used))
    return rank[kinds], order[first[used]]
