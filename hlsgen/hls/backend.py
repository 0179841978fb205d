"""What the HLS target makes of a network: the files of hls/."""

from __future__ import annotations

from hlsgen.dataflow.backend import Emitted, Request
from hlsgen.dataflow.network import Network, Timing
from hlsgen.hls.emit import core_of, emit
from hlsgen.hls.names import identifier


def emit_cpp(network: Network, timing: Timing, request: Request) -> Emitted:
    """The core in C++, its constants, its test bench, and files for tools."""
    core = core_of(network, identifier(request.top), request.title)
    files = emit(core, timing)
    return Emitted(files, {"function": core.top, "sources": [f"hls/{core.top}.cpp"]}, design=core)
