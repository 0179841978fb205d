"""Codes for values that are not multiples of one scale: the rank of each value among all values of a tensor.

Elementwise operations on codes give finitely many values. Ranks are integers in the order of these values, so a
maximum, a border, a move or a Concat works on ranks as on the values themselves. Two existing operations convert
between both. A `MultiThreshold` at the values counts the values that x reaches, which is its rank. A `Lookup`
gives the value of a rank.

Each channel has its own lookup table if constants differ between channels. Its first and its last value can be
repeated. Hence all tables have one length, and the value of a border has one rank in all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hlsgen.ir import FloatKey, Value
from hlsgen.ir.evaluate import apply, apply_binary, decode
from hlsgen.ir.ops import BinaryKind, Elementwise, Lookup, MultiThreshold
from hlsgen.numerics.fixed import Array

#: Largest number of values of a tensor in a channel.
MAX_RANKS = 1 << 16
#: Largest number of evaluations to find the values: codes (or pairs of codes) times sets of constants.
_MAX_EVALUATIONS = 1 << 22


class Unranked(Exception):
    """The reason why values have no ranks; empty if the tensor is not made of codes at all."""


@dataclass(frozen=True, eq=False)
class Ranks:
    """`to` computes ranks from values, `back` values from ranks; `border` is the rank of the border's value."""

    to: MultiThreshold
    back: Lookup
    border: int = 0


def values_of_chain(value: Value, ops: Sequence[Elementwise]) -> Array:
    """All values after operations on codes, (channels or 1, values), in any order. Raises Unranked."""
    return _by_channel(_all_values(value, ops))


def values_of_pair(
    kind: BinaryKind,
    operand_a: tuple[Value, Sequence[Elementwise]],
    operand_b: tuple[Value, Sequence[Elementwise]],
    ops: Sequence[Elementwise],
) -> Array:
    """As `values_of_chain`, for `ops` on the combination of two tensors of codes."""
    x, y = _all_values(*operand_a)[:, None], _all_values(*operand_b)[None]
    if len(x) * y.shape[1] * max(x[0].size, y[0].size) > _MAX_EVALUATIONS:
        raise Unranked("can have too many pairs of values")
    combined = apply_binary(kind, x, y)
    return _by_channel(_apply_all(ops, combined.reshape(-1, *combined.shape[2:])))


def _all_values(value: Value, ops: Sequence[Elementwise]) -> Array:
    """All values after operations on the codes of a value. Raises Unranked."""
    count = value.type.hi - value.type.lo + 1
    if isinstance(value.encoding, FloatKey):
        raise Unranked
    if count > _MAX_EVALUATIONS:
        raise Unranked(f"can have more than {MAX_RANKS} values")
    one_code = _apply_all(ops, _decode_codes(value, np.array([value.type.lo])))
    if count * one_code.size > _MAX_EVALUATIONS:
        raise Unranked(f"can have more than {_MAX_EVALUATIONS} values in all elements together")
    return _apply_all(ops, _decode_codes(value, np.arange(value.type.lo, value.type.hi + 1)))


def _decode_codes(value: Value, codes: Array) -> Array:
    return decode(value.encoding, codes.reshape(-1, *(1,) * len(value.shape)))


def _apply_all(ops: Sequence[Elementwise], x: Array) -> Array:
    for op in ops:
        x = apply(op, x)
    return x


def _by_channel(values: Array) -> Array:
    """Reshape (codes, ..., channels or 1) to (channels or 1, all other axes)."""
    return np.moveaxis(values, -1, 0).reshape(values.shape[-1], -1)


def ranks(parts: Sequence[Array], rank: int, border: float | None, distinguishes_zeros: bool) -> Ranks:
    """Ranks of the values of tensors with `rank` axes, each given as (channels or 1, values). Raises Unranked.

    `border`: a value that must have one rank in all channels. `distinguishes_zeros`: -0.0 and 0.0, which have
    one rank, may not become one value.
    """
    channels = max(len(part) for part in parts)
    columns = []
    for channel in range(channels):
        channel_values = [part[channel % len(part)] for part in parts]
        if border is not None:
            channel_values.append(np.asarray([border]).astype(parts[0].dtype))
        columns.append(_distinct_values(np.concatenate(channel_values), distinguishes_zeros))
    if all(np.array_equal(column, columns[0]) for column in columns):
        columns = columns[:1]
    border_ranks = [
        0 if border is None else int(np.searchsorted(column, column.dtype.type(border))) for column in columns
    ]
    largest_rank = max(border_ranks)
    remaining = max(
        2 - largest_rank,
        *(len(column) - border_rank for column, border_rank in zip(columns, border_ranks, strict=True)),
    )
    table = np.stack(
        [
            np.pad(column, (largest_rank - border_rank, remaining + border_rank - len(column)), mode="edge")
            for column, border_rank in zip(columns, border_ranks, strict=True)
        ],
        axis=-1,
    )
    if len(table) > MAX_RANKS:
        raise Unranked(f"can have more than {MAX_RANKS} values")
    table = table.reshape(len(table), *(1,) * (rank - 1), -1)
    return Ranks(MultiThreshold(table[1:], 1.0, 0.0), Lookup(table), largest_rank)


def _distinct_values(values: Array, distinguishes_zeros: bool) -> Array:
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
