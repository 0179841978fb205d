"""Binds the realization Lines to hg_lines: a product, knots from a memory, the line between two of them."""

from __future__ import annotations

import numpy as np

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize.lines import Lines
from hlsgen.verilog.binding.memory_files import Binding, Bits, words
from hlsgen.verilog.binding.scale import joined


def bind(realization: Lines, table: Array, source: IntType, result: IntType, name: str) -> Binding:
    """The module of a realization. `table` int64 (1, lanes): all lanes have the same function."""
    assert len(table) == 1, "hg_lines has one function"
    word, bits = joined([(realization.values, realization.value_bits), (realization.rises, realization.rise_bits)])
    return Binding(
        "hg_lines",
        {
            "LANES": table.shape[1],
            "IN_W": source.bits,
            "IN_SIGNED": int(source.signed),
            "OUT_W": result.bits,
            "M_W": realization.multiplier_bits,
            "M": Bits(realization.multiplier_bits, realization.multiplier),
            "SHIFT": realization.shift,
            "ADDR_W": realization.bits,
            "FRAC_W": realization.fraction,
            "VALUE_W": realization.value_bits,
            "RISE_W": realization.rise_bits,
            "LEFT": realization.left_shift,
            "RIGHT": realization.right_shift,
            "MIRROR": Bits(result.bits, realization.mirror),
            "STYLE": int(not realization.dsp),
            "M_STAGES": realization.multiplier_stages,
            "STAGES": realization.stages,
            "FILE": f"{name}.mem",
        },
        f"lines between {len(realization.values)} knots",
        {f"{name}.mem": words(np.asarray(word)[:, None], bits)},
    )
