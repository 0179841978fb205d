"""Models of units on rows of integers, from the contracts at the heads of their files.

A module computes the layer's function if its parameters are the layer's and no number overflows. The ranges of the
numbers are derived here from the range of the row's codes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hlsgen.certify.models.routing import check_beat, check_parameters, groups_in_frame
from hlsgen.certify.netlist_reader import Cell, Memories, broken, two_complement
from hlsgen.certify.quantizers import check_equal
from hlsgen.certify.stream_contents import StreamContents
from hlsgen.ir import IntegerRows
from hlsgen.ir.row_functions import BelowLargest, FixedPointShare, IntegerNorm, Share
from hlsgen.numerics.fixed import Array, IntType

#: Modules that compute on rows.
ROWS = ("hg_rows_max", "hg_rows_share", "hg_rows_fixed_share", "hg_rows_norm")
_NORM = "LANES BEATS IN_W IN_SIGNED CENTERED SUM_W SQ_W MEAN_W ROOT_W WEIGHT_W BIAS_W ACC_W SHIFT BITS OUT_W WRAPS FILE"
#: Bits of an exponential; the weight of the largest element is 2^19; bits of a sum below 512.
_EXPONENTIAL, _FIRST_WEIGHT, _MAX_SUM = 31, 19, 28
_PARAMETERS = {
    "hg_rows_max": "LANES BEATS IN_W IN_SIGNED OUT_W",
    "hg_rows_share": "LANES BEATS IN_W WEIGHT_W NUMBER_W SUM_W OUT_W FILE",
    "hg_rows_fixed_share": "LANES BEATS IN_W SUM_W OUT_W FILE",
    "hg_rows_norm": _NORM,
}


def row_beats(layer: IntegerRows, cell: Cell, stream: StreamContents, columns: Array) -> int:
    """Beats of a row, whose elements arrive in the order `columns` (rows, count). Raises HG055."""
    check_parameters(cell, _PARAMETERS[cell.module])
    count = layer.source.shape[-1]
    lanes, beats = cell.number("LANES", 1), cell.number("BEATS", 1)
    check_beat(cell, stream, lanes, cell.number("IN_W", 1))
    groups_in_frame(cell, stream, beats, "a row has")
    if lanes * beats != count or not stream.filled.all() or (np.diff(columns) < 0).any():
        text = f"{cell.name} has {lanes} x {beats} elements in order, a row has {count} from first to last."
        raise broken(layer.name, text)
    if cell.number("OUT_W", 1) != layer.result.type.bits:
        raise broken(layer.name, f"OUT_W of {cell.name} is {cell.parameters['OUT_W']}, not {layer.result.type}.")
    return beats


def check_rows(layer: IntegerRows, cell: Cell, low: int, high: int, memories: Memories) -> None:
    """Prove that the module computes the function for all codes of low..high. Raises HG055."""
    checks: dict[type[Any], tuple[str, Callable[..., None]]] = {
        BelowLargest: ("hg_rows_max", _max),
        Share: ("hg_rows_share", _share),
        FixedPointShare: ("hg_rows_fixed_share", _fixed_share),
        IntegerNorm: ("hg_rows_norm", _norm),
    }
    module, check = checks[type(layer.function)]
    if cell.module != module:
        raise broken(layer.name, f"{cell.name} is {cell.module}, the layer is one of {module}.")
    check(layer, cell, low, high, memories)


def _check_range(layer: IntegerRows, cell: Cell, name: str, low: int, high: int, *, signed: bool) -> None:
    bits = cell.number(name, 1)
    range_ = IntType(-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else IntType(0, (1 << bits) - 1)
    if low < range_.lo or high > range_.hi:
        raise broken(layer.name, f"{name} of {cell.name} is {bits}; there are numbers of {low}..{high}.")


def _check_input(layer: IntegerRows, cell: Cell, low: int, high: int) -> None:
    """Check that IN_W and IN_SIGNED read the codes correctly."""
    signed = cell.number("IN_SIGNED")
    if signed > 1:
        raise broken(layer.name, f"IN_SIGNED of {cell.name} is {signed}.")
    _check_range(layer, cell, "IN_W", low, high, signed=bool(signed))


def _max(layer: IntegerRows, cell: Cell, low: int, high: int, memories: Memories) -> None:
    _check_input(layer, cell, low, high)
    _check_range(layer, cell, "OUT_W", 0, high - low, signed=False)


def _share(layer: IntegerRows, cell: Cell, low: int, high: int, memories: Memories) -> None:
    share = layer.function
    assert isinstance(share, Share)
    _check_range(layer, cell, "IN_W", low, high, signed=False)
    bits = {name: cell.number(name, 1) for name in ("IN_W", "WEIGHT_W", "NUMBER_W")}
    tables = []
    for n, (name, layer_words) in enumerate((("WEIGHT_W", share.weights), ("NUMBER_W", share.numbers))):
        words = memories.fields(f"{cell.file}_{n:04d}.mem", 1 << bits["IN_W"], 1, bits[name])[:, 0]
        check_equal(
            layer.name,
            f"rtl/{cell.file}_{n:04d}.mem, words",
            words[low : high + 1].tolist(),
            layer_words[low : high + 1].tolist(),
        )
        tables.append([int(v) for v in words[low : high + 1]])
    weights, numbers = tables
    count = layer.source.shape[-1]
    if cell.number("SUM_W", 1) <= bits["WEIGHT_W"]:
        raise broken(layer.name, f"SUM_W of {cell.name} is not more than WEIGHT_W.")
    _check_range(layer, cell, "SUM_W", 0, max(weights) * count, signed=False)
    if low > 0 or weights[0] < 1:
        raise broken(layer.name, "a sum may be 0: the difference 0 has no weight.")
    # The sum contains weights[0] of the largest element, and the weight of any other element.
    max_quotient = max(
        number // (weights[0] + (weight if d else 0))
        for d, (weight, number) in enumerate(zip(weights, numbers, strict=True))
    )
    _check_range(layer, cell, "OUT_W", 0, max_quotient, signed=False)
    # The divider would drop the high bits of a larger number.
    _check_range(layer, cell, "NUMBER_W", 0, max(numbers), signed=False)


def _fixed_share(layer: IntegerRows, cell: Cell, low: int, high: int, memories: Memories) -> None:
    share, count = layer.function, layer.source.shape[-1]
    assert isinstance(share, FixedPointShare)
    _check_range(layer, cell, "IN_W", low, high, signed=False)
    bits = cell.number("IN_W", 1)
    words = memories.fields(cell.file, 1 << bits, 1, _EXPONENTIAL)[:, 0][low : high + 1]
    check_equal(layer.name, f"rtl/{cell.file}, words", words.tolist(), share.exponentials[low : high + 1].tolist())
    weights = [(int(word) + 2048) // 4096 for word in words]
    if low > 0 or weights[0] != 1 << _FIRST_WEIGHT or cell.number("OUT_W") != share.bits:
        raise broken(layer.name, f"OUT_W of {cell.name} is not {share.bits}, or the difference 0 has another weight.")
    # A sum has bit 19 or a higher one, so that the last shift is at least 1.
    if share.bits > 12 + _FIRST_WEIGHT - 1:
        raise broken(layer.name, f"{cell.name} has shares of {share.bits} bits.")
    _check_range(layer, cell, "SUM_W", 0, max(weights) * count, signed=False)
    if not _FIRST_WEIGHT + 2 <= cell.number("SUM_W") <= _MAX_SUM:
        raise broken(
            layer.name, f"SUM_W of {cell.name} is {cell.number('SUM_W')}; the runtimes abort beyond {_MAX_SUM}."
        )


def _norm(layer: IntegerRows, cell: Cell, low: int, high: int, memories: Memories) -> None:
    norm, count = layer.function, layer.source.shape[-1]
    assert isinstance(norm, IntegerNorm)
    _check_input(layer, cell, low, high)
    parameters = [cell.number(name) for name in ("CENTERED", "SHIFT", "WRAPS")]
    check_equal(
        layer.name,
        f"CENTERED, SHIFT, WRAPS of {cell.name}",
        parameters,
        [int(norm.centred), norm.shift, int(norm.wraps)],
    )
    lanes, beats = cell.number("LANES", 1), cell.number("BEATS", 1)
    w_bits, b_bits = cell.number("WEIGHT_W", 1), cell.number("BIAS_W", 1)
    place = memories.fields(cell.file, beats, lanes, w_bits + b_bits).ravel()
    weight = two_complement(place & ((1 << w_bits) - 1), w_bits)
    bias = two_complement(place >> w_bits, b_bits)
    for quantity, hardware_words, layer_words in (("weights", weight, norm.weight), ("biases", bias, norm.bias)):
        check_equal(layer.name, f"rtl/{cell.file}, {quantity}", hardware_words.tolist(), layer_words.tolist())
    _sums(layer, cell, low, high, norm.centred, count)
    _quotients(layer, cell, [int(v) for v in weight], [int(v) for v in bias], (low, high), norm)


def _sums(layer: IntegerRows, cell: Cell, low: int, high: int, centred: bool, count: int) -> None:
    """Check the numbers of hg_rows_root: sums of the row, mean, root."""
    max_magnitude = max(abs(low), abs(high))
    spread = high - low if centred else max_magnitude
    if cell.number("SUM_W") <= cell.number("IN_W") + 1 or cell.number("SQ_W") <= 2 * cell.number("IN_W"):
        raise broken(layer.name, f"SUM_W or SQ_W of {cell.name} is too small for one element.")
    _check_range(layer, cell, "SUM_W", -count * max_magnitude, count * max_magnitude, signed=True)
    # SQ_W holds the sum of squares, V and N, and the subtrahend of a step: at most all of it and a little more.
    max_squares = max(count * max_magnitude * max_magnitude, count * spread * spread) + count
    _check_range(layer, cell, "SQ_W", 0, max_squares, signed=False)
    root = math.isqrt(spread * spread + 1)
    _check_range(layer, cell, "ROOT_W", 0, root, signed=False)
    trial = (1 << cell.number("ROOT_W")) - 1
    if count * trial * trial >> cell.number("SQ_W"):
        raise broken(layer.name, f"ROOT_W of {cell.name} is {cell.number('ROOT_W')}: squares of {trial} overflow SQ_W.")
    if centred:
        _check_range(layer, cell, "MEAN_W", 0, max_magnitude, signed=False)


def _quotients(
    layer: IntegerRows, cell: Cell, weight: list[int], bias: list[int], codes: tuple[int, int], norm: IntegerNorm
) -> None:
    """Check dividends and quotients: t / root with root >= the root of a row with one such element."""
    low, high = codes
    count = layer.source.shape[-1]
    spread = high - low if norm.centred else max(abs(low), abs(high))
    root = math.isqrt(spread * spread + 1)
    max_weight, max_bias = max(map(abs, weight)), max(map(abs, bias))
    reach = spread * max_weight + root + max_bias * root
    _check_range(layer, cell, "ACC_W", -reach, reach, signed=True)
    max_quotient = max(d * max_weight // math.isqrt(d * d // count + 1) for d in range(spread + 1))
    ends = (-max_quotient - max_bias - 1) >> norm.shift, (max_quotient + max_bias) >> norm.shift
    _check_range(layer, cell, "BITS", *ends, signed=True)
    if cell.number("OUT_W") > cell.number("BITS"):
        raise broken(layer.name, f"OUT_W of {cell.name} is more than BITS.")
    products = cell.number("IN_W") + 2, cell.number("MEAN_W", 1) + 2
    if cell.number("ACC_W") <= max(
        max(products) + cell.number("WEIGHT_W"), cell.number("BIAS_W") + cell.number("ROOT_W") + 1
    ):
        raise broken(layer.name, f"ACC_W of {cell.name} does not hold its products.")
    output_range = IntType(-(1 << (cell.number("OUT_W") - 1)), (1 << (cell.number("OUT_W") - 1)) - 1)
    if output_range != norm.type:
        raise broken(layer.name, f"{cell.name} outputs {output_range}, the layer {norm.type}.")
