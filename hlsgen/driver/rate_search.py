"""Finds the fastest network within a budget: plans networks for several rates, guided by rough costs of all rates.

A slower network can cost more than a faster one, because weights become part of the circuit or memories change their
kind. Bisection would miss solutions: every rate that may fit is a candidate, the fastest first. Each planned network
corrects the rough costs of neighbouring rates.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Plan = TypeVar("Plan")

#: Rates that are compared roughly: first among all, then between the fastest that fits and the next faster one.
COARSE, FINE = 40, 12
#: A rate is tried if its corrected rough cost is at most this share of the budget and a slower one fits already.
NEAR = 1.3
#: Nothing more is tried if the slowest network does not fit and no other rate is below this share of the budget.
HOPELESS = 2.0
#: Relative increase of the rough costs after each planned network that does not fit.
DOUBT = 0.03


@dataclass(frozen=True, eq=False)
class Trial(Generic[Plan]):
    """A planned network for a rate of `cycles` a frame.

    excess: largest ratio of its cost to the budget. load: the same of the resources that grow with the rate.
    interval: its cycles a frame. plan: the network.
    """

    cycles: int
    interval: int
    excess: float
    load: float
    lut: float
    plan: Plan

    @property
    def fits(self) -> bool:
        return self.excess <= 1


class RateSearch(Generic[Plan]):
    """`rates`: cycles a frame for which networks differ, ascending. `rough`: load of the rough cost for a rate.

    `planned`: the network for a rate. `attempts`: networks that may be planned.
    """

    def __init__(
        self, rates: Sequence[int], rough: Callable[[int], float], planned: Callable[[int], Trial[Plan]], attempts: int
    ) -> None:
        self.rates, self.planned, self.attempts = rates, planned, attempts
        self._rough, self._known = rough, dict[int, float]()
        self.trials: dict[int, Trial[Plan]] = {}

    def fastest(self, preferred: Sequence[int] = ()) -> Trial[Plan]:
        """The fastest network that fits, else the one nearest to fitting. preferred: rates that are tried first."""
        # Half of the attempts are kept for the slowest network, and for rates near the fastest that fits.
        self._search(spread([*preferred] or self.rates, COARSE), self.attempts // 2)
        if self._best_fitting() is None:
            self._try(self.rates[-1])
            self._search(spread(self.rates, COARSE), self.attempts)
        best = self._best_fitting()
        if best is not None and len(self.trials) < self.attempts:
            below = [cycles for cycles in self._known if cycles < best.cycles]
            first = bisect_left(self.rates, max(below, default=0))
            between = self.rates[first : bisect_left(self.rates, best.cycles)]
            self._search(spread(between, FINE), self.attempts)
        best = self._best_fitting()
        if best is not None and best.interval > best.cycles and len(self.trials) < self.attempts:
            # A part that no rate makes faster decides: the slowest rate for this interval is the cheapest.
            self._try(self.rates[bisect_left(self.rates, best.interval) - 1])
        return self._best_fitting() or min(self.trials.values(), key=lambda trial: (trial.excess, trial.interval))

    def slowest(self, limit: int) -> Trial[Plan]:
        """The first network of at most `limit` cycles that fits, cheapest first; else the one nearest to fitting."""
        rates = spread([cycles for cycles in self.rates if cycles < limit], COARSE)
        self._try(limit)
        while len(self.trials) < self.attempts and self._best_fitting() is None:
            untried = [cycles for cycles in rates if cycles not in self.trials]
            if not untried or self._predicted(cheapest := min(untried, key=self._predicted)) > NEAR:
                break
            self._try(cheapest)
        return self._best_fitting() or min(self.trials.values(), key=lambda trial: trial.excess)

    def _search(self, rates: Sequence[int], attempts: int) -> None:
        """Plans networks for these rates as long as one of them may be faster than the best that fits."""
        failed = 0
        while len(self.trials) < attempts:
            best = self._best_fitting()
            untried = [cycles for cycles in rates if cycles not in self.trials]
            if best is not None:
                untried = [cycles for cycles in untried if self._may_be_faster(cycles, best.interval)]
            if not untried:
                return
            likely = [cycles for cycles in untried if self._predicted(cycles) * (1 + DOUBT * failed) <= 1]
            cycles = min(likely) if likely else min(untried, key=self._predicted)
            if best is not None and self._predicted(cycles) > NEAR:
                return
            if best is None and self.rates[-1] in self.trials and self._predicted(cycles) > HOPELESS:
                return
            failed = 0 if self._try(cycles).fits else failed + 1

    def _may_be_faster(self, cycles: int, interval: int) -> bool:
        """False if the rate is slower, or if a faster rate gave no smaller interval."""
        faster = (trial for trial in self.trials.values() if trial.cycles < cycles)
        return cycles < interval and all(trial.interval < interval for trial in faster)

    def _try(self, cycles: int) -> Trial[Plan]:
        if cycles not in self.trials:
            self._rough_of(cycles)
            self.trials[cycles] = self.planned(cycles)
        return self.trials[cycles]

    def _best_fitting(self) -> Trial[Plan] | None:
        """The fastest network that fits so far; among equals the one with the fewest LUT."""
        fitting = [trial for trial in self.trials.values() if trial.fits]
        return min(fitting, key=lambda trial: (trial.interval, trial.lut), default=None)

    def _rough_of(self, cycles: int) -> float:
        if cycles not in self._known:
            self._known[cycles] = self._rough(cycles)
        return self._known[cycles]

    def _predicted(self, cycles: int) -> float:
        """The rough load, corrected by the error of the planned network whose rate is nearest."""
        rough = self._rough_of(cycles)
        if not self.trials:
            return rough
        nearest = min(self.trials.values(), key=lambda trial: abs(math.log(trial.cycles / cycles)))
        rough_nearest = self._rough_of(nearest.cycles)
        return rough * nearest.load / rough_nearest if rough_nearest > 0 else max(rough, nearest.load)


def spread(numbers: Sequence[int], count: int) -> list[int]:
    """At most `count` of ascending numbers with about equal ratios, including the first and the last."""
    if len(numbers) <= count:
        return list(numbers)
    low, high = math.log(numbers[0]), math.log(numbers[-1])
    targets = [math.exp(low + (high - low) * n / (count - 1)) for n in range(count)]
    picked = {numbers[-1], *(numbers[min(bisect_left(numbers, x - 1e-9), len(numbers) - 1)] for x in targets)}
    return sorted(picked)
