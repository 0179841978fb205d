"""The checker's own models: of modules, against realizations and simulated hardware; of monotone pieces."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from certified import CASES
from paths import needs_icarus

import hlsgen
from hlsgen.certify import quantizers as functions
from hlsgen.certify.interval_bounds import undecided
from hlsgen.certify.models.tables import CorrectModel
from hlsgen.certify.monotone import pieces
from hlsgen.certify.netlist_reader import Cell, Memories, ParameterValue, SizedConstant
from hlsgen.certify.proof import runs
from hlsgen.certify.quantizers import MODELS
from hlsgen.diagnostics import HlsgenError
from hlsgen.driver.build_directory import reopen
from hlsgen.ir import Accumulator, Affine, Fixed, IntegerEncoding
from hlsgen.ir.ops import (
    Activation,
    Add,
    BinaryKind,
    BinaryOf,
    Cast,
    Constant,
    Convention,
    Div,
    FloatQuant,
    IntQuant,
    Max,
    Min,
    Mul,
    MultiThreshold,
    Pair,
    PairOp,
    QuantizeLinear,
    Requantize,
    Slope,
    Trunc,
)
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.activations import KINDS
from hlsgen.numerics.fixed import IntType, Rounding, int_type
from hlsgen.numerics.quantized_add import Parameters
from hlsgen.rescale import LaneShift, LaneTable, Lines, Shift
from hlsgen.rescale.realize import compare, correct, rank, scale, table, thresholds
from hlsgen.rescale.realize.float_scale import FloatScale
from hlsgen.rescale.realize.pair import PairAdd, PairScale
from hlsgen.rescale.threshold_table import ThresholdTable
from hlsgen.simulation.run import run_hardware
from hlsgen.verilog.binding import bind, float_scale
from hlsgen.verilog.binding.memory_files import Binding, Bits

Array = Any
SETS = 4


# --------------------------------------------------------------------------- modules


def stairs(rng: np.random.Generator, source: IntType, kind: str) -> ThresholdTable:
    """Random thresholds: codes in one direction, or any codes."""
    lo, hi = np.full(SETS, source.lo), np.full(SETS, source.hi)
    if kind == "even":  # nearly equidistant, rising
        reach, count = int(rng.integers(9, 30)), int(rng.integers(4, 60))
        start = source.lo + rng.integers(0, 40, SETS)
        places = start + np.arange(count)[:, None] * reach + rng.integers(0, 3, (count, SETS))
        places = np.minimum(places, source.hi + 1)
        return ThresholdTable(
            "test", lo, hi, places, np.broadcast_to(np.arange(count + 1)[:, None] - 7, (count + 1, SETS))
        )
    count = int(rng.integers(1, 16))
    places = np.sort(rng.integers(source.lo, source.hi + 2, (count, SETS)), axis=0)
    values = np.broadcast_to(np.arange(count + 1)[:, None] - 3, (count + 1, SETS))
    if kind == "any":
        values = rng.integers(-8, 8, (count + 1, SETS))
    elif rng.random() < 0.5:
        values = np.where(rng.random(SETS) < 0.5, values, values[::-1])
    return ThresholdTable("test", lo, hi, places, values)


def ints(rng: np.random.Generator, low: int, high: int) -> Array:
    return rng.integers(low, high, SETS)


def shifts(rng: np.random.Generator, source: IntType) -> Shift:
    left_shift = int(rng.integers(0, 4))
    low, high = sorted(int(v) for v in rng.integers(-40, 40, 2))
    return Shift(left_shift, int(rng.integers(0, 9)), Rounding(int(rng.integers(7))), ints(rng, -900, 900), low, high)


def lane_shifts(rng: np.random.Generator, source: IntType) -> LaneShift:
    bounds = np.sort(rng.integers(-40, 40, (2, SETS)), axis=0)
    left, shift = ints(rng, 0, 4), ints(rng, 0, 9)
    offset, mode = ints(rng, -900, 900) * int(rng.integers(2)), ints(rng, 0, 7)
    return LaneShift(
        left, shift, mode, offset, *bounds, ints(rng, source.lo, source.lo + 1), ints(rng, source.hi, source.hi + 1)
    )


def lane_tables(rng: np.random.Generator, source: IntType) -> LaneTable:
    bits = ints(rng, 0, 5)
    values = tuple(rng.integers(-40, 40, 1 << n) for n in bits.tolist())
    return LaneTable(ints(rng, 0, 1 << source.bits), np.minimum(ints(rng, 0, 6), source.bits), bits, values)


def lines(rng: np.random.Generator, source: IntType) -> Lines:
    del source
    values, rises = rng.integers(0, 1 << 7, (2, 1 << int(rng.integers(1, 5))))
    multiplier, shift, fraction, left, right, mirror = (
        int(v) for v in rng.integers((1, 0, 1, 0, 0, -99), (9, 7, 6, 6, 9, 99))
    )
    return Lines(multiplier, shift, fraction, values, rises, left, right, mirror)


def scales(rng: np.random.Generator, source: IntType) -> scale.Scale:
    low, high = sorted(int(v) for v in rng.integers(-128, 128, 2))
    shift = int(rng.integers(0, 14))
    addend, kind = ints(rng, -5000, 5000), int(rng.integers(4))
    odd = ints(rng, 0, 2) if rng.random() < 0.5 else None
    centre, below = None, None
    if kind == 0:
        centre, below = np.zeros(SETS, np.int64), addend ^ ((1 << shift) - 1)
    elif kind == 1:
        centre, below = ints(rng, source.lo, source.hi + 1), ints(rng, -5000, 5000)
    return scale.Scale(ints(rng, -90, 90), addend, shift, low, high, odd, centre, below, bool(rng.random() < 0.3))


def tables(rng: np.random.Generator, source: IntType) -> table.Table:
    mode, bits = table.TableMode(int(rng.integers(3))), int(rng.integers(1, 6))
    entries = np.sort(rng.integers(-9, 9, (1 << bits, SETS)), axis=0)
    center = ints(rng, -20, 40) * (mode != table.TableMode.DIRECT) * int(rng.random() < 0.7)
    even = bool(rng.random() < 0.5) and mode == table.TableMode.HALF
    return table.Table(mode, entries, center, even, int(rng.integers(-9, 9)) * (mode == table.TableMode.HALF))


def float_scales(rng: np.random.Generator, source: IntType) -> FloatScale:
    bits, left_shifts = int(rng.integers(6, 30)), ints(rng, 0, 6)
    mantissa = ints(rng, 1, 1 << int(rng.integers(2, 25)))
    product_bits = bits + int(mantissa.max()).bit_length()
    shift = int(rng.integers(max(1, product_bits - 22), product_bits + 3))
    offset, zero = ints(rng, -300, 300) * (rng.random() < 0.7), ints(rng, -9, 9) * (rng.random() < 0.7)
    return FloatScale(mantissa, left_shifts, shift, offset, zero, bits, -128, 127, bool(rng.random() < 0.3))


def adds(rng: np.random.Generator, source: IntType) -> PairAdd:
    zeros, scales_ = rng.integers(-1 << 15, 1 << 15, 3) >> int(rng.integers(0, 12)), rng.integers(0, 1 << 16, 2)
    constants = Parameters(
        *map(int, zeros), *map(int, scales_ >> 4), int(rng.integers(256)), int(rng.integers(-40, 40))
    )
    return PairAdd(Pair(PairOp.FIXED, IntType(-128, 127), "int8", fixed=constants), constants)


def products(rng: np.random.Generator, source: IntType) -> PairScale:
    pair = Pair(PairOp.MUL, IntType(-100, 90), str(rng.choice(["int8", "uint8"])), (1.0, 1.0, 1.0), (3, -5, 2))
    first, second, offset = (int(v) for v in rng.integers(-500, 500, 3))
    return PairScale(
        pair, bool(rng.random() < 0.5), first, second, offset, int(rng.integers(1, 18)), bool(rng.random() < 0.5)
    )


def on_thresholds(kind: str, find: Callable[[ThresholdTable], Any]) -> Callable[[np.random.Generator, IntType], Any]:
    return lambda rng, source: find(stairs(rng, source, kind))


MAKERS: dict[str, tuple[Callable[[np.random.Generator, IntType], Any], tuple[int, ...]]] = {
    "hg_threshold": (on_thresholds("one way", thresholds.find), (1, 2)),
    "hg_compare": (on_thresholds("one way", compare.find), (1, 2)),
    "hg_rank": (on_thresholds("any", rank.find), (1,)),
    "hg_table": (tables, (1, 2)),
    "hg_correct": (on_thresholds("even", lambda steps: correct.find(steps, FOLDED[0])), (1, 2)),
    "hg_shift": (shifts, (1, 2)),
    "hg_lane_shift": (lane_shifts, (1,)),
    "hg_lane_table": (lane_tables, (1,)),
    "hg_lines": (lines, (1,)),
    "hg_scale": (scales, (1, 2)),
    "hg_scale_f32": (float_scales, (1, 2)),
    "hg_pair_add": (adds, (1,)),
    "hg_pair_scale": (products, (1,)),
}
#: True if lanes change between sets, for the finder of hg_correct.
FOLDED = [False]


def cell(binding: Binding) -> Cell:
    """The binding as the checker reads it back."""
    parameters: dict[str, ParameterValue] = {
        name: SizedConstant(value.width, value.value & ((1 << value.width) - 1)) if isinstance(value, Bits) else value
        for name, value in binding.parameters.items()
    }
    return Cell(binding.module, "q0", parameters, {})


def function(source: IntType, result: IntType) -> StepFunction:
    """A function of these types, for its interval."""
    lo, hi = np.full(SETS, source.lo), np.full(SETS, source.hi)
    quantizer = QuantizeLinear(np.ones(SETS, np.float32), np.zeros(SETS, np.int64), result, "int32")
    return StepFunction("test", Fixed(0), (), quantizer, np.zeros(1, np.int64), lo, hi, source, result)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("module", list(MAKERS))
def test_models_of_modules(module: str, seed: int, tmp_path: Path) -> None:
    """Every input in every lane equals the realization, and all changes of the code are known.

    Also checked for files with words that no realization has.
    """
    rng = np.random.default_rng([seed, len(module)])
    make, folds = MAKERS[module]
    count = folds[seed % len(folds)]
    FOLDED[0] = count > 1
    pair = module.startswith("hg_pair")
    source = IntType(0, 65535) if pair else int_type(int(rng.integers(6, 12)), bool(rng.random() < 0.5))
    result = IntType(-128, 127)
    realization = make(rng, source)
    if isinstance(realization, str):
        pytest.skip(realization)
    index = np.zeros((1, 2), np.int64) if pair else rng.permutation(SETS).reshape(count, -1)
    binder = float_scale.bind if module == "hg_scale_f32" else bind
    bound = binder(realization, index, source, result, "q0")
    assert bound.module == module
    for name, text in bound.memories.items():
        (tmp_path / name).write_text(text)
    model = MODELS[module](cell(bound), Memories(tmp_path))  # type: ignore[call-arg]
    x = np.arange(source.lo, source.hi + 1)
    expected = realization.apply(x) if pair else realization.apply(np.broadcast_to(x[:, None], (len(x), SETS)))
    for (fold, lane), s in np.ndenumerate(index):
        lane_expected = expected if pair else expected[:, s]
        assert ((model.apply(fold, lane, x) - lane_expected) & 255 == 0).all()
        check_runs(model, fold, lane, function(source, result), x)
    if pair:
        return
    for _ in range(4):
        spoil(bound, tmp_path, rng)
        with contextlib.suppress(hlsgen.HlsgenError):  # a left shift above LEFT
            model = MODELS[module](cell(bound), Memories(tmp_path))  # type: ignore[call-arg]
        for (fold, lane), _s in np.ndenumerate(index):
            check_runs(model, fold, lane, function(source, result), x)


def spoil(binding: Binding, folder: Path, rng: np.random.Generator) -> None:
    """Flip a random bit of a random word of each file."""
    for name in binding.memories:
        words = (folder / name).read_text().split()
        n = int(rng.integers(len(words)))
        bits = 1 << int(rng.integers(max(1, (int(words[n], 16)).bit_length() // 2 + 1)))
        top = max(int(word, 16).bit_length() for word in words)
        words[n] = f"{(int(words[n], 16) ^ bits) & ((1 << max(1, top)) - 1):0{len(words[n])}x}"
        (folder / name).write_text("\n".join(words) + "\n")


def check_runs(model: Any, fold: int, lane: int, f: StepFunction, x: Array) -> None:
    code = model.apply(fold, lane, x) & 255
    code = code - ((code >> 7) << 8)
    lane_runs = runs(model, fold, lane, f, 0)
    assert (lane_runs.at(x) == code).all()
    assert len(lane_runs.start) == 1 + np.count_nonzero(code[1:] != code[:-1])


@pytest.mark.cases(2)
@pytest.mark.sim
@needs_icarus
@pytest.mark.parametrize(
    "name",
    [
        "compare",
        "rank",
        "shift",
        "lane shift",
        "lane table",
        "table",
        "indexed",
        "shared table",
        "shared indexed",
        "keys",
    ],
)
def test_models_of_modules_in_simulation(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hardware with changed memories computes the checker's prediction, on every input of a first layer."""
    rng = np.random.default_rng(7)
    core = CASES[name].build(tmp_path / "core")
    build = reopen(core)
    quantizers = tuple(f"top_{node.name}" for node in build.network.nodes if node.layer in build.network.choices)
    for path in sorted(path for path in (core / "rtl").glob("top_*.mem") if path.name.startswith(quantizers)):
        words = path.read_text().split()
        n = int(rng.integers(len(words)))
        words[n] = f"{int(words[n], 16) ^ 1 << int(rng.integers(2)):0{len(words[n])}x}"
        path.write_text("\n".join(words) + "\n")
    position = next(i for i, layer in enumerate(build.graph.layers) if layer.name in build.network.choices)
    if position:
        pytest.skip("the quantizer is after other layers")
    proofs: list[tuple[Any, ...]] = []

    def record(f: Any, module: Any, uses: Any, cell: str, places: list[str]) -> Any:
        proofs.append((f, module))
        raise functions.broken("test", "enough")

    monkeypatch.setattr(functions, "prove", record)
    assert not hlsgen.certify(core).ok
    f, module = proofs[0]
    source, shape = build.graph.input.type, build.graph.input.shape
    size = int(np.prod(shape))
    x = (
        np.arange(source.lo, source.hi + 1)
        if not f.is_float
        else np.append(0, rng.integers(0x007FFFFF, source.hi, 300))
    )
    codes_of_hardware = run_hardware(
        build, core, np.repeat(x, size).reshape(-1, *shape), "icarus", allow_changed=True
    ).reshape(len(x), size)
    bits, order = f.output_type.bits, build.network.orders[1]
    lanes = build.network.nodes[-2].result.lanes
    for place, element in enumerate(order.tolist()):
        code = module.apply(place // lanes % module.folds, place % lanes, x) & ((1 << bits) - 1)
        assert ((codes_of_hardware[:, element] - code) & ((1 << bits) - 1) == 0).all()


# --------------------------------------------------------------------------- monotone pieces


def constant(rng: np.random.Generator, low: float, high: float, zeros: bool = True) -> Array:
    value = rng.uniform(low, high, SETS).astype(np.float32)
    return np.where(rng.random(SETS) < 0.2, np.float32(0), value) if zeros and rng.random() < 0.3 else value


def operations(rng: np.random.Generator) -> Iterator[Any]:
    for _ in range(int(rng.integers(0, 4))):
        kind = int(rng.integers(9))
        if kind < 3:
            name = str(rng.choice(sorted(KINDS)))
            yield Activation(
                name, float(rng.choice([2.0, 3.0, 0.5, -1.0, 0.1, -0.3, 1.0])), float(rng.choice([0.5, 1.05]))
            )
        elif kind == 3:
            yield Mul(constant(rng, -3, 3))
        elif kind == 4:
            yield Add(constant(rng, -20, 20))
        elif kind == 5:
            yield Div(constant(rng, 0.3, 4, zeros=False))
        elif kind == 6:
            yield (Max if rng.random() < 0.5 else Min)(constant(rng, -9, 9))
        elif kind == 7:
            yield Slope(constant(rng, -1, 2))
        else:
            yield Cast("float16")


def quantizers(rng: np.random.Generator) -> Any:
    type_ = int_type(int(rng.integers(2, 9)), True)
    size, zero, mode = constant(rng, 0.05, 3, zeros=False), constant(rng, -2, 2), Rounding(int(rng.integers(7)))
    match int(rng.integers(6)):
        case 0:
            return IntQuant(size, zero, type_, mode)
        case 4:
            parts = ints(rng, -900, 900), ints(rng, -999, 999), ints(rng, 0, 12), ints(rng, 0, 1)
            return Requantize(Convention.FLOOR, *parts, type_, "float32")
        case 1:
            return QuantizeLinear(size, ints(rng, -5, 5), type_, "int8")
        case 2:
            return FloatQuant(size, 2, -3, 12.0, True, mode)
        case 3:
            ones = np.ones(SETS, np.float32)
            return Trunc(size, zero, np.full(SETS, 4, np.float32), 0 * ones, ones, type_, mode)
        case _:
            return MultiThreshold(np.sort(rng.normal(0, 20, (7, SETS)), axis=0), 1.0, 0.0)


def integer_functions(rng: np.random.Generator) -> tuple[Any, list[Any], Any]:
    """Integers that wrap, and integer rescaling."""
    dtype = str(rng.choice(["int8", "uint8", "int16", "int32"]))
    ops: list[Any] = []
    for _ in range(int(rng.integers(0, 3))):
        info = np.iinfo(dtype)
        value = rng.integers(info.min, info.max + 1, SETS).astype(dtype)
        ops.append(Add(value) if rng.random() < 0.6 else (Max if rng.random() < 0.5 else Min)(value))
    if rng.random() < 0.3:
        ops.append(Cast(str(rng.choice(["int8", "int16", "float32"]))))
    if ops and isinstance(ops[-1], Cast) and ops[-1].dtype == "float32":
        return IntegerEncoding(dtype, ints(rng, -300, 300)), ops, quantizers(rng)
    convention = list(Convention)[int(rng.integers(len(Convention)))]
    shift = ints(rng, 28, 40) if convention is Convention.DOUBLE else ints(rng, 0, 12)
    multiplier = ints(rng, 1, 1 << 30) if convention is Convention.DOUBLE else ints(rng, -200, 200)
    quantizer = Requantize(
        convention, multiplier, ints(rng, -50, 50), shift, ints(rng, -4, 4), IntType(-128, 127), "int8"
    )
    return IntegerEncoding(dtype, ints(rng, -300, 300)), ops, quantizer


@pytest.mark.parametrize("seed", range(150))
def test_pieces_are_monotone(seed: int) -> None:
    """On small intervals, the pieces cover every input, and are monotone if the checker says so."""
    rng = np.random.default_rng(seed)
    bits = int(rng.integers(4, 13))
    source, result = int_type(bits, True), IntType(-(1 << 31), (1 << 31) - 1)
    ops, quantizer = list(operations(rng)), quantizers(rng)
    match seed % 4:
        case 0:
            meaning: Any = Affine(constant(rng, -0.3, 0.3), constant(rng, -30, 30))
        case 1:
            meaning = Accumulator(2, ints(rng, -50, 50), rng.uniform(0.001, 0.1, SETS))
        case 2:
            meaning = Fixed(int(rng.integers(0, bits)))
        case _:
            meaning, ops, quantizer = integer_functions(rng)
    lo, hi = np.sort(rng.integers(source.lo, source.hi + 1, (2, SETS)), axis=0)
    f = StepFunction("test", meaning, tuple(ops), quantizer, np.zeros(1, np.int64), lo, hi, source, result)
    cut, monotone_pieces = pieces(f), 0
    for s in range(SETS):
        pieces_of_set = np.flatnonzero(cut.s == s)
        assert cut.lo[pieces_of_set[0]] == lo[s]
        assert cut.hi[pieces_of_set[-1]] == hi[s]
        assert (cut.lo[pieces_of_set[1:]] == cut.hi[pieces_of_set[:-1]] + 1).all()
        function_of_set = f.take(np.array([s]), lo[[s]], hi[[s]])
        for i in pieces_of_set:
            if not cut.unknown[i]:
                y = np.diff(function_of_set.evaluate(np.arange(cut.lo[i], cut.hi[i] + 1)[:, None])[:, 0])
                assert (y >= 0).all() or (y <= 0).all(), (s, cut.lo[i], cut.hi[i], ops, quantizer)
                monotone_pieces += 1
    assert monotone_pieces or any(isinstance(op, Cast | Activation) for op in ops) or isinstance(quantizer, Requantize)


def test_a_quotient_is_bounded_where_its_divisor_keeps_its_sign() -> None:
    """1 / (x + 0.5) has one code at both ends of -100..100 and others inside. Its bounds decide other inputs."""
    wide_type, narrow = int_type(9, True), int_type(4, True)
    over = BinaryOf(BinaryKind.DIV, ((Constant(np.float32(1)),), (Add(np.full(1, 0.5, np.float32)),)))
    unit_array = np.ones(1, np.float32)
    unit, quantizer = (
        Affine(unit_array, 0 * unit_array),
        QuantizeLinear(unit_array, np.zeros(1, np.int64), narrow, "int8"),
    )
    low, high = np.array([-100]), np.array([100])
    f = StepFunction("test", unit, (over,), quantizer, np.zeros(1, np.int64), low, high, wide_type, narrow)
    x = np.arange(-100, 101)
    exceptions = x[f.evaluate(x[:, None])[:, 0] != 0]
    assert len(exceptions) == 4
    open_inputs = undecided(f, low, high, np.zeros(1, np.int64))
    assert open_inputs is None or set(exceptions) <= set(open_inputs)
    assert undecided(f, np.array([10]), high, np.zeros(1, np.int64)).size == 0


@pytest.mark.parametrize(("folds", "remainder_bits"), [(2, 0), (1, 2), (3, 1)])
def test_registers_after_memories_of_correct(folds: int, remainder_bits: int, tmp_path: Path) -> None:
    """The module does not elaborate, and the model rejects it before it reads a table."""
    parameters: dict[str, ParameterValue] = {
        "LANES": 1,
        "IN_W": 8,
        "IN_SIGNED": 1,
        "OUT_W": 4,
        "FRACTION": 1,
        "COUNT": 2,
    }
    parameters |= {"SHAPES": 0, "FIRST": 0, "LAST": 0, "ABOVE": 0, "OPEN": 0, "FILE": "q"}
    cell = Cell("hg_correct", "q", {**parameters, "FOLDS": folds, "REST": remainder_bits, "DEEP": 1}, {})
    with pytest.raises(HlsgenError, match="DEEP is 1 with FOLDS > 1 or REST > 0"):
        CorrectModel(cell, Memories(tmp_path))
