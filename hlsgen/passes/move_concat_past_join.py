"""Moves a Concat past a binary operation with another tensor, if one of its inputs is not quantized.

Matched: a Concat with an input that is no tensor of codes, then elementwise operations with one user each. An
Add, Sub, Mul, Max or Min with another tensor follows, and a quantizer after it. Produced: the same operations on every
part, the binary operation with the corresponding slice of the other tensor, and a Concat of the results
(`concat_parts`). The Concat then moves past the quantizer as well (`move_concat_past_quant`).

Rotary positions have this form: x * cos + Concat(-x2, x1) * sin, with x of a layer.
"""

from __future__ import annotations

from hlsgen.ir import Binary, Model, Step
from hlsgen.ir.ops import FLOATS, QUANTIZERS
from hlsgen.ir.rewrite import consumers_of
from hlsgen.passes.concat_parts import move_past_runs


def move_past_binaries(model: Model) -> Model:
    """The model with every such Concat moved; the results do not change."""
    return move_past_runs(model, _run)


def _run(steps: list[Step], at: int) -> list[int]:
    """The indices of the steps from a Concat to a binary operation, each the only user of the one before.

    Empty unless a quantizer follows.
    """
    run: list[int] = []
    value = at + 1
    while len(consumers := consumers_of(steps, value)) == 1:
        step = steps[consumers[0]]
        run.append(consumers[0])
        value = consumers[0] + 1
        if isinstance(step.op, Binary):
            same_shape = all(j and steps[j - 1].shape == step.shape for j in step.inputs)
            return run if same_shape and _is_quantized(steps, value) else []
        if not isinstance(step.op, FLOATS) or len(step.inputs) > 1:
            break
    return []


def _is_quantized(steps: list[Step], value: int) -> bool:
    """True if elementwise and binary operations, each the only user of the one before, lead to a quantizer."""
    while len(consumers := consumers_of(steps, value)) == 1:
        op = steps[consumers[0]].op
        if isinstance(op, QUANTIZERS):
            return True
        if not isinstance(op, (*FLOATS, Binary)):
            break
        value = consumers[0] + 1
    return False
