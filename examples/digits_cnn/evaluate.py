"""Accuracy of the convolutional network in float, as integers and as hardware, on all 450 test images.

Runs the float network with onnx's reference evaluator; builds the Verilog of the quantized one; sends the test
images through the integer reference and through the simulated hardware, and compares them output by output.
Exits with 1 if a single output differs.

    pip install '.[demo]'
    python evaluate.py                    # about a minute, most of it for compiling the simulator
    python evaluate.py --backend icarus --images 20
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


def load_test_split() -> tuple[np.ndarray, np.ndarray]:
    """Images (450, 1, 8, 8) float32 in 0..1 and labels (450,): the samples that train.py held back."""
    pixels, labels = load_digits(return_X_y=True)
    _, x, _, y = train_test_split(pixels, labels, test_size=0.25, random_state=0, stratify=labels)
    return (x / 16).astype(np.float32).reshape(-1, 1, 8, 8), y


def main() -> int:
    """Builds, runs, compares, prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="verilator", choices=["verilator", "icarus"], help="simulator")
    parser.add_argument("--images", type=int, default=450, help="how many test images")
    parser.add_argument("--target-cycles", type=int, default=576, help="as of hlsgen build")
    args = parser.parse_args()
    console = Console()
    x, labels = (part[: args.images] for part in load_test_split())

    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "digits_cnn"
        with console.status("float network"):
            real = ReferenceEvaluator(onnx.load(HERE / "digits_cnn_float.onnx")).run(None, {"input": x})[0]
        with console.status("building"):
            options = hlsgen.Options(target_cycles=args.target_cycles)
            build = hlsgen.build(HERE / "digits_cnn.onnx", directory, options)
        with console.status("reference"):
            expected = hlsgen.run(directory, x)
        with console.status(f"{len(x)} images through the hardware in {args.backend}"):
            actual = hlsgen.run(directory, x, args.backend)

    differing = int((actual != expected).sum())
    table = Table("network", "accuracy", "differs from reference", title=f"digits_cnn.onnx, {len(x)} images")
    for name, outputs, note in (
        ("float", real, ""),
        ("integer reference", expected, ""),
        (f"hardware in {args.backend}", actual, f"{differing} of {actual.size}"),
    ):
        table.add_row(name, f"{np.mean(outputs.argmax(axis=1) == labels):.2%}", note)
    console.print(table)
    cycles = build.timing
    console.print(f"predicted: latency {cycles.latency} cycles, interval {cycles.interval} cycles", highlight=False)
    return 0 if differing == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
