"""Codes for values that are no multiples of one scale: the rank of each value among all that a tensor can have.

Elementwise operations behind codes give finitely many values. Ranks are integers in the order of these values, so a
maximum, a border, a move or a Concat works on ranks as on the values themselves. Two operations that exist anyway go
there and back: a `MultiThreshold` at the values counts those that x reaches, which is its rank, and a `Lookup` gives
the value of a rank.

Each channel has a table of its own where constants differ between channels. Its first and its last value can stand in
it several times: so tables have one length, and the value of a border has one rank in all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlsgen.ir import FloatKey, Value
from hlsgen.ir.evaluate import apply, apply_binary, decode
from hlsgen.ir.ops import BinaryKind, Elementwise, Lookup, MultiThreshold
from hlsgen.numerics.fixed import Array

#: Most values that a tensor may have in a channel.
MAX_RANKS = 1 << 16
#: Most evaluations that find them: codes (or pairs of codes) times sets of constants.
_MAX_EVALUATIONS = 1 << 22


class Unranked(Exception):
    """Why values have no ranks; empty where the tensor is not made of codes at all."""


@dataclass(frozen=True, eq=False)
class Ranks:
    """`to` computes ranks of values, `back` values of ranks; `border` is the rank of the border's value."""

    to: MultiThreshold
    back: Lookup
    border: int = 0


def values_of_chain(value: Value, ops: Sequence[Elementwise]) -> Array:
    """All values behind operations on codes, (channels or 1, values), in any order. Raises Unranked."""
    return _by_channel(_behind(value, ops))


def values_of_pair(
    kind: BinaryKind, left: tuple[Value, Sequence[Elementwise]], right: tuple[Value, Sequence[Elementwise]],
    ops: Sequence[Elementwise],
) -> Array:  # fmt: skip
    """The same behind operations on what two tensors of codes give together."""
    x, y = _behind(*left)[:, None], _behind(*right)[None]
    if len(x) * y.shape[1] * max(x[0].size, y[0].size) > _MAX_EVALUATIONS:
        raise Unranked("can have too many pairs of values")
    both = apply_binary(kind, x, y)
    return _by_channel(_applied(ops, both.reshape(-1, *both.shape[2:])))


def _behind(value: Value, ops: Sequence[Elementwise]) -> Array:
    count = value.type.hi - value.type.lo + 1
    if isinstance(value.encoding, FloatKey):
        raise Unranked
    if count > _MAX_EVALUATIONS:
        raise Unranked(f"can have more than {MAX_RANKS} values")
    first = _applied(ops, _decoded(value, np.array([value.type.lo])))
    if count * first.size > _MAX_EVALUATIONS:
        raise Unranked(f"can have more than {_MAX_EVALUATIONS} values in all elements together")
    return _applied(ops, _decoded(value, np.arange(value.type.lo, value.type.hi + 1)))


def _decoded(value: Value, codes: Array) -> Array:
    return decode(value.encoding, codes.reshape(-1, *(1,) * len(value.shape)))


def _applied(ops: Sequence[Elementwise], x: Array) -> Array:
    for op in ops:
        x = apply(op, x)
    return x


def _by_channel(values: Array) -> Array:
    """(channels or 1, all others) of (codes, ..., channels or 1)."""
    return np.moveaxis(values, -1, 0).reshape(values.shape[-1], -1)


def ranks(parts: Sequence[Array], rank: int, border: float | None, distinguishes_zeros: bool) -> Ranks:
    """Ranks of values that tensors of `rank` axes have, (channels or 1, values) of each. Raises Unranked.

    `border`: a value that has to have one rank in all channels. `distinguishes_zeros`: whether -0.0 and 0.0, which have
    one rank, may not become one value.
    """
    channels = max(len(part) for part in parts)
    columns = []
    for channel in range(channels):
        own = [part[channel % len(part)] for part in parts]
        if border is not None:
            own.append(np.asarray([border]).astype(parts[0].dtype))
        columns.append(_sorted(np.concatenate(own), distinguishes_zeros))
    if all(np.array_equal(column, columns[0]) for column in columns):
        columns = columns[:1]
    places = [0 if border is None else int(np.searchsorted(column, column.dtype.type(border))) for column in columns]
    most = max(places)
    behind = max(2 - most, *(len(column) - place for column, place in zip(columns, places, strict=True)))
    table = np.stack(
        [
            np.pad(column, (most - place, behind + place - len(column)), mode="edge")
            for column, place in zip(columns, places, strict=True)
        ],
        axis=-1,
    )
    if len(table) > MAX_RANKS:
        raise Unranked(f"can have more than {MAX_RANKS} values")
    table = table.reshape(len(table), *(1,) * (rank - 1), -1)
    return Ranks(MultiThreshold(table[1:], 1.0, 0.0), Lookup(table), most)


def _sorted(values: Array, distinguishes_zeros: bool) -> Array:
    """Each value once, ascending."""
    if values.dtype.kind == "f":
        if np.isnan(values).any():
            raise Unranked("can be NaN, which has no place among numbers")
        signs = np.signbit(values[values == 0])
        if len(set(signs.tolist())) > 1:
            if distinguishes_zeros:
                raise Unranked("can be -0.0 and 0.0, which an operation of the model tells apart")
            values = np.where(values == 0, values.dtype.type(0), values)
    return np.unique(values)
