"""Proves single float32 units: each is an operation of the model, with its constants."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from hlsgen.certify.models.arithmetic import ThresholdModel
from hlsgen.certify.netlist_reader import Cell, Memories, broken, two_complement
from hlsgen.certify.proof import prove
from hlsgen.ir import FloatKey
from hlsgen.ir.evaluate import KEY_POS_INF, code_type
from hlsgen.ir.ops import Quantizer
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import Array, IntType

Uses = dict[tuple[int, int], list[int]]
ADD, MUL, DIV, MAX, MIN = range(5)
SIGN_BIT = 7


class Cells:
    """The units of a pipeline, compared one after the other. Whatever differs raises HG055."""

    def __init__(
        self, f: StepFunction, cells: list[Cell], memories: Memories, uses_of: dict[int, Uses], places: list[str]
    ) -> None:
        self.f, self.cells, self.memories, self.uses_of, self.places = f, cells, memories, uses_of, places
        self.at = self.evaluated = 0

    def take(self, module: str, what: str, names: str) -> Cell:
        """The next unit, which must be that module."""
        cell = self.cells[self.at] if self.at < len(self.cells) else None
        if cell is None or cell.module != module:
            found = "nothing" if cell is None else f"{cell.name} ({cell.module})"
            raise broken(self.f.name, f"{found} stands where {module} is expected, for {what}.")
        if set(cell.parameters) != set(names.split()):
            raise broken(cell.name, f"{module} has other parameters than its model.")
        self.at += 1
        return cell

    def uses(self, cell: Cell) -> Uses:
        folds = cell.number("FOLDS", 1)
        if folds not in self.uses_of:
            raise broken(cell.name, f"FOLDS is {folds}, which does not divide the beats of a frame.")
        return self.uses_of[folds]

    def single(self, value: Array, what: str) -> Array:
        """A float32 constant of each set."""
        if np.asarray(value).dtype != np.float32:
            raise broken(self.f.name, f"{what} is of type {np.asarray(value).dtype}: the units compute in float32.")
        return np.broadcast_to(value, self.f.sets)

    def arithmetic(self, op: int, value: Array, what: str, nothing: float | None = None) -> None:
        """A unit with one constant a set; it may be missing if the constant is `nothing` everywhere."""
        value = self.single(value, what)
        cell = self.cells[self.at] if self.at < len(self.cells) else None
        same = cell is not None and cell.module == "hg_f32_unit" and cell.parameters.get("OP") == op
        if nothing is not None and (value == nothing).all() and not (same and self._equal(self.at, value)):
            return
        cell = self.take("hg_f32_unit", what, "OP LANES FOLDS FILE")
        if cell.number("OP") != op:
            raise broken(self.f.name, f"OP of {cell.name} is {cell.number('OP')}, for {what} it must be {op}.")
        found = self.constants(cell)
        for (fold, lane), sets in self.uses(cell).items():
            for s in sets:
                if found[fold, lane] != value[s].view(np.uint32):
                    raise broken(
                        self.f.name,
                        f"{self.places[s]}, {what}: the model's constant is {value[s]!r}, that of "
                        f"{cell.name} has the bits {int(found[fold, lane]):08x}, not {int(value[s].view(np.uint32)):08x}.",
                    )

    def constants(self, cell: Cell) -> Array:
        return self.memories.fields(cell.file, cell.number("FOLDS", 1), cell.number("LANES", 1), 32)

    def _equal(self, at: int, value: Array) -> bool:
        cell = self.cells[at]
        found = self.constants(cell)
        bits = value.view(np.uint32) if value.flags.c_contiguous else np.ascontiguousarray(value).view(np.uint32)
        return all(found[at] == bits[s] for at, sets in self.uses(cell).items() for s in sets)

    def divide(self, value: Array, what: str) -> None:
        """x / value, or, the same to the last bit, x times its reciprocal where that is exact."""
        value = self.single(value, what)
        cell = self.cells[self.at] if self.at < len(self.cells) else None
        with np.errstate(all="ignore"):
            inverse = (np.float32(1) / value).astype(np.float32)
        exact = all(
            np.isfinite([v, i]).all() and Fraction(float(v)) * Fraction(float(i)) == 1
            for v, i in zip(value, inverse, strict=True)
        )
        times = cell is not None and cell.module == "hg_f32_unit" and cell.parameters.get("OP") == MUL
        if exact and times and not (value == 1).all():
            self.arithmetic(MUL, inverse, what)
        else:
            self.arithmetic(DIV, value, what, 1)

    def to_code(self, mode: int, bounds: IntType | None, type_: IntType) -> None:
        """Clamp to the bounds as float32 has them, round, saturate."""
        cell = self.take("hg_f32_encode", "the conversion to a code", "MODE OUT_W OUT_SIGNED LANES FOLDS FILE")
        width, signed = cell.number("OUT_W", 1), cell.number("OUT_SIGNED")
        if cell.number("MODE") != mode or (width, signed) != (type_.bits, int(type_.signed)):
            raise broken(self.f.name, f"{cell.name} does not round with mode {int(mode)} to {type_}.")
        if mode == SIGN_BIT:
            self.memories.fields(cell.file, cell.number("FOLDS", 1), cell.number("LANES", 1), 64)
            return
        low, high = (-np.inf, np.inf) if bounds is None else (bounds.lo, bounds.hi)
        wanted = np.array([low, high]).astype(np.float32)
        # What the model cuts behind the rounding, the width of the code has to cut.
        least, most = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
        if (wanted[0] < type_.lo and type_.lo != least) or (wanted[1] > type_.hi and type_.hi != most):
            raise broken(self.f.name, f"{cell.name} does not saturate at {type_}.")
        words = self.memories.fields(cell.file, cell.number("FOLDS", 1), 2 * cell.number("LANES", 1), 32)
        bits = wanted.view(np.uint32)
        for fold, lane in self.uses(cell):
            found = words[fold, 2 * lane : 2 * lane + 2]
            if (found != bits).any():
                raise broken(
                    self.f.name,
                    f"{cell.name}, lane {lane}, fold {fold}: the model clamps to {low}..{high}, the bounds' "
                    f"bits are {int(found[0]):08x}, {int(found[1]):08x}, not {int(bits[0]):08x}, {int(bits[1]):08x}.",
                )

    def compare(self, op: Quantizer) -> None:
        """hg_float_key and a search over thresholds: a step function of the order key, proven as any other."""
        self.take("hg_float_key", "the order key", "LANES")
        cell = self.take("hg_threshold", "the thresholds", " ".join(ThresholdModel.names))
        zero = np.zeros(self.f.sets, np.int64)
        keys = IntType(0, KEY_POS_INF)
        g = replace(
            self.f,
            source=FloatKey(),
            ops=(),
            quantizer=op,
            lo=zero,
            hi=zero + KEY_POS_INF,
            input_type=keys,
            output_type=code_type(op),
        )
        module = ThresholdModel(cell, self.memories)
        if module.in_bits != 32 or module.signed or module.out_bits != g.output_type.bits:
            raise broken(self.f.name, f"{cell.name} does not compare keys of 32 bits.")
        self.evaluated += prove(g, module, self.uses(cell), cell.name, self.places).evaluated

    def to_float(self, type_: IntType, factor: int, offset: Array, scale: Array) -> None:
        """(x * factor + offset) * scale, rounded once, against ((x << SHIFT) + B) * M * 2^E."""
        cell = self.take("hg_f32_decode", "the conversion to float32", "IN_W IN_SIGNED SHIFT B_W M_W LANES FOLDS FILE")
        shift, b_bits, m_bits = cell.number("SHIFT"), cell.number("B_W", 1), cell.number("M_W", 1)
        if (cell.number("IN_W"), cell.number("IN_SIGNED")) != (type_.bits, int(type_.signed)):
            raise broken(self.f.name, f"{cell.name} does not take {type_}.")
        if m_bits > 48 or max(type_.bits + (not type_.signed) + shift, b_bits) > 63:
            raise broken(self.f.name, f"{cell.name} has a wider sum or product than hg_f32_decode can make.")
        width = b_bits + m_bits + 12
        words = self.memories.fields(cell.file, cell.number("FOLDS", 1), cell.number("LANES", 1), width).astype(object)
        b = two_complement(words & ((1 << b_bits) - 1), b_bits)
        m = words >> b_bits & ((1 << m_bits) - 1)
        e = two_complement(words >> (b_bits + m_bits), 12)
        offset, scale = np.broadcast_to(offset, self.f.sets), np.broadcast_to(scale, self.f.sets)
        for at, sets in self.uses(cell).items():
            unit = Fraction(int(m[at])) * Fraction(2) ** int(e[at])
            for s in sets:
                real = Fraction(float(scale[s]))
                if unit * (1 << shift) != real * factor or unit * int(b[at]) != real * int(offset[s]):
                    raise broken(
                        self.f.name,
                        f"{self.places[s]}: the model's input is (x * {factor} + {int(offset[s])}) * "
                        f"{float(scale[s])!r}, that of {cell.name} (x * 2^{shift} + {int(b[at])}) * {int(m[at])} * "
                        f"2^{int(e[at])}.",
                    )
