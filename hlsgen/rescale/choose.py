"""Which hardware realizes a step function: the one place of that decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hlsgen.errors import HlsgenError, fail
from hlsgen.fixed import Array
from hlsgen.rescale import floats, shift, thresholds
from hlsgen.rescale.floats import FloatUnits
from hlsgen.rescale.shift import Shift
from hlsgen.rescale.step import StepFunction
from hlsgen.rescale.steps import Steps
from hlsgen.rescale.thresholds import Thresholds
from hlsgen.rescale.trace import trace

#: Realizations that are one module.
Single = Shift | Thresholds
Realization = Single | FloatUnits

#: Names of realizations, as options and reports have them, and what each is.
KINDS = {
    "shift": "power-of-two shift with one of seven roundings",
    "thresholds": "binary search over thresholds in memory",
    "float-units": "the float32 operations themselves",
}
#: What a DSP block and a block memory of 18 Kbit count in LUT, by preference.
_WEIGHTS = {"lut": (200.0, 150.0), "dsp": (20.0, 100.0)}
BLOCK_BITS = 18 * 1024


@dataclass(frozen=True)
class Wish:
    """What the user asks for: `prefer` "lut" or "dsp"; `forced` a name of KINDS, or None."""

    prefer: str = "lut"
    forced: str | None = None


@dataclass(frozen=True)
class Trial:
    """A realization that was tried: its cost, or why there is none."""

    name: str
    why: str
    lut: float | None = None
    dsp: int = 0
    memory_bits: int = 0


@dataclass(frozen=True, eq=False)
class Choice:
    """What was taken, the steps it was proven on (None: too many to list), and all that was tried."""

    name: str
    realization: Realization
    steps: Steps | None
    trials: tuple[Trial, ...]


def realize(f: StepFunction, table: Array, wish: Wish = Wish()) -> Choice:
    """The cheapest hardware proven equal to f. `table` (folds, lanes) as in schedule.fold_table.

    Each finder gives a realization that it has proven, or the reason why there is none. Raises HG037.
    """
    steps = trace(f)
    trials: list[Trial] = []
    best: tuple[float, str, Realization] | None = None
    for name, finder, price in _candidates(f, steps, table, wish.prefer == "dsp"):
        if wish.forced not in (None, name):
            continue
        found = finder()
        if isinstance(found, str):
            trials.append(Trial(name, found))
            continue
        lut, dsp, memory = price(found)
        trials.append(Trial(name, "", round(lut, 1), dsp, memory))
        per_dsp, per_block = _WEIGHTS[wish.prefer]
        score = lut + per_dsp * dsp + per_block * memory / BLOCK_BITS
        if best is None or score < best[0]:
            best = score, name, found
    if best is None and wish.forced in (None, "float-units"):
        try:
            best = 0.0, "float-units", floats.build(f)
            trials.append(Trial("float-units", "", *floats.cost(best[2], table)))
        except HlsgenError as error:
            trials.append(Trial("float-units", error.diagnostics[0].message))
    if best is None:
        reasons = "; ".join(f"{t.name}: {t.why}" for t in trials)
        raise fail(
            "HG037", f.name, f"no hardware was found for this function. {reasons}.",
            "Use a narrower quantizer in front of it, or fewer bits behind it.",
        )  # fmt: skip
    return Choice(best[1], best[2], None if isinstance(steps, str) else steps, tuple(trials))


Finder = Callable[[], "Realization | str"]
Price = Callable[["Realization"], tuple[float, int, int]]


def _candidates(f: StepFunction, steps: Steps | str, table: Array, dsp: bool) -> list[tuple[str, Finder, Price]]:
    source, result = f.input_type, f.output_type

    def on_steps(find: Callable[[Steps], Realization | str]) -> Finder:
        return lambda: steps if isinstance(steps, str) else find(steps)

    return [
        ("shift", lambda: shift.find(f), lambda g: shift.cost(g, table, source, result)),
        ("thresholds", on_steps(thresholds.find), lambda g: thresholds.cost(g, table, source, result)),
    ]  # fmt: skip
