"""Attention of Brevitas, with Softmax between quantizers: the integers of both forms against executors of the files."""

from __future__ import annotations

import numpy as np
import pytest
from paths import shared_model

from hlsgen.diagnostics import Collector
from hlsgen.frontend import import_model
from hlsgen.interpreter import graph as reference
from hlsgen.interpreter.model import interpret
from hlsgen.ir import Accumulator
from hlsgen.ir.ops import Add
from hlsgen.passes import lower


@pytest.mark.parametrize("name, oracle", [("attn_w4a4_qonnx", "qonnx"), ("attn_w4a4_qcdq", "ort_noopt")])
def test_integers_of_the_last_layer(name: str, oracle: str) -> None:
    """Executors sum floats: what they give is the bias plus a multiple of the scale, but for their roundings."""
    path = shared_model(f"attention/{name}")
    data = np.load(path.with_suffix(".npz"))
    problems = Collector()
    model = import_model(path, problems)
    problems.finish()
    assert model is not None
    graph = lower(model, None, problems)
    x = data["x"].astype(np.float32).reshape(-1, *model.input_shape)
    values = [reference.encode_input(graph, x)]
    for layer in graph.layers:
        values.append(reference.run_layer(layer, [values[i] for i in layer.inputs]))
    (bias,), meaning = (step.op for step in graph.tail), graph.output.encoding
    assert isinstance(bias, Add)
    assert isinstance(meaning, Accumulator)
    assert meaning.factor == 1
    assert not meaning.offset.any()
    for found in (data[oracle], np.asarray(interpret(model, x)[-1].value)):
        sums = (found.reshape(values[-1].shape).astype(np.float64) - bias.value) / meaning.scale
        assert np.abs(sums - np.rint(sums)).max() < 1e-2
        assert np.array_equal(np.rint(sums), values[-1])
