"""Proves that a module computes a function of the model on every input, by evaluating only a few of them.

The model of the module gives its runs: every input at which its code changes, and all codes. The model's
function is cut into pieces on which it is monotone (`monotone`). A monotone function that has the same code at both
ends of a run has it on all of the run. So it suffices to compare both at the ends of runs and pieces. Pieces that are
not known to be monotone are bounded (`interval_bounds`) or evaluated on every input.
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

#: Most inputs of a layer that are evaluated one by one, and how many of them at one time.
MAX_EVERY = 1 << 25
_CHUNK = 1 << 20
#: Pieces of fewer inputs are evaluated at once, without trying bounds.
_FEW = 1 << 12


class Module(Protocol):
    """The model of a library module. It computes a function for each lane and fold (beat mod `folds`)."""

    @property
    def folds(self) -> int: ...

    def constants(self, fold: int, lane: int) -> tuple[object, ...]:
        """Equal for lanes and folds that compute the same."""
        ...

    def apply(self, fold: int, lane: int, x: Array) -> Array:
        """The result for each x, int64, before it is cut to the width of the output."""
        ...

    def changes(self, fold: int, lane: int, lo: int, hi: int) -> Array:
        """All x of lo + 1..hi with apply(x) != apply(x - 1). Others may be among them."""
        ...


@dataclass(frozen=True, eq=False)
class RunLengths:
    """A function as runs: code[i] for the inputs from start[i] to before start[i + 1]; both int64 (runs,).

    Codes of neighbours differ. start[0] is the low end of the interval.
    """

    start: Array
    code: Array

    def at(self, x: Array) -> Array:
        return np.asarray(self.code[np.searchsorted(self.start, x, side="right") - 1])


@dataclass(frozen=True, eq=False)
class Proof:
    """The proven runs of every set; how many inputs were evaluated for that, and how many inputs there are."""

    runs: list[RunLengths]
    evaluated: int
    inputs: int


def runs(module: Module, fold: int, lane: int, f: StepFunction, s: int) -> RunLengths:
    """The runs of a lane on the inputs of set s, as the output's type reads its bits."""
    lo, hi = int(f.lo[s]), int(f.hi[s])
    # Keys between that of NaN and that of -infinity do not occur.
    parts = [(0, 0), (KEY_NEG_INF, hi)] if f.is_float and lo == 0 else [(lo, hi)]
    return runs_in(module, fold, lane, parts, f.output_type)


def runs_in(module: Module, fold: int, lane: int, parts: list[tuple[int, int]], type_: IntType) -> RunLengths:
    """The runs of a lane on these intervals, as the output's type reads its bits."""
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
    """Sorted and without duplicates. np.unique hashes, which is far slower."""
    x = np.sort(x)
    return np.asarray(x[np.append(True, x[1:] != x[:-1])])


def read_as(x: Array, bits: int, signed: bool | None) -> Array:
    """Integers cut to so many bits and read as signed or unsigned numbers, int64."""
    x = (x & ((1 << bits) - 1)).astype(np.int64)
    return np.asarray(x - ((x >> (bits - 1)) << bits) if signed else x)


def prove(
    f: StepFunction, module: Module, uses: dict[tuple[int, int], list[int]], cell: str, places: list[str]
) -> Proof:
    """Proves that every lane computes the model's function in every fold.

    uses: (fold, lane) -> the sets whose elements come there. places: a name of each set, for messages.
    Raises HG055 with the sets that differ, up to a few.
    """
    known = pieces(f)
    found: list[RunLengths | None] = [None] * f.sets
    done: set[tuple[object, ...]] = set()
    problems: list[HlsgenError] = []
    evaluated = 0
    for (fold, lane), sets in uses.items():
        for s in sets:
            key = (s, *module.constants(fold, lane))
            if key in done:
                continue
            done.add(key)
            here = runs(module, fold, lane, f, s)
            before = found[s]
            if (
                before is not None
                and np.array_equal(before.start, here.start)
                and np.array_equal(before.code, here.code)
            ):
                continue
            wrong, count = difference(f, s, here, known)
            evaluated += count
            if wrong is None:
                found[s] = here
                continue
            x, model, hardware = wrong
            where = f"{places[s]}, {cell}, lane {lane}, fold {fold}"
            problems.append(broken(f.name, f"{where}: at x = {x} the model gives {model}, the hardware {hardware}."))
    if problems:
        raise HlsgenError([p.diagnostics[0] for p in problems[:5]])
    proven = [r for r in found if r is not None]
    assert len(proven) == f.sets
    return Proof(proven, evaluated, int((known.hi - known.lo + 1).sum()))


def _every(f: StepFunction, hardware: RunLengths, low: int, high: int, most: int) -> list[Array]:
    """The inputs of low..high to evaluate, in order to prove that f, of one set, is what the hardware computes.

    Raises HG055 if these are all inputs, and more than `most`.
    """
    if high - low >= _FEW:
        inside = hardware.start[(hardware.start > low) & (hardware.start <= high)]
        start = np.append(low, inside)
        left = undecided(f, start, np.append(inside - 1, high), hardware.at(start))
        if left is not None:
            return [left]
    if high - low >= most:
        raise broken(
            f.name,
            f"cannot be certified: it is not known where the function is monotone, and {high - low + 1} inputs "
            f"are too many to evaluate ({most}).",
        )
    return [np.arange(at, min(at + _CHUNK, high + 1)) for at in range(low, high + 1, _CHUNK)]


def difference(f: StepFunction, s: int, hardware: RunLengths, known: Pieces) -> tuple[tuple[int, int, int] | None, int]:
    """Where the model and the hardware differ: (x, code of the model, code of the hardware) of the least x, or None.

    Also how many inputs were evaluated: the ends of every run and of every piece, and of a piece that is not known
    to be monotone all inputs, or those that bounds do not decide.
    """
    mine = known.s == s
    ends = np.append(hardware.start[1:] - 1, f.hi[s])
    points = np.concatenate([hardware.start, ends, known.lo[mine], known.hi[mine]])
    if f.is_float:
        points = points[(points == 0) | (points >= KEY_NEG_INF)]
    parts = [ascending(points)]
    one = f.take(np.array([s]), f.lo[s : s + 1], f.hi[s : s + 1])
    for low, high in zip(known.lo[mine & known.every].tolist(), known.hi[mine & known.every].tolist(), strict=True):
        parts += _every(one, hardware, low, high, MAX_EVERY // f.sets)
    found: list[tuple[int, int, int]] = []
    count = 0
    for part in parts:
        for at in range(0, len(part), _CHUNK):
            x = part[at : at + _CHUNK]
            model, code = one.evaluate(x[:, None])[:, 0], hardware.at(x)
            count += len(x)
            wrong = np.flatnonzero(model != code)
            if len(wrong):
                i = int(wrong[0])
                found.append((int(x[i]), int(model[i]), int(code[i])))
    return min(found, default=None), count
