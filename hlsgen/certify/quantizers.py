"""Proves functions of one tensor: the units that an element passes compute the model's function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hlsgen.certify.cpp.correct_model import CppCorrectModel
from hlsgen.certify.models import float_pipeline
from hlsgen.certify.models.arithmetic import (
    CascadeModel,
    CompareModel,
    LaneModel,
    ScaleModel,
    ShiftModel,
    ThresholdModel,
)
from hlsgen.certify.models.float32_rounding import FloatScaleModel, PairAddModel, PairScaleModel
from hlsgen.certify.models.lane_shift import LaneShiftModel
from hlsgen.certify.models.lane_table import LaneTableModel
from hlsgen.certify.models.lines import LinesModel
from hlsgen.certify.models.routing import groups_in_frame
from hlsgen.certify.models.tables import CorrectModel, RankModel, TableModel
from hlsgen.certify.netlist_reader import Cell, Memories, broken
from hlsgen.certify.proof import RunLengths, ascending, prove
from hlsgen.certify.stream_contents import Elements, StreamContents, check_codes
from hlsgen.ir import FloatBinary, Layer, Map, Shape
from hlsgen.ir.evaluate import constants, float_to_key
from hlsgen.ir.step_function import StepFunction, merge_equal_sets, specialize
from hlsgen.ir.value_ranges import ValueRange
from hlsgen.numerics.fixed import Array, IntType

#: Module that computes a function of one element -> its model.
MODELS: dict[str, type[LaneModel]] = {
    "hg_threshold": ThresholdModel,
    "hg_compare": CompareModel,
    "hg_shift": ShiftModel,
    "hg_lane_shift": LaneShiftModel,
    "hg_lane_table": LaneTableModel,
    "hg_scale": ScaleModel,
    "hg_rank": RankModel,
    "hg_table": TableModel,
    "hg_lines": LinesModel,
    "hg_correct": CorrectModel,
    "hg_scale_f32": FloatScaleModel,
    "hg_pair_add": PairAddModel,
    "hg_pair_scale": PairScaleModel,
    "hg::correct": CppCorrectModel,
}
#: Modules without LANES, IN_W or OUT_W -> (lanes, bits of an input element, bits of an output element).
_SHAPES: dict[str, tuple[str, str | int, str | int]] = {
    "hg_float_key": ("LANES", 32, 32),
    "hg_f32_unit": ("LANES", 32, 32),
    "hg_f32_round_unit": ("LANES", 32, 32),
    "hg_f32_decode": ("LANES", "IN_W", 32),
    "hg_f32_encode": ("LANES", 32, "OUT_W"),
    "hg_pair_add": ("LANES", 16, 8),
    "hg_pair_scale": ("LANES", 16, "OUT_W"),
}


@dataclass(frozen=True)
class Summary:
    """The proof of a layer: how many functions, how many inputs these have, how many inputs were evaluated."""

    layer: str
    kind: str
    module: str
    functions: int
    inputs: int
    evaluated: int


def widths(cell: Cell) -> tuple[int, int, int]:
    """(lanes, bits of an input element, bits of an output element) of a unit that computes functions."""
    names = _SHAPES.get(cell.module, ("LANES", "IN_W", "OUT_W"))
    missing = [name for name in names if isinstance(name, str) and name not in cell.parameters]
    if missing:
        raise broken(cell.name, f"{cell.module} has no parameter {missing[0]}.")
    lanes, in_bits, out_bits = (cell.number(name, 1) if isinstance(name, str) else name for name in names)
    return lanes, in_bits, out_bits


@dataclass(frozen=True, eq=False)
class QuantizerHardware:
    """The units of a layer. `stream`: the input of the first unit; `order`: the order of its elements.

    `entry`: the layer's entry in the certificate.
    """

    layer: Layer
    units: tuple[Cell, ...]
    stream: StreamContents
    order: Array
    entry: dict[str, Any]

    def uses(self, index: Array, folds: int) -> dict[tuple[int, int], list[int]]:
        """(fold, lane) -> the parameter sets whose elements arrive there. index: each element's set."""
        beat, lane = np.nonzero(self.stream.filled)
        sets = int(index.max()) + 1
        sets_by_lane: dict[tuple[int, int], list[int]] = {}
        for key in ascending(((beat % folds) * self.stream.lanes + lane) * sets + index).tolist():
            place, s = divmod(key, sets)
            sets_by_lane.setdefault(divmod(place, self.stream.lanes), []).append(s)
        return sets_by_lane

    def places(self, index: Array, shape: Shape) -> list[str]:
        """A name of each set: the channel and stream position of its first element."""
        first = np.unique(index, return_index=True)[1]
        channel = self.order[first] % shape[-1] if shape else np.zeros_like(first)
        return [f"channel {c} (stream position {p})" for c, p in zip(channel.tolist(), first.tolist(), strict=True)]

    def module(self, units: tuple[Cell, ...], memories: Memories) -> CascadeModel:
        """The model of units that together compute one function. Raises HG055 for other modules."""
        unknown = [cell.module for cell in units if cell.module not in MODELS]
        if unknown or not units:
            raise broken(self.layer.name, f"there is no model of {unknown[0] if unknown else 'nothing'}.")
        module = CascadeModel([MODELS[cell.module](cell, memories) for cell in units])  # type: ignore[call-arg]
        groups_in_frame(units[-1], self.stream, module.folds, "FOLDS are")
        return module

    def listed(self, sets: int, index: Array) -> list[dict[str, Any]]:
        """The certificate's sets, after a check of their period and positions. Raises HG055."""
        name, period, entries = self.layer.name, self.entry["period"], self.entry["sets"]
        if len(index) % period or (index.reshape(-1, period) != index[:period]).any():
            raise broken(name, f"certificate.json: its functions do not have the period {period}.")
        shorter = (n for n in range(1, period // 2 + 1) if period % n == 0)
        if any((index[:period].reshape(-1, n) == index[:n]).all() for n in shorter):
            raise broken(name, f"certificate.json: the period is less than {period}.")
        positions = [np.flatnonzero(index[:period] == s).tolist() for s in range(sets)]
        check_equal(name, "certificate.json, positions of set", [s["positions"] for s in entries], positions)
        return list(entries)

    def stated_intervals(self) -> ValueRange:
        """The interval of each element of the source that the certificate states. Raises HG055.

        `check_reachable` checks that they contain every code; `listed` checks the positions.
        """
        assert isinstance(self.layer, Map)
        name, period, count = self.layer.name, self.entry["period"], len(self.order)
        if count % period:
            raise broken(name, f"certificate.json: its functions do not have the period {period}.")
        type_ = self.layer.source.type
        low, high = np.full(period, type_.lo), np.full(period, type_.hi)
        for entry in self.entry["sets"]:
            ends_of_set, positions = entry["interval"], [p for p in entry["positions"] if 0 <= p < period]
            if len(ends_of_set) != 2 or not type_.lo <= ends_of_set[0] <= ends_of_set[1] <= type_.hi:
                raise broken(name, f"certificate.json: {ends_of_set} is no interval of {type_}.")
            low[positions], high[positions] = ends_of_set
        ends = np.empty((2, count), np.int64)
        ends[:, self.order] = np.tile([low, high], count // period)
        shape = self.layer.source.shape
        return ends[0].reshape(shape), ends[1].reshape(shape)

    def steps(self, runs: list[RunLengths], places: list[str]) -> None:
        """Check that the certificate's thresholds and codes are the proven ones. Raises HG055."""
        for s, proven in enumerate(runs):
            place, listed_set = f"certificate.json, {places[s]},", self.entry["sets"][s]
            check_equal(self.layer.name, f"{place} threshold", listed_set["thresholds"], proven.start[1:].tolist())
            check_equal(self.layer.name, f"{place} code", listed_set["codes"], proven.code.tolist())

    def form(self, form: str) -> None:
        """Check that the certificate states this form. Raises HG055."""
        if self.entry["form"] != form:
            raise broken(
                self.layer.name, f"certificate.json: the form is {self.entry['form']!r}, for these instances {form!r}."
            )

    @property
    def lists_steps(self) -> bool:
        return any("thresholds" in s for s in self.entry["sets"])


def check_map(
    q: QuantizerHardware, layer: Map, reach: ValueRange | None, elements: Elements, memories: Memories
) -> Summary:
    """Prove that the hardware computes a function of one tensor. Raises HG055."""
    f = specialize(layer, q.order, *(reach or (None, None)))
    if f.sets != len(q.entry["sets"]):
        f = _merge_functions(layer, f)
    places = q.places(f.index, layer.source.shape)
    entries = q.listed(f.sets, f.index)
    intervals = np.stack([f.lo, f.hi], axis=1).tolist()
    check_equal(layer.name, "certificate.json, interval of set", [s["interval"] for s in entries], intervals)
    check_reachable(layer, f.index, f.lo, f.hi, elements, elements.numbers[layer.inputs[0]][q.order])
    if f.is_float and any(isinstance(other_layer, FloatBinary) for other_layer in elements.graph.layers):
        _check_zeros(layer, f)
    total = int((f.hi - f.lo + 1).sum())
    if any(cell.module.startswith("hg_f32_") for cell in q.units):
        q.form("operations")
        fold_counts = {cell.parameters.get("FOLDS") for cell in q.units}
        folds = [n for n in fold_counts if isinstance(n, int) and n > 0 and q.stream.beats % n == 0]
        uses = {n: q.uses(f.index, n) for n in folds}
        if not f.is_float:
            check_codes(q.units[0].name, q.stream, layer.source.type, q.stream.bits, None)
        count = float_pipeline.check(f, list(q.units), memories, uses, places)
        return Summary(layer.name, "quantizer", "float32 units", f.sets, total, count)
    units = q.units
    if f.is_float:
        if units[0].module != "hg_float_key" or set(units[0].parameters) != {"LANES"}:
            raise broken(layer.name, "its float32 input does not go through hg_float_key.")
        units = units[1:]
    module = q.module(units, memories)
    first = module.units[0]
    if f.is_float:
        keys = IntType(0, 0xFFFFFFFF)
        if first.signed not in (None, keys.signed) or first.in_bits != keys.bits:
            raise broken(layer.name, f"{units[0].name} does not read its input as {keys}.")
    else:
        signed = None if first.signed is None else int(first.signed)
        check_codes(units[0].name, q.stream, layer.source.type, first.in_bits, signed)
    proof = prove(f, module, q.uses(f.index, module.folds), units[-1].name, places)
    q.form("steps" if q.lists_steps else "constants")
    q.steps(proof.runs if q.lists_steps else [], places)
    return Summary(layer.name, "quantizer", " + ".join(module.modules), f.sets, total, proof.evaluated)


def _merge_functions(layer: Map, f: StepFunction) -> StepFunction:
    """The functions, with equal functions merged. Raises HG055 if the constants of merged functions differ."""
    merged_functions = merge_equal_sets(f)
    old, new = np.unique(np.stack([f.index, merged_functions.index]), axis=1)
    originals, merged_originals = (
        f.take(old, f.lo[old], f.hi[old]),
        merged_functions.take(new, merged_functions.lo[new], merged_functions.hi[new]),
    )
    pairs = zip(
        (originals.source, *originals.ops, originals.quantizer),
        (merged_originals.source, *merged_originals.ops, merged_originals.quantizer),
        strict=True,
    )
    for a, b in pairs:
        constants_a, constants_b = (
            {name: value.tobytes() for name, value in constants(item).items()} for item in (a, b)
        )
        if type(a) is not type(b) or constants_a != constants_b:
            raise broken(layer.name, "elements with one function in certificate.json have different constants.")
    return merged_functions


def _check_zeros(layer: Map, f: StepFunction) -> None:
    """Check that the function is equal for -0.0 and 0.0, because float32 joins may emit 0.0 for -0.0. Raises HG055."""
    keys = np.zeros(f.sets, np.int64)
    plus, minus = (f.evaluate(keys + float_to_key(np.float32(zero))) for zero in (0.0, -0.0))
    if (plus != minus).any():
        raise broken(layer.name, "it distinguishes -0.0 from 0.0, but float32 joins do not.")


def check_reachable(layer: Layer, index: Array, lo: Array, hi: Array, elements: Elements, numbers: Array) -> None:
    """Check that the interval of each set contains every code of its elements. Raises HG055.

    No element can then have a code for which the function was not proven.
    """
    low, high = elements.code_range(numbers)
    outside = np.flatnonzero((low < lo[index]) | (high > hi[index]))
    if len(outside):
        position = int(outside[0])
        raise broken(
            layer.name,
            f"stream position {position} gets codes of {low[position]}..{high[position]}, its function is proven for "
            f"{lo[index[position]]}..{hi[index[position]]}.",
        )


def check_equal(layer: str, quantity: str, listed_values: list[Any], actual_values: list[Any]) -> None:
    """Check that two lists are equal. Raises HG055 at the first difference."""
    if listed_values == actual_values:
        return
    if len(listed_values) != len(actual_values):
        raise broken(layer, f"{quantity}: {len(listed_values)} are listed, {len(actual_values)} are expected.")
    i = next(i for i, (a, b) in enumerate(zip(listed_values, actual_values, strict=True)) if a != b)
    raise broken(
        layer, f"{quantity} number {i} is {listed_values[i]}, in the hardware and the model it is {actual_values[i]}."
    )
