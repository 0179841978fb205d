"""Moves a Concat past the quantizer that follows it, if one of its inputs is not quantized.

Matched: a Concat with an input that is no tensor of codes, then elementwise operations with one user each, then a
quantizer. Produced: the same operations and the quantizer on every part, each with its part of the constants, and a
Concat of their results (`concat_parts`).
"""

from __future__ import annotations

from hlsgen.ir import Model, Step
from hlsgen.ir.ops import FLOATS, QUANTIZERS
from hlsgen.ir.rewrite import consumers_of
from hlsgen.passes.concat_parts import move_past_runs


def move_past_quantizers(model: Model) -> Model:
    """The model with every such Concat moved; the results do not change."""
    return move_past_runs(model, _run)


def _run(steps: list[Step], at: int) -> list[int]:
    """The indices of the steps from a user of the Concat to a quantizer, each the only user of the one before.

    Empty if no user of the Concat begins such a run.
    """
    for first in consumers_of(steps, at + 1):
        run = [first]
        while isinstance(steps[run[-1]].op, FLOATS) and len(consumers := consumers_of(steps, run[-1] + 1)) == 1:
            run.append(consumers[0])
        if isinstance(steps[run[-1]].op, QUANTIZERS) and all(len(steps[i].inputs) == 1 for i in run):
            return run
    return []
