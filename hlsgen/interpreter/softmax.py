"""Softmax steps of a Model: float32 arithmetic of numpy on exact numbers, step by step as the contract says it."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from hlsgen.interpreter.exact_numbers import Exact, common
from hlsgen.ir import QLINEAR_FLOOR, Model, QLinearSoftmax, Reshape, Softmax, Transpose
from hlsgen.ir.constant_choice import constant_choice
from hlsgen.ir.ops import Add, Div, Mul, Where
from hlsgen.numerics.exponential import exp_float32
from hlsgen.numerics.fixed import Array

#: What stands for minus infinity: less than every float32.
_NONE = Fraction(-(1 << 130))


def scaled(op: Mul | Div, value: Array, scores: Exact | None) -> Exact | None:
    """Exact scores behind one positive float32 factor for all elements."""
    if scores is None or value.size > 1 or value.dtype != np.float32 or not 0 < value.ravel()[0] < np.inf:
        return None
    factor = Fraction(float(value.ravel()[0]))
    return replace(scores, unit=scores.unit * (factor if isinstance(op, Mul) else 1 / factor))


def masked(op: Add | Where, data: Array, scores: Exact | None) -> Exact | None:
    """Exact scores behind the constants of a mask, float32; where a sum in float32 is the constant, this is the score."""
    if scores is None or data.dtype != np.float32:
        return None
    shape = np.shape(scores.whole)
    if isinstance(op, Add):
        constant = np.broadcast_to(op.value, shape)
        alone = (data + constant == constant) & (constant != 0)
    else:
        chosen = constant_choice(op)
        if chosen is None:
            return None
        constant, alone = (np.broadcast_to(part, shape) for part in (np.where(chosen[0], chosen[1], 0), chosen[0]))
    known, place = np.unique(constant, return_inverse=True)
    numbers = [Fraction(float(c)) if np.isfinite(c) else _NONE for c in known]
    unit = common([scores.unit, *numbers])
    added = np.array([int(number / unit) for number in numbers], object)[place.reshape(shape)]
    own = np.where(alone, 0, scores.whole.astype(object)) * int(scores.unit / unit)
    return replace(scores, whole=own + added, unit=unit, slope=None)


def is_mask(model: Model, number: int) -> bool:
    """Whether the value goes into a Softmax, perhaps behind what keeps its exact numbers."""
    for place, step in enumerate(model.steps, 1):
        if number in step.inputs:
            through = isinstance(step.op, Mul | Div | Add | Where | Reshape | Transpose) and is_mask(model, place)
            if through or isinstance(step.op, Softmax):
                return True
    return False


def softmax(scores: Exact, axis: int) -> Array:
    """exp of the exact differences to the largest number, each times the reciprocal of their exact sum."""
    whole = np.moveaxis(scores.whole, axis, -1)
    below = whole.max(axis=-1, keepdims=True) - whole
    known, place = np.unique(below, return_inverse=True)
    table = np.array([exp_float32(-scores.unit * int(d)) for d in known], np.float32)
    power = table[place.reshape(below.shape)]
    sums = np.array([_sum(row) for row in power.reshape(-1, power.shape[-1])], np.float32)
    inverse = (np.float32(1) / sums).reshape(*power.shape[:-1], 1)
    return np.moveaxis(power * inverse, -1, axis)


def _sum(row: Array) -> float:
    """The exact sum, rounded once: float64 holds it, but for what it cut off in the middle of two float32 numbers."""
    terms = row.astype(np.float64).tolist()
    total = math.fsum(terms)
    near = np.float32(total)
    other = np.nextafter(near, np.float32(np.inf if total > float(near) else 0))
    if total - float(near) != float(other) - total:
        return float(near)
    rest = math.fsum([*terms, -total])
    return float(max(near, other) if rest > 0 else min(near, other) if rest < 0 else near)


def qlinear_softmax(op: QLinearSoftmax, codes: Array) -> Array:
    """As onnxruntime's loop over a row does it, but for the last rounding; frames come first."""
    rows = np.moveaxis(codes, op.axis + 1, -1)
    power = op.powers[rows.max(axis=-1, keepdims=True) - rows]
    total = np.zeros(power.shape[:-1], np.float32)
    for place in range(power.shape[-1]):
        total = total + power[..., place]
    quotient = power * op.factor / total[..., None]
    return np.moveaxis(np.where(quotient < QLINEAR_FLOOR, np.float32(0), quotient), -1, op.axis + 1)
