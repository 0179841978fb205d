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
    """The units of a pipeline, compared in order. Any difference raises HG055."""

    def __init__(
        self, f: StepFunction, cells: list[Cell], memories: Memories, uses_of: dict[int, Uses], places: list[str]
    ) -> None:
        self.f, self.cells, self.memories, self.uses_of, self.places = f, cells, memories, uses_of, places
        self.at = self.evaluated = 0

    def take(self, module: str, purpose: str, names: str) -> Cell:
        """The next unit, which must be an instance of `module`."""
        cell = self.cells[self.at] if self.at < len(self.cells) else None
        if cell is None or cell.module != module:
            actual = "nothing" if cell is None else f"{cell.name} ({cell.module})"
            raise broken(self.f.name, f"{actual} is where {module} is expected, for {purpose}.")
        if set(cell.parameters) != set(names.split()):
            raise broken(cell.name, f"{module} has other parameters than its model.")
        self.at += 1
        return cell

    def uses(self, cell: Cell) -> Uses:
        folds = cell.number("FOLDS", 1)
        if folds not in self.uses_of:
            raise broken(cell.name, f"FOLDS is {folds}, which does not divide the beats of a frame.")
        return self.uses_of[folds]

    def single(self, value: Array, purpose: str) -> Array:
        """A float32 constant for each set of channel parameters."""
        if np.asarray(value).dtype != np.float32:
            raise broken(self.f.name, f"{purpose} is of type {np.asarray(value).dtype}: the units compute in float32.")
        return np.broadcast_to(value, self.f.sets)

    def arithmetic(self, op: int, value: Array, purpose: str, neutral: float | None = None) -> None:
        """Check a unit with one constant for each set. It may be missing if the constant is `neutral` everywhere."""
        value = self.single(value, purpose)
        cell = self.cells[self.at] if self.at < len(self.cells) else None
        same_operation = cell is not None and cell.module == "hg_f32_unit" and cell.parameters.get("OP") == op
        if neutral is not None and (value == neutral).all() and not (same_operation and self._equal(self.at, value)):
            return
        cell = self.take("hg_f32_unit", purpose, "OP LANES FOLDS FILE")
        if cell.number("OP") != op:
            raise broken(self.f.name, f"OP of {cell.name} is {cell.number('OP')}, for {purpose} it must be {op}.")
        hardware_constants = self.constants(cell)
        for (fold, lane), sets in self.uses(cell).items():
            for s in sets:
                if hardware_constants[fold, lane] != value[s].view(np.uint32):
                    raise broken(
                        self.f.name,
                        f"{self.places[s]}, {purpose}: the model's constant is {value[s]!r}, "
                        f"{cell.name} has the bits {int(hardware_constants[fold, lane]):08x}, not "
                        f"{int(value[s].view(np.uint32)):08x}.",
                    )

    def constants(self, cell: Cell) -> Array:
        return self.memories.fields(cell.file, cell.number("FOLDS", 1), cell.number("LANES", 1), 32)

    def _equal(self, index: int, value: Array) -> bool:
        cell = self.cells[index]
        hardware_constants = self.constants(cell)
        bits = value.view(np.uint32) if value.flags.c_contiguous else np.ascontiguousarray(value).view(np.uint32)
        return all(hardware_constants[index] == bits[s] for index, sets in self.uses(cell).items() for s in sets)

    def divide(self, value: Array, purpose: str) -> None:
        """Check x / value. If the reciprocal of the value is exact, a product with it is equal to the last bit."""
        value = self.single(value, purpose)
        cell = self.cells[self.at] if self.at < len(self.cells) else None
        with np.errstate(all="ignore"):
            inverse = (np.float32(1) / value).astype(np.float32)
        exact = all(
            np.isfinite([v, i]).all() and Fraction(float(v)) * Fraction(float(i)) == 1
            for v, i in zip(value, inverse, strict=True)
        )
        is_product = cell is not None and cell.module == "hg_f32_unit" and cell.parameters.get("OP") == MUL
        if exact and is_product and not (value == 1).all():
            self.arithmetic(MUL, inverse, purpose)
        else:
            self.arithmetic(DIV, value, purpose, 1)

    def to_code(self, mode: int, bounds: IntType | None, type_: IntType) -> None:
        """Check the conversion to a code: clamp to the bounds in float32, round, saturate."""
        cell = self.take("hg_f32_encode", "the conversion to a code", "MODE OUT_W OUT_SIGNED LANES FOLDS FILE")
        width, signed = cell.number("OUT_W", 1), cell.number("OUT_SIGNED")
        if cell.number("MODE") != mode or (width, signed) != (type_.bits, int(type_.signed)):
            raise broken(self.f.name, f"{cell.name} does not round with mode {int(mode)} to {type_}.")
        if mode == SIGN_BIT:
            self.memories.fields(cell.file, cell.number("FOLDS", 1), cell.number("LANES", 1), 64)
            return
        low, high = (-np.inf, np.inf) if bounds is None else (bounds.lo, bounds.hi)
        clamp_bounds = np.array([low, high]).astype(np.float32)
        # The model clamps after rounding. Here the width of the code has to do that.
        lowest, highest = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
        if (clamp_bounds[0] < type_.lo and type_.lo != lowest) or (clamp_bounds[1] > type_.hi and type_.hi != highest):
            raise broken(self.f.name, f"{cell.name} does not saturate at {type_}.")
        words = self.memories.fields(cell.file, cell.number("FOLDS", 1), 2 * cell.number("LANES", 1), 32)
        bits = clamp_bounds.view(np.uint32)
        for fold, lane in self.uses(cell):
            hardware_bits = words[fold, 2 * lane : 2 * lane + 2]
            if (hardware_bits != bits).any():
                raise broken(
                    self.f.name,
                    f"{cell.name}, lane {lane}, fold {fold}: the model clamps to {low}..{high}, the bounds' "
                    f"bits are {int(hardware_bits[0]):08x}, {int(hardware_bits[1]):08x}, not {int(bits[0]):08x}, "
                    f"{int(bits[1]):08x}.",
                )

    def compare(self, op: Quantizer) -> None:
        """hg_float_key and a search over thresholds: a monotone function of the order key, proven like any other."""
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
        """Check (x * factor + offset) * scale, rounded once, against ((x << SHIFT) + B) * M * 2^E."""
        cell = self.take("hg_f32_decode", "the conversion to float32", "IN_W IN_SIGNED SHIFT B_W M_W LANES FOLDS FILE")
        shift, b_bits, m_bits = cell.number("SHIFT"), cell.number("B_W", 1), cell.number("M_W", 1)
        if (cell.number("IN_W"), cell.number("IN_SIGNED")) != (type_.bits, int(type_.signed)):
            raise broken(self.f.name, f"{cell.name} does not read {type_}.")
        if m_bits > 48 or max(type_.bits + (not type_.signed) + shift, b_bits) > 63:
            raise broken(self.f.name, f"{cell.name} has a wider sum or product than hg_f32_decode supports.")
        width = b_bits + m_bits + 12
        words = self.memories.fields(cell.file, cell.number("FOLDS", 1), cell.number("LANES", 1), width).astype(object)
        b = two_complement(words & ((1 << b_bits) - 1), b_bits)
        m = words >> b_bits & ((1 << m_bits) - 1)
        e = two_complement(words >> (b_bits + m_bits), 12)
        offset, scale = np.broadcast_to(offset, self.f.sets), np.broadcast_to(scale, self.f.sets)
        for fold_lane, sets in self.uses(cell).items():
            unit = Fraction(int(m[fold_lane])) * Fraction(2) ** int(e[fold_lane])
            for s in sets:
                real = Fraction(float(scale[s]))
                if unit * (1 << shift) != real * factor or unit * int(b[fold_lane]) != real * int(offset[s]):
                    raise broken(
                        self.f.name,
                        f"{self.places[s]}: the model's input is (x * {factor} + {int(offset[s])}) * "
                        f"{float(scale[s])!r}, {cell.name} computes (x * 2^{shift} + {int(b[fold_lane])}) * "
                        f"{int(m[fold_lane])} * "
                        f"2^{int(e[fold_lane])}.",
                    )
