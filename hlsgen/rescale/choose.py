"""Which hardware realizes a step function: the one place of that decision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from hlsgen.errors import HlsgenError, fail
from hlsgen.fixed import Array, IntType
from hlsgen.operations import (
    Pair,
)
from hlsgen.rescale import (
    compare,
    correct,
    float_scale,
    floats,
    indexed,
    pair,
    product,
    rank,
    scale,
    shift,
    thresholds,
)  # fmt: skip
from hlsgen.rescale import table as table_
from hlsgen.rescale.compare import Compare
from hlsgen.rescale.correct import Correct
from hlsgen.rescale.float_scale import FloatScale
from hlsgen.rescale.floats import FloatUnits
from hlsgen.rescale.indexed import Indexed
from hlsgen.rescale.pair import PairAdd, PairScale
from hlsgen.rescale.rank import Rank
from hlsgen.rescale.scale import Scale
from hlsgen.rescale.shift import Shift
from hlsgen.rescale.step import StepFunction
from hlsgen.rescale.steps import Steps
from hlsgen.rescale.table import Table
from hlsgen.rescale.thresholds import Thresholds
from hlsgen.rescale.trace import MAX_STEPS, trace

#: Realizations that are one module.
Single = Shift | Thresholds | Compare | Rank | Table | Scale | FloatScale | Correct | PairAdd | PairScale
Realization = Single | Indexed | FloatUnits

#: Names of realizations, as options and reports have them, and what each is.
KINDS = {
    "shift": "power-of-two shift with one of seven roundings",
    "scale": "multiplication, addition, shift",
    "float-scale": "one float32 product, emulated in integers",
    "correct": "coarse guess from the high bits, corrected by one threshold from a memory",
    "compare": "comparators, one for every threshold",
    "thresholds": "binary search over thresholds in memory",
    "indexed": "binary search, and a table of the codes",
    "rank": "cascade of small tables over the input's bits",
    "table": "table of all codes",
    "pair": "sum or product of two operands",
    "float-units": "the float32 operations themselves",
}
#: What a DSP block and a block memory of 18 Kbit count in LUT, by preference.
_WEIGHTS = {"lut": (200.0, 150.0), "dsp": (20.0, 100.0)}
BLOCK_BITS = 18 * 1024
#: Most thresholds of all channels together that are written into memories.
MAX_WIDE = 1 << 20


#: LUT, DSP blocks, bits of block memory.
Price = tuple[float, int, int]


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
    candidates = _candidates(f, steps, table, wish.prefer == "dsp")
    if isinstance(steps, str):
        candidates = [c for c in candidates if c[0] not in _WIDE] + _wide_candidates(f, table, wish.prefer == "dsp")
    elif wish.forced == "float-units":
        candidates.append(("float-units", partial(_units, f, table)))
    for name, attempt in candidates:
        if wish.forced not in (None, name):
            continue
        result = attempt()
        if isinstance(result, str):
            trials.append(Trial(name, result))
            continue
        found, (lut, dsp, memory) = result
        trials.append(Trial(name, "", round(float(lut), 1), int(dsp), int(memory)))
        per_dsp, per_block = _WEIGHTS[wish.prefer]
        score = lut + per_dsp * dsp + per_block * memory / BLOCK_BITS
        if best is None or score < best[0]:
            best = score, name, found
    if best is None:
        reasons = "; ".join(f"{t.name}: {t.why}" for t in trials)
        raise fail(
            "HG037", f.name, f"no hardware was found for this function. {reasons}.",
            "Use a narrower quantizer in front of it, or fewer bits behind it.",
        )  # fmt: skip
    return Choice(best[1], best[2], None if isinstance(steps, str) else steps, tuple(trials))


def _changing(_: Steps) -> Rank | str:
    return "its tables would change from beat to beat"


R = TypeVar("R", bound=Realization)
#: A realization and its price, or why there is none.
Attempt = Callable[[], "tuple[Realization, tuple[float, int, int]] | str"]


#: Realizations that functions of very many steps can have.
_WIDE = ("float-scale", "thresholds", "float-units")


def _units(f: StepFunction, table: Array) -> tuple[Realization, Price] | str:
    try:
        found = floats.build(f)
    except HlsgenError as error:
        return error.diagnostics[0].message
    return found, floats.cost(found, table)


def _wide_candidates(f: StepFunction, table: Array, dsp: bool) -> list[tuple[str, Attempt]]:
    """For functions of more steps than a certificate lists: 16-bit codes of a few channels."""
    most = min((1 << 16) - 1, MAX_WIDE // f.sets)
    steps = trace(f, max(most, MAX_STEPS))
    kept = [c for c in _candidates(f, steps, table, dsp) if c[0] in _WIDE]

    return [*kept, ("float-units", partial(_units, f, table))]


def _candidates(f: StepFunction, steps: Steps | str, table: Array, dsp: bool) -> list[tuple[str, Attempt]]:
    source, result, folds = f.input_type, f.output_type, len(table)

    def attempt(find: Callable[[], R | str], price: Callable[[R, Array, IntType, IntType], Price]) -> Attempt:
        def run() -> tuple[Realization, Price] | str:
            found = find()
            return found if isinstance(found, str) else (found, price(found, table, source, result))

        return run

    def on_steps(find: Callable[[Steps], R | str], price: Callable[[R, Array, IntType, IntType], Price]) -> Attempt:
        def found() -> R | str:
            return steps if isinstance(steps, str) else find(steps)

        return attempt(found, price)

    if isinstance(f.quantizer, Pair):
        found = pair.find(f)
        return [("pair", lambda: found if isinstance(found, str) else (found, pair.cost(found, table, source, result)))]
    return [
        ("shift", attempt(partial(shift.find, f), shift.cost)),
        ("scale", on_steps(partial(scale.find, dsp=dsp), partial(scale.cost, dsp=dsp))),
        ("float-scale", on_steps(partial(product.find, f, dsp=dsp), partial(float_scale.cost, dsp=dsp))),
        ("correct", on_steps(partial(correct.find, folded=folds > 1), correct.cost)),
        ("compare", on_steps(compare.find, compare.cost)),
        ("thresholds", on_steps(thresholds.find, thresholds.cost)),
        ("rank", on_steps(rank.find if folds == 1 else _changing, rank.cost)),
        ("table", on_steps(partial(table_.find, folds=folds), table_.cost)),
        ("indexed", on_steps(partial(indexed.find, folds=folds), indexed.cost)),
    ]
