"""Parts of a quantizer: expected resources of its search, its lookup tables and its arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from hlsgen.dataflow.resources import Cost
from hlsgen.dataflow.units import FloatUnit, Node, RescaleUnit
from hlsgen.numerics.fixed import IntType
from hlsgen.rescale import Choice, Correct, FloatScale, LaneShift, LaneTable, Lines, Scale, Shift, Table, Thresholds
from hlsgen.rescale.realize import correct, lane_shift, lane_table, lines, shift
from hlsgen.rescale.realize import table as table_
from hlsgen.verilog.binding import float_scale, scale
from hlsgen.verilog.parts import Parts

#: Words and bits of a word of a memory of constants -> its cost.
Memory = Callable[[int, int], Cost]


def is_quantizer(node: Node, choices: Mapping[str, Choice]) -> bool:
    return node.layer in choices and isinstance(node.unit, RescaleUnit | FloatUnit)


def quantizer_parts(node: Node, choice: Choice, first: bool, memory: Memory, *, factor: int) -> Parts:
    """Parts of a node that implements `choice`; only the `first` of its nodes has a price for the whole realization.

    factor: bits of the factors of DSP blocks of a family with memories and blocks of its own, which that price then
    excludes; 0: Xilinx 7 series.
    """
    unit, source, result = node.unit, node.source, node.result
    ff = {"control": 8.0, "in": float(source.bits), "out": float(result.bits)}
    realization = unit.realization if isinstance(unit, RescaleUnit) else None
    if isinstance(unit, RescaleUnit) and isinstance(realization, Thresholds):
        folds, lanes = unit.table.shape
        levels, bits = realization.bits, source.type.bits
        word_bits = _varying(realization, source.type)
        parts = Parts("thresholds")
        parts.lut = {"compare": lanes * levels * bits * 0.5, "control": float(2 * levels + folds.bit_length())}
        cycles = levels + realization.registers(folds)
        parts.ff = {"compare": float(lanes * cycles * bits), "control": float(cycles * (1 + folds.bit_length()))}
        for level in range(levels):
            for _ in range(lanes):
                parts.hold("steps", memory(folds << level, word_bits))
        return parts
    if isinstance(unit, RescaleUnit) and isinstance(realization, Correct):
        folds, lanes = unit.table.shape
        logic, _, _ = correct.cost(realization, unit.table[:1], source.type, result.type)
        parts = Parts("correct", {"logic": logic}, {"logic": logic, **ff})
        if realization.deep:
            cell_bits = 2 * realization.size + realization.bucket + realization.count_bits + 3
            parts.ff["cells"] = float(cell_bits[unit.table[0]].sum())
        for words, bits in correct.memories(realization, result.type.bits) if folds > 1 else ():
            for _ in range(lanes):
                parts.hold("memory", memory(folds * words, bits))
        return parts
    if isinstance(unit, RescaleUnit) and isinstance(realization, Table):
        folds, lanes = unit.table.shape
        logic, _, memory_bits = table_.cost(realization, unit.table, source.type, result.type)
        parts = Parts("table", {"logic": logic}, {"logic": logic, **ff})
        if memory_bits:
            for _ in range(lanes):
                parts.hold("memory", memory(folds << realization.bits, result.type.bits))
        return parts
    if isinstance(unit, RescaleUnit) and isinstance(realization, Lines):
        logic, dsp, _ = lines.cost(realization, source.lanes, source.type, result.type)
        registers = realization.latency * (result.bits + source.lanes * realization.fraction)
        parts = Parts("lines", {"logic": logic}, {**ff, "logic": float(registers)})
        parts.dsp = dsp
        for _ in range(source.lanes):
            parts.hold("memory", memory(len(realization.values), realization.value_bits + realization.rise_bits))
        return parts
    if isinstance(unit, RescaleUnit) and isinstance(realization, Shift):
        lanes, width = source.lanes, source.type.bits + realization.left + 1
        registered_bits = realization.adds * width + realization.splits * (result.type.bits + 1)
        logic, _, memory_bits = shift.cost(realization, unit.table, source.type, result.type)
        parts = Parts("shift", {"logic": logic}, {"control": 8.0, "out": float(result.bits + lanes * registered_bits)})
        if not factor:
            parts.bram = -(-memory_bits // (18 * 1024))
        return parts
    if isinstance(unit, RescaleUnit) and isinstance(realization, LaneShift):
        logic, _, _ = lane_shift.cost(realization, unit.table, result.type)
        sums = float(realization.take(unit.table[0]).width.sum()) if realization.adds else 0.0
        # The factors of `shift` fit its logic, too.
        return Parts("shift", {"logic": logic}, {"control": 8.0, "out": float(result.bits) + sums})
    if isinstance(unit, RescaleUnit) and isinstance(realization, LaneTable):
        logic, _, _ = lane_table.cost(realization, unit.table, 4 if factor else 6)
        indices = float(realization.take(unit.table[0]).bits.sum()) if realization.adds else 0.0
        return Parts("lane-table", {"logic": logic}, {"control": 8.0, "out": float(result.bits) + indices})
    parts = Parts(choice.name.split()[0], {}, ff)
    if factor and isinstance(unit, RescaleUnit) and isinstance(realization, Scale | FloatScale):
        _scale(parts, unit, realization, source.type, memory, factor)
    if first:
        chosen_trial = next(t for t in choice.trials if t.name == choice.name)
        parts.lut["logic"] = parts.ff["logic"] = chosen_trial.lut or 0.0
        if not factor:
            parts.dsp, parts.bram = chosen_trial.dsp, -(-chosen_trial.memory_bits // (18 * 1024))
    return parts


def _varying(thresholds: Thresholds, source: IntType) -> int:
    """Bits that differ between the words of a search tree; tools remove the other bits from memories."""
    width = source.bits + (1 if source.signed else 2)
    values = thresholds.table & ((1 << width) - 1)
    if not values.size:
        return 0
    varies = int(np.bitwise_or.reduce(values ^ values.flat[0], axis=None))
    # Thresholds that are never reached fill the tree.
    if len(thresholds.table) + 1 < 1 << thresholds.bits:
        varies |= int(values.flat[0]) ^ ((1 << (width - 1)) - 1)
    return varies.bit_count() + (bool(thresholds.falling.any()) and not thresholds.falling.all())


def _scale(
    parts: Parts, unit: RescaleUnit, realization: Scale | FloatScale, source: IntType, memory: Memory, factor: int
) -> None:
    """Adds the memory of a scale, and DSP blocks whose factors have `factor` bits."""
    folds, lanes = unit.table.shape
    if isinstance(realization, Scale):
        word_fields, factors = (
            scale.fields(realization, source),
            (source.bits + (not source.signed), realization.multiplier_bits),
        )
    else:
        word_fields, factors = float_scale.fields(realization), (realization.bits, realization.mantissa_bits)
    if folds > 1:
        parts.hold("memory", memory(folds, lanes * sum(bits for _, bits in word_fields)))
    if realization.dsp:
        parts.dsp += lanes * math.prod(-(-bits // factor) for bits in factors)
