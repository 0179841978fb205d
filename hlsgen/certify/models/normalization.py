"""Models of hg_norm_moments, hg_norm_root and hg_norm_scale, and the proof that they normalize the rows of a layer.

A row has N integers q. Module hg_norm_moments sends the sum and the moment M. Module hg_norm_root sends 1 / sqrt(M +
addend). Module hg_norm_scale multiplies this by N * q - sum. The proof shows:

- The integers are the layer's. Every number has enough bits, by the bounds of the lowest and the highest code.
- The root is the nearest float32, ties to even, for every moment. The algorithm of hg_norm_root uses W = M * F + ADDEND
  and T(k) = START * 4^k. Step k computes m(k) = floor(sqrt(T(k) / W)): it adds the largest bit b with
  (2m + b)^2 * W <= T(k). It begins with m(0) = 0, which is true if START < ADDEND, the smallest W. It ends with the
  first m of 25 bits. At most STEPS steps are needed if T(STEPS) >= 2^48 * W for the largest W. Then m / 2 is rounded to
  24 bits; the remainder T - m^2 * W decides ties. The result is right because sqrt(T(k) / W) is
  2^(k + e) / sqrt(M + addend) with e = 127 - BIAS. This requires that ADDEND / F is the addend and START / F is 4^e.
  All these conditions compare parameters of the module; no input is evaluated.
- No result except 0 leaves the normal numbers, and the exponent stays within its 10 bits.
- All results are in the interval of the graph.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from hlsgen.certify.models.routing import check_beat, check_parameters, groups_in_frame
from hlsgen.certify.netlist_reader import Cell, broken
from hlsgen.certify.stream_contents import StreamContents, check_codes, vector_order
from hlsgen.ir import NormKind, NormRows
from hlsgen.numerics.fixed import Array, IntType

MODULES = ("hg_norm_moments", "hg_norm_root", "hg_norm_scale")
_INTEGERS = "LANES BEATS X_W X_SIGNED SHIFT OFFSET Q_W"
#: Bits of a significand, and of the root before rounding.
_SIGNIFICAND, _ROOT = 24, 25
#: Larger parameters are rejected.
_MAX_PARAMETER = 4096
#: Exponent bias of float32.
_BIAS = 127
#: Maximum ratio of a result with its two roundings to the exact result.
_ROUNDED = 1 + Fraction(1, 1 << 22)


@dataclass(frozen=True)
class _Bounds:
    """Bounds over all rows: lowest and highest integer, largest moment, largest magnitude of an element, and N."""

    lo: int
    hi: int
    moment: int
    element: int
    length: int


def row_moments(cell: Cell, stream: StreamContents, layer: NormRows, order: Array) -> StreamContents:
    """The stream after hg_norm_moments, with one beat a row. Raises HG055."""
    check_parameters(cell, f"{_INTEGERS} CENTERED S_W M_W EVERY")
    _check_size_of_parameters(cell, "SHIFT Q_W S_W M_W")
    beats = _integers(cell, stream, layer, order)
    bits = cell.number("M_W", 1) + cell.number("S_W", 1)
    return StreamContents(stream.elements[::beats, :1], bits, 0, (1 << bits) - 1, (cell,))


def row_roots(cell: Cell, stream: StreamContents) -> StreamContents:
    """The stream after hg_norm_root. Raises HG055."""
    check_parameters(cell, "M_W S_W E_W W_W STEPS FACTOR ADDEND START WAYS GAP")
    _check_size_of_parameters(cell, "M_W S_W E_W W_W STEPS")
    check_beat(cell, stream, 1, cell.number("M_W", 1) + cell.number("S_W", 1))
    cell.number("WAYS", 1)
    cell.number("GAP", 1)
    bits = cell.number("E_W", 1) + _SIGNIFICAND + cell.number("S_W", 1)
    return replace(stream, bits=bits, hi=(1 << bits) - 1, units=(*stream.units, cell))


def row_elements(
    cell: Cell, codes: StreamContents, rows: StreamContents, layer: NormRows, order: Array, numbers: Array
) -> StreamContents:
    """The stream after hg_norm_scale; `numbers`: the element numbers of its results. Raises HG055."""
    check_parameters(cell, f"{_INTEGERS} S_W E_W A_W BIAS")
    _check_size_of_parameters(cell, "SHIFT Q_W S_W E_W A_W BIAS")
    beats = _integers(cell, codes, layer, order)
    check_beat(cell, rows, 1, cell.number("E_W", 1) + _SIGNIFICAND + cell.number("S_W", 1))
    if [unit.module for unit in rows.units] != list(MODULES[:2]):
        raise broken(layer.name, f"{cell.name} gets one beat a row from {[u.name for u in rows.units]}.")
    first = codes.elements[::beats, :1]
    if first.shape != rows.elements.shape or (first != rows.elements).any():
        raise broken(layer.name, f"{cell.name} gets elements and roots of different rows.")
    return codes.computed(numbers[order], IntType(layer.result.type.lo, layer.result.type.hi))


def _check_size_of_parameters(cell: Cell, names: str) -> None:
    """Check that parameters for bits or powers of two are small enough to compute with. Raises HG055."""
    for name in names.split():
        if cell.number(name) > _MAX_PARAMETER:
            raise broken(cell.name, f"{name} is {cell.number(name)}; the maximum is {_MAX_PARAMETER}.")


def _integers(cell: Cell, stream: StreamContents, layer: NormRows, order: Array) -> int:
    """The beats of a row, after a check that the unit reads its codes as the layer does. Raises HG055."""
    lanes, beats, length = cell.number("LANES", 1), cell.number("BEATS", 1), layer.source.shape[-1]
    check_beat(cell, stream, lanes, cell.number("X_W", 1))
    check_codes(cell.name, stream, layer.source.type, cell.number("X_W"), cell.number("X_SIGNED"))
    groups_in_frame(cell, stream, beats, "a row has")
    vector_order(layer.name, order, length)
    if lanes * beats != length or not stream.filled.all():
        raise broken(layer.name, f"{cell.name} has rows of {lanes} x {beats} elements, the layer of {length}.")
    bits = cell.number("Q_W", 1)
    offset = cell.sized("OFFSET", bits).value
    offset -= (offset >> (bits - 1)) << bits
    if (1 << cell.number("SHIFT")) != layer.factor or offset != layer.offset:
        unit_formula = f"code * {1 << cell.number('SHIFT')} + {offset}"
        raise broken(
            layer.name, f"{cell.name} reads {unit_formula}, the model has code * {layer.factor} + {layer.offset}."
        )
    return beats


def prove(layer: NormRows, units: tuple[Cell, Cell, Cell]) -> None:
    """Prove that the units compute the layer for every row. Raises HG055."""
    moments, root, scale = units
    bounds_of_rows = _bounds(layer)
    centered = layer.kind is NormKind.LAYER

    def require(holds: bool, cell: Cell, text: str) -> None:
        if not holds:
            raise broken(layer.name, f"{cell.name}: {text}")

    require(moments.number("CENTERED") == int(centered), moments, f"CENTERED is {moments.number('CENTERED')}.")
    for cell in (moments, scale):
        require(
            _signed_bits(bounds_of_rows.lo, bounds_of_rows.hi) <= cell.number("Q_W"),
            cell,
            f"Q_W of {cell.number('Q_W')} bits is too small.",
        )
        require(cell.number("S_W") == root.number("S_W"), cell, "S_W differs from the root's.")
    sums = (
        _signed_bits(bounds_of_rows.lo * bounds_of_rows.length, bounds_of_rows.hi * bounds_of_rows.length)
        if centered
        else 1
    )
    require(moments.number("S_W") >= sums, moments, f"sums of a row need {sums} bits.")
    require(bounds_of_rows.moment < 1 << moments.number("M_W"), moments, f"a moment can be {bounds_of_rows.moment}.")
    require(moments.number("M_W") == root.number("M_W"), root, "M_W differs from the moments'.")
    require(bounds_of_rows.element < 1 << scale.number("A_W"), scale, f"an element can be {bounds_of_rows.element}.")
    require(root.number("E_W") == scale.number("E_W"), scale, "E_W differs from the root's.")
    _prove_root(layer, root, _BIAS - scale.number("BIAS"), bounds_of_rows.moment, require)
    largest = Fraction(bounds_of_rows.element**2) / layer.addend
    smallest = 1 / (bounds_of_rows.moment + layer.addend)
    normal = largest < Fraction(4) ** 126 and smallest > Fraction(4) ** -124
    require(normal, scale, "results can leave the normal numbers of float32.")
    _prove_interval(layer, bounds_of_rows, scale, require)


def _prove_root(layer: NormRows, root: Cell, exponent: int, moment: int, require) -> None:  # type: ignore[no-untyped-def]
    """Prove the conditions of the module's docstring on the root."""
    bits = root.number("W_W", 1)
    factor, addend, start = (root.sized(name, bits).value for name in ("FACTOR", "ADDEND", "START"))
    steps = root.number("STEPS", 1)
    require(factor > 0, root, "FACTOR is 0.")
    require(Fraction(addend, factor) == layer.addend, root, f"ADDEND / FACTOR is not the model's {layer.addend}.")
    require(0 < start < addend, root, "START is not below ADDEND: the root does not begin with 0.")
    require(
        Fraction(start, factor) == Fraction(4) ** exponent,
        root,
        f"START / FACTOR is not 4^{exponent}, as BIAS requires.",
    )
    largest = moment * factor + addend
    require(largest < 1 << bits, root, f"W_W is {bits}, a number can have {largest.bit_length()} bits.")
    reached = start << 2 * steps >= largest << 2 * (_ROOT - 1)
    require(reached, root, f"after {steps} steps the root of the largest moment has fewer than {_ROOT} bits.")
    require(steps < 1 << root.number("E_W"), root, f"E_W does not hold {steps} steps.")


def _prove_interval(layer: NormRows, bounds_of_rows: _Bounds, scale: Cell, require) -> None:  # type: ignore[no-untyped-def]
    """Prove that no result leaves the interval of the graph.

    An element A has a moment of at least A^2 / (N - 1) if centered, else A^2 / N. The result is largest if A is.
    """
    parts = bounds_of_rows.length - 1 if layer.kind is NormKind.LAYER else bounds_of_rows.length
    square = Fraction(bounds_of_rows.element**2) / (Fraction(bounds_of_rows.element**2, max(1, parts)) + layer.addend)
    for end in (layer.result.type.lo, layer.result.type.hi):
        bound = Fraction(float(_float_of_key(end)))
        require(bound * bound >= square * _ROUNDED, scale, f"results can leave {layer.result.type}.")
    signs = [_float_of_key(end) > 0 for end in (layer.result.type.lo, layer.result.type.hi)]
    require(bounds_of_rows.element == 0 or signs == [False, True], scale, f"results can leave {layer.result.type}.")


def _float_of_key(key: int) -> np.float32:
    """The float32 number with this order key."""
    bits = key - (1 << 31) if key >> 31 else (1 << 32) - 1 - key
    value: np.float32 = np.array([bits], np.uint32).view(np.float32)[0]
    return value


def _bounds(layer: NormRows) -> _Bounds:
    """The bounds of all rows of a layer.

    N * sum(q^2) - sum(q)^2 is the sum of (q - p)^2 over all pairs. It is largest if half of the row is at each end.
    """
    length = layer.source.shape[-1]
    ends = sorted(code * layer.factor + layer.offset for code in (layer.source.type.lo, layer.source.type.hi))
    lo, hi = ends
    if layer.kind is NormKind.LAYER:
        pairs = (length // 2) * (length - length // 2)
        return _Bounds(lo, hi, pairs * (hi - lo) ** 2, (length - 1) * (hi - lo), length)
    widest = max(abs(lo), abs(hi))
    return _Bounds(lo, hi, (length * widest) ** 2, length * widest, length)


def _signed_bits(lo: int, hi: int) -> int:
    """Bits of the two's complement that holds lo..hi."""
    return max((~lo if lo < 0 else lo).bit_length(), (~hi if hi < 0 else hi).bit_length()) + 1
