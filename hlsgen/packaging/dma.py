"""A core with memory access: hg_dma and the core in one module, and its registers as a C header."""

from __future__ import annotations

from hlsgen.dataflow.bus import AXI_LITE
from hlsgen.diagnostics import fail
from hlsgen.library import library_text, modules_used, render, scoped
from hlsgen.packaging.core import Core

#: Bits of a word of memory that hg_dma supports.
WIDTHS = (32, 64, 128, 256, 512, 1024)
#: Bytes of addresses of each group of registers, see hg_axil_split.
PAGE = 4096


def dma_files(core: Core) -> dict[str, bytes]:
    """NAME_dma.v with the library modules that it needs, and host/NAME_dma.h. Raises HG040."""
    width = word_bits(core)
    prefix = core.build.design.prefix
    modules = modules_used({"hg_dma", "hg_axil_split", "hg_reset"})
    files = {f"rtl/{prefix}{name}.v": scoped(library_text("rtl", f"{name}.v"), prefix) for name in modules}
    values = {
        "core": core,
        "name": core.name,
        "prefix": prefix,
        "width": width,
        "input": core.inputs[0],
        "output": core.outputs[0],
        "lite": AXI_LITE,
        "address_bits": address_bits(core),
        "groups": [(name, PAGE * place) for place, name in enumerate(core.axi_lite, 1)],
    }
    files[f"rtl/{core.name}_dma.v"] = render("project/dma.v.j2", **values)
    files[f"host/{core.name}_dma.h"] = render("project/dma.h.j2", **values)
    return {path: text.encode() for path, text in files.items()}


def address_bits(core: Core) -> int:
    """Bits of a byte address of the AXI4-Lite port."""
    return max(13, (PAGE * (1 + len(core.axi_lite)) - 1).bit_length())


def word_bits(core: Core) -> int:
    """Bits of a word at both ports of the core. Raises HG040 if hg_dma cannot serve them."""
    if len(core.inputs) > 1 or len(core.outputs) > 1:
        text = f"the core has {len(core.inputs)} input ports and {len(core.outputs)} output ports."
        raise fail("HG040", "--for dma", text, "Supported: one of each. Build without --ports separate.")
    widths = {core.width(f"{port}_tdata") for port in core.streams}
    if len(widths) > 1 or not widths <= set(WIDTHS):
        text = " and ".join(f"{port}_tdata has {core.width(f'{port}_tdata')} bits" for port in core.streams)
        raise fail("HG040", "--for dma", f"{text}.", "Supported: 32, 64 ... 1024 bits. Build with --bus-width 32.")
    return widths.pop()
