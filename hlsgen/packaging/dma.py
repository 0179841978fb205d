"""A core with memory access: the core and hg_dma for its ports in one module, and its registers as a C header."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from hlsgen.dataflow.bus import AXI_LITE
from hlsgen.dataflow.network import CorePort
from hlsgen.diagnostics import fail
from hlsgen.library import library_text, modules_used, render, scoped
from hlsgen.packaging.core import Core

#: Bits of a word of memory that hg_dma supports.
WIDTHS = (32, 64, 128, 256, 512, 1024)
#: Bytes of addresses of each group of registers, see hg_axil_split.
PAGE = 4096


@dataclass(frozen=True)
class Channel:
    """An hg_dma: its number, the suffix of its AXI4 port, bits of a word, and the ports that it serves.

    input, output: at least one of them. place: their index among the inputs, or outputs, of the core.
    """

    number: int
    label: str
    width: int
    input: CorePort | None
    output: CorePort | None
    place: int


def dma_files(core: Core) -> dict[str, bytes]:
    """NAME_dma.v with the library modules that it needs, and host/NAME_dma.h. Raises HG040."""
    channels = channels_of(core)
    prefix = core.build.design.prefix
    modules = modules_used({"hg_dma", "hg_axil_split", "hg_reset"})
    files = {f"rtl/{prefix}{name}.v": scoped(library_text("rtl", f"{name}.v"), prefix) for name in modules}
    values = {"core": core, "name": core.name, "prefix": prefix, "lite": AXI_LITE, **dma_values(core, channels)}
    files[f"rtl/{core.name}_dma.v"] = render("project/dma.v.j2", **values)
    files[f"host/{core.name}_dma.h"] = render("project/dma.h.j2", **values)
    return {path: text.encode() for path, text in files.items()}


def dma_values(core: Core, channels: tuple[Channel, ...]) -> dict[str, Any]:
    """Values for templates: the channels, the groups of registers of the core, and how a sequence starts."""
    groups = [(name, PAGE * place) for place, name in enumerate(core.axi_lite, len(channels))]
    return {
        "channels": channels,
        "groups": groups,
        "address_bits": max(13, (PAGE * (len(channels) + len(groups)) - 1).bit_length()),
        "starts": core.build.options.starts_by,
        "word_bytes": max(channel.width for channel in channels) // 8,
    }


def channels_of(core: Core, flow: str = "dma") -> tuple[Channel, ...]:
    """An input and an output port of the same width share a channel. Raises HG040 if hg_dma cannot serve a port."""
    for port in core.streams:
        bits = core.width(f"{port}_tdata")
        if bits not in WIDTHS:
            text = f"{port}_tdata has {bits} bits."
            raise fail("HG040", f"--for {flow}", text, "Supported: 32, 64 ... 1024 bits. Build with --bus-width 32.")
    served: list[tuple[int, CorePort | None, CorePort | None]] = []
    for place, (input_port, output_port) in enumerate(zip_longest(core.inputs, core.outputs)):
        if input_port and output_port and _bits(core, input_port) != _bits(core, output_port):
            served += [(place, input_port, None), (place, None, output_port)]
        else:
            served.append((place, input_port, output_port))
    return tuple(
        Channel(
            number,
            f"_{number}" if len(served) > 1 else "",
            _bits(core, input_port or output_port),
            input_port,
            output_port,
            place,
        )
        for number, (place, input_port, output_port) in enumerate(served)
    )


def _bits(core: Core, port: CorePort | None) -> int:
    return core.width(f"{port.name}_tdata") if port else 0
