"""More phrases: operators of onnxruntime on 8-bit codes, transposed convolutions, layers with channels last."""

from __future__ import annotations

import numpy as np
from fuzz_oracle import CHANNELS_LAST, DOMAIN, MICROSOFT
from fuzz_phrases import Sketch, Unfit, elementwise, quantized, ready
from fuzz_steps import image, joint, weights, window

EIGHT = ("int8", "uint8")


def _zero(s: Sketch, kind: str) -> int:
    info = np.iinfo(kind)
    return int(s.pick(0, s.whole(-20, 20) if info.min else s.whole(0, 255), s.whole(info.min, info.max)))


def _scale(s: Sketch) -> float:
    return float(2.0 ** s.whole(-5, 1) if s.powers else np.exp(s.rng.uniform(-4, 0.5)))


def _part(s: Sketch, kind: str, scale: float | None = None, zero: int | None = None) -> list[str]:
    """Names of a scale and a zero point."""
    value = _scale(s) if scale is None else scale
    return [s.const(value), s.const(_zero(s, kind) if zero is None else zero, kind)]


def codes_of(s: Sketch, t: str) -> str:
    """The tensor as 8-bit integers."""
    if s.kind(t) in EIGHT:
        return t
    if s.kind(t) != "float32":
        t = s.add("Cast", t, to=1)
    kind = s.pick(*EIGHT)
    spread = (
        float(np.quantile(np.abs(s.values[t][np.isfinite(s.values[t])]), 0.9)) if np.isfinite(s.values[t]).any() else 1
    )
    scale = max(spread, 2.0**-10) / s.pick(20, 100)
    scale = 2.0 ** np.round(np.log2(scale)) if s.powers else scale
    even = _zero(s, kind) // 2 * 2  # onnxruntime's fused average pools add it before rounding
    return s.add("QuantizeLinear", t, *_part(s, kind, scale, even))


def qlinear(s: Sketch, t: str) -> str:
    """One operator of 8-bit codes."""
    t = codes_of(s, t)
    kind, shape = s.kind(t), s.shape(t)
    result = kind if s.chance(0.8) else "int8" if kind == "int8" else "uint8"
    data = _part(s, kind)
    match s.pick("MatMul", "Conv", "Add", "Mul", "AddConst", "LeakyRelu", "Concat", "Pool"):
        case "MatMul":
            rows = s.whole(1, 5)
            zero = 0 if s.chance(0.6) else s.whole(-5, 5)
            matrix = s.const(s.rng.integers(-20, 21, (shape[-1], rows)), "int8")
            return s.add("QLinearMatMul", t, *data, matrix, *_part(s, "int8", None, zero), *_part(s, result))
        case "Conv" if len(shape) in (3, 4):
            attributes, rows = window(s, t), s.whole(1, 4)
            kernel = attributes["kernel_shape"]
            assert isinstance(kernel, list)
            weight = s.const(s.rng.integers(-20, 21, (rows, shape[1], *kernel)), "int8")
            bias = [s.const(s.rng.integers(-300, 300, rows), "int32")] if s.chance(0.5) else []
            parts = [*_part(s, "int8", None, 0), *_part(s, result)]
            return s.add("QLinearConv", t, *data, weight, *parts, *bias, **attributes)
        case "Add" | "Mul" as op:
            skip_branch = s.add("MaxPool", t, kernel_shape=[1] * (len(shape) - 2)) if len(shape) in (3, 4) else t
            skip_branch = elementwise(s, skip_branch) if s.chance(0.5) else skip_branch
            if s.kind(skip_branch) != kind or s.shape(skip_branch) != shape:
                skip_branch = t
            return s.add(f"QLinear{op}", t, *data, skip_branch, *_part(s, kind), *_part(s, kind), domain=MICROSOFT)
        case "AddConst":
            op = s.pick("Add", "Mul")
            c = s.const(s.rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, s.pick((), shape[-1:], (1,))), kind)
            return s.add(f"QLinear{op}", t, *data, c, *_part(s, kind), *_part(s, kind), domain=MICROSOFT)
        case "LeakyRelu":
            alpha = float(s.pick(0.1, 0.25, -0.5, 2.0))
            return s.add("QLinearLeakyRelu", t, *data, *_part(s, kind), domain=MICROSOFT, alpha=alpha)
        case "Concat":
            axis = s.whole(1, len(shape) - 1)
            parts = [t, *data, t, *_part(s, kind)]
            return s.add("QLinearConcat", *_part(s, kind), *parts, domain=MICROSOFT, axis=axis)
        case "Pool" if len(shape) == 4:
            return s.add("QLinearGlobalAveragePool", t, *data, *_part(s, kind), domain=MICROSOFT, channels_last=0)
        case _:
            raise Unfit


def transposed(s: Sketch, t: str) -> str:
    """ConvTranspose of an image or signal."""
    t = ready(s, image(s, t))
    shape = s.shape(t)
    rank, rows = len(shape) - 2, s.whole(1, 3)
    groups = s.pick(*[g for g in range(1, shape[1] + 1) if shape[1] % g == 0])
    kernel = [s.whole(1, 3) for _ in range(rank)]
    strides = [s.whole(1, 2) for _ in range(rank)]
    pads = [s.whole(0, k - 1) for k in kernel] * 2 if s.chance(0.5) else [0] * 2 * rank
    extra = [s.whole(0, n - 1) for n in strides] if s.chance(0.4) else [0] * rank
    weight = weights(s, (shape[1], rows, *kernel), 1) if groups == 1 else None
    if weight is None:
        weight = s.const(s.rng.integers(-4, 5, (shape[1], rows, *kernel)) * 0.25)
    attributes = {"kernel_shape": kernel, "strides": strides, "pads": pads, "output_padding": extra, "group": groups}
    bias = [s.const(s.rng.normal(size=rows * groups))] if s.chance(0.3) else []
    return s.add("ConvTranspose", t, weight, *bias, **attributes)


def channels_last(s: Sketch, t: str) -> str:
    """Between two transposes: a pool, convolution or BatchNormalization of QONNX whose channels are the last axis."""
    t = image(s, t)
    if len(s.shape(t)) != 4:
        raise Unfit
    if s.chance(0.5):
        t = ready(s, t)
    t = s.add("Transpose", t, perm=[0, 2, 3, 1]) if s.chance(0.7) else t
    _, height, width, channels = s.shape(t)
    kernel = [s.whole(1, min(3, height)), s.whole(1, min(3, width))]
    pads = [s.whole(0, k - 1) for k in kernel * 2] if s.chance(0.4) else [0] * 4
    attributes: dict[str, object] = {"kernel_shape": kernel, "strides": [s.whole(1, 2) for _ in kernel], "pads": pads}
    match s.pick("MaxPool", "MaxPool", "Conv", "BatchNormalization"):
        case "MaxPool":
            t = s.add("MaxPool", t, domain=CHANNELS_LAST, **attributes)
        case "Conv":
            weight = weights(s, (s.whole(1, 4), *kernel, channels), 0)
            t = s.add("Conv", ready(s, t), weight, domain=CHANNELS_LAST, group=1, **attributes)
        case _:
            if s.kind(t) != "float32":
                raise Unfit
            rows = [s.rng.normal(size=channels) for _ in range(3)]
            names = [s.const(r) for r in (*rows, s.rng.uniform(0.2, 3, channels))]
            t = s.add("BatchNormalization", t, *names, domain=CHANNELS_LAST)
    t = quantized(s, t) if s.chance(0.5) else t
    return s.add("Transpose", t, perm=[0, 3, 1, 2]) if s.chance(0.6) else t


def shifted_average(s: Sketch, t: str) -> str:
    """QuantAvgPool2d of whole numbers."""
    t = image(s, t)
    shape = s.shape(t)
    if len(shape) != 4 or s.kind(t) not in ("float32", *EIGHT):
        raise Unfit
    bits = s.whole(2, 6)
    signed = int(s.chance(0.5))
    t = s.add("Cast", t, to=1) if s.kind(t) != "float32" else t
    t = s.add("IntQuant", t, s.const(1.0), s.const(0.0), s.const(float(bits)), domain=DOMAIN, signed=signed)
    last = s.chance(0.3)
    max_size = min(shape[1:3] if last else shape[2:])
    attributes = {
        "kernel": s.whole(1, min(3, max_size)),
        "stride": s.whole(1, 2),
        "ibits": bits,
        "obits": s.whole(1, bits),
    }
    return s.add(
        "QuantAvgPool2d", t, domain=DOMAIN, signed=signed, data_layout="NHWC" if last else "NCHW", **attributes
    )


def minifloat(s: Sketch, t: str) -> str:
    """FloatQuant."""
    if s.kind(t) != "float32":
        raise Unfit
    exponent, mantissa = s.whole(2, 4), s.whole(1, 3)
    largest = s.const((2.0 - 2.0**-mantissa) * 2.0 ** s.whole(0, 3))
    names = [s.const(v) for v in (2.0 ** s.whole(-2, 2), exponent, mantissa, 2 ** (exponent - 1) - 1)]
    attributes = {
        "has_inf": 0,
        "has_nan": 0,
        "has_subnormal": 1,
        "saturation": 1,
        "signed": 1,
        "rounding_mode": "ROUND",
    }
    return s.add("FloatQuant", t, *names, largest, domain=DOMAIN, **attributes)


def broadcast(s: Sketch, t: str) -> str:
    """A tensor and one value for each channel of it: squeeze and excite, or a sum over points taken away."""
    t = image(s, t)
    points = list(range(2, len(s.shape(t))))
    if s.chance(0.5):
        small = s.add("ReduceMax", t, axes=points[: s.whole(1, len(points))], keepdims=1)
    else:
        small = s.add("GlobalAveragePool", ready(s, t))
    small = quantized(s, elementwise(s, small) if s.chance(0.5) else small)
    small = joint(s, t, small) if s.chance(0.6) else joint(s, small, t)
    return quantized(s, small) if s.chance(0.8) else small


def repeated(s: Sketch, t: str) -> str:
    """Tile along axes of length 1, SpaceToDepth, or parts of a tensor in another order."""
    shape = s.shape(t)
    match s.pick("Tile", "SpaceToDepth", "Swap"):
        case "Tile":
            times = [s.whole(1, 3) if i and n == 1 else 1 for i, n in enumerate(shape)]
            return s.add("Tile", t, s.const(times, np.int64))
        case "SpaceToDepth" if len(shape) == 4 and shape[2] % 2 == 0 and shape[3] % 2 == 0:
            return s.add("SpaceToDepth", t, blocksize=2)
        case "Swap":
            axis = s.whole(1, len(shape) - 1)
            if shape[axis] < 2:
                raise Unfit
            first = s.whole(1, shape[axis] - 1)
            parts = s.add("Split", t, s.const([first, shape[axis] - first], np.int64), outputs=2, axis=axis)
            ends = [quantized(s, e) if s.chance(0.3) else e for e in (f"{parts}_1", parts)]
            return s.add("Concat", *ends, axis=axis)
        case _:
            raise Unfit
