"""Parts of a quantizer: what its search, its tables and its arithmetic let expect."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from hlsgen.dataflow.resources import Cost
from hlsgen.dataflow.units import FloatUnit, Node, RescaleUnit
from hlsgen.numerics.fixed import IntType
from hlsgen.rescale import Choice, Correct, FloatScale, Scale, Shift, Table, Thresholds
from hlsgen.rescale.realize import correct, shift
from hlsgen.rescale.realize import table as table_
from hlsgen.verilog.binding import float_scale, scale
from hlsgen.verilog.parts import Parts

#: Words and bits of a word of a memory of constants -> its cost.
Memory = Callable[[int, int], Cost]


def is_quantizer(node: Node, choices: Mapping[str, Choice]) -> bool:
    return node.layer in choices and isinstance(node.unit, RescaleUnit | FloatUnit)


def quantizer_parts(node: Node, choice: Choice, first: bool, memory: Memory, *, factor: int) -> Parts:
    """Of a node that realizes `choice`; where only the whole realization has a price, the `first` of its nodes has it.

    factor: bits of the factors of multiplier blocks of a family with kinds of its own, for which that price has neither
    memories nor blocks; 0: Xilinx 7 series.
    """
    unit, source, result = node.unit, node.source, node.result
    ff = {"control": 8.0, "in": float(source.bits), "out": float(result.bits)}
    found = unit.realization if isinstance(unit, RescaleUnit) else None
    if isinstance(unit, RescaleUnit) and isinstance(found, Thresholds):
        folds, lanes = unit.table.shape
        levels, bits = found.bits, source.type.bits
        held = _varying(found, source.type)
        parts = Parts("thresholds")
        parts.lut = {"compare": lanes * levels * bits * 0.5, "control": float(2 * levels + folds.bit_length())}
        cycles = levels + found.registers(folds)
        parts.ff = {"compare": float(lanes * cycles * bits), "control": float(cycles * (1 + folds.bit_length()))}
        for level in range(levels):
            for _ in range(lanes):
                parts.hold("steps", memory(folds << level, held))
        return parts
    if isinstance(unit, RescaleUnit) and isinstance(found, Correct):
        folds, lanes = unit.table.shape
        logic, _, _ = correct.cost(found, unit.table[:1], source.type, result.type)
        parts = Parts("correct", {"logic": logic}, {"logic": logic, **ff})
        if found.deep:
            behind = 2 * found.size + found.bucket + found.count_bits + 3
            parts.ff["cells"] = float(behind[unit.table[0]].sum())
        for words, bits in correct.memories(found, result.type.bits) if folds > 1 else ():
            for _ in range(lanes):
                parts.hold("memory", memory(folds * words, bits))
        return parts
    if isinstance(unit, RescaleUnit) and isinstance(found, Table):
        folds, lanes = unit.table.shape
        logic, _, memory_bits = table_.cost(found, unit.table, source.type, result.type)
        parts = Parts("table", {"logic": logic}, {"logic": logic, **ff})
        if memory_bits:
            for _ in range(lanes):
                parts.hold("memory", memory(folds << found.bits, result.type.bits))
        return parts
    if isinstance(unit, RescaleUnit) and isinstance(found, Shift):
        lanes, width = source.lanes, source.type.bits + found.left + 1
        held = found.adds * width + found.splits * (result.type.bits + 1)
        logic, _, memory_bits = shift.cost(found, unit.table, source.type, result.type)
        parts = Parts("shift", {"logic": logic}, {"control": 8.0, "out": float(result.bits + lanes * held)})
        if not factor:
            parts.bram = -(-memory_bits // (18 * 1024))
        return parts
    parts = Parts(choice.name.split()[0], {}, ff)
    if factor and isinstance(unit, RescaleUnit) and isinstance(found, Scale | FloatScale):
        _scale(parts, unit, found, source.type, memory, factor)
    if first:
        taken = next(t for t in choice.trials if t.name == choice.name)
        parts.lut["logic"] = parts.ff["logic"] = taken.lut or 0.0
        if not factor:
            parts.dsp, parts.bram = taken.dsp, -(-taken.memory_bits // (18 * 1024))
    return parts


def _varying(found: Thresholds, source: IntType) -> int:
    """Bits of the words of a search tree that are not the same in all of them, which tools leave out of memories."""
    width = source.bits + (1 if source.signed else 2)
    values = found.table & ((1 << width) - 1)
    if not values.size:
        return 0
    varies = int(np.bitwise_or.reduce(values ^ values.flat[0], axis=None))
    if len(found.table) + 1 < 1 << found.bits:  # thresholds that are never reached fill the tree
        varies |= int(values.flat[0]) ^ ((1 << (width - 1)) - 1)
    return varies.bit_count() + (bool(found.falling.any()) and not found.falling.all())


def _scale(
    parts: Parts, unit: RescaleUnit, found: Scale | FloatScale, source: IntType, memory: Memory, factor: int
) -> None:
    """Adds the memory of a scale, and multiplier blocks whose factors have `factor` bits."""
    folds, lanes = unit.table.shape
    if isinstance(found, Scale):
        held, factors = scale.fields(found, source), (source.bits + (not source.signed), found.multiplier_bits)
    else:
        held, factors = float_scale.fields(found), (found.bits, found.mantissa_bits)
    if folds > 1:
        parts.hold("memory", memory(folds, lanes * sum(bits for _, bits in held)))
    if found.dsp:
        parts.dsp += lanes * math.prod(-(-bits // factor) for bits in factors)
