"""Text output of `devices` and `synth`."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from hlsgen.cli.console import out, plain
from hlsgen.devices import Device
from hlsgen.synthesis.result import Synthesis


def print_devices(devices: Sequence[Device]) -> None:
    """Prints the resources of each device and the clock that its rates are computed for."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in (
        "device",
        "part",
        "LUTs",
        "registers",
        "block RAMs",
        "DSP blocks",
        "MHz",
        "clock",
        "placed by",
    ):
        table.add_column(title, justify="left", overflow="fold")
    for device in devices:
        family = device.family
        table.add_row(
            device.name,
            device.part,
            f"{device.lut} {family.lut}",
            str(device.ff),
            f"{device.bram} {family.bram}",
            f"{device.dsp} {family.dsp}",
            f"{device.clock_mhz:g}",
            "measured" if device.measured else "assumed",
            family.place or "-",
        )
    out.print(table)


def print_synthesis(synthesis: Synthesis) -> None:
    """Prints used resources beside available and estimated ones, then clock, rate and critical path by layer."""
    device, family = synthesis.device, synthesis.device.family
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in (device.name, "used", "of", "%", "estimate"):
        table.add_column(title, justify="left" if title == device.name else "right")
    rows = (
        (family.lut, synthesis.lut, device.lut, synthesis.estimate["lut"]),
        ("registers", synthesis.ff, device.ff, synthesis.estimate["ff"]),
        (family.bram, synthesis.bram, device.bram, synthesis.estimate["bram"]),
        (family.dsp, synthesis.dsp, device.dsp, synthesis.estimate["dsp"]),
    )
    for name, count, available, estimated in rows:
        share = f"{100 * count / available:.0f}" if available else "-"
        table.add_row(name, str(count), str(available), share, str(estimated))
    out.print(table)
    if not synthesis.placed:
        out.print(f"not placed: {synthesis.why}. Resources are those of the netlist; the clock is unknown.")
    elif synthesis.fmax_mhz is not None and synthesis.frames_per_second is not None:
        out.print(
            f"placed and routed: {synthesis.fmax_mhz:.1f} MHz, {synthesis.frames_per_second:.4g} frames/s "
            f"(a frame every {'cycle' if synthesis.interval == 1 else f'{synthesis.interval} cycles'})"
        )
    if synthesis.critical_path:
        total = sum(part.delay_ns for part in synthesis.critical_path)
        routing = sum(part.routing_ns for part in synthesis.critical_path)
        out.print(f"critical path: {total:.1f} ns, of which routing {routing:.1f} ns")
        for part in synthesis.critical_path:
            layer = f"layer {part.layer}, " if part.layer else ""
            place = f"{part.instance} ({part.module})" if part.module else part.instance or "ports"
            out.print(plain(f"  {part.delay_ns:5.1f} ns  {layer}{place}"), soft_wrap=True)
    if synthesis.bitstream:
        out.print(f"wrote {plain(synthesis.bitstream)}", soft_wrap=True)
