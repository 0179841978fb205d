"""How many sites tables of a netlist share: cases that are counted by hand, and random ones against all ways to pair."""

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


def module(tables: dict[int, str], carries: tuple[int, ...] = (), muxes: tuple[int, ...] = ()) -> dict[str, Any]:
    """Tables by the net that they drive, with a letter for each net that they read; nets into a carry chain, and into
    multiplexers."""
    cells: dict[str, Any] = {
        f"table{out}": {
            "type": f"LUT{len(reads)}",
            "connections": {"O": [out], **{f"I{n}": [1000 + ord(net)] for n, net in enumerate(reads)}},
        }
        for out, reads in tables.items()
    }
    cells["chain"] = {"type": "CARRY4", "connections": {"S": [*carries], "CI": ["0"], "DI": ["0"] * 4}}
    for out in muxes:
        cells[f"mux{out}"] = {"type": "MUXF7", "connections": {"I0": [out], "I1": ["x"], "S": [7]}}
    return {"cells": cells}


@pytest.mark.parametrize(
    "tables, carries, muxes, shared",
    [
        ({1: "abcdef", 2: "a"}, (), (), 0),  # a table of six inputs takes a site
        ({1: "abcde", 2: "abc"}, (), (), 1),  # all that the second reads is there
        ({1: "abcd", 2: "aef"}, (), (), 0),  # six inputs together
        ({1: "abcd", 2: "abe"}, (), (), 1),
        ({1: "abc", 2: "de"}, (), (), 1),  # nothing in common, but five
        ({1: "abc", 2: "def"}, (), (), 0),
        ({1: "ab", 2: "ab"}, (1, 2), (), 0),  # both lead into the chain
        ({1: "ab", 2: "ab"}, (1,), (), 1),
        ({1: "ab", 2: "ab"}, (1,), (2,), 0),  # both need the first output
        ({1: "abcd", 2: "abce", 3: "xy"}, (), (), 1),  # a table is in one pair
        ({1: "ab", 2: "cd", 3: "ef", 4: "gh"}, (), (), 2),
        ({1: "a", 2: "bcde", 3: "a"}, (1, 3), (), 1),
        ({1: "abcde", 2: "vwxyz", 3: "abc", 4: "xyz"}, (), (), 2),
    ],
)
def test_by_hand(tables: dict[int, str], carries: tuple[int, ...], muxes: tuple[int, ...], shared: int) -> None:
    assert packing.shared_sites(module(tables, carries, muxes)) == shared


def most(tables: dict[int, str], first: frozenset[int]) -> int:
    """The most pairs that there are, by trying all."""

    @cache
    def pairs(left: frozenset[int]) -> int:
        if not left:
            return 0
        one, rest = min(left), left - {min(left)}
        mates = [two for two in rest if len({*tables[one], *tables[two]}) <= 5 and not (one in first and two in first)]
        return max([pairs(rest), *(1 + pairs(rest - {two}) for two in mates)])

    return pairs(frozenset(out for out, reads in tables.items() if len(reads) < 6))


@pytest.mark.parametrize("seed", range(60))
def test_no_more_than_there_are_and_none_left_that_fit(seed: int) -> None:
    rng = random.Random(seed)
    tables = {n: "".join(rng.sample("abcdefgh", rng.randint(1, 6))) for n in range(1, 11)}
    first = tuple(rng.sample(sorted(tables), 4))
    found, possible = packing.shared_sites(module(tables, first)), most(tables, frozenset(first))
    # Where no pair is left to be made, there are at least half as many as possible.
    assert possible / 2 <= found <= possible
