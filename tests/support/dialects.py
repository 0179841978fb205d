"""One network in several dialects of ONNX: QONNX, QCDQ, integer ONNX."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
from integer_models import Graph, dequantized, finished
from numpy.typing import NDArray
from onnx import helper

Array = NDArray[Any]
DOMAIN = "qonnx.custom_op.general"
FORMS = ("qonnx", "qcdq", "integer")
f32 = np.float32


@dataclass(frozen=True)
class Layer:
    """weight int (columns, rows), bias int (rows,) in units of the sum; the sum times 2^-shift is the next code."""

    weight: Array
    bias: Array
    shift: int
    relu: bool


@dataclass(frozen=True)
class Network:
    """Codes of `bits` bits, signed in front and without Relu, unsigned behind one; scales 2^-exponent."""

    bits: int
    weight_bits: int
    exponents: tuple[int, ...]
    weight_exponent: int
    layers: tuple[Layer, ...]

    @property
    def columns(self) -> int:
        return len(self.layers[0].weight)


def random_network(seed: int, bits: int, sizes: tuple[int, ...], last_relu: bool = False) -> Network:
    """Sums of two deviations fill the codes."""
    rng = np.random.default_rng(seed)
    weight_bits, layers = max(2, bits - 1), []
    exponents = [int(rng.integers(2, 6))]
    weight_exponent = int(rng.integers(0, 5))
    for k, (ins, outs) in enumerate(pairwise(sizes)):
        top = 1 << (weight_bits - 1)
        weight = rng.integers(-top, top, (ins, outs))
        weight[rng.integers(ins), rng.integers(outs)] = -top
        spread = top / np.sqrt(3) * (1 << (bits - 1)) / np.sqrt(3) * np.sqrt(ins)
        relu = k < len(sizes) - 2 or last_relu
        shift = max(1, round(np.log2(2 * spread / (1 << (bits - 1)))))
        layers.append(Layer(weight, rng.integers(-int(spread), int(spread), outs), shift, relu))
        exponents.append(exponents[-1] + weight_exponent - shift)
    return Network(bits, weight_bits, tuple(exponents), weight_exponent, tuple(layers))


def power(exponent: int) -> np.float32:
    return f32(2.0**-exponent)


def bounds(net: Network, signed: bool) -> tuple[int, int]:
    return (-(1 << (net.bits - 1)), (1 << (net.bits - 1)) - 1) if signed else (0, (1 << net.bits) - 1)


def expected(net: Network, x: Array) -> Array:
    """The network on codes, in integers: (samples, columns) -> codes of the last layer."""
    q = x.astype(np.int64)
    for layer in net.layers:
        sums = q @ layer.weight + layer.bias
        real = sums / 2.0**layer.shift
        q = np.clip(np.rint(real), *bounds(net, not layer.relu)).astype(np.int64)
    return q


def write(net: Network, form: str, gemm: bool = False, codes_in: bool = False) -> onnx.ModelProto:
    """`codes_in`: of integer form, 8 bits: the input is int8 itself, without a quantizer."""
    graph = Graph()
    match form:
        case "qonnx":
            _qonnx(graph, net, gemm)
        case "qcdq":
            _qcdq(graph, net, gemm)
        case _:
            _integer(graph, net, codes_in)
    made = finished(graph, "int8" if codes_in else "float32", ["N", net.columns])
    made.opset_import.append(helper.make_opsetid(DOMAIN, 1))
    return made


def _attributes(signed: bool) -> dict[str, Any]:
    return {"domain": DOMAIN, "signed": int(signed), "narrow": 0, "rounding_mode": "ROUND"}


def _qonnx(graph: Any, net: Network, gemm: bool) -> None:
    def quant(exponent: int, signed: bool) -> None:
        graph.then("IntQuant", power(exponent), f32(0), f32(net.bits), **_attributes(signed))

    quant(net.exponents[0], True)
    for layer, exponent, following in zip(net.layers, net.exponents, net.exponents[1:], strict=False):
        scale, unit = power(net.weight_exponent), exponent + net.weight_exponent
        form = layer.weight.T if gemm else layer.weight
        parts = [form * scale, scale, f32(0), f32(net.weight_bits)]
        names = [graph.const(np.asarray(part, f32)) for part in parts]
        graph.nodes.append(helper.make_node("IntQuant", names, [f"{names[0]}_q"], **_attributes(True)))
        _linear(graph, f"{names[0]}_q", (layer.bias * 2.0**-unit).astype(f32), gemm)
        if layer.relu:
            graph.then("Relu")
        quant(following, not layer.relu)


def _qcdq(graph: Any, net: Network, gemm: bool) -> None:
    def quant(exponent: int, signed: bool) -> None:
        dtype = np.int8 if signed else np.uint8
        lo, hi = (np.asarray(v, dtype) for v in bounds(net, signed))
        graph.then("QuantizeLinear", power(exponent), dtype(0))
        if net.bits < 8:
            graph.then("Clip", lo, hi)
        graph.then("DequantizeLinear", power(exponent), dtype(0))

    quant(net.exponents[0], True)
    for layer, exponent, following in zip(net.layers, net.exponents, net.exponents[1:], strict=False):
        unit = exponent + net.weight_exponent
        weight = (layer.weight.T if gemm else layer.weight).astype(np.int8)
        name = dequantized(graph, weight, power(net.weight_exponent), np.int8(0))
        _linear(graph, name, (layer.bias * 2.0**-unit).astype(f32), gemm)
        if layer.relu:
            graph.then("Relu")
        quant(following, not layer.relu)


def _linear(graph: Any, weight: str, bias: Array, gemm: bool) -> None:
    if gemm:
        end = f"sum{len(graph.nodes)}"
        graph.nodes.append(helper.make_node("Gemm", [graph.last, weight, graph.const(bias)], [end], transB=1))
        graph.last = end
        return
    end = f"product{len(graph.nodes)}"
    graph.nodes.append(helper.make_node("MatMul", [graph.last, weight], [end]))
    graph.last = end
    graph.then("Add", bias)


def _integer(graph: Any, net: Network, codes_in: bool) -> None:
    def quant(scale: np.float32, signed: bool) -> None:
        dtype = np.int8 if signed else np.uint8
        graph.then("QuantizeLinear", scale, dtype(0))
        if net.bits < 8:
            graph.then("Clip", *(np.asarray(v, dtype) for v in bounds(net, signed)))

    if not codes_in:
        quant(power(net.exponents[0]), True)
    for layer in net.layers:
        graph.then("MatMulInteger", layer.weight.astype(np.int8)).then("Add", layer.bias.astype(np.int32))
        graph.then("Cast", to=onnx.TensorProto.FLOAT)
        if layer.relu:
            graph.then("Relu")
        graph.then("Mul", power(layer.shift))
        quant(f32(1), not layer.relu)
