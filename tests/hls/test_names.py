"""Names of layers that C++, its headers, or the text of the core have taken."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from models import Net, save

import hlsgen

#: Of C++ and of the system's headers; of the text itself, with what it makes of other names.
NAMES = (
    "time", "size", "clock", "key", "pthread", "int8", "ssize", "ptrdiff", "max_align", "random", "index", "y1", "stdin",
    "errno", "class", "main", "std", "1", "Größe", "__x", "take_frame", "send_frame", "input_word", "top", "fc", "fc_out",
    "fc_beat", "bb_out", "bb", "native", "hg_trace",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.sim
def test_names_that_are_taken(tmp_path: Path) -> None:
    net = Net().quant(name="q0", signed=1)
    for number, name in enumerate(NAMES):
        net = net.linear(3, 3 if number else 4, name=name).quant(bits=3.0, signed=1, name=f"{name}_q")
    path = save(net.model(), tmp_path / "m.onnx")
    build = hlsgen.build(path, tmp_path / "out", hlsgen.Options(target="hls", realize={"": "thresholds"}))
    assert len({layer.name for layer in build.graph.layers} & set(NAMES)) == len(NAMES)
    x = np.random.default_rng(1).integers(-8, 8, (9, 4)).astype(np.float32) / 2
    for backend in ("cpp", "cpp-ap"):
        for layer in hlsgen.layers(tmp_path / "out", x, backend):
            assert layer.differing == 0, layer.name
