"""Binds the realization Scale to hg_scale, which multiplies by an integer, adds, shifts and clamps."""

from __future__ import annotations

import numpy as np

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize.multiplier_cost import low_zeros
from hlsgen.rescale.realize.scale import Scale
from hlsgen.verilog.binding.memory_files import Binding, Bits, signed_bits, words


def bind(realization: Scale, table: Array, source: IntType, result: IntType, name: str) -> Binding:
    """The module of a realization. `table` int64 (folds, lanes): the parameter set of each lane in each beat."""
    folds, lanes = table.shape
    bits, width = realization.multiplier_bits, result.bits
    symmetric = 0 if realization.centre is None else 1 if realization.mirrored else 2
    mode = (
        0
        if realization.odd is None
        else 3
        if realization.odd.min() != realization.odd.max()
        else 2
        if realization.odd[0]
        else 1
    )
    zeros, word_fields = low_zeros(*_addends(realization)), fields(realization, source)
    (_, r_bits), (word, place) = word_fields[1], joined(word_fields)
    style = 0 if realization.dsp else 2 if folds == 1 else 1
    constants = int(words(realization.multiplier[table[:1]], bits), 16) if style == 2 else 0
    kind = "floor" if mode == 0 else "nearest"
    return Binding(
        "hg_scale",
        {
            "LANES": lanes,
            "FOLDS": folds,
            "IN_W": source.bits,
            "IN_SIGNED": int(source.signed),
            "M_W": bits,
            "R_W": r_bits,
            "R_LSB": zeros,
            "SHIFT": realization.shift,
            "MODE": mode,
            "SYMMETRIC": symmetric,
            "STYLE": style,
            "STAGES": realization.stages,
            "CONSTANTS": Bits(lanes * bits, constants),
            "OUT_W": width,
            "LOW": Bits(width + 1, realization.low),
            "HIGH": Bits(width + 1, realization.high),
            "FILE": f"{name}.mem",
        },
        f"{kind}((x * m + r) / 2^{realization.shift})",
        {f"{name}.mem": words(word[table], place)},
    )


def fields(realization: Scale, source: IntType) -> list[tuple[Array, int]]:
    """The fields (values, bits) of one lane in a memory word: multiplier, addend, and fields of the mode."""
    addends = _addends(realization)
    zeros = low_zeros(*addends)
    r_bits = max(signed_bits(addend >> zeros) for addend in addends)
    word_fields = [(realization.multiplier, realization.multiplier_bits), (realization.addend >> zeros, r_bits)]
    if realization.odd is not None and realization.odd.min() != realization.odd.max():
        word_fields.append((realization.odd, 1))
    if len(addends) > 1 and realization.centre is not None:
        word_fields += [(addends[1] >> zeros, r_bits), (realization.centre, source.bits + 1)]
    return word_fields


def _addends(realization: Scale) -> list[Array]:
    """The addend, and the addend below the centre if it is different."""
    has_second = realization.below is not None and realization.centre is not None and not realization.mirrored
    return [realization.addend, *([realization.below] if has_second and realization.below is not None else [])]


def joined(fields: list[tuple[Array, int]]) -> tuple[Array, int]:
    """Words of several fields (values, bits), the first in the low bits, and their width."""
    word, place = np.zeros(len(fields[0][0]), object), 0
    for values, bits in fields:
        word = word | ((values.astype(object) & ((1 << bits) - 1)) << place)
        place += bits
    return word, place
