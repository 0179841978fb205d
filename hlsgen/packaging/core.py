"""The core of a build, for templates of project files."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass

from hlsgen.dataflow.network import CorePort
from hlsgen.devices import Device
from hlsgen.driver.compile import Build
from hlsgen.frontend.file_kind import model_file_in
from hlsgen.host.text import plain
from hlsgen.library import tool_version
from hlsgen.packaging.ports import Port, has, ports_of


@dataclass(frozen=True, eq=False)
class Core:
    """A core, for templates of project files. sources, memories: paths in the package.

    has_dma: the package has NAME_dma, the core with memory access, which block designs then use.
    """

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
    asked_mhz: float | None
    version: str
    model: str
    has_dma: bool = False

    @property
    def clock_mhz(self) -> float:
        return self.asked_mhz or self.device.clock_mhz

    @property
    def period(self) -> str:
        """Clock period in nanoseconds, as text."""
        return f"{1000 / self.clock_mhz:.3f}"

    def width(self, name: str) -> int:
        """Bits of a port."""
        return next(port.bits for port in self.ports if port.name == name)

    def has(self, name: str) -> bool:
        return has(self.ports, name)

    @property
    def inputs(self) -> tuple[CorePort, ...]:
        return self.build.network.inputs

    @property
    def outputs(self) -> tuple[CorePort, ...]:
        return self.build.network.outputs

    @property
    def streams(self) -> list[str]:
        """Names of its streams, inputs first; none without handshake."""
        return [port.name for port in (*self.inputs, *self.outputs) if not port.is_plain]

    @property
    def vectors(self) -> list[str]:
        """Names of the vector files for test benches."""
        into = [f"{self.name}_input{port.label}.hex" for port in self.inputs]
        return into + [
            f"{self.name}_{which}{port.label}.hex" for port in self.outputs for which in ("expected", "mask")
        ]

    @property
    def axi_lite(self) -> list[str]:
        """Names of AXI4-Lite ports."""
        return [port.name.removesuffix("_awaddr") for port in self.ports if port.name.endswith("_awaddr")]

    @property
    def driven(self) -> set[str]:
        """Ports that a bench connects to signals of the same name; without the clock and tkeep of inputs."""
        ends = ("tdata", "tvalid", "tready", "tlast")
        streams = {f"{name}_{end}" for name in self.streams for end in ends}
        output_keeps = {f"{port.name}_tkeep" for port in self.outputs}
        return {self.reset, *streams, *output_keeps, *(f"frame_error{port.label}" for port in self.inputs)}

    @property
    def idle(self) -> list[Port]:
        """Inputs that a bench without AXI4-Lite ties to 0."""
        connected = {self.clock, *self.driven, *(f"{port.name}_tkeep" for port in self.inputs)}
        return [port for port in self.ports if port.is_input and port.name not in connected]

    @property
    def unread(self) -> list[Port]:
        """Outputs that a bench without AXI4-Lite leaves open."""
        return [port for port in self.ports if not port.is_input and port.name not in self.driven]


def core_of(build: Build, device: Device, clock_mhz: float | None) -> Core:
    """The core of a build with Verilog. clock_mhz: replaces the clock of the device."""
    manifest = json.loads(build.files["manifest.json"])
    top = manifest["top"]
    name, reset = top["module"], top["reset"]
    listed = build.files["files.f"].decode().split()
    memories = sorted(path for path in build.files if re.fullmatch(r"rtl/[^/]+\.mem", path))
    text = build.files[f"rtl/{name}.v"].decode()
    return Core(
        build,
        name,
        plain(build.options.name or name),
        top["clock"],
        reset["name"],
        reset["active"] == "low",
        ports_of(text, name),
        tuple(listed),
        tuple(memories),
        device,
        clock_mhz,
        plain(tool_version()),
        hashlib.sha256(build.files[model_file_in(build.files)]).hexdigest(),
    )
