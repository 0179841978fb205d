"""Makes a Pad in front of a convolution the convolution's own padding.

Matched: a Conv or ConvInteger whose input is a Pad, with nothing between them but reshapes and transposes that leave
every element where it is. The border must have the value that the convolution pads with: 0, or the zero point.
Made: the convolution alone, with both borders added up. It meets the same numbers in the same places as before.
A Pad that another step uses as well stays for that step.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlsgen.ir import Conv, ConvInteger, Model, Pad, Reshape, Step, Transpose
from hlsgen.ir.rewrite import pruned


def into_convolutions(model: Model) -> Model:
    """The model with every such Pad inside its convolution; the results stay what they are."""
    steps = list(model.steps)
    for i, step in enumerate(steps):
        while isinstance(step.op, Conv | ConvInteger) and (found := _border(steps, step.inputs[0])) is not None:
            at, pad = found
            zero = step.op.zero_point if isinstance(step.op, ConvInteger) else 0
            if np.any(np.not_equal(zero, pad.value)):
                break
            pads = np.add(step.op.window.pads, pad.pads).tolist()
            window = replace(step.op.window, pads=(pads[0], pads[1], pads[2], pads[3]))
            step = replace(step, op=replace(step.op, window=window), inputs=steps[at].inputs)
            steps[i] = step
    return replace(model, steps=tuple(pruned(steps, len(steps))[0]))


def _border(steps: list[Step], value: int) -> tuple[int, Pad] | None:
    """The Pad, and its place, whose result the value is, element by element."""
    names: list[Step] = []
    at = value - 1
    while at >= 0 and isinstance(steps[at].op, Reshape | Transpose):
        names.insert(0, steps[at])
        at = steps[at].inputs[0] - 1
    if at < 0 or not isinstance(pad := steps[at].op, Pad):
        return None
    shape = steps[at].shape
    order = np.arange(np.prod(shape)).reshape(shape)
    for step in names:
        order = order.transpose(step.op.perm) if isinstance(step.op, Transpose) else order.reshape(step.shape)
    same = order.shape == shape and (np.diff(order.ravel()) == 1).all()
    return (at, pad) if same else None
