"""Recurrent cells that are built once: hardware, C++, cycles and certificate, with a stream that comes back."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import ort
import pytest
from builds import assert_verified
from certified import changed, messages
from quant_lstm_models import random_cell
from recurrent_cells import SIZE, elman

import hlsgen
from hlsgen.certify import loops
from hlsgen.diagnostics import HlsgenError
from hlsgen.ir import Delay, Graph, Layer, Map, Transpose, View

pytestmark = pytest.mark.sim


def built(model: onnx.ModelProto, folder: Path, **options: Any) -> Path:
    onnx.save(model, folder / "m.onnx")
    hlsgen.build(folder / "m.onnx", folder / "out", hlsgen.Options(recurrence="once", **options))
    return folder / "out"


def cycles(out: Path) -> dict[str, int]:
    return dict(json.loads((out / "manifest.json").read_text())["cycles"])


@pytest.mark.parametrize("last", [pytest.param(False, marks=pytest.mark.slow), True])
def test_one_cell(last: bool, tmp_path: Path) -> None:
    """Successive frames, with pauses and resets; every frame begins with the initial state."""
    model = elman(5, last=last)
    out = built(model, tmp_path, target="verilog,hls")
    shape = (6, 5, 1, SIZE)
    x = (np.random.default_rng(5).integers(-40, 40, shape) / 16).astype(np.float32)
    expected = np.stack([ort.run(model, {"x": frame}, ort.OFF)[0] for frame in x])
    for backend in ("reference", "cpp", *([] if last else ["cpp-ap"])):
        assert (hlsgen.run(out, x, backend).reshape(expected.shape) == expected).all()
    assert hlsgen.certify(out).ok
    assert_verified(out, "icarus" if last else "verilator")


def test_the_interval_is_the_sum_of_the_steps(tmp_path: Path) -> None:
    intervals = []
    for steps in (4, 7):
        (tmp_path / str(steps)).mkdir()
        intervals.append(cycles(built(elman(steps), tmp_path / str(steps)))["interval"])
    step, remainder = divmod(intervals[1] - intervals[0], 3)
    assert remainder == 0
    assert intervals[0] == 3 * step + 1  # what the last step leaves to nobody takes no time


@pytest.mark.slow
def test_a_cell_of_brevitas(tmp_path: Path) -> None:
    """Two states, from a QuantLSTMCell; folded, so that the steps take turns in every unit."""
    model, _ = random_cell(68)
    out = built(model, tmp_path, target_cycles=60)
    assert hlsgen.certify(out).ok
    assert_verified(out, "verilator")


def test_no_number_of_the_loop_can_be_changed(tmp_path: Path) -> None:
    """Each number of the units on the way back, in top level and certificate alike."""
    out = built(elman(4), tmp_path, top="top")
    layers = json.loads((out / "certificate.json").read_text())["layers"]
    tried = 0
    for x in (x for layer in layers for x in layer["instances"] if re.search(r"_state_\d(?!_initial)", x["instance"])):
        for name, value in x["parameters"].items():
            if isinstance(value, int) and name not in ("XS", "CS"):  # steps within a single piece
                with changed(out, x["instance"], name, value + 1):
                    assert messages(out), (x["instance"], name)
                tried += 1
    assert tried > 10
    assert not messages(out)


def test_the_states_of_other_steps_do_not_come_back(tmp_path: Path) -> None:
    out = built(elman(4), tmp_path, top="top")
    rows = re.findall(r"\w+_back_rows(?= \()", (out / "rtl/top.v").read_text())[0]
    with changed(out, rows, "Y0", 1), changed(out, rows, "Y1", 4):
        assert any("does not carry the states of the steps before" in text for text in messages(out))


def test_what_comes_back_is_a_later_tensor(tmp_path: Path) -> None:
    onnx.save(elman(4), tmp_path / "m.onnx")
    graph = hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(recurrence="once")).graph
    (n, delay), *_ = [(n, x) for n, x in enumerate(graph.layers) if isinstance(x, Delay)]
    assert loops.check(graph) == 1

    def with_layer(at: int, layer: Layer) -> Graph:
        return replace(graph, layers=(*graph.layers[:at], layer, *graph.layers[at + 1 :]))

    with pytest.raises(HlsgenError, match="no later tensor"):
        loops.check(with_layer(n, replace(delay, delayed=delay.inputs[0])))
    at = next(i for i, x in enumerate(graph.layers) if i > n and isinstance(x, Map))
    layer_ = graph.layers[at]
    assert isinstance(layer_, Map)
    transposed = View(layer_.name, Transpose((1, 0)), layer_.source, layer_.result, layer_.inputs)
    with pytest.raises(HlsgenError, match="does not work on each step separately"):
        loops.check(with_layer(at, transposed))


def test_weights_of_such_loops_cannot_be_written(tmp_path: Path) -> None:
    onnx.save(elman(3), tmp_path / "m.onnx")
    with pytest.raises(HlsgenError, match="cannot be combined with --recurrence once"):
        hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(recurrence="once", loadable=True))
