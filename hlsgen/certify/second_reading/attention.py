"""Second reading of Attention and MultiHeadAttention: heads, factor, mask; and of shares that a product takes as they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hlsgen.certify.second_reading.steps import Found, Told, differ
from hlsgen.ir import BatchMatMul, Softmax, Step
from hlsgen.ir.ops import Add, IntQuant, Mul
from hlsgen.numerics.fixed import Array, Rounding


def shares(step: Step) -> list[str]:
    """The quantizer of shares, in front of a product: the nearest multiples of 2^-24, from 0 to 1."""
    op = step.op
    assert isinstance(op, IntQuant)
    told = [*differ("unit of shares", op.scale, 2.0**-24), *differ("zero point of shares", op.zero_point, 0)]
    told += differ("range of shares", [op.type.lo, op.type.hi], [0, 2**24])
    return told + list(differ("rounding of shares", op.mode.name, Rounding.ROUND.name))


def _attention(found: Found, n: int) -> Told:
    """None where a part is a constant, or the node is of another domain."""
    file, attributes = found.file, found.file.attributes[n]
    ort = file.nodes[n].op_type == "MultiHeadAttention"
    if file.nodes[n].domain not in (("com.microsoft",) if ort else ("", "ai.onnx")):
        return None
    kinds: dict[str, type[Any]] = {"scores": BatchMatMul, "scaled": Mul, "shares": Softmax, "values": BatchMatMul}
    parts = {part: _part(found, n, part, kind) for part, kind in kinds.items()}
    unit, added = _part(found, n, "values", IntQuant), found.named.get(f"{file.names[n]}/masked", [])
    scores, scaled, shared, values = parts.values()
    if scores is None or scaled is None or shared is None or values is None or unit is None:
        return None
    (_, heads, rows, size), keys = found.source(scores), scores.shape[-1]
    told = shares(unit)
    told += differ("axis", shared.op.axis, len(shared.shape) - 1)  # type: ignore[union-attr]
    factor = np.float32(attributes.get("scale", 0.0) or 1 / math.sqrt(size))
    told += differ("factor", scaled.op.value, factor)  # type: ignore[union-attr]
    kept = attributes.get("num_heads", attributes.get("kv_num_heads", heads))
    told += differ("heads of keys", heads, kept)
    own = attributes.get("num_heads", attributes.get("q_num_heads", 0))
    queries = rows if own in (0, kept) else rows * kept // own
    mask = _mask(found, n, (queries, keys))
    if mask is None:
        return None
    adds = [step for step in added if isinstance(step.op, Add)]
    if len(adds) != int(mask.size > 0):
        return [*told, f"{len(adds)} masks were imported, the file has {int(mask.size > 0)}."]
    for step in adds:
        told += differ("mask", step.op.value, mask)  # type: ignore[union-attr]
    return told


def _part(found: Found, n: int, part: str, kind: type[Any]) -> Step | None:
    own = [step for step in found.named.get(f"{found.file.names[n]}/{part}", []) if isinstance(step.op, kind)]
    return own[0] if len(own) == 1 else None


def _mask(found: Found, n: int, shape: tuple[int, int]) -> Array | None:
    """What is added to the scores, without elements if there is nothing; None if it is not known."""
    file, attributes = found.file, found.file.attributes[n]
    place, later = (5, "unidirectional") if file.nodes[n].op_type == "MultiHeadAttention" else (3, "is_causal")
    lowest = np.float32(attributes.get("mask_filter_value", -10000.0) if place == 5 else -np.inf)
    total, given = np.zeros(shape, np.float32), False
    if file.given(n, place):
        own = file.constant(n, place)
        if own is None:
            return None
        array = own.array
        if array.dtype == np.bool_:
            array = np.where(array, np.float32(0), np.float32(-np.inf))
        missing = shape[1] - array.shape[-1] if array.ndim and array.shape[-1] > 1 else 0
        array = np.concatenate([array, np.full((*array.shape[:-1], missing), -np.inf)], -1) if missing else array
        total, given = total + array.astype(np.float32), True
    if attributes.get(later, 0):
        above = np.arange(shape[1])[None, :] > np.arange(shape[0])[:, None]
        total, given = total + np.where(above, lowest, np.float32(0)), True
    if place == 3 and file.given(n, 6):
        length = file.constant(n, 6)
        if length is None:
            return None
        total, given = np.where(np.arange(shape[1]) < int(length.array.ravel()[0]), total, np.float32(-np.inf)), True
    return total if given else np.zeros(0, np.float32)


#: Operator -> its second reading.
ATTENTION: dict[str, Callable[[Found, int], Told]] = {"Attention": _attention, "MultiHeadAttention": _attention}
