"""Proves that two programs have the same outputs for every input.

Each result gets a *meaning*, which two results share only if they are equal for every input. Sums are linear forms of
results that are no sums. A result that depends on one number, or on numbers of few codes, means its values for all of
them. All other results mean their operation and the meanings of its operands.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import astuple, dataclass
from math import gcd, prod

import numpy as np

from hlsgen.ir import programs
from hlsgen.numerics.fixed import Array, IntType

#: Most values of a sum, and most combinations of several numbers, for which results are listed.
_LONGEST_LINE, _LARGEST_BOX = 1 << 15, 1 << 12
#: Lists of values that are kept.
_CACHED = 256


def unproven_output(
    first: programs.Program, second: programs.Program, bounds_of: Callable[[programs.Program], Sequence[IntType]]
) -> int | None:
    """The number of an output that is not proven equal in both programs, None if there is none.

    `bounds_of`: an interval that holds each result of a program. Both programs have the same number of outputs, and no
    result or shifted operand of more than `programs.MAX_BITS` bits.
    """
    atoms = _Atoms()
    meanings = [_Meanings(program, atoms, bounds_of(program)) for program in (first, second)]
    pairs = zip(*(m.of_outputs() for m in meanings), strict=True)
    return next((number for number, (a, b) in enumerate(pairs) if a != b), None)


@dataclass(frozen=True)
class _Form:
    """constant + sum of factors times atoms, by number."""

    constant: int
    factors: Mapping[int, int]

    @property
    def key(self) -> Hashable:
        return self.constant, frozenset(self.factors.items())


@dataclass(frozen=True)
class _Domain:
    """The values of a sum of `atoms` with `factors`, from low to high; or, without factors, all codes of the atoms."""

    atoms: tuple[int, ...]
    factors: tuple[int, ...]
    low: int
    high: int

    @property
    def size(self) -> int:
        return self.high - self.low + 1


class _Atoms:
    """The atoms of both programs: results that are no sums, by meaning, with their least and greatest value."""

    def __init__(self) -> None:
        self.number_of: dict[Hashable, int] = {}
        self.ends: list[tuple[int, int]] = []
        #: What each atom is a function of, which is itself for an atom that is listed for nothing else.
        self.domains: list[_Domain | None] = []

    def atom(self, meaning: Hashable, ends: tuple[int, int], domain: _Domain | None = None) -> int:
        if meaning not in self.number_of:
            number = self.number_of[meaning] = len(self.ends)
            self.ends.append(ends)
            self.domains.append(domain)
            self.domains[number] = domain or self._line(number)
        return self.number_of[meaning]

    def _line(self, atom: int) -> _Domain | None:
        low, high = self.ends[atom]
        return _Domain((atom,), (1,), low, high) if high - low < _LONGEST_LINE else None

    def domain_of(self, form: _Form, is_sum: bool = True) -> _Domain | None:
        """The domain of a function of the atoms of a form, None for a domain that is too large.

        `is_sum`: it is a function of the form's sum alone.
        """
        atoms = sorted(form.factors)
        shared = {self.domains[a] for a in atoms}
        if len(shared) == 1:
            return shared.pop()
        sizes = self.sizes(atoms)
        if prod(sizes) <= _LARGEST_BOX:
            return _Domain(tuple(atoms), (), 0, prod(sizes) - 1)
        if not is_sum:
            return None
        common = gcd(*form.factors.values()) * (1 if form.factors[atoms[0]] > 0 else -1)
        factors = tuple(form.factors[a] // common for a in atoms)
        products = [sorted((f * self.ends[a][0], f * self.ends[a][1])) for a, f in zip(atoms, factors, strict=True)]
        low, high = sum(p[0] for p in products), sum(p[1] for p in products)
        return _Domain(tuple(atoms), factors, low, high) if high - low < _LONGEST_LINE else None

    def sizes(self, atoms: Sequence[int]) -> list[int]:
        """The number of codes of each atom."""
        return [self.ends[a][1] - self.ends[a][0] + 1 for a in atoms]

    def parts(self, domain: _Domain) -> list[Array]:
        """The numbers that vary in a domain, from 0 up: its sum, or each of its atoms."""
        if domain.factors:
            return [np.arange(domain.size)]
        sizes = self.sizes(domain.atoms)
        return [np.arange(domain.size) // prod(sizes[:n]) % size for n, size in enumerate(sizes)]

    def linear(self, values: Array, domain: _Domain) -> _Form | None:
        """The form of a function that is a sum of the atoms of its domain, else None."""
        parts = self.parts(domain)
        slopes = [int(values[part == 1][0] - values[0]) if (part == 1).any() else 0 for part in parts]
        if (values - values[0] != sum(slope * part for slope, part in zip(slopes, parts, strict=True))).any():
            return None
        if domain.factors:
            factors = {a: slopes[0] * f for a, f in zip(domain.atoms, domain.factors, strict=True)}
            constant = int(values[0]) - slopes[0] * domain.low
        else:
            factors = dict(zip(domain.atoms, slopes, strict=True))
            constant = int(values[0]) - sum(slope * self.ends[a][0] for a, slope in factors.items())
        return _Form(constant, {a: factor for a, factor in factors.items() if factor})


class _Meanings:
    """The meanings of the results of a program. `recipes`: how the values of an atom are computed, if not cached."""

    def __init__(self, program: programs.Program, atoms: _Atoms, bounds: Sequence[IntType]) -> None:
        self.program, self.atoms = program, atoms
        self.forms: list[_Form] = []
        self.recipes: dict[int, tuple[programs.Operation | _Form, int, int]] = {}
        self.cache: dict[int, Array] = {}
        for operation, bound in zip(program.operations, bounds, strict=True):
            self.forms.append(self._form(operation, bound))

    def of_outputs(self) -> list[Hashable]:
        return [self.forms[n].key for n in self.program.outputs]

    # ----------------------------------------------------------------------- forms

    def _form(self, operation: programs.Operation, bound: IntType) -> _Form:
        """The form of a result."""
        if isinstance(operation, programs.Number):
            return _Form(operation.value, {})
        if isinstance(operation, programs.Total):
            return self._total(operation)
        changing = [form for form in (self.forms[k] for k in programs.sources_of(operation)) if form.factors]
        domains = {self.atoms.domain_of(form) for form in changing}
        domain = domains.pop() if len(domains) == 1 else None
        if changing and domain is None:
            all_atoms = _Form(0, {a: 1 for form in changing for a in form.factors})
            domain = self.atoms.domain_of(all_atoms, is_sum=False)
        if isinstance(operation, programs.Take) or (changing and domain is None):
            atom = self.atoms.atom(self._structure(operation), (bound.lo, bound.hi))
            return _Form(0, {atom: 1})
        return self._listed(operation, domain)

    def _total(self, total: programs.Total) -> _Form:
        """A sum; atoms that are functions of the same number become one."""
        constant, factors = 0, dict[int, int]()
        for term, sign in ((total.a, 1), (total.b, -1 if total.minus else 1)):
            form = self.forms[term.source]
            constant += sign * form.constant * 2**term.shift
            for atom, factor in form.factors.items():
                factors[atom] = factors.get(atom, 0) + sign * factor * 2**term.shift
        groups: dict[_Domain, list[int]] = {}
        for atom in sorted(a for a, factor in factors.items() if factor):
            domain = self.atoms.domains[atom]
            if domain is not None:
                groups.setdefault(domain, []).append(atom)
        for domain, atoms in groups.items():
            if len(atoms) > 1:
                joint = self._listed(_Form(0, {a: factors.pop(a) for a in atoms}), domain)
                constant += joint.constant
                for atom, factor in joint.factors.items():
                    factors[atom] = factors.get(atom, 0) + factor
        return _Form(constant, {atom: factor for atom, factor in factors.items() if factor})

    def _listed(self, recipe: programs.Operation | _Form, domain: _Domain | None) -> _Form:
        """The form of a result from its values for all of a domain.

        It is constant, a sum of the atoms of the domain, or an atom of its own.
        """
        values = self._computed(recipe, domain)
        if domain is None or (values == values[0]).all():
            return _Form(int(values[0]), {})
        linear = self.atoms.linear(values, domain)
        if linear is not None:
            return linear
        first, changes = int(values[0]), values - values[0]
        common = int(np.gcd.reduce(changes)) * (1 if changes[np.flatnonzero(changes)[0]] > 0 else -1)
        changes //= common
        meaning = domain, hashlib.sha256(np.ascontiguousarray(changes).tobytes()).digest()
        atom = self.atoms.atom(meaning, (int(changes.min()), int(changes.max())), domain)
        self.recipes.setdefault(atom, (recipe, first, common))
        return _Form(first, {atom: common})

    def _structure(self, operation: programs.Operation) -> Hashable:
        """An operation with the forms of its operands in place of their numbers."""
        sources = programs.sources_of(operation)
        unnumbered = programs.renumbered(operation, dict.fromkeys(sources, 0))
        return type(operation).__name__, astuple(unnumbered), tuple(self.forms[k].key for k in sources)

    # ----------------------------------------------------------------------- values

    def _computed(self, recipe: programs.Operation | _Form, domain: _Domain | None) -> Array:
        """A sum, or the result of an operation, for all of a domain; one value without a domain."""
        if isinstance(recipe, _Form):
            return self._sum(recipe, domain)
        operands = {k: self._sum(self.forms[k], domain) for k in programs.sources_of(recipe)}
        values = programs.result_of(recipe, np.zeros(0, np.int64), operands)
        return np.array(np.broadcast_to(values, (1 if domain is None else domain.size,)), np.int64)

    def _sum(self, form: _Form, domain: _Domain | None) -> Array:
        """A sum of atoms for all of a domain: its sum, parts of it, or functions of it."""
        if domain is None:
            return np.full(1, form.constant)
        if domain.factors and set(domain.atoms) == set(form.factors):
            times = form.factors[domain.atoms[0]] // domain.factors[0]
            assert all(form.factors[a] == times * f for a, f in zip(domain.atoms, domain.factors, strict=True))
            return np.asarray(times * np.arange(domain.low, domain.high + 1) + form.constant)
        total = np.full(domain.size, form.constant)
        for atom, factor in form.factors.items():
            total += factor * self._atom(atom, domain)
        return total

    def _atom(self, atom: int, domain: _Domain) -> Array:
        """An atom for all of a domain, of which it is a part or a function."""
        if atom in domain.atoms:
            assert domain.factors in ((), (1,))
            return np.asarray(self.atoms.ends[atom][0] + self.atoms.parts(domain)[domain.atoms.index(atom)])
        if atom not in self.cache:
            if len(self.cache) == _CACHED:
                del self.cache[next(iter(self.cache))]
            recipe, first, common = self.recipes[atom]
            self.cache[atom] = (self._computed(recipe, domain) - first) // common
        return self.cache[atom]
