"""Train a small quantized convolutional network on the 8x8 digits data and export it to QONNX.

Nothing but numpy, scikit-learn (for the data, which it contains) and onnx is needed. The network, twice: in float,
and with weights and activations of 4 bits ("fake quantization": rounded on the way forward, the gradient passes
as if they were not).

    input 8x8 -> conv 3x3, 8 -> maxpool 2x2 -+-> depthwise 3x3 -> conv 1x1, 8 -(+)-> conv 3x3, 16 -> dense 10
                                             +----------------------------------+

Every convolution is followed by batch normalization and a quantizer. All scales are powers of two, so every sum of
products is exact in float32, in any order. Training is deterministic: fixed seeds, one thread, the last epoch is
kept, and the test set takes no part in it. Other versions of numpy or another processor may give other weights.
Writes next to this file:

    digits_cnn.onnx         the quantized network, with Quant nodes
    digits_cnn_float.onnx   the float network
    training.json           accuracies as measured here, and versions

    pip install scikit-learn onnx
    python train.py         # about a minute
"""

from __future__ import annotations

import argparse
import json
import os
import platform
from importlib.metadata import version
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # sums in one order, whatever the machine's cores

import numpy as np
import onnx
from network import EPSILON, STEP, Array, Network, weight_scale
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 0
EPOCHS = 60
BATCH = 32
LEARNING_RATE = 8e-3
WEIGHT_DECAY = 1e-3
BITS = 4


# --------------------------------------------------------------------------- training


def shifted(x: Array, rng: np.random.Generator) -> Array:
    """Every image moved by -1, 0 or 1 pixel to the sides."""
    moves = rng.integers(-1, 2, len(x))
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (0, 0)))
    return np.stack([image[:, 1 - move : 9 - move] for image, move in zip(padded, moves, strict=True)])


def train(net: Network, x: Array, y: Array) -> None:
    """Adam, a learning rate that rises and falls once, cross entropy."""
    rng = np.random.default_rng(SEED)
    moments = {name: (np.zeros_like(t.data), np.zeros_like(t.data)) for name, t in net.weights.items()}
    total, batches = EPOCHS * (len(x) // BATCH), 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(x))
        for start in range(0, len(x) // BATCH * BATCH, BATCH):
            picked = order[start : start + BATCH]
            logits = net(shifted(x[picked], rng))
            odds = np.exp(logits.data - logits.data.max(axis=1, keepdims=True))
            odds /= odds.sum(axis=1, keepdims=True)
            target = np.full_like(odds, 0.005)
            target[np.arange(BATCH), y[picked]] += 0.95
            net.backward(logits, (odds - target) / BATCH)
            batches += 1
            rate = LEARNING_RATE * min(batches / (0.2 * total), (total - batches) / (0.8 * total))
            for name, tensor in net.weights.items():
                grad = np.zeros_like(tensor.data) if tensor.grad is None else tensor.grad
                first, second = moments[name]
                first += 0.1 * (grad - first)
                second += 0.001 * (grad**2 - second)
                step = first / (1 - 0.9**batches) / (np.sqrt(second / (1 - 0.999**batches)) + 1e-8)
                tensor.data = tensor.data - rate * (step + WEIGHT_DECAY * tensor.data)
                tensor.grad = None
    net.training = False


def accuracy(net: Network, x: Array, y: Array) -> float:
    return float(np.mean(net(x).data.argmax(axis=1) == y))


# --------------------------------------------------------------------------- export


class Export:
    """An ONNX graph that grows; channels first, as ONNX has them."""

    def __init__(self, net: Network) -> None:
        self.net = net
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.last = "input"

    def const(self, name: str, value: object) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(value, np.float32), name))
        return name

    def node(self, op: str, name: str, *inputs: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(op, [*inputs], [f"{name}_out"], name=name, **attributes))
        self.last = f"{name}_out"
        return self.last

    def quant(self, name: str, data: str, scale: object, bits: int, signed: int, narrow: int = 0) -> str:
        """A Quant node; the data itself in float networks."""
        if not self.net.quantized:
            return data
        parameters = [
            self.const(f"{name}_{key}", value) for key, value in (("scale", scale), ("zero", 0), ("bits", bits))
        ]
        node = helper.make_node(
            "Quant",
            [data, *parameters],
            [f"{name}_out"],
            name=name,
            domain="qonnx.custom_op.general",
            signed=signed,
            narrow=narrow,
            rounding_mode="ROUND",
        )
        self.nodes.append(node)
        self.last = f"{name}_out"
        return self.last

    def act(self, name: str, signed: bool = False) -> str:
        if not signed:
            self.node("Relu", f"{name}_relu", self.last)
        return self.quant(f"{name}_quant", self.last, STEP, BITS, int(signed))

    def weight(self, name: str, order: tuple[int, ...]) -> str:
        """The weights with their axes in this order, through a Quant with a scale for each output."""
        weight = self.net.weights[name].data
        scale = np.broadcast_to(weight_scale(weight), weight.shape).transpose(order)
        axis = order.index(weight.ndim - 1)
        scale = scale.max(axis=tuple(a for a in range(weight.ndim) if a != axis), keepdims=True)
        data = weight.transpose(order)
        if name == "depthwise":  # one input channel a group
            data, scale = data[:, None], scale[:, None]
        return self.quant(f"{name}_weight_quant", self.const(f"{name}_weight", data), scale, BITS, 1, 1)

    def conv(self, name: str, pad: int, group: int = 1) -> str:
        source = self.last
        weight = self.weight(name, (2, 0, 1) if group > 1 else (3, 2, 0, 1))
        self.node("Conv", name, source, weight, pads=[pad] * 4, group=group)
        parameters = {
            "gamma": self.net.weights[f"{name}.gamma"].data,
            "beta": self.net.weights[f"{name}.beta"].data,
            "mean": self.net.running[f"{name}.mean"],
            "var": self.net.running[f"{name}.var"],
        }
        inputs = [self.const(f"{name}_{key}", value) for key, value in parameters.items()]
        return self.node("BatchNormalization", f"{name}_norm", self.last, *inputs, epsilon=EPSILON)

    def model(self) -> onnx.ModelProto:
        """The network of `Network.__call__`."""
        self.quant("input_quant", "input", 1 / 16, 5, 0)
        self.conv("conv1", 1)
        self.act("conv1")
        first = self.node("MaxPool", "pool", self.last, kernel_shape=[2, 2], strides=[2, 2])
        self.conv("depthwise", 1, group=8)
        self.act("depthwise")
        self.conv("pointwise", 0)
        branch = self.act("pointwise", signed=True)
        self.node("Add", "residual", first, branch)
        self.act("residual")
        self.conv("conv2", 0)
        self.act("conv2")
        flat = self.node("Flatten", "flatten", self.last)
        product = self.node("MatMul", "dense", flat, self.weight("dense", (0, 1)))
        self.nodes.append(
            helper.make_node(
                "Add", [product, self.const("dense_bias", self.net.weights["dense.bias"].data)], ["output"], name="bias"
            )
        )
        graph = helper.make_graph(
            self.nodes,
            "digits_cnn",
            [helper.make_tensor_value_info("input", TensorProto.FLOAT, ["N", 1, 8, 8])],
            [helper.make_tensor_value_info("output", TensorProto.FLOAT, ["N", 10])],
            self.constants,
        )
        opsets = [helper.make_opsetid("", 14)]
        if self.net.quantized:
            opsets.append(helper.make_opsetid("qonnx.custom_op.general", 1))
        return helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="digits_cnn")


def main() -> None:
    """Train, export and write the record."""
    parser = argparse.ArgumentParser(description="Train the digits CNN and export it to QONNX.")
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent, help="output folder")
    out: Path = parser.parse_args().out
    pixels, labels = load_digits(return_X_y=True)
    images = (pixels / 16).reshape(-1, 8, 8, 1)
    x, x_test, y, y_test = train_test_split(images, labels, test_size=0.25, random_state=0, stratify=labels)
    record: dict[str, object] = {"train_size": len(x), "test_size": len(x_test), "seed": SEED}
    for name, key, quantized in (("digits_cnn_float", "float", False), ("digits_cnn", "quantized", True)):
        net = Network(quantized, SEED)
        train(net, x, y)
        record[f"{key}_accuracy"] = round(accuracy(net, x_test, y_test), 4)
        path = out / f"{name}.onnx"
        onnx.save(Export(net).model(), path)
        print(f"{path.name}: {path.stat().st_size} bytes, test accuracy {record[f'{key}_accuracy']:.2%}")
    packages = {package: version(package) for package in ("numpy", "onnx", "scikit-learn")}
    record["versions"] = {"python": platform.python_version(), **packages}
    (out / "training.json").write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
