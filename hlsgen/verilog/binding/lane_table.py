"""Binds the realization LaneTable to hg_lane_table: constants and tables of the lanes, packed into parameters."""

from __future__ import annotations

from collections.abc import Sequence

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize.lane_table import LaneTable
from hlsgen.verilog.binding.memory_files import Binding, Bits


def bind(realization: LaneTable, table: Array, source: IntType, result: IntType) -> Binding:
    """The module of a realization. `table` int64 (1, lanes): the parameter set of each lane, the same in every beat."""
    assert len(table) == 1, "hg_lane_table has one function a lane"
    lanes = realization.take(table[0])
    words = [_words(values, result.bits) for values in lanes.values]
    sizes = [result.bits * len(values) for values in lanes.values]
    return Binding(
        "hg_lane_table",
        {
            "LANES": table.shape[1],
            "IN_W": source.bits,
            "IN_SIGNED": int(source.signed),
            "OUT_W": result.bits,
            "SHIFTS": _packed(lanes.shift.tolist(), [8] * len(words)),
            "BITS": _packed(lanes.bits.tolist(), [8] * len(words)),
            "OFFSETS": _packed(lanes.offset.tolist(), [source.bits + 1] * len(words)),
            "SIZE": sum(sizes),
            "TABLES": _packed(words, sizes),
            "ADD": int(realization.adds),
        },
        "a table of the bits that matter, each lane its own",
    )


def _words(values: Array, bits: int) -> int:
    """A table as an integer: a word for each bit of the code, bit i of it for entry i."""
    columns = [int("".join(map(str, (values[::-1] >> bit & 1).tolist())), 2) for bit in range(bits)]
    return sum(column << (bit * len(values)) for bit, column in enumerate(columns))


def _packed(numbers: Sequence[int], sizes: Sequence[int]) -> Bits:
    text = "".join(format(number, f"0{size}b") for number, size in zip(reversed(numbers), reversed(sizes), strict=True))
    return Bits(sum(sizes), int(text, 2))
