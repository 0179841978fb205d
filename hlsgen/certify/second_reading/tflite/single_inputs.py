"""Second reading of functions of one code, pools, means, and operators that move elements."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from hlsgen.certify.second_reading.step_results import taps
from hlsgen.certify.second_reading.steps import Differences, differ
from hlsgen.certify.second_reading.tflite import scales
from hlsgen.certify.second_reading.tflite.imported import MAX_ELEMENTS, ImportedOperators, elements, run_chain
from hlsgen.certify.second_reading.tflite.layers import window_pads
from hlsgen.certify.second_reading.tflite.reals import dequantized, quantized_reals
from hlsgen.certify.second_reading.tflite.records import Operator, Tensor
from hlsgen.certify.second_reading.tflite.rescaling import divided, double
from hlsgen.certify.second_reading.tflite.tables import table
from hlsgen.ir.ops import Convention, Requantize
from hlsgen.numerics.fixed import Array


def check_function(imported: ImportedOperators, operator: Operator) -> Differences:
    """Compare the results of all codes, or of numbers near every step; every element has the same function."""
    x, y = imported.file.tensors[operator.inputs[0]], imported.file.tensors[operator.outputs[0]]
    steps = imported.chain(operator)
    if steps is None or not imported.connected(operator):
        return None
    pairs = _inputs_and_results(operator, x, y, imported.model.runtime)
    if pairs is None:
        return None
    tried, expected = pairs
    results = run_chain(steps, tried.reshape((-1,) + (1,) * (len(x.shape) - 1)))
    if results is None:
        return None
    if results.size != tried.size:
        return ["its elements have different functions."]
    return list(differ("result", results.reshape(-1), expected))


def check_prelu(imported: ImportedOperators, operator: Operator) -> Differences:
    """Compare the results of all codes for each slope."""
    x, slope = (imported.file.tensors[n] for n in operator.inputs[:2])
    y, steps = imported.file.tensors[operator.outputs[0]], imported.chain(operator)
    is_known = x.type in scales.LIMITS and all(len(t.scale) == 1 for t in (x, slope, y)) and slope.codes is not None
    if not is_known or steps is None or not imported.connected(operator):
        return None
    assert slope.codes is not None
    shape = (1,) * (len(x.shape) - slope.codes.ndim) + slope.codes.shape
    if not x.shape or shape[0] != 1 or slope.codes.size > MAX_ELEMENTS:
        return None
    slopes = slope.codes.reshape(shape).astype(np.int64) - slope.one_zero
    data, factor, result = (scales.exact(t.one_scale) for t in (x, slope, y))
    runtime, (low, high) = imported.model.runtime, scales.LIMITS[x.type]
    rising = scales.multiplier(scales.quotient(runtime, data, result))
    falling = scales.multiplier(scales.product_quotient(runtime, data, factor, result))
    chunk = MAX_ELEMENTS // slopes.size
    for start in range(low, high + 1, chunk):
        codes = np.arange(start, min(start + chunk, high + 1)).reshape((-1,) + (1,) * (len(shape) - 1))
        results = run_chain(steps, codes.astype(x.type))
        if results is None:
            return None
        centred = codes - x.one_zero
        values = np.where(centred >= 0, double(centred, *rising), double(centred * slopes, *falling))
        expected = np.clip(values + y.one_zero, *scales.LIMITS[y.type])
        if np.broadcast_shapes(results.shape, expected.shape) != expected.shape:
            return ["its elements have different functions."]
        differences = list(differ("code", results, expected))
        if differences:
            return differences
    return []


def _inputs_and_results(operator: Operator, x: Tensor, y: Tensor, runtime: str) -> tuple[Array, Array] | None:
    """(inputs that are tried, expected results), or None for a form that is not read a second time."""
    if x.type == "float32" and operator.kind == "QUANTIZE":
        return quantized_reals(y, runtime) if len(y.scale) == 1 else None
    if x.type not in scales.LIMITS:
        return None
    low, high = scales.LIMITS[x.type]
    codes = np.arange(low, high + 1).astype(x.type)
    if operator.kind == "DEQUANTIZE":
        return (codes, dequantized(codes, x)) if len(x.scale) == 1 else None
    entries = table(operator, x, y, runtime)
    return None if entries is None else (codes, entries)


def _window(operator: Operator, x: Tensor, codes: Array, filler: int) -> Array:
    options = operator.options
    kernel, strides = (options["height"], options["width"]), (options["down"], options["across"])
    pads = window_pads(options["same"] == 0, x.shape[1:3], kernel, strides, (1, 1))
    windows = taps(codes, kernel, strides, (1, 1), pads, filler)
    return windows.reshape(*windows.shape[:4], -1)


def check_pool(imported: ImportedOperators, operator: Operator) -> Differences:
    """Compare the results of random codes, and of the first and last code everywhere."""
    number = operator.inputs[0]
    x, y = imported.file.tensors[number], imported.file.tensors[operator.outputs[0]]
    average = operator.kind == "AVERAGE_POOL_2D"
    if not imported.connected(operator) or x.type not in scales.LIMITS or len(y.scale) != 1:
        return None
    xnnpack = imported.model.runtime == "litert" and y.type != "int16" and not average
    low, high = scales.activation_range(operator.options["activation"], y.type, y.one_scale, y.one_zero, xnnpack)
    first, last = scales.LIMITS[x.type]
    rng = np.random.default_rng(0)
    for frame in range(10):
        codes = np.full(x.shape, (first, last)[frame % 2], np.int64)
        if frame >= 2:
            width = (last - first) >> frame // 2
            start = int(rng.integers(first, last - width + 1))
            codes = rng.integers(start, start + width + 1, x.shape)
        if average:
            sums = _window(operator, x, codes, 0).sum(-1)
            expected = divided(sums, _window(operator, x, np.ones_like(codes), 0).sum(-1))
        else:
            expected = _window(operator, x, codes, -(1 << 40)).max(-1)
        results = imported.run(operator, {number: codes.astype(x.type)})
        if not results or results[-1].size != expected.size:
            return None
        differences = list(differ("code", results[-1].reshape(expected.shape), np.clip(expected, low, high)))
        if differences:
            return differences
    return []


def check_mean(imported: ImportedOperators, operator: Operator) -> Differences:
    """Compare the codes of sums near every step between two codes, and the multiplier."""
    number = operator.inputs[0]
    x, y = imported.file.tensors[number], imported.file.tensors[operator.outputs[0]]
    axes_codes = imported.file.tensors[operator.inputs[1]].codes
    if axes_codes is None or x.type not in scales.LIMITS or not imported.connected(operator) or len(y.scale) != 1:
        return None
    axes = tuple(sorted({int(axis) % len(x.shape) for axis in axes_codes.reshape(-1)}))
    count = elements([x.shape[axis] for axis in axes])
    ratio = scales.rounded(scales.exact(x.one_scale) / scales.exact(y.one_scale), scales.DOUBLE)
    rescale, part = _mean(x, y, count, ratio, imported.model.runtime)
    low, high = scales.LIMITS[y.type]
    for codes in _near_boundaries(x, y, axes, count, ratio):
        sums = codes.sum(axis=axes)
        results = imported.run(operator, {number: codes.astype(x.type)})
        if not results:
            return None
        expected = np.clip(rescale(sums), low, high).reshape(y.shape)
        differences = list(differ("code", results[-1].reshape(y.shape), expected))
        if differences:
            return differences
    differences = []
    for _, step in imported.steps(operator):
        if isinstance(step.op, Requantize) and step.op.convention is Convention.DOUBLE and part is not None:
            differences += differ("range of codes", (step.op.type.lo, step.op.type.hi), (low, high))
            differences += differ("multiplier", step.op.multiplier, part[0])
            differences += differ("shift", step.op.shift, 31 - part[1])
    return differences


def _mean(
    x: Tensor, y: Tensor, count: int, ratio: Fraction, runtime: str
) -> tuple[Callable[[Array], Array], tuple[int, int] | None]:
    if runtime == "litert" and y.type != "int16":
        return _float_mean(x, y, count), None
    value, exponent = scales.multiplier(ratio)
    shift = min(count.bit_length() - 1, 31 + exponent, 32)
    part = value * 2**shift // count, exponent - shift
    return (lambda sums: double(sums - count * x.one_zero, *part) + y.one_zero), part


def _float_mean(x: Tensor, y: Tensor, count: int) -> Callable[[Array], Array]:
    """XNNPACK: float32 throughout, with the zero points in one addend."""
    ratio = scales.rounded(scales.exact(x.one_scale) / scales.exact(y.one_scale), scales.SINGLE)
    factor = scales.rounded(ratio * scales.rounded(Fraction(1, count), scales.SINGLE), scales.SINGLE)
    addend = scales.rounded(y.one_zero - scales.rounded(count * x.one_zero * factor, scales.SINGLE), scales.SINGLE)
    single_factor, single_addend = np.float32(float(factor)), np.float32(float(addend))
    return lambda sums: np.asarray(np.rint(sums.astype(np.float32) * single_factor + single_addend), np.int64)


def _near_boundaries(x: Tensor, y: Tensor, axes: tuple[int, ...], count: int, ratio: Fraction) -> list[Array]:
    """Images whose sums are on both sides of every step between two codes."""
    low, high = scales.LIMITS[y.type]
    boundaries = np.unique(np.linspace(low, high + 1, min(high - low + 2, 1024)).astype(np.int64))
    middle = np.floor((boundaries - 0.5 - y.one_zero) * count / float(ratio)).astype(np.int64) + count * x.one_zero
    first, last = scales.LIMITS[x.type]
    tried = (middle[:, None] + np.arange(-2, 4)).reshape(-1)
    tried = np.unique(np.clip(tried, count * first, count * last))
    outer = [size for axis, size in enumerate(x.shape) if axis not in axes]
    outputs = elements(outer)
    frames = []
    for start in range(0, len(tried), outputs):
        sums = tried[(start + np.arange(outputs)) % len(tried)]
        base, remainder = np.divmod(sums, count)
        parts = base[:, None] + (np.arange(count) < remainder[:, None])
        shape = [*outer, *(x.shape[axis] for axis in axes)]
        order = [axis for axis in range(len(x.shape)) if axis not in axes] + list(axes)
        frames.append(parts.reshape(shape).transpose(np.argsort(order)))
    return frames


def check_moved(imported: ImportedOperators, operator: Operator) -> Differences:
    """Compare the place of every element: elements are numbered from 1000 on."""
    computed, start, arrays = imported.computed(operator), 1000, {}
    outputs = [imported.file.tensors[n] for n in operator.outputs]
    for number in computed:
        shape = imported.file.tensors[number].shape
        arrays[number] = np.arange(start, start + elements(shape)).reshape(shape)
        start += elements(shape)
    expected = _moved(imported, operator, arrays)
    if start > MAX_ELEMENTS or expected is None or not imported.connected(operator):
        return None
    results = imported.run(operator, arrays)
    if results is None:
        return None
    if not results:
        moved = any(not np.array_equal(e.reshape(-1), arrays[computed[0]].reshape(-1)) for e in expected)
        return ["its elements move in the file."] if moved else []
    last = imported.last_positions(operator)
    if len(last) != len(expected):
        return None
    differences: list[str] = []
    for result, y, tensor in zip((results[n] for n in last), expected, outputs, strict=True):
        if result.size != y.size:
            return [f"{result.size} elements were imported, the file has {y.size}."]
        differences += differ("element", result.reshape(tensor.shape), y.reshape(tensor.shape))
    return differences


def _moved(imported: ImportedOperators, operator: Operator, arrays: dict[int, Array]) -> list[Array] | None:
    """The outputs of an operator that moves elements."""
    constants = [imported.tensor(n) for n in operator.inputs]
    codes = [None if t is None or t.codes is None else t.codes for t in constants]
    outputs = [imported.file.tensors[n] for n in operator.outputs]
    x = arrays.get(operator.inputs[0])
    match operator.kind:
        case "RESHAPE" | "SQUEEZE" | "EXPAND_DIMS" if x is not None:
            return [x.reshape(outputs[0].shape)]
        case "TRANSPOSE" if x is not None and codes[1] is not None:
            return [x.transpose([int(n) for n in codes[1]])]
        case "PAD" if x is not None and codes[1] is not None:
            zero = imported.file.tensors[operator.inputs[0]].one_zero
            return [np.pad(x, [(int(a), int(b)) for a, b in codes[1]], constant_values=zero)]
        case "PADV2" if x is not None and codes[1] is not None and codes[2] is not None:
            code = int(codes[2].reshape(-1)[0])
            return [np.pad(x, [(int(a), int(b)) for a, b in codes[1]], constant_values=code)]
        case "PACK" if all(n in arrays for n in operator.inputs):
            return [np.stack([arrays[n] for n in operator.inputs], operator.options["axis"])]
        case "UNPACK" if x is not None:
            return list(np.moveaxis(x, operator.options["axis"], 0))
        case "SLICE" if x is not None and codes[1] is not None:
            return [x[tuple(slice(b, b + size) for b, size in zip(*_corners(outputs, codes[1]), strict=True))]]
        case "GATHER" if x is not None and codes[1] is not None and not operator.options["lead"]:
            return [x.take(codes[1].astype(np.int64), operator.options["axis"])]
        case "RESIZE_NEAREST_NEIGHBOR" if x is not None:
            rows, columns = (_nearest(operator, x.shape[axis], outputs[0].shape[axis]) for axis in (1, 2))
            return [x[:, rows][:, :, columns]]
        case "CONCATENATION" if all(n in arrays for n in operator.inputs):
            return [np.concatenate([arrays[n] for n in operator.inputs], operator.options["axis"])]
        case "SPLIT" if codes[0] is not None and operator.inputs[1] in arrays:
            return np.split(arrays[operator.inputs[1]], len(outputs), int(codes[0].reshape(-1)[0]))
        case "SPLIT_V" if x is not None and codes[2] is not None:
            axis = int(codes[2].reshape(-1)[0])
            return np.split(x, np.cumsum([t.shape[axis] for t in outputs])[:-1], axis)
        case "STRIDED_SLICE" if x is not None:
            return _slice(operator, x, codes[1:4])
        case _:
            return None


def _corners(outputs: list[Tensor], begins: Array | None) -> tuple[list[int], list[int]]:
    shape = list(outputs[0].shape)
    return ([0] * len(shape) if begins is None else [int(n) for n in begins]), shape


def _nearest(operator: Operator, size: int, out: int) -> list[int]:
    """The index of each element's source along an axis; positions are float32."""
    aligned = operator.options["aligned"]
    ratio = Fraction(size - 1, out - 1) if aligned and out > 1 else Fraction(size, out)
    scale, start = scales.rounded(ratio, scales.SINGLE), Fraction(1, 2) if operator.options["half"] else Fraction(0)
    indices = []
    for n in range(out):
        position = scales.rounded((n + start) * scale, scales.SINGLE)
        indices.append(scales.nearest_away(position) if aligned else position.numerator // position.denominator)
    return [min(max(index, 0), size - 1) for index in indices]


def _slice(operator: Operator, x: Array, corners: list[Array | None]) -> list[Array] | None:
    options = operator.options
    if options["ellipsis"] or options["new_axis"] or options["offset"] or any(c is None for c in corners):
        return None
    index: list[slice | int] = []
    for axis, (begin, end, stride) in enumerate(zip(*(c.tolist() for c in corners if c is not None), strict=True)):
        if options["shrink"] >> axis & 1:
            index.append(begin)
            continue
        start = None if options["begin_mask"] >> axis & 1 else begin
        index.append(slice(start, None if options["end_mask"] >> axis & 1 else end, stride))
    return [x[tuple(index)]]
