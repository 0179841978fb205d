"""Values, types and constants of generated host code in C."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from hlsgen.ir import Shape
from hlsgen.numerics.fixed import Array, IntType

#: C type of the elements of a stored tensor, by numpy dtype.
STORED = {
    "float32": "float",
    "float64": "double",
    "bool": "uint8_t",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
_PER_LINE = 8


@dataclass(frozen=True)
class Value:
    """A C expression without side effects, and the numpy dtype that it represents. Integers are in int64_t."""

    text: str
    dtype: str

    @property
    def family(self) -> str:
        """Suffix of the helper functions that compute with this dtype."""
        return {"float32": "f32", "float64": "f64"}.get(self.dtype, "int")


def computing_type(dtype: str) -> str:
    """The C type that the code computes with for a numpy dtype."""
    return {"float32": "float", "float64": "double"}.get(dtype, "int64_t")


def code_dtype(type_: IntType) -> str:
    """The narrowest dtype that holds codes of this type."""
    bits = next(n for n in (8, 16, 32, 64) if type_.bits <= n - (n == 64 and not type_.signed))
    return f"{'' if type_.signed or bits == 64 else 'u'}int{bits}"


def literal(value: object, dtype: str) -> str:
    """An exact C literal of a dtype."""
    if dtype not in ("float32", "float64"):
        integer = int(value)  # type: ignore[call-overload]
        return f"(-INT64_C({-(integer + 1)}) - 1)" if integer < 0 else f"INT64_C({integer})"
    number = float(value)  # type: ignore[arg-type]
    if not math.isfinite(number):
        return "NAN" if math.isnan(number) else "INFINITY" if number > 0 else "(-INFINITY)"
    digits, _, power = number.hex().partition("p")
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    text = f"{digits}p{power}{'f' if dtype == 'float32' else ''}"
    return f"({text})" if text.startswith("-") else text


@dataclass
class Constants:
    """Arrays of constants, each declared once. `prefix` begins their names."""

    prefix: str
    lines: list[str] = field(default_factory=list)
    names: dict[tuple[str, bytes], str] = field(default_factory=dict)

    def array(self, values: Array, dtype: str) -> str:
        """The name of an array with these values, in row-major order. Declares it if there is none yet."""
        stored = STORED[dtype]
        flat = np.ascontiguousarray(values, dtype).ravel()
        key = stored, flat.tobytes()
        if key not in self.names:
            name = self.names[key] = f"{self.prefix}_c{len(self.names)}"
            texts = [literal(v, dtype) for v in flat.tolist()]
            rows = [", ".join(texts[n : n + _PER_LINE]) for n in range(0, len(texts), _PER_LINE)]
            inner = ",\n    ".join(rows)
            self.lines.append(f"static const {stored} {name}[{len(texts)}] = {{\n    {inner}\n}};")
        return self.names[key]

    def entry(self, values: Array, dtype: str, shape: Shape, at: str) -> Value:
        """The constant for element `at` (row-major) of a tensor of this shape, with which `values` broadcasts."""
        if np.ascontiguousarray(values).tobytes() == values.ravel()[:1].tobytes() * values.size:
            return Value(literal(values.ravel()[0], dtype), dtype)
        distinct, index = _distinct(values, shape, at)
        name = self.array(distinct, dtype)
        return Value(f"{name}[{index}]" if computing_type(dtype) != "int64_t" else f"(int64_t){name}[{index}]", dtype)

    def column(self, table: Array, dtype: str, shape: Shape, at: str) -> tuple[str, str, int]:
        """Declares a lookup or threshold table, whose first axis is searched.

        Returns its name, the index of the element's column, and the number of columns.
        """
        first_row = table[0] if table.ndim > 1 else table.reshape(-1, 1)[0]
        if first_row.size == 1:
            return self.array(table, dtype), "0", 1
        index = ""
        rows = []
        for row in table:
            distinct, index = _distinct(row, shape, at)
            rows.append(distinct)
        return self.array(np.stack(rows), dtype), index, rows[0].size


def _distinct(values: Array, shape: Shape, at: str) -> tuple[Array, str]:
    """The constants along the axes on which they differ, and the index for element `at` of a tensor of this shape."""
    aligned = values.reshape((1,) * (len(shape) - values.ndim) + values.shape)
    axes = [n for n in range(aligned.ndim) if aligned.shape[n] > 1]
    low, high = axes[0], axes[-1]
    period, inner = math.prod(shape[low : high + 1]), math.prod(shape[high + 1 :])
    distinct_shape = (*aligned.shape[:low], *shape[low : high + 1], *aligned.shape[high + 1 :])
    distinct = np.broadcast_to(aligned, distinct_shape).ravel()
    text = at if inner == 1 else f"{at} / {inner}"
    return distinct, text if math.prod(shape[:low]) == 1 else f"{f'({text})' if inner > 1 else text} % {period}"


def permuted(shape: Shape, perm: tuple[int, ...], at: str) -> str:
    """The index in a tensor of `shape` that element `at` of its transposition comes from."""
    transposed_shape = [shape[axis] for axis in perm]
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    terms = []
    for place, axis in enumerate(perm):
        if transposed_shape[place] == 1:
            continue
        inner, stride = math.prod(transposed_shape[place + 1 :]), strides[axis]
        text = at if inner == 1 else f"{at} / {inner}"
        if math.prod(transposed_shape[:place]) > 1:
            text = f"{text} % {transposed_shape[place]}"
        terms.append(text if stride == 1 else f"({text}) * {stride}" if " " in text else f"{text} * {stride}")
    return " + ".join(f"({t})" if " " in t and len(terms) > 1 else t for t in terms) or "0"
