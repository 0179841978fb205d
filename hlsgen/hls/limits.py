"""Limits of Vitis HLS that a core must keep: bits of a stream's beats, and bits of an array's words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from hlsgen.dataflow.units import ConvUnit, GroupedMatVec, MatVec, Node
from hlsgen.diagnostics import Diagnostic, HlsgenError
from hlsgen.hls.process import Rom

#: Most bits of an element of an hls::stream, and of a word of an AXI4-Stream port.
STREAM_BITS = 4096
#: Most bits of a word of an array that ARRAY_RESHAPE widens.
ARRAY_WORD_BITS = 65536
_HINT = "Build with a higher --target-cycles, which computes fewer elements at once, or with --target verilog."


def check_limits(nodes: Iterable[Node], weights: Iterable[tuple[Node, Rom]]) -> None:
    """Raises HG040 for every beat and every word of weights that is too wide. `weights`: those read word by word."""
    problems = [*_wide_beats(nodes), *_wide_words(weights)]
    if problems:
        raise HlsgenError(problems)


def _wide_beats(nodes: Iterable[Node]) -> Iterator[Diagnostic]:
    for node in nodes:
        if node.outputs and node.result.bits > STREAM_BITS:
            text = f"beats of {node.result.bits} bits at its output. Streams of Vitis HLS have at most {STREAM_BITS}."
            yield Diagnostic("HG040", node.layer or node.name, text, _HINT)


def _wide_words(weights: Iterable[tuple[Node, Rom]]) -> Iterator[Diagnostic]:
    for node, table in weights:
        if not isinstance(node.unit, MatVec | ConvUnit | GroupedMatVec) or table.type is None:
            continue
        bits = math.prod(table.values.shape[1:]) * table.type.bits
        if bits > ARRAY_WORD_BITS:
            text = f"words of {bits} bits of weights. Arrays of Vitis HLS have at most {ARRAY_WORD_BITS}."
            yield Diagnostic("HG040", node.layer or node.name, text, _HINT)
