"""Accuracy of the sequence networks in float, as integers and as hardware, on the 450 test images.

Runs the float network with onnx's reference evaluator; builds the Verilog of the quantized one; sends the test
images through the integer reference and through the simulated hardware, and compares them output by output.
Exits with 1 if a single output differs.

    pip install '.[demo]'
    python evaluate.py vit                # a few minutes, most of them for compiling the simulator
    python evaluate.py gru --backend icarus --images 20
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import hlsgen

HERE = Path(__file__).resolve().parent


def load_test_split(network: str) -> tuple[np.ndarray, np.ndarray]:
    """Sequences float32 in 0..1, (450, 16, 4) of patches or (450, 8, 8) of rows, and labels (450,)."""
    pixels, labels = load_digits(return_X_y=True)
    _, x, _, y = train_test_split(pixels, labels, test_size=0.25, random_state=0, stratify=labels)
    images = (x / 16).astype(np.float32).reshape(-1, 8, 8)
    if network == "gru":
        return images, y
    return images.reshape(-1, 4, 2, 4, 2).transpose(0, 1, 3, 2, 4).reshape(-1, 16, 4), y


def main() -> int:
    """Builds, runs, compares, prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("network", choices=["vit", "gru"])
    parser.add_argument("--backend", default="verilator", choices=["verilator", "icarus"], help="simulator")
    parser.add_argument("--images", type=int, default=450, help="how many test images")
    parser.add_argument("--target-cycles", type=int, default=512, help="as of hlsgen build")
    args = parser.parse_args()
    console, name = Console(), f"digits_{args.network}"
    x, labels = (part[: args.images] for part in load_test_split(args.network))

    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / name
        with console.status("float network"):
            float_network = ReferenceEvaluator(onnx.load(HERE / f"{name}_float.onnx"))
            real = np.stack([float_network.run(None, {"input": image[None]})[0] for image in x])
        with console.status("building"):
            options = hlsgen.Options(target_cycles=args.target_cycles, recurrence="once")
            build = hlsgen.build(HERE / f"{name}.onnx", directory, options)
        with console.status("reference"):
            expected = hlsgen.run(directory, x)
        with console.status(f"{len(x)} images through the hardware in {args.backend}"):
            actual = hlsgen.run(directory, x, args.backend)

    differing = int((actual != expected).sum())
    table = Table("network", "accuracy", "differs from reference", title=f"{name}.onnx, {len(x)} images")
    for kind, outputs, note in (
        ("float", real, ""),
        ("integer reference", expected, ""),
        (f"hardware in {args.backend}", actual, f"{differing} of {actual.size}"),
    ):
        right = outputs.reshape(len(x), -1).argmax(axis=1) == labels
        table.add_row(kind, f"{np.mean(right):.2%}", note)
    console.print(table)
    cycles = build.timing
    console.print(f"predicted: latency {cycles.latency} cycles, interval {cycles.interval} cycles", highlight=False)
    return 0 if differing == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
