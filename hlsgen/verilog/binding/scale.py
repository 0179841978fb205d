"""Binds the realization Scale to hg_scale, which multiplies by an integer, adds, shifts and clamps."""

from __future__ import annotations

import numpy as np

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize.multiplier_cost import low_zeros
from hlsgen.rescale.realize.scale import Scale
from hlsgen.verilog.binding.memory_files import Binding, Bits, signed_bits, words


def bind(found: Scale, table: Array, source: IntType, result: IntType, name: str) -> Binding:
    """The module of a realization. `table` int64 (folds, lanes): the set of each lane in each beat."""
    folds, lanes = table.shape
    bits, width = found.multiplier_bits, result.bits
    symmetric = 0 if found.centre is None else 1 if found.mirrored else 2
    mode = 0 if found.odd is None else 3 if found.odd.min() != found.odd.max() else 2 if found.odd[0] else 1
    zeros, held = low_zeros(*_addends(found)), fields(found, source)
    (_, r_bits), (word, place) = held[1], joined(held)
    style = 0 if found.dsp else 2 if folds == 1 else 1
    constants = int(words(found.multiplier[table[:1]], bits), 16) if style == 2 else 0
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
            "SHIFT": found.shift,
            "MODE": mode,
            "SYMMETRIC": symmetric,
            "STYLE": style,
            "STAGES": found.stages,
            "CONSTANTS": Bits(lanes * bits, constants),
            "OUT_W": width,
            "LOW": Bits(width + 1, found.low),
            "HIGH": Bits(width + 1, found.high),
            "FILE": f"{name}.mem",
        },
        f"{kind}((x * m + r) / 2^{found.shift})",
        {f"{name}.mem": words(word[table], place)},
    )


def fields(found: Scale, source: IntType) -> list[tuple[Array, int]]:
    """What a word of the memory has for a lane (values, bits): multiplier, addend, then what the mode needs."""
    addends = _addends(found)
    zeros = low_zeros(*addends)
    r_bits = max(signed_bits(addend >> zeros) for addend in addends)
    held = [(found.multiplier, found.multiplier_bits), (found.addend >> zeros, r_bits)]
    if found.odd is not None and found.odd.min() != found.odd.max():
        held.append((found.odd, 1))
    if len(addends) > 1 and found.centre is not None:
        held += [(addends[1] >> zeros, r_bits), (found.centre, source.bits + 1)]
    return held


def _addends(found: Scale) -> list[Array]:
    """The addend, and the one below the centre if it is another one."""
    other = found.below is not None and found.centre is not None and not found.mirrored
    return [found.addend, *([found.below] if other and found.below is not None else [])]


def joined(fields: list[tuple[Array, int]]) -> tuple[Array, int]:
    """Words of several fields (values, bits), the first in the low bits, and their width."""
    word, place = np.zeros(len(fields[0][0]), object), 0
    for values, bits in fields:
        word = word | ((values.astype(object) & ((1 << bits) - 1)) << place)
        place += bits
    return word, place
