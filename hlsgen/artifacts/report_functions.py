"""The quantizers in report.html: drawings and thresholds of their functions, and the reasons for each realization."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

#: Number of functions of a quantizer that are drawn and listed, and of thresholds that are listed.
DRAWN, LISTED, THRESHOLDS = 12, 4, 16
#: Pixels of a drawing.
WIDTH, HEIGHT = 120, 28
#: Most steps of a function that are drawn.
STEPS = 64


def functions(certificate: Mapping[str, Any], layers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row for each quantizer: functions from the certificate, if there is one, and data of the manifest."""
    entries = {entry["layer"]: entry for entry in certificate.get("layers", ())}
    rows = []
    for layer in layers:
        if "tried" not in layer:
            continue
        entry = entries.get(layer["name"], {})
        sets = entry.get("sets") or []
        steps = [function_set for function_set in sets if function_set.get("thresholds")]
        rows.append(
            {
                "name": layer["name"],
                "realization": layer["realization"],
                "input": layer["input"],
                "output": layer["output"],
                "tried": [{**trial, "taken": trial["name"] == layer["taken"]} for trial in layer["tried"]],
                "drawing": sketch(steps) if steps else None,
                "sets": [_listed(function_set) for function_set in steps[:LISTED]],
                "more": max(0, len(steps) - LISTED),
                "count": len(sets),
            }
        )
    return rows


def _listed(function_set: Mapping[str, Any]) -> dict[str, Any]:
    """A function: its channels, its interval, and the input at which each code begins."""
    positions, thresholds, codes = function_set["positions"], function_set["thresholds"], function_set["codes"]
    further = f", … {len(positions)} in all" if len(positions) > 4 else ""
    begins = [{"at": at, "code": code} for at, code in zip(thresholds, codes[1:], strict=False)]
    return {
        "channels": ", ".join(map(str, positions[:4])) + further,
        "interval": function_set["interval"],
        "first": codes[0],
        "begins": begins[:THRESHOLDS],
        "more": max(0, len(begins) - THRESHOLDS),
    }


def sketch(sets: Sequence[Mapping[str, Any]]) -> Markup:
    """Draws step functions into one picture: inputs to the right over their common interval, codes upwards."""
    drawn = sets[:: -(-len(sets) // DRAWN)]
    low, high = (
        min(function_set["interval"][0] for function_set in drawn),
        max(function_set["interval"][1] for function_set in drawn),
    )
    bottom, top = (
        min(min(function_set["codes"]) for function_set in drawn),
        max(max(function_set["codes"]) for function_set in drawn),
    )

    def x(value: float) -> float:
        return float(round((min(max(value, low), high) - low) / max(high - low, 1) * WIDTH, 1))

    def y(code: float) -> float:
        return float(round(HEIGHT - 2 - (code - bottom) / max(top - bottom, 1) * (HEIGHT - 4), 1))

    paths = []
    for function_set in drawn:
        start, end = function_set["interval"]
        pairs = list(zip(function_set["thresholds"], function_set["codes"][1:], strict=False))
        pairs = pairs[:: -(-len(pairs) // STEPS)]
        path = f"M{x(start):g} {y(function_set['codes'][0]):g}"
        path += "".join(f"H{x(at):g}V{y(code):g}" for at, code in pairs)
        paths.append(f'<path d="{path}H{x(end):g}"/>')
    head = f'<svg class="steps" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" aria-hidden="true">'
    return Markup(head + "".join(paths) + "</svg>")  # only numbers: no text from a file
