"""Second reading of Attention and MultiHeadAttention (heads, factor, mask), and of shares that a product consumes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hlsgen.certify.second_reading.steps import Differences, ImportedSteps, differ
from hlsgen.ir import BatchMatMul, Reshape, Softmax, Step
from hlsgen.ir.ops import Add, IntQuant, Mul
from hlsgen.numerics.fixed import Array, Rounding


def check_shares(step: Step) -> list[str]:
    """Check the quantizer of softmax shares before a product: the nearest multiples of 2^-24, from 0 to 1."""
    op = step.op
    assert isinstance(op, IntQuant)
    differences = [*differ("unit of shares", op.scale, 2.0**-24), *differ("zero point of shares", op.zero_point, 0)]
    differences += differ("range of shares", [op.type.lo, op.type.hi], [0, 2**24])
    return differences + list(differ("rounding of shares", op.mode.name, Rounding.ROUND.name))


def _attention(imported: ImportedSteps, n: int) -> Differences:
    """Check an attention node. Returns None if a part is a constant, or if the node is of another domain."""
    file, attributes = imported.file, imported.file.attributes[n]
    is_ort = file.nodes[n].op_type == "MultiHeadAttention"
    if file.nodes[n].domain not in (("com.microsoft",) if is_ort else ("", "ai.onnx")):
        return None
    kinds: dict[str, type[Any]] = {"scores": BatchMatMul, "scaled": Mul, "shares": Softmax, "values": BatchMatMul}
    parts = {part: _part(imported, n, part, kind) for part, kind in kinds.items()}
    unit, mask_steps = _part(imported, n, "values", IntQuant), imported.named.get(f"{file.names[n]}/masked", [])
    scores, scaled, shared, values = parts.values()
    if scores is None or scaled is None or shared is None or values is None or unit is None:
        return None
    (_, heads, rows, size), keys = imported.input_shape(scores), scores.shape[-1]
    differences = check_shares(unit)
    differences += differ("axis", shared.op.axis, len(shared.shape) - 1)  # type: ignore[union-attr]
    factor = np.float32(attributes.get("scale", 0.0) or 1 / math.sqrt(size))
    differences += differ("factor", scaled.op.value, factor)  # type: ignore[union-attr]
    key_heads = attributes.get("num_heads", attributes.get("kv_num_heads", heads))
    differences += differ("heads of keys", heads, key_heads)
    grouped = _part(imported, n, "grouped", Reshape)  # the queries of several heads, one after another
    queries = rows if grouped is None else imported.input_shape(grouped)[-2]
    if grouped is not None and "q_num_heads" in attributes:
        differences += differ("heads of queries", rows * heads // queries, attributes["q_num_heads"])
    mask = _mask(imported, n, (queries, keys))
    if mask is None:
        return None
    adds = [step for step in mask_steps if isinstance(step.op, Add)]
    if len(adds) != int(mask.size > 0):
        return [*differences, f"{len(adds)} masks were imported, the file has {int(mask.size > 0)}."]
    for step in adds:
        differences += differ("mask", step.op.value, mask)  # type: ignore[union-attr]
    return differences


def _part(imported: ImportedSteps, n: int, part: str, kind: type[Any]) -> Step | None:
    steps = [step for step in imported.named.get(f"{imported.file.names[n]}/{part}", []) if isinstance(step.op, kind)]
    return steps[0] if len(steps) == 1 else None


def _mask(imported: ImportedSteps, n: int, shape: tuple[int, int]) -> Array | None:
    """The addend of the scores: an empty array if there is none, None if it is not known."""
    file, attributes = imported.file, imported.file.attributes[n]
    mask_index, causal_key = (
        (5, "unidirectional") if file.nodes[n].op_type == "MultiHeadAttention" else (3, "is_causal")
    )
    masked_score = np.float32(attributes.get("mask_filter_value", -10000.0) if mask_index == 5 else -np.inf)
    total, has_mask = np.zeros(shape, np.float32), False
    if file.has_input(n, mask_index):
        mask_input = file.constant(n, mask_index)
        if mask_input is None:
            return None
        array = mask_input.array
        if array.dtype == np.bool_:
            array = np.where(array, np.float32(0), np.float32(-np.inf))
        missing = shape[1] - array.shape[-1] if array.ndim and array.shape[-1] > 1 else 0
        array = np.concatenate([array, np.full((*array.shape[:-1], missing), -np.inf)], -1) if missing else array
        total, has_mask = total + array.astype(np.float32), True
    if attributes.get(causal_key, 0):
        above = np.arange(shape[1])[None, :] > np.arange(shape[0])[:, None]
        total, has_mask = total + np.where(above, masked_score, np.float32(0)), True
    if mask_index == 3 and file.has_input(n, 6):
        length = file.constant(n, 6)
        if length is None:
            return None
        total, has_mask = np.where(np.arange(shape[1]) < int(length.array.ravel()[0]), total, np.float32(-np.inf)), True
    return total if has_mask else np.zeros(0, np.float32)


#: Operator -> its second reading.
ATTENTION: dict[str, Callable[[ImportedSteps, int], Differences]] = {
    "Attention": _attention,
    "MultiHeadAttention": _attention,
}
