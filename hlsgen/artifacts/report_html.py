"""report.html: a build on one page, for people. All that it says is in manifest.json, certificate.json and results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from hlsgen.artifacts.report_drawing import Row, dataflow
from hlsgen.artifacts.report_functions import functions
from hlsgen.artifacts.report_results import measured, verified
from hlsgen.devices import CLOCK_MHZ, devices
from hlsgen.library import environment, html_environment

#: Numbers of a constant of a host operation that are shown.
MAX_NUMBERS = 6
#: Units in words, by the name of their kind. Others have the name itself.
WORDS = {
    "AdderMatVec": "adders", "ArgMaxUnit": "arg max", "ConcatBeats": "concat", "ConcatChannels": "concat",
    "ConvUnit": "convolution", "Crop": "crop", "Fifo": "FIFO", "FloatKeyUnit": "float key", "FloatUnit": "float32 unit",
    "Fork": "fork", "GroupedMatVec": "depthwise", "JoinStreams": "join", "MatVec": "matrix-vector", "PadBorder": "border",
    "PoolUnit": "pool", "ReduceTree": "reduction", "Reorder": "reordering", "RescaleUnit": "quantizer", "RowsUnit": "rows",
    "SelectLanes": "selection", "Slice": "slice", "SlidingWindow": "windows", "SoftmaxUnit": "softmax", "TiledPool": "pool", "WidthConverter": "width",
}  # fmt: skip


def page(manifest: Mapping[str, Any], certificate: Mapping[str, Any], results: Sequence[Mapping[str, Any]] = ()) -> str:
    """The HTML text; the same for the same arguments.

    results: of verification (with "simulators") and of synthesis (with "device"), as `hlsgen.driver.results` reads them.
    """
    template = html_environment().get_template("report/report.html.j2")
    rows = _units(manifest)
    interval = manifest["cycles"]["interval"]
    device = devices().get(str(manifest["options"].get("device")))
    clock = device.clock_mhz if device else CLOCK_MHZ
    return template.render(
        m=manifest,
        inputs=_ports(manifest, "input"),
        outputs=_ports(manifest, "output"),
        style=environment().get_template("report/report.css").render(),
        rate=_rounded(clock * 1e6 / interval),
        clock=f"{clock:g}",
        rows=rows,
        drawing=dataflow([row["row"] for row in rows]),
        slowest=_greatest(rows, "cycles"),
        largest=_greatest(rows, "lut"),
        plumbing=sum(row["lut"] for row in rows if row["plumbing"]),
        most_lut=max([row["lut"] for row in rows], default=0) or 1,
        total_lut=sum(row["lut"] for row in rows) or 1,
        sums=_sums(manifest["layers"]),
        functions=functions(certificate, manifest["layers"]),
        certified=_certified(certificate),
        host={part: [_step(step) for step in manifest["host"][part]] for part in ("head", "tail")},
        verified=[verified(result) for result in results if "simulators" in result],
        measured=[measured(result) for result in results if "device" in result],
    )


def _units(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of the drawing: input ports, units, output ports."""
    own = {row["instance"]: row for row in manifest["layers"] if row["instance"]}
    depths = {row["instance"]: row for row in manifest["fifos"]}
    interval = manifest["cycles"]["interval"]
    found, widths = [], {port["port"]: port["lanes"] * port["element_bits"] for port in _ports(manifest, "input")}
    for unit in manifest["units"]:
        name, layer = unit["instance"], own.get(unit["instance"])
        widths[name] = unit["bits"]
        lanes = unit["lanes"]
        found.append({
            **unit,
            "row": Row(name, tuple((sender, widths.get(sender, 1)) for sender in unit["inputs"]), layer is None),
            "title": layer["name"] if layer else name,
            "plumbing": layer is None,
            "what": _what(unit, layer, depths.get(name)),
            "sends": f"{lanes} × {unit['bits'] // max(lanes, 1)} bit",
            "share": unit["beats"] / interval,
            "busy": min(1.0, unit["cycles"] / interval),
        })  # fmt: skip
    inputs, outputs = _ports(manifest, "input"), _ports(manifest, "output")
    last = manifest["units"][-1]["instance"] if manifest["units"] else inputs[0]["port"]
    first = [{**_port("input", port, interval), "row": Row(port["port"], (), False)} for port in inputs]
    senders = [port.get("instance", last) for port in outputs]
    rows = [
        Row(port["port"], ((sender, widths[sender]),), False) for port, sender in zip(outputs, senders, strict=True)
    ]
    final = [{**_port("output", port, interval), "row": row} for port, row in zip(outputs, rows, strict=True)]
    return [*first, *found, *final]


def _ports(manifest: Mapping[str, Any], end: str) -> list[Any]:
    """The input ports or the output ports; `end`: "input" or "output"."""
    return list(manifest.get(f"{end}s") or [manifest[end]])


def _port(end: str, port: Mapping[str, Any], interval: int) -> dict[str, Any]:
    return {
        "title": port["port"], "instance": port["port"], "plumbing": False, "layer": "", "unit": "Port",
        "what": f"{end}: {port['tensor']}, {port['tdata_bits']} bits of tdata",
        "sends": f"{port['lanes']} × {port['element_bits']} bit", "beats": port["beats"], "share": port["beats"] / interval,
        "cycles": port["beats"], "busy": min(1.0, port["beats"] / interval), "lut": 0, "ff": 0, "bram18": 0, "dsp": 0,
    }  # fmt: skip


def _what(unit: Mapping[str, Any], layer: Mapping[str, Any] | None, fifo: Mapping[str, Any] | None) -> str:
    """What a unit is, in a few words."""
    word = WORDS.get(unit["unit"], unit["unit"])
    if fifo is not None:
        return f"{word}, {fifo['depth']} deep" + (", needed" if fifo["critical"] else "")
    if layer is None:
        return f"{word} for {unit['layer']}" if unit["layer"] else word
    if "rows" in layer:
        return f"{layer['kind']}, {layer['rows']} × {layer['columns']}, PE {layer['pe']} × SIMD {layer['simd']}"
    if "realization" in layer:
        return f"{layer['kind']}: {layer['realization']}"
    return str(layer["kind"])


def _greatest(rows: list[dict[str, Any]], key: str) -> dict[str, Any] | None:
    return max(rows, key=lambda row: row[key], default=None)


def _sums(layers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The reachable sums of every layer that has weights, and where they end on an axis of bits."""
    found = []
    for row in layers:
        if "accumulator" in row:
            low, high = row["accumulator"]
            ends = [math.copysign(math.log2(abs(x) + 1), x) for x in (low, high)]
            found.append(
                {
                    "name": row["name"],
                    "low": low,
                    "high": high,
                    "ends": ends,
                    "type": row["output"],
                    "terms": row["columns"],
                }
            )
    most = max([abs(end) for row in found for end in row["ends"]], default=1) or 1
    for row in found:
        left, right = (50 + 50 * end / most for end in row["ends"])
        row["left"], row["width"] = round(left, 2), round(max(right - left, 0.5), 2)
    return found


def _certified(certificate: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the certificate states, by the module that does it."""
    found: dict[str, dict[str, Any]] = {}
    for layer in certificate.get("layers", ()):
        for module in sorted({x["module"] for x in layer["instances"]}):
            row = found.setdefault(module, {"module": module, "instances": 0, "functions": 0, "rows": 0})
            row["instances"] += sum(x["module"] == module for x in layer["instances"])
        row = found[layer["instances"][-1]["module"]] if layer["instances"] else {"functions": 0, "rows": 0}
        row["functions"] += len(layer.get("sets", ()))
        row["rows"] += len(layer.get("lo", ()))
    return [found[name] for name in sorted(found)]


def _step(step: Mapping[str, Any]) -> dict[str, Any]:
    constants = [(name, _constant(value)) for name, value in step.items() if name not in ("node", "op")]
    return {"node": step["node"], "op": step["op"], "constants": constants}


def _constant(value: Any) -> str:
    """The first numbers of an array, as it is; anything else as text, not too long."""
    numbers = list(islice(_numbers(value), MAX_NUMBERS + 1))
    more = ", …" if len(numbers) > MAX_NUMBERS else ""
    if isinstance(value, list) and all(isinstance(number, int | float) for number in numbers):
        return ", ".join(f"{number:.6g}" for number in numbers[:MAX_NUMBERS]) + more
    return str(value)[:200]


def _numbers(value: Any) -> Iterator[Any]:
    for part in value if isinstance(value, list) else [value]:
        yield from _numbers(part) if isinstance(part, list) else [part]


def _rounded(value: float) -> str:
    """A number with three digits: 1.56 million, 174 thousand."""
    for size, word in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{word}"
    return f"{value:.3g}"
