"""Proves functions of two tensors: the lookup tables before a module hg_join_*, this module, and the units after it.

It evaluates all pairs of codes, with the model of the hardware and with the model's operations, and compares them with
==. If there are too many pairs, both operands must be exact lines (`affine_operands`). The remaining function has one
integer argument.
"""

from __future__ import annotations

import numpy as np

from hlsgen.certify.affine_operands import as_function_of_join
from hlsgen.certify.float_joins import check_float_join, check_joint
from hlsgen.certify.models.arithmetic import CascadeModel
from hlsgen.certify.models.routing import check_beat, check_parameters
from hlsgen.certify.netlist_reader import Cell, Memories, broken
from hlsgen.certify.proof import MAX_EVERY, RunLengths, prove, read_as, runs_in
from hlsgen.certify.quantizers import QuantizerHardware, Summary, check_equal, check_reachable
from hlsgen.certify.stream_contents import Elements, StreamContents, check_codes
from hlsgen.ir import BinaryMap, FloatBinary, IntegerEncoding
from hlsgen.ir.binary_function import BinaryFunction, specialize
from hlsgen.ir.evaluate import KEY_POS_INF
from hlsgen.ir.ops import QuantizeLinear
from hlsgen.ir.step_function import StepFunction
from hlsgen.ir.value_ranges import ValueRange
from hlsgen.numerics.fixed import Array, IntType

#: The certificate's name for what each module computes.
WAYS = {"hg_join_sum": "sum", "hg_join_product": "product", "hg_join_pair": "packed"}
_TYPES = "LANES A_W A_SIGNED B_W B_SIGNED OUT_W"
#: The constants of each module.
_CONSTANTS = {"sum": ("FA", "FB"), "product": ("ZA", "ZB")}
#: Number of pairs that are evaluated at a time.
_CHUNK = 1 << 20

Uses = dict[tuple[int, int], list[int]]


class JoinModel:
    """The model of a module hg_join_*, from the contract in its file. Raises HG055 if it does not fit both streams."""

    def __init__(self, cell: Cell, streams: tuple[StreamContents, StreamContents]) -> None:
        self.cell, self.way = cell, WAYS[cell.module]
        self.bits = cell.number("A_W", 1), cell.number("B_W", 1)
        #: Signs of the operands; None where they do not matter.
        self.signed: tuple[int | None, int | None]
        if self.way == "packed":
            check_parameters(cell, "LANES A_W B_W")
            self.signed, self.constants, self.out_bits = (None, None), (0, 0), sum(self.bits)
        else:
            first, second = _CONSTANTS[self.way]
            check_parameters(cell, f"{_TYPES} {first} {second}", "STYLE" if self.way == "product" else "")
            self.signed = cell.number("A_SIGNED"), cell.number("B_SIGNED")
            self.constants = cell.number(first, -(1 << 31)), cell.number(second, -(1 << 31))
            self.out_bits = cell.number("OUT_W", 1)
        for stream, bits in zip(streams, self.bits, strict=True):
            check_beat(cell, stream, cell.number("LANES", 1), bits)
        if streams[0].beats != streams[1].beats:
            raise broken(cell.name, f"its input streams have {streams[0].beats} and {streams[1].beats} beats.")
        if max(sign or 0 for sign in self.signed) > 1 or self.out_bits > 62:
            raise broken(cell.name, "A_SIGNED, B_SIGNED or OUT_W exceeds its model.")

    def apply(self, a: Array, b: Array) -> Array:
        """The result for each pair of integers a and b, int64, before it is cut to OUT_W bits."""
        a, b = (read_as(x, bits, bool(s)) for x, bits, s in zip((a, b), self.bits, self.signed, strict=True))
        if self.way == "packed":
            return np.asarray(read_as(a, self.bits[0], False) | read_as(b, self.bits[1], False) << self.bits[0])
        first, second = self.constants
        return np.asarray(first * a + second * b if self.way == "sum" else (a - first) * (b - second))


class BinaryHardware:
    """The hardware of a BinaryMap: a lookup table for each operand (or None), the join, and the function after it."""

    def __init__(self, q: QuantizerHardware, layer: BinaryMap, memories: Memories) -> None:
        number = next(n for n, cell in enumerate(q.units) if cell.module in WAYS)
        assert q.stream.operands is not None
        self.join = JoinModel(q.units[number], q.stream.operands)
        self.function = q.module(q.units[number + 1 :], memories)
        self.tables: list[CascadeModel | None] = []
        for stream, source, bits, signed in zip(
            q.stream.operands, layer.sources, self.join.bits, self.join.signed, strict=True
        ):
            table = q.module(stream.units, memories) if stream.units else None
            self.tables.append(table)
            first = table.units[0] if table else None
            if first is None:
                check_codes(self.join.cell.name, stream, source.type, bits, signed)
            else:
                sign = None if first.signed is None else int(first.signed)
                table_input = StreamContents(stream.elements, first.in_bits, stream.lo, stream.hi)
                check_codes(first.cell.name, table_input, source.type, first.in_bits, sign)
        self.first = self.function.units[0]
        if self.first.in_bits != self.join.out_bits:
            raise broken(q.layer.name, f"{self.first.cell.name} does not read the output of {self.join.cell.name}.")
        self.folds = int(np.lcm.reduce([x.folds for x in (self.function, *self.tables) if x is not None]))

    def key(self, fold: int, lane: int) -> tuple[object, ...]:
        """Equal for lanes and folds that compute the same function: each key is proven once."""
        parts = [x.constants(fold % x.folds, lane) for x in (self.function, *self.tables) if x is not None]
        return tuple(parts)

    def join_input(self, side: int, fold: int, lane: int, x: Array) -> Array:
        """The codes x of one operand as the join gets them."""
        table = self.tables[side]
        return x if table is None else table.apply(fold % table.folds, lane, x)

    def code(self, fold: int, lane: int, t: Array, type_: IntType) -> Array:
        """The output codes for the numbers t that the join sends."""
        t = read_as(t, self.join.out_bits, self.first.signed)
        low, high = int(t.min()), int(t.max())
        is_dense = high - low < t.size  # if so, each value is computed once
        values = np.arange(low, high + 1) if is_dense else t.ravel()
        codes = read_as(self.function.apply(fold % self.function.folds, lane, values), type_.bits, type_.signed)
        return np.asarray(codes[t - low] if is_dense else codes.reshape(t.shape))


def check_binary_map(
    q: QuantizerHardware,
    layer: BinaryMap | FloatBinary,
    reach: tuple[ValueRange | None, ValueRange | None],
    elements: Elements,
    memories: Memories,
) -> Summary:
    """Prove that the hardware computes a function of two tensors. Raises HG055."""
    if isinstance(layer, FloatBinary):
        return check_joint(q, layer, reach, elements, memories)
    f = specialize(layer, q.order, reach)
    places = q.places(f.index, layer.result.shape)
    entries = q.listed(f.sets, f.index)
    for side, key in enumerate(("a", "b")):
        intervals = np.stack([f.lo[side], f.hi[side]], axis=1).tolist()
        check_equal(layer.name, f"certificate.json, operand {key} of set", [s[key] for s in entries], intervals)
        numbers = elements.numbers[layer.inputs[side]][q.order]
        check_reachable(layer, f.index, f.lo[side], f.hi[side], elements, numbers)
    if any(cell.module == "hg_f32_join" for cell in q.units):
        check_equal(layer.name, "certificate.json, the way", [q.entry["way"]], ["float32"])
        if q.lists_steps:
            domain = [[0, KEY_POS_INF]] * f.sets
            check_equal(layer.name, "certificate.json, interval of set", [s["interval"] for s in entries], domain)
        return check_float_join(q, layer, f, places, memories)
    hardware = BinaryHardware(q, layer, memories)
    if q.entry["way"] != hardware.join.way:
        raise broken(layer.name, f"certificate.json: the way is {q.entry['way']!r}, not {hardware.join.way!r}.")
    uses = q.uses(f.index, hardware.folds)
    if f.pairs <= MAX_EVERY:
        evaluated, ends = _evaluate_pairs(f, hardware, uses, places)
    else:
        evaluated, ends = _prove_lines(f, hardware, q.uses(f.index, hardware.function.folds), places)
    q.form("steps" if q.lists_steps else "constants")
    if q.lists_steps:
        intervals = [list(pair) for pair in ends]
        check_equal(layer.name, "certificate.json, interval of set", [s["interval"] for s in entries], intervals)
        q.steps(_runs(f, hardware, uses, ends), places)
    modules = [table.modules for table in hardware.tables if table]
    modules += [[hardware.join.cell.module], hardware.function.modules]
    return Summary(layer.name, "merge", " + ".join(m for part in modules for m in part), f.sets, f.pairs, evaluated)


def _evaluate_pairs(
    f: BinaryFunction, hardware: BinaryHardware, uses: Uses, places: list[str]
) -> tuple[int, list[tuple[int, int]]]:
    """Evaluate all pairs of codes of every set.

    Returns their number, and (lowest, highest) joined number of each set.
    """
    ends: list[tuple[int, int]] = [(0, 0)] * f.sets
    proven_keys: set[tuple[object, ...]] = set()
    evaluated = 0
    for (fold, lane), sets in uses.items():
        for s in sets:
            key = (s, *hardware.key(fold, lane))
            if key in proven_keys:
                continue
            proven_keys.add(key)
            function = f.take(np.array([s]))
            a, b = (np.arange(f.lo[side, s], f.hi[side, s] + 1) for side in (0, 1))
            x, y = (function.branch(side, codes[:, None]) for side, codes in enumerate((a, b)))
            u, v = (hardware.join_input(side, fold, lane, codes) for side, codes in enumerate((a, b)))
            low, high = [], []
            step = max(1, _CHUNK // len(b))
            for start in range(0, len(a), step):
                t = hardware.join.apply(u[start : start + step, None], v[None, :])
                low.append(int(t.min()))
                high.append(int(t.max()))
                model = function.combine(x[start : start + step, None], y[None, :])[..., 0]
                code = hardware.code(fold, lane, t, f.output_type)
                unequal = np.argwhere(model != code)
                evaluated += t.size
                if len(unequal):
                    i, j = unequal[0].tolist()
                    raise broken(
                        f.name,
                        f"{places[s]}, {hardware.join.cell.name}, lane {lane}, fold {fold}: at a = {a[start + i]}, "
                        f"b = {b[j]} the model gives {model[i, j]}, the hardware {code[i, j]}.",
                    )
            ends[s] = min(low), max(high)
    return evaluated, ends


def _prove_lines(
    f: BinaryFunction, hardware: BinaryHardware, uses: Uses, places: list[str]
) -> tuple[int, list[tuple[int, int]]]:
    """Prove operands that are exact lines: the units after the join compute a function of one integer."""
    join = hardware.join
    if any(hardware.tables) or join.way == "packed":
        raise broken(f.name, f"cannot be certified: its {f.pairs} pairs of codes are too many to try.")
    first, second = join.constants
    g = as_function_of_join(f, join.way, (first, second))
    bits, signed = join.out_bits, hardware.first.signed
    signed = g.input_type.signed if signed is None else signed
    if g.input_type.lo < (-(1 << (bits - 1)) if signed else 0) or g.input_type.hi >= 1 << (bits - signed):
        raise broken(f.name, f"results {g.input_type} of {join.cell.name} do not fit OUT_W = {bits}.")
    if _is_itself(g) and hardware.function.changes_nothing(int(g.lo.min()), int(g.hi.max())):
        return 2 * g.sets, list(zip(g.lo.tolist(), g.hi.tolist(), strict=True))
    proof = prove(g, hardware.function, uses, join.cell.name, places)
    return proof.evaluated, list(zip(g.lo.tolist(), g.hi.tolist(), strict=True))


def _is_itself(f: StepFunction) -> bool:
    """True if the code is the number that the join sends: no operation, and the code's type holds it."""
    quantizer, encoding = f.quantizer, f.source
    if f.ops or not isinstance(encoding, IntegerEncoding) or not isinstance(quantizer, QuantizeLinear):
        return False
    is_identity = (
        encoding.dtype == "int64"
        and not encoding.offset.any()
        and (quantizer.scale == 1).all()
        and not quantizer.zero_point.any()
    )
    low, high = int(f.lo.min()), int(f.hi.max())
    is_in_range = all(type_.lo <= low and high <= type_.hi for type_ in (quantizer.type, f.output_type))
    return bool(is_identity) and is_in_range and max(-low, high) < 1 << 53


def _runs(f: BinaryFunction, hardware: BinaryHardware, uses: Uses, ends: list[tuple[int, int]]) -> list[RunLengths]:
    """The runs of the units after the join, on the interval of each set."""
    runs_of_set: dict[int, RunLengths] = {}
    module = hardware.function
    for (fold, lane), sets in uses.items():
        for s in (s for s in sets if s not in runs_of_set):
            runs_of_set[s] = runs_in(module, fold % module.folds, lane, [ends[s]], f.output_type)
    return [runs_of_set[s] for s in range(f.sets)]
