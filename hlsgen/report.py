"""What is told about a build before it is simulated: layers, rates, a rough estimate of its size."""

from __future__ import annotations

from typing import Any

from hlsgen.compiler import Build
from hlsgen.emit.layers import layer_table
from hlsgen.emit.project import host_steps
from hlsgen.stages import (
    FloatStage,
    KeyStage,
    MatrixStage,
    Port,
    RescaleStage,
    Stage,
    WidthStage,
    WinnerStage,
)


def summary(build: Build, clock_mhz: float) -> dict[str, Any]:
    """Layers, host parts, cycles, rates at a clock, and the estimate."""
    schedule = build.schedule
    return {
        "layers": layer_table(schedule),
        "host": {"head": host_steps(build.graph, "head"), "tail": host_steps(build.graph, "tail")},
        "cycles": {"latency": schedule.latency, "interval": schedule.interval},
        "rate": {
            "clock_mhz": clock_mhz,
            "latency_us": schedule.latency / clock_mhz,
            "frames_per_second": clock_mhz * 1e6 / schedule.interval,
        },
        "estimate": estimate(build),
    }


def estimate(build: Build) -> dict[str, int]:
    """LUT without DSP blocks (within about a factor of two), and bits of memory."""
    bits = {"weight_bits": 0, "table_bits": 0}
    lut = 0.0
    for stage in build.schedule.stages:
        lut += _lut(stage)
        if isinstance(stage.unit, MatrixStage):
            per = 1 if stage.unit.mode else max(1, int(abs(stage.unit.weight).max()).bit_length() + 1)
            bits["weight_bits"] += stage.unit.weight.size * per
    for choice in build.schedule.choices.values():
        bits["table_bits"] += next(t.memory_bits for t in choice.trials if t.name == choice.name)
        lut += next(t.lut or 0 for t in choice.trials if t.name == choice.name)
    return {"lut": round(lut), **bits}


def _lut(stage: Stage) -> float:
    unit, x, lanes = stage.unit, stage.source.type.bits, stage.source.lanes
    match unit:
        case Port() | WidthStage() | KeyStage():
            return stage.source.bits + stage.result.bits
        case MatrixStage():
            w = 1 if unit.mode else max(1, int(abs(unit.weight).max()).bit_length() + 1)
            multiply = {0: 0.6 * x * w + x + w, 1: 2 * x, 2: 0.6}[unit.mode]
            memory = unit.weight.size * w / 64
            return unit.pe * (unit.simd * multiply + stage.result.type.bits) + memory + unit.simd * x
        case RescaleStage() | FloatStage():
            return 0.0  # counted by its choice
        case WinnerStage():
            return lanes * x * 1.5
        case _:
            return float(stage.source.bits + stage.result.bits)
