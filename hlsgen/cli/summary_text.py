"""Text output of `check` and `build`: layers, rates, and the implementations tried for each quantizer."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from hlsgen.cli.console import out, plain
from hlsgen.devices import device, resource_names
from hlsgen.diagnostics import counted

TITLES = ("layer", "kind", "in", "out", "shape", "MACs", "PE x SIMD", "cycles", "busy", "memory", "FIFO")
#: Words for the two ends of a graph.
HOST_PARTS = {"head": "preprocessing", "tail": "postprocessing"}


def names_of(summary: dict[str, Any]) -> dict[str, str]:
    """Names of the resources that the summary counts, as `devices.resource_names`."""
    chosen = summary["device"]
    return resource_names(None if chosen is None else device(chosen["device"]))


def print_summary(summary: dict[str, Any]) -> None:
    """Prints the layers, the steps left to the host, rates and estimated resources."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    rows = [row for row in summary["layers"] if row["kind"] != "rename"]
    chosen, names = summary["device"], names_of(summary)
    # A column of zeros is left out.
    resources = {key: names[key] for key in ("lut", "dsp", "bram") if any(row["estimate"][key] for row in rows)}
    for title in (*TITLES, *resources.values(), "how"):
        table.add_column(title, overflow="fold")
    for row in rows:
        folding = f"{row['pe']} x {row['simd']}" if "pe" in row else str(row.get("lanes", ""))
        how = row.get("realization") or (f"{row['rows']} x {row['columns']}" if "rows" in row else "")
        short = (", ".join(t.split(" ")[0] for t in row[end].split("], ")) for end in ("input", "output"))
        shape = "x".join(str(n) for n in row["shape"] if n > 1) or "1"
        bits = row["weight_bits"] + row["buffer_bits"]
        used = f"{100 * row['utilization']:.0f} %" if "utilization" in row else ""
        cells = (
            row["name"],
            row["kind"],
            *short,
            shape,
            str(row.get("macs", "")),
            folding,
            str(row["cycles"]),
            used,
            str(bits or ""),
            str(row["fifo_depth"] or ""),
            *(str(row["estimate"][key] or "") for key in resources),
            how,
        )
        table.add_row(*map(plain, cells))
    out.print(table)
    host = summary["host"]
    for part in ("head", "tail"):
        if host[part]:
            out.print(f"host {HOST_PARTS[part]}: " + plain(", ".join(f"{s['op']}" for s in host[part])))
    cycles, rate, estimate = summary["cycles"], summary["rate"], summary["estimate"]
    approximate, or_more, at_most = ("about ", " or more", "at most ") if cycles.get("estimated") else ("", "", "")
    fixed = ", the same for every frame" if cycles.get("fixed") else ""
    out.print(
        f"latency {approximate}{counted(cycles['latency'], 'cycle')}{fixed}, "
        f"interval {counted(cycles['interval'], 'cycle')}{or_more}: {approximate}"
        f"{rate['latency_us']:.3g} us, {at_most}{rate['frames_per_second']:.4g} frames/s at {rate['clock_mhz']:g} MHz"
    )
    memory = (
        f"{estimate['weight_bits']} weight bits, {estimate['buffer_bits']} buffer bits, "
        f"{estimate['table_bits']} table bits"
    )
    if chosen is not None:
        parts = (f"{estimate[key]} of {chosen[key]['count']} {names[key]}" for key in ("lut", "dsp", "bram"))
        out.print(f"estimate for {chosen['device']}: about {', '.join(parts)}; {memory}; clock {chosen['clock']}")
    else:
        parts = (f"{estimate[key]} {names[key]}" for key in ("lut", "ff", "dsp", "bram"))
        out.print(f"estimate: about {', '.join(parts)}; {memory}")
    out.print(f"runtime: {summary['runtime']}", soft_wrap=True)
    for note in summary["notes"]:
        out.print(note, soft_wrap=True)


def print_choices(summary: dict[str, Any]) -> None:
    """Prints the implementations tried for each quantizer: cost, the chosen one, and why others are impossible."""
    rows = [row for row in summary["layers"] if "tried" in row]
    if rows:
        out.print("implementations of quantizers; their costs are before the fit to synthesis:")
    lut = names_of(summary)["lut"]
    for row in rows:
        in_table = f"({row['estimate']['lut']} {lut} in the table)"
        out.print(f"[bold]{plain(row['name'])}[/]: {plain(row['realization'])} {in_table}", soft_wrap=True)
        for trial in row["tried"]:
            price = "" if trial["lut"] is None else f"{trial['lut']:.0f} LUT"
            price += f", {trial['dsp']} DSP" if trial["dsp"] else ""
            price += f", {trial['memory_bits']} bits of block RAM" if trial["memory_bits"] else ""
            mark = "* " if row["taken"] == trial["name"] else "  "
            out.print(plain(f"  {mark}{trial['name']}: {price or trial['why']}"))
