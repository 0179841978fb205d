"""What is told about a build before it is simulated: layers, rates, a rough estimate of its size."""

from __future__ import annotations

from typing import Any

from hlsgen.artifacts.layer_table import layer_table
from hlsgen.artifacts.manifest import host_steps
from hlsgen.dataflow.folding import DEFAULT_PARALLELISM
from hlsgen.dataflow.workload import works_of
from hlsgen.devices import Device
from hlsgen.driver.compile import Build, network_cost, price_of
from hlsgen.driver.fit import in_kinds
from hlsgen.frontend.runtimes import described

#: Of a network that was not simulated.
ESTIMATED = (
    "too large to be simulated: buffers are sized by counts of beats, which exclude any deadlock; the latency is an "
    "estimate, the interval is that of the slowest unit and may be longer; `hlsgen verify` measures both"
)


def summary(build: Build, clock_mhz: float) -> dict[str, Any]:
    """Layers, host parts, cycles, rates at a clock, the estimate, and what targets say of these."""
    timing = build.timing
    device = build.options.chosen_device
    return {
        "runtime": described(build.model.runtime),
        "layers": layer_table(build.network, timing, price_of(build.options)),
        "host": {"head": host_steps(build.graph, "head"), "tail": host_steps(build.graph, "tail")},
        "cycles": timing.cycles,
        "rate": {
            "clock_mhz": clock_mhz,
            "latency_us": timing.latency / clock_mhz,
            "frames_per_second": clock_mhz * 1e6 / timing.interval,
        },
        "estimate": estimate(build),
        "device": None if device is None else {**device.as_dict(), "estimate": device_estimate(build, device)},
        "notes": [*_ports(build), *_taken(build), *_buffers(build), *build.notes],
    }


def _ports(build: Build) -> list[str]:
    """The words of a frame, where the ports are on a bus."""
    if build.options.bus_width is None:
        return []
    network = build.network
    into, out = (" and ".join(str(x.layout.words) for x in ports) for ports in (network.inputs, network.outputs))
    word = "word" if into == "1" else "words"
    return [f"bus of {network.inputs[0].layout.width} bits: a frame is {into} {word} at the input, {out} at the output"]


def _buffers(build: Build) -> list[str]:
    """That buffers may be larger than they have to be, where the network is too large for a search."""
    if not build.timing.exact:
        return [ESTIMATED]
    share = build.timing.spare
    more = f"{share:.0%} deeper than the pace needs"
    return [f"too large to search for the smallest buffers: they are {more}, latency and interval are exact"] * (
        share > 0
    )


def _taken(build: Build) -> list[str]:
    """What was taken where neither device, budget nor rate says how fast the network is to be."""
    options = build.options
    if options.searches or options.target_cycles or options.folding or not works_of(build.graph):
        return []
    return [
        f"no --device and no rate given: about {DEFAULT_PARALLELISM} multiplications a cycle are taken; --device, --fps or --target-cycles say otherwise"
    ]


def estimate(build: Build) -> dict[str, int]:
    """LUT, registers, block memories of 18 Kbit and DSP blocks (as the target estimates them), and bits of memory."""
    rows = layer_table(build.network, build.timing, price_of(build.options))
    total = network_cost(build)
    tables = sum(next(t.memory_bits for t in c.trials if t.name == c.name) for c in build.network.choices.values())
    return {
        **total.as_dict(),
        "weight_bits": sum(row["weight_bits"] for row in rows), "table_bits": tables,
        "buffer_bits": sum(row["buffer_bits"] for row in rows),
    }  # fmt: skip


def device_estimate(build: Build, device: Device) -> dict[str, int]:
    """Tables, multiplier blocks and block memories of a device's own kinds, and registers."""
    cost = network_cost(build, device.family.counted_as)
    return {**in_kinds(cost, device), "ff": round(cost.ff)}
