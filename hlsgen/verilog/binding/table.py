"""Binds the realization Table to hg_table, which looks up the code of an input in a memory."""

from __future__ import annotations

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize.table import Table, TableMode
from hlsgen.verilog.binding.memory_files import Binding, Bits, signed_bits, words


def bind(realization: Table, table: Array, source: IntType, result: IntType, name: str) -> Binding:
    """The module of a realization. `table` int64 (folds, lanes): the parameter set of each lane in each beat."""
    memories = {
        f"{name}_{lane:04d}.mem": words(realization.entries[:, table[:, lane]].T.reshape(-1, 1), result.bits)
        for lane in range(table.shape[1])
    }
    bits = signed_bits(realization.center) if realization.center.any() else 0
    if bits:
        memories[f"{name}.mem"] = words(realization.center[table], bits)
    outside = {
        TableMode.DIRECT: "",
        TableMode.WINDOW: ", clamped at both ends",
        TableMode.HALF: ", mirrored",
    }
    return Binding(
        "hg_table",
        {
            "LANES": table.shape[1],
            "FOLDS": len(table),
            "IN_W": source.bits,
            "IN_SIGNED": int(source.signed),
            "OUT_W": result.bits,
            "MODE": int(realization.mode) + realization.even,
            "ADDR_W": realization.bits,
            "C_W": bits,
            "SUM": Bits(result.bits, realization.total),
            "FILE": name,
        },
        f"lookup table of {len(realization.entries)} codes per channel{outside[realization.mode]}",
        memories,
    )
