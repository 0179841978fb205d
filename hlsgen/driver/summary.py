"""Summarizes a build before simulation: layers, rates, estimated resources."""

from __future__ import annotations

from typing import Any

from hlsgen.artifacts.layer_table import layer_table
from hlsgen.artifacts.manifest import host_steps
from hlsgen.dataflow.folding import DEFAULT_PARALLELISM
from hlsgen.dataflow.workload import works_of
from hlsgen.driver.compile import Build, device_estimate, estimator_of
from hlsgen.frontend.runtimes import described, version_note
from hlsgen.ir import Convolution, Linear

#: Note for a network that was not simulated.
ESTIMATED = (
    "too large to be simulated: buffers are sized by counts of beats, which exclude any deadlock; the latency is an "
    "estimate, the interval is the interval of the slowest unit and may be longer; `hlsgen verify` measures both"
)


def summary(build: Build, clock_mhz: float) -> dict[str, Any]:
    """Layers, host steps, cycles, rates at a clock, estimated resources, and notes of the targets, for --json."""
    timing = build.timing
    device = build.options.chosen_device
    return {
        "runtime": described(build.model.runtime),
        "layers": layer_table(build.network, timing, estimator_of(build.options)),
        "host": {"head": host_steps(build.graph, "head"), "tail": host_steps(build.graph, "tail")},
        "cycles": timing.cycles,
        "rate": {
            "clock_mhz": clock_mhz,
            "latency_us": timing.latency / clock_mhz,
            "frames_per_second": clock_mhz * 1e6 / timing.interval,
        },
        "estimate": estimate(build),
        "device": None if device is None else device.as_dict(),
        "notes": [
            *_ports(build),
            *_default_rate(build),
            *_left_out(build),
            *_buffers(build),
            *_version(build),
            *build.notes,
        ],
    }


def _ports(build: Build) -> list[str]:
    """A note on the words of a frame, if the ports have a bus width."""
    if build.options.bus_width is None:
        return []
    network = build.network
    input_words, output_words = (
        " and ".join(str(port.layout.words) for port in ports) for ports in (network.inputs, network.outputs)
    )
    word = "word" if input_words == "1" else "words"
    return [
        f"bus of {network.inputs[0].layout.width} bits: a frame is {input_words} {word} at the input, "
        f"{output_words} at the output"
    ]


def _left_out(build: Build) -> list[str]:
    """A note on the channels that the hardware does not compute, layer by layer."""
    graph = build.network.graph
    counts = [
        f"{len(removed[-1])} of the {len(removed[-1]) + len(layer.weight)} channels of {layer.name}"
        for layer, removed in zip(graph.layers, graph.removed[1:], strict=False)
        if isinstance(layer, Linear | Convolution) and removed[-1]
    ]
    return [f"left out, since they are constant or nothing uses them: {', '.join(counts)}"] if counts else []


def _version(build: Build) -> list[str]:
    """A note if another version of the runtime is installed than the build states."""
    note = version_note(build.model.runtime)
    return [note] if note else []


def _buffers(build: Build) -> list[str]:
    """A note that buffers may be larger than needed, if the network is too large for a search."""
    if not build.timing.exact:
        return [ESTIMATED]
    share = build.timing.spare
    excess = f"{share:.0%} deeper than the rate needs"
    return [f"too large to search for the smallest buffers: they are {excess}, latency and interval are exact"] * (
        share > 0
    )


def _default_rate(build: Build) -> list[str]:
    """A note on the default rate, if neither device, budget nor rate is given."""
    options = build.options
    if options.searches or options.cycles or options.folding or not works_of(build.graph):
        return []
    return [
        f"no --device and no rate given: the default is about {DEFAULT_PARALLELISM} multiplications a cycle; "
        "--device, --fps or --target-cycles set the rate"
    ]


def estimate(build: Build) -> dict[str, int]:
    """Estimated LUT, registers, block RAM and DSP blocks of the chosen device, and bits of memory by use."""
    rows = layer_table(build.network, build.timing, estimator_of(build.options))
    tables = sum(next(t.memory_bits for t in c.trials if t.name == c.name) for c in build.network.choices.values())
    return {
        **device_estimate(build, build.options.chosen_device),
        "weight_bits": sum(row["weight_bits"] for row in rows),
        "table_bits": tables,
        "buffer_bits": sum(row["buffer_bits"] for row in rows),
    }
