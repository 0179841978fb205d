"""Merges a Pad before a convolution into the convolution's own padding.

Matched: a Conv or ConvInteger whose input is a Pad, with only reshapes and transposes between that leave every
element at its position. The border must have the value that the convolution pads with: 0, or the zero point.
Produced: the convolution alone, with both borders added up. It uses the same numbers at the same positions as before.
A Pad that another step uses as well stays for that step.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlsgen.ir import Conv, ConvInteger, Model, Pad, Reshape, Step, Transpose
from hlsgen.ir.rewrite import pruned


def merge_pads(model: Model) -> Model:
    """The model with every such Pad merged into its convolution; the results do not change."""
    steps = list(model.steps)
    for i, step in enumerate(steps):
        while isinstance(step.op, Conv | ConvInteger) and (border := _border(steps, step.inputs[0])) is not None:
            at, pad = border
            padding_value = step.op.zero_point if isinstance(step.op, ConvInteger) else 0
            if np.any(np.not_equal(padding_value, pad.value)):
                break
            pads = np.add(step.op.window.pads, pad.pads).tolist()
            window = replace(step.op.window, pads=(pads[0], pads[1], pads[2], pads[3]))
            step = replace(step, op=replace(step.op, window=window), inputs=steps[at].inputs)
            steps[i] = step
    return replace(model, steps=tuple(pruned(steps, len(steps))[0]))


def _border(steps: list[Step], value: int) -> tuple[int, Pad] | None:
    """(index, Pad) if the value is the Pad's result with every element in place; else None."""
    views: list[Step] = []
    at = value - 1
    while at >= 0 and isinstance(steps[at].op, Reshape | Transpose):
        views.insert(0, steps[at])
        at = steps[at].inputs[0] - 1
    if at < 0 or not isinstance(pad := steps[at].op, Pad):
        return None
    shape = steps[at].shape
    order = np.arange(np.prod(shape)).reshape(shape)
    for step in views:
        order = order.transpose(step.op.perm) if isinstance(step.op, Transpose) else order.reshape(step.shape)
    in_place = order.shape == shape and (np.diff(order.ravel()) == 1).all()
    return (at, pad) if in_place else None
