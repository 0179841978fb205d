"""Does simulation find every mistake in the Verilog library? Mutants of its modules, run through rtl_tests.

    python tests/mutation/mutate.py                          all mutants of all modules of UNITS (hours)
    python tests/mutation/mutate.py hg_fifo hg_slice         mutants of these modules
    python tests/mutation/mutate.py --sample 20 --seed 3     20 mutants of each module
    python tests/mutation/mutate.py --cases 1                several times faster: proofs come before most simulations

The tests of a module run once on the original library. Their simulations are recorded with the output of Icarus
Verilog. A mutant is killed if it does not compile, if a simulation prints anything else, or if cocotb or pytest report
a failure. Simulations with an unchanged compiled program are not repeated. ABC compares the remaining mutants with the
original module. A mutant is equivalent if no output ever differs at the parameter sets of `equivalence.sets`, or if
reasons.json explains it. Exits with 1 if any other mutant survives. docs/library.md keeps the scores.
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

#: Time limits of ABC in seconds: before all simulations have run, and after them.
SOON, LONG = 10, 60
REASONS = Path(__file__).with_name("reasons.json")


def reasons() -> dict[str, str]:
    """Explanations of mutants that make no difference, by "module: line -> line"."""
    reason_by_mutant: dict[str, str] = json.loads(REASONS.read_text())
    return reason_by_mutant


def key(mutant: Mutant) -> str:
    return f"{mutant.module}: {mutant.text} -> {mutant.changed}"


def verdict_of(bench: Bench, mutant: Mutant, cases: int | None = None) -> tuple[str, str]:
    """Verdict (killed, equivalent or surviving) and its reason.

    If `cases` is set, the fastest of that many cases of each test run first. The others run only if the proof fails.
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
    """Numbers of killed, equivalent and surviving mutants by module."""
    counts: dict[str, Counter[str]] = {}
    for mutant in chosen:
        start = time.time()
        verdict, why = verdict_of(bench, mutant, cases)
        counts.setdefault(mutant.module, Counter())[verdict] += 1
        if show:
            print(f"{verdict:10} {mutant} | {why} {time.time() - start:.1f} s", flush=True)
    return counts


def score(name: str, counts: Counter[str]) -> str:
    return (
        f"{name}: mutants {counts.total()}, killed {counts['killed']}, equivalent {counts['equivalent']}, "
        f"surviving {counts['surviving']}"
    )


def sample(module: str, limit: int | None = None, seed: int = 1) -> list[Mutant]:
    """The mutants of a module, or a random sample of `limit` of them."""
    all_mutants = mutants(module, (RTL / f"{module}.v").read_text())
    count = min(limit or len(all_mutants), len(all_mutants))
    return [all_mutants[k] for k in sorted(random.Random(seed).sample(range(len(all_mutants)), count))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", help=f"modules: {', '.join(UNITS)}")
    parser.add_argument("--sample", type=int, metavar="N", help="at most N mutants of each module")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, metavar="N", help="at most N cases of each test before the proof")
    options = parser.parse_args()
    if unknown := set(options.modules) - set(UNITS):
        parser.error(f"no such module: {', '.join(sorted(unknown))}")
    modules = options.modules or list(UNITS)
    chosen = [mutant for module in modules for mutant in sample(module, options.sample, options.seed)]
    with tempfile.TemporaryDirectory() as folder:
        counts = judge(Bench(Path(folder) / "bench"), chosen, cases=options.cases)
    for module, module_counts in counts.items():
        print(score(module, module_counts))
    total = sum(counts.values(), Counter())
    print(score("all", total))
    return int(total["surviving"] > 0)


if __name__ == "__main__":
    sys.exit(main())
