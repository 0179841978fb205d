"""QuantLSTMCell of QONNX equals the same cell as nodes in qonnx, and a plain loop of its formulas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from paths import shared_model
from quant_lstm_models import by_definition, cell_model, random_cell

from hlsgen.diagnostics import Collector, HlsgenError
from hlsgen.frontend import import_model
from hlsgen.interpreter.graph import evaluate
from hlsgen.interpreter.model import interpret
from hlsgen.ir import Model
from hlsgen.passes.lower import lower

Array = Any


def imported(model: onnx.ModelProto, path: Path) -> Model:
    onnx.save(model, path / "m.onnx")
    problems = Collector()
    imported_model = import_model(path / "m.onnx", problems)
    problems.finish()
    assert imported_model is not None
    return imported_model


@pytest.mark.sweep
@pytest.mark.parametrize("block", range(3))
def test_random_cells_equal_a_plain_loop(block: int, tmp_path: Path) -> None:
    for seed in range(block * 6, block * 6 + 6):
        model, used = random_cell(seed)
        imported_model = imported(model, tmp_path)
        rng = np.random.default_rng(seed)
        shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
        x = (rng.integers(-140, 140, (3, *shape)) / 32).astype(np.float32)
        expected = np.stack([by_definition(model, frame)[used] for frame in x])
        np.testing.assert_array_equal(interpret(imported_model, x)[-1].value, expected, str(seed))
        if shape[0] > 1 or not imported_model.batched:
            graph = lower(imported_model, None, Collector())
            np.testing.assert_array_equal(np.asarray(evaluate(graph, x)).reshape(expected.shape), expected, str(seed))


def test_the_same_cell_in_nodes(tmp_path: Path) -> None:
    """The cell equals qonnx's result of an unrolled cell, node by node."""
    path = shared_model("attention/lstm_unrolled_w8a8_qonnx")
    file, golden = onnx.load(path), np.load(path.with_suffix(".npz"))
    constants = {t.name: numpy_helper.to_array(t) for t in file.graph.initializer}
    by_input = {n.input[0]: n for n in file.graph.node if n.op_type == "Quant"}

    def scale(name: str) -> Array:
        return constants[by_input[name].input[1]]

    values: dict[str, Array] = {name: constants[name] for name in ("h0", "c0", "bi", "bf", "bc", "bo")}
    for part in "ih":
        for gate in "ifco":
            weight = f"w{part}{gate}" if part == "i" else f"wh{gate}"
            step = scale(weight)
            values[f"w{part}{gate}"] = (np.clip(np.round(constants[weight] / step), -127, 127).T, step)
    tensor_by_quantizer = {
        "input_acc": "v17",
        "input_sigmoid": "v19",
        "forget_acc": "v24",
        "forget_sigmoid": "v26",
        "cell_acc": "v31",
        "cell_tanh": "v33",
        "output_acc": "v38",
        "output_sigmoid": "v40",
        "hidden_state_tanh": "v48",
        "output": "v50",
        "x": "x",
    }
    quantizers = {name: (scale(at), 8, int("sigmoid" not in name), 0) for name, at in tensor_by_quantizer.items()}
    scales = {float(scale(at)) for at in ("v42", "v44", "v46")}
    if len(scales) > 1:
        pytest.skip("the cell of the file has three quantizers of the cell state")
    quantizers["cell_state"] = (scale("v46"), 8, 1, 0)
    imported_model = imported(cell_model(values, quantizers, [1, 4, 6], batch_first=1), tmp_path)
    x = golden["x"].reshape(-1, 1, 4, 6)
    np.testing.assert_array_equal(
        interpret(imported_model, x)[-1].value.reshape(golden["qonnx"].shape), golden["qonnx"]
    )


def test_a_cell_with_missing_inputs_is_refused(tmp_path: Path) -> None:
    model, _ = random_cell(0)
    del model.graph.node[-1].input[40:]
    with pytest.raises(HlsgenError, match=r"HG014.*40 inputs"):
        imported(model, tmp_path)
