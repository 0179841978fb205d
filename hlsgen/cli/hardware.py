"""What `devices` and `synth` print for people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from hlsgen.cli.console import out, plain
from hlsgen.devices import Device
from hlsgen.synthesis.result import Synthesis


def print_devices(devices: Sequence[Device]) -> None:
    """A line for each: what it has, and the clock that rates are printed at."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in (
        "device",
        "part",
        "tables",
        "registers",
        "block memories",
        "multipliers",
        "MHz",
        "clock",
        "placed by",
    ):
        table.add_column(title, justify="left", overflow="fold")
    for one in devices:
        family = one.family
        table.add_row(
            one.name, one.part, f"{one.lut} {family.lut}", str(one.ff), f"{one.bram} {family.bram}",
            f"{one.dsp} {family.dsp}", f"{one.clock_mhz:g}", "measured" if one.measured else "assumed",
            family.place or "-",
        )  # fmt: skip
    out.print(table)


def print_synthesis(found: Synthesis) -> None:
    """Counts next to what the device has and to the estimate, the clock, the rate, the slowest path by layers."""
    device, family = found.device, found.device.family
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in (device.name, "takes", "of", "%", "estimate"):
        table.add_column(title, justify="left" if title == device.name else "right")
    rows = (
        (family.lut, found.lut, device.lut, found.estimate["lut"]),
        ("registers", found.ff, device.ff, found.estimate["ff"]),
        (family.bram, found.bram, device.bram, found.estimate["bram"]),
        (family.dsp, found.dsp, device.dsp, found.estimate["dsp"]),
    )
    for name, count, there, guess in rows:
        share = f"{100 * count / there:.0f}" if there else "-"
        table.add_row(name, str(count), str(there), share, str(guess))
    out.print(table)
    if not found.placed:
        out.print(f"not placed: {found.why}. The counts are those of the netlist; the clock is not known.")
    elif found.fmax_mhz is not None and found.frames_per_second is not None:
        out.print(
            f"placed and routed: {found.fmax_mhz:.1f} MHz, {found.frames_per_second:.4g} frames/s "
            f"(a frame every {'cycle' if found.interval == 1 else f'{found.interval} cycles'})"
        )
    if found.critical_path:
        total = sum(part.delay_ns for part in found.critical_path)
        out.print(
            f"slowest path: {total:.1f} ns, of which wires {sum(p.routing_ns for p in found.critical_path):.1f} ns"
        )
        for part in found.critical_path:
            where = f"layer {part.layer}, " if part.layer else ""
            what = f"{part.instance} ({part.module})" if part.module else part.instance or "ports"
            out.print(plain(f"  {part.delay_ns:5.1f} ns  {where}{what}"), soft_wrap=True)
    if found.bitstream:
        out.print(f"wrote {plain(found.bitstream)}", soft_wrap=True)
