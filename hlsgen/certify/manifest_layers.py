"""The tables of manifest.json, derived from the netlist: layers, units, FIFOs, and units with writable weights."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable
from typing import Any

from hlsgen import ir
from hlsgen.certify.binary_functions import WAYS
from hlsgen.certify.checker import Checker
from hlsgen.certify.connectivity import Netlist
from hlsgen.certify.json_compare import NotProven, OneOf
from hlsgen.certify.models.routing import ROUTING
from hlsgen.certify.netlist_reader import Cell, Memories, broken
from hlsgen.certify.port_wiring import port_name

#: A target's estimate of the resources of a layer or of the core.
ESTIMATE = {
    name: NotProven("estimates", lambda value: type(value) is int and value >= 0)
    for name in ("lut", "ff", "bram", "dsp")
}
#: Layers without hardware.
_NO_HARDWARE = (ir.View, ir.StreamedInput, ir.StreamedOutputs)
#: Units with weights in a memory.
_WEIGHTED = ("hg_mvu", "hg_conv", "hg_dwconv", "hg_dwmvu")
#: Realization -> its modules, all of them; or any of them for realizations in _FREE.
REALIZATIONS = {
    "shift": ("hg_shift",),
    "lane-shift": ("hg_lane_shift",),
    "lane-table": ("hg_lane_table",),
    "neuron-table": ("hg_lut_network",),
    "scale": ("hg_scale",),
    "float-scale": ("hg_scale_f32",),
    "correct": ("hg_correct",),
    "compare": ("hg_compare",),
    "thresholds": ("hg_threshold",),
    "indexed": ("hg_threshold", "hg_table"),
    "shared-table": ("hg_shift", "hg_table"),
    "shared-indexed": ("hg_shift", "hg_threshold", "hg_table"),
    "rank": ("hg_rank",),
    "table": ("hg_table",),
    "lines": ("hg_lines",),
    "pair": ("hg_pair_add", "hg_pair_scale", "hg_table"),
    "float-units": ("hg_f32_unit", "hg_f32_round_unit", "hg_f32_decode", "hg_f32_encode", "hg_threshold"),
}
_ANY_SUBSET = ("pair", "float-units")


def rows(
    checker: Checker,
    entries: list[dict[str, Any]],
    named: dict[str, str],
    interval: int | None,
    state_entries: list[dict[str, Any]],
) -> list[dict[str, Any]]:
    """One row for each layer, with `state_entries` for the inputs that are states.

    `interval`: cycles between frames, from the manifest.
    """
    remaining_entries, states = iter(entries), {entry["layer"]: entry for entry in state_entries}
    return [
        _row(
            checker,
            layer,
            states.get(layer.name) if isinstance(layer, _NO_HARDWARE) else next(remaining_entries),
            named,
            interval,
        )
        for layer in checker.graph.layers
    ]


def _row(
    checker: Checker, layer: ir.Layer, entry: dict[str, Any] | None, named: dict[str, str], interval: int | None
) -> dict[str, Any]:
    instance = named.get(layer.name) if entry else None
    cells = [checker.network.cells[x["instance"]] for x in entry["instances"]] if entry else []
    # Instances after the layer's last one belong to the output port.
    end = next((n + 1 for n, cell in enumerate(cells) if cell.name == instance), 0)
    cells = cells[:end]
    row: dict[str, Any] = {
        "name": layer.name,
        "kind": "",
        "input": ", ".join(str(source.type) for source in ir.sources_of(layer)),
        "output": str(layer.result.type),
        "shape": list(layer.result.shape),
        "cycles": NotProven("cycles", lambda value: type(value) is int and value >= 0),
        "instance": instance,
        "estimate": ESTIMATE,
        "weight_bits": sum(_stored_bits(cell, checker.memories) for cell in cells if cell.module in _WEIGHTED),
        "buffer_bits": sum(_buffer_bits(cell, checker.input_beats[cell.name][1]) for cell in cells),
        "fifo_depth": max((cell.number("DEPTH") for cell in cells if cell.module == "hg_fifo"), default=0),
    }
    lanes = {"lanes": checker.input_beats[instance][0]} if instance else {}
    match layer:
        case ir.Linear() | ir.Convolution():
            return row | _matrix_row(layer, cells[-1] if cells else None, interval)
        case ir.MatrixProduct():
            return row | _product_row(layer, cells[-1], interval)
        case ir.Map() | ir.BinaryMap():
            assert entry is not None
            kind = "quantizer" if isinstance(layer, ir.Map) else layer.kind.value
            return row | {"kind": kind} | lanes | _realization(layer.name, entry, cells)
        case ir.Pooling():
            return row | {"kind": f"{layer.kind.value} pool"} | lanes
        case ir.Rearrange():
            return row | {"kind": type(layer.op).__name__.lower()} | lanes
        case ir.Concatenation():
            return row | {"kind": "concat"} | lanes
        case ir.Delay():
            return row | {"kind": "state"} | lanes
        case ir.FloatBinary():
            return row | {"kind": f"{layer.kind.value} of float32"} | lanes
        case ir.PackBytes():
            return row | {"kind": "pair"} | lanes
        case ir.View():
            return row | {"kind": "rename"}
        case ir.StreamedInput() | ir.StreamedOutputs():
            return row | {"kind": "port"}
        case ir.ArgMaxLayer():
            return row | {"kind": "argmax"}
        case ir.SoftmaxRows():
            return row | {"kind": "softmax"} | lanes
        case ir.IntegerRows(merged=merged):
            return row | {"kind": "integer rows"} | lanes | ({"merged": list(merged)} if merged else {})
        case ir.NormRows():
            return row | {"kind": f"{layer.kind.value} norm"} | lanes


def _realization(name: str, entry: dict[str, Any], cells: list[Cell]) -> dict[str, Any]:
    """Name of the realization, which must fit the modules; and the number of its steps if they are listed."""
    listed_name, sets = entry["realization"], entry["sets"]
    cells = [cell for cell in cells if cell.module not in ROUTING | {"hg_unfold", "hg_float_key"}]
    join_index = next((n for n, cell in enumerate(cells) if cell.module in (*WAYS, "hg_f32_join")), -1)
    kind, _, formula = listed_name.partition(" of ")
    modules, actual_modules = set(REALIZATIONS.get(kind, ())), {cell.module for cell in cells[join_index + 1 :]}
    if not actual_modules or not (
        actual_modules <= modules and actual_modules != {"hg_threshold"}
        if kind in _ANY_SUBSET
        else actual_modules == modules
    ):
        raise broken(
            name, f"certificate.json: the realization is {listed_name!r}, made of {', '.join(sorted(actual_modules))}."
        )
    if (join_index >= 0) != bool(formula) or (formula and formula not in _formulas(cells[join_index], join_index)):
        raise broken(
            name, f"certificate.json: the realization is {listed_name!r}, the operands are joined differently."
        )
    if entry["form"] == "steps":
        codes = [code for s in sets for code in s["codes"]]
        counts = {max(1, *(len(s["thresholds"]) for s in sets)), max(1, max(codes) - min(codes))}
        text: Any = OneOf(tuple(f"{listed_name}, {n} steps x {len(sets)} sets" for n in sorted(counts)))
    else:
        pattern = re.compile(rf"{re.escape(listed_name)}(, \d+ steps x {len(sets)} sets)?")
        text = NotProven("estimates", lambda value: isinstance(value, str) and bool(pattern.fullmatch(value)))
    tried = NotProven("estimates", lambda value: isinstance(value, list) and all(isinstance(x, dict) for x in value))
    return {"realization": text, "taken": listed_name, "tried": tried}


def _formulas(join: Cell, tables: int) -> list[str]:
    """Possible formulas of a join of operands a and b, `tables` of which pass through a lookup table: A(a), B(b)."""
    parameters = {name: value for name, value in join.parameters.items() if isinstance(value, int)}
    if join.module == "hg_f32_join":
        return [f"a {'-' if parameters['OP'] == 5 else '+*'[parameters['OP']]} b in float32"]
    if join.module == "hg_join_pair":
        return ["{b, a}"]
    formulas = []
    for a, b in itertools.product(("a", "A(a)"), ("b", "B(b)")):
        if (len(a) > 1) + (len(b) > 1) == tables:
            pairs = (
                ((parameters["ZA"], a), (parameters["ZB"], b))
                if join.module == "hg_join_product"
                else ((parameters["FA"], a), (parameters["FB"], b))
            )
            if join.module == "hg_join_product":
                formulas.append(" ".join(f"({x} {'+' if z < 0 else '-'} {abs(z)})" if z else x for z, x in pairs))
            else:
                terms = [(f < 0, x if f in (1, -1) else f"{abs(f)} {x}") for f, x in pairs if f]
                text = " ".join(f"{'-' if minus else '+'} {term}" for minus, term in terms)
                formulas.append(text.removeprefix("+ ") or "0")
    return formulas


def _matrix_row(layer: ir.Linear | ir.Convolution, cell: Cell | None, interval: int | None) -> dict[str, Any]:
    """Sizes of a matrix; `cell` is None if lookup tables compute it together with its quantizer."""
    outputs, columns = len(layer.weight), math.prod(layer.weight.shape[1:])
    depthwise = isinstance(layer, ir.Convolution) and 1 < layer.groups == outputs and layer.weight.shape[3] == 1
    kind = "popcount" if layer.binary else "linear" if isinstance(layer, ir.Linear) else "conv"
    pe, simd = outputs, columns
    if cell is not None:
        pe = cell.number("PE") * (cell.number("WINDOWS") if "WINDOWS" in cell.parameters else 1)
        simd = _columns(cell)
    macs = layer.result.size * columns
    busy = NotProven("cycles", lambda value: isinstance(value, float))
    return {
        "kind": "depthwise" if depthwise else kind,
        "rows": outputs,
        "columns": columns,
        "pe": pe,
        "simd": simd,
        "macs": macs,
        "utilization": round(macs / (pe * simd * interval), 4) if interval else busy,
        "accumulator": [int(layer.lo.min()), int(layer.hi.max())],
    }


def _product_row(layer: ir.MatrixProduct, cell: Cell, interval: int | None) -> dict[str, Any]:
    pe, simd, macs = cell.number("PE", 1), cell.number("SIMD", 1), layer.result.size * layer.depth
    busy = NotProven("cycles", lambda value: isinstance(value, float))
    return {
        "kind": "product",
        "rows": layer.result.shape[-1],
        "columns": layer.depth,
        "pe": pe,
        "simd": simd,
        "macs": macs,
        "utilization": round(macs / (pe * simd * interval), 4) if interval else busy,
        "accumulator": [layer.result.type.lo, layer.result.type.hi],
    }


def _columns(cell: Cell) -> int:
    """Elements that a row of the unit consumes in a beat."""
    parameters = {name: value for name, value in cell.parameters.items() if isinstance(value, int)}
    if cell.module == "hg_dwconv":
        return 1
    return parameters["TAPS"] * parameters.get("COLUMNS", 1) if cell.module == "hg_dwmvu" else parameters["SIMD"]


def _stored_bits(cell: Cell, memories: Memories) -> int:
    """Bits of the weights in the memory of a unit."""
    words, bits = memories.sizes[f"rtl/{cell.file}"]
    return words * bits


def _buffer_bits(cell: Cell, beat: int) -> int:
    """Bits of the elements that a unit buffers. `beat`: bits of an input beat."""
    parameters = {name: value for name, value in cell.parameters.items() if isinstance(value, int)}
    match cell.module:
        case "hg_fifo" | "hg_conv" | "hg_dwconv" | "hg_pool":
            return parameters["DEPTH"] * beat
        case "hg_unfold":
            return parameters["ROWS"] * parameters["COLUMNS"] * parameters["FOLDS"] * beat
        case "hg_state":
            return parameters["BEATS"] * parameters["WIDTH"]
        case "hg_gather":
            return 2 * parameters["BLOCK"] * beat
        case "hg_rows_max" | "hg_rows_share" | "hg_rows_fixed_share" | "hg_rows_norm" | "hg_softmax":
            return 2 * parameters["BEATS"] * beat
        case "hg_reduce":
            places = parameters["WIDTH"] // parameters["KW"] if parameters["KH"] > 1 else 1
            return parameters["FOLDS"] * places * parameters["LANES"] * parameters["ACC_W"]
        case _:
            return 0


def units(network: Netlist) -> list[dict[str, Any]]:
    """One row for each instance between the ports, in the order of the top level."""
    producers = producers_of(network)
    count, size = _nonnegative_integer("cycles"), _nonnegative_integer("estimates")
    text = NotProven("estimates", lambda value: isinstance(value, str))
    return [
        {
            "instance": name,
            "unit": text,
            "layer": text,
            "inputs": [producers[stream] for stream in network.streams_in[name]],
            "bits": network.widths[network.streams_out[name][0]],
            "lanes": size,
            "beats": count,
            "cycles": count,
            "lut": size,
            "ff": size,
            "bram": size,
            "dsp": size,
        }
        for name in network.cells
    ]


def producers_of(network: Netlist) -> dict[str, str]:
    """The instance that sends each stream; for streams of an input port, the name of the port."""
    ports = {wire: port_name(cell) for cell, wire in network.inputs}
    return ports | {stream: name for name, streams in network.streams_out.items() for stream in streams}


def _nonnegative_integer(assumption: str) -> NotProven:
    return NotProven(assumption, lambda value: type(value) is int and value >= 0)


def fifos(cells: Iterable[Cell]) -> list[dict[str, Any]]:
    """One row for each FIFO."""
    critical = NotProven("cycles", lambda value: type(value) is bool)
    return [
        {"instance": x.name, "depth": x.number("DEPTH"), "bits": x.number("WIDTH"), "critical": critical}
        for x in cells
        if x.module == "hg_fifo"
    ]


def weight_units(cells: Iterable[Cell], entries: list[dict[str, Any]], memories: Memories) -> list[dict[str, Any]]:
    """One row for each unit with weights that can be written at run time, in the order of their numbers."""
    layer = {x["instance"]: entry["layer"] for entry in entries for x in entry["instances"]}
    unit_rows = []
    for cell in cells:
        if "LOAD_UNIT" in cell.parameters:
            columns, bits = _columns(cell), cell.number("W_W", 1)
            words, width = memories.sizes[f"rtl/{cell.file}"]
            signs = "0 means -1, 1 means 1" if cell.number("MODE") else "two's complement"
            unit_rows.append(
                {
                    "unit": cell.number("LOAD_UNIT"),
                    "layer": layer[cell.name],
                    "instance": cell.name,
                    "file": f"rtl/{cell.file}",
                    "words": words,
                    "word_bits": width,
                    "pieces": (width + 31) // 32,
                    "rows": cell.number("PE"),
                    "columns": columns,
                    "weight_bits": bits,
                    "layout": (
                        "words in the order of the file; each word in pieces, low 32 bits first; the weight of "
                        f"row r and column c of a word is in bits [(r * {columns} + c) * {bits} +: {bits}], {signs}"
                    ),
                }
            )
    return unit_rows
