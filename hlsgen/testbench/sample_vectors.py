"""input.hex and expected.hex: sample input words of a build, and the expected output words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hlsgen.dataflow.ends import enters
from hlsgen.dataflow.network import CorePort, Network
from hlsgen.interpreter import graph as reference
from hlsgen.interpreter.frame_sequence import in_sequence
from hlsgen.interpreter.frame_states import as_sequence, fresh, starts_of
from hlsgen.numerics.fixed import Array
from hlsgen.testbench.stimuli import stimuli
from hlsgen.testbench.stream_codec import from_bus, pack, to_bus, to_text, to_wire, unpack

SAMPLE_FRAMES = 8

SAMPLE_SEED = 1

#: Largest number of beats in sample vectors.
MAX_SAMPLE_BEATS = 20_000


def sample_codes(network: Network) -> tuple[Array, Array]:
    """Codes int64 (frames, *shape) of a few frames: input codes, and the output codes of the reference."""
    beats = max(port.layout.words for port in (*network.inputs, *network.outputs))
    frames = max(2, min(SAMPLE_FRAMES, MAX_SAMPLE_BEATS // beats))
    codes = stimuli(network, frames, SAMPLE_SEED)[:frames]
    codes = as_sequence(network.graph, in_sequence(network.graph, codes), starts_of(None, frames))
    return codes, reference.run_output(network.graph, codes)


def sample_vectors(network: Network, inputs: Array, outputs: Array) -> dict[str, str]:
    """Texts of input.hex and expected.hex for these codes, or of one file for each of several ports."""
    return {
        **{f"input{port.label}.hex": to_text(port_words(port, inputs)) for port in network.inputs},
        **{f"expected{port.label}.hex": to_text(port_words(port, outputs)) for port in network.outputs},
        **starts_text(network, inputs),
    }


def starts_text(network: Network, codes: Array) -> dict[str, str]:
    """Text of starts.hex: for each frame of these codes, 1 if its states are the initial ones. Nothing without
    states."""
    flags = fresh(network.graph, codes)
    return {"starts.hex": "".join(f"{int(flag)}\n" for flag in flags)} if network.graph.states else {}


def port_words(port: CorePort, codes: Array) -> Array:
    """Words of a port for codes of the graph's input or output, uint8 (words, bytes)."""
    wire = to_wire(port.part(codes), port.value.encoding) if enters(port.node) else port.part(codes)
    return to_bus(pack(wire, port.order, port.stream), port.layout)


def stream_words(network: Network, codes: Array) -> tuple[dict[str, Array], dict[str, Array]]:
    """Words of every input port for these codes, and expected words of every monitored stream and output port."""
    graph = network.graph
    results = reference.run_layers(graph, codes)
    words = {
        node.name: pack(
            to_wire(results[node.position], graph.layers[node.position].result.encoding),
            network.orders[node.position + 1],
            node.result,
        )
        for node in network.nodes
        if node.position >= 0
    }
    words |= {port.name: port_words(port, results[-1] if results else codes) for port in network.outputs}
    return {port.name: port_words(port, codes) for port in network.inputs}, words


def output_codes(network: Network, words: Sequence[Array]) -> Array:
    """Codes of the graph's output, int64 (frames, *shape), from the words of every output port."""
    parts = []
    for port, words_of_port in zip(network.outputs, words, strict=True):
        parts.append(unpack(from_bus(words_of_port, port.layout), port.order, port.stream, port.value.shape))
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)
