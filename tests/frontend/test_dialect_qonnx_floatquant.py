"""FloatQuant: the function equals qonnx and ml_dtypes, networks equal qonnx; refused parameters."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from models import DOMAIN, Net
from numpy.typing import NDArray
from onnx import numpy_helper
from oracles import Qonnx
from paths import shared_model
from qonnx.custom_op.general.floatquant import compute_max_val, float_quant

import hlsgen
from hlsgen.interpreter.graph import encode_input
from hlsgen.ir.evaluate import decode, decoding, quantize
from hlsgen.ir.ops import FloatQuant
from hlsgen.numerics.fixed import Rounding

Array = NDArray[Any]
E4M3 = (4.0, 3.0, 7.0, 448.0)
FLAGS = {"has_inf": 0, "has_nan": 1, "has_subnormal": 1, "saturation": 1, "rounding_mode": "ROUND"}

#: Exponent bits, mantissa bits, bias, largest value (None: all that the bits hold).
FORMATS: list[tuple[int, int, int, float | None]] = [
    (4, 3, 7, 448),
    (5, 2, 15, 57344),
    (2, 1, 1, None),
    (3, 2, 3, None),
    (2, 3, 1, None),
    (4, 3, 7, None),
    (4, 3, 8, 240),
    (5, 2, 16, None),
    (1, 0, 0, None),
    (1, 3, 1, None),
    (3, 0, 3, None),
    (2, 1, 1, 5),
    (4, 3, 7, 445),
    (3, 4, -5, None),
    (3, 4, 90, None),
    (3, 4, 111, None),
    (3, 4, -60, None),
    (2, 10, 1, None),
    (1, 20, 3, None),
    (1, 23, 0, None),
    (5, 5, 15, 40000),
    (4, 1, 30, 2.0**-16),
]


def inputs() -> Array:
    """Every float16 as float32, random float32 of all and of usual sizes, and neighbours of powers of two."""
    r = np.random.default_rng(1)
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    bits = r.integers(0, 1 << 32, 50_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    usual = (r.normal(size=50_000) * 10 ** r.uniform(-3, 3, 50_000)).astype(np.float32)
    powers = np.ldexp(np.float32(1), np.arange(-126, 128)).astype(np.float32).view(np.int32)[:, None]
    neighbours = (powers + np.arange(-90, 4)).astype(np.int32).view(np.float32).ravel()
    return np.concatenate([halves, bits, usual, neighbours, -neighbours])


def quantized(op: FloatQuant, x: Array) -> Array:
    return decode(decoding(op), quantize(op, x))


@pytest.mark.parametrize("mode", list(Rounding))
@pytest.mark.sweep
def test_the_function_of_qonnx(mode: Rounding) -> None:
    """Bit for bit; where qonnx gives NaN, infinities saturate and NaN is the lowest number."""
    x = inputs()
    varied = np.resize(np.float32([0.3, 1, 7.7e-3, 2.0**-9, 1e5]), x.shape)
    for exponent, mantissa, bias, max_value in FORMATS:
        single = [np.asarray(v, np.float32) for v in (exponent, mantissa, bias)]
        largest = float(compute_max_val(*single)) if max_value is None else float(max_value)
        for scale, signed in ((np.float32([1]), True), (varied, True), (varied, False)):
            op = FloatQuant(scale, mantissa, 1 - bias, largest, signed, mode)
            outputs = quantized(op, x)
            with np.errstate(all="ignore"):
                limit = None if max_value is None else np.float32(max_value)
                expected = float_quant(x, scale, *single, signed, limit, rounding_mode=mode.name.lower())
                expected = expected.astype(np.float32)  # as the node does
                y = x / scale
            nan = np.isnan(expected)
            # Steps of 2^127 are too large for some numpy.exp2, steps of 2^128 for float32.
            usable = (np.abs(y) < 2.0**126) | ~np.isfinite(y) | (mantissa > 0)
            assert np.array_equal(outputs[~nan & usable], expected[~nan & usable]), (
                exponent,
                mantissa,
                bias,
                max_value,
            )
            nan &= usable
            assert not np.isfinite(y[nan]).any()
            codes = quantize(op, x[nan]) if scale.size == 1 else quantize(op, x)[nan]
            assert (codes == np.where(y[nan] > 0, op.type.hi, op.type.lo)).all()


@pytest.mark.parametrize(
    ("name", "mantissa", "bias"),
    [
        ("float8_e4m3fn", 3, 7),
        ("float8_e5m2", 2, 15),
        ("float4_e2m1fn", 1, 1),
        ("float6_e3m2fn", 2, 3),
        ("float6_e2m3fn", 3, 1),
    ],
)
def test_the_types_of_ml_dtypes(name: str, mantissa: int, bias: int) -> None:
    kind = getattr(ml_dtypes, name)
    largest = float(ml_dtypes.finfo(kind).max)
    op = FloatQuant(np.ones(1, np.float32), mantissa, 1 - bias, largest, True, Rounding.ROUND)
    x = inputs()
    x = x[~np.isnan(x)]
    outputs = quantized(op, x)
    with np.errstate(all="ignore"):
        expected = x.astype(kind).astype(np.float32)
    inside = np.abs(x) <= largest
    assert np.array_equal(outputs[inside], expected[inside])
    assert np.array_equal(outputs[~inside], np.copysign(largest, x[~inside]))
    assert float(ml_dtypes.finfo(kind).smallest_subnormal) == 2.0**op.step


# --------------------------------------------------------------------------- networks


def minifloat(net: Net, scale: Any = 1.0, form: Any = E4M3, name: str = "q", **flags: Any) -> Net:
    return net.then("FloatQuant", scale, *form, name=name, domain=DOMAIN, **{**FLAGS, **flags})


def linear(net: Net, rows: int, columns: int, seed: int, scale: Any, form: Any = E4M3, **flags: Any) -> Net:
    """A MatMul with FloatQuant weights (columns, rows)."""
    data = net.last
    weight = np.random.default_rng(seed).normal(size=(columns, rows)).astype(np.float32)
    net.node("FloatQuant", weight, scale, *form, name=f"w{seed}", domain=DOMAIN, **{**FLAGS, **flags})
    return net.node("MatMul", data, net.last, name=f"fc{seed}")


def weights_only() -> Net:
    """IntQuant data, FloatQuant weights with a scale for each output channel."""
    return linear(Net().quant(scale=0.125, bits=6.0, signed=1, narrow=0), 3, 4, 1, np.float32([[0.5, 0.25, 2]]))


def data_only() -> Net:
    """FloatQuant data, IntQuant weights."""
    net = minifloat(Net(), 0.5, (3.0, 2.0, 3.0, 28.0))
    data, weight = net.last, np.random.default_rng(6).normal(size=(4, 3)).astype(np.float32)
    net.node("IntQuant", weight, 0.25, 0.0, 4.0, name="w6", domain=DOMAIN, signed=1, narrow=0)
    return net.node("MatMul", data, net.last, name="fc6")


def data_and_weights() -> Net:
    return linear(minifloat(Net(), 0.25), 3, 4, 2, 2.0**-6, (2.0, 3.0, 1.0, 7.5))


def in_the_middle() -> Net:
    """FloatQuant between two layers, after a Relu, with another rounding mode than the default."""
    net = linear(minifloat(Net(), 0.25, (2.0, 3.0, 1.0, 7.5)), 5, 4, 3, 0.25, (2.0, 1.0, 1.0, 6.0))
    net.then("Relu").then("Mul", 0.75)
    return linear(minifloat(net, 0.5, E4M3, "middle", rounding_mode="CEIL"), 3, 5, 4, 0.125)


def at_the_end() -> Net:
    """FloatQuant per channel, after a bias."""
    net = linear(minifloat(Net(), 0.125), 3, 4, 5, 0.25, (2.0, 1.0, 1.0, 6.0)).then("Add", np.float32([0.5, -3, 0.7]))
    return minifloat(net, np.float32([[0.5, 1, 0.0625]]), (3.0, 3.0, 3.0, 30.0), "end", rounding_mode="floor")


NETS: list[Callable[[], Net]] = [weights_only, data_only, data_and_weights, in_the_middle, at_the_end]


def samples(count: int, width: int, seed: int = 0) -> Array:
    """Sizes within three binades of 1, so that float32 sums of minifloats are exact."""
    r = np.random.default_rng(seed)
    return (r.choice([-1, 1], (count, width)) * 2 ** r.uniform(-3, 1.5, (count, width))).astype(np.float32)


@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize("net", NETS, ids=lambda f: f.__name__)
def test_networks(net: Callable[[], Net], tmp_path: Path) -> None:
    """Scales are powers of two, so that the executor computes exactly, and every bit agrees."""
    model = net().model()
    onnx.save(model, tmp_path / "net.onnx")
    hlsgen.build(tmp_path / "net.onnx", tmp_path / "out")
    x = samples(150, 4)
    expected = Qonnx(model)(x)
    assert len(np.unique(expected)) > 12
    assert np.array_equal(hlsgen.run(tmp_path / "out", x).reshape(expected.shape), expected)
    verdict = hlsgen.verify(tmp_path / "out", ["icarus"], frames=40)
    assert verdict.ok, verdict


@pytest.mark.sim
@pytest.mark.parametrize("mode", list(Rounding))
def test_alone(mode: Rounding, tmp_path: Path) -> None:
    """FloatQuant of a float32 input, and of a fixed-point input in hardware."""
    model = minifloat(Net(), 0.3, (3.0, 2.0, 3.0, 28.0), rounding_mode=mode.name).model()
    onnx.save(model, tmp_path / "net.onnx")
    x = np.random.default_rng(2).integers(-2048, 2048, (100, 4)).astype(np.float32) / 64
    for kind in ("float32", "fixed:12,6"):
        hlsgen.build(tmp_path / "net.onnx", tmp_path / kind[:5], hlsgen.Options(input=kind))
        assert np.array_equal(hlsgen.run(tmp_path / kind[:5], x).reshape(x.shape), Qonnx(model)(x))
    assert mode != Rounding.FLOOR or hlsgen.verify(tmp_path / "fixed", ["icarus"], frames=40).ok


@pytest.mark.sim
def test_the_model_of_brevitas(tmp_path: Path) -> None:
    """Scales that are no powers of two: exact sums, rounded once. Scales of powers of two: all bits equal qonnx's."""
    path = shared_model("public/qonnx_floatquant_exec_qonnx_act_weight_fp8")
    model = onnx.load(path)
    hlsgen.build(path, tmp_path / "out")
    assert hlsgen.verify(tmp_path / "out", ["icarus"], frames=40).ok
    x = samples(60, 3) / 2
    outputs = hlsgen.run(tmp_path / "out", x).reshape(60, 16)
    constants = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    scale, factor = (constants[f"/{k}_quant/export_handler/Constant_output_0"] for k in ("input", "weight"))
    bits = [np.asarray(v, np.float32) for v in E4M3[:3]]
    top = np.float32(448)
    a = float_quant(x, scale, *bits, max_val=top) / scale
    w = float_quant(constants["weight"], factor, *bits, max_val=top) / factor
    units = (np.round(a * 512).astype(np.int64) @ np.round(w * 512).astype(np.int64).T).tolist()
    unit = Fraction(float(scale)) * Fraction(float(factor)) / 512**2
    sums = np.array([[nearest(n * unit) for n in row] for row in units], np.float32)
    assert np.array_equal(outputs, sums + constants["bias"])
    assert np.allclose(outputs, Qonnx(model)(x), rtol=0, atol=4e-7)  # it rounds every product and sum
    for item in model.graph.initializer:
        if item.name.endswith("quant/export_handler/Constant_output_0"):
            item.CopyFrom(numpy_helper.from_array(np.float32(2.0**-9), item.name))
    onnx.save(model, tmp_path / "powers.onnx")
    hlsgen.build(tmp_path / "powers.onnx", tmp_path / "powers")
    assert np.array_equal(hlsgen.run(tmp_path / "powers", x).reshape(60, 16), Qonnx(model)(x))


def nearest(exact: Fraction) -> np.float32:
    """The float32 next to a fraction that is no tie."""
    rounded = np.float32(float(exact))
    around = [np.nextafter(rounded, np.float32(end)) for end in (-np.inf, np.inf)]
    return min([rounded, *around], key=lambda v: abs(Fraction(float(v)) - exact))


def test_infinite_and_undefined_data(tmp_path: Path) -> None:
    """The host's quantizer of the input saturates like hardware."""
    onnx.save(data_and_weights().model(), tmp_path / "net.onnx")
    graph = hlsgen.check(tmp_path / "net.onnx").graph
    x = np.float32([[np.inf, -np.inf, np.nan, 1e38]])
    assert encode_input(graph, x[None]).ravel().tolist() == [229376, -229376, -229376, 229376]


# --------------------------------------------------------------------------- refusals

BAD: dict[str, tuple[str, str, Callable[[], Net]]] = {
    "fractional exponent": ("HG021", "exponent_bitwidth is 4.5", lambda: minifloat(Net(), 1.0, (4.5, 3.0, 7.0, 448.0))),
    "fractional mantissa": ("HG021", "mantissa_bitwidth is 2.5", lambda: minifloat(Net(), 1.0, (4.0, 2.5, 7.0, 448.0))),
    "fractional bias": ("HG021", "exponent_bias is 0.5", lambda: minifloat(Net(), 1.0, (4.0, 3.0, 0.5, 448.0))),
    "many exponent bits": ("HG021", "exponent_bitwidth is 9", lambda: minifloat(Net(), 1.0, (9.0, 3.0, 7.0, 448.0))),
    "negative mantissa": ("HG021", "mantissa_bitwidth is -1", lambda: minifloat(Net(), 1.0, (4.0, -1.0, 7.0, 448.0))),
    "widths per channel": (
        "HG021",
        "has the shape [4]",
        lambda: minifloat(Net(), 1.0, (np.float32([4] * 4), *E4M3[1:])),
    ),
    "e5m2 is too wide": ("HG021", "need 33 bits", lambda: minifloat(Net(), 1.0, (5.0, 2.0, 15.0, 57344.0))),
    "bfloat16 is too wide": ("HG021", "need 262 bits", lambda: minifloat(Net(), 1.0, (8.0, 7.0, 127.0, 3.3895314e38))),
    "just too wide": ("HG021", "need 26 bits", lambda: minifloat(Net(), 1.0, (5.0, 2.0, 15.0, 256.0))),
    "max_val between steps": ("HG021", "no multiple", lambda: minifloat(Net(), 1.0, (2.0, 1.0, 1.0, 5.25))),
    "subnormals only": ("HG021", "no multiple", lambda: minifloat(Net(), 1.0, (0.0, 3.0, 1.0, 448.0))),
    "max_val 0": ("HG021", "max_val is 0", lambda: minifloat(Net(), 1.0, (4.0, 3.0, 7.0, 0.0))),
    "max_val NaN": ("HG027", "max_val is NaN", lambda: minifloat(Net(), 1.0, (4.0, 3.0, 7.0, np.nan))),
    "max_val per channel": (
        "HG021",
        "max_val has the shape",
        lambda: minifloat(Net(), 1.0, (*E4M3[:3], np.float32([4] * 4))),
    ),
    "no saturation": ("HG013", "saturation is 0", lambda: minifloat(Net(), saturation=0)),
    "strange flag": ("HG013", "has_inf is 2", lambda: minifloat(Net(), has_inf=2)),
    "unknown rounding": ("HG025", "SOMEHOW", lambda: minifloat(Net(), rounding_mode="SOMEHOW")),
    "scale 0": ("HG022", "scale is 0.0", lambda: minifloat(Net(), 0.0)),
    "tiny scale": ("HG022", "out of float32", lambda: minifloat(Net(), 1e-37)),
    "huge scale": ("HG022", "out of float32", lambda: minifloat(Net(), 1e38)),
    "bias out of range": ("HG022", "out of float32", lambda: minifloat(Net(), 1.0, (2.0, 1.0, 130.0, 1.0))),
    "scale of two axes": (
        "HG023",
        "scale has the shape",
        lambda: minifloat(Net((1, 2, 4)), np.ones((2, 4), np.float32)),
    ),
    "float16 parameter": ("HG026", "float16", lambda: minifloat(Net(), 1.0, (4.0, np.float16([3]), 7.0, 448.0))),
    "wide bias, HALF_UP": (
        "HG026",
        "float64",
        lambda: minifloat(Net(), 1.0, (4.0, 3.0, np.int64([7]), 448.0), rounding_mode="HALF_UP"),
    ),
    "max_val missing": ("HG014", "max_val is missing", lambda: minifloat(Net(), 1.0, E4M3[:3])),
    "computed scale": (
        "HG020",
        "computed from the model's input",
        lambda: Net().node("FloatQuant", 1.0, "x", *E4M3, domain=DOMAIN, **FLAGS),
    ),
    "computed width": (
        "HG020",
        "not a constant",
        lambda: Net((1, 1)).then("Relu").node("FloatQuant", "t0", 1.0, "t0", *E4M3[1:], domain=DOMAIN, **FLAGS),
    ),
    "sum too wide": (
        "HG033",
        "accumulator",
        lambda: linear(
            minifloat(Net((1, 400)), 1.0, (5.0, 2.0, 15.0, 127.5)), 2, 400, 1, 0.0625, (5.0, 2.0, 15.0, 127.5)
        ),
    ),
    "rows of the input differ": (
        "HG033",
        "accumulator needs",
        lambda: linear(minifloat(Net(), np.float32([[1, 0.3, 1, 1]])), 3, 4, 1, 1.0),
    ),
    "columns of the weights differ": (
        "HG034",
        "scale differs",
        lambda: linear(minifloat(Net()), 3, 4, 1, np.float32([[1], [0.3], [1], [1]])),
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_refused(case: str, tmp_path: Path) -> None:
    code, text, net = BAD[case]
    onnx.save(net().model(), tmp_path / "net.onnx")
    with pytest.raises(hlsgen.HlsgenError) as error:
        hlsgen.check(tmp_path / "net.onnx")
    assert any(d.code == code and text in d.message for d in error.value.diagnostics), error.value


def test_all_problems_at_once(tmp_path: Path) -> None:
    net = minifloat(Net(), 0.0, (4.5, 3.0, 7.0, np.nan), saturation=0, rounding_mode="NO")
    onnx.save(net.model(), tmp_path / "net.onnx")
    with pytest.raises(hlsgen.HlsgenError) as error:
        hlsgen.check(tmp_path / "net.onnx")
    assert {d.code for d in error.value.diagnostics} == {"HG013", "HG021", "HG022", "HG025", "HG027"}


def test_parameters_of_other_types(tmp_path: Path) -> None:
    """Whole numbers stored as integers, an infinite max_val, attributes left out."""
    form = (np.int64([3]), np.int64([2]), np.float64([3]), np.float64([np.inf]))
    net = Net().then("FloatQuant", np.float32([0.5]), *form, domain=DOMAIN)
    onnx.save(net.model(), tmp_path / "net.onnx")
    op = hlsgen.check(tmp_path / "net.onnx", hlsgen.Options(input="codes")).graph.encode
    assert isinstance(op, FloatQuant)
    assert (op.mantissa, op.minimum_exponent, op.largest, op.mode) == (2, -2, 28.0, Rounding.ROUND)
