"""The formulas of `ort.py` against onnxruntime, bit for bit, and what onnxruntime fuses into them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import onnx
import ort
import pytest
from integer_models import model, same, typed
from onnx import TensorProto, helper
from ort import OFF, f32

Array = Any
node = helper.make_node
U8, S8 = np.uint8, np.int8
PAIRS = [(U8, S8), (U8, U8), (S8, S8)]  # activations, weights
SMALL = {TensorProto.INT4: (-8, 7), TensorProto.UINT4: (0, 15), TensorProto.INT2: (-2, 1), TensorProto.UINT2: (0, 3)}
WIDE = [np.int8, np.uint8, np.int16, np.uint16]


def scales(rng: np.random.Generator, n: Any = None) -> Any:
    return np.exp2(rng.uniform(-10, 0, n)).astype(f32) if n else f32(2.0 ** rng.uniform(-10, 0))


def limits(dtype: Any) -> tuple[int, int]:
    return SMALL[dtype] if isinstance(dtype, int) else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))


def code(rng: np.random.Generator, dtype: Any, n: Any = None) -> Array:
    lo, hi = limits(dtype)
    return np.asarray(rng.integers(lo, hi + 1, n)).astype(dtype)


# Layers

QGEMM = node("QGemm", ["x", "sa", "za", "w", "sb", "zb", "c", "sy", "zy"], ["y"], domain="com.microsoft")
EVERY = np.arange(-(2**22), 2**22, dtype=np.int32).reshape(-1, 2048)


@pytest.mark.sweep
@pytest.mark.cases(1)
@pytest.mark.parametrize(("dtype", "weight"), PAIRS)
def test_every_accumulator_rescales(dtype: Any, weight: Any) -> None:
    """The bias of QGemm may be a matrix: it stands for the accumulators, +-2^22 and some that wrap."""
    rng = np.random.default_rng(1)
    wide = rng.integers(-(2**31), 2**31, (64, 2048)).astype(np.int32)
    wide[0] = 2**31 - 1
    inputs = {k: (f32, []) for k in ("sa", "sb", "sy")} | {"c": (np.int32, [None, 2048]), "zy": (dtype, [])}
    fixed = {"za": dtype(3), "w": np.full((1, 2048), 5, weight), "zb": weight(2)}
    run = ort.session(model([QGEMM], {"x": (dtype, [None, 1]), **inputs}, dtype, **fixed)).run
    for bits, acc in [(9, EVERY), (15, EVERY), (21.5, EVERY), (30, wide)]:
        sa, sb, zy = scales(rng), scales(rng), code(rng, dtype)
        sy = f32(float(sa) * float(sb) * 2.0 ** (bits - 7))
        x = np.full((len(acc), 1), 7, dtype)
        feeds = {"x": x, "sa": np.asarray(sa), "sb": np.asarray(sb), "sy": np.asarray(sy), "c": acc, "zy": zy}
        total = acc.astype(np.int64) + (7 - 3) * (5 - 2)
        assert same(run(None, feeds)[0], ort.requantize(total, sa, sb, sy, zy, *limits(dtype)))


def near_ties(rng: np.random.Generator, factor: Array, zy: int, lo: int, hi: int) -> Array:
    """Accumulators of at most 22 bits around the steps of every factor."""
    steps = np.arange(lo - zy - 1, hi - zy + 2) + 0.5
    acc = np.unique(np.rint(steps / factor.astype(np.float64)[:, None])[..., None] + np.arange(-3, 4)).astype(np.int64)
    acc = acc[np.abs(acc) < 2**22]
    return rng.choice(acc, min(acc.size, 3000), replace=False)


def rows(acc: Array, depth: int, zero: int, reach: int, most: int) -> Array:
    """Rows whose products with (most, ..., most, 1, 1) sum to `acc`."""
    rest, ones = np.divmod(np.abs(acc), most)
    x = np.zeros((acc.size, depth), np.int64)
    x[:, -1], x[:, -2] = ones // 2, ones - ones // 2
    for k in range(depth - 2):
        x[:, k] = np.minimum(rest, reach)
        rest = rest - x[:, k]
    assert not rest.any()
    return x * np.sign(acc)[:, None] + zero


@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize(("dtype", "weight"), PAIRS)
def test_qlinear_matmul(dtype: Any, weight: Any, opset: int) -> None:
    rng = np.random.default_rng(2)
    lo, hi = limits(dtype)
    # Pairs of uint8 * int8 products saturate in kernels for processors without VNNI: these weights have 7 bits.
    most, depth = (63, 660) if dtype is U8 and weight is S8 else (127, 330)
    columns, zw = 24, 3 if weight is U8 else 0
    w = np.repeat(np.r_[np.full(depth - 2, most), 1, 1][:, None] + zw, columns, 1).astype(weight)
    for per_column, constant in product([False, True], repeat=2):
        sa, zy = scales(rng), int(code(rng, dtype))
        sb = scales(rng, columns) if per_column else scales(rng)
        za = int(rng.integers(-5, 6)) + (128 if dtype is U8 else 0)
        sy = f32(float(sa) * float(np.max(sb)) * 2.0 ** rng.uniform(3, 13))
        acc = near_ties(rng, np.atleast_1d(sa * sb / sy), zy, lo, hi)
        x = rows(acc, depth, za, min(hi - za, za - lo), most).astype(dtype)
        zb = np.full(columns, zw, weight) if per_column else weight(zw)
        inputs = {"x": (dtype, [None, depth])} | ({} if constant else {"w": (weight, w.shape)})
        nodes = [node("QLinearMatMul", ["x", "sa", "za", "w", "sb", "zb", "sy", "zy"], ["y"])]
        made = model(nodes, inputs, dtype, opset, sa=sa, za=dtype(za), w=w, sb=sb, zb=zb, sy=sy, zy=dtype(zy))
        y = ort.run(made, {"x": x} if constant else {"x": x, "w": w})[0]
        assert same(y, ort.requantize(np.repeat(acc[:, None], columns, 1), sa, sb, sy, zy, lo, hi))


@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize(("dtype", "weight"), PAIRS)
def test_float_results_and_integer_products(dtype: Any, weight: Any, per_column: bool) -> None:
    rng = np.random.default_rng(3)
    columns = 24 if per_column else None
    x, w, za = code(rng, dtype, (200, 330)), code(rng, weight, (330, 24)), code(rng, dtype)
    zb, sa, sb = code(rng, weight, columns), scales(rng), scales(rng, columns)
    bias, whole = rng.normal(size=24).astype(f32), rng.integers(-(2**20), 2**20, 24).astype(np.int32)
    names = {"sa": sa, "sb": sb, "za": za, "zb": zb, "w": w, "bias": bias, "c": whole}
    acc = ort.matmul_integer(x, w, int(za), zb.astype(np.int64))
    inputs = {"x": (dtype, x.shape)}
    for nodes, output, expected in [
        (node("MatMulInteger", ["x", "w", "za", "zb"], ["y"]), np.int32, acc),
        (
            node("MatMulIntegerToFloat", ["x", "w", "sa", "sb", "za", "zb"], ["y"], domain="com.microsoft"),
            f32,
            ort.rescale_to_float(acc, sa, sb),
        ),
        (
            node("MatMulIntegerToFloat", ["x", "w", "sa", "sb", "za", "zb", "bias"], ["y"], domain="com.microsoft"),
            f32,
            ort.rescale_to_float(acc, sa, sb, bias),
        ),
        (
            node("QGemm", ["x", "sa", "za", "w", "sb", "zb", "c"], ["y"], domain="com.microsoft"),
            f32,
            ort.rescale_to_float(acc + whole, sa, sb),
        ),
    ]:
        assert same(ort.run(model([nodes], inputs, output, **names), {"x": x})[0], expected)
    if not per_column:
        conv = model(
            [node("ConvInteger", ["x", "k", "za", "zb"], ["y"])],
            {"x": (dtype, [1, 330, 1, 1])},
            np.int32,
            k=np.ascontiguousarray(w.T)[:, :, None, None],
            **names,
        )
        y = ort.run(conv, {"x": x[0].reshape(1, 330, 1, 1)})[0]
        assert same(y.ravel(), acc[0])


# Elementwise operators


def binary(op: str, dtype: Any, a: Sequence[int], b: Sequence[int], **parameters: Any) -> onnx.ModelProto:
    nodes = [node(op, ["a", "sa", "za", "b", "sb", "zb", "sy", "zy"], ["y"], domain="com.microsoft")]
    zeros = {k: dtype(v) for k, v in parameters.items() if k[0] == "z"}
    return model(nodes, {"a": (dtype, a), "b": (dtype, b)}, dtype, **(parameters | zeros))


def parameters(rng: np.random.Generator, dtype: Any, mean: Any) -> dict[str, Any]:
    sa, sb = scales(rng), scales(rng)
    sy = f32(mean(float(sa), float(sb)) * 2.0 ** rng.uniform(-1, 1))
    return {"sa": sa, "sb": sb, "sy": sy, **{k: int(code(rng, dtype)) for k in ("za", "zb", "zy")}}


SHAPES = [
    ((64, 64), (64, 64), False),
    ((256,), (), False),
    ((16, 16), (16,), False),
    ((16, 16), (16, 1), False),
    ((4, 1, 16), (4, 4, 16), False),
    ((1, 16, 4, 4), (1, 16, 1, 1), False),
    ((1, 16), (16, 1), False),
    ((), (256,), True),
    ((16, 1), (16, 16), True),
    ((1, 16, 1, 1), (1, 16, 4, 4), True),
    ((16, 1), (1, 16), True),
    ((256, 1), (1,), True),
    ((256, 1), (256, 1), False),
]


@pytest.mark.cases(2)
@pytest.mark.parametrize(("left", "right", "swap"), SHAPES)
def test_qlinear_add(left: tuple[int, ...], right: tuple[int, ...], swap: bool) -> None:
    """Only parameters where the order of a and b matters: about one in a thousand."""
    rng = np.random.default_rng(4)
    found = 0
    for n in range(6000):
        dtype = (U8, S8)[n % 2]
        p = parameters(rng, dtype, lambda a, b: a + b)
        a, b = code(rng, dtype, left), code(rng, dtype, right)
        args = (a, p["sa"], p["za"], b, p["sb"], p["zb"], p["sy"], p["zy"], *limits(dtype))
        expected, other = ort.qlinear_add(*args, swap=swap), ort.qlinear_add(*args, swap=not swap)
        if same(expected, other):
            continue
        assert same(ort.run(binary("QLinearAdd", dtype, left, right, **p), {"a": a, "b": b})[0], expected)
        if (found := found + 1) == 2:
            return
    assert found


@pytest.mark.parametrize("dtype", [U8, S8])
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_every_pair_of_codes(op: str, dtype: Any) -> None:
    rng = np.random.default_rng(5)
    lo, hi = limits(dtype)
    a, b = (c.ravel().astype(dtype) for c in np.meshgrid(np.arange(lo, hi + 1), np.arange(lo, hi + 1)))
    for n in range(20):
        p = parameters(rng, dtype, (lambda a, b: a + b) if op == "QLinearAdd" else (lambda a, b: 32 * a * b))
        if n % 4 == 0:  # ties
            p |= {"sa": f32(2**-3), "sb": f32(2**-4), "sy": f32(2**-2 if op == "QLinearAdd" else 0.5)}
        args = (a, p["sa"], p["za"], b, p["sb"], p["zb"], p["sy"], p["zy"], lo, hi)
        expected = ort.qlinear_add(*args) if op == "QLinearAdd" else ort.qlinear_mul(*args)
        assert same(ort.run(binary(op, dtype, a.shape, b.shape, **p), {"a": a, "b": b})[0], expected)


def quantizers() -> Iterator[tuple[int, Any, Any]]:
    for opset, scale in product([10, 13, 19, 21, 23, 25], [np.float32, np.float16]):
        if opset >= 19 or scale is np.float32:
            kinds = WIDE[:2] + (WIDE[2:] + list(SMALL)[:2] if opset >= 21 else []) + list(SMALL)[2:] * (opset >= 25)
            yield from ((opset, kind, scale) for kind in kinds)


@pytest.mark.parametrize(("opset", "kind", "scale"), list(quantizers()))
def test_quantize_and_dequantize(opset: int, kind: Any, scale: Any) -> None:
    """Every finite float16, or float32 around every step; every code."""
    rng = np.random.default_rng(6)
    lo, hi = limits(kind)
    for n in range(3):
        s = scale(0.25 if n == 0 else 2.0 ** rng.uniform(-6, 2))
        zero = np.asarray(rng.integers(lo, hi + 1) if n else 0)
        steps = (np.arange(lo - zero - 4, hi - zero + 4) + 0.5) * float(s)
        ties = np.r_[steps, steps - float(s) / 2].astype(f32)
        x = np.concatenate([ties, np.nextafter(ties, f32(np.inf)), np.nextafter(ties, f32(-np.inf))])
        if scale is np.float16:
            x = np.arange(65536).astype(np.uint16).view(np.float16)
            x = x[np.isfinite(x)]
        elif kind in WIDE:
            x = np.r_[x, f32([np.nan, np.inf, -np.inf, 1e30])]
        point = helper.make_tensor("z", typed(kind), [], [int(zero)])
        down = [node("QuantizeLinear", ["x", "s", "z"], ["q"]), node("Cast", ["q"], ["y"], to=TensorProto.INT32)]
        made = model(down, {"x": (scale, x.shape)}, np.int32, opset, s=s)
        made.graph.initializer.append(point)
        assert same(ort.run(made, {"x": x})[0], ort.quantize_linear(x, s, zero, lo, hi))
        q = np.arange(lo, hi + 1).astype(np.int32)
        up = [node("Cast", ["x"], ["q"], to=typed(kind)), node("DequantizeLinear", ["q", "s", "z"], ["y"])]
        made = model(up, {"x": (np.int32, q.shape)}, scale, opset, s=s)
        made.graph.initializer.append(point)
        assert same(ort.run(made, {"x": q})[0], ort.dequantize_linear(q, s, zero))


def test_int32_dequantizes_and_casts() -> None:
    rng = np.random.default_rng(7)
    q = np.r_[rng.integers(-(2**31), 2**31, 2**18), np.arange(2**24 - 500, 2**24 + 500), -(2**31)].astype(np.int32)
    for scale in (f32(0.3), f32(0.0017)):
        made = model([node("DequantizeLinear", ["x", "s"], ["y"])], {"x": (np.int32, q.shape)}, f32, s=scale)
        assert same(ort.run(made, {"x": q})[0], ort.dequantize_linear(q, scale))
    made = model([node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)], {"x": (np.int32, q.shape)}, f32)
    assert same(ort.run(made, {"x": q})[0], q.astype(f32))


# What onnxruntime makes of QDQ models

DQ = node("DequantizeLinear", ["x", "sa", "za"], ["a"])
DQW = node("DequantizeLinear", ["w", "sb", "zb"], ["b"])
DQC = node("DequantizeLinear", ["c", "sc"], ["d"])
Q = node("QuantizeLinear", ["t", "sy", "zy"], ["y"])
MATMUL, RELU = node("MatMul", ["a", "b"], ["t"]), node("Relu", ["s"], ["t"])
FLOAT_BIAS = [node("MatMul", ["a", "b"], ["s"]), node("Add", ["s", "f"], ["t"])]
GEMM = node("Gemm", ["a", "b", "d"], ["t"])
LAYERS = {
    "matmul": ([DQ, DQW, MATMUL, Q], ["QLinearMatMul"]),
    "gemm": ([DQ, DQW, DQC, GEMM, Q], ["ms.QGemm"]),
    "gemm, float bias": ([DQ, DQW, node("Gemm", ["a", "b", "f"], ["t"]), Q], ["ms.QGemm"]),
    "matmul, add": ([DQ, DQW, *FLOAT_BIAS, Q], ["ms.QGemm"]),
    "matmul, relu": (
        [DQ, DQW, node("MatMul", ["a", "b"], ["s"]), RELU, Q],
        ["DequantizeLinear", "DequantizeLinear", "MatMul", "Relu", "QuantizeLinear"],
    ),
}


@pytest.mark.parametrize("factor", [1, 2])
@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize(("dtype", "weight"), PAIRS)
def test_fused_layers(dtype: Any, weight: Any, name: str, factor: int) -> None:
    """A float bias becomes an int32 one; the scale of an int32 bias is ignored (`factor`)."""
    rng = np.random.default_rng(8)
    lo, hi = limits(dtype)
    sa, sb, za, zy = scales(rng), scales(rng), code(rng, dtype), dtype((lo + hi + 1) // 2 + 3)
    x, w = code(rng, dtype, (500, 64)), code(rng, weight, (64, 16))
    x[:9] = za  # the bias alone
    zb = weight(0 if weight is S8 else 128)
    nodes, expected = LAYERS[name]
    for reach, step in [(60, 0.7), (20000, 3000)]:
        c = rng.integers(-reach, reach, 16).astype(np.int32)
        f = (rng.normal(size=16) * reach * float(sa * sb)).astype(f32)
        sy, sc = f32(float(sa * sb) * step), f32(sa * sb) * f32(factor)
        made = model(
            nodes, {"x": (dtype, x.shape)}, dtype, sa=sa, za=za, w=w, sb=sb, zb=zb, sy=sy, zy=zy, c=c, f=f, sc=sc
        )
        assert ort.operators(ort.optimized_graph(made, arm=True)) == expected
        acc = ort.matmul_integer(x, w, int(za), int(zb))
        if "gemm" in name or "add" in name:
            acc = acc + (c if name == "gemm" else ort.integer_bias(f, sa, sb))
        if "relu" not in name:
            assert same(ort.run(made, {"x": x}, arm=True)[0], ort.requantize(acc, sa, sb, sy, zy, lo, hi))


@pytest.mark.parametrize("dtype", [U8, S8])
@pytest.mark.parametrize("op", ["Sigmoid", "LeakyRelu", "Tanh", "Relu"])
def test_activations_are_the_float_chain(op: str, dtype: Any) -> None:
    """QLinearSigmoid and QLinearLeakyRelu are tables of DequantizeLinear, float32 operator, QuantizeLinear."""
    rng = np.random.default_rng(9)
    lo, hi = limits(dtype)
    x = np.arange(lo, hi + 1).astype(dtype)
    for n in range(40):
        sa, za, zy = f32(2.0 ** rng.uniform(-8, -3)), code(rng, dtype), code(rng, dtype)
        sy = f32(2.0 ** rng.uniform(-9, -6)) if n % 4 else sa * f32(2)
        nodes = [DQ, node(op, ["a"], ["t"], **({"alpha": 0.25} if op == "LeakyRelu" else {})), Q]
        made = model(nodes, {"x": (dtype, [256])}, dtype, sa=sa, za=za, sy=sy, zy=zy)
        fused = op in ("Sigmoid", "LeakyRelu")
        assert (ort.operators(ort.optimized_graph(made)) == [f"ms.QLinear{op}"]) == fused
        y = ort.run(made, {"x": x})[0]
        assert same(y, ort.run(made, {"x": x}, OFF)[0])
        real = ort.dequantize_linear(x, sa, za.astype(np.int64))
        if op in ("Relu", "LeakyRelu"):
            real = np.where(real >= 0, real, real * f32(0.25 if op == "LeakyRelu" else 0))
            assert same(y, ort.quantize_linear(real, sy, zy.astype(np.int64), lo, hi))
