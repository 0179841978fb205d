"""Units that compute element by element: quantizers, float32 steps, and two operands joined."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from typing_extensions import assert_never

from hlsgen.dataflow.units import (
    FloatKeyUnit,
    FloatUnit,
    JoinStreams,
    NeuronUnit,
    Node,
    RescaleUnit,
)
from hlsgen.ir import BinaryKind
from hlsgen.numerics.fixed import Array
from hlsgen.rescale.realize import neuron_table
from hlsgen.rescale.realize.float_ops import Arithmetic, FloatCompare, RoundToFloat, ToCode, ToFloat
from hlsgen.rescale.realize.thresholds import Thresholds
from hlsgen.verilog.binding import bind, lut_network
from hlsgen.verilog.binding.memory_files import Binding, Bits, Parameter, signed_bits, words
from hlsgen.verilog.parts import Parts
from hlsgen.verilog.units.spec import CostOptions, UnitSpec, beat_registers, cycles, without_style

_FLOAT_OPS = {"ADD": 0, "MUL": 1, "DIV": 2, "MAX": 3, "MIN": 4}
_LATENCY_OF_FLOATS = {"ADD": 7, "MUL": 6, "DIV": 19, "MAX": 2, "MIN": 2}


def _bind_quantizer(node: Node, unit: RescaleUnit) -> Binding:
    binding = bind(unit.realization, unit.table, node.source.type, node.result.type, node.name)
    parameters = dict(binding.parameters)
    if unit.omits_register:
        parameters["OPEN"] = 1
    if unit.inverted_bits:
        parameters["FLIP"] = Bits(node.source.bits, unit.inverted_bits)
    return replace(binding, parameters=parameters)


def _bind_float(node: Node, unit: FloatUnit) -> Binding:
    source, result, file = node.source, node.result, f"{node.name}.mem"
    common: dict[str, Parameter] = {"LANES": source.lanes, "FOLDS": len(unit.table), "FILE": file}
    match unit.unit:
        case Arithmetic(op, value):
            memory = words(_float_bits(value)[unit.table], 32)
            return Binding("hg_f32_unit", {"OP": _FLOAT_OPS[op], **common}, f"float32 {op}", {file: memory})
        case RoundToFloat(mode):
            parameters: dict[str, Parameter] = {"MODE": int(mode), "LANES": source.lanes}
            return Binding("hg_f32_round_unit", parameters, f"float32 {mode.name}")
        case ToFloat():
            inner = unit.unit
            b_bits = signed_bits(inner.offset)
            m_bits = max(1, int(inner.mantissa.max()).bit_length())
            word = (inner.exponent & 0xFFF).astype(object) << (m_bits + b_bits)
            word = word | (inner.mantissa.astype(object) << b_bits)
            word = word | (inner.offset & ((1 << b_bits) - 1)).astype(object)
            return Binding(
                "hg_f32_decode",
                {
                    "IN_W": source.type.bits,
                    "IN_SIGNED": int(source.type.signed),
                    "SHIFT": inner.shift,
                    "B_W": b_bits,
                    "M_W": m_bits,
                    **common,
                },
                "integer to float32",
                {file: words(word[unit.table], 12 + m_bits + b_bits)},
            )
        case ToCode():
            code = unit.unit
            word = (_float_bits(code.high).astype(object) << 32) | _float_bits(code.low).astype(object)
            return Binding(
                "hg_f32_encode",
                {
                    "MODE": code.mode,
                    "OUT_W": result.type.bits,
                    "OUT_SIGNED": int(result.type.signed),
                    **common,
                },
                "float32 to code",
                {file: words(word[unit.table], 64)},
            )
        case FloatCompare():
            raise AssertionError("a float comparison is two units")
        case _:
            assert_never(unit.unit)


def _float_bits(value: Array) -> Array:
    return np.ascontiguousarray(value, np.float32).view(np.uint32).astype(np.int64)


def _bind_join(node: Node, unit: JoinStreams) -> Binding:
    if unit.floats is not None:
        code = {BinaryKind.ADD: 0, BinaryKind.MUL: 1, BinaryKind.SUB: 5}[unit.floats]
        return Binding("hg_f32_join", {"OP": code, "LANES": node.result.lanes}, f"float32 {unit.floats.value}")
    a, b = (stream.type for stream in node.sources)
    if unit.packed:
        sizes: dict[str, Parameter] = {"LANES": node.result.lanes, "A_W": a.bits, "B_W": b.bits}
        return Binding("hg_join_pair", sizes, "both operands side by side")
    types: dict[str, Parameter] = {
        "LANES": node.result.lanes,
        "A_W": a.bits,
        "A_SIGNED": int(a.signed),
        "B_W": b.bits,
        "B_SIGNED": int(b.signed),
        "OUT_W": node.result.type.bits,
    }
    if unit.factors is None:
        zeros: dict[str, Parameter] = {"ZA": unit.zeros[0], "ZB": unit.zeros[1]}
        return Binding("hg_join_product", types | zeros, "product of both operands")
    factors: dict[str, Parameter] = {"FA": unit.factors[0], "FB": unit.factors[1]}
    return Binding("hg_join_sum", types | factors, "weighted sum of both operands")


def _bind_float_key(node: Node, _unit: FloatKeyUnit) -> Binding:
    return Binding("hg_float_key", {"LANES": node.source.lanes}, "float32 to order key")


def _rescale_latency(unit: RescaleUnit) -> int:
    if isinstance(unit.realization, Thresholds):
        return unit.realization.latency(len(unit.table))
    return unit.realization.latency - unit.omits_register


def _float_latency(unit: FloatUnit) -> int:
    match unit.unit:
        case Arithmetic(op):
            return _LATENCY_OF_FLOATS[op]
        case RoundToFloat():
            return 2
        case ToFloat():
            return 8
        case ToCode():
            return 6
        case FloatCompare():
            raise AssertionError("a comparison is two units")
        case _:
            assert_never(unit.unit)


def _join_latency(unit: JoinStreams) -> int:
    if unit.floats is None:
        return 2
    return _LATENCY_OF_FLOATS["MUL" if unit.floats is BinaryKind.MUL else "ADD"]


def _element_parts(node: Node, unit: FloatKeyUnit | FloatUnit | JoinStreams, _options: CostOptions) -> Parts:
    lut = {"data": float(node.source.bits + node.result.bits)}
    return Parts(type(unit).__name__, lut, beat_registers(node))


def _rescale_parts(node: Node, _unit: RescaleUnit, _options: CostOptions) -> Parts:
    """Registers only: the cost of a quantizer's LUTs comes from its choice."""
    return Parts("RescaleUnit", {}, beat_registers(node))


def _bind_neurons(node: Node, unit: NeuronUnit) -> Binding:
    return lut_network.bind(unit.tables.network, f"{node.result.lanes} neurons as lookup tables")


def _neuron_parts(node: Node, unit: NeuronUnit, options: CostOptions) -> Parts:
    lut = neuron_table.cost(unit.tables, 6 if options.family == "xc7" else 4, unit.read)
    registers = node.result.bits if unit.read is None else len(unit.read)
    return Parts("NeuronUnit", {"tables": lut, "control": 2.0}, {"control": 1.0, "out": float(registers)})


FLOAT_KEY = UnitSpec(without_style(_bind_float_key), cycles(1), _element_parts, ready_hops=1)
RESCALE = UnitSpec(without_style(_bind_quantizer), _rescale_latency, _rescale_parts, ready_hops=1)
FLOAT = UnitSpec(without_style(_bind_float), _float_latency, _element_parts, ready_hops=1)
NEURONS = UnitSpec(without_style(_bind_neurons), cycles(1), _neuron_parts, ready_hops=1)
JOIN = UnitSpec(without_style(_bind_join), _join_latency, _element_parts, ready_hops=1)
