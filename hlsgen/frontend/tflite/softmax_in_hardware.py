"""SOFTMAX in hardware before layers; after all of them it stays on the host, unless hardware is wished."""

from __future__ import annotations

from collections.abc import Sequence

from hlsgen.diagnostics import fail
from hlsgen.frontend.op_results import starts_hardware
from hlsgen.frontend.tflite.requantizers import shifted
from hlsgen.interpreter.host_tflite import HostSoftmax, host_softmax
from hlsgen.ir import ArgMax, HostOp, Op, OutputParts, Reshape, RowStep, Step, Transpose
from hlsgen.ir.ops import FLOATS, QUANTIZERS, Cast
from hlsgen.ir.rewrite import StepRewriter
from hlsgen.ir.row_functions import MAX_FIXED_POINT_ROW, BelowLargest, FixedPointShare
from hlsgen.numerics.tflite.softmax_of_int16 import Int16Softmax

#: Operations that the host can compute after the last layer.
_ON_HOST = (*FLOATS, *QUANTIZERS, Reshape, Transpose, ArgMax, HostOp, OutputParts)


def move_softmax_to_hardware(steps: Sequence[Step], last: bool) -> list[Step]:
    """The steps with units on rows for each SOFTMAX whose codes a layer needs. Raises HG013, HG030.

    last: also for those that no layer follows.
    """
    rewriter = StepRewriter()
    for i, step in enumerate(steps):
        values = tuple(rewriter.numbers[j] for j in step.inputs)
        ops: list[Op] = [step.op]
        softmax = host_softmax(step.op) if isinstance(step.op, HostOp) else None
        if softmax is not None and (last or _is_before_layers(steps, i)):
            if isinstance(softmax, Int16Softmax):
                text = "SOFTMAX in hardware: of int16 data it has lines between the entries of two tables."
                raise fail(
                    "HG030", step.name, text, "Quantize its data to int8, or let the host compute it at the end."
                )
            if not softmax.in_floats:
                ops = _integer_steps(step, softmax)
            elif last or _is_after_hardware(steps, i):
                text = "SOFTMAX in hardware: in litert its sums are float32, in the order of the row."
                raise fail("HG030", step.name, text, "Use --runtime tflm or litert-ref, which compute it in integers.")
        for op in ops:
            values = (rewriter.add(step.name, op, step.shape, values),)
        rewriter.numbers[i + 1] = values[0]
    return list(rewriter.steps)


def _is_before_layers(steps: Sequence[Step], i: int) -> bool:
    downstream = {i + 1}
    for j in range(i + 1, len(steps)):
        if downstream.intersection(steps[j].inputs):
            downstream.add(j + 1)
    return any(not isinstance(steps[j - 1].op, _ON_HOST) for j in downstream)


def _is_after_hardware(steps: Sequence[Step], i: int) -> bool:
    upstream = set(steps[i].inputs)
    for j in reversed(range(i)):
        if j + 1 in upstream:
            upstream.update(steps[j].inputs)
    return any(j > 0 and starts_hardware(steps[j - 1].op) for j in upstream)


def _integer_steps(step: Step, softmax: HostSoftmax) -> list[Op]:
    """The distances below the largest code, their shares, and the codes of the shares."""
    if step.shape[-1] > MAX_FIXED_POINT_ROW:
        text = f"SOFTMAX in hardware has rows of {step.shape[-1]} codes: the runtime aborts if their sum reaches 512."
        raise fail("HG013", step.name, text, f"Supported: rows of 1 to {MAX_FIXED_POINT_ROW} codes.")
    codes = shifted(len(step.shape), 0, 0, softmax.type.lo, softmax.type, softmax.result)
    shares = FixedPointShare(softmax.exponentials, softmax.type.bits)
    return [RowStep(BelowLargest()), RowStep(shares), Cast("int32"), codes]
