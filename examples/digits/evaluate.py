"""Accuracy of the digits network before and after it became hardware, on all 450 test samples.

Builds the Verilog, runs the test split of train.py through the integer reference and through the
simulated hardware, compares them output by output, and verifies the build. Exits with 1 if a
single output differs.

    pip install '.[sim]' scikit-learn
    python evaluate.py
    python evaluate.py --model digits_mlp_float_scales.onnx --backend icarus
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import hlsgen

HERE = Path(__file__).resolve().parent
#: The key in training.json of the accuracy that PyTorch measured, by model file.
TRAINED = {"digits_mlp": "quantized_accuracy", "digits_mlp_float_scales": "quantized_float_scales_accuracy"}


def load_test_split() -> tuple[np.ndarray, np.ndarray]:
    """Pixels (450, 64) float32 in 0..1 and labels (450,): the samples that train.py held back."""
    pixels, labels = load_digits(return_X_y=True)
    _, x, _, y = train_test_split(pixels, labels, test_size=0.25, random_state=0, stratify=labels)
    return (x / 16).astype(np.float32), y


def main() -> int:
    """Builds, runs, compares, prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, default=HERE / "digits_mlp.onnx", help="network with 64 inputs")
    parser.add_argument("--backend", default="verilator", choices=["verilator", "icarus"], help="simulator")
    parser.add_argument("--clock-mhz", type=float, default=200.0, help="clock for the rates that are printed")
    args = parser.parse_args()
    console = Console()
    x, labels = load_test_split()

    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / args.model.stem
        with console.status("building"):
            hlsgen.build(args.model, directory)
        with console.status("reference"):
            expected = hlsgen.run(directory, x)
        with console.status(f"{len(x)} samples through the hardware in {args.backend}"):
            actual = hlsgen.run(directory, x, args.backend)
        with console.status(f"verifying in {args.backend}"):
            verdict = hlsgen.verify(directory, [args.backend])

    trained = json.loads((HERE / "training.json").read_text())
    table = Table("network", "accuracy", "differs from reference", title=args.model.name)
    table.add_row("float (PyTorch)", f"{trained['float_accuracy']:.2%}", "")
    if key := TRAINED.get(args.model.stem):
        table.add_row("quantized (PyTorch)", f"{trained[key]:.2%}", "")
    table.add_row("integer reference", f"{np.mean(expected.argmax(axis=1) == labels):.2%}", "")
    differing = int((actual != expected).sum())
    table.add_row(
        f"hardware in {args.backend}",
        f"{np.mean(actual.argmax(axis=1) == labels):.2%}",
        f"{differing} of {actual.size}",
    )
    console.print(table)

    measured = verdict.simulators[args.backend]
    latency, interval = measured.cycles["latency"], measured.cycles["interval"]
    console.print(f"verify: {'equal' if verdict.ok else 'DIFFERENT'}, {measured.samples} frames of stimuli")
    if latency and interval:
        console.print(
            f"measured: latency {latency} cycles, interval {interval} cycles; at {args.clock_mhz:g} MHz "
            f"{latency / args.clock_mhz:.3g} us and {args.clock_mhz * 1e6 / interval:,.0f} frames/s",
            highlight=False,
            soft_wrap=True,
        )
    return 0 if verdict.ok and differing == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
