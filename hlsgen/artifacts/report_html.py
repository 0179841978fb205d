"""report.html shows a build on one page. Its data come from manifest.json, certificate.json and results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from hlsgen.artifacts.report_drawing import Row, dataflow
from hlsgen.artifacts.report_functions import functions
from hlsgen.artifacts.report_results import measured, verified
from hlsgen.artifacts.unit_table import loops_of
from hlsgen.devices import CLOCK_MHZ, devices, resource_names
from hlsgen.library import environment, html_environment

#: Numbers of a constant of a host operation that are shown.
MAX_NUMBERS = 6
#: Units in words, by the name of their class; others keep that name.
WORDS = {
    "AdderMatVec": "adders",
    "ArgMaxUnit": "arg max",
    "ConcatBeats": "concat",
    "ConcatChannels": "concat",
    "ConvUnit": "convolution",
    "Crop": "crop",
    "Fifo": "FIFO",
    "FloatKeyUnit": "float key",
    "FloatUnit": "float32 unit",
    "Fork": "fork",
    "GroupedMatVec": "depthwise",
    "JoinStreams": "join",
    "MatVec": "matrix-vector",
    "NeuronUnit": "neurons",
    "PadBorder": "border",
    "PoolUnit": "pool",
    "ReduceTree": "reduction",
    "Reorder": "reordering",
    "RescaleUnit": "quantizer",
    "RowsUnit": "rows",
    "SelectLanes": "selection",
    "Slice": "slice",
    "SlidingWindow": "windows",
    "SoftmaxUnit": "softmax",
    "TiledPool": "pool",
    "WidthConverter": "width",
}


def page(manifest: Mapping[str, Any], certificate: Mapping[str, Any], results: Sequence[Mapping[str, Any]] = ()) -> str:
    """The HTML text; the same for the same arguments.

    results: of verification (with "simulators") and of synthesis (with "device"), as `hlsgen.driver.results` reads
    them.
    """
    template = html_environment().get_template("report/report.html.j2")
    rows = _units(manifest)
    interval = manifest["cycles"]["interval"]
    device = devices().get(str(manifest["options"].get("device")))
    clock = device.clock_mhz if device else CLOCK_MHZ
    return template.render(
        m=manifest,
        names=resource_names(device),
        device=device,
        inputs=_ports(manifest, "input"),
        outputs=_ports(manifest, "output"),
        style=environment().get_template("report/report.css").render(),
        rate=_rounded(clock * 1e6 / interval),
        clock=f"{clock:g}",
        rows=rows,
        drawing=dataflow([row["row"] for row in rows]),
        loops=loops_of(manifest["units"]),
        slowest=_greatest(rows, "cycles"),
        largest=_greatest(rows, "lut"),
        plumbing=sum(row["lut"] for row in rows if row["plumbing"]),
        bar_lut=device.lut if device else max([row["lut"] for row in rows], default=0) or 1,
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
    layer_of_instance = {row["instance"]: row for row in manifest["layers"] if row["instance"]}
    depths = {row["instance"]: row for row in manifest["fifos"]}
    interval = manifest["cycles"]["interval"]
    units, widths = [], {port["port"]: port["lanes"] * port["element_bits"] for port in _ports(manifest, "input")}
    widths |= {unit["instance"]: unit["bits"] for unit in manifest["units"]}
    for unit in manifest["units"]:
        name, layer = unit["instance"], layer_of_instance.get(unit["instance"])
        lanes = unit["lanes"]
        units.append(
            {
                **unit,
                "row": Row(name, tuple((sender, widths.get(sender, 1)) for sender in unit["inputs"]), layer is None),
                "title": layer["name"] if layer else name,
                "plumbing": layer is None,
                "what": _describe(unit, layer, depths.get(name)),
                "sends": f"{lanes} × {unit['bits'] // max(lanes, 1)} bit",
                "share": unit["beats"] / interval,
                "busy": min(1.0, unit["cycles"] / interval),
            }
        )
    inputs, outputs = _ports(manifest, "input"), _ports(manifest, "output")
    consumed = {sender for unit in manifest["units"] for sender in unit["inputs"]}
    ends = [unit["instance"] for unit in manifest["units"] if unit["instance"] not in consumed]
    last_unit = ends[-1] if ends else inputs[0]["port"]
    input_rows = [{**_port("input", port, interval), "row": Row(port["port"], (), False)} for port in inputs]
    senders = [port.get("instance", last_unit) for port in outputs]
    rows = [
        Row(port["port"], ((sender, widths[sender]),), False) for port, sender in zip(outputs, senders, strict=True)
    ]
    output_rows = [{**_port("output", port, interval), "row": row} for port, row in zip(outputs, rows, strict=True)]
    return [*input_rows, *units, *output_rows]


def _ports(manifest: Mapping[str, Any], end: str) -> list[Any]:
    """The input ports or the output ports; `end`: "input" or "output"."""
    return list(manifest.get(f"{end}s") or [manifest[end]])


def _port(end: str, port: Mapping[str, Any], interval: int) -> dict[str, Any]:
    return {
        "title": port["port"],
        "instance": port["port"],
        "plumbing": False,
        "layer": "",
        "unit": "Port",
        "what": f"{end}: {port['tensor']}, {port['tdata_bits']} bits of data",
        "sends": f"{port['lanes']} × {port['element_bits']} bit",
        "beats": port["beats"],
        "share": port["beats"] / interval,
        "cycles": port["beats"],
        "busy": min(1.0, port["beats"] / interval),
        "lut": 0,
        "ff": 0,
        "bram": 0,
        "dsp": 0,
    }


def _describe(unit: Mapping[str, Any], layer: Mapping[str, Any] | None, fifo: Mapping[str, Any] | None) -> str:
    """A unit in a few words."""
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
    """Reachable sums of each layer with weights, and their ends on an axis of bits."""
    rows = []
    for row in layers:
        if "accumulator" in row:
            low, high = row["accumulator"]
            ends = [math.copysign(math.log2(abs(x) + 1), x) for x in (low, high)]
            rows.append(
                {
                    "name": row["name"],
                    "low": low,
                    "high": high,
                    "ends": ends,
                    "type": row["output"],
                    "terms": row["columns"],
                }
            )
    largest = max([abs(end) for row in rows for end in row["ends"]], default=1) or 1
    for row in rows:
        left_edge, right_edge = (50 + 50 * end / largest for end in row["ends"])
        row["left"], row["width"] = round(left_edge, 2), round(max(right_edge - left_edge, 0.5), 2)
    return rows


def _certified(certificate: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Counts of certified instances, functions and rows, by module."""
    rows: dict[str, dict[str, Any]] = {}
    for layer in certificate.get("layers", ()):
        for module in sorted({x["module"] for x in layer["instances"]}):
            row = rows.setdefault(module, {"module": module, "instances": 0, "functions": 0, "rows": 0})
            row["instances"] += sum(x["module"] == module for x in layer["instances"])
        row = rows[layer["instances"][-1]["module"]] if layer["instances"] else {"functions": 0, "rows": 0}
        row["functions"] += len(layer.get("sets", ()))
        row["rows"] += len(layer.get("lo", ()))
    return [rows[name] for name in sorted(rows)]


def _step(step: Mapping[str, Any]) -> dict[str, Any]:
    constants = [(name, _constant(value)) for name, value in step.items() if name not in ("node", "op")]
    return {"node": step["node"], "op": step["op"], "constants": constants}


def _constant(value: Any) -> str:
    """The first numbers of an array; any other value as text of at most 200 characters."""
    numbers = list(islice(_numbers(value), MAX_NUMBERS + 1))
    ellipsis = ", …" if len(numbers) > MAX_NUMBERS else ""
    if isinstance(value, list) and all(isinstance(number, int | float) for number in numbers):
        return ", ".join(f"{number:.6g}" for number in numbers[:MAX_NUMBERS]) + ellipsis
    return str(value)[:200]


def _numbers(value: Any) -> Iterator[Any]:
    for part in value if isinstance(value, list) else [value]:
        yield from _numbers(part) if isinstance(part, list) else [part]


def _rounded(value: float) -> str:
    """A number with three digits and a prefix: 1.56 M, 174 k."""
    for size, word in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{word}"
    return f"{value:.3g}"
