"""Second reading of ADD, SUB and MUL, for all pairs of codes or as many as the tensors' sizes allow."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from hlsgen.certify.second_reading.steps import Differences, differ
from hlsgen.certify.second_reading.tflite import scales
from hlsgen.certify.second_reading.tflite.imported import MAX_ELEMENTS, ImportedOperators, elements
from hlsgen.certify.second_reading.tflite.records import Operator, Tensor
from hlsgen.certify.second_reading.tflite.rescaling import double, in_single
from hlsgen.ir.ops import Convention, Requantize
from hlsgen.numerics.fixed import Array

#: Codes of both inputs without their zero points -> codes of the result.
Function = Callable[[Array, Array], Array]
#: The function, its multipliers (m, e), where it has any, and the first and last code.
Meaning = tuple[Function, list[tuple[int, int]], tuple[int, int]]
#: Pairs of codes that are tried, and the most frames that hold them.
_PAIRS, _FRAMES = 1 << 16, 512


def check_two_inputs(imported: ImportedOperators, operator: Operator) -> Differences:
    """Compare the results, and all multipliers of DOUBLE."""
    if len(operator.inputs) != 2 or len(set(operator.inputs)) != 2 or not imported.connected(operator):
        return None
    a, b = (imported.file.tensors[n] for n in operator.inputs)
    y = imported.file.tensors[operator.outputs[0]]
    if any(t.type not in scales.LIMITS or len(t.scale) != 1 for t in (a, b, y)):
        return None
    meaning = _FUNCTIONS[operator.kind](operator, a, b, y, imported.model.runtime)
    if meaning is None:
        return None
    function, parts, ends = meaning
    differences: list[str] = []
    for codes in _frames(a, b):
        arrays = {n: codes[position] for position, n in enumerate(operator.inputs) if n in imported.computed(operator)}
        results = imported.run(operator, arrays)
        if not results:
            return None
        centred = (x.astype(np.int64) - t.one_zero for x, t in zip(codes, (a, b), strict=True))
        expected = np.broadcast_to(function(*centred), y.shape)
        differences += differ("code", results[-1].reshape(y.shape), expected)
        if differences:
            break
    return [*differences, *_compare_parts(imported, operator, parts), *_compare_ends(imported, operator, y, ends)]


def _frames(a: Tensor, b: Tensor) -> Iterator[tuple[Array, Array]]:
    """Codes of both tensors; constants are the file's own."""
    rng = np.random.default_rng(0)
    size = max(elements(a.shape), elements(b.shape))
    pairs = _PAIRS if a.codes is None and b.codes is None else 1 << 12
    count = max(min(-(-pairs // size), _FRAMES, MAX_ELEMENTS // size), 2)
    starts = rng.permutation(count * size)
    for frame in range(count):
        yield tuple(_codes(t, frame * size, starts if n else None, frame) for n, t in enumerate((a, b)))  # type: ignore[misc]


def _codes(t: Tensor, start: int, order: Array | None, frame: int) -> Array:
    """Codes that pass through all of the type, in order or mixed."""
    if t.codes is not None:
        return t.codes
    size = elements(t.shape)
    low, high = scales.LIMITS[t.type]
    numbers = np.arange(start, start + size)
    if order is not None:
        numbers = order[(numbers + frame) % len(order)]
    step = 1 if high - low < 256 else 12289
    return (low + numbers * step % (high - low + 1)).astype(t.type).reshape(t.shape)


def _compare_parts(imported: ImportedOperators, operator: Operator, parts: list[tuple[int, int]]) -> Iterator[str]:
    """Differences of multipliers: each one of a Requantize step must be one of the operator's own."""
    for _, step in imported.steps(operator):
        if isinstance(step.op, Requantize) and step.op.convention is Convention.DOUBLE and parts:
            multipliers = {(int(m), 31 - int(s)) for m, s in np.broadcast(step.op.multiplier, step.op.shift)}
            unknown = multipliers - set(parts)
            if unknown:
                yield f"the multiplier {unknown.pop()} was imported, the file has {parts}."


def _compare_ends(imported: ImportedOperators, operator: Operator, y: Tensor, ends: tuple[int, int]) -> Iterator[str]:
    """Differences of the last step's range and zero point, if it is a Requantize."""
    op = imported.steps(operator)[-1][1].op
    if isinstance(op, Requantize):
        yield from differ("range of codes", (op.type.lo, op.type.hi), ends)
        yield from differ("zero point", op.zero_point, y.one_zero)


def _sum(sign: int) -> Callable[..., Meaning | None]:
    def make(operator: Operator, a: Tensor, b: Tensor, y: Tensor, runtime: str) -> Meaning | None:
        first, second, result = (scales.exact(t.one_scale) for t in (a, b, y))
        zero, activation = y.one_zero, operator.options["activation"]
        low, high = scales.activation_range(
            activation, y.type, y.one_scale, zero, runtime == "litert" and y.type != "int16"
        )
        if runtime == "litert" and y.type != "int16":
            ratios = scales.rounded(first / result, scales.SINGLE), scales.rounded(second / result, scales.SINGLE)
            if not all(Fraction(1, 1024) <= ratio < 256 for ratio in ratios):
                return None
            shift = 20 - math.floor(math.log2(max(ratios)))
            factors = [round(ratio * Fraction(2) ** shift) for ratio in ratios]

            def affine(x: Array, z: Array) -> Array:
                total = factors[0] * x + sign * factors[1] * z
                return np.asarray(np.clip(np.floor_divide(2 * total + (1 << shift), 2 << shift) + zero, low, high))

            return affine, [], (low, high)
        if y.type == "int16" and runtime != "tflm" and operator.options["powers"]:
            return None
        bits = 15 if y.type == "int16" else 20
        largest = 2 * max(first, second)
        parts = [scales.multiplier(scales.rounded(s / largest, scales.DOUBLE)) for s in (first, second)]
        parts.append(scales.multiplier(scales.rounded(largest / (2**bits * result), scales.DOUBLE)))

        is_optimized = sign > 0 and runtime == "litert" and y.type == "int16" and a.shape == b.shape
        inner = _nearest if is_optimized else double

        def function(x: Array, z: Array) -> Array:
            total = inner(x << bits, *parts[0]) + sign * inner(z << bits, *parts[1])
            return np.asarray(np.clip(double(total, *parts[2]) + zero, low, high))

        return function, parts, (low, high)

    return make


def _nearest(x: Array, value: int, exponent: int) -> Array:
    """x * value / 2^(31 - exponent) to the nearest integer, ties up."""
    return np.asarray(np.floor_divide(2 * x * value + (1 << (31 - exponent)), 1 << (32 - exponent)))


def _product(operator: Operator, a: Tensor, b: Tensor, y: Tensor, runtime: str) -> Meaning | None:
    first, second, result = (scales.exact(t.one_scale) for t in (a, b, y))
    zero, xnnpack = y.one_zero, runtime == "litert" and y.type != "int16"
    low, high = scales.activation_range(operator.options["activation"], y.type, y.one_scale, zero, xnnpack)
    if xnnpack:
        factor = scales.single_factor(first, second, result)
        if not Fraction(1, 1 << 16) <= factor < 256:
            return None
        smallest, largest = scales.LIMITS[y.type]
        return (lambda x, z: np.clip(in_single(x * z, [factor], smallest, largest, zero), low, high)), [], (low, high)
    part = scales.multiplier(scales.product_quotient(runtime, first, second, result))
    return (lambda x, z: np.clip(double(x * z, *part) + zero, low, high)), [part], (low, high)


_FUNCTIONS: dict[str, Callable[..., Meaning | None]] = {
    "ADD": _sum(1),
    "SUB": _sum(-1),
    "MUL": _product,
}
