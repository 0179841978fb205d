"""Handwritten digits with an LSTM: PNG files through the hardware's integers to a class.

    python examples/digits_lstm/classify.py [FILE.png ...] [--runtime tflm] [--backend verilator]

The LSTM reads an image row by row. Its states are variables of the file, which runtimes keep: each image starts a
sequence, with the states at their initial values.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from images import Array, read_png

import hlsgen

HERE = Path(__file__).resolve().parent
MODEL = HERE / "mnist_lstm_int8.tflite"
#: The input tensor, as the file has it: a code is a pixel - 128, of scale 1/255.
ZERO_POINT = -128
#: As fast as a core of about 10,000 LUT is.
TARGET_CYCLES = 11_007


def probabilities(core: Path, images: list[Array], backend: str) -> Array:
    """The network's codes for each image, int64 (images, 10); a code c is the probability (c + 128) / 256."""
    codes = np.stack(images).astype(np.int64) + ZERO_POINT
    outputs = hlsgen.run(core, codes.astype(np.int8), backend=backend, starts=list(range(len(images))))
    return np.asarray(outputs, np.int64).reshape(len(images), 10)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images", type=Path, nargs="*", default=sorted((HERE / "digits").glob("*.png")))
    parser.add_argument("--runtime", default="tflm", help="tflm, litert-ref or litert")
    parser.add_argument("--backend", default="reference", help="reference, verilator or icarus")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        core = Path(folder, "core")
        print(hlsgen.build(MODEL, core, hlsgen.Options(runtime=arguments.runtime, target_cycles=TARGET_CYCLES)))
        rows = probabilities(core, [read_png(path) for path in arguments.images], arguments.backend)
    for path, row in zip(arguments.images, rows, strict=True):
        print(f"{path.name}: {row.argmax()}, {(row.max() + 128) / 256:.0%}")


if __name__ == "__main__":
    main()
