"""Binds the realization Thresholds to hg_threshold, which searches a tree of thresholds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hlsgen.numerics.fixed import Array, IntType
from hlsgen.rescale.realize.thresholds import Thresholds
from hlsgen.verilog.binding.memory_files import Binding, words


def bind(realization: Thresholds, table: Array, source: IntType, result: IntType, name: str) -> Binding:
    """The module of a realization. `table` int64 (folds, lanes): the parameter set of each lane in each beat."""
    falling = int(realization.falling.any())
    return Binding(
        "hg_threshold",
        {
            "LANES": table.shape[1],
            "FOLDS": len(table),
            "IN_W": source.bits,
            "IN_SIGNED": int(source.signed),
            "BITS": realization.bits,
            "OUT_W": result.bits,
            "OFFSET": realization.base,
            "FALLING": falling,
            "FILE": name,
            "EVERY": realization.every,
        },
        f"{len(realization.table)} thresholds per channel",
        dict(_memories(realization, table, source, name, falling)),
    )


def _memories(
    realization: Thresholds, table: Array, source: IntType, name: str, falling: int
) -> Iterator[tuple[str, str]]:
    """The search tree of each lane, level by level.

    The tree is over thresholds padded to 2^bits - 1 with ones that are never reached.
    """
    bits, steps = realization.bits, len(realization.table)
    width = source.bits + (1 if source.signed else 2)
    never = np.where(realization.falling, -(1 << (width - 1)), (1 << (width - 1)) - 1)
    padded = np.concatenate([realization.table, np.broadcast_to(never, ((1 << bits) - 1 - steps, len(never)))])
    flag = realization.falling.astype(np.int64) << width
    tree = (padded & ((1 << width) - 1)) | (flag if falling else 0)
    for lane in range(table.shape[1]):
        for level in range(bits):
            step = 1 << (bits - level)
            nodes = tree[step // 2 - 1 :: step]
            yield (
                f"{name}_{lane:04d}_{level:02d}.mem",
                words(nodes[:, table[:, lane]].T.reshape(-1, 1), width + falling),
            )
