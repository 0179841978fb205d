"""Decomposes functions of up to fourteen bits into functions of at most six.

A cut (Ashenhurst and Curtis) replaces up to six bits, the bound set, by a code with fewer bits. Values of the bound set
have the same code if they give the same function of the free bits. A neuron adds its inputs, so its bound set is a
partial sum, of which only some values differ. H. A. Curtis, A New Approach to the Design of Switching Circuits, 1962.

Example: four codes of 2 bits give a code of 4 bits. Three of them form the bound set. If their sums fall into 8
classes, these are 3 bits, and with the fourth code 5 bits remain: 3 + 4 lookup tables.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from hlsgen.numerics.fixed import Array

#: Inputs of a lookup table.
LUT_INPUTS = 6
#: Fewest bits of a bound set.
_FEWEST_BOUND = 3
#: Most bound sets of one size that are tried; of more, some are drawn.
_MOST_CUTS = 500
#: Expected lookup tables for each bit above the inputs of one table: the average of random neurons.
_PER_BIT = 1.4
#: Cuts that are decomposed further, to compare them.
_BRANCHES = 2


@dataclass(frozen=True, eq=False)
class Direct:
    """Functions of few bits: a lookup table for each output bit. `codes` int64 (2^bits,): all outputs of each input."""

    codes: Array


@dataclass(frozen=True, eq=False)
class Cut:
    """The bits `bound` become a code, whose bits follow the bits `free`. `code` int64 (2^len(bound),)."""

    bound: tuple[int, ...]
    free: tuple[int, ...]
    code: Array
    code_bits: int
    inner: Plan


@dataclass(frozen=True, eq=False)
class FourWay:
    """Two bits, the last ones, choose one of four functions of the others."""

    parts: tuple[Plan, ...]


@dataclass(frozen=True, eq=False)
class Split:
    """Each output bit is decomposed alone."""

    parts: tuple[Plan, ...]


@dataclass(frozen=True, eq=False)
class Plan:
    """A decomposition with its number of lookup tables. `used`: the bits of its input that matter, of which `form`
    is a function."""

    luts: int
    used: tuple[int, ...]
    form: Direct | Cut | FourWay | Split


def decompose(codes: Array, bits: int) -> Plan:
    """The decomposition of a function with the fewest lookup tables that was found.

    `codes` int64 (2^inputs,): the output of each input, `bits` bits each.
    """
    joint = _plan(codes, bits)
    if bits == 1 or isinstance(joint.form, Direct):
        return joint
    parts = tuple(_plan(codes >> b & 1, 1) for b in range(bits))
    separate_luts = sum(part.luts for part in parts)
    if joint.luts <= separate_luts:
        return joint
    return Plan(separate_luts, tuple(range(_inputs(codes))), Split(parts))


def _inputs(codes: Array) -> int:
    return len(codes).bit_length() - 1


def _plan(codes: Array, bits: int) -> Plan:
    """The same with all output bits decomposed together."""
    used = tuple(v for v in range(_inputs(codes)) if _matters(codes, v))
    codes = codes[_ordering(_inputs(codes), used)[: 1 << len(used)]]
    inputs = len(used)
    if inputs <= LUT_INPUTS:
        varying = int(np.bitwise_or.reduce(codes ^ codes[0]))
        return Plan(varying.bit_count(), used, Direct(codes))
    best: Plan | None = None
    for bound in _cuts(codes, bits)[:_BRANCHES]:
        cut = _cut(codes, bits, bound)
        if cut is not None:
            luts = cut.code_bits + cut.inner.luts
            if best is None or luts < best.luts:
                best = Plan(luts, used, cut)
    if best is not None:
        return best
    parts = tuple(_plan(part, bits) for part in codes.reshape(4, -1))
    return Plan(bits + sum(part.luts for part in parts), used, FourWay(parts))


def _matters(codes: Array, bit: int) -> bool:
    halves = codes.reshape(-1, 2, 1 << bit)
    return bool((halves[:, 0] != halves[:, 1]).any())


@lru_cache(maxsize=4096)
def _ordering(inputs: int, order: tuple[int, ...]) -> Array:
    """For each index of the bits `order`, then of all others, the index of the bits in their own order."""
    full_order = (*order, *(v for v in range(inputs) if v not in order))
    index = np.zeros(1 << inputs, np.int64)
    for k, v in enumerate(full_order):
        index |= (np.arange(1 << inputs) >> k & 1) << v
    return index


@lru_cache(maxsize=64)
def _bound_sets(inputs: int, size: int) -> tuple[tuple[tuple[int, ...], ...], Array]:
    """Bound sets of this size, and the orderings (sets, 2^inputs) with their bits first."""
    count = math.comb(inputs, size)
    if count <= _MOST_CUTS:
        sets = tuple(itertools.combinations(range(inputs), size))
    else:
        rng = np.random.default_rng(inputs)
        drawn = {tuple(range(first, first + size)) for first in range(inputs - size + 1)}
        drawn |= {tuple(sorted(rng.permutation(inputs)[:size].tolist())) for _ in range(_MOST_CUTS // 2)}
        sets = tuple(sorted(drawn))
    return sets, np.array([_ordering(inputs, bound) for bound in sets], np.int32)


def _cuts(codes: Array, bits: int) -> list[tuple[int, ...]]:
    """The bound sets that make the function narrower, by the expected number of lookup tables, fewest first."""
    inputs = _inputs(codes)
    rated: list[tuple[float, tuple[int, ...]]] = []
    for size in range(LUT_INPUTS, _FEWEST_BOUND - 1, -1):
        sets, orderings = _bound_sets(inputs, size)
        weights = np.random.default_rng(size).integers(1, 1 << 62, 1 << (inputs - size), dtype=np.uint64)
        # Equal columns have equal sums; unequal ones hardly ever do. `_cut` compares the columns themselves.
        columns = codes.astype(np.uint64)[orderings].reshape(len(sets), 1 << (inputs - size), 1 << size)
        sums = np.sort((columns * weights[:, None]).sum(axis=1), axis=1)
        classes = 1 + (sums[:, 1:] != sums[:, :-1]).sum(axis=1)
        for bound, count in zip(sets, classes.tolist(), strict=True):
            code_bits = (count - 1).bit_length()
            if code_bits < size:
                remaining_bits = inputs - size + code_bits
                rated.append((code_bits + bits + _PER_BIT * max(0, remaining_bits - LUT_INPUTS), bound))
    return [bound for _, bound in sorted(rated)]


def _cut(codes: Array, bits: int, bound: tuple[int, ...]) -> Cut | None:
    """The cut with this bound set, or None if it is not narrower."""
    inputs = _inputs(codes)
    columns = codes[_ordering(inputs, bound)].reshape(-1, 1 << len(bound)).T
    classes, class_of = np.unique(columns, axis=0, return_inverse=True)
    code_bits = (len(classes) - 1).bit_length()
    if code_bits >= len(bound):
        return None
    # Codes rise with the sum of a class; unused codes mean the last class.
    by_sum = np.argsort(classes.sum(axis=1), kind="stable")
    rank = np.empty(len(classes), np.int64)
    rank[by_sum] = np.arange(len(classes))
    listed = classes[by_sum[np.minimum(np.arange(1 << code_bits), len(classes) - 1)]]
    free = tuple(v for v in range(inputs) if v not in bound)
    # The free bits are the low ones of an index of the function that remains.
    return Cut(bound, free, rank[class_of.ravel()], code_bits, _plan(listed.ravel(), bits))
