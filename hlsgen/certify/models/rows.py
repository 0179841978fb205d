"""Models of hg_rows_max, hg_rows_share and hg_rows_norm, from the contracts at the heads of their files.

Each is the function of the layer if its parameters are those of the layer and no number in it overflows. The ranges
of the numbers are followed here, from the codes that the row can have.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hlsgen.certify.models.routing import fits, only, whole
from hlsgen.certify.netlist_reader import Cell, Memories, broken, two_complement
from hlsgen.certify.quantizers import same
from hlsgen.certify.stream_contents import StreamContents
from hlsgen.ir import IntegerRows
from hlsgen.ir.row_functions import BelowLargest, IntegerNorm, Share
from hlsgen.numerics.fixed import Array, IntType

#: Modules of rows.
ROWS = ("hg_rows_max", "hg_rows_share", "hg_rows_norm")
_NORM = "LANES BEATS IN_W IN_SIGNED CENTERED SUM_W SQ_W MEAN_W ROOT_W WEIGHT_W BIAS_W ACC_W SHIFT BITS OUT_W WRAPS FILE"
_PARAMETERS = {
    "hg_rows_max": "LANES BEATS IN_W IN_SIGNED OUT_W",
    "hg_rows_share": "LANES BEATS IN_W WEIGHT_W NUMBER_W SUM_W OUT_W FILE",
    "hg_rows_norm": _NORM,
}


def row_beats(layer: IntegerRows, cell: Cell, stream: StreamContents, columns: Array) -> int:
    """Beats of a row, whose elements come in the order `columns` (rows, count). Raises HG055."""
    only(cell, _PARAMETERS[cell.module])
    count = layer.source.shape[-1]
    lanes, beats = cell.number("LANES", 1), cell.number("BEATS", 1)
    fits(cell, stream, lanes, cell.number("IN_W", 1))
    whole(cell, stream, beats, "a row has")
    if lanes * beats != count or not stream.filled.all() or (np.diff(columns) < 0).any():
        text = f"{cell.name} has {lanes} x {beats} elements in turn, a row {count} from first to last."
        raise broken(layer.name, text)
    if cell.number("OUT_W", 1) != layer.result.type.bits:
        raise broken(layer.name, f"OUT_W of {cell.name} is {cell.parameters['OUT_W']}, not {layer.result.type}.")
    return beats


def check_rows(layer: IntegerRows, cell: Cell, low: int, high: int, memories: Memories) -> None:
    """Proves that the module computes the function for all codes of low..high. Raises HG055."""
    wanted: dict[type[Any], tuple[str, Callable[..., None]]] = {
        BelowLargest: ("hg_rows_max", _max),
        Share: ("hg_rows_share", _share),
        IntegerNorm: ("hg_rows_norm", _norm),
    }
    module, check = wanted[type(layer.function)]
    if cell.module != module:
        raise broken(layer.name, f"{cell.name} is {cell.module}, the layer is one of {module}.")
    check(layer, cell, low, high, memories)


def _holds(layer: IntegerRows, cell: Cell, name: str, low: int, high: int, *, signed: bool) -> None:
    bits = cell.number(name, 1)
    held = IntType(-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else IntType(0, (1 << bits) - 1)
    if low < held.lo or high > held.hi:
        raise broken(layer.name, f"{name} of {cell.name} is {bits}; there are numbers of {low}..{high}.")


def _signs(layer: IntegerRows, cell: Cell, low: int, high: int) -> None:
    """IN_W and IN_SIGNED read the codes as what they are."""
    signed = cell.number("IN_SIGNED")
    if signed > 1:
        raise broken(layer.name, f"IN_SIGNED of {cell.name} is {signed}.")
    _holds(layer, cell, "IN_W", low, high, signed=bool(signed))


def _max(layer: IntegerRows, cell: Cell, low: int, high: int, memories: Memories) -> None:
    _signs(layer, cell, low, high)
    _holds(layer, cell, "OUT_W", 0, high - low, signed=False)


def _share(layer: IntegerRows, cell: Cell, low: int, high: int, memories: Memories) -> None:
    share = layer.function
    assert isinstance(share, Share)
    _holds(layer, cell, "IN_W", low, high, signed=False)
    bits = {name: cell.number(name, 1) for name in ("IN_W", "WEIGHT_W", "NUMBER_W")}
    tables = []
    for n, (name, wanted) in enumerate((("WEIGHT_W", share.weights), ("NUMBER_W", share.numbers))):
        found = memories.fields(f"{cell.file}_{n:04d}.mem", 1 << bits["IN_W"], 1, bits[name])[:, 0]
        same(
            layer.name,
            f"rtl/{cell.file}_{n:04d}.mem, words",
            found[low : high + 1].tolist(),
            wanted[low : high + 1].tolist(),
        )
        tables.append([int(v) for v in found[low : high + 1]])
    weights, numbers = tables
    count = layer.source.shape[-1]
    if cell.number("SUM_W", 1) <= bits["WEIGHT_W"]:
        raise broken(layer.name, f"SUM_W of {cell.name} is not more than WEIGHT_W.")
    _holds(layer, cell, "SUM_W", 0, max(weights) * count, signed=False)
    if low > 0 or weights[0] < 1:
        raise broken(layer.name, "a sum may be 0: the least difference has no weight.")
    # The largest of the row is there with weights[0]; another element comes with its own weight beside it.
    most = max(
        number // (weights[0] + (weight if d else 0))
        for d, (weight, number) in enumerate(zip(weights, numbers, strict=True))
    )
    _holds(layer, cell, "OUT_W", 0, most, signed=False)
    # A number that the divider does not hold would lose its high bits.
    _holds(layer, cell, "NUMBER_W", 0, max(numbers), signed=False)


def _norm(layer: IntegerRows, cell: Cell, low: int, high: int, memories: Memories) -> None:
    norm, count = layer.function, layer.source.shape[-1]
    assert isinstance(norm, IntegerNorm)
    _signs(layer, cell, low, high)
    said = [cell.number(name) for name in ("CENTERED", "SHIFT", "WRAPS")]
    same(layer.name, f"CENTERED, SHIFT, WRAPS of {cell.name}", said, [int(norm.centred), norm.shift, int(norm.wraps)])
    lanes, beats = cell.number("LANES", 1), cell.number("BEATS", 1)
    w_bits, b_bits = cell.number("WEIGHT_W", 1), cell.number("BIAS_W", 1)
    place = memories.fields(cell.file, beats, lanes, w_bits + b_bits).ravel()
    weight = two_complement(place & ((1 << w_bits) - 1), w_bits)
    bias = two_complement(place >> w_bits, b_bits)
    for what, found, wanted in (("weights", weight, norm.weight), ("biases", bias, norm.bias)):
        same(layer.name, f"rtl/{cell.file}, {what}", found.tolist(), wanted.tolist())
    _sums(layer, cell, low, high, norm.centred, count)
    _quotients(layer, cell, [int(v) for v in weight], [int(v) for v in bias], (low, high), norm)


def _sums(layer: IntegerRows, cell: Cell, low: int, high: int, centred: bool, count: int) -> None:
    """hg_rows_root: sums of the row, mean, root."""
    far = max(abs(low), abs(high))
    spread = high - low if centred else far
    if cell.number("SUM_W") <= cell.number("IN_W") + 1 or cell.number("SQ_W") <= 2 * cell.number("IN_W"):
        raise broken(layer.name, f"SUM_W or SQ_W of {cell.name} is too small for one element.")
    _holds(layer, cell, "SUM_W", -count * far, count * far, signed=True)
    # Beside the sum of squares and V with N, what is taken from it in a step is held: at most all of it and a bit more.
    most = max(count * far * far, count * spread * spread) + count
    _holds(layer, cell, "SQ_W", 0, most, signed=False)
    root = math.isqrt(spread * spread + 1)
    _holds(layer, cell, "ROOT_W", 0, root, signed=False)
    trial = (1 << cell.number("ROOT_W")) - 1
    if count * trial * trial >> cell.number("SQ_W"):
        raise broken(layer.name, f"ROOT_W of {cell.name} is {cell.number('ROOT_W')}: squares of {trial} overflow SQ_W.")
    if centred:
        _holds(layer, cell, "MEAN_W", 0, far, signed=False)


def _quotients(
    layer: IntegerRows, cell: Cell, weight: list[int], bias: list[int], codes: tuple[int, int], norm: IntegerNorm
) -> None:
    """The numbers that are divided, and the quotients: t / root where root >= the root of one such element."""
    low, high = codes
    count = layer.source.shape[-1]
    spread = high - low if norm.centred else max(abs(low), abs(high))
    root = math.isqrt(spread * spread + 1)
    most_w, most_b = max(map(abs, weight)), max(map(abs, bias))
    reach = spread * most_w + root + most_b * root
    _holds(layer, cell, "ACC_W", -reach, reach, signed=True)
    far = max(d * most_w // math.isqrt(d * d // count + 1) for d in range(spread + 1))
    ends = (-far - most_b - 1) >> norm.shift, (far + most_b) >> norm.shift
    _holds(layer, cell, "BITS", *ends, signed=True)
    if cell.number("OUT_W") > cell.number("BITS"):
        raise broken(layer.name, f"OUT_W of {cell.name} is more than BITS.")
    products = cell.number("IN_W") + 2, cell.number("MEAN_W", 1) + 2
    if cell.number("ACC_W") <= max(
        max(products) + cell.number("WEIGHT_W"), cell.number("BIAS_W") + cell.number("ROOT_W") + 1
    ):
        raise broken(layer.name, f"ACC_W of {cell.name} does not hold its products.")
    held = IntType(-(1 << (cell.number("OUT_W") - 1)), (1 << (cell.number("OUT_W") - 1)) - 1)
    if held != norm.type:
        raise broken(layer.name, f"{cell.name} gives {held}, the layer {norm.type}.")
