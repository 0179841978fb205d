"""Schedule -> Design: module instances, streams and memory contents. Knows the Verilog library."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from typing_extensions import assert_never

from hlsgen.binding import bind
from hlsgen.binding.words import Parameter, signed_bits, words
from hlsgen.fixed import Array
from hlsgen.rescale.floats import Arithmetic, Compare, RoundToFloat, ToCode, ToFloat
from hlsgen.schedule import Schedule
from hlsgen.stages import (
    TREE_LEVELS,
    FloatStage,
    KeyStage,
    MatrixStage,
    Port,
    RescaleStage,
    Stage,
    Stream,
    WidthStage,
    WinnerStage,
)

_FLOAT_OPS = {"ADD": 0, "MUL": 1, "DIV": 2, "MAX": 3, "MIN": 4}


@dataclass(frozen=True)
class Instance:
    """A library module between streams `source` and `result` (names of streams)."""

    module: str
    name: str
    parameters: dict[str, Parameter]
    source: str
    result: str
    comment: str


@dataclass(frozen=True)
class Wire:
    """A valid/ready stream inside the core."""

    name: str
    width: int


@dataclass(frozen=True)
class Design:
    """Everything that the top level prints, and the memory files. Knows no operators."""

    top: str
    reset: str
    reset_active_low: bool
    title: str
    wires: tuple[Wire, ...]
    instances: tuple[Instance, ...]
    input: Stream
    output: Stream
    memories: dict[str, str]

    @property
    def input_tdata(self) -> int:
        return -(-self.input.bits // 8) * 8

    @property
    def output_tdata(self) -> int:
        return -(-self.output.bits // 8) * 8


def elaborate(schedule: Schedule, top: str, reset_active_low: bool, title: str) -> Design:
    """Binds every stage to a module."""
    memories: dict[str, str] = {}
    # Bare file names are global to an FPGA project: those of another top carry its name.
    prefix = "" if top == "top" else f"{top}_"
    inner = schedule.stages[1:-1]
    wires = [Wire(schedule.stages[0].name, schedule.stages[0].result.bits)]
    wires += [Wire(s.name, s.result.bits) for s in inner]
    instances = []
    source = schedule.stages[0].name
    for stage in inner:
        module, parameters, comment = _bind(stage, memories)
        if "FILE" in parameters:
            parameters["FILE"] = f"{prefix}{parameters['FILE']}"
        instances.append(Instance(module, stage.name, parameters, source, stage.name, comment))
        source = stage.name
    return Design(
        top, "rst_n" if reset_active_low else "rst", reset_active_low, title, tuple(wires), tuple(instances),
        schedule.stages[0].source, schedule.stages[-1].result,
        {f"{prefix}{name}": text for name, text in memories.items()},
    )  # fmt: skip


def _bind(stage: Stage, memories: dict[str, str]) -> tuple[str, dict[str, Parameter], str]:
    unit, name, source, result = stage.unit, stage.name, stage.source, stage.result
    about = f"layer {stage.layer}: " if stage.layer else ""
    signed = int(source.type.signed)
    lanes: dict[str, Parameter] = {"LANES": source.lanes}
    match unit:
        case Port():
            raise AssertionError("ports are not bound")
        case KeyStage():
            return "hg_float_key", lanes, about + "float32 to order key"
        case WidthStage():
            parameters: dict[str, Parameter] = {
                "UNIT": source.type.bits, "IN": source.lanes, "OUT": result.lanes,
            }  # fmt: skip
            return "hg_width", parameters, f"{source.lanes} to {result.lanes} elements a beat"
        case RescaleStage():
            bound = bind(unit.found, unit.table, source.type, result.type, name)
            memories.update(bound.memories)
            return bound.module, bound.parameters, about + bound.about
        case FloatStage():
            return _bind_float(stage, unit, memories, about)
        case MatrixStage():
            bits = 1 if unit.mode else signed_bits(unit.weight)
            memories[f"{name}.mem"] = _weight_memory(unit, bits)
            rows, columns = unit.weight.shape
            kind = {0: f"{bits}-bit weights", 1: "bipolar weights", 2: "bipolar weights, popcount"}[unit.mode]
            return "hg_mvu", {
                "SIMD": unit.simd, "PE": unit.pe, "COL_FOLDS": unit.col_folds, "ROW_FOLDS": unit.row_folds,
                "X_W": source.type.bits, "X_SIGNED": signed, "W_W": bits, "MODE": unit.mode,
                "ACC_W": result.type.bits, "FILE": f"{name}.mem", "EVERY": TREE_LEVELS,
            }, about + f"{rows} x {columns}, {kind}"  # fmt: skip
        case WinnerStage():
            return "hg_argmax", {
                **lanes, "BEATS": unit.beats, "IN_W": source.type.bits, "IN_SIGNED": signed,
                "INDEX_W": result.type.bits,
            }, about + "position of the largest"  # fmt: skip
        case _:
            assert_never(unit)


def _bind_float(
    stage: Stage, unit: FloatStage, memories: dict[str, str], about: str
) -> tuple[str, dict[str, Parameter], str]:
    source, result, file = stage.source, stage.result, f"{stage.name}.mem"
    common: dict[str, Parameter] = {"LANES": source.lanes, "FOLDS": len(unit.table), "FILE": file}
    match unit.unit:
        case Arithmetic(op, value):
            memories[file] = words(_float_bits(value)[unit.table], 32)
            return "hg_f32_unit", {"OP": _FLOAT_OPS[op], **common}, about + f"float32 {op}"
        case RoundToFloat(mode):
            parameters: dict[str, Parameter] = {"MODE": int(mode), "LANES": source.lanes}
            return "hg_f32_round_unit", parameters, about + f"float32 {mode.name}"
        case ToFloat():
            inner = unit.unit
            b_bits = signed_bits(inner.offset)
            m_bits = max(1, int(inner.mantissa.max()).bit_length())
            word = (inner.exponent & 0xFFF).astype(object) << (m_bits + b_bits)
            word = word | (inner.mantissa.astype(object) << b_bits)
            word = word | (inner.offset & ((1 << b_bits) - 1)).astype(object)
            memories[file] = words(word[unit.table], 12 + m_bits + b_bits)
            return "hg_f32_decode", {
                "IN_W": source.type.bits, "IN_SIGNED": int(source.type.signed), "SHIFT": inner.shift,
                "B_W": b_bits, "M_W": m_bits, **common,
            }, about + "integer to float32"  # fmt: skip
        case ToCode():
            code = unit.unit
            word = (_float_bits(code.high).astype(object) << 32) | _float_bits(code.low).astype(object)
            memories[file] = words(word[unit.table], 64)
            return "hg_f32_encode", {
                "MODE": code.mode, "OUT_W": result.type.bits, "OUT_SIGNED": int(result.type.signed), **common,
            }, about + "float32 to code"  # fmt: skip
        case Compare():
            raise AssertionError("a comparison is two stages")
        case _:
            assert_never(unit.unit)


def _float_bits(value: Array) -> Array:
    return np.ascontiguousarray(value, np.float32).view(np.uint32).astype(np.int64)


def _weight_memory(unit: MatrixStage, bits: int) -> str:
    weight = (unit.weight > 0).astype(np.int64) if unit.mode else unit.weight
    folded = weight.reshape(unit.row_folds, unit.pe, unit.col_folds, unit.simd)
    return words(folded.transpose(0, 2, 1, 3).reshape(-1, unit.pe * unit.simd), bits)
