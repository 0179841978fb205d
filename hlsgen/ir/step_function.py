"""The integer functions of one code that a Map computes, one for each distinct set of constants."""

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
    """`sets` functions code -> code, one for each set of constants. All constants have shape (lead..., sets).

    `index` (elements,): the set that element p of the stream uses. `lo`, `hi` (sets,): reachable input
    interval. For float32 input the domain is the keys of -inf..+inf, and 0 for NaN.
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
        return quantize(self.quantizer, self.after_ops(len(self.ops), codes))

    def after_ops(self, count: int, codes: Array) -> Array:
        """The values after the first `count` operations."""
        x = decode(self.source, codes)
        for op in self.ops[:count]:
            x = apply(op, x)
        return x

    def take(self, columns: Array, lo: Array, hi: Array) -> StepFunction:
        """The functions of the sets numbered `columns` (repetitions allowed), each on its own interval."""

        def select_sets(item: T) -> T:
            return with_constants(item, {name: value[..., columns] for name, value in constants(item).items()})

        ops = tuple(select_sets(op) for op in self.ops)
        return replace(
            self, source=select_sets(self.source), ops=ops, quantizer=select_sets(self.quantizer), lo=lo, hi=hi
        )


def specialize(layer: Map, order: Array, lo: Array | None = None, hi: Array | None = None) -> StepFunction:
    """Split a Map into its distinct functions, for tensors streamed in `order`.

    `lo`, `hi`: reachable interval of each element of the last axis; default: the interval of the source's type.
    """
    source = layer.source.type
    bounds = [np.asarray(source.lo) if lo is None else lo, np.asarray(source.hi) if hi is None else hi]
    operations = [layer.source.encoding, *layer.ops, layer.quantizer]
    specialized, (low, high), index = distinct_constants(operations, bounds, layer.source.shape, order)
    return StepFunction(
        layer.name,
        source=specialized[0],  # type: ignore[arg-type]
        ops=tuple(specialized[1:-1]),  # type: ignore[arg-type]
        quantizer=specialized[-1],  # type: ignore[arg-type]
        index=index,
        lo=low,
        hi=high,
        input_type=source,
        output_type=layer.result.type,
    )


def merge_equal_sets(f: StepFunction) -> StepFunction:
    """Merge sets with the same constants; the merged interval spans all their intervals."""
    operations = (f.source, *f.ops, f.quantizer)
    columns_by_constant = [value.reshape(-1, f.sets).T for item in operations for value in constants(item).values()]
    number_by_constants: dict[bytes, int] = {}
    constants_of_sets = (b"".join(columns[s].tobytes() for columns in columns_by_constant) for s in range(f.sets))
    merged_set = np.array(
        [
            number_by_constants.setdefault(set_constants, len(number_by_constants))
            for set_constants in constants_of_sets
        ],
        np.int64,
    )
    lo, hi = np.full(len(number_by_constants), f.lo.max()), np.full(len(number_by_constants), f.hi.min())
    np.minimum.at(lo, merged_set, f.lo)
    np.maximum.at(hi, merged_set, f.hi)
    return replace(f.take(np.unique(merged_set, return_index=True)[1], lo, hi), index=merged_set[f.index])


def distinct_constants(
    operations: Sequence[Elementwise | Encoding], bounds: Sequence[Array], shape: Shape, order: Array
) -> tuple[list[Elementwise | Encoding], list[Array], Array]:
    """Find the distinct sets of constants among the elements of a tensor.

    Returns `operations` with constants (lead..., sets), `bounds` as int64 (sets,), and the set of each stream
    position. `bounds` are integers that broadcast to the tensor.
    """
    spread_bounds = [_spread(bound, shape, 0) for bound in bounds]
    spread_constants: list[tuple[int, str, Array]] = []
    for position, operation in enumerate(operations):
        for name, value in constants(operation).items():
            spread_constants.append((position, name, _spread(value, shape, lead_axes(operation, name))))
    with_leads = [(bound, 0) for bound in bounds]
    with_leads += [
        (value, lead_axes(operation, name)) for operation in operations for name, value in constants(operation).items()
    ]
    index, representatives = _group_elements(
        [_with_axes(value, shape, lead) for value, lead in with_leads], shape, order
    )

    def at_representatives(value: Array) -> Array:
        return np.asarray(
            value[..., representatives] if value.shape[-1] > 1 else np.repeat(value, len(representatives), -1)
        )

    set_constants: list[dict[str, Array]] = [{} for _ in operations]
    for position, name, value in spread_constants:
        set_constants[position][name] = at_representatives(value)
    specialized = [
        with_constants(operation, values) for operation, values in zip(operations, set_constants, strict=True)
    ]
    return specialized, [at_representatives(a).astype(np.int64) for a in spread_bounds], index


def _spread(value: Array, shape: Shape, lead: int) -> Array:
    """Reshape to (lead..., elements), or to (lead..., 1) if all elements have the same value."""
    lead_shape, tensor_axes = value.shape[:lead], value.shape[lead:]
    if all(s == 1 for s in tensor_axes):
        return value.reshape(*lead_shape, 1)
    tensor_axes = (1,) * (len(shape) - len(tensor_axes)) + tensor_axes
    return np.broadcast_to(value.reshape(lead_shape + tensor_axes), lead_shape + shape).reshape(*lead_shape, -1)


def _with_axes(value: Array, shape: Shape, lead: int) -> Array:
    """Reshape to (number, axes...): all leading axes merged, then the tensor's axes, each of full length or 1."""
    lead_shape, tensor_axes = value.shape[:lead], value.shape[lead:]
    tensor_axes = tensor_axes[max(0, len(tensor_axes) - len(shape)) :]
    return value.reshape(math.prod(lead_shape), *(1,) * (len(shape) - len(tensor_axes)), *tensor_axes)


def _group_elements(arrays: list[Array], shape: Shape, order: Array) -> tuple[Array, Array]:
    """(set of each stream position, an element of each set), with sets in order of first use.

    Elements are compared only along axes along which some constant varies. Usually these have as many positions
    as there are channels, even in a tensor of millions of elements.
    """
    arrays = [a for a in arrays if math.prod(a.shape[1:]) > 1]
    if not arrays:
        return np.zeros(len(order), np.int64), order[:1]
    varying_shape = np.broadcast_shapes(*(a.shape[1:] for a in arrays))
    size = math.prod(varying_shape)
    columns = [np.broadcast_to(a, (len(a), *varying_shape)).reshape(len(a), size).T for a in arrays]
    key = np.concatenate([np.ascontiguousarray(c).view(np.uint8).reshape(size, -1) for c in columns], axis=1)
    rows = np.ascontiguousarray(key).view(np.dtype((np.void, key.shape[1]))).ravel()
    distinct_rows, row_number = np.unique(rows, return_inverse=True)
    row_at_position = np.broadcast_to(row_number.reshape(varying_shape), shape).reshape(-1)[order]
    first_position = np.full(len(distinct_rows), len(order))
    first_position[row_at_position[::-1]] = np.arange(len(order))[
        ::-1
    ]  # reversed, so the first position is written last
    used_rows = np.argsort(first_position)[: np.count_nonzero(first_position < len(order))]
    set_of_row = np.empty(len(distinct_rows), np.int64)
    set_of_row[used_rows] = np.arange(len(used_rows))
    return set_of_row[row_at_position], order[first_position[used_rows]]
