"""A wake word on a processor with our core: a WAV file through a simulated system to detections.

    python examples/wakeword/run.py [FILE.wav] [--plain-frames N] [--output FOLDER]

Builds the core of okay_nabu.tflite and a system around it, replaces the firmware by main.c, and runs it in Verilator.
tflite-micro runs the same frames; the firmware compares every probability. The exit code is 0 if all are equal.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from features import Array, frames_of, read_wav
from plain_c import plain_c

import hlsgen
from hlsgen.frontend.tflite.file import TfliteFile, read_file
from hlsgen.simulation.tflite_oracle import run_file

HERE = Path(__file__).resolve().parent
#: As the model's description has them: a detection is a mean of WINDOW probabilities of at least CUTOFF.
CUTOFF, WINDOW = 0.85, 5
#: Bytes of memory beside the frames: program, weights for the processor alone, stack.
PROGRAM_BYTES = 96 << 10
PACKAGES = ("pymicro_features", "tflite_micro", "pythondata_cpu_picorv32", "ziglang", "verilator")


def input_of(file: TfliteFile) -> tuple[float, int]:
    """Scale and zero point of the input of a file."""
    quantization = file.graphs[0].tensors[file.graphs[0].inputs[0]].quantization
    assert quantization is not None
    return float(quantization.scale[0]), int(quantization.zero_point[0])


def vectors(frames: Array, probabilities: Array) -> bytes:
    """Each frame with the expected probability, in whole words."""
    rows = frames.reshape(len(frames), -1).view(np.uint8)
    padding = np.zeros((len(rows), 3), np.uint8)
    return np.concatenate([rows, probabilities.reshape(-1, 1).astype(np.uint8), padding], axis=1).tobytes()


def write_firmware(soc: Path, file: TfliteFile, frames: Array, probabilities: Array, plain_frames: int) -> None:
    """Replaces the firmware of the system in folder `soc`, and makes its memory large enough."""
    firmware = soc / "firmware"
    for name in ("main.c", "network.c", "plain.h"):
        shutil.copy(HERE / name, firmware / name)
    (firmware / "network.h").write_text(plain_c(file), encoding="utf-8")
    (firmware / "settings.h").write_text(
        f"#define FRAMES {len(frames)}\n#define PLAIN_FRAMES {min(plain_frames, len(frames))}\n"
        f"#define WINDOW {WINDOW}\n#define CUTOFF {round(CUTOFF * 256 * WINDOW)}\n",
        encoding="utf-8",
    )
    data = vectors(frames, probabilities)
    (firmware / "vectors.bin").write_bytes(data)
    words = 1 << (PROGRAM_BYTES + len(data) - 1).bit_length() - 2
    for path, pattern, text in (
        (firmware / "link.ld", r"(LENGTH = )\d+", rf"\g<1>{4 * words}"),
        (soc / "soc.v", r"(RAM_WORDS = )\d+", rf"\g<1>{words}"),
    ):
        path.write_text(re.sub(pattern, text, path.read_text(encoding="utf-8")), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recording", type=Path, nargs="?", default=HERE / "okay_nabu.wav", help="16 kHz, 16 bits, mono")
    parser.add_argument("--plain-frames", type=int, default=3, help="frames for the processor alone")
    parser.add_argument("--output", type=Path, help="keep core and system in this folder")
    arguments = parser.parse_args()
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise SystemExit(f"not installed: {', '.join(missing)}. Install the extra `wakeword`, or run `make wakeword`.")
    data = (HERE / "okay_nabu.tflite").read_bytes()
    file = read_file(data, "okay_nabu")
    frames = frames_of(read_wav(arguments.recording), *input_of(file))
    (probabilities,) = run_file(data, "tflm", [frames], 1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.output or Path(temporary)
        options = hlsgen.Options(bus_width="32", control=True, target_cycles=3200)
        print(hlsgen.build(HERE / "okay_nabu.tflite", folder / "core", options), flush=True)
        hlsgen.package(folder / "core", folder / "system", ["soc"])
        soc = folder / "system" / "soc"
        write_firmware(soc, file, frames, probabilities, max(1, arguments.plain_frames))
        command = ["make", "-s", "-C", str(soc), "sim", f"PYTHON={sys.executable}"]
        raise SystemExit(subprocess.run(command, check=False).returncode)


if __name__ == "__main__":
    main()
