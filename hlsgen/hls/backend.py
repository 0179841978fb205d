"""Emits the files in hls/: the HLS target."""

from __future__ import annotations

import hashlib
from typing import Any

from hlsgen.dataflow.backend import Emitted, Request
from hlsgen.dataflow.layer_statements import (
    FORMAT,
    certificate_text,
    layer_statements,
    removed_elements,
    state_instances,
)
from hlsgen.dataflow.network import Network, Timing
from hlsgen.dataflow.units import Node
from hlsgen.diagnostics import counted
from hlsgen.hls.core import Core, Loop, Part, core_of
from hlsgen.hls.emit import emit
from hlsgen.hls.limits import check_limits
from hlsgen.hls.process import argument_text
from hlsgen.hls.rates import LoopWork, Prediction, predict

#: Entries of the manifest that are planned for Verilog, also where C++ is the only target.
_PLANNED_FOR_VERILOG = ["cycles", "frames_per_second_per_mhz", "estimate", "layers", "units", "fifos"]


def note(prediction: Prediction) -> str:
    """Line on the cycles and the estimate of a C++ build."""
    return (
        f"C++: a frame every {prediction.cycles} cycles, as {prediction.slowest} needs, and at most"
        f" {counted(prediction.dsp, 'DSP block')}: estimates, not synthesized by Vitis. Latency, cycles and resources"
        " above are planned for Verilog."
    )


def emit_cpp(network: Network, timing: Timing, request: Request) -> Emitted:
    """The core in C++, its constants, its test bench, files for tools, and the certificate."""
    del timing  # the HLS tool makes its own schedule
    core = core_of(network, request.top, request.title, request.starts_by)
    check_limits(network.nodes, ((part.node, table) for part in core.parts for table in part.call.tables.values()))
    files = emit(core)
    files["hls/certificate.json"] = _certificate(core, network, dict(request.model), files)
    prediction = predict(
        [(part.name, part.node) for part in core.calls if isinstance(part, Part)],
        [_work(loop) for loop in core.loops],
    )
    return Emitted(
        files,
        {"function": core.top, "sources": [f"hls/{core.top}.cpp"]},
        design=core,
        note=note(prediction),
        schedule={**prediction.entry, "planned_for_verilog": _PLANNED_FOR_VERILOG},
    )


def _work(loop: Loop) -> LoopWork:
    writers = {channel.name: n for n, part in enumerate(loop.parts) for channel in part.outputs}
    sources = [[writers[channel.name] for channel in part.inputs if channel.name in writers] for part in loop.parts]
    nodes = [part.node for part in loop.parts]
    return LoopWork(loop.name, loop.steps, nodes, sources, sum(state.beats for state in loop.states))


def _certificate(core: Core, network: Network, model: dict[str, str], files: dict[str, str]) -> str:
    """Text of the certificate: function and processes of each layer, and hashes of the files compiled for the core."""
    parts = {part.node.name: part for part in core.parts}

    def process(node: Node) -> dict[str, Any] | None:
        part = parts.get(node.name)
        if part is None:
            return None
        arguments = dict(part.call.arguments) | {
            key: argument_text(value) for group in part.call.shape for key, value in group.items()
        }
        return {
            "instance": part.name,
            "module": part.call.function,
            "parameters": arguments,
            "memories": list(part.roms),
        }

    core_files = (f"hls/{core.top}.cpp", f"hls/{core.top}.hpp", "hls/weights.hpp")
    certificate = {
        "certificate": FORMAT,
        "model": model,
        "cpp": {
            name: hashlib.sha256(text.encode()).hexdigest()
            for name, text in sorted(files.items())
            if name in core_files or name.startswith("hls/hg/")
        },
        **removed_elements(network.graph),
        **({"states": state_instances(network, process)} if network.graph.states else {}),
        "layers": list(layer_statements(network, process)),
    }
    return certificate_text(certificate) + "\n"
