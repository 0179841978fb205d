"""Chooses the hardware for a step function: the cheapest of all realizations that are proven equal to it.

Each module of `realize` has a `find`. It returns a proven realization, or the reason, as text, why there is none. This
module calls every `find` that applies, prices the realizations, and takes the cheapest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.ir.ops import Pair
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.binary.float_join import JOIN_LUT, FloatJoin
from hlsgen.rescale.binary.join_plan import JoinPlan
from hlsgen.rescale.binary.search import JoinSearch
from hlsgen.rescale.extract import MAX_STEPS, trace
from hlsgen.rescale.monotone_pieces import edges
from hlsgen.rescale.prices import LIBRARY, Prices, Realization
from hlsgen.rescale.realize import (
    compare,
    correct,
    float_scale_match,
    float_units,
    indexed,
    lane_shift,
    lane_table,
    lines,
    pair,
    rank,
    scale,
    scale_formula,
    shared,
    shift,
    thresholds,
)
from hlsgen.rescale.realize import table as table_
from hlsgen.rescale.realize.neuron_table import NeuronTable
from hlsgen.rescale.realize.rank import Rank
from hlsgen.rescale.realize.table import Table
from hlsgen.rescale.threshold_table import ThresholdTable

#: Names of realizations, as used by options and reports, and a description of each.
KINDS = {
    "shift": "power-of-two shift with one of seven roundings",
    "lane-shift": "power-of-two shift, rounding and bounds of each channel, in lanes of their own",
    "lane-table": "lookup table of each channel over the bits of its input that matter, in lanes of their own",
    "neuron-table": "lookup tables of the input bits of a neuron: the rows of a matrix and the quantizer in one",
    "scale": "multiplication, addition, shift",
    "float-scale": "one float32 product, emulated in integers",
    "correct": "coarse guess from the high bits, corrected by one threshold from a memory",
    "compare": "comparators, one for every threshold",
    "thresholds": "binary search over thresholds in memory",
    "indexed": "binary search, and a lookup table of the codes",
    "shared-table": "offset per channel from a memory, and one lookup table shared by all channels",
    "shared-indexed": "offset per channel from a memory, one binary search and lookup table shared by all channels",
    "rank": "cascade of small lookup tables over the input's bits",
    "table": "lookup table of all codes",
    "lines": "LOGISTIC and TANH of int16 codes: lines between knots, from a product and a memory",
    "pair": "sum or product of two operands",
    "float-units": "the float32 operations themselves",
}
#: Realizations whose reason is only told if they are forced: that of `shift` says it, or it says nothing.
_FEW_FUNCTIONS = ("lane-shift", "lines")
#: Bits of one block RAM.
BLOCK_BITS = 18 * 1024
#: At most this many thresholds, over all sets, are written into memories.
MAX_WIDE = 1 << 20
#: Above this many thresholds, over all sets, `correct` is only tried if nothing else is possible. Its search takes
#: milliseconds a set, and its tables have a column for each.
MAX_CORRECT = 1 << 16


@dataclass(frozen=True)
class Preference:
    """The user's wishes, and the target's prices.

    `prefer`: "lut" or "dsp", the resource to spend. `forced`: a name of KINDS, the only realization allowed, or None.
    `prices`: the prices of the target.
    """

    prefer: str = "lut"
    forced: str | None = None
    prices: Prices = LIBRARY


@dataclass(frozen=True)
class Trial:
    """A realization that was tried: its cost, or, if there is none, the reason in `why`."""

    name: str
    why: str
    lut: float | None = None
    dsp: int = 0
    memory_bits: int = 0


@dataclass(frozen=True, eq=False)
class Choice:
    """The chosen realization, and everything that was tried.

    `function`: the function of one stream that was proven. `steps` are the steps used in the proof, or None if they are
    too many to list. For two streams, `plan` says how they are joined, and the realization computes the function after
    the join.
    """

    name: str
    realization: Realization | NeuronTable
    steps: ThresholdTable | None
    trials: tuple[Trial, ...]
    plan: JoinPlan | FloatJoin | None = None
    function: StepFunction | None = None


def choose_realization(f: StepFunction, table: Array, preference: Preference = Preference()) -> Choice:
    """The cheapest hardware that is proven equal to f.

    `table` int64 (folds, lanes): the set of f that each lane computes in each fold, from `dataflow.builder.fold_table`.
    Raises HG037 if no realization is possible, or the forced one is not.
    """
    return replace(_cheapest(f.name, [_Task.of(f, table, preference)], preference), function=f)


def choose_join(search: JoinSearch, table: Array, preference: Preference = Preference()) -> Choice:
    """The cheapest join plan together with the hardware for the function after it.

    `table` int64 (folds, lanes): the set of `search.index` that each lane computes in each fold. Raises HG037 if no
    realization is possible, or the forced one is not.
    """
    tasks = []
    for plan in search.plans:
        if isinstance(plan.function, StepFunction):
            task = _Task.of(plan.function, table, preference)
        else:
            task = _Task(None, plan.function, None, plan.type, search.result, table, preference)
        tasks.append(replace(task, plan=plan))
    return _cheapest(search.name, tasks, preference)


def choose_float_join(
    plan: FloatJoin, table: Array, preference: Preference = Preference(), earlier_trials: tuple[Trial, ...] = ()
) -> Choice:
    """A join in float32, with the hardware for the function after it.

    `earlier_trials`: the plans that were rejected before. Raises HG037 if no realization is possible, or the forced one
    is not.
    """
    choice = choose_realization(plan.function, table, preference)
    unit_luts = [float_units.cost(operand, table)[0] for operand in plan.operands]
    join_lut = sum(unit_luts) + JOIN_LUT[plan.kind] * table.shape[1]
    name = f"{choice.name} of {plan}"
    trials = [
        replace(t, name=f"{t.name} of {plan}", lut=None if t.lut is None else t.lut + join_lut) for t in choice.trials
    ]
    return Choice(name, choice.realization, choice.steps, (*earlier_trials, *trials), plan)


def _cheapest(name: str, tasks: list[_Task], preference: Preference) -> Choice:
    """The cheapest candidate of all tasks, its DSP blocks and memory counted in LUT. Raises HG037 if there is none."""
    trials: list[Trial] = []
    best: tuple[float, str, Realization, _Task] | None = None
    prices = preference.prices
    per_dsp, per_block = prices.counts[preference.prefer]
    for task in tasks:
        join_price, plan_suffix = (
            ((0.0, 0, 0), "")
            if task.plan is None
            else (prices.join(task.plan, task.table, task.dsp), f" of {task.plan}")
        )
        for kind, attempt in task.candidates():
            if preference.forced not in (None, kind) or kind in prices.missing:
                continue
            if kind == "correct" and best is not None and task.large:
                trials.append(Trial(kind + plan_suffix, f"not tried with more than {MAX_CORRECT} thresholds in total"))
                continue
            realization = attempt()
            if isinstance(realization, str):
                if kind in _FEW_FUNCTIONS and preference.forced is None:
                    continue
                trials.append(Trial(kind + plan_suffix, realization))
                continue
            price = prices.realization(realization, task.table, task.source, task.result, task.dsp)
            lut, dsp, memory = (x + y for x, y in zip(price, join_price, strict=True))
            trials.append(Trial(kind + plan_suffix, "", round(float(lut), 1), int(dsp), int(memory)))
            score = lut + per_dsp * dsp + per_block * memory / BLOCK_BITS
            if best is None or score < best[0]:
                best = score, kind + plan_suffix, realization, task
    if best is None:
        raise _impossible(name, trials, preference)
    _, chosen_name, chosen, chosen_task = best
    return Choice(chosen_name, chosen, chosen_task.listed, tuple(trials), chosen_task.plan)


def _impossible(name: str, trials: list[Trial], preference: Preference) -> HlsgenError:
    """HG037 with the reason of every trial."""
    reasons = "; ".join(f"{t.name}: {t.why}" for t in trials)
    if preference.forced is not None:
        reasons = reasons or "it does not apply to functions of this kind"
        return fail(
            "HG037",
            name,
            f"the implementation {preference.forced!r} is impossible here. {reasons}.",
            "Leave --realize out for this quantizer: then all implementations are tried.",
        )
    return fail(
        "HG037",
        name,
        f"no hardware was found for this function. {reasons}.",
        "Use a narrower quantizer before this function, or fewer output bits.",
    )


def _no_rank_for_folded_sets(_: ThresholdTable) -> Rank | str:
    """The reason why `rank` is not tried with several folds."""
    return "its tables would change from beat to beat"


#: Returns a realization, or the reason why there is none.
Attempt = Callable[[], "Realization | str"]


@dataclass(frozen=True, eq=False)
class _Task:
    """One function that needs hardware, in every form that is known of it.

    `f`: the model's own operations, or None if only the steps are known. `steps`: the steps, a table of all codes, or
    the reason why the steps cannot be listed. `wide_steps`: the steps if they are too many for a certificate but few
    enough for memories, else None. `source`, `result`: types of the input and output codes. `table` int64 (folds,
    lanes). `plan`: the join of two streams before the function, or None.
    """

    f: StepFunction | None
    steps: ThresholdTable | Table | str
    wide_steps: ThresholdTable | None
    source: IntType
    result: IntType
    table: Array
    preference: Preference
    plan: JoinPlan | None = None

    @staticmethod
    def of(f: StepFunction, table: Array, preference: Preference) -> _Task:
        """The task of f, with up to 65535 steps a set for memories, fewer with many sets (MAX_WIDE).

        A function with a formula of its own (`scale_formula`) needs no such memories.
        """
        most_steps = 0 if scale_formula.applies(f) else min((1 << 16) - 1, MAX_WIDE // f.sets)
        steps = trace(f, MAX_STEPS, most_steps)
        if isinstance(steps, ThresholdTable) and steps.steps > MAX_STEPS:
            reason = f"it has {steps.steps} steps; at most {MAX_STEPS}"
            return _Task(f, reason, steps, f.input_type, f.output_type, table, preference)
        return _Task(f, steps, None, f.input_type, f.output_type, table, preference)

    @property
    def dsp(self) -> bool:
        """True if multiplications use DSP blocks."""
        return self.preference.prefer == "dsp"

    @property
    def large(self) -> bool:
        """True if `correct`, which has the slowest search, is tried last because of the number of thresholds."""
        return isinstance(self.steps, ThresholdTable) and self.steps.sets * self.steps.steps > MAX_CORRECT

    @property
    def listed(self) -> ThresholdTable | None:
        """The steps that the certificate lists, if they are few enough."""
        return self.steps if isinstance(self.steps, ThresholdTable) else None

    def on_steps(self, find: Callable[[ThresholdTable], Realization | str], accepts_wide: bool = False) -> Attempt:
        """An attempt to realize the steps with `find`. If `accepts_wide`, `find` accepts any number of steps."""

        def attempt() -> Realization | str:
            steps = self.wide_steps or self.steps if accepts_wide else self.steps
            if isinstance(steps, ThresholdTable):
                return find(steps)
            return steps if isinstance(steps, str) else "only a lookup table of all codes is known"

        return attempt

    def candidates(self) -> list[tuple[str, Attempt]]:
        """Every realization that applies to this function, as its name and an attempt that is not yet made."""
        candidates = self._in_order()
        return sorted(candidates, key=lambda candidate: candidate[0] == "correct") if self.large else candidates

    def _in_order(self) -> list[tuple[str, Attempt]]:
        f, folds, dsp = self.f, len(self.table), self.dsp
        if isinstance(self.steps, Table):
            lookup = self.steps
            return [("table", lambda: lookup)]
        if f is not None and isinstance(f.quantizer, Pair):
            return [("pair", partial(pair.find, f))]
        candidates: list[tuple[str, Attempt]] = [
            ("scale", self.on_steps(partial(scale.find, dsp=dsp))),
            ("correct", self.on_steps(partial(correct.find, folded=folds > 1))),
            ("compare", self.on_steps(compare.find)),
            ("thresholds", self.on_steps(thresholds.find, accepts_wide=True)),
            ("rank", self.on_steps(rank.find if folds == 1 else _no_rank_for_folded_sets)),
            ("table", self.on_steps(partial(table_.find, folds=folds), accepts_wide=True)),
            ("indexed", self.on_steps(partial(indexed.find, folds=folds))),
        ]
        if len(np.unique(self.table)) < folds:
            candidates += [
                ("shared-table", self.on_steps(shared.find_table)),
                ("shared-indexed", self.on_steps(shared.find_indexed)),
            ]
        if f is None:
            return candidates
        listed_steps = self.wide_steps or self.listed
        candidates = [
            ("shift", partial(shift.find, f)),
            *self._in_lanes(f),
            ("scale", partial(self._scaled, f, candidates[0][1])),
            ("float-scale", partial(float_scale_match.find, f, listed_steps, dsp=dsp)),
            *candidates[1:],
            ("lines", partial(lines.find, f, dsp)),
        ]
        if isinstance(self.steps, str) or self.preference.forced == "float-units":
            candidates.append(
                ("float-units", partial(_float_units, f) if self.plan is None else _no_float_units_of_two)
            )
        return candidates

    def _in_lanes(self, f: StepFunction) -> list[tuple[str, Attempt]]:
        """Realizations with one function a lane, the same in every beat, where channels differ or are not monotone."""
        if len(self.table) > 1:
            return []
        table = "lane-table", partial(lane_table.find, f)
        if f.sets > 1:
            return [("lane-shift", partial(lane_shift.find, f)), table]
        cuts = None if f.is_float else edges(f)
        return [] if f.is_float or (cuts is not None and len(cuts) <= 2) else [table]

    def _scaled(self, f: StepFunction, on_steps: Attempt) -> Realization | str:
        """A scale from the steps, or else from the operations of f: their two roundings are no line of the steps."""
        scaled = on_steps()
        if not isinstance(scaled, str):
            return scaled
        by_formula = scale_formula.find(f)
        if isinstance(by_formula, str):
            return f"{scaled}; {by_formula}" if isinstance(self.steps, str) else scaled
        return replace(by_formula, dsp=self.dsp)


def _no_float_units_of_two() -> str:
    return "float32 units have one input tensor"


def _float_units(f: StepFunction) -> Realization | str:
    """The float32 units of f, or the error message if there are none."""
    try:
        return float_units.build(f)
    except HlsgenError as error:
        return error.diagnostics[0].message
