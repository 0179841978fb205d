"""QuantLSTMCell of QONNX, as Brevitas exports it: the same cell in nodes run by qonnx, and a plain loop of its formulas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from paths import shared_model

from hlsgen.diagnostics import Collector, HlsgenError
from hlsgen.frontend import import_model
from hlsgen.interpreter.graph import evaluate
from hlsgen.interpreter.model import interpret
from hlsgen.ir import Model
from hlsgen.passes.lower import lower
from hlsgen.simulation.defined_cells import quant_lstm_cell

Array = Any
DOMAIN = "qonnx.custom_op.general"
QUANTIZERS = (
    "output", "cell_state", "input_acc", "forget_acc", "cell_acc", "output_acc",
    "input_sigmoid", "forget_sigmoid", "cell_tanh", "output_sigmoid", "hidden_state_tanh",
)  # fmt: skip


def tensor(name: str, shape: Any) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def cell_model(values: dict[str, Array], quantizers: dict[str, tuple], shape: Any, used: int = 0, **attrs: Any) -> Any:  # type: ignore[type-arg]
    """Quantizers of x and of the weights, and the node; `values`: by the names of its inputs, with (codes, scale) of
    weights; `quantizers`: (scale, bits, signed, narrow) of each, that of x first."""
    given = {"zero": np.float32(0), **{k: v for k, v in values.items() if not isinstance(v, tuple)}}
    nodes, own = [], ["xq", "h0", "c0"]
    for name in [*QUANTIZERS, "x"]:
        scale, bits, signed, narrow = quantizers[name]
        given |= {f"{name}_scale": np.float32(scale), f"{name}_bits": np.float32(bits)}
        if name != "x":
            odd = "_range" if name == "output_sigmoid" else ""
            attrs |= {f"{name}_signed": signed, f"{name}_narrow{odd}": narrow, f"{name}_rounding_mode": "ROUND"}
    nodes.append(
        helper.make_node("Quant", ["x", "x_scale", "zero", "x_bits"], ["xq"], domain=DOMAIN, name="qx", signed=1)
    )
    for part in "ih":
        for gate in "ifco":
            codes, scale = values[f"w{part}{gate}"]
            given |= {f"w{part}{gate}": (codes * scale).astype(np.float32), f"w{part}{gate}_s": np.float32(scale)}
            given["eight"] = np.float32(8)
            own.append(f"w{part}{gate}_q")
            nodes.append(
                helper.make_node(
                    "Quant", [f"w{part}{gate}", f"w{part}{gate}_s", "zero", "eight"], [own[-1]], domain=DOMAIN,
                    name=own[-1], signed=1, narrow=1,
                )
            )  # fmt: skip
    own += [f"b{gate}" for gate in "ifco"]
    own += [p for name in QUANTIZERS for p in (f"{name}_scale", "zero", f"{name}_bits")]
    outputs = [f"y{n}" if n != used else "y" for n in range(3)]
    nodes.append(helper.make_node("QuantLSTMCell", own, outputs, domain=DOMAIN, name="cell", **attrs))
    constants = [numpy_helper.from_array(np.asarray(v), k) for k, v in given.items()]
    graph = helper.make_graph(nodes, "net", [tensor("x", shape)], [tensor("y", None)], constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def imported(model: onnx.ModelProto, path: Path) -> Model:
    onnx.save(model, path / "m.onnx")
    problems = Collector()
    found = import_model(path / "m.onnx", problems)
    problems.finish()
    assert found is not None
    return found


def by_definition(model: onnx.ModelProto, x: Array) -> list[Array]:
    """The node's outputs, its parameters read from the file."""
    known = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    node = model.graph.node[-1]
    scale = known["x_scale"]
    known["xq"] = np.clip(np.round(x / scale), -128, 127).astype(np.float32) * scale
    known |= {f"w{p}{g}_q": known[f"w{p}{g}"] for p in "ih" for g in "ifco"}
    attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    return quant_lstm_cell([known[i] for i in node.input], attrs)


def random_cell(seed: int) -> tuple[onnx.ModelProto, int]:
    """One of its outputs is used; sums of products are exact in float32, all other scales are any numbers."""
    rng = np.random.default_rng(seed)
    steps, batch, size, width = int(rng.integers(1, 5)), int(rng.integers(1, 3)), int(rng.integers(1, 5)), 3
    values: dict[str, Array] = {
        f"w{p}{g}": (rng.integers(-127, 128, (width, size if p == "i" else width)), 2.0**-8)
        for p in "ih"
        for g in "ifco"
    }
    values |= {f"b{g}": (rng.integers(-64, 64, width) / 128).astype(np.float32) if rng.random() < 0.8 else np.float32(0) for g in "ifco"}  # fmt: skip
    hidden = float(rng.choice([2.0**-7, 2.0**-6]))
    quantizers = {name: (rng.uniform(0.01, 0.03), rng.integers(5, 9), 1, rng.integers(0, 2)) for name in QUANTIZERS}
    quantizers |= {n: (rng.uniform(1 / 256, 1 / 200), 8, 0, rng.integers(0, 2)) for n in QUANTIZERS if "sigmoid" in n}
    quantizers |= {"x": (2.0**-5, 8, 1, 0), "output": (hidden, 8, 1, rng.integers(0, 2))}
    cell = np.float32(quantizers["cell_state"][0])
    some = rng.random() < 0.5
    values["h0"] = (rng.integers(-20, 20, (batch, width)) * hidden * some).astype(np.float32)
    values["c0"] = (rng.integers(-12, 12, (batch, width)) * some).astype(np.float32) * cell
    first, used = int(rng.integers(0, 2)), int(rng.integers(0, 3))
    shape = [batch, steps, size] if first else [steps, batch, size]
    attrs = {"batch_first": first, "reverse_input": int(rng.integers(0, 2)), "cifg": int(rng.random() < 0.3)}
    return cell_model(values, quantizers, shape, used, **attrs), used


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
