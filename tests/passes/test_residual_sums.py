"""Sums of tensors on one grid, in layers and before quantizers: against exact fractions and the executors.

The networks are residual: both branches of an Add have scales that are small multiples of one unit, no quantizer
follows, and a layer and the next Add use the sum.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import file_oracle
import numpy as np
import onnx
import ort
import pytest
from builds import assert_verified
from models import newer
from numpy.typing import NDArray
from onnx import TensorProto, helper
from onnx_graph import QONNX, OnnxGraph
from oracles import Qonnx
from residual_nets import u_net

import hlsgen
from hlsgen.diagnostics import Collector, HlsgenError
from hlsgen.frontend import import_model
from hlsgen.interpreter import graph as reference
from hlsgen.interpreter.equivalence import compare
from hlsgen.ir import Graph, Model
from hlsgen.passes import InputMode, lower

Array = NDArray[Any]
#: About 0.1, so short that 7 times it is a float32 number.
SHORT = round(0.1 * 2**23) / 2**23
#: Multiples of the unit that the scales of the three terms of a sum are.
MULTIPLES = {"equal": (1, 1, 1), "halves": (1, 2, 1), "thirds": (2, 3, 6), "large": (255, 256, 3)}


def once(number: Fraction) -> np.float32:
    """Rounded to float32, to nearest, ties to even."""
    guess = np.float32(float(number))
    neighbours = [np.nextafter(guess, np.float32(-np.inf)), guess, np.nextafter(guess, np.float32(np.inf))]
    return min(neighbours, key=lambda f: (abs(Fraction(float(f)) - number), int(f.view(np.int32)) % 2))


@dataclass
class Residual:
    """x, a layer, two branches, their sum; a layer on that, added to it; a layer on all; each branch quantized.

    `scales`: of the input, of three terms, of the output; `weights`: codes of 4 bits, scale w.
    """

    scales: tuple[np.float32, ...]
    weights: tuple[Array, ...]
    w: np.float32
    #: How near the closest value of each frame is to a tie of its quantizer, in steps.
    ties: Array = field(default_factory=lambda: np.zeros(0))

    def write(self, form: str) -> onnx.ModelProto:
        n = OnnxGraph(labels=True)

        def quant(data: str, scale: np.float32) -> str:
            if form == "qonnx":
                return n.add("IntQuant", [data, scale, 0.0, 8.0], domain=QONNX)
            kind = np.uint8 if data == "x" else np.int8  # no group that onnxruntime fuses
            zero = n.const(128 if data == "x" else 0, kind)
            return n.add("DequantizeLinear", [n.add("QuantizeLinear", [data, scale, zero]), scale, zero])

        def layer(data: str, number: int) -> str:
            codes = self.weights[number]
            if form == "qonnx":
                real = codes.astype(np.float32) * self.w
                return n.add("MatMul", [data, n.add("IntQuant", [real, self.w, 0.0, 4.0], domain=QONNX)])
            weight = n.add("DequantizeLinear", [n.const(codes, np.int8), self.w, n.const(0, np.int8)])
            return n.add("MatMul", [data, weight])

        x, a, b, c, end = self.scales
        start = quant("x", x)
        total = n.add("Add", [quant(layer(start, 0), a), quant(layer(start, 1), b)])
        total = n.add("Sub", [total, quant(layer(total, 2), c)])
        last = quant(layer(total, 3), end)
        shape = [1, 6]
        ins, outs = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", last))
        return newer(n.proto("residual", [ins], [outs], [("", 17), (QONNX, 1)]))

    def codes(self, x: Array) -> Array:
        """Codes of the output, by exact fractions."""
        rows = []
        self.ties = np.ones(len(x))
        for frame, sample in enumerate(x):

            def quantized(real: Any, scale: np.float32, frame: int = frame) -> list[int]:
                y = np.array([np.float32(v) / scale for v in real])
                rounded = np.clip(np.rint(y), -128, 127)
                inside = np.abs(y) < 129
                self.ties[frame] = min(self.ties[frame], np.abs(np.abs(y - np.floor(y)) - 0.5)[inside].min(initial=1))
                return [int(v) for v in rounded]

            def layer(data: list[Fraction], number: int) -> list[np.float32]:
                w = Fraction(float(self.w))
                weight = self.weights[number].tolist()
                return [
                    once(sum((v * row[i] * w for v, row in zip(data, weight, strict=True)), Fraction(0)))
                    for i in range(6)
                ]

            def reals(codes: list[int], scale: np.float32) -> list[Fraction]:
                return [c * Fraction(float(scale)) for c in codes]

            sx, a, b, c, end = self.scales
            start = reals(quantized(sample, sx), sx)
            operands = [reals(quantized(layer(start, k), s), s) for k, s in ((0, a), (1, b))]
            total = [p + q for p, q in zip(*operands, strict=True)]
            third = reals(quantized(layer(total, 2), c), c)
            total = [p - q for p, q in zip(total, third, strict=True)]
            rows.append(quantized(layer(total, 3), end))
        return np.array(rows)


def residual(seed: int, multiples: tuple[int, ...]) -> Residual:
    rng = np.random.default_rng(seed)
    unit = np.float32(int(rng.integers(1 << 15, 1 << 16)) * 2.0**-16 * 0.2 / max(multiples))
    unit = np.float32(np.round(float(unit) * 2**26) / 2**26)  # so short that the multiples are float32 numbers
    terms = [np.float32(unit * m) for m in multiples]
    assert [Fraction(float(t)) for t in terms] == [Fraction(float(unit)) * m for m in multiples]
    weights = tuple(rng.integers(-7, 8, (6, 6)) for _ in range(4))
    ends = (np.float32(rng.uniform(0.03, 0.05)), *terms, np.float32(rng.uniform(0.3, 0.5)))
    return Residual(ends, weights, np.float32(rng.uniform(0.05, 0.1)))


def both_forms(proto: onnx.ModelProto, folder: Path, mode: str = "codes") -> tuple[Model, Graph]:
    onnx.save(proto, folder / "m.onnx")
    problems = Collector()
    model = import_model(folder / "m.onnx", problems)
    problems.finish()
    assert model is not None
    return model, lower(model, InputMode(mode), Collector())


def outputs(graph: Graph, x: Array, scale: np.float32) -> Array:
    real = reference.decode_output(graph, reference.run_layers(graph, reference.encode_input(graph, x))[-1])
    return np.rint(np.asarray(real).reshape(len(x), -1) / scale).astype(np.int64)


@pytest.mark.cases(3)
@pytest.mark.parametrize("form", ["qonnx", "qdq"])
@pytest.mark.parametrize("name", MULTIPLES)
def test_exact_sums(name: str, form: str, tmp_path: Path) -> None:
    """Layers and sums equal exact fractions; executors differ only where a value is next to a tie."""
    clear = 0
    for seed in range(2):
        net = residual(seed, MULTIPLES[name])
        proto = net.write(form)
        model, graph = both_forms(proto, tmp_path)
        x = np.random.default_rng(seed).normal(0, 2, (24, 1, 6)).astype(np.float32)
        output_codes = outputs(graph, x, net.scales[-1])
        assert np.array_equal(output_codes, net.codes(x[:, 0])), seed
        codes = reference.encode_input(graph, x)
        assert compare(model, graph, codes).ok
        if form == "qonnx":
            theirs = Qonnx(proto)(x[:, 0])
            assert not file_oracle.hold(proto, model, file_oracle.stimuli(model)).differing
        else:
            theirs = np.concatenate([ort.run(proto, {"x": frame}, ort.OFF)[0] for frame in x])
        agrees = (np.rint(theirs / net.scales[-1]) == output_codes).all(axis=1)
        assert agrees[net.ties > 1e-4].all(), seed
        clear += int((net.ties > 1e-4).sum())
    assert clear > 40  # of 48


def front(scales: list[float], kind: str, end: float) -> onnx.ModelProto:
    """Both halves of the input, each after a quantizer; their sum or difference; a quantizer."""
    n = OnnxGraph()
    quantized_input = n.add("IntQuant", ["x", scales[0], 0.0, 8.0], domain=QONNX)
    limits = [np.array([v], np.int64) for v in (0, 64, 128, 1)]
    first_half, second_half = (n.add("Slice", [quantized_input, limits[k], limits[k + 1], limits[3]]) for k in (0, 1))
    if scales[1] != scales[0]:
        second_half = n.add("IntQuant", [second_half, scales[1], 0.0, 8.0], domain=QONNX)
    last = n.add("IntQuant", [n.add(kind, [first_half, second_half]), end, 0.0, 8.0], domain=QONNX)
    ins, outs = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, size]) for name, size in (("x", 128), (last, 64))
    )
    return newer(n.proto("front", [ins], [outs], [("", 17), (QONNX, 1)]))


@pytest.mark.parametrize("kind", ["Add", "Sub"])
def test_before_a_quantizer(kind: str, tmp_path: Path) -> None:
    """The end has twice the scale: every second sum is a tie in exact numbers, where float32 sums fall either way."""
    differing = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        scale = np.float32(rng.uniform(0.1, 0.2))
        scales = [float(scale), float(scale)]
        proto = front(scales, kind, float(2 * scale))
        model, graph = both_forms(proto, tmp_path)
        x = rng.normal(0, 8, (20, 1, 128)).astype(np.float32)
        first_half, second_half = np.split(np.clip(np.rint(x[:, 0] / scale), -128, 127).astype(int), 2, axis=1)
        total = first_half + second_half if kind == "Add" else first_half - second_half
        real = np.array([once(int(t) * Fraction(float(scale))) for t in total.ravel()], np.float32)
        want = np.clip(np.rint(real / np.float32(2 * scale)), -128, 127).astype(int).reshape(total.shape)
        output_codes = outputs(graph, x, np.float32(2 * scale))
        assert np.array_equal(output_codes, want)
        assert compare(model, graph, reference.encode_input(graph, x)).ok
        theirs = np.rint(Qonnx(proto)(x[:, 0]) / np.float32(2 * scale)).astype(int)
        differing += int((theirs != output_codes).sum())
        assert (total[theirs != output_codes] % 2 == 1).all()  # float order, at ties
        assert (abs(theirs - output_codes) <= 1).all()
    assert differing


def test_scales_without_a_small_ratio(tmp_path: Path) -> None:
    """As the file has it before a quantizer; not a multiple of one scale for a layer."""
    scales = [float(np.float32(0.1)), float(np.float32(0.3))]
    proto = front(scales, "Add", 0.5)
    _, graph = both_forms(proto, tmp_path)
    x = np.random.default_rng(0).normal(0, 8, (20, 1, 128)).astype(np.float32)
    assert np.array_equal(outputs(graph, x, np.float32(0.5)), np.rint(Qonnx(proto)(x[:, 0]) / np.float32(0.5)))
    net = residual(0, (1, 1, 1))
    net.scales = (net.scales[0], np.float32(0.1), np.float32(0.3), *net.scales[3:])
    with pytest.raises(HlsgenError, match=r"HG030 .* without a quantizer"):
        both_forms(net.write("qonnx"), tmp_path)


def accumulators(weight_scale: float, quantized: float) -> onnx.ModelProto:
    """A layer's sum that no quantizer made, added to another or to a quantized one; a layer on it."""
    r = np.random.default_rng(1)
    n = OnnxGraph()
    data = n.add("IntQuant", ["x", SHORT, 0.0, 4.0], domain=QONNX)

    def layer(data: str, scale: float) -> str:
        weight = np.float32(r.integers(-7, 8, (6, 6))) * np.float32(scale)
        return n.add("MatMul", [data, n.add("IntQuant", [weight, scale, 0.0, 4.0], domain=QONNX)])

    skip = layer(data, weight_scale)
    if quantized:
        skip = n.add("IntQuant", [skip, quantized, 0.0, 4.0], domain=QONNX)
    last = layer(n.add("Add", [layer(data, weight_scale), skip]), 0.125)
    last = n.add("IntQuant", [last, 1.7371, 0.0, 7.0], domain=QONNX)
    ins, outs = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 6]) for name in ("x", last))
    return newer(n.proto("skip", [ins], [outs], [("", 17), (QONNX, 1)]))


@pytest.mark.parametrize("quantized", [0.0, SHORT * 1.75], ids=["both sums", "a skip"])
def test_sums_of_layers(quantized: float, tmp_path: Path) -> None:
    proto = accumulators(0.25, quantized)
    model, graph = both_forms(proto, tmp_path)
    report = file_oracle.hold(proto, model, file_oracle.stimuli(model, 8))
    assert not report.differing
    assert report.held["Add"] == 1
    x = np.random.default_rng(0).normal(0, 1, (30, 1, 6)).astype(np.float32)
    assert compare(model, graph, reference.encode_input(graph, x)).ok
    assert np.array_equal(outputs(graph, x, np.float32(1.7371)), np.rint(Qonnx(proto)(x[:, 0]) / np.float32(1.7371)))


def test_a_sum_whose_scale_is_too_long_for_a_layer(tmp_path: Path) -> None:
    with pytest.raises(HlsgenError, match=r"HG032 .* sum that is not quantized"):
        both_forms(accumulators(0.3, 0.0), tmp_path)


def bounded(scale: float, form: str, bits: float = 8.0) -> onnx.ModelProto:
    """y = Relu(x + q(layer)); y + q(layer of y), before a quantizer of twice the scale. Columns: as many as rows."""
    r, n = np.random.default_rng(7), OnnxGraph(labels=True)

    def quant(data: str, scale: float) -> str:
        if form == "qonnx":
            return n.add("IntQuant", [data, scale, 0.0, bits], domain=QONNX)
        zero, half = n.const(0, np.int8), 1 << (int(bits) - 1)
        codes = n.add("QuantizeLinear", [data, scale, zero])
        codes = n.add("Clip", [codes, n.const(-half, np.int8), n.const(half - 1, np.int8)])
        return n.add("DequantizeLinear", [codes, scale, zero])

    def layer(data: str) -> str:
        weight = np.float32(r.integers(-3, 4, (6, 6))) / 4
        return n.add("MatMul", [data, n.add("IntQuant", [weight, 0.25, 0.0, 4.0], domain=QONNX)])

    x = quant("x", scale)
    y = n.add("Relu", [n.add("Add", [x, quant(layer(x), scale)])])
    last = quant(n.add("Add", [y, quant(layer(y), scale)]), 2 * scale)
    ins, outs = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 6]) for name in ("x", last))
    return newer(n.proto("bounded", [ins], [outs], [("", 17), (QONNX, 1)]))


@pytest.mark.parametrize("form, bits", [("qonnx", 8.0), ("qdq", 6.0)])
def test_a_sum_behind_relu_is_still_on_its_grid(form: str, bits: float, tmp_path: Path) -> None:
    """Codes of every sum by integers, without any float; also of codes that a Clip narrows."""
    scale = np.float32(0.137)
    proto = bounded(float(scale), form, bits)
    model, graph = both_forms(proto, tmp_path)
    x = np.random.default_rng(0).normal(0, 2, (40, 1, 6)).astype(np.float32)
    assert compare(model, graph, reference.encode_input(graph, x)).ok
    constants = {c.name: onnx.numpy_helper.to_array(c) for c in proto.graph.initializer}
    weights = [
        constants[m.input[0]] * 4 for m in proto.graph.node if m.op_type == "IntQuant" and m.input[0] in constants
    ]
    half = 1 << (int(bits) - 1)

    def codes(real: Array, scale: np.float32) -> Array:
        return np.clip(np.rint(real / scale), -half, half - 1).astype(int)

    def real(total: Array, scale: np.float32) -> Array:
        flat = [once(int(t) * Fraction(float(scale))) for t in total.ravel()]
        return np.array(flat, np.float32).reshape(total.shape)

    first = codes(x[:, 0], scale)
    quarter = np.float32(scale / 4)  # a power of two: exact
    y = np.maximum(first + codes(real(first @ weights[0].astype(int), quarter), scale), 0)
    total = y + codes(real(y @ weights[1].astype(int), quarter), scale)
    assert np.array_equal(outputs(graph, x, 2 * scale), codes(real(total, scale), 2 * scale))
    assert (total % 2 == 1).any()  # ties


def test_short_scales_behind_relu(tmp_path: Path) -> None:
    """Float32 holds all sums of multiples of a short unit: this unit is their scale, and the next sum is on it."""
    assert both_forms(u_net(5), tmp_path)


@pytest.mark.slow
@pytest.mark.sim
def test_hardware_and_proof(tmp_path: Path) -> None:
    onnx.save(residual(0, MULTIPLES["thirds"]).write("qonnx"), tmp_path / "m.onnx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hlsgen.build(tmp_path / "m.onnx", tmp_path / "m")
    assert_verified(tmp_path / "m", "icarus", 8)
    assert [layer.kind for layer in hlsgen.certify(tmp_path / "m").layers].count("merge") == 2
