"""Proves that a module computes a function of the model on every input, but evaluates only a few inputs.

The model of the module gives its runs: every input at which its code changes, and all codes. The model's function is
cut into pieces on which it is monotone (`monotone`). If a monotone function has the same code at both ends of a run, it
has this code on the entire run. It is therefore enough to compare both at the ends of runs and pieces. Other pieces are
bounded (`interval_bounds`), or evaluated on every input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hlsgen.certify.interval_bounds import undecided
from hlsgen.certify.monotone import Pieces, pieces
from hlsgen.certify.netlist_reader import broken
from hlsgen.diagnostics import HlsgenError
from hlsgen.ir.evaluate import KEY_NEG_INF
from hlsgen.ir.step_function import StepFunction
from hlsgen.numerics.fixed import Array, IntType

#: Maximum number of inputs of a layer that are evaluated one by one, and how many at a time.
MAX_EVERY = 1 << 26
_CHUNK = 1 << 20
#: Pieces of fewer inputs are evaluated at once, without trying bounds.
_FEW = 1 << 12


class Module(Protocol):
    """The model of a library module. It computes a function for each lane and fold (beat mod `folds`)."""

    @property
    def folds(self) -> int: ...

    def constants(self, fold: int, lane: int) -> tuple[object, ...]:
        """Equal for lanes and folds that compute the same function."""
        ...

    def apply(self, fold: int, lane: int, x: Array) -> Array:
        """The result for each x, int64, before it is cut to the width of the output."""
        ...

    def changes(self, fold: int, lane: int, lo: int, hi: int) -> Array:
        """All x of lo + 1..hi with apply(x) != apply(x - 1), and perhaps other x."""
        ...


@dataclass(frozen=True, eq=False)
class RunLengths:
    """A function as runs: code[i] for the inputs start[i] to start[i + 1] - 1; both int64 (runs,).

    Codes of neighbours differ. start[0] is the low end of the interval.
    """

    start: Array
    code: Array

    def at(self, x: Array) -> Array:
        return np.asarray(self.code[np.searchsorted(self.start, x, side="right") - 1])


@dataclass(frozen=True, eq=False)
class Proof:
    """The proven runs of every set, the number of evaluated inputs, and the number of all inputs."""

    runs: list[RunLengths]
    evaluated: int
    inputs: int


def runs(module: Module, fold: int, lane: int, f: StepFunction, s: int) -> RunLengths:
    """The runs of a lane on the inputs of set s, with codes of the output's type."""
    lo, hi = int(f.lo[s]), int(f.hi[s])
    # There are no keys between the key of NaN and the key of -infinity.
    parts = [(0, 0), (KEY_NEG_INF, hi)] if f.is_float and lo == 0 else [(lo, hi)]
    return runs_in(module, fold, lane, parts, f.output_type)


def runs_in(module: Module, fold: int, lane: int, parts: list[tuple[int, int]], type_: IntType) -> RunLengths:
    """The runs of a lane on these intervals, with codes of the output's type."""
    starts, codes = [], []
    for low, high in parts:
        inner = module.changes(fold, lane, low, high)
        start = ascending(np.append(inner[(inner > low) & (inner <= high)], low).astype(np.int64))
        starts.append(start)
        codes.append(module.apply(fold, lane, start))
    start, code = np.concatenate(starts), read_as(np.concatenate(codes), type_.bits, type_.signed)
    keep = np.append(True, code[1:] != code[:-1])
    return RunLengths(start[keep], code[keep])


def ascending(x: Array) -> Array:
    """Sorted without duplicates. np.unique hashes, which is much slower."""
    x = np.sort(x)
    return np.asarray(x[np.append(True, x[1:] != x[:-1])])


def read_as(x: Array, bits: int, signed: bool | None) -> Array:
    """Integers cut to `bits` bits and read as signed or unsigned numbers, int64."""
    x = (x & ((1 << bits) - 1)).astype(np.int64)
    return np.asarray(x - ((x >> (bits - 1)) << bits) if signed else x)


def prove(
    f: StepFunction, module: Module, uses: dict[tuple[int, int], list[int]], cell: str, places: list[str]
) -> Proof:
    """Prove that every lane computes the model's function in every fold.

    uses: (fold, lane) -> the sets whose elements arrive there. places: a name of each set, for messages. Raises HG055
    with at most five sets that differ.
    """
    function_pieces = pieces(f)
    proven_runs: list[RunLengths | None] = [None] * f.sets
    checked_keys: set[tuple[object, ...]] = set()
    problems: list[HlsgenError] = []
    evaluated = 0
    for (fold, lane), sets in uses.items():
        for s in sets:
            key = (s, *module.constants(fold, lane))
            if key in checked_keys:
                continue
            checked_keys.add(key)
            lane_runs = runs(module, fold, lane, f, s)
            known_runs = proven_runs[s]
            if (
                known_runs is not None
                and np.array_equal(known_runs.start, lane_runs.start)
                and np.array_equal(known_runs.code, lane_runs.code)
            ):
                continue
            mismatch, count = difference(f, s, lane_runs, function_pieces)
            evaluated += count
            if mismatch is None:
                proven_runs[s] = lane_runs
                continue
            x, model, hardware = mismatch
            place = f"{places[s]}, {cell}, lane {lane}, fold {fold}"
            problems.append(broken(f.name, f"{place}: at x = {x} the model gives {model}, the hardware {hardware}."))
    if problems:
        raise HlsgenError([p.diagnostics[0] for p in problems[:5]])
    runs_of_sets = [r for r in proven_runs if r is not None]
    assert len(runs_of_sets) == f.sets
    return Proof(runs_of_sets, evaluated, int((function_pieces.hi - function_pieces.lo + 1).sum()))


def _inputs_to_evaluate(f: StepFunction, hardware: RunLengths, low: int, high: int, limit: int) -> Array | range:
    """The inputs of low..high whose evaluation proves that f, of one set, is the hardware's function.

    Raises HG055 if these are all inputs and more than `limit`.
    """
    if high - low >= _FEW:
        inside = hardware.start[(hardware.start > low) & (hardware.start <= high)]
        start = np.append(low, inside)
        open_inputs = undecided(f, start, np.append(inside - 1, high), hardware.at(start))
        if open_inputs is not None:
            return open_inputs
    if high - low >= limit:
        raise broken(
            f.name,
            f"cannot be certified: the function has no known monotone pieces, and {high - low + 1} inputs "
            f"are too many to evaluate ({limit}).",
        )
    return range(low, high + 1)


def difference(
    f: StepFunction, s: int, hardware: RunLengths, function_pieces: Pieces
) -> tuple[tuple[int, int, int] | None, int]:
    """The smallest x at which model and hardware differ, as (x, code of the model, code of the hardware), or None.

    Also returns how many inputs were evaluated: both ends of every run and of every piece. In a piece that is not known
    to be monotone, these are all inputs that bounds do not decide.
    """
    of_set = function_pieces.s == s
    ends = np.append(hardware.start[1:] - 1, f.hi[s])
    points = np.concatenate([hardware.start, ends, function_pieces.lo[of_set], function_pieces.hi[of_set]])
    if f.is_float:
        points = points[(points == 0) | (points >= KEY_NEG_INF)]
    parts: list[Array | range] = [ascending(points)]
    function = f.take(np.array([s]), f.lo[s : s + 1], f.hi[s : s + 1])
    for low, high in zip(
        function_pieces.lo[of_set & function_pieces.unknown].tolist(),
        function_pieces.hi[of_set & function_pieces.unknown].tolist(),
        strict=True,
    ):
        parts.append(_inputs_to_evaluate(function, hardware, low, high, MAX_EVERY // f.sets))
    mismatches: list[tuple[int, int, int]] = []
    count = 0
    for part in parts:
        for start in range(0, len(part), _CHUNK):
            x = np.asarray(part[start : start + _CHUNK])
            model, code = function.evaluate(x[:, None])[:, 0], hardware.at(x)
            count += len(x)
            unequal = np.flatnonzero(model != code)
            if len(unequal):
                i = int(unequal[0])
                mismatches.append((int(x[i]), int(model[i]), int(code[i])))
    return min(mismatches, default=None), count
