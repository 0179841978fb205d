"""Binds the realization Shift to hg_shift, which shifts, rounds and clamps."""

from __future__ import annotations

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize.shift import Shift
from hlsgen.verilog.binding.memory_files import Binding, Bits, signed_bits, words


def bind(realization: Shift, table: Array, source: IntType, result: IntType, name: str) -> Binding:
    """The module of a realization. `table` int64 (folds, lanes): the parameter set of each lane in each beat."""
    bits, width = signed_bits(realization.offset) if realization.adds else 1, result.bits
    file = {f"{name}.mem": words(realization.offset[table], bits)} if realization.adds else {}
    return Binding(
        "hg_shift",
        {
            "LANES": table.shape[1],
            "FOLDS": len(table),
            "IN_W": source.bits,
            "IN_SIGNED": int(source.signed),
            "LEFT": realization.left,
            "B_W": bits,
            "SHIFT": realization.shift,
            "MODE": int(realization.mode),
            "OUT_W": width,
            "LOW": Bits(width + 1, realization.low),
            "HIGH": Bits(width + 1, realization.high),
            "ADD": int(realization.adds),
            "SPLIT": int(realization.splits),
            **({"FILE": f"{name}.mem"} if realization.adds else {}),
        },
        f"round((x + offset) / 2^{realization.shift - realization.left}), {realization.mode.name.replace('_', ' ')}",
        file,
    )
