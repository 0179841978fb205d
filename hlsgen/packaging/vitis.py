"""A core as a kernel for Vitis: the core and hg_dma_engine for its ports in one module, kernel.xml, script, driver."""

from __future__ import annotations

from dataclasses import dataclass

from hlsgen.dataflow.bus import AXI_LITE
from hlsgen.dataflow.network import CorePort
from hlsgen.diagnostics import fail
from hlsgen.host.text import plain
from hlsgen.library import library_text, modules_used, render, scoped
from hlsgen.packaging.core import Core
from hlsgen.packaging.dma import Channel, channels_of, dma_values

#: Offset of the first argument in the registers of a kernel, bytes of an address there and of a number.
FIRST, ADDRESS_BYTES, NUMBER_BYTES = 0x10, 12, 8


@dataclass(frozen=True)
class Pointer:
    """An argument of the kernel that is an address: its number, the port of the core, and the channel for it."""

    place: int
    port: CorePort
    channel: Channel
    is_input: bool

    @property
    def name(self) -> str:
        return f"{'source' if self.is_input else 'target'}{self.port.label}"

    @property
    def offset(self) -> str:
        """Its register, in hexadecimal."""
        return f"0x{FIRST + ADDRESS_BYTES * self.place:X}"


@dataclass(frozen=True)
class Scalar:
    """An argument of the kernel that is a number: its name and its register, in hexadecimal."""

    name: str
    offset: str


def vitis_files(core: Core) -> dict[str, bytes]:
    """NAME_kernel.v with the library modules that it needs, kernel.xml, package_kernel.tcl, host/NAME_xrt.py.

    Raises HG040 if the core has AXI4-Lite ports, or ports of a width that memory does not have.
    """
    if core.axi_lite:
        text = f"the core has the AXI4-Lite port {core.axi_lite[0]}; a kernel has its own registers alone."
        raise fail("HG040", "--for vitis", text, "Build without --control, --loadable and --state-start register.")
    channels = channels_of(core, "vitis")
    pointers = pointers_of(channels)
    prefix, starts = core.build.design.prefix, core.build.options.starts_by == "tuser"
    scalars_at = FIRST + ADDRESS_BYTES * len(pointers)
    names = ["frames", *(["sequence"] if starts else [])]
    modules = modules_used({"hg_dma_engine", "hg_kernel_regs", "hg_reset"})
    files = {f"rtl/{prefix}{name}.v": scoped(library_text("rtl", f"{name}.v"), prefix) for name in modules}
    kernel = f"rtl/{core.name}_kernel.v"
    values = {
        **dma_values(core, channels),
        "starts": starts,
        "core": core,
        "name": core.name,
        "plain": plain,
        "prefix": prefix,
        "lite": AXI_LITE,
        "pointers": pointers,
        "scalars": [Scalar(name, f"0x{scalars_at + NUMBER_BYTES * place:X}") for place, name in enumerate(names)],
        "address": lambda port: _address(pointers, port),
        "host_text": core.build.files[f"host/{core.name}.py"].decode(),
        "sources": [*dict.fromkeys([*core.sources, *files, kernel, *core.memories])],
    }
    templates = {
        kernel: "kernel.v.j2",
        "kernel.xml": "kernel.xml.j2",
        "package_kernel.tcl": "package_kernel.tcl.j2",
        f"host/{core.name}_xrt.py": "xrt.py.j2",
    }
    files |= {path: render(f"project/{template}", **values) for path, template in templates.items()}
    return {path: text.encode() for path, text in files.items()}


def pointers_of(channels: tuple[Channel, ...]) -> list[Pointer]:
    """The addresses that a kernel takes: of the inputs of the core first, then of its outputs."""
    sources = [(channel.input, channel, True) for channel in channels if channel.input]
    targets = [(channel.output, channel, False) for channel in channels if channel.output]
    return [Pointer(place, *pointer) for place, pointer in enumerate([*sources, *targets])]


def _address(pointers: list[Pointer], port: CorePort | None) -> str:
    """Verilog of the address of a port, 0 without one."""
    place = next((pointer.place for pointer in pointers if pointer.port is port), None)
    return "64'd0" if place is None else f"pointers[{64 * place} +: 64]"
