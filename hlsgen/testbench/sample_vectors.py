"""input.hex and expected.hex: some input words of a build, and the output words that a simulation must show."""

from __future__ import annotations

from hlsgen.dataflow.network import Network
from hlsgen.interpreter import graph as reference
from hlsgen.numerics.fixed import Array
from hlsgen.testbench.stimuli import stimuli
from hlsgen.testbench.stream_codec import pack, to_bus, to_text, to_wire

SAMPLE_FRAMES = 8

SAMPLE_SEED = 1

#: Most beats of sample vectors.
MAX_SAMPLE_BEATS = 20_000


def sample_codes(network: Network) -> tuple[Array, Array]:
    """Codes int64 of a few frames: (frames, *shape) at the input, and what the reference gives at the output."""
    beats = max(layout.words for layout in network.layouts)
    frames = max(2, min(SAMPLE_FRAMES, MAX_SAMPLE_BEATS // beats))
    codes = stimuli(network, frames, SAMPLE_SEED)[:frames]
    return codes, reference.run_output(network.graph, codes)


def sample_vectors(network: Network, inputs: Array, outputs: Array) -> dict[str, str]:
    """input.hex and expected.hex of these codes."""
    words = _packed_input(network, inputs), _packed_output(network, outputs)
    return dict(zip(("input.hex", "expected.hex"), map(to_text, words), strict=True))


def _packed_input(network: Network, codes: Array) -> Array:
    beats = pack(to_wire(codes, network.graph.input.encoding), network.orders[0], network.input)
    return to_bus(beats, network.layouts[0])


def _packed_output(network: Network, codes: Array) -> Array:
    return to_bus(pack(codes, network.orders[-1], network.output), network.layouts[1])


def vector_words(network: Network, codes: Array) -> tuple[Array, dict[str, Array]]:
    """Input words, and the expected words of every monitored stream and of the output."""
    graph = network.graph
    outputs = reference.run_layers(graph, codes)
    words = {
        node.name: pack(
            to_wire(outputs[node.position], graph.layers[node.position].result.encoding),
            network.orders[node.position + 1],
            node.result,
        )
        for node in network.nodes
        if node.position >= 0
    }
    words[network.nodes[-1].name] = _packed_output(network, outputs[-1] if outputs else codes)
    return _packed_input(network, codes), words
