"""What the command line prints for people."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hlsgen.diagnostics import printable
from hlsgen.simulation.file_oracle import OracleVerdict
from hlsgen.simulation.verdict import Verdict

out = Console(highlight=False, width=None if sys.stdout is not None and sys.stdout.isatty() else 150)
err = Console(stderr=True, highlight=False)


def plain(text: str) -> str:
    """Text of a model, without signs that would command the terminal, and without markup."""
    return escape(printable(text))


TITLES = ("layer", "kind", "in", "out", "shape", "MACs", "PE x SIMD", "cycles", "busy", "memory", "FIFO", "how")


def print_verdict(verdict: Verdict) -> None:
    """What the model and every simulator said, and where the first difference is."""
    problems = verdict.diagnostics
    for problem in problems[:20]:
        err.print(f"[red]{problem.code}[/]{escape(str(problem).removeprefix(problem.code))}", soft_wrap=True)
    if len(problems) > 20:
        err.print(f"... and {len(problems) - 20} more problems.")
    model = verdict.model
    state = "[green]equal[/]" if model.ok else "[red]different[/]"
    out.print(f"model: {state}, {model.frames} frames, the output and {model.layers} layers")
    _print_oracle(verdict.oracle)
    for name, v in verdict.simulators.items():
        cycles = f", latency {v.cycles['latency']}, interval {v.cycles['interval']} cycles" if v.cycles else ""
        state = "[green]equal[/]" if v.ok else "[red]different[/]"
        out.print(f"{name}: {state}, {v.samples} frames, {v.mismatches} differing beats{cycles}")
        if v.ok and v.coverage:
            out.print(f"  streams {_seen(v.coverage, 'stalled')}, {_seen(v.coverage, 'starved')}", soft_wrap=True)
        for failure in v.failures:
            err.print(f"  {plain(failure)}", soft_wrap=True)
    where = verdict.first_divergence
    if where:
        cycle = "" if where["cycle"] is None else f", cycle {where['cycle']}"
        out.print(
            plain(
                f"first divergence: layer {where['layer']}, channel {where['channel']} (element {where['element']}), "
                f"frame {where['frame']}{cycle}: expected {where['expected']}, got {where['actual']}"
            )
        )
        if "cut" in where:
            run = shlex.quote(f"{where['cut']}/tb/run.py")
            out.print(f"the layer alone, with a test that fails: python {plain(run)}", soft_wrap=True)
        elif where["layer"] and where["cycle"] is not None:
            out.print("--cut FOLDER writes this layer alone, with a test that fails")
    if verdict.changed and not verdict.simulators:
        out.print("not simulated, as files differ; --allow-changed simulates them if you trust whoever changed them")
    for note in verdict.notes:
        out.print(plain(note), soft_wrap=True)
    predicted = f"latency {verdict.predicted['latency']}, interval {verdict.predicted['interval']}"
    out.print(("[green]verified[/]" if verdict.ok else "[red]NOT verified[/]") + f" (predicted {predicted})")


def _print_oracle(oracle: OracleVerdict) -> None:
    """What ran the file itself, and how its numbers differ."""
    if oracle.asked == "none":
        return
    if not oracle.ran:
        out.print(f"file: not compared, {escape(printable(oracle.reason))}", soft_wrap=True)
        return
    total = sum(oracle.explained.values()) + oracle.unexplained
    sorts = [("unexplained", oracle.unexplained), *sorted(oracle.explained.items())]
    parts = ", ".join(f"{number} {sort}" for sort, number in sorts if number)
    explained = "explained: " if total and oracle.ok else ""
    text = f"{total} differences" + (f" ({explained}{parts})" if total else "")
    state = "[green]equal[/]" if oracle.ok else "[red]different[/]"
    out.print(
        f"file: {state}, {oracle.frames} frames in {escape(oracle.ran)}, {oracle.compared} tensors, {escape(text)}",
        soft_wrap=True,
    )
    reasons = Counter(oracle.left.values())
    for reason, count in reasons.items():
        names = next(name for name, why in oracle.left.items() if why == reason)
        more = f" and {count - 1} more" if count > 1 else ""
        out.print(escape(printable(f"  not compared: {names}{more}: {reason}")), soft_wrap=True)


def _seen(coverage: dict[str, Any], kind: str) -> str:
    """How many streams were seen in a state, and the names of a few that were not."""
    count, never = coverage["streams"], coverage[f"never_{kind}"]
    rest = ", ".join(never[:6]) + (", ..." if len(never) > 6 else "")
    return f"{kind} {count - len(never)} of {count}" + (f" (not {escape(rest)})" if never else "")


def print_summary(summary: dict[str, Any]) -> None:
    """The table of layers, what is left to the host, rates, the estimate."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in TITLES:
        table.add_column(title, overflow="fold")
    for row in summary["layers"]:
        if row["kind"] == "rename":
            continue
        folding = f"{row['pe']} x {row['simd']}" if "pe" in row else str(row.get("lanes", ""))
        how = row.get("realization") or (f"{row['rows']} x {row['columns']}" if "rows" in row else "")
        short = (", ".join(t.split(" ")[0] for t in row[end].split("], ")) for end in ("input", "output"))
        shape = "x".join(str(n) for n in row["shape"] if n > 1) or "1"
        bits = row["weight_bits"] + row["buffer_bits"]
        used = f"{100 * row['utilization']:.0f} %" if "utilization" in row else ""
        cells = (
            row["name"], row["kind"], *short, shape, str(row.get("macs", "")), folding, str(row["cycles"]), used,
            str(bits or ""), str(row["fifo_depth"] or ""), how,
        )  # fmt: skip
        table.add_row(*map(plain, cells))
    out.print(table)
    host = summary["host"]
    for part in ("head", "tail"):
        if host[part]:
            out.print(f"host {part}: " + plain(", ".join(f"{s['op']}" for s in host[part])))
    cycles, rate, estimate = summary["cycles"], summary["rate"], summary["estimate"]
    out.print(
        f"latency {cycles['latency']} cycles, interval {cycles['interval']} cycles: "
        f"{rate['latency_us']:.3g} us, {rate['frames_per_second']:.4g} frames/s at {rate['clock_mhz']:g} MHz"
    )
    device = summary["device"]
    if device is not None:
        guess = device["estimate"]
        parts = (f"{guess[k]} of {device[k]['count']} {device[k]['kind']}" for k in ("lut", "dsp", "bram"))
        out.print(f"estimate for {device['device']}: about {', '.join(parts)}; clock {device['clock']}")
    out.print(
        f"estimate: about {estimate['lut']} LUT, {estimate['dsp']} DSP, {estimate['bram18']} BRAM18; "
        f"{estimate['weight_bits']} weight bits, {estimate['buffer_bits']} buffer bits, "
        f"{estimate['table_bits']} table bits"
    )
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
