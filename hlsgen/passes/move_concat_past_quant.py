"""Moves a quantizer that follows a Concat in front of it, if a part of the Concat is not quantized.

Matched: a Concat of which a part is no tensor of codes, then elementwise operations with one user each, then a
quantizer. Made: the same operations and the quantizer on every part, each with its share of the constants, and a Concat
of their results (`concat_parts`).
"""

from __future__ import annotations

from hlsgen.ir import Model, Step
from hlsgen.ir.ops import FLOATS, QUANTIZERS
from hlsgen.passes.concat_parts import behind_runs, users


def behind_quantizers(model: Model) -> Model:
    """The model with every such quantizer moved; the results stay what they are."""
    return behind_runs(model, _run)


def _run(steps: list[Step], at: int) -> list[int]:
    """The steps behind a Concat that end with a quantizer, each the only user of the one before; of one user of it."""
    for first in users(steps, at + 1):
        run = [first]
        while isinstance(steps[run[-1]].op, FLOATS) and len(after := users(steps, run[-1] + 1)) == 1:
            run.append(after[0])
        if isinstance(steps[run[-1]].op, QUANTIZERS) and all(len(steps[i].inputs) == 1 for i in run):
            return run
    return []
