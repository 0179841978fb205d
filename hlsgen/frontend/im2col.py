"""Im2Col with the MatMuls behind it, as convolutions."""

from __future__ import annotations

from dataclasses import replace

from hlsgen.frontend.ops_conv import absorbed, is_patches
from hlsgen.ir import Conv, MatMul, Step
from hlsgen.ir.rewrite import pruned


def with_convolutions(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps with every MatMul of windows replaced by one convolution; the last one stays the last."""
    result = list(steps)
    for i, step in enumerate(steps):
        before = steps[step.inputs[0] - 1] if step.inputs and step.inputs[0] else None
        if isinstance(step.op, MatMul) and before is not None and is_patches(before.op):
            assert isinstance(before.op, Conv)
            result[i] = replace(step, op=absorbed(before.op, step.op), inputs=before.inputs)
    return tuple(pruned(result, len(result))[0])
