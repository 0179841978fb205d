"""The quantizers of report.html: their functions as small drawings and numbers, and why each realization was taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

#: Functions of a quantizer that are drawn, and listed; thresholds of a function that are listed.
DRAWN, LISTED, THRESHOLDS = 12, 4, 16
#: Pixels of a drawing.
WIDTH, HEIGHT = 120, 28
#: Steps of a function that are drawn: of more, some.
STEPS = 64


def functions(certificate: Mapping[str, Any], layers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row for each quantizer of the certificate. Of a build without certificate: what the manifest says of them."""
    entries = {entry["layer"]: entry for entry in certificate.get("layers", ())}
    found = []
    for layer in layers:
        if "tried" not in layer:
            continue
        entry = entries.get(layer["name"], {})
        sets = entry.get("sets") or []
        steps = [one for one in sets if one.get("thresholds")]
        found.append({
            "name": layer["name"],
            "realization": layer["realization"],
            "input": layer["input"],
            "output": layer["output"],
            "tried": [{**trial, "taken": trial["name"] == layer["taken"]} for trial in layer["tried"]],
            "drawing": sketch(steps) if steps else None,
            "sets": [_listed(one) for one in steps[:LISTED]],
            "more": max(0, len(steps) - LISTED),
            "count": len(sets),
        })  # fmt: skip
    return found


def _listed(one: Mapping[str, Any]) -> dict[str, Any]:
    """A function: where it holds, and at which input each code begins."""
    positions, thresholds, codes = one["positions"], one["thresholds"], one["codes"]
    more = f", … {len(positions)} in all" if len(positions) > 4 else ""
    begins = [{"at": at, "code": code} for at, code in zip(thresholds, codes[1:], strict=False)]
    return {
        "channels": ", ".join(map(str, positions[:4])) + more,
        "interval": one["interval"],
        "first": codes[0],
        "begins": begins[:THRESHOLDS],
        "more": max(0, len(begins) - THRESHOLDS),
    }


def sketch(sets: Sequence[Mapping[str, Any]]) -> Markup:
    """The step functions over one another: codes upwards, inputs to the right, over the interval of all of them."""
    some = sets[:: -(-len(sets) // DRAWN)]
    low, high = min(one["interval"][0] for one in some), max(one["interval"][1] for one in some)
    bottom, top = min(min(one["codes"]) for one in some), max(max(one["codes"]) for one in some)

    def x(value: float) -> float:
        return float(round((min(max(value, low), high) - low) / max(high - low, 1) * WIDTH, 1))

    def y(code: float) -> float:
        return float(round(HEIGHT - 2 - (code - bottom) / max(top - bottom, 1) * (HEIGHT - 4), 1))

    paths = []
    for one in some:
        start, end = one["interval"]
        pairs = list(zip(one["thresholds"], one["codes"][1:], strict=False))
        pairs = pairs[:: -(-len(pairs) // STEPS)]
        path = f"M{x(start):g} {y(one['codes'][0]):g}"
        path += "".join(f"H{x(at):g}V{y(code):g}" for at, code in pairs)
        paths.append(f'<path d="{path}H{x(end):g}"/>')
    head = f'<svg class="steps" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" aria-hidden="true">'
    return Markup(head + "".join(paths) + "</svg>")  # numbers alone: nothing of it is text of a file
