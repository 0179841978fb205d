"""Binds the realization FloatScale to hg_scale_f32, which multiplies and rounds as float32 does."""

from __future__ import annotations

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize.float_scale import FloatScale
from hlsgen.verilog.binding.memory_files import Binding, Bits, signed_bits, words
from hlsgen.verilog.binding.scale import joined


def bind(realization: FloatScale, table: Array, source: IntType, result: IntType, name: str) -> Binding:
    """The module of a realization. `table` int64 (folds, lanes): the parameter set of each lane in each beat."""
    folds, lanes = table.shape
    bits, width, left_shift = realization.mantissa_bits, result.bits, int(realization.left.max())
    word_fields = fields(realization)
    (_, offset_bits), (_, zero_bits), (word, place) = word_fields[1], word_fields[3], joined(word_fields)
    style = 0 if realization.dsp else 2 if folds == 1 else 1
    constants = int(words(realization.mantissa[table[:1]], bits), 16) if style == 2 else 0
    return Binding(
        "hg_scale_f32",
        {
            "LANES": lanes,
            "FOLDS": folds,
            "IN_W": source.bits,
            "IN_SIGNED": int(source.signed),
            "OFFSET_W": offset_bits,
            "LEFT": left_shift,
            "U_W": realization.bits,
            "M_W": bits,
            "SHIFT": realization.shift,
            "Z_W": zero_bits,
            "STYLE": style,
            "STAGES": realization.stages,
            "CONSTANTS": Bits(lanes * bits, constants),
            "OUT_W": width,
            "LOW": Bits(width + 1, realization.low),
            "HIGH": Bits(width + 1, realization.high),
            "FILE": f"{name}.mem",
        },
        f"float32 product, {bits}-bit mantissas",
        {f"{name}.mem": words(word[table], place)},
    )


def fields(realization: FloatScale) -> list[tuple[Array, int]]:
    """The fields (values, bits) of one lane in a memory word: mantissa, offset, left shift, zero point."""
    offset_bits, zero_bits = (signed_bits(v) if v.any() else 0 for v in (realization.offset, realization.zero_point))
    left_bits = int(realization.left.max()).bit_length()
    return [
        (realization.mantissa, realization.mantissa_bits),
        (realization.offset, offset_bits),
        (realization.left, left_bits),
        (realization.zero_point, zero_bits),
    ]
