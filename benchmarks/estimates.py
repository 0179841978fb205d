"""Holds the estimates against synthesis, and fits them.

    python benchmarks/estimates.py              # errors of LUT, FF, BRAM and DSP, by family
    python benchmarks/estimates.py --units      # and what each kind of unit is off by
    python benchmarks/estimates.py --fit ecp5   # fits unit_factors.json first, to networks that may be looked at
    python benchmarks/estimates.py --fit ecp5 --keep   # fits only the factors that are not there yet

Sizes are measured by measure_units.py. Networks of estimate_cases.py with `fitted=False` are not looked at in the fit.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from estimate_cases import CASES
from measure_units import DEVICES, build_of, load
from scipy.optimize import nnls

from hlsgen.dataflow.units import NeuronUnit, Node
from hlsgen.driver.compile import Build, block_bits, targets_of
from hlsgen.verilog import resource_model
from hlsgen.verilog.parts import Parts
from hlsgen.verilog.resource_model import STYLES, cost_of
from hlsgen.verilog.unit_table import node_parts

FACTORS = Path(resource_model.__file__).with_name("unit_factors.json")
#: How much a factor wants to be what is usual in the family, against units that are off by 100 %.
STAY = 0.3
#: Tables or registers by which a unit may be off without harm.
SLACK = 24.0
#: Kinds with weights, and what they have of the same modules: hg_weights, and hg_mac with its dot products.
WEIGHTED = {"MatVec", "ConvUnit", "GroupedMatVec"}
SAME = {"weights", "popcount", "pairs", "shared", "words", "chains", "blocks", "plain", "sums"}
WHAT = ("lut", "ff", "bram", "dsp")


@dataclass(frozen=True)
class Unit:
    """A unit of a network: what the model says that it is made of, and what was measured, by family."""

    case: str
    name: str
    parts: dict[str, Parts]
    measured: dict[str, list[int]]


def units_of(case: str, build: Build, data: dict[str, Any]) -> Iterator[Unit]:
    """Units of a build, by their instances."""
    targets = targets_of(build.options)
    families = {family: cases[case] for family, cases in data.items() if family != "builds" and case in cases}
    nodes, choices = build.network.nodes, build.network.choices
    style = STYLES[targets.weights]
    blocks = {family: block_bits(replace(build.options, device=DEVICES.get(family))) for family in families}
    dsp = blocks if targets.prefer == "dsp" else dict.fromkeys(families, 0)
    counted: dict[str, set[str]] = {family: set() for family in families}
    for node in nodes:
        parts = {
            family: node_parts(_alone(node), choices, counted[family], dsp=dsp[family], style=style, family=family)
            for family in families
        }
        name = "port_in" if node is nodes[0] else "port_out" if node is nodes[-1] else node.name
        found = {family: units[name] for family, units in families.items() if name in units}
        yield Unit(case, name, parts, found)


def _alone(node: Node) -> Node:
    """The node as it is measured: without a consumer that reads only some bits of neurons."""
    return replace(node, unit=replace(node.unit, read=None)) if isinstance(node.unit, NeuronUnit) else node


def collect(data: dict[str, Any]) -> list[Unit]:
    units: list[Unit] = []
    for case in CASES:
        if case in data["builds"]:
            build = build_of(case, data)
            units += units_of(case, build, data) if build is not None else ()
    return units


def fit(units: list[Unit], families: Sequence[str], factors: dict[str, Any], *, keep: bool = False) -> dict[str, Any]:
    """Factors by family, kind of unit, and LUT or FF: least squares of relative errors, none negative.

    Parts that several kinds have of the same modules have one factor in all of these. What the networks do not have
    keeps the factors that it has; all others follow from the data alone. keep: factors that are there do not change.
    """
    factors = copy.deepcopy(factors)
    for family in families:
        there = [u for u in units if family in u.measured and CASES[u.case].fitted]
        kinds = {unit.parts[family].unit for unit in there}
        usual = [ratio(there, family, at) for at in range(2)]
        for group in [kinds & WEIGHTED, *({kind} for kind in sorted(kinds - WEIGHTED))]:
            for at, what in enumerate(WHAT[:2]):
                own = [u for u in there if u.parts[family].unit in group and len(u.measured[family]) > at]
                rows = [
                    {column(u.parts[family], part): n for part, n in getattr(u.parts[family], what).items()}
                    for u in own
                ]
                kept = _factors_of(factors, family, group, what) if keep else {}
                columns = sorted({name for row in rows for name in row} - set(kept))
                if not columns:
                    continue
                x = np.array([[row.get(name, 0.0) for name in columns] for row in rows])
                y = np.array([u.measured[family][at] for u in own], float)
                weight = 1 / np.sqrt(SLACK**2 + np.maximum(y, [sum(row.values()) for row in rows]) ** 2)
                y -= [sum(n * kept.get(name, 0.0) for name, n in row.items()) for row in rows]
                stay = STAY * np.eye(len(columns))
                wanted = np.concatenate([y * weight, usual[at] * stay.sum(axis=1)])
                found, _ = nnls(np.vstack([x * weight[:, None], stay]), wanted)
                known = kept | dict(zip(columns, found.tolist(), strict=True))
                for u in own:
                    entry = factors.setdefault(family, {}).setdefault(u.parts[family].unit, {}).setdefault(what, {})
                    parts = getattr(u.parts[family], what)
                    fitted = {part: round(known[column(u.parts[family], part)], 3) for part in parts}
                    entry.update({part: factor for part, factor in fitted.items() if not (keep and part in entry)})
    return factors


def _factors_of(factors: dict[str, Any], family: str, kinds: set[str], what: str) -> dict[tuple[str, str], float]:
    """The factors that these kinds of units have, by column."""
    entries = {kind: factors.get(family, {}).get(kind, {}).get(what, {}) for kind in kinds}
    return {column(Parts(kind), part): factor for kind, entry in entries.items() for part, factor in entry.items()}


def ratio(units: list[Unit], family: str, at: int) -> float:
    """Tables or registers that were measured to those that the structure lets expect, of all units."""
    own = [u for u in units if len(u.measured[family]) > at]
    expected = sum(sum(getattr(u.parts[family], WHAT[at]).values()) for u in own)
    return sum(u.measured[family][at] for u in own) / expected


def column(parts: Parts, part: str) -> tuple[str, str]:
    """What has a factor of its own: a part of a kind of units, or of all that have the same modules."""
    return ("" if parts.unit in WEIGHTED and part in SAME else parts.unit, part)


def estimate(parts: Parts, family: str) -> tuple[float, float, int, int]:
    cost = cost_of(parts, family)
    return cost.lut, cost.ff, cost.bram, cost.dsp


def networks(units: list[Unit], family: str) -> dict[str, tuple[list[float], list[float]]]:
    """Case -> (estimated, measured) LUT, FF, BRAM, DSP."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    for unit in units:
        if family in unit.measured:
            ours, theirs = found.setdefault(unit.case, ([0.0] * 4, [0.0] * 4))
            # Of some networks only the LUT are known.
            for at, number in enumerate(estimate(unit.parts[family], family)[: len(unit.measured[family])]):
                ours[at] += number
                theirs[at] += unit.measured[family][at]
    return found


def show(units: list[Unit], family: str, *, each: bool) -> None:
    """Prints a line for each network, and the errors of those that were fitted and of those that were not."""
    found = networks(units, family)
    errors: dict[tuple[bool, int], list[float]] = defaultdict(list)
    print(f"{family:28} {'':7} " + "".join(f"{name:>8}{'measured':>9}{'':6}" for name in WHAT))
    for case, (ours, theirs) in found.items():
        cells = []
        for at, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            ratio = one / other if other else 1.0 if not one else float("inf")
            cells.append(f"{one:8.0f}{other:9.0f}{ratio:6.2f}")
            if one or other:
                errors[CASES[case].fitted, at].append(abs(one - other) / max(other, 1))
        print(f"{case:28} {'fitted' if CASES[case].fitted else 'unseen':7} " + "".join(cells))
    for fitted in (True, False):
        for at, name in enumerate(WHAT):
            if own := errors[fitted, at]:
                print(
                    f"{'fitted' if fitted else 'unseen'}: {name:4} of {len(own):2} networks, error "
                    f"{statistics.median(own):.0%} in the median, {max(own):.0%} at most, "
                    f"{sum(e > 0.3 for e in own)} beyond 30 %"
                )
    if each:
        show_units(units, family)


def show_units(units: list[Unit], family: str) -> None:
    """What each kind of unit is off by, the worst first; of networks that the fit may look at."""
    kinds: dict[tuple[str, str], list[tuple[float, int]]] = defaultdict(list)
    for unit in units:
        if family in unit.measured and CASES[unit.case].fitted:
            for at, what in enumerate(WHAT[: len(unit.measured[family])]):
                kind = what, unit.parts[family].unit
                kinds[kind].append((estimate(unit.parts[family], family)[at], unit.measured[family][at]))
    for (what, kind), pairs in sorted(kinds.items(), key=lambda item: -sum(abs(a - b) for a, b in item[1])):
        if off := sum(abs(a - b) for a, b in pairs):
            print(
                f"{what:4} {kind:14} {len(pairs):3} units, {sum(b for _, b in pairs):6} measured, off by {off:6.0f}, "
                f"{sum(a - b for a, b in pairs):+6.0f} in all: " + " ".join(f"{a:.0f}/{b}" for a, b in pairs[:20])
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", nargs="+", metavar="FAMILY", default=[])
    parser.add_argument("--units", action="store_true")
    parser.add_argument("--keep", action="store_true", help="factors that are there do not change")
    arguments = parser.parse_args()
    units = collect(load())
    if arguments.fit:
        factors = fit(units, arguments.fit, json.loads(FACTORS.read_text()), keep=arguments.keep)
        FACTORS.write_text(json.dumps(factors, indent=1) + "\n")
        resource_model._factors.cache_clear()
    for family in sorted({family for unit in units for family in unit.measured}):
        show(units, family, each=arguments.units)


if __name__ == "__main__":
    main()
