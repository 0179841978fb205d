"""Codes of 16 bits behind scales that are no powers of two: more steps than most realizations take."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import hlsgen
from hlsgen.diagnostics import HlsgenError
from hlsgen.ir import Accumulator, IntegerEncoding
from hlsgen.ir.ops import Add, Cast, IntQuant, Mul, Pair, PairOp, QuantizeLinear
from hlsgen.numerics.fixed import IntType, Rounding
from hlsgen.rescale import FloatScale, Preference, StepFunction, Thresholds, choose_realization, select
from hlsgen.rescale import extract as tracing
from hlsgen.rescale.extract import MAX_STEPS, trace
from hlsgen.rescale.realize import float_scale_match


def model(nodes: list[onnx.NodeProto], kind: int, constants: dict[str, Any], channels: int = 4) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "wide",
        [helper.make_tensor_value_info("x", kind, [1, channels])],
        [helper.make_tensor_value_info("y", TensorProto.INT16, [1, channels])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def agrees(proto: onnx.ModelProto, x: Any, folder: Path, kind: str) -> None:
    onnx.save(proto, folder / "m.onnx")
    build = hlsgen.build(folder / "m.onnx", folder / "build")
    assert [choice.name for choice in build.network.choices.values()] == [kind]
    session = ort.session(proto)
    expected = np.concatenate([session.run(None, {"x": row[None]})[0] for row in x])
    for backend in ("reference", "verilator") if x.shape[1] == 4 else ("reference",):
        assert (hlsgen.run(folder / "build", x, backend) == expected).all()
    assert hlsgen.certify(folder / "build").ok


@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize("channels", [4, 24])
def test_sums_to_int16(tmp_path: Path, channels: int) -> None:
    """Steps of 4 channels are listed; those of 24 are looked at where they are suggested to be."""
    scale = np.resize(np.float32([0.0007, 0.0011, 0.003, 0.0005]), channels) * np.linspace(1, 1.1, channels)
    nodes = [
        helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "s"], ["g"]),
        helper.make_node("QuantizeLinear", ["g", "one", "zero"], ["y"]),
    ]
    proto = model(
        nodes, TensorProto.INT32, {"s": scale.astype(np.float32), "one": np.float32(1), "zero": np.int16(5)}, channels
    )
    x = np.random.default_rng(0).integers(-(2**27), 2**27, (400, channels)).astype(np.int32)
    agrees(proto, x, tmp_path, "float-scale")


@pytest.mark.slow
@pytest.mark.sim
def test_floats_to_int16(tmp_path: Path) -> None:
    nodes = [helper.make_node("QuantizeLinear", ["x", "s", "zero"], ["y"])]
    proto = model(nodes, TensorProto.FLOAT, {"s": np.float32(0.0013), "zero": np.int16(5)})
    agrees(proto, np.random.default_rng(1).normal(0, 20, (400, 4)).astype(np.float32), tmp_path, "float-units")


@pytest.mark.slow
@pytest.mark.sim
def test_a_layer_of_18_channels(tmp_path: Path) -> None:
    """16-bit QDQ: sums with a float bias, which no product is: the operations themselves."""
    r, size = np.random.default_rng(2), 18
    constants = {
        "w": r.integers(-127, 128, (size, size)).astype(np.int8),
        "ws": np.float32(0.003),
        "wz": np.int8(0),
        "b": r.integers(-(2**20), 2**20, size).astype(np.int32),
        "bs": np.float32(0.003 * 0.0002),
        "bz": np.int32(0),
        "xs": np.float32(0.0002),
        "xz": np.int16(-7),
        "ys": np.float32(0.00031),
        "yz": np.int16(12),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "xs", "xz"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"]),
        helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["bd"]),
        helper.make_node("Gemm", ["xd", "wd", "bd"], ["g"]),
        helper.make_node("Relu", ["g"], ["h"]),
        helper.make_node("QuantizeLinear", ["h", "ys", "yz"], ["y"]),
    ]
    onnx.save(model(nodes, TensorProto.FLOAT, constants, size), tmp_path / "m.onnx")
    build = hlsgen.build(tmp_path / "m.onnx", tmp_path / "build", hlsgen.Options(target_cycles=size * size))
    assert [choice.name for choice in build.network.choices.values()] == ["float-units"]
    x = r.normal(0, 2, (60, size)).astype(np.float32)
    expected = hlsgen.run(tmp_path / "build", x, "reference")
    assert len(np.unique(expected)) > 200
    assert (hlsgen.run(tmp_path / "build", x, "verilator") == expected).all()
    assert hlsgen.certify(tmp_path / "build").ok


CONSTANTS = {"a": np.int32([[3, -70, 900, 5]]), "s": np.float32(0.0007), "ys": np.float32(0.5), "zero": np.int16(5)}
CHANGES: dict[str, tuple[Any, str]] = {
    "a": (np.int32([[3, -70, 901, 5]]), "the model's input is (x * 1 + 901) * 1.0"),
    "s": (np.float32(0.00070000003), "Mul: the model's constant"),
    "ys": (np.float32(0.25), "the division by the scale: the model's constant"),
    "zero": (np.int16(6), "the zero point: the model's constant"),
}


def test_certified_integers(tmp_path: Path) -> None:
    """Integer sums, conversion, product, quantizer as units; a model with another constant is another one."""
    nodes = [
        helper.make_node("Cast", ["x"], ["w"], to=TensorProto.INT32),
        helper.make_node("Add", ["w", "a"], ["i"]),
        helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "s"], ["g"]),
        helper.make_node("QuantizeLinear", ["g", "ys", "zero"], ["y"]),
    ]
    onnx.save(model(nodes, TensorProto.INT16, CONSTANTS), tmp_path / "m.onnx")
    build = tmp_path / "build"
    hlsgen.build(tmp_path / "m.onnx", build, hlsgen.Options(realize={"": "float-units"}))
    assert hlsgen.certify(build).ok
    text = (build / "certificate.json").read_text()
    for name, (value, message) in CHANGES.items():
        changed_model = model(nodes, TensorProto.INT16, CONSTANTS | {name: value}).SerializeToString()
        old = hashlib.sha256((build / "model.onnx").read_bytes()).hexdigest()
        text = text.replace(old, hashlib.sha256(changed_model).hexdigest())
        (build / "model.onnx").write_bytes(changed_model)
        (build / "certificate.json").write_text(text)
        certified = hlsgen.certify(build)
        assert message in str([d.message for d in certified.problems]), name


def wide_function(channels: int, bits: int = 28, seed: int = 0) -> StepFunction:
    """int32 sums to int16, one product."""
    r = np.random.default_rng(seed)
    scale = (r.uniform(0.5, 1, channels) * 2.0 ** (16 - bits)).astype(np.float32)
    zero, add = np.zeros(channels, np.int64), r.integers(-(10**5), 10**5, channels)
    int16 = IntType(-(1 << 15), (1 << 15) - 1)
    type_ = IntType(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    end = QuantizeLinear(np.ones(channels, np.float32), zero + np.arange(channels) % 3, int16, "int16")
    ops = (Add(add.astype(np.int32)), Cast("float32"), Mul(scale))
    return StepFunction(
        "f",
        IntegerEncoding("int32", zero),
        ops,
        end,
        np.arange(channels),
        zero + type_.lo,
        zero + type_.hi,
        type_,
        int16,
    )


@pytest.mark.cases(1)
@pytest.mark.parametrize("bits", [18, 24, 28, 31])
def test_products_without_a_list_of_steps(bits: int) -> None:
    """As with the list; one channel that differs is found."""
    f = wide_function(3, bits, bits)
    steps = trace(f, 1 << 16)
    parts = float_scale_match.candidate(f)
    assert parts is not None
    scale, offset, zero = (np.ascontiguousarray(np.broadcast_to(p, 3)) for p in parts)
    target = float_scale_match.unlisted(f, scale, offset, zero)
    assert not isinstance(steps, str)
    assert not isinstance(target, str)
    listed = float_scale_match.MonotoneTarget.of(steps)
    for name in ("lo", "hi", "first", "last", "bottom", "top"):
        assert (getattr(target, name) == getattr(listed, name)).all(), name
    compared = np.concatenate([x for x, _ in target.points()])
    for s in range(3):
        assert np.isin(steps.inner(s), compared[:, s]).all()
        assert np.isin(steps.inner(s) - 1, compared[:, s]).all()
    assert all((codes == f.evaluate(x)).all() for x, codes in target.points())
    by_search, by_steps = float_scale_match.find(f, None), float_scale_match.find(f, steps)
    assert isinstance(by_search, FloatScale)
    assert isinstance(by_steps, FloatScale)
    x = np.random.default_rng(bits).integers(f.lo, f.hi + 1, (50000, 3))
    assert (by_search.apply(x) == by_steps.apply(x)).all()
    assert (by_search.apply(x) == f.evaluate(x)).all()
    assert by_search.bits == by_steps.bits


def test_products_that_are_none() -> None:
    """A second rounding between the product and the code, in many channels."""
    f = wide_function(20)
    third, three, less = (np.full(20, value, np.float32) for value in (1 / 3, 3, -1))
    reason = float_scale_match.find(replace(f, ops=(*f.ops, Mul(third), Mul(three))), None)
    assert isinstance(reason, str)
    assert "rne(float32(" in reason
    falls = float_scale_match.find(replace(f, ops=(*f.ops, Mul(less))), None)
    assert falls == "a channel falls, or its scale is no positive number"
    wraps = float_scale_match.find(replace(f, ops=(Add(np.full(20, 2**31 - 1, np.int32)), *f.ops)), None)
    assert wraps == "it is not known to be monotone"


def test_traced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pair of operands, and a wide function: each looked at once, all of it."""
    calls: list[str] = []

    def counted(name: str, call: Any) -> Any:
        def run(*arguments: Any) -> Any:
            calls.append(name)
            return call(*arguments)

        return run

    monkeypatch.setattr(tracing, "_exhaustive", counted("every", tracing._exhaustive))
    monkeypatch.setattr(select.pair, "find", counted("pair", select.pair.find))
    scales, zeros = (0.013, 0.021, 0.03), (1, 2, 3)
    end = Pair(PairOp.ADD, IntType(-128, 127), "int8", scales, zeros)
    none, bytes_ = np.zeros(1, np.int64), IntType(0, (1 << 16) - 1)
    f = StepFunction("f", IntegerEncoding("uint16", none), (), end, none, none, none + bytes_.hi, bytes_, end.type)
    assert choose_realization(f, np.zeros((1, 1), np.int64)).name == "pair"
    assert calls == ["every", "pair"]


def test_few_steps_over_many_codes() -> None:
    """Thirteen inputs with codes far apart are listed; more than 4095 steps go to what can have them."""
    zero = np.zeros(1, np.int64)
    ones = np.ones(1, np.float32)
    codes = IntType(0, (1 << 16) - 1)
    few = StepFunction(
        "f",
        Accumulator(1, zero, np.full(1, 4096.0)),
        (),
        IntQuant(ones, 0 * ones, codes, Rounding.ROUND),
        zero,
        zero,
        zero + 12,
        IntType(0, 12),
        codes,
    )
    choice = choose_realization(few, np.zeros((1, 1), np.int64))
    assert choice.steps is not None
    assert choice.steps.steps == 12
    many = wide_function(2)
    chosen = choose_realization(many, np.array([[0, 1]]), Preference(forced="thresholds"))
    assert chosen.steps is None
    assert isinstance(chosen.realization, Thresholds)
    assert len(chosen.realization.table) > MAX_STEPS
    x = np.random.default_rng(0).integers(many.lo, many.hi + 1, (300, 2))
    assert (chosen.realization.apply(x) == many.evaluate(x)).all()


def test_forced_where_it_is_impossible() -> None:
    f = wide_function(2)
    for kind, reason in (("pair", "it does not apply to functions of this kind"), ("scale", "scale: it has ")):
        with pytest.raises(HlsgenError) as error:
            choose_realization(f, np.array([[0, 1]]), Preference(forced=kind))
        (found,) = error.value.diagnostics
        assert found.code == "HG037"
        assert found.message.startswith(f"the implementation {kind!r} is impossible here. {reason}")
        assert "Leave --realize out" in str(found.hint)
