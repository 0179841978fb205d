"""What is told about a build before it is simulated: layers, rates, a rough estimate of its size."""

from __future__ import annotations

from typing import Any

from hlsgen.artifacts.layer_table import layer_table
from hlsgen.artifacts.manifest import host_steps
from hlsgen.driver.compile import Build
from hlsgen.verilog.resource_model import STYLES, network_cost


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
    """LUT, DSP blocks and block memories of 18 Kbit (see `hlsgen.cost`), and bits of memory."""
    options = build.options
    rows = layer_table(build.schedule)
    total = network_cost(
        build.schedule.nodes, build.schedule.choices, dsp=options.prefer == "dsp", style=STYLES[options.weights]
    )
    tables = sum(next(t.memory_bits for t in c.trials if t.name == c.name) for c in build.schedule.choices.values())
    return {
        "lut": round(total.lut), "dsp": total.dsp, "bram18": total.bram,
        "weight_bits": sum(row["weight_bits"] for row in rows), "table_bits": tables,
        "buffer_bits": sum(row["buffer_bits"] for row in rows),
    }  # fmt: skip
