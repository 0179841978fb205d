"""The ports of a top level, with the attributes by which Vivado detects interfaces, clock and reset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hlsgen.dataflow.bus import AXI_LITE
from hlsgen.verilog.netlist import Design

#: Bits of a byte address: in the port for weights, and in the port for control and status.
WEIGHTS_ADDRESS, CONTROL_ADDRESS = 4, 5


@dataclass(frozen=True)
class TopPort:
    """A port of `bits` bits. `attributes`: (name, value), printed before it."""

    direction: str
    bits: int
    name: str
    attributes: tuple[tuple[str, str], ...] = ()


def top_ports(design: Design) -> list[TopPort]:
    """All ports of the top level, in order."""
    if design.plain:
        return _plain_ports(design)
    buses = [*(("s_axil",) if design.loads else ()), *(("s_axil_ctrl",) if design.control else ())]
    streams = [port.name for port in (*design.inputs, *design.outputs)]
    ports = _clock_and_reset(design, [*streams, *buses])
    for direction, stream_ports in (("input", design.inputs), ("output", design.outputs)):
        for port in stream_ports:
            starts = design.starts_by == "tuser" and port is design.inputs[0]
            ports += _stream(port.name, direction, port.bus.width, design.keep, starts)
    for name, address in (("s_axil", WEIGHTS_ADDRESS), ("s_axil_ctrl", CONTROL_ADDRESS)):
        if name in buses:
            ports += _lite(name, address)
    return [*ports, *(TopPort("output", 1, f"frame_error{port.label}") for port in design.inputs)]


def _plain_ports(design: Design) -> list[TopPort]:
    """The ports of a core without handshake; clock and reset have attributes."""
    (source,), (sink,) = design.inputs, design.outputs
    return [
        *_clock_and_reset(design, []),
        TopPort("input", 1, "in_valid"),
        TopPort("input", source.stream.bits, "in_data"),
        TopPort("output", 1, "out_valid"),
        TopPort("output", sink.stream.bits, "out_data"),
    ]


def _clock_and_reset(design: Design, buses: Sequence[str]) -> list[TopPort]:
    """Clock and reset, which belong to the interfaces `buses`."""
    associated = [f"ASSOCIATED_BUSIF {':'.join(buses)}"] if buses else []
    clock = ", ".join([*associated, f"ASSOCIATED_RESET {design.reset}"])
    polarity = "ACTIVE_LOW" if design.reset_active_low else "ACTIVE_HIGH"
    return [
        TopPort("input", 1, design.clock, _attributes("signal:clock", f"{design.clock} CLK", clock)),
        TopPort("input", 1, design.reset, _attributes("signal:reset", f"{design.reset} RST", f"POLARITY {polarity}")),
    ]


def _attributes(kind: str, role: str, parameter: str = "") -> tuple[tuple[str, str], ...]:
    info = ("X_INTERFACE_INFO", f"xilinx.com:{kind}:1.0 {role}")
    return (info, ("X_INTERFACE_PARAMETER", parameter)) if parameter else (info,)


def _stream(name: str, direction: str, width: int, keep: bool, starts: bool) -> Iterator[TopPort]:
    """The pins of a stream; `starts`: with tuser, which starts a sequence of frames."""
    opposite = "output" if direction == "input" else "input"
    parts = [(direction, width, "tdata"), (direction, 1, "tvalid"), (opposite, 1, "tready"), (direction, 1, "tlast")]
    parts += [(direction, width // 8, "tkeep")] if keep else []
    parts += [(direction, 1, "tuser")] if starts else []
    for pin_direction, bits, part in parts:
        yield TopPort(pin_direction, bits, f"{name}_{part}", _attributes("interface:axis", f"{name} {part.upper()}"))


def _lite(name: str, address: int) -> Iterator[TopPort]:
    for direction, bits, part in AXI_LITE:
        yield TopPort(
            direction, bits or address, f"{name}_{part}", _attributes("interface:aximm", f"{name} {part.upper()}")
        )
