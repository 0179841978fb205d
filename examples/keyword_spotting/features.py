"""Features of the MLPerf Tiny keyword network: 49 frames of 10 mel-frequency cepstral coefficients a second.

The parameters are those of its training: windows of 30 ms every 20 ms, 40 mel bands from 20 to 4000 Hz.
"""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

RATE = 16_000  # samples a second
WINDOW, STEP, TRANSFORM = 480, 320, 512  # samples
FRAMES, COEFFICIENTS = 49, 10
MEL_BANDS, LOWEST_HZ, HIGHEST_HZ = 40, 20.0, 4000.0


def read_wav(path: Path) -> Array:
    """The samples of a mono WAV file of 16 bits and 16 kHz, float64."""
    with wave.open(str(path)) as file:
        if (file.getframerate(), file.getnchannels(), file.getsampwidth()) != (RATE, 1, 2):
            raise SystemExit(f"{path}: needs one channel of 16 bits at {RATE} Hz")
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float64)


def coefficients(samples: Array) -> Array:
    """The features (49, 10) of the first second of `samples`, which is scaled to a largest value of 1."""
    second = np.zeros(RATE)
    second[: min(len(samples), RATE)] = samples[:RATE]
    second /= second.max() or 1
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
    windows = np.stack([second[n * STEP : n * STEP + WINDOW] for n in range(FRAMES)]) * hann
    spectrum = np.abs(np.fft.rfft(windows, TRANSFORM))
    log_mel = np.log(spectrum @ _mel_bands() + 1e-6)
    order, band = np.arange(COEFFICIENTS)[:, None], np.arange(MEL_BANDS)[None]
    cosines = np.sqrt(2 / MEL_BANDS) * np.cos(np.pi * order * (band + 0.5) / MEL_BANDS)
    return np.asarray(log_mel @ cosines.T)


def _mel_bands() -> Array:
    """Triangular bands on the mel scale, (points of the spectrum, bands)."""
    edges = np.linspace(_mel(LOWEST_HZ), _mel(HIGHEST_HZ), MEL_BANDS + 2)
    mel = _mel(np.linspace(0, RATE / 2, TRANSFORM // 2 + 1))[:, None]
    rising = (mel - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - mel) / (edges[2:] - edges[1:-1])
    return np.asarray(np.maximum(0, np.minimum(rising, falling)))


def _mel(hertz: Any) -> Any:
    return 1127 * np.log1p(np.asarray(hertz) / 700)
