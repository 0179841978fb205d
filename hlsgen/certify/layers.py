"""Each layer of the model against the instances that stand for it, and against what the certificate says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hlsgen.certify import floats
from hlsgen.certify.arithmetic import Compare, InTurn, Lanes, Scale, Shift, Threshold
from hlsgen.certify.proof import prove
from hlsgen.certify.rounded import FloatScale, PairAdd, PairScale
from hlsgen.certify.tables import Correct, Rank, Table
from hlsgen.certify.verilog import Cell, Memories, Sized, broken, two_complement
from hlsgen.certify.wiring import Port, ports
from hlsgen.fixed import Array, IntType
from hlsgen.ir import FloatBits, Graph, Layer, Linear, Map, Relabel, Winner
from hlsgen.rescale.step import StepFunction, specialize

#: The modules that realize a function by themselves, and their models.
MODELS: dict[str, type[Lanes]] = {
    "hg_threshold": Threshold, "hg_compare": Compare, "hg_shift": Shift, "hg_scale": Scale, "hg_rank": Rank,
    "hg_table": Table, "hg_correct": Correct, "hg_scale_f32": FloatScale, "hg_pair_add": PairAdd, "hg_pair_scale": PairScale,
}  # fmt: skip
_MVU = frozenset("SIMD PE COL_FOLDS ROW_FOLDS X_W X_SIGNED W_W MODE ACC_W FILE EVERY".split())


@dataclass(frozen=True)
class Summary:
    """What was proven of a layer: functions, the inputs they have, and how many of these were evaluated."""

    layer: str
    kind: str
    module: str
    functions: int
    inputs: int
    evaluated: int


class Checker:
    """Walks the layers; `port` and `beats` are the stream behind the last one."""

    def __init__(
        self, graph: Graph, orders: list[Array], cells: list[Cell], memories: Memories, entries: list[dict[str, Any]]
    ) -> None:
        self.graph, self.orders, self.memories = graph, orders, memories
        self.cells, self.entries = {cell.name: cell for cell in cells}, entries
        self.reach: tuple[Array, Array] | None = None  # of the last layer's rows, if it is linear

    def start(self, first: Cell) -> None:
        """The input port. Raises HG055."""
        type_ = self.graph.input.type
        bits = 32 if isinstance(self.graph.input.decode, FloatBits) else type_.bits
        width, elements = first.number("WIDTH", 1), len(self.orders[0])
        if width % bits:
            raise broken(first.name, f"WIDTH is {width}, no multiple of the {bits} bits of {type_}.")
        self.port = Port(width // bits, bits)
        self.beats = -(-elements // self.port.lanes)
        self._frame(first)

    def end(self, last: Cell) -> None:
        self._frame(last)

    def _frame(self, cell: Cell) -> None:
        wanted = {"WIDTH": self.port.width, "TDATA_W": -(-self.port.width // 8) * 8, "BEATS": self.beats}
        if cell.parameters != wanted:
            raise broken(cell.name, f"parameters are {_shown(cell)}, a frame of this core needs {wanted}.")

    def stream(self, i: int, entry: dict[str, Any]) -> list[Cell]:
        """The units of a layer, each of which takes what the one before sends. Raises HG055."""
        layer = self.graph.layers[i]
        cells = [self.cells[x["instance"]] for x in entry["instances"]]
        for cell in cells:
            takes, sends = ports(cell)
            if takes != self.port:
                raise broken(
                    layer.name, f"{cell.name} takes {takes.lanes} x {takes.bits} bits a beat, "
                    f"gets {self.port.lanes} x {self.port.bits}.",
                )  # fmt: skip
            self._regroup(layer, cell, sends)
        if self.port.bits != layer.result.type.bits:
            raise broken(layer.name, f"its codes have {self.port.bits} bits, {layer.result.type} has another width.")
        return cells

    def layer(self, i: int, cells: list[Cell], entry: dict[str, Any]) -> Summary:
        """What a layer computes. Raises HG055."""
        layer = self.graph.layers[i]
        reach = self.reach if i and isinstance(self.graph.layers[i - 1], Linear) else None
        match layer:
            case Linear():
                self.reach = layer.lo, layer.hi  # Behind weights that are wrong, those of the model.
                return self._linear(i, layer, cells, entry)
            case Map():
                return self._map(i, layer, cells, entry, reach)
            case _:
                assert isinstance(layer, Winner)
                return self._winner(layer, cells)

    def _regroup(self, layer: Layer, cell: Cell, sends: Port) -> None:
        """Beats behind a unit, by the number of elements that it sends."""
        elements = self.port.lanes * self.beats
        if cell.module in ("hg_width", "hg_mvu", "hg_argmax") and elements != layer.source.size:
            raise broken(layer.name, f"{cell.name} gets {elements} elements a frame, not {layer.source.size}.")
        if cell.module in ("hg_mvu", "hg_argmax"):
            elements = layer.result.size
        if elements % sends.lanes:
            raise broken(layer.name, f"{cell.name} sends {sends.lanes} elements a beat, of {elements}.")
        self.port, self.beats = sends, elements // sends.lanes

    # ----------------------------------------------------------------------- linear layers

    def _linear(self, i: int, layer: Linear, cells: list[Cell], entry: dict[str, Any]) -> Summary:
        name = layer.name
        if [c.module for c in cells] not in (["hg_mvu"], ["hg_width", "hg_mvu"]):
            raise broken(name, f"{[c.module for c in cells]} is no matrix-vector unit.")
        if cells[0].module == "hg_width" and set(cells[0].parameters) != {"UNIT", "IN", "OUT"}:
            raise broken(name, f"{cells[0].name} has other parameters than its model.")
        cell = cells[-1]
        if set(cell.parameters) != _MVU:
            raise broken(name, f"{cell.name} has other parameters than its model.")
        rows, columns = layer.weight.shape
        simd, pe, cols, groups = (cell.number(x, 1) for x in ("SIMD", "PE", "COL_FOLDS", "ROW_FOLDS"))
        mode, width = cell.number("MODE"), cell.number("W_W", 1)
        source, result = layer.source.type, layer.result.type
        if (simd * cols, pe * groups) != (columns, rows):
            raise broken(
                name, f"{cell.name} has {pe} x {groups} rows of {simd} x {cols}, the model {rows} of {columns}."
            )
        if cell.number("X_SIGNED") != int(source.signed) or cell.number("EVERY") > 64:
            raise broken(name, f"X_SIGNED or EVERY of {cell.name} does not fit {source}.")
        if mode > 2 or (mode == 2) != layer.binary or (mode and width != 1) or (mode == 2 and source.bits != 1):
            raise broken(
                name, f"MODE {mode} of {cell.name} with weights of {width} bits is not what the model computes."
            )
        words = self.memories.fields(cell.file, groups * cols, pe * simd, width)
        folded = words.reshape(groups, cols, pe, simd).transpose(0, 2, 1, 3).reshape(rows, columns)
        found = folded if mode == 2 else 2 * folded - 1 if mode == 1 else two_complement(folded, width)
        weight = np.empty_like(found)
        order = self.orders[i].reshape(-1, columns) % columns
        if (order != order[0]).any():
            raise broken(name, "its vectors do not arrive in one order.")
        weight[:, order[0]] = found
        wrong = np.argwhere(weight != layer.weight)
        if len(wrong):
            r, c = wrong[0].tolist()
            raise broken(
                name, f"row (channel) {r}, column {c}: the model's weight is {layer.weight[r, c]}, that of {cell.name} "
                f"{weight[r, c]}; at x = 1 in this column and 0 in all others the sums differ so.",
            )  # fmt: skip
        self.reach = self._reachable(layer, weight, entry)
        lo, hi = int(self.reach[0].min()), int(self.reach[1].max())
        least, most = result.signed and -(1 << (self.port.bits - 1)), 1 << (self.port.bits - result.signed)
        if lo < least or hi >= most:
            raise broken(name, f"sums of {lo}..{hi} do not fit {self.port.bits} bits.")
        return Summary(name, "linear", cell.module, rows, 0, 0)

    def _reachable(self, layer: Linear, weight: Array, entry: dict[str, Any]) -> tuple[Array, Array]:
        """The interval of every row's sum, from the weights that were read back."""
        source = layer.source.type
        if layer.binary:  # counts of agreements
            lo, hi = np.zeros(len(weight), np.int64), np.full(len(weight), weight.shape[1])
        else:
            least, most = np.where(weight > 0, source.lo, source.hi), np.where(weight > 0, source.hi, source.lo)
            lo, hi = (weight * least).sum(axis=1), (weight * most).sum(axis=1)
        for what, found, own in (("lo", lo, layer.lo), ("hi", hi, layer.hi)):
            if (found != own).any():
                raise broken(layer.name, f"the model's {what} of its sums is not what its weights give.")
            _same(layer.name, f"certificate.json, {what} of the sums of row", entry[what], found.tolist())
        _same(layer.name, "certificate.json, rows and columns", [entry["rows"], entry["columns"]], list(weight.shape))
        return lo, hi

    # ----------------------------------------------------------------------- other layers

    def _winner(self, layer: Winner, cells: list[Cell]) -> Summary:
        count, type_ = layer.source.shape[-1], layer.source.type
        if len(cells) != 1 or cells[0].module != "hg_argmax":
            raise broken(layer.name, f"{[c.module for c in cells]} is no hg_argmax.")
        cell = cells[0]
        lanes = cell.number("LANES", 1)
        wanted = {
            "LANES": lanes, "BEATS": count // lanes, "IN_W": type_.bits, "IN_SIGNED": int(type_.signed),
            "INDEX_W": layer.result.type.bits,
        }  # fmt: skip
        if cell.parameters != wanted or count % lanes:
            raise broken(layer.name, f"parameters of {cell.name} are {_shown(cell)}, not {wanted}.")
        return Summary(layer.name, "argmax", cell.module, 1, 0, 0)

    def _map(
        self, i: int, layer: Map, cells: list[Cell], entry: dict[str, Any], reach: tuple[Array, Array] | None
    ) -> Summary:
        f = specialize(layer, self.orders[i], *(reach or (None, None)))
        places = _places(layer, self.orders[i], f)
        period = entry["period"]
        if len(f.index) % max(1, period) or (f.index.reshape(-1, period) != f.index[:period]).any():
            raise broken(layer.name, f"certificate.json: its functions do not have the period {period}.")
        if period > 1 and any(
            period % n == 0 and (f.index.reshape(-1, n) == f.index[:n]).all() for n in range(1, period // 2 + 1)
        ):
            raise broken(layer.name, f"certificate.json: the period is less than {period}.")
        positions = [np.flatnonzero(f.index[:period] == s).tolist() for s in range(f.sets)]
        _same(layer.name, "certificate.json, positions of set", [s["positions"] for s in entry["sets"]], positions)
        intervals = np.stack([f.lo, f.hi], axis=1).tolist()
        _same(layer.name, "certificate.json, interval of set", [s["interval"] for s in entry["sets"]], intervals)
        total = int((f.hi - f.lo + 1).sum())
        if any(c.module.startswith("hg_f32_") for c in cells):
            _form(layer, entry, "operations")
            uses = {folds: self._uses(f, folds) for folds in _divisors(self.beats)}
            count = floats.check(f, cells, self.memories, uses, places)
            return Summary(layer.name, "quantizer", "float32 units", f.sets, total, count)
        module = self._module(layer, f, cells)
        proof = prove(f, module, self._uses(f, module.folds), cells[-1].name, places)
        listed = any("thresholds" in s for s in entry["sets"])
        _form(layer, entry, "steps" if listed else "constants")
        for s, runs in enumerate(proof.runs if listed else []):
            where = f"certificate.json, {places[s]},"
            _same(layer.name, f"{where} threshold", entry["sets"][s]["thresholds"], runs.start[1:].tolist())
            _same(layer.name, f"{where} code", entry["sets"][s]["codes"], runs.code.tolist())
        return Summary(layer.name, "quantizer", " + ".join(module.modules), f.sets, total, proof.evaluated)

    def _module(self, layer: Map, f: StepFunction, cells: list[Cell]) -> InTurn:
        """The models of the units that are one function together."""
        if f.is_float and (not cells or cells[0].module != "hg_float_key" or set(cells[0].parameters) != {"LANES"}):
            raise broken(layer.name, "its float32 input does not go through hg_float_key.")
        cells = cells[f.is_float :]
        wrong = [c.module for c in cells if c.module not in MODELS]
        if wrong or not cells:
            raise broken(layer.name, f"there is no model of {wrong[0] if wrong else 'nothing'}.")
        units = [MODELS[c.module](c, self.memories) for c in cells]  # type: ignore[call-arg]
        module = InTurn(units)
        type_ = IntType(0, 0xFFFFFFFF) if f.is_float else layer.source.type
        if units[0].signed not in (None, type_.signed) or units[0].in_bits != type_.bits:
            raise broken(layer.name, f"{cells[0].name} reads its input otherwise than as {type_}.")
        if self.beats % module.folds:
            raise broken(layer.name, f"FOLDS of its units is {module.folds}; a frame has {self.beats} beats.")
        return module

    def _uses(self, f: StepFunction, folds: int) -> dict[tuple[int, int], list[int]]:
        """(fold, lane) -> the sets of the elements that come there."""
        place = np.arange(len(f.index))
        fold, lane = place // self.port.lanes % folds, place % self.port.lanes
        found: dict[tuple[int, int], list[int]] = {}
        for b, g, s in np.unique(np.stack([fold, lane, f.index], axis=1), axis=0).tolist():
            found.setdefault((b, g), []).append(s)
        return found


def _places(layer: Map, order: Array, f: StepFunction) -> list[str]:
    """A name of each set: the channel and stream position of its first element."""
    first = np.unique(f.index, return_index=True)[1]
    shape = layer.source.shape
    axis = {len(shape) - 1} if shape else set()
    channel = order[first] % shape[-1] if axis else np.zeros_like(first)
    return [f"channel {c} (stream position {p})" for c, p in zip(channel.tolist(), first.tolist(), strict=True)]


def _divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


def _form(layer: Layer, entry: dict[str, Any], form: str) -> None:
    if entry["form"] != form:
        raise broken(layer.name, f"certificate.json: the form is {entry['form']!r}, for these instances {form!r}.")


def _same(layer: str, what: str, said: list[Any], found: list[Any]) -> None:
    """Two lists, element by element."""
    if said == found:
        return
    if len(said) != len(found):
        raise broken(layer, f"{what}: {len(said)} are listed, there are {len(found)}.")
    i = next(i for i, (a, b) in enumerate(zip(said, found, strict=True)) if a != b)
    raise broken(layer, f"{what} number {i} is {said[i]}, in the hardware and the model it is {found[i]}.")


def _shown(cell: Cell) -> dict[str, int | str]:
    return {name: str(value) if isinstance(value, Sized) else value for name, value in cell.parameters.items()}


def hardware_layers(graph: Graph) -> list[int]:
    """Indices of the layers that have hardware."""
    return [i for i, layer in enumerate(graph.layers) if not isinstance(layer, Relabel)]
