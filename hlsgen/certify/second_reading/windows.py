"""Second reading of average pools, transposed convolutions and window positions, from the definitions of ONNX."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hlsgen.certify.second_reading.probes import run_steps
from hlsgen.certify.second_reading.protobuf import Numbers
from hlsgen.certify.second_reading.steps import Differences, ImportedSteps, differ
from hlsgen.ir import Conv, Pool, Reduction
from hlsgen.ir.ops import Div
from hlsgen.numerics.fixed import Array

Attributes = dict[str, Any]
_STANDARD = ("", "ai.onnx")


def geometry(attributes: Attributes, sizes: list[int], kernel: list[int]) -> tuple[list[int], ...] | None:
    """(strides, dilations, begins, ends) along the spatial axes, with the padding that auto_pad and ceil_mode add.

    Returns None if auto_pad is unknown.
    """
    count, mode = len(sizes), attributes.get("auto_pad", "NOTSET") or "NOTSET"
    strides, dilations = (attributes.get(key) or [1] * count for key in ("strides", "dilations"))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    pads = attributes.get("pads") or [0] * (2 * count)
    if mode not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        return None
    if mode != "NOTSET":
        pads = [0] * (2 * count)
    begins, ends = list(pads[:count]), list(pads[count:])
    for i, size in enumerate(sizes):
        if mode.startswith("SAME"):  # one position for each stride that begins in the data
            missing = max((math.ceil(size / strides[i]) - 1) * strides[i] + reach[i] - size, 0)
            smaller_half, larger_half = missing // 2, missing - missing // 2
            begins[i], ends[i] = (smaller_half, larger_half) if mode == "SAME_UPPER" else (larger_half, smaller_half)
        if attributes.get("ceil_mode", 0):
            positions = math.ceil((size + begins[i] + ends[i] - reach[i]) / strides[i]) + 1
            while (positions - 1) * strides[i] >= size + begins[i]:  # no window begins after the data
                positions -= 1
            ends[i] = max((positions - 1) * strides[i] + reach[i] - size - begins[i], 0)
    return list(strides), list(dilations), begins, ends


def spatial_sizes(imported: ImportedSteps, n: int) -> list[int]:
    """The spatial sizes of the node's data; ONNX orders it (batch, channels, spatial axes...)."""
    return list(imported.input_shapes(n)[0][2:])


# --------------------------------------------------------------------------- average pools


def average_pool(imported: ImportedSteps, n: int) -> Differences:
    """Compare sums of windows, divided by the number of taps that count."""
    steps, attributes = imported.steps(n, Pool, Div), imported.file.attributes[n]
    kernel, sizes = attributes.get("kernel_shape"), spatial_sizes(imported, n)
    window_geometry = None if kernel is None else geometry(attributes, sizes, kernel)
    if [type(step.op) for step in steps] != [Pool, Div] or kernel is None or window_geometry is None:
        return None
    pool, quotient = steps[0].op, steps[1].op
    assert isinstance(pool, Pool)
    assert isinstance(quotient, Div)
    differences = [] if pool.kind is Reduction.SUM else ["a maximum was imported."]
    differences += compare_window(pool.window, kernel, window_geometry)
    counts = np.ones((1, 1))
    pads = attributes.get("pads") if attributes.get("auto_pad", "NOTSET") in ("NOTSET", "") else None
    requested_geometry = geometry({**attributes, "ceil_mode": 0}, sizes, kernel) if pads is None else None
    for i, size in enumerate(sizes):
        strides, dilations, begins, ends = (part[i] for part in window_geometry)
        # Only requested padding counts, and only with count_include_pad; ceil_mode's padding never counts.
        end = 0
        if attributes.get("count_include_pad", 0):
            end = pads[i + len(sizes)] if pads else requested_geometry[3][i] if requested_geometry else 0
        counted = range(-begins if attributes.get("count_include_pad", 0) else 0, size + end)
        positions = (size + begins + ends - (kernel[i] - 1) * dilations - 1) // strides + 1
        line = [
            sum(p * strides - begins + k * dilations in counted for k in range(kernel[i])) for p in range(positions)
        ]
        counts = counts * (np.array(line)[:, None] if i + 2 == len(sizes) else np.array(line)[None, :])
    return [*differences, *differ("number of taps", quotient.value, counts[None, :, :, None])]


def compare_window(imported_window: Any, kernel: list[int], place: tuple[list[int], ...]) -> list[str]:
    """Differences from the window of the Model, which always has two axes."""
    missing_axes = 2 - len(kernel)
    strides, dilations, begins, ends = place
    pads = [0] * missing_axes + begins + [0] * missing_axes + ends
    differences = [
        *differ("kernel", imported_window.kernel, [1] * missing_axes + kernel),
        *differ("strides", imported_window.strides, [1] * missing_axes + strides),
    ]
    return [
        *differences,
        *differ("dilations", imported_window.dilations, [1] * missing_axes + dilations),
        *differ("pads", imported_window.pads, pads),
    ]


# --------------------------------------------------------------------------- transposed convolutions


def conv_transpose(imported: ImportedSteps, n: int) -> Differences:
    """Run file and Model on whole numbers: every input adds its multiple of the kernel; then the pads are cut off."""
    weight, convs, has_bias = imported.file.constant(n, 1), imported.steps(n, Conv), imported.file.has_input(n, 2)
    if weight is None or len(convs) != 1 or has_bias or weight.array.ndim not in (3, 4):
        return None
    op = convs[0].op
    assert isinstance(op, Conv)
    kernel, scales = _whole_weights(weight, op)
    shape = imported.input_shapes(n)[0]
    x = np.random.default_rng(0).integers(-9, 10, shape).astype(np.float64)
    expected = _transposed(x, kernel, imported.file.attributes[n])
    if expected is None:
        return None
    results = run_steps(imported, n, [x], {id(op): op.weight * scales.reshape(-1, 1, 1, 1)})
    if results is None:
        return None
    if results[-1].shape != expected.shape:
        return [f"a result of shape {list(results[-1].shape)} was imported, the file has {list(expected.shape)}."]
    return [*differ("transposed convolution", results[-1], expected)]


def _whole_weights(weight: Numbers, op: Conv) -> tuple[Array, Array]:
    """(the file's weights, the Model's row scales) with each distinct scale replaced by a whole number: 1, 2, ...

    Weights without a quantizer stay as they are: short multiples of a power of two.
    """
    if weight.codes is None or weight.scale is None or weight.zero is None:
        return weight.array.astype(np.float64), op.scale.astype(np.float64)
    different = np.unique(np.concatenate([weight.scale.ravel(), op.scale.ravel()]).astype(np.float64))
    number = 1.0 + np.searchsorted(different, weight.scale.astype(np.float64))
    return (weight.codes - weight.zero) * number, 1.0 + np.searchsorted(different, op.scale.astype(np.float64))


def _transposed(x: Array, weight: Array, attributes: Attributes) -> Array | None:
    """ConvTranspose of x; weight (channels, outputs of a group, spatial axes...)."""
    groups, count = attributes.get("group", 1), x.ndim - 2
    sizes, kernel, mode = x.shape[2:], weight.shape[2:], attributes.get("auto_pad", "NOTSET") or "NOTSET"
    strides, dilations = (attributes.get(key) or [1] * count for key in ("strides", "dilations"))
    extra, pads = attributes.get("output_padding") or [0] * count, attributes.get("pads") or [0] * (2 * count)
    requested_shape = attributes.get("output_shape")
    if mode not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        return None
    full = [(sizes[i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 + extra[i] for i in range(count)]
    group_outputs, inner = weight.shape[1], len(weight) // groups
    total = np.zeros((len(x), groups * group_outputs, *full))
    taps_first = np.moveaxis(weight, (0, 1), (-2, -1))
    for tap in itertools.product(*map(range, kernel)):
        cut = tuple(
            slice(k * d, k * d + (size - 1) * s + 1, s)
            for k, d, s, size in zip(tap, dilations, strides, sizes, strict=True)
        )
        for g in range(groups):
            data = slice(g * inner, (g + 1) * inner)
            places: tuple[slice, ...] = (slice(None), slice(g * group_outputs, (g + 1) * group_outputs), *cut)
            part = np.tensordot(taps_first[tap][data], x[:, data], (0, 1))
            total[places] += np.moveaxis(part, 0, 1)
    begins, ends = pads[:count], pads[count:]
    if mode == "VALID":
        begins, ends = [0] * count, [0] * count
    if requested_shape or mode.startswith("SAME"):
        result_sizes = (
            requested_shape[-count:] if requested_shape else [size * s for size, s in zip(sizes, strides, strict=True)]
        )
        cuts = [size - result_size for size, result_size in zip(full, result_sizes, strict=True)]
        smaller_halves, larger_halves = [cut // 2 for cut in cuts], [cut - cut // 2 for cut in cuts]
        begins, ends = (smaller_halves, larger_halves) if mode == "SAME_UPPER" else (larger_halves, smaller_halves)
    cropped: tuple[slice, ...] = (
        slice(None),
        slice(None),
        *(slice(begin, size - end) for begin, end, size in zip(begins, ends, full, strict=True)),
    )
    return np.asarray(total[cropped])


#: Operator -> its second reading.
WINDOWS: dict[str, Callable[[ImportedSteps, int], Differences]] = {
    "AveragePool": average_pool,
    "ConvTranspose": conv_transpose,
}
