"""The number of sites that LUTs of a netlist share: cases counted by hand, and random ones against all pairings."""

from __future__ import annotations

import importlib.util
import random
from functools import cache
from typing import Any

import pytest
from paths import ROOT

SPEC = importlib.util.spec_from_file_location("packing", ROOT / "benchmarks" / "synthesis" / "packing.py")
assert SPEC is not None
assert SPEC.loader is not None
packing = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(packing)


def module(luts: dict[int, str], carries: tuple[int, ...] = (), muxes: tuple[int, ...] = ()) -> dict[str, Any]:
    """A netlist of LUTs, a carry chain and multiplexers.

    luts: by the net that a LUT drives, a letter for each net that it reads. carries, muxes: nets that enter the carry
    chain, and multiplexers.
    """
    cells: dict[str, Any] = {
        f"lut{out}": {
            "type": f"LUT{len(reads)}",
            "connections": {"O": [out], **{f"I{n}": [1000 + ord(net)] for n, net in enumerate(reads)}},
        }
        for out, reads in luts.items()
    }
    cells["chain"] = {"type": "CARRY4", "connections": {"S": [*carries], "CI": ["0"], "DI": ["0"] * 4}}
    for out in muxes:
        cells[f"mux{out}"] = {"type": "MUXF7", "connections": {"I0": [out], "I1": ["x"], "S": [7]}}
    return {"cells": cells}


@pytest.mark.parametrize(
    "luts, carries, muxes, shared",
    [
        ({1: "abcdef", 2: "a"}, (), (), 0),  # a LUT with six inputs occupies a site
        ({1: "abcde", 2: "abc"}, (), (), 1),  # the second reads only nets of the first
        ({1: "abcd", 2: "aef"}, (), (), 0),  # six inputs in total
        ({1: "abcd", 2: "abe"}, (), (), 1),
        ({1: "abc", 2: "de"}, (), (), 1),  # no common net, but only five inputs
        ({1: "abc", 2: "def"}, (), (), 0),
        ({1: "ab", 2: "ab"}, (1, 2), (), 0),  # both enter the carry chain
        ({1: "ab", 2: "ab"}, (1,), (), 1),
        ({1: "ab", 2: "ab"}, (1,), (2,), 0),  # both need the first output
        ({1: "abcd", 2: "abce", 3: "xy"}, (), (), 1),  # a LUT is in one pair only
        ({1: "ab", 2: "cd", 3: "ef", 4: "gh"}, (), (), 2),
        ({1: "a", 2: "bcde", 3: "a"}, (1, 3), (), 1),
        ({1: "abcde", 2: "vwxyz", 3: "abc", 4: "xyz"}, (), (), 2),
    ],
)
def test_counts_by_hand(luts: dict[int, str], carries: tuple[int, ...], muxes: tuple[int, ...], shared: int) -> None:
    assert packing.shared_sites(module(luts, carries, muxes)) == shared


def most_pairs(luts: dict[int, str], first_output: frozenset[int]) -> int:
    """The largest number of pairs, found by trying all. first_output: LUTs that need the first output of a site."""

    @cache
    def pairs(unpaired: frozenset[int]) -> int:
        if not unpaired:
            return 0
        lut = min(unpaired)
        candidates = unpaired - {lut}
        mates = [
            mate
            for mate in candidates
            if len({*luts[lut], *luts[mate]}) <= 5 and not (lut in first_output and mate in first_output)
        ]
        return max([pairs(candidates), *(1 + pairs(candidates - {mate}) for mate in mates)])

    return pairs(frozenset(out for out, reads in luts.items() if len(reads) < 6))


@pytest.mark.parametrize("seed", range(60))
def test_at_least_half_of_the_possible_pairs_are_made(seed: int) -> None:
    rng = random.Random(seed)
    luts = {n: "".join(rng.sample("abcdefgh", rng.randint(1, 6))) for n in range(1, 11)}
    first_output = tuple(rng.sample(sorted(luts), 4))
    pairs, possible = packing.shared_sites(module(luts, first_output)), most_pairs(luts, frozenset(first_output))
    # A set of pairs that no pair can be added to has at least half as many pairs as the largest set.
    assert possible / 2 <= pairs <= possible
