"""The latency of units that take a beat whenever their consumer does, with one beat a frame.

Written independently, from the heads of the modules. Such a unit has one enable, `m_ready || !m_valid`, which also is
its `s_ready`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from hlsgen.certify.netlist_reader import Cell, broken
from hlsgen.certify.stage_frame import module_text

#: Cycles of `OP` of hg_f32_unit: sum, product, quotient, larger and smaller number.
_FLOAT_OPS = (7, 6, 19, 2, 2)
#: Words from which on a memory of hg_threshold has registers.
_SMALL = 64

Latency = Callable[[Cell], int]


def _fixed(cycles: int) -> Latency:
    return lambda cell: cycles


def _value(cell: Cell, name: str, default: int) -> int:
    """A parameter, or the default of the module."""
    return cell.number(name) if name in cell.parameters else default


def _flag(cell: Cell, name: str, default: int) -> int:
    """1 if a parameter is not 0."""
    return int(_value(cell, name, default) != 0)


def _correct(cell: Cell) -> int:
    deeper = _value(cell, "REST", 2) > 0 or _value(cell, "DEEP", 0) != 0
    return 3 + deeper + 2 * (_value(cell, "FOLDS", 2) > 1) - _flag(cell, "OPEN", 0)


def _threshold(cell: Cell) -> int:
    bits, folds = _value(cell, "BITS", 2), _value(cell, "FOLDS", 2)
    large = [folds << level > _SMALL for level in range(bits)]
    return bits + 1 + sum(large[1:]) + 2 * sum(large) * (_value(cell, "EVERY", 2) == 1)


def _float_op(cell: Cell) -> int:
    operation = _value(cell, "OP", 0)
    if operation >= len(_FLOAT_OPS):
        raise broken(cell.name, f"parameter OP is {operation}.")
    return _FLOAT_OPS[operation]


def _table(cell: Cell) -> int:
    return {0: 2, 1: 4}.get(_value(cell, "MODE", 2), 5)


#: The latency of an instance, by module of the library.
LATENCIES: Mapping[str, Latency] = {
    "hg_argmax": _fixed(2),
    "hg_compare": _fixed(2),
    "hg_correct": _correct,
    "hg_f32_decode": _fixed(8),
    "hg_f32_encode": _fixed(6),
    "hg_f32_round_unit": _fixed(2),
    "hg_f32_unit": _float_op,
    "hg_float_key": _fixed(1),
    "hg_lane_shift": lambda cell: 1 + _flag(cell, "ADD", 1),
    "hg_lane_table": lambda cell: 1 + _flag(cell, "ADD", 1),
    "hg_lines": lambda cell: (
        _value(cell, "M_STAGES", 1) + _value(cell, "STAGES", 2) + 5 + (_value(cell, "SHIFT", 2) > 0)
    ),
    "hg_lut_network": _fixed(1),
    "hg_pair_add": _fixed(7),
    "hg_pair_scale": _fixed(5),
    "hg_pick": _fixed(0),
    "hg_pool_tree": lambda cell: max(1, (_value(cell, "TAPS", 9) - 1).bit_length()),
    "hg_rank": lambda cell: _value(cell, "LEVELS", 1),
    "hg_reduce": _fixed(2),
    "hg_scale": lambda cell: 3 + _flag(cell, "MODE", 0) + _value(cell, "STAGES", 3),
    "hg_scale_f32": lambda cell: 7 + _value(cell, "STAGES", 7) + 2 * (_value(cell, "U_W", 16) > 24),
    "hg_shift": lambda cell: 1 + _flag(cell, "ADD", 1) + _flag(cell, "SPLIT", 1),
    "hg_table": _table,
    "hg_threshold": _threshold,
}


def latency_of_text(folder: Path, module: str) -> int:
    """The latency of a generated module, which a proof has read: the stages of its control."""
    stages = re.search(r"hg_stages #\(\n        \.STAGES\((\d+)\)", module_text(folder, module))
    if stages is None:
        raise broken(f"rtl/{module}.v", "has no hg_stages.")
    return int(stages[1])
