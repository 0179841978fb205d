"""Prints the Pareto front of `explore` as a table."""

from __future__ import annotations

from rich.table import Table

from hlsgen.cli.console import out, plain
from hlsgen.diagnostics import counted
from hlsgen.explore.points import KINDS, Place, Point
from hlsgen.explore.running import Exploration


def print_exploration(exploration: Exploration, place: Place) -> None:
    """Prints the points of the front, the fastest first, and says which figures are estimates."""
    front = [point for point in exploration.points if point.front]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("frames/s", "interval", "latency", *place.kinds.values()):
        table.add_column(title, justify="right")
    if place.device is not None:
        table.add_column("largest share", justify="right")
    measured = any(point.measured for point in front)
    for title in ("measured", "MHz", "frames/s") if measured else ():
        table.add_column(title, justify="right")
    table.add_column("options", overflow="fold")
    for point in front:
        approximate = "" if point.exact else "~"
        cells = [
            approximate + text for text in (f"{point.frames_per_second:.4g}", str(point.interval), str(point.latency))
        ]
        cells += [str(count) for count in point.counts.values()]
        if point.share is not None:
            cells.append(f"{100 * point.share:.0f} % {place.kinds[point.scarcest]}")
        table.add_row(*cells, *(_measured(point) if measured else ()), plain(point.flags))
    out.print(table)
    clock = f"the clock of {place.clock_mhz:g} MHz"
    if place.device is not None and place.clock_mhz == place.device.clock_mhz:
        clock += " (measured on other designs)" if place.device.measured else " (assumed)"
    fits = f"{sum(point.fits for point in exploration.points)} fit {place.device.name}, " if place.device else ""
    cycles = "exact cycles"
    if not all(point.exact for point in front):
        cycles += "; figures with ~ are estimates (the interval of the slowest unit)"
    out.print(
        f"{counted(exploration.networks, 'network')}, {counted(len(exploration.points), 'point')}, "
        f"{fits}{len(front)} on the front. Intervals and latencies are "
        f"{cycles}. Resources are estimates. {clock[0].upper()}{clock[1:]} is not the clock that this network reaches.",
        soft_wrap=True,
    )


def _measured(point: Point) -> tuple[str, str, str]:
    """Resources, clock and rate of a synthesized point."""
    if point.measured is None:
        return "", "", ""
    counts = ", ".join(str(point.measured[kind]) for kind in KINDS)
    clock = point.measured["fmax_mhz"]
    return (counts, "-", "-") if clock is None else (counts, f"{clock:.1f}", f"{clock * 1e6 / point.interval:.4g}")
