"""Prints a Design as the files of rtl/: top level, library modules, memories. It knows no operators."""

from __future__ import annotations

from hlsgen.dataflow.bus import AXI_LITE
from hlsgen.dataflow.network import Timing
from hlsgen.library import library_text, licensed, modules_in, modules_used, scoped
from hlsgen.verilog.netlist import Design
from hlsgen.verilog.render import render
from hlsgen.verilog.top_ports import top_ports

#: The module of the port for control and status: without and with a bit that starts a sequence of frames.
CONTROL = ("hg_control", "hg_control_starts")
STREAM_PORTS = ({"hg_reset", "hg_axis_in", "hg_axis_out"}, {"hg_reset", "hg_bus_in", "hg_bus_out"})
PLAIN_PORTS = {"hg_reset", "hg_plain_in", "hg_plain_out"}


def emit(design: Design, timing: Timing) -> dict[str, str]:
    """The text of each file, by relative path."""
    top = render("verilog/top.v.j2", design=design, timing=timing, ports=top_ports(design), lite_ports=AXI_LITE)
    modules = modules_used(
        (PLAIN_PORTS if design.plain else STREAM_PORTS[design.on_bus])
        | ({"hg_axil_weights"} if design.loads else set())
        | ({"hg_keep_in", "hg_keep_out"} if design.keep else set())
        | ({CONTROL[design.starts_by == "register"]} if design.control else set())
        | {name for text in design.modules.values() for name in modules_in(text, design.prefix)}
        | ({i.module for i in design.instances} - set(design.modules))
    )
    texts = {name: scoped(library_text("rtl", f"{name}.v"), design.prefix) for name in modules} | design.modules
    files = {f"rtl/{design.prefix}{name}.v": text for name, text in texts.items()}
    files[f"rtl/{design.top}.v"] = top
    sources = list(files)
    files.update({f"rtl/{name}": text for name, text in design.memories.items()})
    files["files.f"] = "\n".join(sources) + "\n"
    return licensed(files)
