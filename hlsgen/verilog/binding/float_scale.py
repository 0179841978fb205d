"""Binds the realization FloatScale to hg_scale_f32, which multiplies and rounds as float32 does."""

from __future__ import annotations

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize.float_scale import FloatScale
from hlsgen.verilog.binding.memory_files import Binding, Bits, signed_bits, words
from hlsgen.verilog.binding.scale import joined


def bind(found: FloatScale, table: Array, source: IntType, result: IntType, name: str) -> Binding:
    """The module of a realization. `table` int64 (folds, lanes): the set of each lane in each beat."""
    folds, lanes = table.shape
    bits, width, left = found.mantissa_bits, result.bits, int(found.left.max())
    held = fields(found)
    (_, offset_bits), (_, zero_bits), (word, place) = held[1], held[3], joined(held)
    style = 0 if found.dsp else 2 if folds == 1 else 1
    constants = int(words(found.mantissa[table[:1]], bits), 16) if style == 2 else 0
    return Binding(
        "hg_scale_f32",
        {
            "LANES": lanes,
            "FOLDS": folds,
            "IN_W": source.bits,
            "IN_SIGNED": int(source.signed),
            "OFFSET_W": offset_bits,
            "LEFT": left,
            "U_W": found.bits,
            "M_W": bits,
            "SHIFT": found.shift,
            "Z_W": zero_bits,
            "STYLE": style,
            "STAGES": found.stages,
            "CONSTANTS": Bits(lanes * bits, constants),
            "OUT_W": width,
            "LOW": Bits(width + 1, found.low),
            "HIGH": Bits(width + 1, found.high),
            "FILE": f"{name}.mem",
        },
        f"float32 product, {bits}-bit mantissas",
        {f"{name}.mem": words(word[table], place)},
    )


def fields(found: FloatScale) -> list[tuple[Array, int]]:
    """What a word of the memory has for a lane (values, bits): mantissa, offset, shift to the left, zero point."""
    offset_bits, zero_bits = (signed_bits(v) if v.any() else 0 for v in (found.offset, found.zero_point))
    left_bits = int(found.left.max()).bit_length()
    return [
        (found.mantissa, found.mantissa_bits),
        (found.offset, offset_bits),
        (found.left, left_bits),
        (found.zero_point, zero_bits),
    ]
