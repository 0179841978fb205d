"""Parts of a quantizer: expected resources of its search, its lookup tables and its arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from hlsgen.dataflow.resources import Cost
from hlsgen.dataflow.units import FloatUnit, Node, RescaleUnit
from hlsgen.numerics.fixed import Array, IntType
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
    unit = node.unit
    if isinstance(unit, RescaleUnit):
        match unit.realization:
            case Thresholds():
                return _thresholds_parts(node, unit, unit.realization, memory)
            case Correct():
                return _correct_parts(node, unit, unit.realization, memory)
            case Table():
                return _table_parts(node, unit, unit.realization, memory)
            case Lines():
                return _lines_parts(node, unit.realization, memory)
            case Shift():
                return _shift_parts(node, unit, unit.realization, block_ram=not factor)
            case LaneShift():
                return _lane_shift_parts(node, unit, unit.realization)
            case LaneTable():
                return _lane_table_parts(node, unit, unit.realization, inputs=4 if factor else 6)
            case _:
                pass
    parts = Parts(choice.name.split()[0], {}, _beat_registers(node))
    if factor and isinstance(unit, RescaleUnit) and isinstance(unit.realization, Scale | FloatScale):
        _scale(parts, unit, unit.realization, node.source.type, memory, factor)
    if first:
        chosen_trial = next(t for t in choice.trials if t.name == choice.name)
        parts.lut["logic"] = parts.ff["logic"] = chosen_trial.lut or 0.0
        if not factor:
            parts.dsp, parts.bram = chosen_trial.dsp, -(-chosen_trial.memory_bits // (18 * 1024))
    return parts


def _beat_registers(node: Node) -> dict[str, float]:
    """Registers of the handshake and of the beats at both ends."""
    return {"control": 8.0, "in": float(node.source.bits), "out": float(node.result.bits)}


def _thresholds_parts(node: Node, unit: RescaleUnit, search: Thresholds, memory: Memory) -> Parts:
    folds, lanes = unit.table.shape
    levels, bits = search.bits, node.source.type.bits
    word_bits = _varying(search, node.source.type)
    parts = Parts("thresholds")
    parts.lut = {"compare": lanes * levels * bits * 0.5, "control": float(2 * levels + folds.bit_length())}
    stages = levels + search.registers(folds)
    parts.ff = {"compare": float(lanes * stages * bits), "control": float(stages * (1 + folds.bit_length()))}
    for level in range(levels):
        for _ in range(lanes):
            parts.hold("steps", memory(folds << level, word_bits))
    return parts


def _correct_parts(node: Node, unit: RescaleUnit, realization: Correct, memory: Memory) -> Parts:
    folds, lanes = unit.table.shape
    logic, _, _ = correct.cost(realization, unit.table[:1], node.source.type, node.result.type)
    parts = Parts("correct", {"logic": logic}, {"logic": logic, **_beat_registers(node)})
    if realization.deep:
        cell_bits = 2 * realization.size + realization.bucket + realization.count_bits + 3
        parts.ff["cells"] = float(cell_bits[unit.table[0]].sum())
    for words, bits in correct.memories(realization, node.result.type.bits) if folds > 1 else ():
        for _ in range(lanes):
            parts.hold("memory", memory(folds * words, bits))
    return parts


def _table_parts(node: Node, unit: RescaleUnit, realization: Table, memory: Memory) -> Parts:
    folds, lanes = unit.table.shape
    logic, _, memory_bits = table_.cost(realization, unit.table, node.source.type, node.result.type)
    parts = Parts("table", {"logic": logic}, {"logic": logic, **_beat_registers(node)})
    if memory_bits:
        for _ in range(lanes):
            parts.hold("memory", memory(folds << realization.bits, node.result.type.bits))
    return parts


def _lines_parts(node: Node, realization: Lines, memory: Memory) -> Parts:
    source, result = node.source, node.result
    logic, dsp, _ = lines.cost(realization, source.lanes, source.type, result.type)
    registers = realization.latency * (result.bits + source.lanes * realization.fraction)
    parts = Parts("lines", {"logic": logic}, {**_beat_registers(node), "logic": float(registers)}, dsp=dsp)
    for _ in range(source.lanes):
        parts.hold("memory", memory(len(realization.values), realization.value_bits + realization.rise_bits))
    return parts


def _shift_parts(node: Node, unit: RescaleUnit, realization: Shift, *, block_ram: bool) -> Parts:
    """block_ram: the memory of the offsets is counted in block RAM of 18 Kbit."""
    lanes, width = node.source.lanes, node.source.type.bits + realization.left + 1
    registered_bits = realization.adds * width + realization.splits * (node.result.type.bits + 1)
    logic, _, memory_bits = shift.cost(realization, unit.table, node.source.type, node.result.type)
    registers = {"control": 8.0, "out": float(node.result.bits + lanes * registered_bits)}
    blocks = -(-memory_bits // (18 * 1024)) if block_ram else 0
    return Parts("shift", {"logic": logic}, registers, bram=blocks)


def _lane_shift_parts(node: Node, unit: RescaleUnit, realization: LaneShift) -> Parts:
    """Registers hold the bits of a lane's own codes, and of its sum if there is a register after it."""
    logic, _, _ = lane_shift.cost(realization, unit.table, node.result.type)
    lanes = realization.take(unit.table[0])
    sums = float(lanes.width.sum()) if realization.adds else 0.0
    registers = {"control": float(realization.latency), "out": sums + _code_bits(lanes.low, lanes.high)}
    return Parts("lane-shift", {"logic": logic}, registers)


def _lane_table_parts(node: Node, unit: RescaleUnit, realization: LaneTable, *, inputs: int) -> Parts:
    """inputs: of a LUT."""
    logic, _, _ = lane_table.cost(realization, unit.table, inputs)
    lanes = realization.take(unit.table[0])
    indices = float(lanes.bits.sum()) if realization.adds else 0.0
    varying = sum(int(np.bitwise_or.reduce(values ^ values[0])).bit_count() for values in lanes.values)
    registers = {"control": float(realization.latency), "out": indices + varying}
    return Parts("lane-table", {"logic": logic}, registers)


def _code_bits(low: Array, high: Array) -> int:
    """Bits that vary in codes from `low` to `high`, int64 (lanes,) each, over all lanes."""
    ends = zip(low.tolist(), high.tolist(), strict=True)
    return sum((a ^ b).bit_length() if a >= 0 else IntType(a, max(b, 0)).bits for a, b in ends)


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
