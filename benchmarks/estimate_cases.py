"""Networks that the estimates are fitted to and, others, that the fit never sees."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from places import MODELS, ROOT

sys.path.insert(0, str(ROOT / "tests" / "support"))

from image_nets import network
from models import Net
from onnx_graph import QONNX
from random_graphs import perceptron

Model = onnx.ModelProto | Path


@dataclass(frozen=True)
class Case:
    """A network, what its build is told, and whether the fit may look at it."""

    model: Callable[[], Model]
    fitted: bool = True
    options: dict[str, Any] = field(default_factory=dict)


def activation(net: Net, bits: int, *, first: bool = False) -> Net:
    """A quantizer of the input, or Relu and a quantizer; bipolar if it has one bit."""
    if bits == 1:
        return net.then("BipolarQuant", 1.0, domain=QONNX)
    options = {"signed": 1} if first else {"signed": 0}
    return (net if first else net.then("Relu")).quant(0.125 if first else 0.37, 0.0, float(bits), narrow=0, **options)


def weights(net: Net, shape: tuple[int, ...], bits: int, rng: np.random.Generator) -> str:
    if bits == 1:
        return net.add("BipolarQuant", [rng.choice([-1.0, 1.0], shape).astype(np.float32), 1.0], domain=QONNX)
    top = 2 ** (bits - 1) - 1
    grid = np.clip(np.round(rng.normal(0, top / 2.5, shape)), -top, top).astype(np.float32) / 8
    return net.add("IntQuant", [grid, 0.125, 0.0, float(bits)], domain=QONNX, signed=1, narrow=1)


def mlp(w_bits: int, x_bits: int, sizes: tuple[int, ...], seed: int, scaled: bool = False) -> onnx.ModelProto:
    """scaled: sums are multiplied by a number for each channel, and one is added, as a batch normalization does."""
    rng, net = np.random.default_rng(seed), Net((1, sizes[0]))
    for n, (columns, rows) in enumerate(itertools.pairwise(sizes)):
        if scaled and n:
            factors, terms = rng.uniform((0.5, -1.0), (2.0, 1.0), (columns, 2)).astype(np.float32).T
            net.then("Mul", factors[None]).then("Add", terms[None])
        data = activation(net, x_bits, first=n == 0).last
        net.node("MatMul", data, weights(net, (columns, rows), w_bits, rng), name=f"fc{n}")
    return net.model()


def sparse(w_bits: int, x_bits: int, sizes: tuple[int, ...], seed: int, density: float) -> onnx.ModelProto:
    """Weights are 0 except for a share of `density`, and at least one in each row."""
    rng, net = np.random.default_rng(seed), Net((1, sizes[0]))
    top = 2 ** (w_bits - 1) - 1
    for n, (columns, rows) in enumerate(itertools.pairwise(sizes)):
        data = activation(net, x_bits, first=n == 0).last
        grid = rng.integers(1, top + 1, (columns, rows)) * rng.choice([-1, 1], (columns, rows))
        grid[rng.random(grid.shape) >= density] = 0
        grid[rng.integers(0, columns, rows), np.arange(rows)] += np.all(grid == 0, axis=0)
        weight = [grid.astype(np.float32) / 8, 0.125, 0.0, float(w_bits)]
        net.node("MatMul", data, net.add("IntQuant", weight, domain=QONNX, signed=1, narrow=1), name=f"fc{n}")
    return net.model()


def cnn(w_bits: int, x_bits: int, channels: tuple[int, ...], size: int, seed: int) -> onnx.ModelProto:
    """Convolutions of 3 x 3, the second of them depthwise, then a maximum pool and a layer."""
    rng, net = np.random.default_rng(seed), Net((1, channels[0], size, size))
    for n, (before, after) in enumerate(itertools.pairwise(channels)):
        data = activation(net, x_bits, first=n == 0).last
        depthwise = n == 1 and before == after
        weight = weights(net, (after, 1 if depthwise else before, 3, 3), w_bits, rng)
        net.node("Conv", data, weight, name=f"conv{n}", pads=[1, 1, 1, 1], group=before if depthwise else 1)
    activation(net, x_bits).then("MaxPool", kernel_shape=[2, 2], strides=[2, 2]).then("Flatten")
    data = net.last
    net.node("MatMul", data, weights(net, (channels[-1] * (size // 2) ** 2, 5), w_bits, rng), name="fc")
    return net.model()


def _example(name: str) -> Callable[[], Model]:
    return lambda: ROOT / "examples" / name


def _shared(name: str) -> Callable[[], Model]:
    return lambda: MODELS / f"{name}.onnx"


def _mlps() -> Iterator[tuple[str, Case]]:
    for w, x, sizes, cycles, options in [
        (4, 4, (32, 32, 10), 32, {}),
        (8, 8, (24, 16, 6), 24, {}),
        (2, 2, (48, 32, 10), 16, {}),
        (3, 3, (32, 24, 10), 24, {}),
        (3, 8, (32, 16, 8), 32, {}),
        (1, 4, (64, 32, 10), 32, {}),
        (1, 1, (128, 64, 10), 16, {}),
        (6, 4, (24, 24, 5), 48, {}),
        (4, 4, (16, 8, 4), 1, {}),
        (2, 3, (64, 48, 10), 128, {}),
        (8, 8, (64, 32, 10), 512, {}),
        (5, 3, (30, 20, 7), 60, {}),
        (2, 4, (96, 24, 5), 48, {}),
        (7, 7, (20, 12, 4), 30, {}),
        (4, 6, (40, 16, 10), 32, {}),
        (8, 4, (128, 32, 6), 2048, {}),
        (4, 4, (64, 64, 10), 256, {"weights": "bram"}),
        (8, 8, (32, 24, 10), 48, {"prefer": "dsp"}),
        (4, 6, (48, 16, 8), 24, {"prefer": "dsp"}),
        (8, 8, (24, 16, 6), 160, {"prefer": "dsp"}),
        (4, 6, (20, 12, 6), 100, {"prefer": "dsp"}),
    ]:
        yield (
            _name("mlp", w, x, cycles, options),
            Case(_made(mlp, w, x, sizes, 7 * w + x), True, {"target_cycles": cycles, **options}),
        )
    for w, x, sizes, cycles, options in [
        (5, 7, (40, 20, 8), 40, {}),
        (2, 8, (64, 32, 4), 64, {}),
        (7, 3, (16, 24, 10), 32, {}),
        (4, 4, (40, 24, 10), 64, {}),
        (3, 2, (80, 20, 6), 32, {}),
        (6, 6, (36, 18, 9), 96, {}),
        (6, 8, (40, 20, 10), 40, {"prefer": "dsp"}),
        (6, 5, (20, 16, 5), 100, {"prefer": "dsp"}),
    ]:
        yield (
            _name("mlp", w, x, cycles, options),
            Case(_made(mlp, w, x, sizes, 90 + 7 * w + x), False, {"target_cycles": cycles, **options}),
        )


def _constant() -> Iterator[tuple[str, Case]]:
    """A frame a cycle: weights never change, products are adder graphs and shared counts."""
    for w, x, sizes, fitted in [
        (1, 1, (128, 32, 10), True),
        (1, 1, (320, 16, 8), True),
        (1, 4, (32, 24, 8), True),
        (2, 2, (40, 24, 8), True),
        (3, 8, (24, 20, 6), True),
        (4, 4, (32, 32, 6), True),
        (6, 6, (24, 24, 5), True),
        (8, 8, (16, 12, 6), True),
        (6, 8, (32, 32, 8), True),
        (1, 1, (200, 24, 6), False),
        (5, 7, (20, 16, 6), False),
        (2, 8, (32, 16, 8), False),
        (4, 5, (48, 24, 8), False),
    ]:
        yield f"constant w{w}a{x} {sizes[0]}", Case(_made(mlp, w, x, sizes, 13 * w + x), fitted, {"target_cycles": 1})


def _scaled() -> Iterator[tuple[str, Case]]:
    for w, x, sizes, cycles, fitted in [
        (6, 8, (32, 24, 10), 32, True),
        (4, 6, (40, 32, 6), 64, True),
        (5, 7, (30, 40, 8), 120, True),
        (3, 4, (48, 32, 10), 48, True),
        (2, 8, (72, 40, 6), 60, False),
        (7, 5, (24, 36, 9), 96, False),
    ]:
        made = _made(mlp, w, x, sizes, 11 * w + x, True)
        yield f"scaled w{w}a{x} @{cycles}", Case(made, fitted, {"target_cycles": cycles})


def _cnns() -> Iterator[tuple[str, Case]]:
    for w, x, channels, size, cycles, options in [
        (4, 4, (2, 4, 4, 6), 10, 2400, {}),
        (8, 8, (1, 2, 2, 4), 8, 600, {}),
        (2, 2, (4, 8, 8, 8), 8, 576, {}),
        (3, 3, (2, 4, 4, 4), 8, 300, {}),
        (1, 1, (8, 16, 16, 16), 8, 2000, {}),
        (4, 8, (2, 4, 4, 4), 10, 3600, {}),
        (6, 5, (2, 4, 4, 4), 12, 1200, {"prefer": "dsp"}),
        (6, 6, (1, 2, 2, 4), 8, 1200, {"prefer": "dsp"}),
    ]:
        yield (
            _name("cnn", w, x, cycles, options),
            Case(_made(cnn, w, x, channels, size, 5 * w + x), True, {"target_cycles": cycles, **options}),
        )
    for w, x, channels, size, cycles, options in [
        (5, 5, (2, 3, 3, 6), 10, 1600, {}),
        (4, 2, (3, 6, 6, 4), 8, 512, {}),
        (3, 6, (3, 4, 4, 4), 10, 2400, {}),
        (8, 8, (2, 4, 4, 4), 10, 1800, {"prefer": "dsp"}),
    ]:
        yield (
            _name("cnn", w, x, cycles, options),
            Case(_made(cnn, w, x, channels, size, 95 + w), False, {"target_cycles": cycles, **options}),
        )


def _random() -> Iterator[tuple[str, Case]]:
    """Networks of random shapes: windows, groups, pools, sums, concatenations, float32 scales."""
    kinds = ("plain", "grouped", "pooled", "maxima", "residual", "inception", "keras", "blocks", "bipolar", "mixer")
    for n, kind in enumerate(kinds):
        for seed, fitted in ((3, True), (4, True), (8, kind in ("plain", "maxima"))):
            own: dict[str, Any] = {"target_cycles": (200, 600, 1500)[(n + seed) % 3]}
            yield f"{kind} {seed}", Case(_made(network, kind, seed, n % 2 == 0, 10, 4 + n % 5), fitted, own)
    for seed, fitted in ((11, True), (12, True), (13, True), (14, True), (15, False), (16, True)):
        yield f"perceptron {seed}", Case(_made(perceptron, seed, seed % 2 == 0), fitted, {"target_cycles": 8 * seed})


def _small() -> Iterator[tuple[str, Case]]:
    """A frame a cycle, in at most some hundred LUT: few or sparse weights."""
    for w, x, sizes, density, fitted in [
        (3, 4, (16, 24, 5), 0.1, True),
        (5, 6, (16, 32, 16, 5), 0.06, True),
        (4, 3, (8, 2), 1.0, True),
        (3, 3, (5, 4, 2), 1.0, True),
        (2, 4, (12, 8, 4), 0.4, True),
        (6, 8, (8, 6, 3), 0.4, True),
        (4, 4, (16, 32, 16, 5), 0.08, False),
        (4, 6, (12, 10, 4), 0.3, False),
        (3, 5, (6, 5, 3), 1.0, False),
        (5, 5, (10, 8, 2), 0.3, False),
    ]:
        made = _made(sparse, w, x, sizes, 400 + 7 * w + x, density)
        yield f"small w{w}a{x} {sizes[0]} {sizes[1]}", Case(made, fitted, {"target_cycles": 1})


def _at_a_clock() -> Iterator[tuple[str, Case]]:
    """Networks with a register after each adder."""
    for w, x, sizes, cycles, fitted, options in [
        (2, 4, (40, 20, 6), 40, True, {}),
        (5, 5, (24, 16, 6), 24, True, {}),
        (8, 8, (20, 12, 5), 40, True, {}),
        (1, 1, (96, 32, 8), 16, True, {}),
        (1, 6, (48, 16, 8), 32, True, {}),
        (6, 3, (32, 20, 8), 64, True, {}),
        (8, 8, (24, 12, 6), 48, True, {"prefer": "dsp"}),
        (5, 6, (32, 16, 8), 40, True, {"prefer": "dsp"}),
        (3, 7, (28, 18, 7), 28, False, {}),
        (7, 6, (20, 16, 6), 40, False, {}),
        (7, 8, (24, 16, 8), 64, False, {"prefer": "dsp"}),
    ]:
        options = {**options, "clock_mhz": 250.0}
        name, made = _name("mlp", w, x, cycles, options), _made(mlp, w, x, sizes, 300 + 7 * w + x)
        yield name, Case(made, fitted, {"target_cycles": cycles, **options})
    for w, x, channels, cycles, fitted in [
        (4, 4, (2, 4, 4, 4), 500, True),
        (2, 6, (2, 4, 4, 4), 600, True),
        (1, 1, (8, 8, 8, 8), 600, True),
        (5, 4, (2, 4, 4, 5), 700, False),
        (3, 3, (3, 4, 4, 4), 500, False),
    ]:
        options = {"clock_mhz": 250.0}
        name, made = _name("cnn", w, x, cycles, options), _made(cnn, w, x, channels, 8, 300 + 5 * w + x)
        yield name, Case(made, fitted, {"target_cycles": cycles, **options})


def _made(maker: Callable[..., onnx.ModelProto], *arguments: Any) -> Callable[[], Model]:
    return lambda: maker(*arguments)


def _name(kind: str, w: int, x: int, cycles: int, options: dict[str, Any]) -> str:
    return " ".join([f"{kind} w{w}a{x} @{cycles}", *(str(value) for value in options.values())])


def _trained() -> Iterator[tuple[str, Case]]:
    yield "digits @128", Case(_example("digits/digits_mlp.onnx"), True, {"target_cycles": 128})
    yield "digits_cnn @576", Case(_example("digits_cnn/digits_cnn.onnx"), True, {"target_cycles": 576})
    yield "digits_cnn @144", Case(_example("digits_cnn/digits_cnn.onnx"), True, {"target_cycles": 144})
    for name, cycles in [
        ("public/zoo_tfc_1w1a", 128),
        ("public/zoo_tfc_2w2a", 512),
        ("brevitas/jsc_mlp_w4a4", 128),
        ("brevitas/jsc_mlp_w6a6_po2", 256),
        ("public/mlperf_kws_w3a3", 6000),
        ("brevitas/dscnn_w4a4_po2", 160000),
    ]:
        yield f"{name.split('/')[1]} @{cycles}", Case(_shared(name), False, {"target_cycles": cycles})


def _larger() -> Iterator[tuple[str, Case]]:
    """Networks of which only the LUT are in the data, with those of an earlier version of the library."""
    for w, x, channels, size, cycles, seed, fitted in [
        (4, 4, (3, 8, 8, 16), 12, 2304, 24, True),
        (8, 8, (1, 4, 4, 8), 10, 800, 48, True),
        (2, 2, (4, 16, 16, 16), 8, 576, 12, True),
        (3, 3, (4, 8, 8, 8), 8, 128, 18, True),
        (1, 1, (8, 16, 16, 32), 8, 1024, 6, True),
        (5, 5, (2, 6, 6, 12), 14, 1600, 94, True),
        (4, 2, (3, 12, 12, 8), 8, 256, 95, False),
    ]:
        made = _made(cnn, w, x, channels, size, seed)
        yield f"large cnn w{w}a{x} @{cycles}", Case(made, fitted, {"target_cycles": cycles})
    for w, x, sizes, cycles, seed in [(5, 7, (40, 20, 8), 40, 91), (7, 3, (16, 24, 10), 16, 93)]:
        yield f"large mlp w{w}a{x} @{cycles}", Case(_made(mlp, w, x, sizes, seed), False, {"target_cycles": cycles})
    yield "digits @64", Case(_example("digits/digits_mlp.onnx"), True, {"target_cycles": 64})
    yield "digits_cnn @64", Case(_example("digits_cnn/digits_cnn.onnx"), True, {"target_cycles": 64})
    for name, cycles in [("public/zoo_tfc_1w1a", 64), ("public/zoo_tfc_2w2a", 256), ("brevitas/jsc_mlp_w4a4", 16)]:
        fitted = "1w1a" in name
        yield f"{name.split('/')[1]} @{cycles}", Case(_shared(name), fitted, {"target_cycles": cycles})


CASES: dict[str, Case] = dict(
    itertools.chain(_mlps(), _constant(), _scaled(), _cnns(), _random(), _small(), _at_a_clock(), _trained(), _larger())
)
