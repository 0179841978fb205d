"""Layers at sums where the multipliers of a float32 product and of a float64 product round to different codes."""

from __future__ import annotations

import numpy as np
import pytest
from tflite_writer import Writer

from hlsgen.diagnostics import Collector
from hlsgen.frontend.import_options import ImportOptions
from hlsgen.frontend.runtimes import TFLITE
from hlsgen.frontend.tflite.file import read_file
from hlsgen.frontend.tflite.importer import import_tflite
from hlsgen.interpreter.model import interpret
from hlsgen.numerics.fixed import Array
from hlsgen.numerics.tflite.multipliers import Multiplier, quantized_multiplier
from hlsgen.simulation import tflite_oracle

COLUMNS = 16
#: The last code stands for 1, the other ones for 127: sums up to 2^17 are a choice of weights.
CODES = np.array([[127] * (COLUMNS - 1) + [1]], np.int8)


def rescaled(sums: Array, multiplier: Multiplier) -> Array:
    """gemmlowp's double multiplication: 31 bits, ties up, then a shift, ties away from 0."""
    high, shift = (sums * multiplier.value + (1 << 30)) >> 31, -multiplier.exponent
    return np.sign(high) * ((np.abs(high) + (1 << (shift - 1))) >> shift)


def discriminating(seed: int) -> tuple[float, float, float, int]:
    """Scales of data, weights and result, and a sum for which the two products give different codes."""
    rng = np.random.default_rng(seed)
    sums = np.arange(-100_000, 100_000)
    while True:
        data, weights = (np.float32(rng.uniform(0.005, 0.02)) for _ in range(2))
        result = np.float32(float(data) * float(weights) * 2.0 ** rng.uniform(8, 10))
        products = float(data) * float(weights), float(data * weights)
        double, single = (rescaled(sums, quantized_multiplier(p / float(result))) for p in products)
        places = np.flatnonzero((double != single) & (np.abs(double) < 120))
        if len(places):
            return float(data), float(weights), float(result), int(sums[places[0]])


@pytest.mark.sweep
@pytest.mark.oracle
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("runtime", ["tflm", "litert-ref"])
def test_fully_connected_rounds_the_product_of_scales_to_float64(runtime: str, has_bias: bool) -> None:
    if tflite_oracle.missing(runtime):
        pytest.skip(tflite_oracle.missing(runtime))
    for seed in range(4):
        data, weights, result, total = discriminating(seed)
        writer = Writer()
        graph = writer.graph()
        quotient, remainder = divmod(total, 127)
        row = [int(part) for part in np.diff(np.linspace(0, quotient, COLUMNS).round())] + [remainder]
        x, y = graph.tensor((1, COLUMNS), "int8", data), graph.tensor((1, 1), "int8", result)
        inputs = [x, graph.tensor((1, COLUMNS), "int8", weights, data=np.array([row]))]
        if has_bias:
            inputs.append(graph.tensor((1,), "int32", data * weights, data=np.array([0])))
        graph.operator("FULLY_CONNECTED", inputs, [y])
        graph.inputs.append(x)
        graph.outputs.append(y)
        (theirs,) = tflite_oracle.run_file(writer.bytes(), runtime, [CODES[np.newaxis]], 1)
        options = ImportOptions(False, {}, False, False, runtime)
        model = import_tflite(read_file(writer.bytes(), "net"), "net", options, Collector())
        assert model is not None
        assert interpret(model, CODES[np.newaxis])[-1].value.ravel() == theirs.ravel()


@pytest.mark.sweep
@pytest.mark.oracle
@pytest.mark.parametrize("second_shape", [(1, 4000), (1, 1)])
@pytest.mark.parametrize("name", ["ADD", "SUB"])
@pytest.mark.parametrize("runtime", TFLITE)
def test_sums_of_int16_round_their_inputs_once_or_twice(runtime: str, name: str, second_shape: tuple[int, ...]) -> None:
    """Of random codes some fifty in 4 million differ. LiteRT's optimized ADD of one shape rounds once."""
    if tflite_oracle.missing(runtime):
        pytest.skip(tflite_oracle.missing(runtime))
    writer = Writer()
    graph = writer.graph()
    sources = [graph.tensor((1, 4000), "int16", 0.0152), graph.tensor(second_shape, "int16", 0.0106)]
    y = graph.tensor((1, 4000), "int16", 0.01768)
    graph.operator(name, sources, [y], pot_scale_int16=0)
    graph.inputs += sources
    graph.outputs.append(y)
    rng = np.random.default_rng(7)
    shapes = (1, 4000), second_shape
    codes = [rng.integers(-32768, 32768, (1000, *shape)).astype(np.int16) for shape in shapes]
    (theirs,) = tflite_oracle.run_file(writer.bytes(), runtime, codes, 1)
    options = ImportOptions(False, {}, False, False, runtime)
    model = import_tflite(read_file(writer.bytes(), "net"), "net", options, Collector())
    assert model is not None
    packed = np.concatenate([x.reshape(1000, -1).astype(np.float64) for x in codes], axis=1)
    ours = interpret(model, packed)[-1].value
    assert int((ours.reshape(theirs.shape) != theirs).sum()) == 0
