"""Features of speech for microWakeWord: 40 codes of int8 every 10 ms, by the package pymicro-features."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

RATE = 16_000  # samples a second
CHUNK_BYTES = 320  # 10 ms
#: Rows of features in a frame of the network: 30 ms.
ROWS = 3


def read_wav(path: Path) -> bytes:
    """The samples of a mono WAV file of 16 bits and 16 kHz. Ends the program for other files."""
    with wave.open(str(path)) as file:
        if (file.getframerate(), file.getnchannels(), file.getsampwidth()) != (RATE, 1, 2):
            raise SystemExit(f"{path}: needs one channel of 16 bits at {RATE} Hz")
        return file.readframes(file.getnframes())


def frames_of(samples: bytes, scale: float, zero_point: int) -> Array:
    """The network's frames of a recording, int8 (frames, 1, 3, 40).

    scale, zero_point: of the network's input.
    """
    from pymicro_features import MicroFrontend

    frontend = MicroFrontend()
    outputs = [
        frontend.process_samples(samples[start : start + CHUNK_BYTES])
        for start in range(0, len(samples) - CHUNK_BYTES + 1, CHUNK_BYTES)
    ]
    rows = np.array([output.features for output in outputs if output.features], np.float64)
    codes = np.clip(np.rint(rows / scale) + zero_point, -128, 127).astype(np.int8)
    count = len(codes) // ROWS
    return codes[: count * ROWS].reshape(count, 1, ROWS, -1)
