"""Keyword spotting with the MLPerf Tiny network: WAV files through the hardware's integers to a word.

    python examples/keyword_spotting/spot.py MODEL.tflite FILE.wav ... [--runtime tflm] [--backend verilator]

MODEL.tflite is kws_ref_model.tflite of mlcommons/tiny (Apache-2.0), unchanged.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from features import COEFFICIENTS, FRAMES, coefficients, read_wav

import hlsgen

WORDS = ("down", "go", "left", "no", "off", "on", "right", "stop", "up", "yes", "(silence)", "(unknown)")
#: Scale and zero point of the input tensor, as the file has them.
SCALE, ZERO_POINT = 0.5847029, 83


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("recordings", type=Path, nargs="+")
    parser.add_argument("--runtime", default="tflm", help="tflm, litert-ref or litert")
    parser.add_argument("--backend", default="reference", help="reference, verilator or icarus")
    arguments = parser.parse_args()
    features = np.stack([coefficients(read_wav(path)) for path in arguments.recordings])
    codes = np.clip(np.rint(features / SCALE) + ZERO_POINT, -128, 127).astype(np.int8)
    with tempfile.TemporaryDirectory() as folder:
        core = Path(folder, "core")
        build = hlsgen.build(arguments.model, core, hlsgen.Options(runtime=arguments.runtime, fps=100))
        print(build)
        shape = (len(codes), FRAMES, COEFFICIENTS, 1)
        shares = np.asarray(hlsgen.run(core, codes.reshape(shape), backend=arguments.backend)).reshape(len(codes), -1)
    for path, row in zip(arguments.recordings, shares.astype(np.int64), strict=True):
        best = int(row.argmax())
        print(f"{path.name}: {WORDS[best]}, {(row[best] + 128) / 256:.0%}")


if __name__ == "__main__":
    main()
