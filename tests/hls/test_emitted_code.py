"""Emitted C++ without the library's benches: no warning of g++, and no finding of its sanitizers."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import attention_nets
import onnx
import pytest
from paths import ROOT
from recurrent_cells import elman
from state_models import delays
from tflite_random import random_file

import hlsgen
from hlsgen.simulation.cpp_headers import DIALECTS, include_folders

#: Kinds of models, with the options of their builds.
OPTIONS: dict[str, dict[str, object]] = {
    "dense": {"target_cycles": 64},
    "cnn": {"target_cycles": 576},
    "attention": {},
    "recurrent": {"recurrence": "once"},
    "tflite": {},
    "state": {"state": ["line=line_out", "last=last_out"]},
}
_SANITIZE = "-O0 -Werror -fsanitize=address,undefined -fno-sanitize-recover=all"
#: ap_int shifts negative numbers to the left, which C++ defines since 2020 only. With ac_int, counters have the widths
#: of hardware.
_OWN_FLAGS = {"ap": "-fno-sanitize=shift-base", "ac": "-DHG_EXACT_COUNTERS"}


def model(kind: str, folder: Path) -> Path:
    """The file of a model of `OPTIONS`."""
    if kind in ("dense", "cnn"):
        return ROOT / "examples" / {"dense": "digits/digits_mlp.onnx", "cnn": "digits_cnn/digits_cnn.onnx"}[kind]
    if kind == "tflite":
        (folder / "m.tflite").write_bytes(random_file("NET", 3).data)
        return folder / "m.tflite"
    proto = {"attention": lambda: attention_nets.network(4, 4), "recurrent": lambda: elman(4), "state": delays}[kind]()
    onnx.save(proto, folder / "m.onnx")
    return folder / "m.onnx"


@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("kind", OPTIONS)
def test_emitted_code_is_clean(kind: str, dialect: str, tmp_path: Path) -> None:
    """Bounds of arrays, shifts and overflows of the core and its bench, with the types of Vitis and of Catapult."""
    hlsgen.build(model(kind, tmp_path), tmp_path / "out", hlsgen.Options(target="hls", **OPTIONS[kind]))  # type: ignore[arg-type]
    (include,) = include_folders(dialect)
    command = ["make", "-s", {"ap": "csim", "ac": "csim_ac"}[dialect], f"CXXFLAGS={_SANITIZE} {_OWN_FLAGS[dialect]}"]
    command += [f"HLS_INCLUDE={include}", f"AC_INCLUDE={include}"]
    completed = subprocess.run(command, cwd=tmp_path / "out/hls", capture_output=True, text=True)
    assert re.fullmatch(r"\d+ frames, 0 wrong beats\n", completed.stdout), completed.stderr[-3000:]
    assert completed.stderr == ""
