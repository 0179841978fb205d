"""QuantLSTMCell of QONNX, as Brevitas exports it: the same cell in nodes run by qonnx, and a plain loop of its formulas."""

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
    found = import_model(path / "m.onnx", problems)
    problems.finish()
    assert found is not None
    return found


@pytest.mark.parametrize("block", range(3))
def test_random_cells_are_what_a_plain_loop_gives(block: int, tmp_path: Path) -> None:
    for seed in range(block * 6, block * 6 + 6):
        model, used = random_cell(seed)
        found = imported(model, tmp_path)
        rng = np.random.default_rng(seed)
        shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
        x = (rng.integers(-140, 140, (3, *shape)) / 32).astype(np.float32)
        wanted = np.stack([by_definition(model, one)[used] for one in x])
        np.testing.assert_array_equal(interpret(found, x)[-1].value, wanted, str(seed))
        if shape[0] > 1 or not found.batched:
            graph = lower(found, None, Collector())
            np.testing.assert_array_equal(np.asarray(evaluate(graph, x)).reshape(wanted.shape), wanted, str(seed))


def test_the_same_cell_in_nodes(tmp_path: Path) -> None:
    """Against what qonnx made of the steps of an unrolled cell, node by node."""
    path = shared_model("attention/lstm_unrolled_w8a8_qonnx")
    file, golden = onnx.load(path), np.load(path.with_suffix(".npz"))
    known = {t.name: numpy_helper.to_array(t) for t in file.graph.initializer}
    by_input = {n.input[0]: n for n in file.graph.node if n.op_type == "Quant"}

    def scale(name: str) -> Array:
        return known[by_input[name].input[1]]

    values: dict[str, Array] = {name: known[name] for name in ("h0", "c0", "bi", "bf", "bc", "bo")}
    for part in "ih":
        for gate in "ifco":
            own = f"w{part}{gate}" if part == "i" else f"wh{gate}"
            step = scale(own)
            values[f"w{part}{gate}"] = (np.clip(np.round(known[own] / step), -127, 127).T, step)
    behind = {
        "input_acc": "v17", "input_sigmoid": "v19", "forget_acc": "v24", "forget_sigmoid": "v26", "cell_acc": "v31",
        "cell_tanh": "v33", "output_acc": "v38", "output_sigmoid": "v40", "hidden_state_tanh": "v48", "output": "v50",
        "x": "x",
    }  # fmt: skip
    quantizers = {name: (scale(at), 8, int("sigmoid" not in name), 0) for name, at in behind.items()}
    scales = {float(scale(at)) for at in ("v42", "v44", "v46")}
    if len(scales) > 1:
        pytest.skip("the cell of the file has three quantizers of the cell state")
    quantizers["cell_state"] = (scale("v46"), 8, 1, 0)
    found = imported(cell_model(values, quantizers, [1, 4, 6], batch_first=1), tmp_path)
    x = golden["x"].reshape(-1, 1, 4, 6)
    np.testing.assert_array_equal(interpret(found, x)[-1].value.reshape(golden["qonnx"].shape), golden["qonnx"])


def test_what_is_no_cell_of_brevitas_is_refused(tmp_path: Path) -> None:
    model, _ = random_cell(0)
    del model.graph.node[-1].input[40:]
    with pytest.raises(HlsgenError, match=r"HG014.*40 inputs"):
        imported(model, tmp_path)
