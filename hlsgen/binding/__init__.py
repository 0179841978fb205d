"""Realizations of step functions bound to modules of the Verilog library, one file each."""

from __future__ import annotations

from typing_extensions import assert_never

from hlsgen.binding import shift, threshold
from hlsgen.binding.words import Binding
from hlsgen.fixed import Array, IntType
from hlsgen.rescale import Shift, Single, Thresholds


def bind(found: Single, table: Array, source: IntType, result: IntType, name: str) -> Binding:
    """The module of a realization. `table` (folds, lanes): the set that each lane uses in each beat."""
    match found:
        case Shift():
            return shift.bind(found, table, source, result, name)
        case Thresholds():
            return threshold.bind(found, table, source, result, name)
        case _:
            assert_never(found)
