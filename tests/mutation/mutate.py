"""Does simulation find every mistake in the Verilog library? Mutants of its modules, run through rtl_tests.

    python tests/mutation/mutate.py                          all mutants of all modules of UNITS (hours)
    python tests/mutation/mutate.py hg_fifo hg_slice         of these
    python tests/mutation/mutate.py --sample 20 --seed 3     20 of each module
    python tests/mutation/mutate.py --cases 1                a proof is tried before most simulations: several times faster

The tests of a module run once on the library as it is, and the simulations that they start are kept with what Icarus
Verilog printed. A mutant is killed if it does not compile, if a simulation prints anything else, or if cocotb or
pytest report a failure. What compiles to the same is not run again. What lives is compared with the module itself by
ABC: equivalent is what never shows a difference at any of the parameter sets of `equivalence.sets`, or has an entry
with an explanation in reasons.json. Exits with 1 if any other mutant survives. The scores are kept in docs/library.md.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from equivalence import RTL, equivalent
from killers import Bench
from mutants import Mutant, mutants
from units import UNITS

#: Seconds that ABC may take: before all simulations were tried, and behind them.
SOON, LONG = 10, 60
REASONS = Path(__file__).with_name("reasons.json")


def reasons() -> dict[str, str]:
    """Why a mutant that simulation does not find makes no difference, by "module: line -> line"."""
    found: dict[str, str] = json.loads(REASONS.read_text())
    return found


def key(mutant: Mutant) -> str:
    return f"{mutant.module}: {mutant.text} -> {mutant.changed}"


def verdict_of(bench: Bench, mutant: Mutant, cases: int | None = None) -> tuple[str, str]:
    """Whether it is killed, equivalent or surviving, and why.

    With a number of cases of each test, the soonest of them come first, and all simulations only if nothing is proven.
    """
    if killer := bench.killer(mutant, cases):
        return "killed", killer
    if reason := reasons().get(key(mutant)):
        return "equivalent", reason
    proof = equivalent(mutant.module, mutant.source, SOON if cases else LONG)
    if proof and cases:
        if killer := bench.killer(mutant):
            return "killed", killer
        proof = equivalent(mutant.module, mutant.source, LONG)
    return ("surviving", proof) if proof else ("equivalent", "proven")


def judge(
    bench: Bench, chosen: Sequence[Mutant], show: bool = True, cases: int | None = None
) -> dict[str, Counter[str]]:
    """Counts of killed, equivalent and surviving mutants of each module."""
    counts: dict[str, Counter[str]] = {}
    for mutant in chosen:
        begun = time.time()
        verdict, why = verdict_of(bench, mutant, cases)
        counts.setdefault(mutant.module, Counter())[verdict] += 1
        if show:
            print(f"{verdict:10} {mutant} | {why} {time.time() - begun:.1f} s", flush=True)
    return counts


def score(name: str, counts: Counter[str]) -> str:
    return (
        f"{name}: mutants {counts.total()}, killed {counts['killed']}, equivalent {counts['equivalent']}, "
        f"surviving {counts['surviving']}"
    )


def sample(module: str, most: int | None = None, seed: int = 1) -> list[Mutant]:
    """The mutants of a module, or that many of them."""
    made = mutants(module, (RTL / f"{module}.v").read_text())
    count = min(most or len(made), len(made))
    return [made[k] for k in sorted(random.Random(seed).sample(range(len(made)), count))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help=f"of {', '.join(UNITS)}")
    parser.add_argument("--sample", type=int, metavar="N", help="at most so many of each module")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, metavar="N", help="at most so many of each test before a proof is tried")
    options = parser.parse_args()
    if unknown := set(options.modules) - set(UNITS):
        parser.error(f"no such module: {', '.join(sorted(unknown))}")
    modules = options.modules or list(UNITS)
    chosen = [mutant for module in modules for mutant in sample(module, options.sample, options.seed)]
    with tempfile.TemporaryDirectory() as folder:
        counts = judge(Bench(Path(folder) / "bench"), chosen, cases=options.cases)
    for module, own in counts.items():
        print(score(module, own))
    total = sum(counts.values(), Counter())
    print(score("all", total))
    return int(total["surviving"] > 0)


if __name__ == "__main__":
    sys.exit(main())
