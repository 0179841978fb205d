"""Reads processes that look up codes, or that have two operands, as instances: lookup tables, rank cascades, buckets
and cells, pairs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hlsgen.certify.cpp.codes import (
    bits_of,
    bounds_of,
    check_tables,
    check_type_holds,
    folds_of,
    lane_parameters,
    mode_of,
)
from hlsgen.certify.cpp.meaning import Meaning, instance, sized
from hlsgen.certify.cpp.process_text import Call
from hlsgen.certify.cpp.tables import Tables
from hlsgen.certify.netlist_reader import ParameterValue, SizedConstant, broken
from hlsgen.numerics.fixed import Array, IntType


def _table(mode: int) -> Callable[[Call, Tables], Meaning]:
    """The functions of table.hpp, by the MODE of hg_table."""

    def read(call: Call, tables: Tables) -> Meaning:
        call.only("SIZE FOLDS ROUNDS EVEN TOTAL" if mode == 2 else "SIZE FOLDS ROUNDS")
        lanes, x, parameters = lane_parameters(call)
        folds, beats = folds_of(call)
        check_tables(call, "entries centre" if mode else "entries")
        size, out_bits = call.number("SIZE", 2), call.outputs[0].bits
        bits = size.bit_length() - 1
        entries = tables.array(call, "entries", folds, lanes, size)
        centre = tables.array(call, "centre", folds, lanes) if mode else np.zeros((folds, lanes), np.int64)
        if size != 1 << bits or (not mode and bits > x.bits):
            raise broken(call.name, f"SIZE is {size}, no power of two, or more than there are inputs.")
        room = 1 << (x.bits + 1)  # largest distance from the centre
        if x.lo - int(centre.max()) < -room or x.hi - int(centre.min()) >= room:
            raise broken(call.name, "its centre is outside the range of the inputs.")
        total = call.number("TOTAL", -(1 << 40)) if mode == 2 else 0
        if abs(total) >= 1 << out_bits or (mode == 2 and bits_of(entries) > out_bits + 1):
            raise broken(call.name, f"TOTAL is {total}, or its entries are more than its code has.")
        width, stem = bits_of(centre), f"{call.name}.table"
        for lane in range(lanes):
            tables.put(f"{stem}_{lane:04d}.mem", [(entries[:, lane].reshape(-1, 1), out_bits)])
        if mode:
            tables.put(f"{stem}.mem", [(centre, width)])
        return instance(
            call,
            "hg_table",
            beats,
            **parameters,
            FOLDS=folds,
            MODE=mode + int(mode == 2 and call.flag("EVEN")),
            ADDR_W=bits,
            C_W=width if mode else 0,
            SUM=sized(out_bits, total),
            FILE=stem,
        )

    return read


def _lines(call: Call, tables: Tables) -> Meaning:
    call.only("SCALED SUM MULTIPLIER SHIFT KNOTS FRACTION LEFT RIGHT MIRROR BEATS")
    lanes, x, parameters = lane_parameters(call)
    check_tables(call, "knots")
    count, multiplier, minimum = call.number("KNOTS", 2), call.number("MULTIPLIER"), -(1 << 40)
    shift, fraction = call.number("SHIFT"), call.number("FRACTION", 1)
    left_shift, right_shift, mirror = call.number("LEFT"), call.number("RIGHT"), call.number("MIRROR", minimum)
    knots = tables.array(call, "knots", lanes, count, 2)
    address, m_bits = count.bit_length() - 1, multiplier.bit_length() + 1
    if count != 1 << address or (knots != knots[0]).any() or int(knots.min()) < 0:
        raise broken(call.name, f"KNOTS is {count}, no power of two, or its lanes have other knots or negative ones.")
    if max(shift, fraction, left_shift, right_shift) > 30 or shift > x.bits + m_bits:
        raise broken(call.name, "it shifts by more bits than its model supports.")
    largest = max(abs(x.lo), abs(x.hi)) * multiplier + (1 << shift)
    check_type_holds(call, "SCALED", -largest, largest, (1 << fraction) - 1, count)
    values, rises = knots[0, :, :1], knots[0, :, 1:]
    top = (int(values.max()) << left_shift) + (int(rises.max()) << fraction)
    check_type_holds(call, "SUM", -top, top, mirror - top, mirror, (1 << fraction) - 1)
    value_bits, rise_bits = (max(1, int(part.max()).bit_length()) for part in (values, rises))
    return instance(
        call,
        "hg_lines",
        (call.number("BEATS", 1),),
        **parameters,
        M_W=m_bits,
        M=sized(m_bits, multiplier),
        SHIFT=shift,
        ADDR_W=address,
        FRAC_W=fraction,
        VALUE_W=value_bits,
        RISE_W=rise_bits,
        LEFT=left_shift,
        RIGHT=right_shift,
        MIRROR=sized(call.outputs[0].bits, mirror),
        STYLE=0,
        M_STAGES=1,
        STAGES=1,
        FILE=tables.put(f"{call.name}.lines", [(values, value_bits), (rises, rise_bits)]),
    )


def _rank(call: Call, tables: Tables) -> Meaning:
    call.only("LEVELS LOW BEATS")
    lanes, x, parameters = lane_parameters(call)
    check_tables(call, "bits tables")
    levels, low = call.number("LEVELS", 1), call.number("LOW")
    bits, entries = tables.array(call, "bits", levels, 2), tables.array(call, "tables", levels, lanes, -1)
    state_bits, chunk_bits = bits[:, 0].tolist(), bits[:, 1].tolist()
    states = [*state_bits[1:], call.outputs[0].bits]
    if (
        state_bits[0]
        or min(chunk_bits) < 1
        or max(map(sum, bits.tolist())) > 24
        or low + sum(chunk_bits) > x.bits
        or min(states) < 1
    ):
        raise broken(call.name, f"its levels use {bits.tolist()} of {x.bits} bits.")
    sizes = [1 << (k + t) for k, t in zip(state_bits, chunk_bits, strict=True)]
    for level, (size, state) in enumerate(zip(sizes, states, strict=True)):
        level_entries = entries[level, :, :size]
        if size > entries.shape[2] or (
            level < levels - 1 and (level_entries.min() < 0 or level_entries.max() >> state)
        ):
            raise broken(call.name, f"level {level} has states of more than {state} bits, or too few entries.")
    width = max(state * size for state, size in zip(states, sizes, strict=True))
    for lane in range(lanes):
        words = np.array(
            [
                [sum((int(v) & ((1 << b) - 1)) << (n * b) for n, v in enumerate(entries[level, lane, :size]))]
                for level, (size, b) in enumerate(zip(sizes, states, strict=True))
            ],
            object,
        )
        tables.put(f"{call.name}.rank_{lane:04d}.mem", [(words, width)])
    beats = (call.number("BEATS", 1),)
    return instance(
        call,
        "hg_rank",
        beats,
        LANES=lanes,
        IN_W=x.bits,
        OUT_W=parameters["OUT_W"],
        LOW=low,
        LEVELS=levels,
        CHUNKS=_packed(chunk_bits, 8),
        STATES=_packed(states, 8),
        TABLE_W=width,
        FILE=f"{call.name}.rank",
    )


def _packed(values: list[int], bits: int) -> SizedConstant:
    """Numbers side by side; the first is in the low bits."""
    mask = (1 << bits) - 1
    return SizedConstant(len(values) * bits, sum((value & mask) << (bits * n) for n, value in enumerate(values)))


@dataclass(frozen=True)
class _Cells:
    """The arrays of hg::correct. A lane with B buckets and C cells uses 2^B and 2^C of their entries.

    - coarse, fine, buckets, cells: bits, in each lane.
    - first, last: the inputs that buckets count. above: the count after them.
    - start, code: of each bucket. count, level, sure: of each cell. remainder: of each code.
    """

    fraction: int
    coarse: Array
    fine: Array
    buckets: Array
    cells: Array
    first: Array
    last: Array
    above: Array
    start: Array
    code: Array
    count: Array
    level: Array
    sure: Array
    remainder: Array

    @property
    def size(self) -> Array:
        """Bits of a cell in each lane."""
        return self.fine + self.fraction


_ARRAYS = ("start", "code", "count", "level", "sure", "rest")


def _read_cells(call: Call, tables: Tables, folds: int, lanes: int, x: IntType) -> _Cells:
    """The arrays of a call. Raises HG055 if they are no cells."""
    check_tables(call, f"shape {' '.join(_ARRAYS)}")
    *shape, zero = tables.array(call, "shape", lanes, 8).T
    arrays = [tables.array(call, end, folds, lanes, -1) for end in _ARRAYS]
    cells, y_bits = _Cells(call.number("FRACTION"), *shape, *arrays), call.number("Y_BITS", 1)
    nonnegative = (cells.coarse, cells.fine, cells.buckets, cells.cells, cells.above)
    most_buckets, most_cells = int(cells.buckets.max()), int(cells.cells.max())
    wrong = {
        "a shape ends with another number than 0": zero.any(),
        "a shape, count, level or rest is negative": min(
            int(part.min()) for part in (*nonnegative, cells.count, cells.level, cells.remainder)
        )
        < 0,
        "Y_BITS is less than the bits of a cell and of its number, or more than 60": not (
            int((cells.size + cells.cells).max()) <= y_bits <= 60
        ),
        "a code, or a number of buckets or cells, has more than 16 bits": max(
            call.outputs[0].bits, most_buckets, most_cells
        )
        > 16,
        "sure is another number than 0 and 1": not np.isin(cells.sure, (0, 1)).all(),
        "the first or the last x that buckets count is no input": cells.first.min() < x.lo or cells.last.max() > x.hi,
        "a lane has more buckets or cells than its tables": (
            most_buckets >= cells.code.shape[2].bit_length() or most_cells >= cells.count.shape[2].bit_length()
        ),
    }
    for problem, is_wrong in wrong.items():
        if is_wrong:
            raise broken(call.name, f"{problem}.")
    return cells


def _store_lane(call: Call, tables: Tables, cells: _Cells, lane: int, counted: int) -> None:
    """Store the memories of a lane. `counted`: bits of a count. Raises HG055 if a level and a remainder overlap."""
    b, c, s = int(cells.buckets[lane]), int(cells.cells[lane]), int(cells.size[lane])
    codes, remainder = cells.code[:, lane, : 1 << b], cells.remainder[:, lane]
    counts, levels = cells.count[:, lane, : 1 << c], cells.level[:, lane, : 1 << c]
    # The model concatenates both. This equals their sum if the bits of one are 0 in the other, in each fold.
    rest_bits = np.array(
        [((1 << int(largest).bit_length()) - 1) << cells.fraction for largest in remainder.max(axis=1)]
    )
    if max(levels.max(), rest_bits.max()) >> s or (levels & rest_bits[:, None]).any():
        raise broken(
            call.name, f"lane {lane}: its levels and the remainders of its codes overlap, or are more than a cell."
        )
    out_bits, stem = call.outputs[0].bits, f"{call.name}.correct_{lane:04d}"
    bucket_words = codes.astype(object) & ((1 << out_bits) - 1)
    bucket_words = (bucket_words << (c + s)) | (cells.start[:, lane, : 1 << b].astype(object) & ((1 << (c + s)) - 1))
    sure = cells.sure[:, lane, : 1 << c].astype(object)
    cell_words = (sure << (counted + s)) | (counts.astype(object) << s) | levels
    tables.put(f"{stem}_rest.mem", [(remainder.reshape(-1, 1), max(1, int(cells.remainder.max()).bit_length()))])
    tables.put(f"{stem}_code.mem", [(codes.reshape(-1, 1), bits_of(cells.code))])
    _put(tables, f"{stem}_00.mem", bucket_words, out_bits + c + s)
    _put(tables, f"{stem}_01.mem", cell_words, 1 + counted + s)


def _correct(call: Call, tables: Tables) -> Meaning:
    call.only("Y_BITS FRACTION LOW FOLDS ROUNDS")
    lanes, x, parameters = lane_parameters(call)
    folds, beats = folds_of(call)
    low = call.number("LOW", -(1 << 40))
    cells = _read_cells(call, tables, folds, lanes, x)
    counted = max(int(cells.count.max()), int(cells.above.max())).bit_length() or 1
    for lane in range(lanes):
        _store_lane(call, tables, cells, lane, counted)
    shape = zip(cells.buckets, cells.cells, cells.coarse, cells.fine, strict=True)
    shapes = [int(b | c << 8 | k << 16 | f << 24) for b, c, k, f in shape]
    return instance(
        call,
        "hg::correct",
        beats,
        **parameters,
        FOLDS=folds,
        FRACTION=cells.fraction,
        REST=0,
        COUNT=counted,
        SHAPES=_packed(shapes, 32),
        FIRST=_packed(cells.first.tolist(), x.bits),
        LAST=_packed(cells.last.tolist(), x.bits),
        ABOVE=_packed(cells.above.tolist(), counted),
        OPEN=0,
        DEEP=0,
        LOW=low,
        CODES=cells.remainder.shape[2],
        FINER=max(1, int(cells.remainder.max()).bit_length()),
        C_W=bits_of(cells.code),
        FILE=f"{call.name}.correct",
    )


def _put(tables: Tables, name: str, entries: Array, width: int) -> None:
    """Store entries (folds, addresses), a word for each entry. A single fold has a word for each bit of all entries."""
    if len(entries) > 1:
        tables.put(name, [(entries.reshape(-1, 1), width)])
    else:
        tables.put(name, [(np.array([(entries[0].astype(object) >> bit) & 1 for bit in range(width)]), 1)])


def _pair(call: Call) -> dict[str, ParameterValue]:
    lanes, x, _ = lane_parameters(call)
    if x.bits != 16 or call.tables:
        raise broken(call.name, f"a pair has 16 bits, its input {x.bits}; it has no tables.")
    return {"LANES": lanes}


def _pair_add(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("ZP0 ZP1 ZPO S0 S1 SO SHIFT BEATS")
    parameters, out_beats = _pair(call), call.outputs[0]
    for names, bits, low in (("ZP0 ZP1 ZPO", 16, -(1 << 15)), ("S0 S1", 16, 0), ("SO", 8, 0), ("SHIFT", 8, -128)):
        for name in names.split():
            value = call.number(name, low)
            if value >= low + (1 << bits):
                raise broken(call.name, f"{name} is {value}, not of {bits} bits.")
            parameters[name if name != "SHIFT" else "SH"] = sized(bits, value)
    if out_beats.bits != 8:
        raise broken(call.name, f"its code has {out_beats.bits} bits, not 8.")
    return instance(call, "hg_pair_add", (call.number("BEATS", 1),), **parameters)


def _pair_scale(product: bool) -> Callable[[Call, Tables], Meaning]:
    def read(call: Call, tables: Tables) -> Meaning:
        del tables
        call.only(f"A SUM {'ZA ZB FIRST' if product else 'FIRST SECOND'} OFFSET MODE SHIFT LOW HIGH BEATS")
        parameters, out_beats, minimum = _pair(call), call.outputs[0], -(1 << 60)
        signed = call.arguments["A"] == "ap_int<8>"
        if not signed and call.arguments["A"] != "ap_uint<8>":
            raise broken(call.name, f"its operands are {call.arguments['A']}.")
        first, offset, shift = call.number("FIRST", minimum), call.number("OFFSET", minimum), call.number("SHIFT", 1)
        second = 0 if product else call.number("SECOND", minimum)
        zeros = [call.number(name, -256) if product else 0 for name in ("ZA", "ZB")]
        mode = mode_of(call)
        if mode not in (0, 2) or max(zeros) > 255 or shift > 60:
            raise broken(call.name, "its rounding, zeros or shift are none that hg_pair_scale has.")
        ends = (-128, 127) if signed else (0, 255)
        products = [
            (a - zeros[0]) * (b - zeros[1]) * first if product else a * first + b * second for a in ends for b in ends
        ]
        room = 1 << shift
        low, high = call.number("LOW", minimum), call.number("HIGH", minimum)
        check_type_holds(
            call,
            "SUM",
            *(p + offset + d for p in products for d in (-room, 0, room)),
            first,
            second,
            offset,
            low,
            high,
            room,
        )
        width, r_bits = bits_of(np.array([first, second])), bits_of(np.array([offset]))
        return instance(
            call,
            "hg_pair_scale",
            (call.number("BEATS", 1),),
            **parameters,
            SIGNED=int(signed),
            PRODUCT=int(product),
            ZA=sized(9, zeros[0]),
            ZB=sized(9, zeros[1]),
            M_W=width,
            MA=sized(width, first),
            MB=sized(width, second),
            R_W=r_bits,
            R=sized(r_bits, offset),
            SHIFT=shift,
            EVEN=int(mode == 0),
            OUT_W=out_beats.bits,
            **bounds_of(call),
        )

    return read


#: Name of a function -> how a call of it is read as an instance.
LOOKUPS: dict[str, Callable[[Call, Tables], Meaning]] = {
    "hg::table": _table(0),
    "hg::table_window": _table(1),
    "hg::table_half": _table(2),
    "hg::lines": _lines,
    "hg::rank": _rank,
    "hg::correct": _correct,
    "hg::pair_add": _pair_add,
    "hg::pair_scale": _pair_scale(False),
    "hg::pair_scale_product": _pair_scale(True),
}
