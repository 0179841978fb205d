"""Train two small networks on the 8x8 digits data that read an image as a sequence, and export them to QONNX.

    vit   a vision transformer: 16 patches of 2x2 pixels, attention of two heads
    gru   a recurrent network: 8 rows, one gated recurrent unit

The data is ``sklearn.datasets.load_digits``, which ships inside scikit-learn. Each network is trained in float, then
from there with Brevitas: weights and activations of 4 to 6 bits, all scales learned floats. The exporters write the
files; their debugging notes are removed. For the recurrent network Brevitas exports input quantizer, cell and dense
layer. They become one file whose `Scan` has the cell as its body. Writes next to this file:

    digits_vit.onnx, digits_gru.onnx                the quantized networks, with Quant nodes
    digits_vit_float.onnx, digits_gru_float.onnx    the float networks
    training.json                                   accuracies as measured here, and versions

    pip install torch brevitas qonnx onnx onnxscript onnxoptimizer scikit-learn
    python train.py         # ten minutes on one core
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import gru
import onnx
import torch
import vit
from brevitas.export import export_qonnx
from onnx import TensorProto, compose, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn

SEED = 0
BATCH = 32
OPSET = 18
#: Epochs in float and with quantizers, the learning rate of the first, weight decay.
TRAINING = {"vit": (120, 80, 4e-3, 1e-2), "gru": (100, 60, 1e-2, 1e-3)}


def shifted(images: Tensor, order: torch.Generator) -> Tensor:
    """Every image moved by -1, 0 or 1 pixel to the sides."""
    padded = nn.functional.pad(images, (1, 1))
    moves = torch.randint(0, 3, (len(padded),), generator=order)
    return torch.stack([image[:, int(move) : int(move) + 8] for image, move in zip(padded, moves, strict=True)])


def train(net: nn.Module, x: Tensor, y: Tensor, epochs: int, rate: float, decay: float) -> None:
    """Train in place with AdamW, a one-cycle learning rate and the cross entropy. x: images (n, 8, 8)."""
    order = torch.Generator().manual_seed(SEED)
    steps = len(x) // BATCH
    optimizer = torch.optim.AdamW(net.parameters(), lr=rate, weight_decay=decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=epochs * steps)
    loss_function = nn.CrossEntropyLoss(label_smoothing=0.05)
    net.train()
    for _ in range(epochs):
        permutation = torch.randperm(len(x), generator=order)
        for step in range(steps):
            picked = permutation[step * BATCH : (step + 1) * BATCH]
            optimizer.zero_grad()
            loss_function(net(net.sequence(shifted(x[picked], order))), y[picked]).backward()
            optimizer.step()
            schedule.step()
    net.eval()


def accuracy(net: nn.Module, x: Tensor, y: Tensor) -> float:
    """The share of the images whose largest output is the right class."""
    with torch.no_grad():
        return float((net(net.sequence(x)).argmax(dim=1) == y).float().mean())


# --------------------------------------------------------------------------- export


def exported(
    net: nn.Module, samples: tuple[Tensor, ...], inputs: list[str], output: str, quantized: bool
) -> onnx.ModelProto:
    """The exported model, without the exporter's notes."""
    names: dict[str, Any] = {
        "input_names": inputs,
        "output_names": [output],
        "opset_version": OPSET,
        "external_data": False,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "part.onnx"
        if quantized:
            export_qonnx(net, args=samples, export_path=str(path), **names)
        else:
            torch.onnx.export(net, samples, str(path), verbose=False, **names)
        model = onnx.load(path)
    graph = model.graph
    del model.metadata_props[:], graph.value_info[:]
    for item in (graph, *graph.node, *graph.input, *graph.output, *graph.initializer):
        del item.metadata_props[:]
        item.ClearField("doc_string")
    return model


def as_scan(net: gru.Network) -> onnx.ModelProto:
    """One file of three parts: the quantizer of the input, a Scan of the cell over the rows, the dense layer."""
    row, state = torch.zeros(1, gru.PIXELS), torch.zeros(1, gru.STATE)

    def part(of: nn.Module, samples: tuple[Tensor, ...], inputs: list[str], output: str) -> onnx.GraphProto:
        graph = exported(of, samples, inputs, output, net.quantized).graph
        return compose.add_prefix_graph(graph, f"{output}.", rename_inputs=False, rename_outputs=False)

    body = part(net.cell, (row, state), ["row", "state"], "next")
    by_name = {value.name: value for value in body.input}
    del body.input[:]
    body.input.extend([by_name["state"], by_name["row"]])  # a Scan gives its states first
    head = part(net.head, (state,), ["last"], "output")
    nodes, constants, rows = [], [numpy_helper.from_array(state.numpy(), "first")], "input"
    if net.quantized:
        front = part(net.input_quant, (torch.zeros(1, gru.ROWS, gru.PIXELS),), ["input"], "rows")
        nodes, constants, rows = [*front.node], [*constants, *front.initializer], "rows"
    nodes.append(helper.make_node("Transpose", [rows], ["steps"], "steps", perm=[1, 0, 2]))
    nodes.append(helper.make_node("Scan", ["first", "steps"], ["last"], "scan", body=body, num_scan_inputs=1))
    shape = [1, gru.ROWS, gru.PIXELS]
    graph = helper.make_graph(
        [*nodes, *head.node],
        "digits_gru",
        [helper.make_tensor_value_info("input", TensorProto.FLOAT, shape)],
        [*head.output],
        [*constants, *head.initializer],
    )
    opsets = [helper.make_opsetid("", OPSET)]
    if net.quantized:
        opsets.append(helper.make_opsetid("qonnx.custom_op.general", 1))
    return helper.make_model(graph, opset_imports=opsets, ir_version=9, producer_name="digits_gru")


def model_of(net: nn.Module) -> onnx.ModelProto:
    if isinstance(net, gru.Network):
        return as_scan(net)
    sample = torch.zeros(1, vit.PATCHES, vit.PIXELS)
    return exported(net, (sample,), ["input"], "output", bool(net.quantized))


def main() -> None:
    """Train, export and write the record."""
    parser = argparse.ArgumentParser(description="Train the digits sequence networks and export them to QONNX.")
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent, help="output folder")
    out: Path = parser.parse_args().out
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    pixels, labels = load_digits(return_X_y=True)
    split = train_test_split(pixels, labels, test_size=0.25, random_state=0, stratify=labels)
    x, x_test = (torch.tensor(part / 16, dtype=torch.float32).reshape(-1, 8, 8) for part in split[:2])
    y, y_test = (torch.tensor(part, dtype=torch.int64) for part in split[2:])
    record: dict[str, object] = {"train_size": len(x), "test_size": len(x_test), "seed": SEED}
    kinds: tuple[tuple[str, type[nn.Module]], ...] = (("vit", vit.VisionTransformer), ("gru", gru.Network))
    for name, kind in kinds:
        epochs, quantized_epochs, rate, decay = TRAINING[name]
        torch.manual_seed(SEED)
        real = kind(False)
        train(real, x, y, epochs, rate, decay)
        quantized = kind(True)
        quantized.load_state_dict(real.state_dict(), strict=False)
        train(quantized, x, y, quantized_epochs, rate / 4, decay)
        for net, file, key in ((real, f"digits_{name}_float", "float"), (quantized, f"digits_{name}", "quantized")):
            record[f"{name}_{key}_accuracy"] = round(accuracy(net, x_test, y_test), 4)
            path = out / f"{file}.onnx"
            onnx.save(model_of(net), path)
            print(f"{path.name}: {path.stat().st_size} bytes")
    packages = ("torch", "brevitas", "qonnx", "onnx", "onnxscript", "onnxoptimizer", "scikit-learn", "numpy")
    record["versions"] = {"python": platform.python_version()} | {name: version(name) for name in packages}
    (out / "training.json").write_text(json.dumps(record, indent=2) + "\n")
    print(json.dumps(record, indent=2))


if __name__ == "__main__":
    main()
