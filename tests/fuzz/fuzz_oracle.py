"""Node-by-node evaluation of a model without code of hlsgen: numpy, qonnx's own functions, onnx's evaluator.

Tensors that depend on the input have frames as the batch: (frames, *shape[1:]). Inputs of linear layers, average pools
and sums of three tensors must be exact, as short multiples of a power of two. Every order of addition then gives the
same sum. Sums of two tensors of codes on one grid are exact, and rounded once. Activations are correctly rounded, with
mpmath in doubtful cases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import fuzz_qlinear
import mpmath
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from qonnx.custom_op.general.bipolar_quant import binary_quant
from qonnx.custom_op.general.floatquant import float_quant
from qonnx.custom_op.general.intquant import int_quant
from qonnx.custom_op.general.multithreshold import multithreshold
from qonnx.custom_op.general.trunc import trunc_v1, trunc_v2
from scipy import special

Array = NDArray[Any]
QUANTIZERS = ("IntQuant", "Quant", "BipolarQuant", "Trunc", "MultiThreshold", "QuantizeLinear", "FloatQuant")
DOMAIN = "qonnx.custom_op.general"
CHANNELS_LAST, MICROSOFT = "qonnx.custom_op.channels_last", "com.microsoft"
OPSET = 17


def values(model: onnx.ModelProto, x: Array) -> dict[str, Array]:
    """Every tensor of a model of one input, for the frames of `x`."""
    constants = {c.name: numpy_helper.to_array(c) for c in model.graph.initializer}
    constants[model.graph.input[0].name] = x
    versions = {o.domain: o.version for o in model.opset_import}
    joined: dict[str, bool] = {model.graph.input[0].name: False}  # of tensors that depend on the input
    steps: dict[str, Fraction | None] = {}  # of codes, where these have one scale
    for node in model.graph.node:
        results = run_node(node, [constants[i] if i else None for i in node.input], versions.get(DOMAIN, 1))
        if node.op_type in ("Add", "Sub") and all(steps.get(i) for i in node.input):
            results = [_sum_of_codes(node.op_type, results[0], *((constants[i], steps[i]) for i in node.input))]
        constants.update(zip([o for o in node.output if o], results, strict=True))
        steps.update(dict.fromkeys(node.output, _step_of_codes(node, constants, steps)))
        data = [i for i in node.input if i in joined]
        touches_data = any(joined[i] for i in data)
        if touches_data and len(data) > 1 and constants[data[0]].dtype.kind == "f":
            for name in (*data, *node.output):
                _exact(constants[name])
        if data:
            has_two_operands = len(data) > 1 and node.op_type not in ("Concat", "Where")
            joined.update(
                dict.fromkeys(node.output, (touches_data or has_two_operands) and node.op_type not in QUANTIZERS)
            )
    return constants


def _step_of_codes(
    node: onnx.NodeProto, constants: Mapping[str, Array], steps: Mapping[str, Fraction | None]
) -> Fraction | None:
    """Value of one code step of a node's result, or None if the result is no tensor of codes with one scale."""
    if node.op_type in _MOVES:
        input_steps = {steps.get(i) for i in node.input if constants.get(i, np.zeros(0)).dtype.kind == "f"}
        return input_steps.pop() if len(input_steps) == 1 else None
    place = 4 if node.op_type == "Trunc" and len(node.input) > 5 else 1
    if node.op_type not in ("IntQuant", "Quant", "BipolarQuant", "Trunc", "DequantizeLinear", "FloatQuant"):
        return None
    scale = constants[node.input[place]]
    if scale.size != 1 or scale.dtype != np.float32:
        return None
    worth = Fraction(float(scale.ravel()[0])) * (2 if node.op_type == "BipolarQuant" else 1)
    if node.op_type == "FloatQuant":
        mantissa, bias = (int(constants[node.input[i]].ravel()[0]) for i in (3, 4))
        worth *= Fraction(2) ** (1 - bias - mantissa)
    return worth


def _sum_of_codes(kind: str, codes: Array, left: tuple[Array, Any], right: tuple[Array, Any]) -> Array:
    """The exact sum, rounded once, where both are on one grid; else `own`, which float32 gives."""
    ratio = left[1] / right[1]
    if codes.dtype != np.float32 or max(ratio.numerator, ratio.denominator) > 256:
        return codes
    wholes = [_halves(x, float(step)) for x, step in (left, right)]
    if wholes[0] is None or wholes[1] is None:
        return codes
    sign = 1 if kind == "Add" else -1
    pairs = np.stack([np.broadcast_to(w, codes.shape).ravel() for w in wholes], axis=1)
    different, place = np.unique(pairs, axis=0, return_inverse=True)
    sums = [(Fraction(a) * left[1] + sign * Fraction(b) * right[1]) for a, b in different.tolist()]
    return np.array([_nearest(number) for number in sums], np.float32)[place.ravel()].reshape(codes.shape)


def _halves(x: Array, step: float) -> Array | None:
    """Codes less their zero point, which may be a fraction."""
    for finer in (1, 2, 4, 8):
        scaled = np.round(x.astype(np.float64) / step * finer)
        if (scaled.astype(np.float32) * np.float32(step / finer) == x).all():
            return np.asarray(scaled / finer)
    return None


def _nearest(number: Fraction) -> np.float32:
    guess = np.float32(float(number))
    around = [np.nextafter(guess, np.float32(-np.inf)), guess, np.nextafter(guess, np.float32(np.inf))]
    return min(around, key=lambda f: (abs(Fraction(float(f)) - number), int(f.view(np.int32)) & 1))


#: Operators whose results are codes if their inputs are.
_MOVES = frozenset(
    "Concat Slice Split Pad Reshape Flatten Transpose Squeeze Unsqueeze Resize DepthToSpace SpaceToDepth Expand Tile "
    "MaxPool GlobalMaxPool ReduceMax Identity".split()
)


def run_node(node: onnx.NodeProto, inputs: Sequence[Array | None], version: int = 1) -> list[Array]:
    """The outputs of one node. `version`: version of the QONNX domain."""
    attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    attrs = {k: v.decode() if isinstance(v, bytes) else v for k, v in attrs.items()}
    if node.op_type in ("Div", "Reciprocal") and (np.asarray(inputs[-1]) == 0).any():
        raise ValueError("the sign of a zero is no matter of codes")
    with np.errstate(all="ignore"):
        if node.domain == CHANNELS_LAST:
            return [_channels_last(node.op_type, list(inputs), attrs)]
        if node.op_type.startswith("QLinear"):
            return [fuzz_qlinear.run(node.op_type, list(inputs), attrs)]
        if node.op_type == "Trunc":
            return [_trunc(inputs, attrs, version)]
        if (evaluate_node := _OWN.get(node.op_type)) is not None:
            return [np.asarray(evaluate_node(list(inputs), attrs))]
        if node.op_type in _SMOOTH:
            return [_smooth(node.op_type, inputs, attrs)]
        return _evaluated(node, inputs)


def _evaluated(node: onnx.NodeProto, inputs: Sequence[Array | None]) -> list[Array]:
    names = [f"i{n}" if name else "" for n, name in enumerate(node.input)]
    arrays = {name: a for name, a in zip(names, inputs, strict=True) if name and a is not None}
    outputs = [f"o{n}" if name else "" for n, name in enumerate(node.output)]
    node_copy = onnx.NodeProto()
    node_copy.CopyFrom(node)
    node_copy.ClearField("input")
    node_copy.ClearField("output")
    node_copy.input.extend(names)
    node_copy.output.extend(outputs)
    node_copy.name = ""
    kinds = tuple((name, a.dtype.str, a.ndim) for name, a in arrays.items())
    results = _evaluator(node_copy.SerializeToString(), kinds).run(None, arrays)
    return [np.asarray(r) for r in results]


@lru_cache(maxsize=512)
def _evaluator(node: bytes, kinds: tuple[tuple[str, str, int], ...]) -> ReferenceEvaluator:
    proto = onnx.NodeProto.FromString(node)
    typed = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(kind)), [None] * rank)
        for name, kind, rank in kinds
    ]
    outputs = [helper.make_empty_tensor_value_info(o) for o in proto.output if o]
    graph = helper.make_graph([proto], "node", typed, outputs)
    return ReferenceEvaluator(helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)]))


# --------------------------------------------------------------------------- quantizers


def _int_quant(i: list[Array], a: Mapping[str, Any]) -> Array:
    mode, signed, narrow = a.get("rounding_mode", "ROUND"), a.get("signed", 1), a.get("narrow", 0)
    return np.asarray(int_quant(i[0], i[1], i[2], i[3], signed, narrow, mode))


def _trunc(i: Sequence[Any], a: Mapping[str, Any], version: int) -> Array:
    mode = a.get("rounding_mode", "FLOOR")
    if version == 1:
        y = np.asarray(trunc_v1(*i, mode))
        if not (abs(y / i[1]) < 2**30).all():
            raise ValueError("codes saturate, which qonnx does not do")
        return y
    x, scale, zero, in_bits, out_scale, out_bits = i
    return np.asarray(
        trunc_v2(x, scale, zero, in_bits, a.get("narrow", 0), a.get("signed", 1), out_scale, out_bits, mode)
    )


def _multi_threshold(i: list[Array], a: Mapping[str, Any]) -> Array:
    last = a.get("data_layout", "NCHW")[-1] == "C" and i[0].ndim > 2
    return np.asarray(multithreshold(i[0], i[1], a.get("out_scale", 1.0), a.get("out_bias", 0.0), last))


def _along(parameter: Array | None, x: Array, axis: int) -> Array:
    value = np.asarray(0 if parameter is None else parameter)
    return value.reshape([-1 if n == axis % x.ndim else 1 for n in range(x.ndim)]) if value.size > 1 else value.ravel()


def _quantize_linear(i: list[Any], a: Mapping[str, Any]) -> Array:
    """Division in float32 (of float16 too), to nearest even, zero point after that, saturated."""
    x, axis = i[0], a.get("axis", 1)
    zero = i[2] if len(i) > 2 else np.zeros((), np.uint8)
    info = np.iinfo(zero.dtype)
    scale = _along(i[1], x, axis).astype(np.float32)
    q = np.rint(x.astype(np.float32) / scale).astype(np.float64) + _along(zero, x, axis).astype(np.float64)
    return np.asarray(np.clip(q, info.min, info.max).astype(zero.dtype))


def _dequantize_linear(i: list[Any], a: Mapping[str, Any]) -> Array:
    x, axis = i[0], a.get("axis", 1)
    zero = _along(i[2] if len(i) > 2 else None, x, axis).astype(np.int64)
    return np.asarray((x.astype(np.int64) - zero).astype(np.float32) * _along(i[1], x, axis))


# --------------------------------------------------------------------------- elementwise


def _cast(i: list[Array], a: Mapping[str, Any]) -> Array:
    x, to = i[0], helper.tensor_dtype_to_np_dtype(a["to"])
    if x.dtype.kind == "f" and to.kind in "iu":
        info = np.iinfo(to)
        return np.asarray(np.clip(np.trunc(x.astype(np.float64)), info.min, info.max).astype(np.int64).astype(to))
    return np.asarray((x.astype(np.float64) if to == np.float16 and x.dtype != np.float64 else x).astype(to))


def _batch_norm(i: list[Array], a: Mapping[str, Any]) -> Array:
    form = [-1 if n == 1 else 1 for n in range(i[0].ndim)]
    gamma, beta, mean, var = (v.reshape(form) for v in i[1:5])
    factor = gamma * (np.float32(1) / np.sqrt(var + np.float32(a.get("epsilon", 1e-5))))
    return np.asarray(i[0] * factor + (beta - mean * factor))


def _leaky_relu(i: list[Array], a: Mapping[str, Any]) -> Array:
    slope = i[0].dtype.type(np.float32(a.get("alpha", 0.01)))
    return np.where(i[0] >= 0, i[0], i[0] * slope)


def _prelu(i: list[Array], _: Mapping[str, Any]) -> Array:
    return np.where(i[0] >= 0, i[0], i[0] * i[1])


def _hard_sigmoid(i: list[Array], a: Mapping[str, Any]) -> Array:
    kind = i[0].dtype.type
    y = i[0] * kind(np.float32(a.get("alpha", 0.2))) + kind(np.float32(a.get("beta", 0.5)))
    return np.asarray(np.minimum(np.maximum(y, kind(0)), kind(1)))


def _hard_swish(i: list[Array], _: Mapping[str, Any]) -> Array:
    kind = i[0].dtype.type
    y = i[0] * kind(1 / 6) + kind(0.5)
    return np.asarray(i[0] * np.minimum(np.maximum(y, kind(0)), kind(1)))


def _relu(i: list[Array], _: Mapping[str, Any]) -> Array:
    return np.asarray(np.maximum(i[0], i[0].dtype.type(0)))


def _clip(i: list[Any], _: Mapping[str, Any]) -> Array:
    y = i[0] if len(i) < 2 or i[1] is None else np.maximum(i[0], i[1])
    return np.asarray(y if len(i) < 3 or i[2] is None else np.minimum(y, i[2]))


#: Smooth functions: in extended precision, and in mpmath. `a` and `b` are the attributes.
_SMOOTH: dict[str, tuple[Callable[..., Any] | None, Callable[..., Any], tuple[tuple[str, float], ...]]] = {
    "Exp": (lambda x, a, b: np.exp(x), lambda x, a, b: mpmath.exp(x), ()),
    "Log": (lambda x, a, b: np.log(x), lambda x, a, b: mpmath.log(x), ()),
    "Tanh": (lambda x, a, b: np.tanh(x), lambda x, a, b: mpmath.tanh(x), ()),
    "Sigmoid": (lambda x, a, b: 1 / (1 + np.exp(-x)), lambda x, a, b: 1 / (1 + mpmath.exp(-x)), ()),
    "Erf": (lambda x, a, b: special.erf(x.astype(np.float64)), lambda x, a, b: mpmath.erf(x), ()),
    "Gelu": (None, lambda x, a, b: x * mpmath.erfc(-x / mpmath.sqrt(2)) / 2, ()),
    "Mish": (None, lambda x, a, b: x * mpmath.tanh(mpmath.log1p(mpmath.exp(x))), ()),
    "Softplus": (lambda x, a, b: np.logaddexp(0, x), lambda x, a, b: mpmath.log1p(mpmath.exp(x)), ()),
    "Softsign": (lambda x, a, b: x / (1 + abs(x)), lambda x, a, b: x / (1 + abs(x)), ()),
    "Reciprocal": (lambda x, a, b: 1 / x, lambda x, a, b: 1 / x, ()),
    "Pow": (lambda x, a, b: np.power(x, np.longdouble(a)), lambda x, a, b: mpmath.power(x, a), ()),
    "Elu": (
        lambda x, a, b: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0))),
        lambda x, a, b: x if x >= 0 else a * mpmath.expm1(x),
        (("alpha", 1.0),),
    ),
    "Celu": (
        lambda x, a, b: np.where(x >= 0, x, a * np.expm1(np.minimum(x, 0) / a)),
        lambda x, a, b: x if x >= 0 else a * mpmath.expm1(x / a),
        (("alpha", 1.0),),
    ),
    "Selu": (
        lambda x, a, b: b * np.where(x > 0, x, a * np.expm1(np.minimum(x, 0))),
        lambda x, a, b: b * (x if x > 0 else a * mpmath.expm1(x)),
        (("alpha", 1.67326319217681884765625), ("gamma", 1.05070102214813232421875)),
    ),
}


def _smooth(kind: str, inputs: Sequence[Any], attrs: Mapping[str, Any]) -> Array:
    """The real function, rounded once to the dtype."""
    fast, exact, defaults = _SMOOTH[kind]
    a, b = (
        [float(inputs[1]), 0.0]
        if kind == "Pow"
        else [*(float(np.float32(attrs.get(key, value))) for key, value in defaults), 0.0, 0.0][:2]
    )
    dtype = inputs[0].dtype
    bits, places = np.unique(np.ascontiguousarray(inputs[0]).view(f"u{dtype.itemsize}"), return_inverse=True)
    x = bits.view(dtype)  # -0.0 is not 0.0
    extended = (fast(x.astype(np.longdouble), a, b) if fast is not None else np.full(x.shape, np.nan)).astype(
        np.longdouble
    )
    trust = abs(extended) * (2.0**-48 if kind == "Erf" else 2.0**-56)
    low, high = (extended - trust).astype(dtype), (extended + trust).astype(dtype)
    result = extended.astype(dtype)
    for n in np.flatnonzero((low != high) & np.isfinite(x)):
        result[n] = _rounded(exact, float(x[n]), a, b, dtype)
    return np.asarray(result[places].reshape(inputs[0].shape))


def _rounded(exact: Callable[..., Any], x: float, a: float, b: float, dtype: Any) -> Any:
    bits = {"float16": 11, "float32": 24, "float64": 53}[dtype.name]
    if x == 0 and exact is _SMOOTH["Reciprocal"][1]:
        return np.copysign(np.inf, x)
    with mpmath.workprec(400):
        y = exact(mpmath.mpf(x), mpmath.mpf(a), mpmath.mpf(b))
        tiny = np.finfo(dtype).smallest_normal
        if abs(y) < tiny:  # a multiple of the smallest number
            unit = mpmath.mpf(float(np.finfo(dtype).smallest_subnormal))
            return dtype.type(float(mpmath.nint(y / unit) * unit))
    with mpmath.workprec(bits):
        return dtype.type(float(+y))


# --------------------------------------------------------------------------- layers


def _exact(x: Array) -> Array:
    """In float64. Raises ValueError for numbers whose sums may be rounded."""
    extended = np.asarray(x, np.float64)
    if x.dtype.kind == "f" and not is_exact(extended):
        raise ValueError("sums of these numbers depend on their order")
    return extended


def is_exact(x: Array) -> bool:
    """True if all values are integers, or multiples of 2^-12 below 2^11."""
    if x.dtype.kind != "f":
        return True
    return bool(np.isfinite(x).all() and (abs(x) < 2048).all() and (x * 4096 % 1 == 0).all())


def _matmul(i: list[Array], _: Mapping[str, Any]) -> Array:
    return np.asarray((_exact(i[0]) @ _exact(i[1])).astype(i[0].dtype))


def _gemm(i: list[Any], a: Mapping[str, Any]) -> Array:
    weight = i[1].T if a.get("transB", 0) else i[1]
    y = (_exact(i[0]) @ _exact(weight)).astype(np.float32)
    alpha, beta = np.float32(a.get("alpha", 1.0)), np.float32(a.get("beta", 1.0))
    y = y * alpha if alpha != 1 else y
    return np.asarray(y + beta * i[2] if len(i) > 2 else y)


def _matmul_integer(i: list[Any], _: Mapping[str, Any]) -> Array:
    a, b = (v.astype(np.int64) for v in i[:2])
    a = a - (i[2].astype(np.int64) if len(i) > 2 and i[2] is not None else 0)
    b = b - (i[3].astype(np.int64) if len(i) > 3 and i[3] is not None else 0)
    return np.asarray((a @ b).astype(np.int32))


def _conv(i: list[Any], a: Mapping[str, Any]) -> Array:
    y = _convolved(_exact(i[0]), _exact(i[1]), a).astype(i[0].dtype)
    return np.asarray(y + i[2].reshape(-1, *[1] * (y.ndim - 2)) if len(i) > 2 else y)


def _conv_integer(i: list[Any], a: Mapping[str, Any]) -> Array:
    x = _exact(i[0]) - (_exact(i[2]) if len(i) > 2 and i[2] is not None else 0)
    w = _exact(i[1])
    if len(i) > 3 and i[3] is not None:
        w = w - _exact(i[3]).reshape(-1, *[1] * (w.ndim - 1))
    return np.asarray(_convolved(x, w, a).astype(np.int64).astype(np.int32))


def _convolved(x: Array, weight: Array, a: Mapping[str, Any]) -> Array:
    groups, kernel = a.get("group", 1), weight.shape[2:]
    wins = _windows(x, 0.0, {**a, "kernel_shape": kernel}, 0.0)
    parts = []
    for g in range(groups):
        rows, cols = len(weight) // groups, weight.shape[1]
        group_windows = wins[:, g * cols : (g + 1) * cols].reshape(len(x), cols, -1, int(np.prod(kernel)))
        parts.append(
            np.einsum("ncpk,rck->nrp", group_windows, weight[g * rows : (g + 1) * rows].reshape(rows, cols, -1))
        )
    return np.asarray(np.concatenate(parts, axis=1).reshape(len(x), len(weight), *wins.shape[2 : x.ndim]))


def _conv_transpose(i: list[Any], a: Mapping[str, Any]) -> Array:
    """Every input value adds its kernel to the result."""
    x, w, groups = _exact(i[0]), _exact(i[1]), a.get("group", 1)
    rank, rows, columns = x.ndim - 2, w.shape[1], x.shape[1] // groups
    strides, extra = a.get("strides", [1] * rank), a.get("output_padding", [0] * rank)
    pads = a.get("pads", [0] * 2 * rank)
    full = [(n - 1) * s + k + e for n, s, k, e in zip(x.shape[2:], strides, w.shape[2:], extra, strict=True)]
    y = np.zeros((len(x), rows * groups, *full))
    for at in np.ndindex(*w.shape[2:]):
        cut = tuple(slice(p, p + (n - 1) * s + 1, s) for p, n, s in zip(at, x.shape[2:], strides, strict=True))
        for g in range(groups):
            group_columns = slice(g * columns, (g + 1) * columns)
            part = np.einsum("nc...,cr->nr...", x[:, group_columns], w[(group_columns, slice(None), *at)])
            y[(slice(None), slice(g * rows, (g + 1) * rows), *cut)] += part
    y = y[(..., *(slice(pads[n], full[n] - pads[rank + n]) for n in range(rank)))].astype(np.float32)
    return y + i[2].reshape(-1, *[1] * rank) if len(i) > 2 else y


def _channels_last(op: str, i: list[Any], a: Mapping[str, Any]) -> Array:
    """The operator of (n, h, w, c), kernels (o, h, w, c)."""
    i[0] = np.moveaxis(i[0], -1, 1)
    if op == "Conv":
        i[1] = np.moveaxis(i[1], -1, 1)
    return np.moveaxis(_OWN[op](i, a), 1, -1)


def _quant_avg_pool(i: list[Array], a: Mapping[str, Any]) -> Array:
    last = a.get("data_layout", "NCHW") == "NHWC"
    x = np.moveaxis(i[0], -1, 1) if last else i[0]
    form = {"kernel_shape": [a["kernel"]] * 2, "strides": [a["stride"]] * 2}
    sums = _windows(_exact(x), 0, form, 0).sum(axis=(-1, -2)).astype(np.int64)
    largest = ((1 << a["ibits"]) - 1) * a["kernel"] ** 2
    y = (sums >> max(largest.bit_length() - a["obits"], 0)).astype(np.float32)
    return np.moveaxis(y, 1, -1) if last else y


def _float_quant(i: list[Any], a: Mapping[str, Any]) -> Array:
    mode = a.get("rounding_mode", "ROUND")
    return np.asarray(float_quant(*i[:5], signed=True, max_val=i[5], rounding_mode=mode)).astype(np.float32)


# --------------------------------------------------------------------------- pools


def _windows(x: Array, filler: Any, a: Mapping[str, Any], ceil_value: Any) -> Array:
    """(frames, channels, *places, *kernel): `filler` in the padding, `ceil_value` in the part added by ceil_mode."""
    rank, kernel = x.ndim - 2, list(a["kernel_shape"])
    strides, dilations = list(a.get("strides") or [1] * rank), list(a.get("dilations") or [1] * rank)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    auto = a.get("auto_pad", "NOTSET")
    pads = list(a.get("pads") or [0] * 2 * rank) if auto == "NOTSET" else [0] * 2 * rank
    for n in range(rank if auto.startswith("SAME") else 0):
        total = max((-(-x.shape[2 + n] // strides[n]) - 1) * strides[n] + reach[n] - x.shape[2 + n], 0)
        small, large = total // 2, total - total // 2
        pads[n], pads[rank + n] = (small, large) if auto == "SAME_UPPER" else (large, small)
    extended = np.pad(x, [(0, 0), (0, 0), *((pads[n], pads[rank + n]) for n in range(rank))], constant_values=filler)
    counts = []
    for n in range(rank):
        size = extended.shape[2 + n]
        room = size - reach[n]
        count = (-(-room // strides[n]) if a.get("ceil_mode", 0) else room // strides[n]) + 1
        if a.get("ceil_mode", 0) and (count - 1) * strides[n] >= x.shape[2 + n] + pads[n]:
            count -= 1
        counts.append(count)
    extra_sizes = [
        max((c - 1) * s + r - n, 0) for c, s, r, n in zip(counts, strides, reach, extended.shape[2:], strict=True)
    ]
    extended = np.pad(extended, [(0, 0), (0, 0), *((0, m) for m in extra_sizes)], constant_values=ceil_value)
    for n in range(rank):  # the places stay at their axis, the taps go to the end
        at = np.arange(counts[n])[:, None] * strides[n] + np.arange(kernel[n])[None] * dilations[n]
        extended = np.moveaxis(extended.take(at, 2 + n), 3 + n, -1)
    return extended


def _max_pool(i: list[Array], a: Mapping[str, Any]) -> Array:
    lowest: Any = -np.inf if i[0].dtype.kind == "f" else np.iinfo(i[0].dtype).min
    wins = _windows(i[0], lowest, a, lowest)
    return np.asarray(wins.max(axis=tuple(range(i[0].ndim, wins.ndim))))


def _average_pool(i: list[Array], a: Mapping[str, Any]) -> Array:
    ones = np.ones_like(i[0], np.float64)
    wins, counts = _windows(_exact(i[0]), 0, a, 0), _windows(ones, 1 if a.get("count_include_pad", 0) else 0, a, 0)
    axes = tuple(range(i[0].ndim, wins.ndim))
    return np.asarray(wins.sum(axis=axes).astype(np.float32) / counts.sum(axis=axes).astype(np.float32))


def _reduced(i: list[Any], a: Mapping[str, Any]) -> tuple[Array, tuple[int, ...], bool]:
    axes = tuple(i[1].tolist() if len(i) > 1 else a.get("axes", range(i[0].ndim)))
    return i[0], axes, bool(a.get("keepdims", 1))


def _reduce_sum(i: list[Any], a: Mapping[str, Any]) -> Array:
    x, axes, keep = _reduced(i, a)
    return np.asarray(_exact(x).sum(axis=axes, keepdims=keep).astype(np.float32))


def _reduce_mean(i: list[Any], a: Mapping[str, Any]) -> Array:
    x, axes, _ = _reduced(i, a)
    return np.asarray(_reduce_sum(i, a) / np.float32(np.prod([x.shape[n] for n in axes])))


def _reduce_max(i: list[Any], a: Mapping[str, Any]) -> Array:
    x, axes, keep = _reduced(i, a)
    return np.asarray(x.max(axis=axes, keepdims=keep))


def _global(i: list[Array], _: Mapping[str, Any]) -> Array:
    return _reduce_mean([i[0]], {"axes": range(2, i[0].ndim)})


def _global_max(i: list[Array], _: Mapping[str, Any]) -> Array:
    return _reduce_max([i[0]], {"axes": range(2, i[0].ndim)})


# --------------------------------------------------------------------------- shapes


def _reshape(i: list[Array], _: Mapping[str, Any]) -> Array:
    """Written for a batch of 1: the first axis stays."""
    return i[0].reshape([len(i[0]), *(int(n) for n in i[1][1:])])


def _flatten(i: list[Array], a: Mapping[str, Any]) -> Array:
    assert a.get("axis", 1) == 1
    return i[0].reshape(len(i[0]), -1)


_OWN: dict[str, Callable[[list[Any], Mapping[str, Any]], Array]] = {
    "IntQuant": _int_quant,
    "Quant": _int_quant,
    "MultiThreshold": _multi_threshold,
    "BipolarQuant": lambda i, a: np.asarray(binary_quant(i[0], i[1])),
    "QuantizeLinear": _quantize_linear,
    "DequantizeLinear": _dequantize_linear,
    "Cast": _cast,
    "BatchNormalization": _batch_norm,
    "LeakyRelu": _leaky_relu,
    "PRelu": _prelu,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _hard_swish,
    "Relu": _relu,
    "Clip": _clip,
    "MatMul": _matmul,
    "Gemm": _gemm,
    "MatMulInteger": _matmul_integer,
    "Conv": _conv,
    "ConvInteger": _conv_integer,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "GlobalAveragePool": _global,
    "GlobalMaxPool": _global_max,
    "ReduceSum": _reduce_sum,
    "ReduceMean": _reduce_mean,
    "ReduceMax": _reduce_max,
    "Reshape": _reshape,
    "Flatten": _flatten,
    "ConvTranspose": _conv_transpose,
    "QuantAvgPool2d": _quant_avg_pool,
    "FloatQuant": _float_quant,
    "Tile": lambda i, a: np.tile(i[0], i[1]),
}
