"""Binds the units that normalize vectors to hg_norm_moments, hg_norm_root and hg_norm_scale."""

from __future__ import annotations

from hlsgen.dataflow.norm_units import NormMoments, NormRoot, NormScale, RowCodes, root_bits
from hlsgen.dataflow.units import Stream
from hlsgen.numerics.fixed import IntType
from hlsgen.verilog.binding.memory_files import Binding, Bits, Parameter


def bind_moments(unit: NormMoments, source: Stream) -> Binding:
    parameters = _integers(unit.rows, unit.beats, source)
    parameters |= {"CENTERED": int(unit.rows.centered), "S_W": unit.rows.sum_bits, "M_W": unit.moment_bits}
    statistic = "variance" if unit.rows.centered else "mean square"
    return Binding(
        "hg_norm_moments", parameters | {"EVERY": unit.adders_per_stage}, f"{statistic} of {unit.rows.length} elements"
    )


def bind_root(unit: NormRoot) -> Binding:
    constants, bits = unit.constants, root_bits(unit)
    return Binding(
        "hg_norm_root",
        {
            "M_W": unit.moment_bits,
            "S_W": unit.sum_bits,
            "E_W": constants.step_bits,
            "W_W": bits,
            "STEPS": constants.steps,
            "FACTOR": Bits(bits, constants.factor),
            "ADDEND": Bits(bits, constants.addend),
            "START": Bits(bits, constants.start),
            "WAYS": unit.rows_in_flight,
            "GAP": unit.gap,
        },
        f"1 / sqrt, {unit.roots} at a time",
    )


def bind_scale(unit: NormScale, source: Stream) -> Binding:
    constants, parameters = unit.constants, _integers(unit.rows, unit.beats, source)
    parameters |= {
        "S_W": unit.rows.sum_bits,
        "E_W": constants.step_bits,
        "A_W": unit.element_bits,
        "BIAS": 127 - constants.exponent,
    }
    return Binding("hg_norm_scale", parameters, "elements times 1 / sqrt")


def _integers(rows: RowCodes, beats: int, source: Stream) -> dict[str, Parameter]:
    lo, hi = rows.ends
    bits = IntType(min(-1, lo), max(0, hi)).bits
    return {
        "LANES": source.lanes,
        "BEATS": beats,
        "X_W": source.type.bits,
        "X_SIGNED": int(source.type.signed),
        "SHIFT": rows.shift,
        "Q_W": bits,
        "OFFSET": Bits(bits, rows.offset & ((1 << bits) - 1)),
    }
