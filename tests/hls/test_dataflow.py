"""Concurrent processes between streams with a core's depths: no deadlock and no shared state."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from certified_images import residual
from dataflow_threads import simulated
from models import mlp
from quant_lstm_models import random_cell
from recurrent_cells import elman
from score_models import attention

import hlsgen

pytestmark = pytest.mark.sim
MODELS = {
    "residual": residual,
    "gearbox": lambda: mlp().model(),
    "softmax": lambda: attention((1, 3, 2), 0.15),
    "loop": lambda: elman(5, last=True),
    "loop with two states": lambda: random_cell(68)[0],
}


#: Options that a model needs to have what it stands for.
OPTIONS: dict[str, dict[str, object]] = {
    "gearbox": {"folding": {"fc0": {"pe": 3, "simd": 4}, "fc1": {"pe": 1, "simd": 2}}},
    "loop with two states": {"target_cycles": 60},
}


def built(name: str, folder: Path) -> Path:
    onnx.save(MODELS[name](), folder / "m.onnx")
    once = "once" if name.startswith("loop") else "unrolled"
    chosen = hlsgen.Options(target="hls", top="top", recurrence=once, **OPTIONS.get(name, {}))  # type: ignore[arg-type]
    hlsgen.build(folder / "m.onnx", folder / "out", chosen)
    return folder / "out"


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", MODELS)
def test_every_frame_passes(name: str, tmp_path: Path) -> None:
    core = built(name, tmp_path)
    assert simulated(core, "top", tmp_path / "threads") == "8 frames, 0 wrong\n"


def test_streams_of_one_beat_deadlock(tmp_path: Path) -> None:
    """One branch must buffer a window of the other."""
    assert simulated(built("residual", tmp_path), "top", tmp_path / "threads", depth=1) == "deadlock\n"
