"""Binds the realization Shift to hg_shift, which shifts, rounds and clamps."""

from __future__ import annotations

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize.shift import Shift
from hlsgen.verilog.binding.memory_files import Binding, Bits, signed_bits, words


def bind(found: Shift, table: Array, source: IntType, result: IntType, name: str) -> Binding:
    """The module of a realization. `table` int64 (folds, lanes): the set of each lane in each beat."""
    bits, width = signed_bits(found.offset) if found.adds else 1, result.bits
    file = {f"{name}.mem": words(found.offset[table], bits)} if found.adds else {}
    return Binding(
        "hg_shift",
        {
            "LANES": table.shape[1],
            "FOLDS": len(table),
            "IN_W": source.bits,
            "IN_SIGNED": int(source.signed),
            "LEFT": found.left,
            "B_W": bits,
            "SHIFT": found.shift,
            "MODE": int(found.mode),
            "OUT_W": width,
            "LOW": Bits(width + 1, found.low),
            "HIGH": Bits(width + 1, found.high),
            "ADD": int(found.adds),
            "SPLIT": int(found.splits),
            **({"FILE": f"{name}.mem"} if found.adds else {}),
        },
        f"round((x + offset) / 2^{found.shift - found.left}), {found.mode.name}",
        file,
    )
