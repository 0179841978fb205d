"""What `check` and `build` print of a network: its layers, its rates, and what was tried for its quantizers."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from hlsgen.cli.console import out, plain
from hlsgen.diagnostics import counted

TITLES = ("layer", "kind", "in", "out", "shape", "MACs", "PE x SIMD", "cycles", "busy", "memory", "FIFO")
#: Titles of what a layer is estimated to take; a column of zeros is left out.
TAKEN = {"lut": "LUT", "dsp": "DSP", "bram18": "BRAM18"}


def print_summary(summary: dict[str, Any]) -> None:
    """The table of layers, what is left to the host, rates, the estimate."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    rows = [row for row in summary["layers"] if row["kind"] != "rename"]
    taken = {key: title for key, title in TAKEN.items() if any(row["estimate"][key] for row in rows)}
    for title in (*TITLES, *taken.values(), "how"):
        table.add_column(title, overflow="fold")
    for row in rows:
        folding = f"{row['pe']} x {row['simd']}" if "pe" in row else str(row.get("lanes", ""))
        how = row.get("realization") or (f"{row['rows']} x {row['columns']}" if "rows" in row else "")
        short = (", ".join(t.split(" ")[0] for t in row[end].split("], ")) for end in ("input", "output"))
        shape = "x".join(str(n) for n in row["shape"] if n > 1) or "1"
        bits = row["weight_bits"] + row["buffer_bits"]
        used = f"{100 * row['utilization']:.0f} %" if "utilization" in row else ""
        cells = (
            row["name"], row["kind"], *short, shape, str(row.get("macs", "")), folding, str(row["cycles"]), used,
            str(bits or ""), str(row["fifo_depth"] or ""), *(str(row["estimate"][key] or "") for key in taken), how,
        )  # fmt: skip
        table.add_row(*map(plain, cells))
    out.print(table)
    host = summary["host"]
    for part in ("head", "tail"):
        if host[part]:
            out.print(f"host {part}: " + plain(", ".join(f"{s['op']}" for s in host[part])))
    cycles, rate, estimate = summary["cycles"], summary["rate"], summary["estimate"]
    about, least, most = ("about ", " or more", "at most ") if cycles.get("estimated") else ("", "", "")
    out.print(
        f"latency {about}{counted(cycles['latency'], 'cycle')}, interval {counted(cycles['interval'], 'cycle')}{least}: {about}"
        f"{rate['latency_us']:.3g} us, {most}{rate['frames_per_second']:.4g} frames/s at {rate['clock_mhz']:g} MHz"
    )
    device = summary["device"]
    if device is not None:
        guess = device["estimate"]
        parts = (f"{guess[k]} of {device[k]['count']} {device[k]['kind']}" for k in ("lut", "dsp", "bram"))
        out.print(f"estimate for {device['device']}: about {', '.join(parts)}; clock {device['clock']}")
    out.print(
        f"estimate: about {estimate['lut']} LUT, {estimate['ff']} FF, {estimate['dsp']} DSP, {estimate['bram18']} BRAM18; "
        f"{estimate['weight_bits']} weight bits, {estimate['buffer_bits']} buffer bits, "
        f"{estimate['table_bits']} table bits"
    )
    out.print(f"runtime: {summary['runtime']}", soft_wrap=True)
    for note in summary["notes"]:
        out.print(note, soft_wrap=True)


def print_choices(summary: dict[str, Any]) -> None:
    """What was tried for every quantizer, what was taken, and why the others are impossible."""
    for row in summary["layers"]:
        if "tried" not in row:
            continue
        out.print(f"[bold]{plain(row['name'])}[/]: {plain(row['realization'])}")
        for trial in row["tried"]:
            price = "" if trial["lut"] is None else f"{trial['lut']:.0f} LUT"
            price += f", {trial['dsp']} DSP" if trial["dsp"] else ""
            price += f", {trial['memory_bits']} bits of block memory" if trial["memory_bits"] else ""
            taken = "* " if row["taken"] == trial["name"] else "  "
            out.print(plain(f"  {taken}{trial['name']}: {price or trial['why']}"))
