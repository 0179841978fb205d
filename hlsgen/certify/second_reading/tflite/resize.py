"""Second reading of RESIZE_BILINEAR: its four weights for each element, from exact positions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from hlsgen.certify.second_reading.steps import Differences, differ
from hlsgen.certify.second_reading.tflite.imported import MAX_ELEMENTS, ImportedOperators, elements, run_step
from hlsgen.certify.second_reading.tflite.records import Operator
from hlsgen.certify.second_reading.tflite.rescaling import divided
from hlsgen.certify.second_reading.tflite.scales import LIMITS, SINGLE, rounded
from hlsgen.numerics.fixed import Array

#: Of each output along an axis: number of two inputs, and the weight of the second one.
Neighbours = list[tuple[int, int, int]]


def check_resize(imported: ImportedOperators, operator: Operator) -> Differences:
    """Compare the sums of large random numbers, and the codes of sums beside each step between two codes."""
    number = operator.inputs[0]
    x, y = imported.file.tensors[number], imported.file.tensors[operator.outputs[0]]
    is_xnnpack = imported.model.runtime == "litert"
    in_floats = imported.model.runtime == "litert-ref" and x.type == "uint8"
    if not imported.connected(operator) or x.type not in LIMITS or elements(y.shape) > MAX_ELEMENTS:
        return None
    along, bits = (_in_floats, 7) if in_floats else (_xnnpack, 11) if is_xnnpack else (_reference, 10)
    rows, columns = (along(operator, x.shape[axis], y.shape[axis]) for axis in (1, 2))
    if rows is None or columns is None:
        return None
    results = [imported.run(operator, {number: image}) for image in (np.ones(x.shape, np.int64), _noise(x.shape))]
    ones, sums = (None if not result or len(result) < 2 else result[-2] for result in results)
    if ones is None or sums is None or ones.size != elements(y.shape):
        return None
    differences = list(differ("sum of weights", ones, np.full(ones.shape, ones.reshape(-1)[0])))
    divisor = int(ones.reshape(-1)[0])
    if differences or divisor < 1 or divisor & (divisor - 1) or divisor > 1 << (2 * bits):
        return differences or [f"the weights have the sum {divisor}."]
    factor = (1 << (2 * bits)) // divisor
    differences += differ("sum", sums.reshape(y.shape) * factor, _sums(_noise(x.shape), rows, columns, bits))
    low, high = LIMITS[y.type]
    steps = np.repeat(np.arange(low - 1, high + 2) * divisor + divisor // 2, 3).reshape(-1, 3) + np.arange(-1, 2)
    codes = run_step(imported.steps(operator)[-1][1], [steps.reshape(-1, 1, 1, 1)])
    expected = (2 * steps + divisor) // (2 * divisor) if is_xnnpack or in_floats else divided(steps, divisor)
    if codes is None:
        return None
    return differences + list(differ("code", codes.reshape(steps.shape), np.clip(expected, low, high)))


def _noise(shape: tuple[int, ...]) -> Array:
    return np.random.default_rng(0).integers(-(1 << 30), 1 << 30, shape)


def _sums(x: Array, rows: Neighbours, columns: Neighbours, bits: int) -> Array:
    result = np.zeros((x.shape[0], len(rows), len(columns), x.shape[3]), np.int64)
    for r, (top, bottom, down) in enumerate(rows):
        for c, (first, second, across) in enumerate(columns):
            upper, lower = (
                x[:, row, first] * ((1 << bits) - across) + x[:, row, second] * across for row in (top, bottom)
            )
            result[:, r, c] = upper * ((1 << bits) - down) + lower * down
    return result


def _reference(operator: Operator, size: int, out: int) -> Neighbours:
    """Positions in 1024ths."""
    inner, outer = (size - 1, out - 1) if operator.options["aligned"] and out > 1 else (size, out)
    step = (1024 * inner + outer // 2) // outer
    neighbours = []
    for n in range(out):
        position = n * step + (step // 2 - 512 if operator.options["half"] else 0)
        first, second = max(int(Fraction(position, 1024)), 0), int(Fraction(position + 1023, 1024))
        neighbours.append((first, min(second, size - 1), position - 1024 * first))
    return neighbours


def _in_floats(operator: Operator, size: int, out: int) -> Neighbours | None:
    """Positions in float32, as LiteRT's reference kernel has them for uint8, and weights in units of 1/128.

    Returns None if a weight is no multiple of that unit: float32 products are rounded then.
    """
    less = 1 if operator.options["aligned"] and out > 1 else 0
    step, half, neighbours = rounded(Fraction(size - less, out - less), SINGLE), Fraction(1, 2), []
    for n in range(out):
        if operator.options["half"]:
            position = rounded(rounded((n + half) * step, SINGLE) - half, SINGLE)
        else:
            position = rounded(n * step, SINGLE)
        first, second = max(math.floor(position), 0), min(math.ceil(position), size - 1)
        weight = 128 * rounded(position - first, SINGLE)
        if weight.denominator != 1:
            return None
        neighbours.append((first, second, int(weight)))
    return neighbours


def _xnnpack(operator: Operator, size: int, out: int) -> Neighbours:
    """Neighbours of each output pixel as XNNPACK computes them: positions in float32, weights in units of 1/2048."""
    less = 1 if operator.options["aligned"] and out != 1 else 0
    step = rounded(Fraction(size - less, out - less), SINGLE)
    neighbours = []
    for n in range(out):
        position = rounded(n * step, SINGLE)
        if operator.options["half"] and not operator.options["aligned"]:
            offset = rounded(rounded(step / 2, SINGLE) - Fraction(1, 2), SINGLE)
            position = max(rounded(position + offset, SINGLE), Fraction(0))
        position = min(position, Fraction(size - 1))
        first = int(position)
        neighbours.append((first, min(first + 1, size - 1), round(2048 * (position - first))))
    return neighbours
