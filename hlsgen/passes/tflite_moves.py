"""TFLite files without arithmetic in hardware: the core copies the codes, the host computes the rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hlsgen import ir
from hlsgen.ir.rewrite import StepRewriter
from hlsgen.numerics.tflite.multipliers import Runtime
from hlsgen.passes.partition import HARDWARE
from hlsgen.passes.quantization import integer_quantizer

_RUNTIMES = frozenset(runtime.value for runtime in Runtime)


def _only_moves(model: ir.Model) -> bool:
    """True for a TFLite file of codes that has moves and operators of the host only."""
    typed = all(source.type is not None for source in model.all_inputs)
    return typed and model.runtime in _RUNTIMES and not any(isinstance(step.op, HARDWARE) for step in model.steps)


def with_core_of_moves(model: ir.Model) -> ir.Model:
    """Add an identity quantizer to each input, so that the model has a layer. Other models stay as they are."""
    if not _only_moves(model):
        return model
    rewriter = StepRewriter()
    if not any(isinstance(step.op, ir.InputPart) for step in model.steps):
        rewriter.numbers[0] = _copied(rewriter, model.all_inputs[0].dtype, model.input_name, model.input_shape, 0)
    for number, step in enumerate(model.steps, 1):
        value = rewriter.numbers[number] = rewriter.copy(step)
        if isinstance(step.op, ir.InputPart):
            dtype = model.all_inputs[step.op.number].dtype
            rewriter.numbers[number] = _copied(rewriter, dtype, step.name, step.shape, value)
    return replace(model, steps=tuple(rewriter.steps))


def _copied(rewriter: StepRewriter, dtype: str, name: str, shape: ir.Shape, value: int) -> int:
    return rewriter.add(f"{name} (codes)", integer_quantizer(len(shape), np.dtype(dtype)), shape, (value,))
