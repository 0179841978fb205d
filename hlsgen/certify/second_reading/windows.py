"""Second reading of average pools, transposed convolutions, and where windows lie: from the definitions of ONNX."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hlsgen.certify.second_reading.probes import of_steps
from hlsgen.certify.second_reading.protobuf import Numbers
from hlsgen.certify.second_reading.steps import Found, Told, differ
from hlsgen.ir import Conv, Pool, Reduction
from hlsgen.ir.ops import Div
from hlsgen.numerics.fixed import Array

Attributes = dict[str, Any]
_STANDARD = ("", "ai.onnx")


def geometry(attributes: Attributes, sizes: list[int], kernel: list[int]) -> tuple[list[int], ...] | None:
    """(strides, dilations, begins, ends) along the axes of points: what auto_pad and ceil_mode add included.

    None of an auto_pad that is not known.
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
        if mode.startswith("SAME"):  # so many positions as strides that begin in the data
            missing = max((math.ceil(size / strides[i]) - 1) * strides[i] + reach[i] - size, 0)
            less, more = missing // 2, missing - missing // 2
            begins[i], ends[i] = (less, more) if mode == "SAME_UPPER" else (more, less)
        if attributes.get("ceil_mode", 0):
            places = math.ceil((size + begins[i] + ends[i] - reach[i]) / strides[i]) + 1
            while (places - 1) * strides[i] >= size + begins[i]:  # none begins behind the data
                places -= 1
            ends[i] = max((places - 1) * strides[i] + reach[i] - size - begins[i], 0)
    return list(strides), list(dilations), begins, ends


def points(found: Found, n: int) -> list[int]:
    """The sizes of the node's data along the axes of points; in the order of ONNX, (batch, channels, points...)."""
    return list(found.taken(n)[0][2:])


# --------------------------------------------------------------------------- average pools


def average_pool(found: Found, n: int) -> Told:
    """Sums of windows, divided by the taps that count."""
    own, attributes = found.steps(n, Pool, Div), found.file.attributes[n]
    kernel, sizes = attributes.get("kernel_shape"), points(found, n)
    place = None if kernel is None else geometry(attributes, sizes, kernel)
    if [type(step.op) for step in own] != [Pool, Div] or kernel is None or place is None:
        return None
    pool, quotient = own[0].op, own[1].op
    assert isinstance(pool, Pool)
    assert isinstance(quotient, Div)
    told = [] if pool.kind is Reduction.SUM else ["a maximum was imported."]
    told += same_window(pool.window, kernel, place)
    counts = np.ones((1, 1))
    pads = attributes.get("pads") if attributes.get("auto_pad", "NOTSET") in ("NOTSET", "") else None
    asked = geometry({**attributes, "ceil_mode": 0}, sizes, kernel) if pads is None else None
    for i, size in enumerate(sizes):
        strides, dilations, begins, ends = (part[i] for part in place)
        # Of the padding only what is asked for counts, if any does; ceil_mode asks for none.
        end = 0 if not attributes.get("count_include_pad", 0) else pads[i + len(sizes)] if pads else asked[3][i] if asked else 0  # fmt: skip
        counted = range(-begins if attributes.get("count_include_pad", 0) else 0, size + end)
        places = (size + begins + ends - (kernel[i] - 1) * dilations - 1) // strides + 1
        line = [sum(p * strides - begins + k * dilations in counted for k in range(kernel[i])) for p in range(places)]
        counts = counts * (np.array(line)[:, None] if i + 2 == len(sizes) else np.array(line)[None, :])
    return [*told, *differ("number of taps", quotient.value, counts[None, :, :, None])]


def same_window(own: Any, kernel: list[int], place: tuple[list[int], ...]) -> list[str]:
    """What differs from the window of the Model, which has two axes."""
    more = 2 - len(kernel)
    strides, dilations, begins, ends = place
    pads = [0] * more + begins + [0] * more + ends
    told = [*differ("kernel", own.kernel, [1] * more + kernel), *differ("strides", own.strides, [1] * more + strides)]
    return [*told, *differ("dilations", own.dilations, [1] * more + dilations), *differ("pads", own.pads, pads)]


# --------------------------------------------------------------------------- transposed convolutions


def conv_transpose(found: Found, n: int) -> Told:
    """Both run on whole numbers: every input adds its multiple of the kernel to the result, then the pads are cut off."""
    weight, own, given = found.file.constant(n, 1), found.steps(n, Conv), found.file.given(n, 2)
    if weight is None or len(own) != 1 or given or weight.array.ndim not in (3, 4):
        return None
    op = own[0].op
    assert isinstance(op, Conv)
    kernel, scales = _numbered(weight, op)
    shape = found.taken(n)[0]
    x = np.random.default_rng(0).integers(-9, 10, shape).astype(np.float64)
    wanted = _transposed(x, kernel, found.file.attributes[n])
    if wanted is None:
        return None
    made = of_steps(found, n, [x], {id(op): op.weight * scales.reshape(-1, 1, 1, 1)})
    if made is None:
        return None
    if made[-1].shape != wanted.shape:
        return [f"a result of shape {list(made[-1].shape)} was imported, the file has {list(wanted.shape)}."]
    return [*differ("transposed convolution", made[-1], wanted)]


def _numbered(weight: Numbers, op: Conv) -> tuple[Array, Array]:
    """(the file's weights, scales of the rows of the Model) as whole numbers: every scale is one more than the last.

    Weights that no quantizer made are what they are: short multiples of a power of two.
    """
    if weight.codes is None or weight.scale is None or weight.zero is None:
        return weight.array.astype(np.float64), op.scale.astype(np.float64)
    different = np.unique(np.concatenate([weight.scale.ravel(), op.scale.ravel()]).astype(np.float64))
    number = 1.0 + np.searchsorted(different, weight.scale.astype(np.float64))
    return (weight.codes - weight.zero) * number, 1.0 + np.searchsorted(different, op.scale.astype(np.float64))


def _transposed(x: Array, weight: Array, attributes: Attributes) -> Array | None:
    """ConvTranspose; weight (channels, outputs of a group, points...)."""
    groups, count = attributes.get("group", 1), x.ndim - 2
    sizes, kernel, mode = x.shape[2:], weight.shape[2:], attributes.get("auto_pad", "NOTSET") or "NOTSET"
    strides, dilations = (attributes.get(key) or [1] * count for key in ("strides", "dilations"))
    extra, pads = attributes.get("output_padding") or [0] * count, attributes.get("pads") or [0] * (2 * count)
    asked = attributes.get("output_shape")
    if mode not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        return None
    full = [(sizes[i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 + extra[i] for i in range(count)]
    own, inner = weight.shape[1], len(weight) // groups
    total = np.zeros((len(x), groups * own, *full))
    points_first = np.moveaxis(weight, (0, 1), (-2, -1))
    for tap in itertools.product(*map(range, kernel)):
        cut = tuple(
            slice(k * d, k * d + (size - 1) * s + 1, s)
            for k, d, s, size in zip(tap, dilations, strides, sizes, strict=True)
        )
        for g in range(groups):
            data = slice(g * inner, (g + 1) * inner)
            places: tuple[slice, ...] = (slice(None), slice(g * own, (g + 1) * own), *cut)
            part = np.tensordot(points_first[tap][data], x[:, data], (0, 1))
            total[places] += np.moveaxis(part, 0, 1)
    begins, ends = pads[:count], pads[count:]
    if mode == "VALID":
        begins, ends = [0] * count, [0] * count
    if asked or mode.startswith("SAME"):
        wanted = asked[-count:] if asked else [size * s for size, s in zip(sizes, strides, strict=True)]
        cuts = [size - want for size, want in zip(full, wanted, strict=True)]
        less, more = [cut // 2 for cut in cuts], [cut - cut // 2 for cut in cuts]
        begins, ends = (less, more) if mode == "SAME_UPPER" else (more, less)
    kept: tuple[slice, ...] = (
        slice(None), slice(None), *(slice(begin, size - end) for begin, end, size in zip(begins, ends, full, strict=True)),
    )  # fmt: skip
    return np.asarray(total[kept])


#: Operator -> its second reading.
WINDOWS: dict[str, Callable[[Found, int], Told]] = {"AveragePool": average_pool, "ConvTranspose": conv_transpose}
