"""Binds the realization Rank to hg_rank, a cascade of small lookup tables."""

from __future__ import annotations

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize.rank import Rank
from hlsgen.verilog.binding.memory_files import Binding, Bits, words


def bind(realization: Rank, table: Array, source: IntType, result: IntType, name: str) -> Binding:
    """The module of a realization. `table` int64 (1, lanes): the parameter set of each lane, the same in every beat."""
    assert len(table) == 1, "hg_rank has one function a lane"
    widths = (*realization.states, result.bits)
    bits = max(width * len(entries) for width, entries in zip(widths, realization.tables, strict=True))
    memories = {}
    for lane, s in enumerate(table[0].tolist()):
        lines = [words(entries[None, :, s], width) for entries, width in zip(realization.tables, widths, strict=True)]
        memories[f"{name}_{lane:04d}.mem"] = "".join(lines)
    levels = len(realization.chunks)
    return Binding(
        "hg_rank",
        {
            "LANES": table.shape[1],
            "IN_W": source.bits,
            "OUT_W": result.bits,
            "LOW": realization.low,
            "LEVELS": levels,
            "CHUNKS": _bytes(realization.chunks),
            "STATES": _bytes(widths),
            "TABLE_W": bits,
            "FILE": name,
        },
        f"cascade of {levels} lookup tables per lane",
        memories,
    )


def _bytes(values: tuple[int, ...]) -> Bits:
    return Bits(8 * len(values), int.from_bytes(bytes(values), "little"))
