"""Binds the realization Comparators to hg_compare, which compares an input with all thresholds at once."""

from __future__ import annotations

import numpy as np

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize.compare import Comparators, threshold_bits
from hlsgen.verilog.binding.memory_files import Binding, Bits, words


def bind(realization: Comparators, table: Array, source: IntType, result: IntType, name: str) -> Binding:
    """The module of a realization. `table` int64 (folds, lanes): the parameter set of each lane in each beat."""
    bits = threshold_bits(realization, source)
    falling = bool(realization.falling[table].any())
    word = realization.table & ((1 << bits) - 1)
    if falling:
        word = word | (realization.falling.astype(np.int64) << bits)
    steps = len(word)
    # (folds, lanes, steps), the first step of lane 0 in the low bits.
    folded = np.moveaxis(word[:, table], 0, -1).reshape(len(table), -1)
    return Binding(
        "hg_compare",
        {
            "LANES": table.shape[1],
            "FOLDS": len(table),
            "IN_W": source.bits,
            "IN_SIGNED": int(source.signed),
            "STEPS": steps,
            "T_W": bits,
            "OUT_W": result.bits,
            "OFFSET": Bits(result.bits, realization.base),
            "FALLING": int(falling),
            "FILE": f"{name}.mem",
        },
        f"{steps} comparators per channel",
        {f"{name}.mem": words(folded, bits + falling)},
    )
