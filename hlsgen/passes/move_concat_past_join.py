"""Moves Add, Sub, Mul, Max, Min of a Concat and another tensor in front of the Concat, if a part of it is not quantized.

Matched: a Concat of which a part is no tensor of codes, then elementwise operations with one user each, then a joint
with another tensor, and a quantizer behind it. Made: of every part the same operations, and the joint with the slice of
the other tensor that meets it; a Concat of the results (`concat_parts`). The quantizer then moves as well
(`move_concat_past_quant`).

Rotary positions have this form: x * cos + Concat(-x2, x1) * sin, with x of a layer.
"""

from __future__ import annotations

from hlsgen.ir import Binary, Model, Step
from hlsgen.ir.ops import FLOATS, QUANTIZERS
from hlsgen.passes.concat_parts import behind_runs, users


def behind_joints(model: Model) -> Model:
    """The model with every such joint moved; the results stay what they are."""
    return behind_runs(model, _run)


def _run(steps: list[Step], at: int) -> list[int]:
    """The steps behind a Concat that end with a joint, each the only user of the one before; a quantizer follows them."""
    run: list[int] = []
    value = at + 1
    while len(after := users(steps, value)) == 1:
        step = steps[after[0]]
        run.append(after[0])
        value = after[0] + 1
        if isinstance(step.op, Binary):
            alike = all(j and steps[j - 1].shape == step.shape for j in step.inputs)
            return run if alike and _is_quantized(steps, value) else []
        if not isinstance(step.op, FLOATS) or len(step.inputs) > 1:
            break
    return []


def _is_quantized(steps: list[Step], value: int) -> bool:
    """Whether elementwise operations and joints, each the only user of the one before, lead to a quantizer."""
    while len(after := users(steps, value)) == 1:
        op = steps[after[0]].op
        if isinstance(op, QUANTIZERS):
            return True
        if not isinstance(op, (*FLOATS, Binary)):
            break
        value = after[0] + 1
    return False
