"""Chooses the hardware for a step function: the cheapest of all realizations that are proven equal to it.

Each module of `realize` has a `find` that returns a realization with its proof done, or the reason, as text, why
there is none. This module asks all that apply, prices what they return, and takes the cheapest.
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
from hlsgen.rescale.prices import LIBRARY, Prices, Realization
from hlsgen.rescale.realize import (
    compare,
    correct,
    float_scale_match,
    float_units,
    indexed,
    pair,
    rank,
    scale,
    shared,
    shift,
    thresholds,
)
from hlsgen.rescale.realize import table as table_
from hlsgen.rescale.realize.rank import Rank
from hlsgen.rescale.realize.table import Table
from hlsgen.rescale.threshold_table import ThresholdTable

#: Names of realizations, as options and reports have them, and what each is.
KINDS = {
    "shift": "power-of-two shift with one of seven roundings",
    "scale": "multiplication, addition, shift",
    "float-scale": "one float32 product, emulated in integers",
    "correct": "coarse guess from the high bits, corrected by one threshold from a memory",
    "compare": "comparators, one for every threshold",
    "thresholds": "binary search over thresholds in memory",
    "indexed": "binary search, and a table of the codes",
    "shared-table": "offset for each set from a memory, and one table of all sets",
    "shared-indexed": "offset for each set from a memory, and one binary search and table of all sets",
    "rank": "cascade of small tables over the input's bits",
    "table": "table of all codes",
    "pair": "sum or product of two operands",
    "float-units": "the float32 operations themselves",
}
#: Bits of one block memory.
BLOCK_BITS = 18 * 1024
#: At most so many thresholds, of all sets together, are written into memories.
MAX_WIDE = 1 << 20
#: With more thresholds than this, of all sets together, `correct` is only tried where nothing else is possible: its
#: search takes milliseconds a set, and its tables have a column for each.
MAX_CORRECT = 1 << 16


@dataclass(frozen=True)
class Preference:
    """What the user asks for.

    `prefer`: "lut" or "dsp", which of both to spend. `forced`: a name of KINDS, the only realization allowed, or None.
    `prices`: those of the target.
    """

    prefer: str = "lut"
    forced: str | None = None
    prices: Prices = LIBRARY


@dataclass(frozen=True)
class Trial:
    """A realization that was tried. `why` is empty if it was found, and then the cost is given; else the reason."""

    name: str
    why: str
    lut: float | None = None
    dsp: int = 0
    memory_bits: int = 0


@dataclass(frozen=True, eq=False)
class Choice:
    """The realization that was chosen, and everything that was tried.

    `function`: what was proven, of one stream. `steps` are the steps that it was proven on, or None if these are too many
    to list. For two streams, `plan` says how they are joined, and the realization is that of the function behind the join.
    """

    name: str
    realization: Realization
    steps: ThresholdTable | None
    trials: tuple[Trial, ...]
    plan: JoinPlan | FloatJoin | None = None
    function: StepFunction | None = None


def choose_realization(f: StepFunction, table: Array, preference: Preference = Preference()) -> Choice:
    """The cheapest hardware that is proven equal to f.

    `table` int64 (folds, lanes): which set of f each lane computes in each fold, as `dataflow.builder.fold_table`
    gives it. Raises HG037 if no realization is possible, or the forced one is not.
    """
    return replace(_cheapest(f.name, [_Task.of(f, table, preference)], preference), function=f)


def choose_join(found: JoinSearch, table: Array, preference: Preference = Preference()) -> Choice:
    """The cheapest join plan together with the hardware for the function behind it.

    `table` int64 (folds, lanes): which set of `found.index` each lane computes in each fold. Raises HG037 if no
    realization is possible, or the forced one is not.
    """
    tasks = []
    for plan in found.plans:
        if isinstance(plan.function, StepFunction):
            task = _Task.of(plan.function, table, preference)
        else:
            task = _Task(None, plan.function, None, plan.type, found.result, table, preference)
        tasks.append(replace(task, plan=plan))
    return _cheapest(found.name, tasks, preference)


def choose_float_join(
    plan: FloatJoin, table: Array, preference: Preference = Preference(), before: tuple[Trial, ...] = ()
) -> Choice:
    """A join in float32, with the hardware for the function behind it. `before`: what was tried instead.

    Raises HG037 if no realization is possible, or the forced one is not.
    """
    behind = choose_realization(plan.function, table, preference)
    units = [float_units.cost(own, table)[0] for own in plan.operands]
    whole = sum(units) + JOIN_LUT[plan.kind] * table.shape[1]
    name = f"{behind.name} of {plan}"
    trials = [
        replace(t, name=f"{t.name} of {plan}", lut=None if t.lut is None else t.lut + whole) for t in behind.trials
    ]
    return Choice(name, behind.realization, behind.steps, (*before, *trials), plan)


def _cheapest(name: str, tasks: list[_Task], preference: Preference) -> Choice:
    """The candidate of all tasks with the lowest price, its DSP blocks and memory counted in LUT. Raises HG037."""
    trials: list[Trial] = []
    best: tuple[float, str, Realization, _Task] | None = None
    prices = preference.prices
    per_dsp, per_block = prices.counts[preference.prefer]
    for task in tasks:
        before, of = (
            ((0.0, 0, 0), "")
            if task.plan is None
            else (prices.join(task.plan, task.table, task.dsp), f" of {task.plan}")
        )
        for kind, attempt in task.candidates():
            if preference.forced not in (None, kind):
                continue
            if kind == "correct" and best is not None and task.large:
                trials.append(
                    Trial(kind + of, f"not tried with more than {MAX_CORRECT} thresholds of all sets together")
                )
                continue
            found = attempt()
            if isinstance(found, str):
                trials.append(Trial(kind + of, found))
                continue
            price = prices.realization(found, task.table, task.source, task.result, task.dsp)
            lut, dsp, memory = (x + y for x, y in zip(price, before, strict=True))
            trials.append(Trial(kind + of, "", round(float(lut), 1), int(dsp), int(memory)))
            score = lut + per_dsp * dsp + per_block * memory / BLOCK_BITS
            if best is None or score < best[0]:
                best = score, kind + of, found, task
    if best is None:
        raise _impossible(name, trials, preference)
    _, kind, realization, task = best
    return Choice(kind, realization, task.listed, tuple(trials), task.plan)


def _impossible(name: str, trials: list[Trial], preference: Preference) -> HlsgenError:
    """HG037 with the reason of every trial."""
    reasons = "; ".join(f"{t.name}: {t.why}" for t in trials)
    if preference.forced is not None:
        reasons = reasons or "it is none for functions of this kind"
        return fail(
            "HG037", name, f"the realization {preference.forced!r} is impossible here. {reasons}.",
            "Leave --realize out for this quantizer: then all that are possible are tried.",
        )  # fmt: skip
    return fail(
        "HG037", name, f"no hardware was found for this function. {reasons}.",
        "Use a narrower quantizer in front of it, or fewer bits behind it.",
    )  # fmt: skip


def _no_rank_for_folded_sets(_: ThresholdTable) -> Rank | str:
    """Why `rank` is not tried with several folds."""
    return "its tables would change from beat to beat"


#: A realization, or why there is none.
Attempt = Callable[[], "Realization | str"]


@dataclass(frozen=True, eq=False)
class _Task:
    """One function that needs hardware, in every form that is known of it.

    `f`: the model's own operations, or None if only the steps are known. `steps`: the steps, a table of all codes, or
    the reason why the steps cannot be listed. `wide`: the steps where they are too many for a certificate but few
    enough for memories, else None. `source`, `result`: types of the codes that come and go. `table` int64 (folds,
    lanes). `plan`: how two streams are joined in front of it, or None.
    """

    f: StepFunction | None
    steps: ThresholdTable | Table | str
    wide: ThresholdTable | None
    source: IntType
    result: IntType
    table: Array
    preference: Preference
    plan: JoinPlan | None = None

    @staticmethod
    def of(f: StepFunction, table: Array, preference: Preference) -> _Task:
        """The task of f. It accepts up to 65535 steps a set for memories, fewer with many sets (MAX_WIDE)."""
        steps = trace(f, MAX_STEPS, min((1 << 16) - 1, MAX_WIDE // f.sets))
        if isinstance(steps, ThresholdTable) and steps.steps > MAX_STEPS:
            reason = f"it has {steps.steps} steps; at most {MAX_STEPS}"
            return _Task(f, reason, steps, f.input_type, f.output_type, table, preference)
        return _Task(f, steps, None, f.input_type, f.output_type, table, preference)

    @property
    def dsp(self) -> bool:
        """Whether multiplications take DSP blocks."""
        return self.preference.prefer == "dsp"

    @property
    def large(self) -> bool:
        """Whether there are so many thresholds that the realization with the dearest search comes last."""
        return isinstance(self.steps, ThresholdTable) and self.steps.sets * self.steps.steps > MAX_CORRECT

    @property
    def listed(self) -> ThresholdTable | None:
        """The steps that the certificate lists, if they are few enough."""
        return self.steps if isinstance(self.steps, ThresholdTable) else None

    def on_steps(self, find: Callable[[ThresholdTable], Realization | str], wide: bool = False) -> Attempt:
        """The attempt to realize the steps by `find`. With `wide`, `find` takes any number of steps."""

        def found() -> Realization | str:
            steps = self.wide or self.steps if wide else self.steps
            if isinstance(steps, ThresholdTable):
                return find(steps)
            return steps if isinstance(steps, str) else "only a table of all codes is known"

        return found

    def candidates(self) -> list[tuple[str, Attempt]]:
        """Every realization that applies to this function, as its name and an attempt that is not yet made."""
        found = self._in_order()
        return sorted(found, key=lambda candidate: candidate[0] == "correct") if self.large else found

    def _in_order(self) -> list[tuple[str, Attempt]]:
        f, folds, dsp = self.f, len(self.table), self.dsp
        if isinstance(self.steps, Table):
            known = self.steps
            return [("table", lambda: known)]
        if f is not None and isinstance(f.quantizer, Pair):
            return [("pair", partial(pair.find, f))]
        found: list[tuple[str, Attempt]] = [
            ("scale", self.on_steps(partial(scale.find, dsp=dsp))),
            ("correct", self.on_steps(partial(correct.find, folded=folds > 1))),
            ("compare", self.on_steps(compare.find)),
            ("thresholds", self.on_steps(thresholds.find, wide=True)),
            ("rank", self.on_steps(rank.find if folds == 1 else _no_rank_for_folded_sets)),
            ("table", self.on_steps(partial(table_.find, folds=folds))),
            ("indexed", self.on_steps(partial(indexed.find, folds=folds))),
        ]
        if len(np.unique(self.table)) < folds:
            found += [
                ("shared-table", self.on_steps(shared.find_table)),
                ("shared-indexed", self.on_steps(shared.find_indexed)),
            ]
        if f is None:
            return found
        known_ = self.wide or self.listed
        found = [
            ("shift", partial(shift.find, f)),
            found[0],
            ("float-scale", partial(float_scale_match.find, f, known_, dsp=dsp)),
            *found[1:],
        ]
        if isinstance(self.steps, str) or self.preference.forced == "float-units":
            found.append(("float-units", partial(_float_units, f) if self.plan is None else _no_float_units_of_two))
        return found


def _no_float_units_of_two() -> str:
    return "float32 units take one tensor"


def _float_units(f: StepFunction) -> Realization | str:
    """The float32 units of f, or the message of the error why there are none."""
    try:
        return float_units.build(f)
    except HlsgenError as error:
        return error.diagnostics[0].message
