"""What the HLS target makes of a network: the files of hls/."""

from __future__ import annotations

import hashlib
from typing import Any

from hlsgen.dataflow.backend import Emitted, Request
from hlsgen.dataflow.layer_statements import FORMAT, certificate_text, layer_statements
from hlsgen.dataflow.network import Network, Timing
from hlsgen.dataflow.units import Node, WeightedUnit
from hlsgen.dataflow.weighted_units import weight_bits
from hlsgen.diagnostics import Collector
from hlsgen.hls.core import Core, core_of
from hlsgen.hls.emit import emit

#: What cycles and estimate of a build say of its C++.
NOTE = (
    "C++: cycles and estimate are planned, as of Verilog; the HLS tool schedules it itself. Not synthesized by Vitis."
)

#: Bits of a stream's beat and of a word of an array, at most: what Vitis HLS has.
MOST_STREAM_BITS, MOST_WORD_BITS = 4096, 65_536


def check_widths(core: Core) -> None:
    """Raises HG040 for every layer with a stream or an array that HLS tools do not have."""
    problems, hint = Collector(), "Allow more cycles (--target-cycles), or less PE and SIMD (--folding)."
    for part in core.parts:
        where = part.node.layer or part.name
        beats = max(stream.bits for stream in (*part.node.sources, part.node.result))
        if beats > MOST_STREAM_BITS:
            text = f"{where} has beats of {beats} bits; streams of --target hls have at most {MOST_STREAM_BITS}."
            problems.error("HG040", "--target-cycles", text, hint)
        unit = part.node.unit
        words = unit.lanes * weight_bits(unit) if isinstance(unit, WeightedUnit) else 0
        if words > MOST_WORD_BITS:
            text = f"{where} has words of {words} bits; arrays of --target hls have at most {MOST_WORD_BITS}."
            problems.error("HG040", "--target-cycles", text, hint)
    problems.finish()


def emit_cpp(network: Network, timing: Timing, request: Request) -> Emitted:
    """The core in C++, its constants, its test bench, files for tools, and the certificate."""
    del timing  # the HLS tool has a schedule of its own
    core = core_of(network, request.top, request.title)
    check_widths(core)
    files = emit(core)
    files["hls/certificate.json"] = _certificate(core, network, dict(request.model), files)
    return Emitted(files, {"function": core.top, "sources": [f"hls/{core.top}.cpp"]}, design=core, note=NOTE)


def _certificate(core: Core, network: Network, model: dict[str, str], files: dict[str, str]) -> str:
    """What each layer computes, by which processes, with hashes of the files that a compiler reads for the core."""
    parts = {part.node.name: part for part in core.parts}

    def process(node: Node) -> dict[str, Any] | None:
        part = parts.get(node.name)
        if part is None:
            return None
        arguments = dict(part.call.arguments)
        return {
            "instance": part.name,
            "module": part.call.function,
            "parameters": arguments,
            "memories": list(part.roms),
        }

    own = (f"hls/{core.top}.cpp", f"hls/{core.top}.hpp", "hls/weights.hpp")
    found = {
        "certificate": FORMAT,
        "model": model,
        "cpp": {
            name: hashlib.sha256(text.encode()).hexdigest()
            for name, text in sorted(files.items())
            if name in own or name.startswith("hls/hg/")
        },
        "layers": list(layer_statements(network, process)),
    }
    return certificate_text(found) + "\n"
