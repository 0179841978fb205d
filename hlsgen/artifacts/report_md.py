"""report.md: for people, what became of every layer and which realizations were tried for its rescaling."""

from __future__ import annotations

from typing import Any

from hlsgen.dataflow.network import Timing
from hlsgen.dataflow.resources import Cost
from hlsgen.diagnostics import counted


def report(
    title: str,
    rows: list[dict[str, Any]],
    timing: Timing,
    cost: Cost,
    host: dict[str, list[dict[str, Any]]],
    note: str = "",
) -> str:
    """Markdown text; `rows`: the layer table of the manifest; layers without hardware are left out. `note`: what targets say of the cycles."""
    size = cost.as_dict()
    lines = [
        f"# {_cell(title)}",
        "",
        f"Latency {counted(timing.latency, 'cycle')}, a frame every {counted(timing.interval, 'cycle').removeprefix('1 ')}."
        if timing.exact
        else f"Latency about {timing.latency} cycles, a frame every {timing.interval} cycles or more: not simulated.",
        "",
        f"Estimate: about {size['lut']} LUT, {size['ff']} FF, {size['dsp']} DSP, {size['bram18']} BRAM18.",
        *(["", note] if note else []),
        "",
        "| layer | kind | in | out | PE x SIMD | cycles | LUT | FF | DSP | BRAM18 | how |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        if row["kind"] == "rename":
            continue
        folding = f"{row['pe']} x {row['simd']}" if "pe" in row else row.get("lanes", "")
        how = row.get("realization") or (f"{row['rows']} x {row['columns']}" if "rows" in row else "")
        about = row["estimate"]
        cells = (
            row["name"],
            row["kind"],
            row["input"],
            row["output"],
            folding,
            row["cycles"],
            *(about[what] for what in ("lut", "ff", "dsp", "bram18")),
            how,
        )
        lines.append("| " + " | ".join(map(_cell, cells)) + " |")
    for part in ("head", "tail"):
        if host[part]:
            lines += ["", f"Left to the host, {part}: " + ", ".join(_cell(step["op"]) for step in host[part]) + "."]
    quantizers = [row for row in rows if "tried" in row]
    if quantizers:
        lines += ["", "## Rescaling", "", "Every function below is proven equal to the model's on its whole interval."]
    for row in quantizers:
        lines += ["", f"### {_cell(row['name'])}", "", f"Taken: {_cell(row['realization'])}.", ""]
        lines += ["| realization | LUT | DSP | bits of block memory | why not |", "|---|---|---|---|---|"]
        for trial in row["tried"]:
            sizes = ("", "", "") if trial["lut"] is None else (trial["lut"], trial["dsp"], trial["memory_bits"])
            lines.append("| " + " | ".join(map(_cell, (trial["name"], *sizes, trial["why"]))) + " |")
    return "\n".join(lines) + "\n"


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")
