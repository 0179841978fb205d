"""Train a small quantized network on the 8x8 digits data and export it to QONNX.

The data is ``sklearn.datasets.load_digits``, which ships inside scikit-learn, so nothing is downloaded. The
script trains the same multilayer perceptron, 64 -> 64 -> 32 -> 10, three times:

* in plain float (``nn.Linear``, ``nn.BatchNorm1d``, ``nn.ReLU``), as the reference for the accuracy;
* with Brevitas, 4-bit weights and activations, all scale factors powers of two, so that every matrix product
  is exact in float32 -> ``digits_mlp.onnx``;
* with Brevitas, the same bit widths, but learned float scale factors, one per output channel for the weights
  -> ``digits_mlp_float_scales.onnx``.

A pixel is an integer from 0 to 16; the networks take it divided by 16, as float32. The graphs are exported by
``brevitas.export.export_qonnx``. The exporter's debugging notes (Python stack traces with the file names of the
machine that ran the script) are removed; no clean-up pass is run. Each file is run with the QONNX executor on 100
test samples and must reproduce the PyTorch outputs. The powers of two must be exact; the float scale factors may
differ by the rounding of float32 sums.

All seeds are fixed and the last epoch is the one kept: the test set takes no part in the training. The same
versions of the packages on the same kind of processor give the same files. How to run (less than a minute on
one core, writes next to this file):

    pip install torch brevitas qonnx onnx onnxscript onnxoptimizer scikit-learn
    python train.py
"""

from __future__ import annotations

import argparse
import json
import platform
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import brevitas.nn as qnn
import numpy as np
import onnx
import torch
from brevitas.export import export_qonnx
from brevitas.quant.fixed_point import (
    Int8BiasPerTensorFixedPointInternalScaling,
    Int8WeightPerTensorFixedPoint,
    Uint8ActPerTensorFixedPoint,
    Uint8ActPerTensorFixedPointMaxInit,
)
from brevitas.quant.scaled_int import (
    Int8BiasPerTensorFloatInternalScaling,
    Int8WeightPerChannelFloat,
    Uint8ActPerTensorFloat,
)
from qonnx.core.modelwrapper import ModelWrapper
from qonnx.core.onnx_exec import execute_onnx
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

SEED = 0
LAYERS = (64, 64, 32, 10)
WEIGHT_BITS = 4
ACT_BITS = 4
INPUT_BITS = 5  # scale 1/16: the codes 0..16 of the 32 are the pixel values
BIAS_BITS = 8
EPOCHS = 80
BATCH = 32
LEARNING_RATE = 4e-3
WEIGHT_DECAY = 1e-4
CHECKED_SAMPLES = 100


class FixedInputQuant(Uint8ActPerTensorFixedPointMaxInit):
    """Unsigned input quantizer with the constant scale factor 2 / 2**INPUT_BITS, that is 1/16."""

    scaling_impl_type = "const"
    bit_width = INPUT_BITS
    max_val = 2.0


def float_network() -> nn.Sequential:
    """Build the reference network, without any quantization."""
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(LAYERS[:-1]):
        layers += [nn.Linear(n_in, n_out, bias=False), nn.BatchNorm1d(n_out), nn.ReLU()]
    layers.append(nn.Linear(LAYERS[-2], LAYERS[-1]))
    return nn.Sequential(*layers)


def quantized_network(power_of_two: bool) -> nn.Sequential:
    """Build the same network with Brevitas layers; the scale factors are powers of two or floats."""
    if power_of_two:
        weight_quant, act_quant = Int8WeightPerTensorFixedPoint, Uint8ActPerTensorFixedPoint
        input_quant, bias_quant = FixedInputQuant, Int8BiasPerTensorFixedPointInternalScaling
    else:
        weight_quant, act_quant = Int8WeightPerChannelFloat, Uint8ActPerTensorFloat
        input_quant, bias_quant = Uint8ActPerTensorFloat, Int8BiasPerTensorFloatInternalScaling

    def linear(n_in: int, n_out: int, bias: bool) -> nn.Module:
        return qnn.QuantLinear(
            n_in,
            n_out,
            bias=bias,
            weight_quant=weight_quant,
            weight_bit_width=WEIGHT_BITS,
            bias_quant=bias_quant if bias else None,
            **({"bias_bit_width": BIAS_BITS} if bias else {}),
        )

    layers: list[nn.Module] = [qnn.QuantIdentity(act_quant=input_quant, bit_width=INPUT_BITS)]
    for n_in, n_out in pairwise(LAYERS[:-1]):
        layers.append(linear(n_in, n_out, bias=False))
        layers.append(nn.BatchNorm1d(n_out))
        layers.append(qnn.QuantReLU(act_quant=act_quant, bit_width=ACT_BITS))
    layers.append(linear(LAYERS[-2], LAYERS[-1], bias=True))
    return nn.Sequential(*layers)


def train(net: nn.Module, x: Tensor, y: Tensor) -> None:
    """Train in place with Adam, a one-cycle learning rate and the cross entropy."""
    order = torch.Generator().manual_seed(SEED)
    steps = len(x) // BATCH
    optimizer = torch.optim.AdamW(net.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=EPOCHS * steps)
    loss_function = nn.CrossEntropyLoss(label_smoothing=0.05)
    net.train()
    for _ in range(EPOCHS):
        permutation = torch.randperm(len(x), generator=order)
        for step in range(steps):
            picked = permutation[step * BATCH : (step + 1) * BATCH]
            optimizer.zero_grad()
            loss_function(net(x[picked]), y[picked]).backward()
            optimizer.step()
            schedule.step()
    net.eval()


def outputs(net: nn.Module, x: Tensor) -> Tensor:
    """Return the network's outputs, without gradients."""
    with torch.no_grad():
        return net(x)


def accuracy(net: nn.Module, x: Tensor, y: Tensor) -> float:
    """Return the share of the samples whose largest output is the right class."""
    return float((outputs(net, x).argmax(dim=1) == y).float().mean())


def export(net: nn.Module, path: Path) -> None:
    """Write the QONNX file for one sample, without the exporter's stack traces."""
    export_qonnx(
        net,
        args=torch.zeros(1, LAYERS[0]),
        export_path=str(path),
        input_names=["input"],
        output_names=["output"],
        optimize=True,
        verbose=False,
        external_data=False,
    )
    model = onnx.load(path)
    graph = model.graph
    for item in (graph, *graph.node, *graph.input, *graph.output, *graph.value_info, *graph.initializer):
        del item.metadata_props[:]
        item.ClearField("doc_string")
    onnx.save(model, path)


def compare(net: nn.Module, path: Path, x: Tensor) -> float:
    """Run the file with the QONNX executor; return the largest difference from the PyTorch outputs."""
    model = ModelWrapper(str(path))
    input_name, output_name = model.graph.input[0].name, model.graph.output[0].name
    worst = 0.0
    for sample in x:
        row = sample[None, :]
        result = execute_onnx(model, {input_name: row.numpy()})[output_name]
        worst = max(worst, float(np.abs(result - outputs(net, row).numpy()).max()))
    return worst


def main() -> None:
    """Train, export, check and write the record."""
    parser = argparse.ArgumentParser(description="Train the digits example and export it to QONNX.")
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent, help="output folder")
    out: Path = parser.parse_args().out
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)

    pixels, labels = load_digits(return_X_y=True)
    split = train_test_split(pixels, labels, test_size=0.25, random_state=0, stratify=labels)
    x_train, x_test = (torch.tensor(part / 16, dtype=torch.float32) for part in split[:2])
    y_train, y_test = (torch.tensor(part, dtype=torch.int64) for part in split[2:])

    record: dict[str, object] = {"train_size": len(x_train), "test_size": len(x_test), "seed": SEED}

    torch.manual_seed(SEED)
    net = float_network()
    train(net, x_train, y_train)
    record["float_accuracy"] = round(accuracy(net, x_test, y_test), 4)

    variants = (
        ("digits_mlp", True, "quantized_accuracy"),
        ("digits_mlp_float_scales", False, "quantized_float_scales_accuracy"),
    )
    for name, power_of_two, key in variants:
        torch.manual_seed(SEED)
        net = quantized_network(power_of_two)
        train(net, x_train, y_train)
        record[key] = round(accuracy(net, x_test, y_test), 4)
        path = out / f"{name}.onnx"
        export(net, path)
        difference = compare(net, path, x_test[:CHECKED_SAMPLES])
        allowed = 0.0 if power_of_two else 1e-5
        if difference > allowed:
            raise SystemExit(f"{path.name}: differs from PyTorch by {difference}")
        print(f"{path.name}: {path.stat().st_size} bytes, largest difference from PyTorch {difference}")

    packages = ("torch", "brevitas", "qonnx", "onnx", "onnxscript", "onnxoptimizer", "scikit-learn", "numpy")
    record["versions"] = {"python": platform.python_version()} | {name: version(name) for name in packages}
    (out / "training.json").write_text(json.dumps(record, indent=2) + "\n")
    print(json.dumps(record, indent=2))


if __name__ == "__main__":
    main()
