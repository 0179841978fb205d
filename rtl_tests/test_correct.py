"""hg_correct: a guess by buckets and cells, corrected by one comparison, against the step functions."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from streams import Stream, all_inputs, integers, pack, sweep
from verilated import tool_environment

from hlsgen.numerics.fixed import IntType
from hlsgen.rescale.realize import correct
from hlsgen.rescale.threshold_table import ThresholdTable
from hlsgen.verilog.binding import correct as binding
from hlsgen.verilog.binding.memory_files import Bits

RTL = Path(__file__).resolve().parent.parent / "templates" / "rtl"


@dataclass(frozen=True)
class Case:
    """Random step functions: thresholds `reach` of the input's range apart in all, moved by up to `noise`."""

    lanes: int
    folds: int
    in_w: int
    signed: bool
    steps: int
    base: int
    reach: float
    noise: int
    #: All lanes have the same functions.
    shared: bool = False
    #: Each set has its own interval. The first interval covers the set's middle thresholds only.
    inside: bool = False
    #: Expected features: finer parts of thresholds, inputs outside the buckets of the first set.
    rest: bool = False
    beyond: bool = True
    #: Codes are sent before they are in registers.
    open: bool = False
    #: Lookup tables in logic have output registers.
    deep: bool = False

    @property
    def table(self) -> np.ndarray:
        """The set of each lane, (folds, lanes)."""
        if self.shared:
            return np.repeat(np.arange(self.folds)[:, None], self.lanes, axis=1)
        return np.arange(self.folds * self.lanes).reshape(self.folds, self.lanes)


FLAT = Case(16, 1, 12, True, 15, -8, 0.6, 5, shared=True)
LOGIC = Case(16, 1, 12, True, 127, -64, 0.5, 0, shared=True)
REST = Case(16, 1, 13, False, 127, 0, 0.7, 2, shared=True, rest=True)
MEMORY = Case(16, 3, 10, True, 31, 0, 0.3, 0, shared=True)
MEMORY_REST = Case(16, 3, 11, False, 25, -12, 0.6, 3, shared=True, rest=True)
CASES = [
    Case(4, 1, 20, False, 100, 0, 0.7, 40, rest=True),
    Case(2, 3, 24, True, 255, -128, 0.8, 9, rest=True),
    Case(3, 1, 16, True, 255, -128, 0.5, 0),
    Case(2, 3, 14, True, 63, 0, 0.3, 0),
    Case(3, 1, 16, True, 15, -8, 0.6, 20),
    Case(3, 1, 32, True, 255, -128, 0.2, 0),
    Case(3, 1, 32, True, 255, -128, 0.9, 60, rest=True),
    Case(1, 2, 32, False, 127, 0, 0.5, 0),
    Case(1, 4, 32, True, 31, 3, 0.1, 1000, rest=True),
    Case(2, 1, 1, False, 1, 0, 1.0, 0, beyond=False),
    Case(2, 2, 1, True, 1, -1, 1.0, 0, beyond=False),
    Case(1, 5, 12, True, 63, -32, 0.6, 0, inside=True, beyond=False),
    Case(4, 1, 12, False, 63, -32, 0.6, 0, inside=True, beyond=False),
    Case(2, 1, 9, True, 255, -128, 0.8, 0),
    # Codes of so few bits that their sum is no chain.
    Case(4, 1, 16, True, 14, -7, 0.3, 60),
    # Cells of so few bits that a link of the comparison takes several bits.
    Case(3, 1, 16, True, 100, -50, 1.2, 0),
    Case(3, 1, 13, True, 63, -32, 1.4, 0, beyond=False),
    Case(4, 1, 16, True, 14, -7, 0.3, 60, open=True),
    Case(2, 3, 12, True, 7, 0, 0.3, 0),
    Case(3, 1, 32, True, 255, -128, 0.2, 0, open=True),
    Case(2, 3, 14, True, 63, 0, 0.3, 0, open=True),
    Case(2, 3, 24, True, 255, -128, 0.8, 9, rest=True, open=True),
    Case(3, 1, 16, True, 255, -128, 0.5, 0, deep=True),
    Case(3, 1, 32, True, 255, -128, 0.2, 0, deep=True),
    Case(3, 1, 16, True, 15, -8, 0.6, 20, open=True, deep=True),
]


def domain(case: Case) -> IntType:
    half = 1 << (case.in_w - 1)
    return IntType(-half, half - 1) if case.signed else IntType(0, 2 * half - 1)


def functions(case: Case) -> ThresholdTable:
    rng = np.random.default_rng(case.in_w + case.steps)
    bounds, sets = domain(case), int(case.table.max()) + 1
    span = (bounds.hi - bounds.lo) * case.reach * rng.uniform(0.6, 1, sets)
    origin = bounds.lo + (bounds.hi - bounds.lo - span) * rng.uniform(0.2, 0.8, sets)
    table = np.ceil(origin + span * (np.arange(case.steps)[:, None] + 0.5) / case.steps).astype(np.int64)
    table = np.clip(table + rng.integers(-case.noise, case.noise + 1, table.shape), bounds.lo, bounds.hi + 1)
    lo, hi = np.full(sets, bounds.lo), np.full(sets, bounds.hi)
    if case.inside:
        lo, hi = np.sort(rng.integers(bounds.lo, bounds.hi + 1, (2, sets)), axis=0)
        lo[0], hi[0] = table[case.steps // 4, 0], table[case.steps // 2, 0]
        table = np.clip(table, lo, hi + 1)
    values = np.broadcast_to(case.base + np.arange(case.steps + 1)[:, None], (case.steps + 1, sets))
    return ThresholdTable("f", lo, hi, table, values)


def run(simulate: Callable[..., None], simulator: str, case: Case, x: np.ndarray) -> None:
    steps = functions(case)
    realization = correct.find(steps, case.folds > 1)
    assert isinstance(realization, correct.Correct), realization
    realization = replace(realization, every=1) if case.deep else realization
    assert (realization.rest_bits > 0, bool(realization.beyond[0]), realization.deep) == (
        case.rest,
        case.beyond,
        case.deep,
    )
    result = IntType(case.base, case.base + case.steps)
    bound = binding.bind(realization, case.table, domain(case), result, "c")
    channel = case.table[np.arange(len(x)) % case.folds]
    x = np.clip(x, steps.lo[channel], steps.hi[channel])
    code = np.empty_like(x)
    for fold, sets in enumerate(case.table):
        part = x[fold :: case.folds]
        code[fold :: case.folds] = replace(
            steps, lo=steps.lo[sets], hi=steps.hi[sets], table=steps.table[:, sets], values=steps.values[:, sets]
        ).apply(part)
    job = Stream(
        {"s_data": pack(x, case.in_w)},
        {"m_data": pack(code, result.bits)},
        latency=realization.latency - case.open,
        capacity=realization.latency - case.open,
    )
    parameters = {name: _text(value) for name, value in bound.parameters.items()} | {"OPEN": int(case.open)}
    simulate(simulator, "hg_correct", parameters, job, bound.memories)


def _text(value: object) -> object:
    if isinstance(value, Bits):
        return f"{value.width}'h{value.value & ((1 << value.width) - 1):x}"
    return f'"{value}"' if isinstance(value, str) else value


@pytest.mark.cases(1)
@pytest.mark.parametrize("simulator, case", sweep(CASES))
def test_correct(simulate: Callable[..., None], simulator: str, case: Case) -> None:
    rng = np.random.default_rng(case.lanes)
    x = integers(rng, case.in_w, case.signed, (300, case.lanes))
    near_thresholds = rng.choice(functions(case).table.ravel(), x.shape) + rng.integers(-2, 2, x.shape)
    x = np.where(
        (rng.random(x.shape) < 0.7) & (near_thresholds >= x.min()) & (near_thresholds <= x.max()), near_thresholds, x
    )
    run(simulate, simulator, case, x)


@pytest.mark.cases(1)
@pytest.mark.parametrize("case", [FLAT, LOGIC, REST, MEMORY, MEMORY_REST])
def test_every_input(simulate: Callable[..., None], case: Case) -> None:
    x = all_inputs(case.in_w, case.signed, case.lanes)
    run(simulate, "icarus", case, np.repeat(x, case.folds, axis=0))


@pytest.mark.parametrize(
    "values, stops",
    [
        ("DEEP=1 FOLDS=2 REST=0", True),
        ("DEEP=1 FOLDS=1 REST=2", True),
        ("DEEP=1 FOLDS=3 REST=1", True),
        ("DEEP=2 FOLDS=1 REST=0", True),
        ("DEEP=1 FOLDS=1 REST=0", False),
        ("DEEP=0 FOLDS=2 REST=2", False),
    ],
)
def test_registers_behind_memories_stop_elaboration(values: str, stops: bool) -> None:
    """DEEP counts for tables that are logic only: with memories codes would belong to other beats."""
    command = ["verilator", "--lint-only", "--quiet", "-Wno-fatal", "-y", str(RTL), "--top-module", "hg_correct"]
    command += [*(f"-G{value}" for value in values.split()), str(RTL / "hg_correct.v")]
    completed = subprocess.run(command, env=tool_environment(), capture_output=True, text=True, check=False)
    assert (completed.returncode != 0) == stops, completed.stderr
    assert ("hg_parameter_error_correct_deep" in completed.stderr) == stops
