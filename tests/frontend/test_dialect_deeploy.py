"""Deeploy's integer operators equal its C kernels, which are written here with Python's integers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import hlsgen
from hlsgen.interpreter import graph as reference

Array = Any
#: The representations of an attribute in files.
FORMS: dict[str, Callable[[int], Any]] = {
    "int": int,
    "float": float,
    "scalar": lambda v: numpy_helper.from_array(np.array(v, np.float32)),
    "vector": lambda v: numpy_helper.from_array(np.array([v], np.float32)),
    "integers": lambda v: numpy_helper.from_array(np.array([v], np.int64)),
}
DOMAINS = ["", "PACTOps", "Deeploy"]


def model(op: str, shape: list[int], out: list[int], domain: str, form: str, constants: list[Array], **attributes: int):
    """One operator on float32 data, as in Deeploy's files."""
    protos = {key: FORMS[form](value) for key, value in attributes.items()}
    names = [f"c{i}" for i in range(len(constants))]
    node = helper.make_node(op, ["x", *names], ["y"], name="op", domain=domain, **protos)
    graph = helper.make_graph(
        [node],
        "one",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, out)],
        [numpy_helper.from_array(np.asarray(c, np.float32), n) for n, c in zip(names, constants, strict=True)],
    )
    opsets = {"": 13} | ({domain: 1} if domain else {})
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(*o) for o in opsets.items()], ir_version=8)


def sign(x: int) -> int:
    return (x > 0) - (x < 0)


def gelu(x: int, b: int, unit: int) -> int:
    q = -b if abs(x) > -b else abs(x)
    d = q + b
    return x * ((unit + sign(x) * (-(d * d) + unit)) >> 1)


def hardswish(x: int, three: int, six: int, one_over_six: int) -> int:
    return x * (min(max(x + three, 0), six) * one_over_six)


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * sign(a) * sign(b)


def divided(x: int, c: int, delta: int, eta: int, eps: int) -> int:
    nom, denom = delta * eta * x, eta * c + eps
    return truncated(nom + (1 if nom >= 0 else -1) * (denom >> 1), denom)


def wrapped(x: int) -> int:
    return (x + 128) % 256 - 128


def no_norm(x: int, w: int, b: int, mul: int, d: int) -> int:
    return wrapped(((x * w + b) * mul) >> (d.bit_length() - 1))


WEIGHT, BIAS = np.array([5, -77, 127]), np.array([-3000, 12, 999])
DIVISOR = np.array([3, 10, 127])
CASES: dict[str, tuple[str, list[Array], dict[str, int], Callable[[int, int], int]]] = {
    "gelu": ("iGELU", [], {"b": -30, "one": 1000}, lambda x, c: gelu(x, -30, 1000)),
    "gelu wide": ("iGELU", [], {"b": -177, "one": 30000}, lambda x, c: gelu(x, -177, 30000)),
    "gelu odd": ("iGELU", [], {"b": -5, "one": 14}, lambda x, c: gelu(x, -5, 14)),
    "hardswish": (
        "iHardswish",
        [],
        {"three": 60, "six": 120, "one_over_six": 9},
        lambda x, c: hardswish(x, 60, 120, 9),
    ),
    "no norm": (
        "iNoNorm",
        [WEIGHT, BIAS],
        {"mul": 77, "D": 4096, "n_levels": 256},
        lambda x, c: no_norm(x, int(WEIGHT[c]), int(BIAS[c]), 77, 4096),
    ),
    "division": (
        "IntegerDiv",
        [DIVISOR],
        {"Delta": 64, "eta": 3, "eps": 1},
        lambda x, c: divided(x, int(DIVISOR[c]), 64, 3, 1),
    ),
    "true division": (
        "TrueIntegerDiv",
        [np.array(6)],
        {"Delta": 1, "eta": 1, "eps": 0},
        lambda x, c: divided(x, 6, 1, 1, 0),
    ),
}
ALL_CODES = np.broadcast_to(np.arange(-128, 128, dtype=np.float32)[:, None], (256, 3))


def expected(case: str) -> Array:
    value = CASES[case][3]
    return np.array([[value(int(x), c) for c, x in enumerate(row)] for row in ALL_CODES])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
def test_every_code(case: str, form: str, tmp_path: Path) -> None:
    """All codes of 8 bits, all representations of attributes, each in one of the domains."""
    op, constants, attributes, _ = CASES[case]
    domain = DOMAINS[(list(FORMS).index(form) + list(CASES).index(case)) % 3]
    onnx.save(model(op, [1, 3], [1, 3], domain, form, constants, **attributes), tmp_path / "m.onnx")
    build = hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(input="int8"))
    outputs = reference.evaluate(build.graph, ALL_CODES)
    assert (outputs.reshape(256, 3) == expected(case)).all()


@pytest.mark.sim
@pytest.mark.cases(1)
@pytest.mark.parametrize("case", CASES)
def test_in_hardware(case: str, tmp_path: Path) -> None:
    """Simulation, executed file and certificate agree."""
    op, constants, attributes, _ = CASES[case]
    onnx.save(model(op, [1, 3], [1, 3], "PACTOps", "vector", constants, **attributes), tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out", hlsgen.Options(input="int8"))
    verdict = hlsgen.verify(tmp_path / "out", ["icarus"], 20)
    assert verdict.ok, (verdict.changed, verdict.simulators, verdict.oracle)
    assert verdict.oracle.ran
    assert not verdict.oracle.left
    assert (hlsgen.run(tmp_path / "out", ALL_CODES, "icarus") == expected(case)).all()
    certified = hlsgen.certify(tmp_path / "out")
    assert certified.ok, certified


@pytest.mark.slow
@pytest.mark.sim
@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "shape, axes, keepdims, out",
    [
        ([1, 4, 3, 5], [2, 3], 1, [1, 4, 1, 1]),
        ([1, 7, 6], [1], 0, [1, 6]),
        ([1, 4, 4, 4], [-1, -2], 0, [1, 4]),
    ],
)
def test_mean(shape: list[int], axes: list[int], keepdims: int, out: list[int], tmp_path: Path) -> None:
    """Means are rounded to the nearest, ties up."""
    mean = model("IntegerMean", shape, out, "PACTOps", "int", [], keepdims=keepdims)
    mean.graph.node[0].attribute.append(helper.make_attribute("axes", axes))
    onnx.save(mean, tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "out", hlsgen.Options(input="int8"))
    x = np.random.default_rng(0).integers(-128, 128, (40, *shape[1:]))
    x[:20] //= 40
    count = np.prod(shape) // np.prod(out)
    total = x.sum(axis=tuple(a % len(shape) for a in axes), keepdims=bool(keepdims))
    expected = (2 * total + count) // (2 * count)
    assert (hlsgen.run(tmp_path / "out", x.astype(np.float32), "verilator") == expected).all()
    verdict = hlsgen.verify(tmp_path / "out", ["verilator"], 4)
    assert verdict.ok, (verdict.changed, verdict.simulators, verdict.oracle)
    assert hlsgen.certify(tmp_path / "out").ok


@pytest.mark.parametrize(
    "op, constants, attributes, code",
    [
        ("iGELU", [], {"one": 5}, "HG013"),
        ("iGELU", [], {"b": 5, "one": 5}, "HG013"),
        ("iHardswish", [], {"three": 1, "six": 1 << 20, "one_over_six": 1}, "HG013"),
        ("iNoNorm", [WEIGHT, BIAS], {"mul": 1, "D": 100}, "HG013"),
        ("iNoNorm", [WEIGHT / 2, BIAS], {"mul": 1, "D": 128}, "HG026"),
        ("IntegerDiv", [DIVISOR], {"Delta": 1, "eta": 1, "eps": -3}, "HG022"),
        ("IntegerDiv", [np.arange(1, 6)], {"Delta": 1, "eta": 1, "eps": 0}, "HG023"),
        ("RequantizediGELU", [WEIGHT], {"b": -5, "one": 5}, "HG010"),
    ],
)
def test_refused(op: str, constants: list[Array], attributes: dict[str, int], code: str, tmp_path: Path) -> None:
    onnx.save(model(op, [1, 3], [1, 3], "", "int", constants, **attributes), tmp_path / "m.onnx")
    with pytest.raises(hlsgen.HlsgenError) as error:
        hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(input="int8"))
    assert code in [d.code for d in error.value.diagnostics]


@pytest.mark.parametrize("op", ["RequantizedGemm", "RequantizedMatMul", "MHSA"])
def test_operators_fused_by_deeploy_are_refused(op: str, tmp_path: Path) -> None:
    """The hint says to build from the unfused model."""
    onnx.save(model(op, [1, 3], [1, 3], "Deeploy", "int", [WEIGHT]), tmp_path / "m.onnx")
    with pytest.raises(hlsgen.HlsgenError, match=r"HG010 .*before Deeploy fuses"):
        hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(input="int8"))
