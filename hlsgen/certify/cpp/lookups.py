"""Processes that look codes up, or take two operands, as instances: tables, cascades, buckets and cells, pairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hlsgen.certify.cpp.codes import bits_of, bounds_of, ends_of, folds_of, holds, mode_of, takes_tables
from hlsgen.certify.cpp.meaning import Meaning, instance, sized
from hlsgen.certify.cpp.process_text import Call
from hlsgen.certify.cpp.tables import Tables
from hlsgen.certify.netlist_reader import ParameterValue, SizedConstant, broken
from hlsgen.numerics.fixed import Array


def _table(mode: int) -> Callable[[Call, Tables], Meaning]:
    """The functions of table.hpp, by the number of their mode in hg_table."""

    def made(call: Call, tables: Tables) -> Meaning:
        call.only("SIZE FOLDS ROUNDS EVEN TOTAL" if mode == 2 else "SIZE FOLDS ROUNDS")
        lanes, x, ends = ends_of(call)
        folds, beats = folds_of(call)
        takes_tables(call, "entries centre" if mode else "entries")
        size, sent = call.number("SIZE", 2), call.gives[0].bits
        bits = size.bit_length() - 1
        entries = tables.array(call, "entries", folds, lanes, size)
        centre = tables.array(call, "centre", folds, lanes) if mode else np.zeros((folds, lanes), np.int64)
        if size != 1 << bits or (not mode and bits > x.bits):
            raise broken(call.name, f"SIZE is {size}, no power of two, or more than there are inputs.")
        room = 1 << (x.bits + 1)  # of the distance from the centre
        if x.lo - int(centre.max()) < -room or x.hi - int(centre.min()) >= room:
            raise broken(call.name, "its centre lies beyond the inputs.")
        total = call.number("TOTAL", -(1 << 40)) if mode == 2 else 0
        if abs(total) >= 1 << sent or (mode == 2 and bits_of(entries) > sent + 1):
            raise broken(call.name, f"TOTAL is {total}, or its entries are more than its code has.")
        width, stem = bits_of(centre), f"{call.name}.table"
        for lane in range(lanes):
            tables.put(f"{stem}_{lane:04d}.mem", [(entries[:, lane].reshape(-1, 1), sent)])
        if mode:
            tables.put(f"{stem}.mem", [(centre, width)])
        return instance(
            call,
            "hg_table",
            beats,
            **ends,
            FOLDS=folds,
            MODE=mode,
            ADDR_W=bits,
            CENTERED=int(mode > 0),
            C_W=width,
            EVEN=int(mode == 2 and call.flag("EVEN")),
            SUM=sized(sent, total),
            FILE=stem,
        )

    return made


def _rank(call: Call, tables: Tables) -> Meaning:
    call.only("LEVELS LOW BEATS")
    lanes, x, ends = ends_of(call)
    takes_tables(call, "bits tables")
    levels, low = call.number("LEVELS", 1), call.number("LOW")
    bits, entries = tables.array(call, "bits", levels, 2), tables.array(call, "tables", levels, lanes, -1)
    kept, taken = bits[:, 0].tolist(), bits[:, 1].tolist()
    states = [*kept[1:], call.gives[0].bits]
    if kept[0] or min(taken) < 1 or max(map(sum, bits.tolist())) > 24 or low + sum(taken) > x.bits or min(states) < 1:
        raise broken(call.name, f"its levels take {bits.tolist()} of {x.bits} bits.")
    sizes = [1 << (k + t) for k, t in zip(kept, taken, strict=True)]
    for level, (size, state) in enumerate(zip(sizes, states, strict=True)):
        own = entries[level, :, :size]
        if size > entries.shape[2] or (level < levels - 1 and (own.min() < 0 or own.max() >> state)):
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
        OUT_W=ends["OUT_W"],
        LOW=low,
        LEVELS=levels,
        CHUNKS=_packed(taken, 8),
        STATES=_packed(states, 8),
        TABLE_W=width,
        FILE=f"{call.name}.rank",
    )


def _packed(values: list[int], bits: int) -> SizedConstant:
    """Numbers side by side, the first in the low bits."""
    mask = (1 << bits) - 1
    return SizedConstant(len(values) * bits, sum((value & mask) << (bits * n) for n, value in enumerate(values)))


def _correct(call: Call, tables: Tables) -> Meaning:
    call.only("Y_BITS FRACTION LOW FOLDS ROUNDS")
    lanes, x, ends = ends_of(call)
    folds, beats = folds_of(call)
    names = ("start", "code", "count", "level", "sure", "rest")
    takes_tables(call, f"shape {' '.join(names)}")
    shape = tables.array(call, "shape", lanes, 8)
    start, code, count, level, sure, rest = (tables.array(call, end, folds, lanes, -1) for end in names)
    fraction, y_bits, low, sent = (
        call.number("FRACTION"),
        call.number("Y_BITS", 1),
        call.number("LOW", -(1 << 40)),
        call.gives[0],
    )
    coarse, fine, buckets, cells, first, last, above, zero = shape.T
    size = fine + fraction
    wrong = {
        "a shape ends with another number than 0": zero.any(),
        "a shape, count, level or rest is negative": min(
            int(part.min()) for part in (coarse, fine, buckets, cells, above, count, level, rest)
        )
        < 0,
        "Y_BITS is less than the bits of a cell and of its number, or more than 60": not (
            int((size + cells).max()) <= y_bits <= 60
        ),
        "a code, or a number of buckets or cells, has more than 16 bits": max(
            sent.bits, int(buckets.max()), int(cells.max())
        )
        > 16,
        "sure is another number than 0 and 1": not np.isin(sure, (0, 1)).all(),
        "the first or the last x that buckets count is no input": first.min() < x.lo or last.max() > x.hi,
        "a lane has more buckets or cells than its tables": (
            int(buckets.max()) >= code.shape[2].bit_length() or int(cells.max()) >= count.shape[2].bit_length()
        ),
    }
    for what, found in wrong.items():
        if found:
            raise broken(call.name, f"{what}.")
    counted = max(int(count.max()), int(above.max())).bit_length() or 1
    rest_bits = int(rest.max()).bit_length()
    stem, c_bits = f"{call.name}.correct", bits_of(code)
    for lane in range(lanes):
        b, c, s = int(buckets[lane]), int(cells[lane]), int(size[lane])
        own = code[:, lane, : 1 << b]
        counts, levels = count[:, lane, : 1 << c], level[:, lane, : 1 << c]
        # The model puts both side by side, which is their sum where the bits of one are 0 in the other: fold by fold.
        behind = np.array([((1 << int(most).bit_length()) - 1) << fraction for most in rest[:, lane].max(axis=1)])
        if max(levels.max(), behind.max()) >> s or (levels & behind[:, None]).any():
            raise broken(
                call.name, f"lane {lane}: its levels and what is behind codes overlap, or are more than a cell."
            )
        a = own.astype(object) & ((1 << sent.bits) - 1)
        a = (a << (c + s)) | (start[:, lane, : 1 << b].astype(object) & ((1 << (c + s)) - 1))
        t = (sure[:, lane, : 1 << c].astype(object) << (counted + s)) | (counts.astype(object) << s) | levels
        tables.put(f"{stem}_{lane:04d}_rest.mem", [(rest[:, lane].reshape(-1, 1), max(1, rest_bits))])
        tables.put(f"{stem}_{lane:04d}_code.mem", [(own.reshape(-1, 1), c_bits)])
        for number, (entries, width) in enumerate(((a, sent.bits + c + s), (t, 1 + counted + s))):
            _put(tables, f"{stem}_{lane:04d}_{number:02d}.mem", entries, width)
    shapes = [int(b | c << 8 | k << 16 | f << 24) for b, c, k, f in zip(buckets, cells, coarse, fine, strict=True)]
    return instance(
        call,
        "hg::correct",
        beats,
        **ends,
        FOLDS=folds,
        FRACTION=fraction,
        REST=0,
        COUNT=counted,
        SHAPES=_packed(shapes, 32),
        FIRST=_packed(first.tolist(), x.bits),
        LAST=_packed(last.tolist(), x.bits),
        ABOVE=_packed(above.tolist(), counted),
        OPEN=0,
        DEEP=0,
        LOW=low,
        CODES=rest.shape[2],
        FINER=max(1, rest_bits),
        C_W=c_bits,
        FILE=stem,
    )


def _put(tables: Tables, name: str, entries: Array, width: int) -> None:
    """Entries (folds, places): a word each; of one fold a word for each bit, of that bit of all entries."""
    if len(entries) > 1:
        tables.put(name, [(entries.reshape(-1, 1), width)])
    else:
        tables.put(name, [(np.array([(entries[0].astype(object) >> bit) & 1 for bit in range(width)]), 1)])


def _pair(call: Call) -> dict[str, ParameterValue]:
    lanes, x, _ = ends_of(call)
    if x.bits != 16 or call.tables:
        raise broken(call.name, f"a pair has 16 bits, its input {x.bits}; it takes no tables.")
    return {"LANES": lanes}


def _pair_add(call: Call, tables: Tables) -> Meaning:
    del tables
    call.only("ZP0 ZP1 ZPO S0 S1 SO SHIFT BEATS")
    own, sent = _pair(call), call.gives[0]
    for names, bits, low in (("ZP0 ZP1 ZPO", 16, -(1 << 15)), ("S0 S1", 16, 0), ("SO", 8, 0), ("SHIFT", 8, -128)):
        for name in names.split():
            value = call.number(name, low)
            if value >= low + (1 << bits):
                raise broken(call.name, f"{name} is {value}, not of {bits} bits.")
            own[name if name != "SHIFT" else "SH"] = sized(bits, value)
    if sent.bits != 8:
        raise broken(call.name, f"its code has {sent.bits} bits, not 8.")
    return instance(call, "hg_pair_add", (call.number("BEATS", 1),), **own)


def _pair_scale(product: bool) -> Callable[[Call, Tables], Meaning]:
    def made(call: Call, tables: Tables) -> Meaning:
        del tables
        call.only(f"A SUM {'ZA ZB FIRST' if product else 'FIRST SECOND'} OFFSET MODE SHIFT LOW HIGH BEATS")
        own, sent, least = _pair(call), call.gives[0], -(1 << 60)
        signed = call.arguments["A"] == "ap_int<8>"
        if not signed and call.arguments["A"] != "ap_uint<8>":
            raise broken(call.name, f"its operands are {call.arguments['A']}.")
        first, offset, shift = call.number("FIRST", least), call.number("OFFSET", least), call.number("SHIFT", 1)
        second = 0 if product else call.number("SECOND", least)
        zeros = [call.number(name, -256) if product else 0 for name in ("ZA", "ZB")]
        mode = mode_of(call)
        if mode not in (0, 2) or max(zeros) > 255 or shift > 60:
            raise broken(call.name, "its rounding, zeros or shift are none that hg_pair_scale has.")
        ends = (-128, 127) if signed else (0, 255)
        products = [
            (a - zeros[0]) * (b - zeros[1]) * first if product else a * first + b * second for a in ends for b in ends
        ]
        room = 1 << shift
        low, high = call.number("LOW", least), call.number("HIGH", least)
        holds(
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
            **own,
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
            OUT_W=sent.bits,
            **bounds_of(call),
        )

    return made


#: Name of a function -> the instance that a call of it stands for.
LOOKUPS: dict[str, Callable[[Call, Tables], Meaning]] = {
    "hg::table": _table(0),
    "hg::table_window": _table(1),
    "hg::table_half": _table(2),
    "hg::rank": _rank,
    "hg::correct": _correct,
    "hg::pair_add": _pair_add,
    "hg::pair_scale": _pair_scale(False),
    "hg::pair_scale_product": _pair_scale(True),
}
