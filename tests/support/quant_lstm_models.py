"""Models of one QuantLSTMCell, as Brevitas exports it, and what it computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from recurrent_cells import tensor

from hlsgen.simulation.defined_cells import quant_lstm_cell

Array = Any
DOMAIN = "qonnx.custom_op.general"
QUANTIZERS = (
    "output",
    "cell_state",
    "input_acc",
    "forget_acc",
    "cell_acc",
    "output_acc",
    "input_sigmoid",
    "forget_sigmoid",
    "cell_tanh",
    "output_sigmoid",
    "hidden_state_tanh",
)


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
                    "Quant",
                    [f"w{part}{gate}", f"w{part}{gate}_s", "zero", "eight"],
                    [own[-1]],
                    domain=DOMAIN,
                    name=own[-1],
                    signed=1,
                    narrow=1,
                )
            )
    own += [f"b{gate}" for gate in "ifco"]
    own += [p for name in QUANTIZERS for p in (f"{name}_scale", "zero", f"{name}_bits")]
    outputs = [f"y{n}" if n != used else "y" for n in range(3)]
    nodes.append(helper.make_node("QuantLSTMCell", own, outputs, domain=DOMAIN, name="cell", **attrs))
    constants = [numpy_helper.from_array(np.asarray(v), k) for k, v in given.items()]
    graph = helper.make_graph(nodes, "net", [tensor("x", shape)], [tensor("y", None)], constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


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
    values |= {
        f"b{g}": (rng.integers(-64, 64, width) / 128).astype(np.float32) if rng.random() < 0.8 else np.float32(0)
        for g in "ifco"
    }
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
