"""Second reading of CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV and FULLY_CONNECTED: weights, window, sums to codes.

The function from sums to codes is tried on both sides of every step between two codes, for each channel. Both
functions rise or fall throughout, so equal results there are equal results everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import takewhile

import numpy as np

from hlsgen.certify.second_reading.steps import Differences, differ
from hlsgen.certify.second_reading.tflite.imported import ImportedOperators, elements, run_chain
from hlsgen.certify.second_reading.tflite.records import Operator, Tensor
from hlsgen.certify.second_reading.tflite.rescaling import double, in_double, in_single, single
from hlsgen.certify.second_reading.tflite.scales import (
    LIMITS,
    activation_range,
    exact,
    layer_ratio,
    multiplier,
    single_factor,
)
from hlsgen.ir import ConvInteger, MatMulInteger, Reshape, Step
from hlsgen.ir.ops import FLOATS, QUANTIZERS, Convention, Mul, QuantizeLinear, Requantize
from hlsgen.numerics.fixed import Array

#: Steps between codes that are tried for each channel; more only for int16.
_BOUNDARIES = 1024
#: Sums on each side of a step between two codes.
_NEAR = 3


@dataclass(frozen=True)
class Rescaling:
    """The function from sums to codes, by channel. parts: (m, e) of each, empty where floats are multiplied."""

    function: Callable[[Array], Array]
    ratios: list[Fraction]
    parts: list[tuple[int, int]]
    ends: tuple[int, int]
    zero: int
    is_int16: bool


def _rescaling(
    operator: Operator, x: Tensor, weight: Tensor, y: Tensor, bias: Tensor | None, runtime: str
) -> Rescaling | None:
    data, result = exact(x.one_scale), exact(y.one_scale)
    scales = [exact(s) for s in weight.scale]
    xnnpack = runtime == "litert" and y.type != "int16"
    ends = activation_range(operator.options.get("activation", 0), y.type, y.one_scale, y.one_zero, xnnpack)
    zero, (low, high) = y.one_zero, ends
    if xnnpack:
        factors = [single_factor(data, s, result) for s in scales]
        return Rescaling(lambda sums: in_single(sums, factors, low, high, zero), factors, [], ends, zero, False)
    ratios = [layer_ratio(operator.kind, y.type, data, s, result) for s in scales]
    if operator.kind == "FULLY_CONNECTED" and runtime != "tflm":
        return Rescaling(lambda sums: np.clip(in_double(sums, ratios) + zero, low, high), ratios, [], ends, zero, False)
    parts = [multiplier(r) for r in ratios]
    values, exponents = (np.array(column, np.int64) for column in zip(*parts, strict=True))
    is_int16 = y.type == "int16" and (bias is None or bias.type == "int64")
    if y.type == "int16" and not is_int16:
        return None
    kernel = single if is_int16 else double
    return Rescaling(
        lambda sums: np.clip(kernel(sums, values, exponents) + zero, low, high), ratios, parts, ends, zero, is_int16
    )


def _roles(imported: ImportedOperators, operator: Operator) -> tuple[Tensor, Tensor, Tensor | None] | None:
    """(data, weights, bias), or None if weights are not constant or scales not usable."""
    order = (2, 1, 3) if operator.kind == "TRANSPOSE_CONV" else (0, 1, 2)
    tensors = [imported.tensor(operator.inputs[n]) if n < len(operator.inputs) else None for n in order]
    data, weight, bias = tensors
    if data is None or weight is None or weight.codes is None or (bias is not None and bias.codes is None):
        return None
    if data.type not in LIMITS or len(data.scale) != 1 or not len(weight.scale):
        return None
    return data, weight, bias


def check_layer(imported: ImportedOperators, operator: Operator) -> Differences:
    """Weights, zero points, window and groups, then bias and rescaling."""
    roles = _roles(imported, operator)
    steps = [step for _, step in imported.steps(operator)]
    y = imported.file.tensors[operator.outputs[0]]
    places = [n for n, step in enumerate(steps) if isinstance(step.op, ConvInteger | MatMulInteger)]
    if roles is None or len(places) != 1 or len(y.scale) != 1 or not imported.connected(operator):
        return None
    data, weight, bias = roles
    runtime = imported.model.runtime
    rescaling = _rescaling(operator, data, weight, y, bias, runtime)
    if rescaling is None:
        return None
    codes = np.asarray(weight.codes, np.int64)
    if weight.type == "uint8" or (len(weight.zero) == 1 and operator.kind == "FULLY_CONNECTED"):
        codes = codes - weight.one_zero
    layer = steps[places[0]]
    tail = list(takewhile(lambda step: isinstance(step.op, (Reshape, *FLOATS, *QUANTIZERS)), steps[places[0] + 1 :]))
    if operator.kind == "TRANSPOSE_CONV":
        differences = _scattered(imported, operator, data, codes, bias, rescaling)
    else:
        differences = _sums(layer, operator, data, codes)
    if differences is None:
        return None
    return [*differences, *_codes(layer, tail, data, codes, bias, operator, rescaling)]


def _sums(step: Step, operator: Operator, data: Tensor, codes: Array) -> list[str] | None:
    """Differences of the layer's zero point, weights and window."""
    assert isinstance(step.op, ConvInteger | MatMulInteger)
    differences = [*differ("zero point", step.op.zero_point, data.one_zero)]
    if operator.kind == "FULLY_CONNECTED":
        if not isinstance(step.op, MatMulInteger):
            return None
        return [*differences, *differ("weight", step.op.weight, codes)]
    if not isinstance(step.op, ConvInteger):
        return None
    weight = np.moveaxis(codes[0], 2, 0)[..., None] if operator.kind == "DEPTHWISE_CONV_2D" else codes
    options, window = operator.options, step.op.window
    kernel = (weight.shape[1], weight.shape[2])
    strides = (options["down"], options["across"])
    dilations = (options["dilation_down"], options["dilation_across"])
    pads = window_pads(options["same"] == 0, data.shape[1:3], kernel, strides, dilations)
    differences += differ("weight", step.op.weight, weight)
    differences += differ("kernel", window.kernel, kernel)
    differences += differ("strides", window.strides, strides)
    differences += differ("dilations", window.dilations, dilations)
    differences += differ("pads", window.pads, pads)
    return [*differences, *differ("groups", step.op.groups, data.shape[3] // weight.shape[3])]


def window_pads(
    padded: bool, sizes: tuple[int, ...], kernel: tuple[int, int], strides: tuple[int, int], dilations: tuple[int, int]
) -> tuple[int, int, int, int]:
    """Top, left_pad, bottom, right: the smaller half before."""
    begins, ends = [], []
    for size, k, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        reach, positions = (k - 1) * dilation + 1, (size + stride - 1) // stride
        missing = max((positions - 1) * stride + reach - size, 0) if padded else 0
        begins.append(missing // 2)
        ends.append(missing - missing // 2)
    return begins[0], begins[1], ends[0], ends[1]


def _scattered(
    imported: ImportedOperators,
    operator: Operator,
    data: Tensor,
    codes: Array,
    bias: Tensor | None,
    rescaling: Rescaling,
) -> list[str] | None:
    """TRANSPOSE_CONV: compare the results of random codes other than the zero point, some near it, some far."""
    low, high = LIMITS[data.type]
    rng = np.random.default_rng(0)
    y = imported.file.tensors[operator.outputs[0]]
    for reach in (high - low, 12, 2):
        x = np.clip(data.one_zero + rng.integers(-reach, reach + 1, data.shape), low, high)
        x = np.where(x == data.one_zero, data.one_zero + (1 if data.one_zero < high else -1), x)
        results = imported.run(operator, {operator.inputs[2]: x.astype(data.type)})
        if not results or results[-1].size != elements(y.shape):
            return None
        sums = _scatter(operator, x - data.one_zero, codes, y.shape)
        terms = 0 if bias is None else np.asarray(bias.codes, np.int64)
        differences = list(differ("code", results[-1].reshape(y.shape), rescaling.function(sums + terms)))
        if differences:
            return differences
    return []


def _scatter(operator: Operator, x: Array, codes: Array, shape: tuple[int, ...]) -> Array:
    """Sums of a transposed convolution: each element of x adds all weights to the result."""
    down, across = operator.options["down"], operator.options["across"]
    frames, height, width, _ = x.shape
    outputs, kernel_height, kernel_width, _ = codes.shape
    rows, columns = (height - 1) * down + kernel_height, (width - 1) * across + kernel_width
    padded = operator.options["same"] == 0
    top = max(rows - shape[1], 0) // 2 if padded else 0
    left_pad = max(columns - shape[2], 0) // 2 if padded else 0
    sums = np.zeros((frames, max(rows, top + shape[1]), max(columns, left_pad + shape[2]), outputs), np.int64)
    for i in range(kernel_height):
        for j in range(kernel_width):
            product = x @ codes[:, i, j].T
            sums[:, i : i + (height - 1) * down + 1 : down, j : j + (width - 1) * across + 1 : across] += product
    return np.asarray(sums[:, top : top + shape[1], left_pad : left_pad + shape[2]])


def _codes(
    layer: Step,
    tail: list[Step],
    data: Tensor,
    codes: Array,
    bias: Tensor | None,
    operator: Operator,
    rescaling: Rescaling,
) -> Iterator[str]:
    """Differences of the function from sums to codes."""
    taps = codes if operator.kind != "DEPTHWISE_CONV_2D" else np.moveaxis(codes[0], 2, 0)
    outputs, channels = len(taps), layer.shape[-1]
    taps = taps.reshape(outputs, -1)
    low, high = (end - data.one_zero for end in LIMITS[data.type])
    smallest = np.minimum(taps * low, taps * high).sum(1)
    largest = np.maximum(taps * low, taps * high).sum(1)
    terms = np.zeros(outputs, np.int64) if bias is None else np.asarray(bias.codes, np.int64).reshape(-1)
    if operator.kind == "TRANSPOSE_CONV":
        # A sum of one phase of the stride has a part of the taps; the others are as if their data were zero points.
        smallest, largest = np.minimum(smallest, 0), np.maximum(largest, 0)
    sums = _tried(rescaling, terms, smallest, largest)
    expected = np.tile(rescaling.function(sums + terms), channels // outputs)
    sums = np.tile(sums, channels // outputs)
    shape = (len(sums), *[1] * (len(layer.shape) - 2), channels)
    kind = np.int64 if rescaling.is_int16 else np.int32
    result = run_chain(tail, sums.reshape(shape).astype(kind))
    if result is None:
        yield "steps after the sums are of another kind."
        return
    yield from differ("code of a sum", result.reshape(sums.shape), expected)
    yield from _compare_parts(tail, rescaling, channels // outputs)


def _tried(rescaling: Rescaling, terms: Array, smallest: Array, largest: Array) -> Array:
    """Sums before the bias, (n, channels), within their reach: both sides of every step between two codes."""
    low, high = rescaling.ends
    boundaries = np.arange(low, high + 2)
    if len(boundaries) > _BOUNDARIES:
        boundaries = np.unique(np.linspace(low, high + 1, _BOUNDARIES).astype(np.int64))
    ratios = np.array([float(r) for r in rescaling.ratios])
    middle = (boundaries[:, None] - 0.5 - rescaling.zero) / np.where(ratios == 0, 1.0, ratios)
    nearest_sums = np.floor(np.clip(middle, -(2.0**40), 2.0**40)).astype(np.int64)
    tried = nearest_sums[:, None, :] + np.arange(-_NEAR, _NEAR + 2)[None, :, None]
    tried = np.broadcast_to(tried, (*tried.shape[:2], len(terms))).reshape(-1, len(terms)) - terms
    ends = np.stack([smallest, np.zeros_like(smallest), largest])
    return np.asarray(np.clip(np.concatenate([tried, ends]), smallest, largest))


def _compare_parts(tail: list[Step], rescaling: Rescaling, times: int) -> Iterator[str]:
    """Differences of range, zero point, multipliers and shifts, which not every sum shows.

    times: how often the outputs are repeated along the last axis.
    """
    repeated = 1 if len(rescaling.ratios) == 1 else times
    ratios = np.tile([float(ratio) for ratio in rescaling.ratios], repeated)
    for op in (step.op for step in tail):
        if isinstance(op, Requantize | QuantizeLinear):
            yield from differ("range of codes", (op.type.lo, op.type.hi), rescaling.ends)
            yield from differ("zero point", op.zero_point, rescaling.zero)
        if isinstance(op, Mul):
            yield from differ("factor", op.value, ratios.astype(np.float32))
        elif isinstance(op, QuantizeLinear):
            yield from differ("scale", op.scale, 1)
        elif isinstance(op, Requantize):
            yield from differ("addend", op.add, 0)
            if op.convention is Convention.FLOAT64:
                yield from differ("factor", op.multiplier * 2.0 ** -op.shift.astype(np.float64), ratios)
            elif rescaling.parts:
                values, exponents = (
                    np.array(column * repeated, np.int64) for column in zip(*rescaling.parts, strict=True)
                )
                if op.convention is Convention.SINGLE:
                    values = np.where(values >= 0x7FFF0000, 0x7FFF, (values + (1 << 15)) >> 16)
                yield from differ("multiplier", op.multiplier, values)
                yield from differ("shift", op.shift, (15 if op.convention is Convention.SINGLE else 31) - exponents)
