"""onnxruntime's CPU kernels, and the formulas they follow: one thread, exact integer products.

The formulas are literal: every float32 operation of the kernel, in its order. `test_ort.py` proves them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray

from hlsgen.simulation.oracles import unsigned_weights

Array = NDArray[Any]
OFF = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
DEFAULT = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
EXTENDED = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
PRECISE = "session.x64quantprecision"  # u8 * s8 products do not saturate on x86 without VNNI
INT8 = "session.qdqisint8allowed"  # groups of int8 are fused as on ARM
Fail = ort.capi.onnxruntime_pybind11_state.Fail  # of a session that refuses a model
f32 = np.float32


def session(
    model: onnx.ModelProto | Path, level: Any = DEFAULT, optimized: Path | None = None, arm: bool = False
) -> ort.InferenceSession:
    """A session; `optimized` is where the graph that really runs is written, `arm` fuses int8 groups as on ARM.

    It has onnxruntime's default options, except on processors whose products of uint8 and int8 saturate: there it runs
    in the precise mode, which makes uint8 weights of int8 ones. Some operators have no such kernel, and run without it;
    weights of QLinearMatMul of opset 21 and newer are left as they are, and rewritten here.
    """
    if not saturates():
        data = str(model) if isinstance(model, Path) else model.SerializeToString()
        return ort.InferenceSession(data, _options(level, optimized, False, arm), providers=["CPUExecutionProvider"])
    data = str(model) if isinstance(model, Path) else unsigned_weights(model.SerializeToString())
    try:
        return ort.InferenceSession(data, _options(level, optimized, True, arm), providers=["CPUExecutionProvider"])
    except ort.capi.onnxruntime_pybind11_state.NotImplemented:
        return ort.InferenceSession(data, _options(level, optimized, False, arm), providers=["CPUExecutionProvider"])


@lru_cache
def saturates() -> bool:
    """Whether kernels of this processor add pairs of products of uint8 and int8 in 16 bits (x86 without VNNI)."""
    node = onnx.helper.make_node("MatMulInteger", ["a", "b"], ["y"])
    ends = [
        ("a", onnx.TensorProto.UINT8, (1, 64)),
        ("b", onnx.TensorProto.INT8, (64, 16)),
        ("y", onnx.TensorProto.INT32, (1, 16)),
    ]
    values = [onnx.helper.make_tensor_value_info(*end) for end in ends]
    graph = onnx.helper.make_graph([node], "g", values[:2], values[2:])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 13)], ir_version=8)
    one = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found = one.run(None, {"a": np.full((1, 64), 255, np.uint8), "b": np.full((64, 16), 127, np.int8)})[0]
    return bool((np.asarray(found) != 64 * 255 * 127).any())


def _options(level: Any, optimized: Path | None, precise: bool, arm: bool) -> ort.SessionOptions:
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = level
    options.log_severity_level = 4
    if arm:
        options.add_session_config_entry(INT8, "1")
    if precise:
        options.add_session_config_entry(PRECISE, "1")
    if optimized is not None:
        options.optimized_model_filepath = str(optimized)
    return options


def run(
    model: onnx.ModelProto | Path, feeds: Mapping[str, Any], level: Any = DEFAULT, arm: bool = False
) -> list[Array]:
    """Every output of the model."""
    return [
        np.asarray(v) for v in session(model, level, arm=arm).run(None, {k: np.asarray(v) for k, v in feeds.items()})
    ]


def optimized_graph(model: onnx.ModelProto | Path, level: Any = DEFAULT, arm: bool = False) -> onnx.ModelProto:
    """The graph that onnxruntime runs in place of `model`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "optimized.onnx"
        session(model, level, path, arm)
        return onnx.load(path)


def operators(model: onnx.ModelProto) -> list[str]:
    """Operators in topological order; those of onnxruntime's own domain with an `ms.` before them."""
    own = "com.microsoft"
    return [("ms." if n.domain == own else "") + n.op_type for n in model.graph.node]


# Formulas. Codes and zero points are int64 arrays (any broadcastable shapes), scales float32; lo and hi bound the
# output's type. np.rint rounds half to even.


def wrap32(a: Any) -> Array:
    return (np.asarray(a, np.int64) + 2**31) % 2**32 - 2**31


def matmul_integer(a: Any, b: Any, za: Any = 0, zb: Any = 0) -> Array:
    """MatMulInteger and ConvInteger 1x1: za a scalar, zb a scalar or per column. int32 wraps."""
    return wrap32((np.asarray(a, np.int64) - za) @ (np.asarray(b, np.int64) - zb))


def quantize_linear(x: Any, scale: Any, zero: Any, lo: int, hi: int) -> Array:
    """QuantizeLinear: true division in float32 (also of float16), zero point after rounding.

    NaN gives lo: of float32, to 8 and 16 bits. The other kernels wrap: NaN, infinities of float16, and in int2 and
    uint2 quotients beyond int32 become -2^31 + zero before they saturate.
    """
    with np.errstate(all="ignore"):
        q = np.asarray(x).astype(f32) / np.asarray(scale).astype(f32)
    q = np.where(np.isnan(q), f32(-np.inf), q)
    return (np.rint(np.clip(q, lo - np.asarray(zero), hi - np.asarray(zero))) + zero).astype(np.int64)


def dequantize_linear(codes: Any, scale: Any, zero: Any = 0) -> Array:
    """DequantizeLinear, int32 included: one product in float32, then the scale's own type."""
    scale = np.asarray(scale)
    with np.errstate(over="ignore"):
        result: Array = (wrap32(np.asarray(codes, np.int64) - zero).astype(f32) * scale.astype(f32)).astype(scale.dtype)
    return result


def requantize(acc: Any, sa: Any, sb: Any, sy: Any, zy: Any, lo: int, hi: int) -> Array:
    """QLinearMatMul, QLinearConv, QGemm: acc with its int32 bias, times the one float32 fl(fl(sa*sb)/sy)."""
    factor = (f32(sa) * np.asarray(sb, f32)) / f32(sy)
    y = wrap32(acc).astype(f32) * factor
    return (np.rint(np.clip(y, f32(lo - int(zy)), f32(hi - int(zy)))) + int(zy)).astype(np.int64)


def rescale_to_float(acc: Any, sa: Any, sb: Any, bias: Any = None) -> Array:
    """MatMulIntegerToFloat (float32 bias) and QGemm without y_scale (bias in acc)."""
    y: Array = wrap32(acc).astype(f32) * (f32(sa) * np.asarray(sb, f32))
    return y if bias is None else y + np.asarray(bias, f32)


def integer_bias(bias: Any, sa: Any, sb: Any) -> Array:
    """The int32 bias that onnxruntime puts in place of a float32 bias (N,) of Gemm, or MatMul and Add, before Q."""
    return np.rint(np.asarray(bias, f32) / (f32(sa) * np.asarray(sb, f32))).astype(np.int64)


def fma(a: Any, b: Any, c: Any) -> Array:
    """float32 a * b + c rounded once: exact product and sum rounded to odd in float64, then to float32."""
    product, c = np.float64(a) * np.float64(b), np.float64(c)
    total = np.asarray(product + c)
    part = total - product
    error = (product - (total - part)) + (c - part)
    odd = (error != 0) & (total != 0) & (total.view(np.int64) & 1 == 0)
    step = np.where((error > 0) == (total > 0), 1, -1)
    return np.where(odd, (total.view(np.int64) + step).view(np.float64), total).astype(f32)


def qlinear_add(
    a: Any, sa: Any, za: Any, b: Any, sb: Any, zb: Any, sy: Any, zy: Any, lo: int, hi: int, swap: bool = False
) -> Array:
    """QLinearAdd on x86 with AVX2: two fused multiply-adds; zero point before rounding.

    `swap`: b varies fastest where a stands still along the last axis (a of size 1 there, b not, or both of size 1);
    the kernel then takes b for a.
    """
    if swap:
        a, sa, za, b, sb, zb = b, sb, zb, a, sa, za
    ra, rb = f32(sa) / f32(sy), f32(sb) / f32(sy)
    fixed = f32(zy) - fma(ra, f32(za), rb * f32(zb))
    y = fma(np.asarray(a, f32), ra, fma(np.asarray(b, f32), rb, fixed))
    return np.clip(np.rint(y), lo, hi).astype(np.int64)


def qlinear_mul(a: Any, sa: Any, za: Any, b: Any, sb: Any, zb: Any, sy: Any, zy: Any, lo: int, hi: int) -> Array:
    """QLinearMul: one product, one sum in float32; zero point before rounding."""
    exact = ((np.asarray(a, np.int64) - za) * (np.asarray(b, np.int64) - zb)).astype(f32)
    y = exact * (f32(sa) * f32(sb) / f32(sy)) + f32(zy)
    return np.clip(np.rint(y), lo, hi).astype(np.int64)
