"""report.md lists the hardware of each layer, and the implementations of its quantizers, as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hlsgen.dataflow.network import Timing
from hlsgen.diagnostics import counted

_COSTS = (
    "Each implementation with a cost is proven equal to the model on its whole input interval. Costs are LUT (+ DSP",
    "blocks, + bits of block RAM) before the fit to synthesis that the estimate of the layer has. `*` marks the chosen",
    "implementation, `-` an impossible one.",
)


def report(
    title: str,
    rows: list[dict[str, Any]],
    timing: Timing,
    estimate: dict[str, int],
    host: dict[str, list[dict[str, Any]]],
    resources: dict[str, str],
    note: str = "",
    loops: Sequence[Sequence[str]] = (),
) -> str:
    """Markdown text of the report.

    rows: the layer table of the manifest. Layers without hardware are left out. resources: names of
    those in `estimate`. note: the target's remark on cycles. loops: names of the layers of each one.
    """
    counts = ", ".join(f"{estimate[key]} {name}" for key, name in resources.items())
    lines = [
        f"# {_cell(title)}",
        "",
        _cycles(timing),
        "",
        f"Estimate: about {counts}.",
        *(["", note] if note else []),
        "",
        _line("layer", "kind", "in", "out", "PE x SIMD", "cycles", *resources.values(), "implementation"),
        _line(*["---"] * (7 + len(resources))),
    ]
    lines += [_layer(row, resources) for row in rows if row["kind"] != "rename"]
    for layers in loops:
        lines += ["", f"Loop: {_cell(' → '.join((*layers, layers[0])))}."]
    for part, name in (("head", "preprocessing"), ("tail", "postprocessing")):
        if host[part]:
            lines += ["", f"Host {name}: " + ", ".join(_cell(step["op"]) for step in host[part]) + "."]
    return "\n".join(lines + _quantizers([row for row in rows if "tried" in row])) + "\n"


def _cycles(timing: Timing) -> str:
    if timing.exact:
        interval = counted(timing.interval, "cycle").removeprefix("1 ")
        fixed = " for every frame" if timing.fixed else ""
        return f"Latency {counted(timing.latency, 'cycle')}{fixed}, a frame every {interval}."
    return f"Latency about {timing.latency} cycles, a frame every {timing.interval} cycles or more: not simulated."


def _layer(row: dict[str, Any], resources: Iterable[str]) -> str:
    """The line of a layer."""
    folding = f"{row['pe']} x {row['simd']}" if "pe" in row else row.get("lanes", "")
    implementation = row.get("realization") or (f"{row['rows']} x {row['columns']}" if "rows" in row else "")
    estimate = (row["estimate"][resource] for resource in resources)
    names = (row["name"], row["kind"], row["input"], row["output"])
    return _line(*names, folding, row["cycles"], *estimate, implementation)


def _quantizers(rows: list[dict[str, Any]]) -> list[str]:
    """The costs of all implementations of each quantizer, then the reasons why others are impossible, once each."""
    tables: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    reasons: dict[str, list[str]] = {}
    for row in rows:
        tables.setdefault(tuple(trial["name"] for trial in row["tried"]), []).append(row)
        for trial in row["tried"]:
            if trial["lut"] is None:
                reasons.setdefault(f"{trial['name']}: {trial['why']}", []).append(row["name"])
    lines = ["", "## Quantizers", "", *_COSTS] if rows else []
    for names, quantizers in tables.items():
        lines += ["", _line("quantizer", *names), _line(*["---"] * (len(names) + 1))]
        for row in quantizers:
            lines.append(_line(row["name"], *(_cost(trial, row["taken"]) for trial in row["tried"])))
    if reasons:
        lines.append("")
    for reason, impossible in reasons.items():
        names_of = "all quantizers" if len(impossible) == len(rows) > 1 else ", ".join(impossible)
        lines.append(f"- {_cell(reason)} ({_cell(names_of)})")
    return lines


def _cost(trial: dict[str, Any], chosen: str) -> str:
    if trial["lut"] is None:
        return "-"
    parts = [f"{trial['lut']:.0f}"]
    parts += [f"{trial['dsp']} DSP"] if trial["dsp"] else []
    parts += [f"{trial['memory_bits']} bits"] if trial["memory_bits"] else []
    return ("* " if trial["name"] == chosen else "") + " + ".join(parts)


def _line(*cells: object) -> str:
    return "| " + " | ".join(map(_cell, cells)) + " |"


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")
