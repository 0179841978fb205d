"""The ports of a top level, with the attributes by which Vivado finds interfaces, clock and reset."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hlsgen.verilog.netlist import Design

#: AXI4-Lite: (direction, bits, name); addresses have the bits of the port.
LITE = (
    ("input", 0, "awaddr"),
    ("input", 1, "awvalid"),
    ("output", 1, "awready"),
    ("input", 32, "wdata"),
    ("input", 4, "wstrb"),
    ("input", 1, "wvalid"),
    ("output", 1, "wready"),
    ("output", 2, "bresp"),
    ("output", 1, "bvalid"),
    ("input", 1, "bready"),
    ("input", 0, "araddr"),
    ("input", 1, "arvalid"),
    ("output", 1, "arready"),
    ("output", 32, "rdata"),
    ("output", 2, "rresp"),
    ("output", 1, "rvalid"),
    ("input", 1, "rready"),
)
#: Bits of a byte address: of the port for weights, and of that for control and status.
WEIGHTS_ADDRESS, CONTROL_ADDRESS = 4, 5


@dataclass(frozen=True)
class TopPort:
    """A port of `bits` bits. `attributes`: (name, value), printed in front of it."""

    direction: str
    bits: int
    name: str
    attributes: tuple[tuple[str, str], ...] = ()


def top_ports(design: Design) -> list[TopPort]:
    """All ports of the top level, in order."""
    buses = [*(("s_axil",) if design.loads else ()), *(("s_axil_ctrl",) if design.control else ())]
    streams = [port.name for port in (*design.inputs, *design.outputs)]
    associated = ":".join([*streams, *buses])
    clock = f"ASSOCIATED_BUSIF {associated}, ASSOCIATED_RESET {design.reset}"
    polarity = "ACTIVE_LOW" if design.reset_active_low else "ACTIVE_HIGH"
    found = [
        TopPort("input", 1, design.clock, _about("signal:clock", f"{design.clock} CLK", clock)),
        TopPort("input", 1, design.reset, _about("signal:reset", f"{design.reset} RST", f"POLARITY {polarity}")),
    ]
    for forth, ports in (("input", design.inputs), ("output", design.outputs)):
        for port in ports:
            found += _stream(port.name, forth, port.bus.width, design.keep)
    for name, address in (("s_axil", WEIGHTS_ADDRESS), ("s_axil_ctrl", CONTROL_ADDRESS)):
        if name in buses:
            found += _lite(name, address)
    return [*found, *(TopPort("output", 1, f"frame_error{port.label}") for port in design.inputs)]


def _about(kind: str, role: str, parameter: str = "") -> tuple[tuple[str, str], ...]:
    info = ("X_INTERFACE_INFO", f"xilinx.com:{kind}:1.0 {role}")
    return (info, ("X_INTERFACE_PARAMETER", parameter)) if parameter else (info,)


def _stream(name: str, forth: str, width: int, keep: bool) -> Iterator[TopPort]:
    back = "output" if forth == "input" else "input"
    parts = [(forth, width, "tdata"), (forth, 1, "tvalid"), (back, 1, "tready"), (forth, 1, "tlast")]
    for way, bits, part in [*parts, *([(forth, width // 8, "tkeep")] if keep else [])]:
        yield TopPort(way, bits, f"{name}_{part}", _about("interface:axis", f"{name} {part.upper()}"))


def _lite(name: str, address: int) -> Iterator[TopPort]:
    for way, bits, part in LITE:
        yield TopPort(way, bits or address, f"{name}_{part}", _about("interface:aximm", f"{name} {part.upper()}"))
