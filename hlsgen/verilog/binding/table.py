"""Binds the realization Table to hg_table, which looks up the code of an input in a memory."""

from __future__ import annotations

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize.table import Table, TableMode
from hlsgen.verilog.binding.memory_files import Binding, Bits, signed_bits, words


def bind(found: Table, table: Array, source: IntType, result: IntType, name: str) -> Binding:
    """The module of a realization. `table` int64 (folds, lanes): the set of each lane in each beat."""
    memories = {
        f"{name}_{lane:04d}.mem": words(found.entries[:, table[:, lane]].T.reshape(-1, 1), result.bits)
        for lane in range(table.shape[1])
    }
    centered = bool(found.center.any())
    bits = signed_bits(found.center)
    if centered:
        memories[f"{name}.mem"] = words(found.center[table], bits)
    about = {
        TableMode.DIRECT: "",
        TableMode.WINDOW: ", its ends for the rest",
        TableMode.HALF: ", mirrored for as many more",
    }
    return Binding(
        "hg_table",
        {
            "LANES": table.shape[1],
            "FOLDS": len(table),
            "IN_W": source.bits,
            "IN_SIGNED": int(source.signed),
            "OUT_W": result.bits,
            "MODE": int(found.mode),
            "ADDR_W": found.bits,
            "CENTERED": int(centered),
            "C_W": bits,
            "EVEN": int(found.even),
            "SUM": Bits(result.bits, found.total),
            "FILE": name,
        },
        f"a table of {len(found.entries)} codes a channel{about[found.mode]}",
        memories,
    )
