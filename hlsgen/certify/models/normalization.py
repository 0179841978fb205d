"""Models of hg_norm_moments, hg_norm_root and hg_norm_scale, and the proof that they normalize the rows of a layer.

Of a row of N integers q the first sends the sum and the moment M, the second 1 / sqrt(M + addend), the third
(N * q - sum) times that. What has to be proven:

- The integers are those of the layer, and every number has bits enough: bounds are those of the lowest and highest code.
- The root is the nearest float32, ties to even, for every moment, by what hg_norm_root does: with W = M * F + ADDEND and
  T(k) = START * 4^k, step k gives m(k) = floor(sqrt(T(k) / W)), as it adds the largest bit b with (2m + b)^2 * W <= T(k).
  That begins with m(0) = 0, true if START < ADDEND, which is the least W. It ends with the first m of 25 bits, reached
  after at most STEPS steps if T(STEPS) >= 2^48 * W for the largest W. Then m / 2 rounds to 24 bits with the rest T - m^2 * W
  for the tie. And sqrt(T(k) / W) = 2^(k + e) / sqrt(M + addend), where e is 127 - BIAS, if ADDEND / F is the addend and
  START / F is 4^e. All of it are comparisons of the module's parameters, no trial of inputs.
- No result but 0 leaves the normal numbers, and the exponent stays within its 10 bits.
- All results lie in the interval that the graph says.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from hlsgen.certify.models.routing import fits, only, whole
from hlsgen.certify.netlist_reader import Cell, broken
from hlsgen.certify.stream_contents import StreamContents, readable, vectors
from hlsgen.ir import NormKind, NormRows
from hlsgen.numerics.fixed import Array, IntType

MODULES = ("hg_norm_moments", "hg_norm_root", "hg_norm_scale")
_INTEGERS = "LANES BEATS X_W X_SIGNED SHIFT OFFSET Q_W"
#: Bits of a significand, and those of the root in front of rounding.
_SIGNIFICAND, _ROOT = 24, 25
#: Larger parameters are not computed with.
_MOST = 4096
#: Of the exponent of float32.
_BIAS = 127
#: A result with its two roundings is at most so much larger than the exact one.
_ROUNDED = 1 + Fraction(1, 1 << 22)


@dataclass(frozen=True)
class _Bounds:
    """Of all rows: lowest and highest integer, largest moment, largest size of an element, and N."""

    lo: int
    hi: int
    moment: int
    element: int
    length: int


def row_moments(cell: Cell, stream: StreamContents, layer: NormRows, order: Array) -> StreamContents:
    """The stream of one beat a row behind the first of the units. Raises HG055."""
    only(cell, f"{_INTEGERS} CENTERED S_W M_W EVERY")
    _small(cell, "SHIFT Q_W S_W M_W")
    beats = _integers(cell, stream, layer, order)
    bits = cell.number("M_W", 1) + cell.number("S_W", 1)
    return StreamContents(stream.elements[::beats, :1], bits, 0, (1 << bits) - 1, (cell,))


def row_roots(cell: Cell, stream: StreamContents) -> StreamContents:
    """The stream behind the second. Raises HG055."""
    only(cell, "M_W S_W E_W W_W STEPS SERIAL SHIFT FACTOR ADDEND START WAYS GAP")
    _small(cell, "M_W S_W E_W W_W STEPS SHIFT")
    fits(cell, stream, 1, cell.number("M_W", 1) + cell.number("S_W", 1))
    cell.number("WAYS", 1)
    cell.number("GAP", 1)
    bits = cell.number("E_W", 1) + _SIGNIFICAND + cell.number("S_W", 1)
    return replace(stream, bits=bits, hi=(1 << bits) - 1, units=(*stream.units, cell))


def row_elements(
    cell: Cell, codes: StreamContents, rows: StreamContents, layer: NormRows, order: Array, numbers: Array
) -> StreamContents:
    """The stream behind the third; `numbers`: those of its results. Raises HG055."""
    only(cell, f"{_INTEGERS} S_W E_W A_W BIAS")
    _small(cell, "SHIFT Q_W S_W E_W A_W BIAS")
    beats = _integers(cell, codes, layer, order)
    fits(cell, rows, 1, cell.number("E_W", 1) + _SIGNIFICAND + cell.number("S_W", 1))
    if [unit.module for unit in rows.units] != list(MODULES[:2]):
        raise broken(layer.name, f"{cell.name} gets one beat a row behind {[u.name for u in rows.units]}.")
    first = codes.elements[::beats, :1]
    if first.shape != rows.elements.shape or (first != rows.elements).any():
        raise broken(layer.name, f"{cell.name} gets elements and roots of different rows.")
    return codes.computed(numbers[order], IntType(layer.result.type.lo, layer.result.type.hi))


def _small(cell: Cell, names: str) -> None:
    """Numbers that stand for bits, or for powers of two, are none that would take all memory. Raises HG055."""
    for name in names.split():
        if cell.number(name) > _MOST:
            raise broken(cell.name, f"{name} is {cell.number(name)}; at most {_MOST} is proven.")


def _integers(cell: Cell, stream: StreamContents, layer: NormRows, order: Array) -> int:
    """The beats of a row, whose codes the unit reads as the layer does. Raises HG055."""
    lanes, beats, length = cell.number("LANES", 1), cell.number("BEATS", 1), layer.source.shape[-1]
    fits(cell, stream, lanes, cell.number("X_W", 1))
    readable(cell.name, stream, layer.source.type, cell.number("X_W"), cell.number("X_SIGNED"))
    whole(cell, stream, beats, "a row has")
    vectors(layer.name, order, length)
    if lanes * beats != length or not stream.filled.all():
        raise broken(layer.name, f"{cell.name} has rows of {lanes} x {beats} elements, the layer of {length}.")
    bits = cell.number("Q_W", 1)
    offset = cell.sized("OFFSET", bits).value
    offset -= (offset >> (bits - 1)) << bits
    if (1 << cell.number("SHIFT")) != layer.factor or offset != layer.offset:
        said = f"code * {1 << cell.number('SHIFT')} + {offset}"
        raise broken(layer.name, f"{cell.name} reads {said}, the model has code * {layer.factor} + {layer.offset}.")
    return beats


def prove(layer: NormRows, units: tuple[Cell, Cell, Cell]) -> None:
    """That the units compute what the layer says, for every row. Raises HG055."""
    moments, root, scale = units
    most = _bounds(layer)
    centered = layer.kind is NormKind.LAYER

    def require(holds: bool, cell: Cell, text: str) -> None:
        if not holds:
            raise broken(layer.name, f"{cell.name}: {text}")

    require(moments.number("CENTERED") == int(centered), moments, f"CENTERED is {moments.number('CENTERED')}.")
    for cell in (moments, scale):
        require(
            _signed(most.lo, most.hi) <= cell.number("Q_W"), cell, f"Q_W of {cell.number('Q_W')} bits is too small."
        )
        require(cell.number("S_W") == root.number("S_W"), cell, "S_W is not that of the root.")
    sums = _signed(most.lo * most.length, most.hi * most.length) if centered else 1
    require(moments.number("S_W") >= sums, moments, f"sums of a row need {sums} bits.")
    require(most.moment < 1 << moments.number("M_W"), moments, f"a moment can be {most.moment}.")
    require(moments.number("M_W") == root.number("M_W"), root, "M_W is not that of the moments.")
    require(most.element < 1 << scale.number("A_W"), scale, f"an element can be {most.element}.")
    require(root.number("E_W") == scale.number("E_W"), scale, "E_W is not that of the root.")
    _prove_root(layer, root, _BIAS - scale.number("BIAS"), most.moment, require)
    largest = Fraction(most.element**2) / layer.addend
    smallest = 1 / (most.moment + layer.addend)
    normal = largest < Fraction(4) ** 126 and smallest > Fraction(4) ** -124
    require(normal, scale, "results can leave the normal numbers of float32.")
    _prove_interval(layer, most, scale, require)


def _prove_root(layer: NormRows, root: Cell, exponent: int, moment: int, require) -> None:  # type: ignore[no-untyped-def]
    """What the module's docstring says of the root."""
    bits, serial = root.number("W_W", 1), root.number("SERIAL")
    factor, addend, start = (root.sized(name, bits).value for name in ("FACTOR", "ADDEND", "START"))
    steps = root.number("STEPS", 1)
    require(serial in (0, 1) and factor > 0, root, "FACTOR is 0, or SERIAL is no bit.")
    require(serial == 1 or factor == 1 << root.number("SHIFT"), root, "FACTOR is not 2^SHIFT.")
    require(Fraction(addend, factor) == layer.addend, root, f"ADDEND / FACTOR is not the model's {layer.addend}.")
    require(0 < start < addend, root, "START is not below ADDEND: the root does not begin with 0.")
    require(
        Fraction(start, factor) == Fraction(4) ** exponent, root, f"START / FACTOR is not 4^{exponent}, as BIAS says."
    )
    largest = moment * factor + addend
    require(largest < 1 << bits, root, f"W_W is {bits}, a number can have {largest.bit_length()} bits.")
    reached = start << 2 * steps >= largest << 2 * (_ROOT - 1)
    require(reached, root, f"after {steps} steps the root of the largest moment has not {_ROOT} bits.")
    require(steps < 1 << root.number("E_W"), root, f"E_W does not hold {steps} steps.")


def _prove_interval(layer: NormRows, most: _Bounds, scale: Cell, require) -> None:  # type: ignore[no-untyped-def]
    """An element A has a moment of at least A^2 / (N - 1) if centered, else A^2 / N, so its result is the largest of all
    if A is."""
    parts = most.length - 1 if layer.kind is NormKind.LAYER else most.length
    square = Fraction(most.element**2) / (Fraction(most.element**2, max(1, parts)) + layer.addend)
    for end in (layer.result.type.lo, layer.result.type.hi):
        reach = Fraction(float(_float_of_key(end)))
        require(reach * reach >= square * _ROUNDED, scale, f"results can leave {layer.result.type}.")
    signs = [_float_of_key(end) > 0 for end in (layer.result.type.lo, layer.result.type.hi)]
    require(most.element == 0 or signs == [False, True], scale, f"results can leave {layer.result.type}.")


def _float_of_key(key: int) -> np.float32:
    """The float32 whose place in the order of all is `key`."""
    bits = key - (1 << 31) if key >> 31 else (1 << 32) - 1 - key
    found: np.float32 = np.array([bits], np.uint32).view(np.float32)[0]
    return found


def _bounds(layer: NormRows) -> _Bounds:
    """N * sum(q^2) - sum(q)^2 is the sum of (q - p)^2 over all pairs: largest with half of the row at each end."""
    length = layer.source.shape[-1]
    ends = sorted(code * layer.factor + layer.offset for code in (layer.source.type.lo, layer.source.type.hi))
    lo, hi = ends
    if layer.kind is NormKind.LAYER:
        pairs = (length // 2) * (length - length // 2)
        return _Bounds(lo, hi, pairs * (hi - lo) ** 2, (length - 1) * (hi - lo), length)
    widest = max(abs(lo), abs(hi))
    return _Bounds(lo, hi, (length * widest) ** 2, length * widest, length)


def _signed(lo: int, hi: int) -> int:
    """Bits of the two's complement that holds lo..hi."""
    return max((~lo if lo < 0 else lo).bit_length(), (~hi if hi < 0 else hi).bit_length()) + 1
