"""What each flow is given: its project files, printed from templates."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from hlsgen.dataflow.bus import BusLayout
from hlsgen.devices import Device
from hlsgen.diagnostics import fail
from hlsgen.driver.compile import Build
from hlsgen.host.text import plain
from hlsgen.library import render, tool_version
from hlsgen.packaging.ports import Port, has, ports_of, vhdl_name
from hlsgen.packaging.vectors import bench_vectors
from hlsgen.synthesis import harness, nextpnr, programs, yosys


@dataclass(frozen=True, eq=False)
class Core:
    """A core as templates of project files see it. `sources`, `memories`: paths in the package."""

    build: Build
    name: str
    title: str
    clock: str
    reset: str
    reset_low: bool
    ports: tuple[Port, ...]
    sources: tuple[str, ...]
    memories: tuple[str, ...]
    device: Device
    clock_mhz: float
    version: str
    model: str

    @property
    def period(self) -> str:
        """Of the clock, in nanoseconds."""
        return f"{1000 / self.clock_mhz:.3f}"

    def width(self, name: str) -> int:
        """Bits of a port."""
        return next(port.bits for port in self.ports if port.name == name)

    def has(self, name: str) -> bool:
        return has(self.ports, name)

    @property
    def streams(self) -> list[str]:
        """The names of its streams, inputs first."""
        network = self.build.network
        return [port.name for port in (*network.inputs, *network.outputs)]

    @property
    def buses(self) -> tuple[BusLayout, BusLayout]:
        """How a frame lies on both ports."""
        (into,), (out,) = self.build.network.inputs, self.build.network.outputs
        return into.layout, out.layout

    @property
    def axi_lite(self) -> list[str]:
        """The names of AXI4-Lite ports."""
        return [port.name.removesuffix("_awaddr") for port in self.ports if port.name.endswith("_awaddr")]

    @property
    def idle(self) -> list[Port]:
        """Inputs that a bench without AXI4-Lite holds at 0."""
        own = {
            self.clock,
            self.reset,
            *(f"s_axis_{end}" for end in ("tdata", "tvalid", "tlast", "tkeep")),
            "m_axis_tready",
        }
        return [port for port in self.ports if port.is_input and port.name not in own]

    @property
    def unread(self) -> list[Port]:
        """Outputs that such a bench does not look at."""
        own = {f"m_axis_{end}" for end in ("tdata", "tvalid", "tlast", "tkeep")} | {"s_axis_tready", "frame_error"}
        return [port for port in self.ports if not port.is_input and port.name not in own]


def core_of(build: Build, device: Device, clock_mhz: float) -> Core:
    """Of a build with Verilog."""
    manifest = json.loads(build.files["manifest.json"])
    top = manifest["top"]
    name, reset = top["module"], top["reset"]
    listed = build.files["files.f"].decode().split()
    memories = sorted(path for path in build.files if re.fullmatch(r"rtl/[^/]+\.mem", path))
    text = build.files[f"rtl/{name}.v"].decode()
    return Core(
        build, name, plain(build.options.name or name), top["clock"], reset["name"], reset["active"] == "low",
        ports_of(text, name), tuple(listed), tuple(memories), device, clock_mhz, plain(tool_version()),
        hashlib.sha256(build.files["model.onnx"]).hexdigest(),
    )  # fmt: skip


def _rendered(core: Core, **templates: str) -> dict[str, bytes]:
    """Path in the package -> rendered template; `NAME` in a path is the core's."""
    values: dict[str, Any] = {
        "core": core, "name": core.name, "plain": plain, "vhdl": vhdl_name, "file": lambda path: PurePosixPath(path).name,
        "dma_width": lambda bits: 1 << max(bits - 1, 7).bit_length(),
        "host_text": core.build.files[f"host/{core.name}.py"].decode(),
    }  # fmt: skip
    return {
        path.replace("NAME", core.name): render(f"project/{template}", **values).encode()
        for template, path in templates.items()
    }


def common_files(core: Core) -> dict[str, bytes]:
    """What all packages have: sources, memories, host code, instantiation templates, constraints."""
    found = {path: core.build.files[path] for path in (*core.sources, *core.memories)}
    found |= {path: data for path, data in core.build.files.items() if path.startswith("host/")}
    return found | _from(core, "instance.v.j2", "NAME_instance.v") | _from(core, "instance.vhd.j2", "NAME_instance.vhd")


def _from(core: Core, template: str, path: str) -> dict[str, bytes]:
    return _rendered(core, **{template: path})


def _bench(core: Core) -> dict[str, bytes]:
    vectors = bench_vectors(core.build.network)
    timing = core.build.timing
    values = {
        "core": core, "name": core.name, "vectors": vectors, "frames": vectors.frames, "into": core.buses[0], "out": core.buses[1],
"limit": 1000 + 20 * (timing.latency + vectors.frames * (timing.interval + sum(bus.words for bus in core.buses))),
    }  # fmt: skip
    texts = {
        f"tb/{core.name}_tb.sv": render("project/bench.sv.j2", **values),
        f"tb/{core.name}_tb.cpp": render("project/bench.cpp.j2", **values),
        f"tb/{core.name}_input.hex": vectors.input,
        f"tb/{core.name}_expected.hex": vectors.expected,
        f"tb/{core.name}_mask.hex": vectors.mask,
    }
    return {path: text.encode() for path, text in texts.items()}


def _fusesoc(core: Core) -> dict[str, bytes]:
    return (
        _from(core, "core.yaml.j2", "NAME.core")
        | _from(core, "core.xdc.j2", "NAME.xdc")
        | _from(core, "core.sdc.j2", "NAME.sdc")
        | _bench(core)
    )


def _verilator(core: Core) -> dict[str, bytes]:
    return _bench(core) | _from(core, "bench.mk.j2", "tb/Makefile")


def _vivado(core: Core) -> dict[str, bytes]:
    return (
        _from(core, "package_ip.tcl.j2", "package_ip.tcl")
        | _from(core, "out_of_context.tcl.j2", "out_of_context.tcl")
        | _from(core, "core.xdc.j2", "NAME.xdc")
    )


def _quartus(core: Core) -> dict[str, bytes]:
    return _from(core, "core.qip.j2", "NAME.qip") | _from(core, "core.sdc.j2", "NAME.sdc")


def _pynq(core: Core) -> dict[str, bytes]:
    if core.device.family.vendor == "AMD" and not core.device.part.startswith("xc7z"):
        text = f"the block design is for Zynq-7000; {core.device.name} is {core.device.part}."
        raise fail("HG040", "--for pynq", text, "Say --device xc7z020, or take --for vivado and a design of your own.")
    for port in ("s_axis", "m_axis"):
        bits = core.width(f"{port}_tdata")
        if bits & (bits - 1):
            text = f"{port}_tdata has {bits} bits; a DMA engine takes powers of two."
            raise fail("HG040", "--for pynq", text, "Build with --bus-width 32, or another power of two.")
    return (
        _vivado(core)
        | _from(core, "block_design.tcl.j2", "block_design.tcl")
        | _from(core, "pynq.py.j2", "host/NAME_pynq.py")
    )


def _ci(core: Core) -> dict[str, bytes]:
    return _from(core, "verify.yml.j2", ".github/workflows/NAME.yml")


def _yosys(core: Core) -> dict[str, bytes]:
    text = core.build.files[f"rtl/{core.name}.v"].decode()
    device = core.device
    pins = nextpnr.constraints(device, harness.PORTS)
    names = [PurePosixPath(path).name for path in core.sources]
    script = yosys.passes(device, [*names, harness.FILE], harness.TOP, dsp=core.build.options.prefer == "dsp")
    command = nextpnr.arguments(device, core.clock_mhz, 1, bitstream=bool(device.family.pack), pins=True)
    values = {
        "core": core, "name": core.name, "device": device, "netlist": yosys.NETLIST, "routed": nextpnr.ROUTED,
        "place": " ".join(command), "pack": " ".join(nextpnr.pack_arguments(device, f"{core.name}.$(SUFFIX)")) if device.family.pack else "",
        "suffix": nextpnr.SUFFIX.get(device.family.pack, ""), "harness": harness.FILE,
        "names": programs.names,
    }  # fmt: skip
    found = {
        "Makefile": render("project/Makefile.j2", **values).encode(),
        "synth.ys": ("\n".join(script) + "\n").encode(),
        harness.FILE: harness.harness(core.name, text, core.clock).encode(),
    }
    return found | ({nextpnr.CONSTRAINTS: pins.encode()} if pins else {})


#: Flows that a package can be for, and what each one is given beside `common_files`.
KINDS: Mapping[str, Callable[[Core], dict[str, bytes]]] = {
    "fusesoc": _fusesoc, "vivado": _vivado, "quartus": _quartus, "yosys": _yosys, "verilator": _verilator, "pynq": _pynq,
    "ci": _ci,
}  # fmt: skip
#: Flows whose benches and designs send and take one stream each.
ONE_STREAM = ("fusesoc", "verilator", "pynq")
