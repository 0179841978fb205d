"""Softmax steps of a Model: float32 arithmetic of numpy on exact numbers, step by step as the contract defines it."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from hlsgen.interpreter.exact_numbers import Exact, common_unit
from hlsgen.ir import QLINEAR_FLOOR, Model, QLinearSoftmax, Reshape, Softmax, Transpose
from hlsgen.ir.constant_choice import constant_choice
from hlsgen.ir.ops import Add, Div, Mul, Where
from hlsgen.numerics.exponential import exp_float32
from hlsgen.numerics.fixed import Array

#: Represents minus infinity: less than every float32.
_MINUS_INFINITY = Fraction(-(1 << 130))


def scaled(op: Mul | Div, value: Array, scores: Exact | None) -> Exact | None:
    """Exact scores multiplied by one positive float32 factor for all elements, or None for other operations."""
    if scores is None or value.size > 1 or value.dtype != np.float32 or not 0 < value.ravel()[0] < np.inf:
        return None
    factor = Fraction(float(value.ravel()[0]))
    return replace(scores, unit=scores.unit * (factor if isinstance(op, Mul) else 1 / factor))


def masked(op: Add | Where, data: Array, scores: Exact | None) -> Exact | None:
    """Exact scores after the constants of a mask, float32, or None for other operations.

    The constant replaces a score if their sum in float32 is the constant.
    """
    if scores is None or data.dtype != np.float32:
        return None
    shape = np.shape(scores.integers)
    if isinstance(op, Add):
        constant = np.broadcast_to(op.value, shape)
        is_constant = (data + constant == constant) & (constant != 0)
    else:
        choice = constant_choice(op)
        if choice is None:
            return None
        constant, is_constant = (
            np.broadcast_to(array, shape) for array in (np.where(choice[0], choice[1], 0), choice[0])
        )
    distinct, inverse = np.unique(constant, return_inverse=True)
    numbers = [Fraction(float(c)) if np.isfinite(c) else _MINUS_INFINITY for c in distinct]
    unit = common_unit([scores.unit, *numbers])
    mask_integers = np.array([int(number / unit) for number in numbers], object)[inverse.reshape(shape)]
    score_integers = np.where(is_constant, 0, scores.integers.astype(object)) * int(scores.unit / unit)
    return replace(scores, integers=score_integers + mask_integers, unit=unit, slope=None)


def is_mask(model: Model, number: int) -> bool:
    """True if the value enters a Softmax, perhaps after steps that keep its exact numbers."""
    for user, step in enumerate(model.steps, 1):
        if number in step.inputs:
            continues = isinstance(step.op, Mul | Div | Add | Where | Reshape | Transpose) and is_mask(model, user)
            if continues or isinstance(step.op, Softmax):
                return True
    return False


def softmax(scores: Exact, axis: int) -> Array:
    """exp of the exact differences to the largest number, each times the reciprocal of their exact sum."""
    integers = np.moveaxis(scores.integers, axis, -1)
    differences = integers.max(axis=-1, keepdims=True) - integers
    distinct, inverse = np.unique(differences, return_inverse=True)
    powers = np.array([exp_float32(-scores.unit * int(d)) for d in distinct], np.float32)
    power = powers[inverse.reshape(differences.shape)]
    sums = np.array([_sum(row) for row in power.reshape(-1, power.shape[-1])], np.float32)
    reciprocals = (np.float32(1) / sums).reshape(*power.shape[:-1], 1)
    return np.moveaxis(power * reciprocals, -1, axis)


def _sum(row: Array) -> float:
    """The exact sum, rounded once.

    A float64 sum decides the rounding, unless it is the midpoint of two float32 numbers; then the cut-off rest decides.
    """
    terms = row.astype(np.float64).tolist()
    total = math.fsum(terms)
    nearest = np.float32(total)
    neighbour = np.nextafter(nearest, np.float32(np.inf if total > float(nearest) else 0))
    if total - float(nearest) != float(neighbour) - total:
        return float(nearest)
    error = math.fsum([*terms, -total])
    return float(max(nearest, neighbour) if error > 0 else min(nearest, neighbour) if error < 0 else nearest)


def qlinear_softmax(op: QLinearSoftmax, codes: Array) -> Array:
    """The operator as onnxruntime's loop over a row computes it, without the last rounding; frames come first."""
    rows = np.moveaxis(codes, op.axis + 1, -1)
    power = op.powers[rows.max(axis=-1, keepdims=True) - rows]
    total = np.zeros(power.shape[:-1], np.float32)
    for position in range(power.shape[-1]):
        total = total + power[..., position]
    quotient = power * op.factor / total[..., None]
    return np.moveaxis(np.where(quotient < QLINEAR_FLOOR, np.float32(0), quotient), -1, op.axis + 1)
