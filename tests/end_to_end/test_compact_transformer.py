"""An integer compact transformer of Deeploy's operators: convolutional tokenizer, encoder blocks, sequence pooling."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from compact_transformer import compact_transformer

import hlsgen
from hlsgen.interpreter import graph as reference
from hlsgen.simulation.verify_verilog import ends_of, interval_of

#: Forms: the softmax, normalization by the root mean square, and sizes.
FORMS: dict[str, dict[str, Any]] = {
    "softmax": {"seed": 0},
    "ita": {"seed": 1, "kind": "ITAMax", "heads": 4},
    "partial": {"seed": 2, "kind": "ITAPartialMax", "root": True, "size": 16, "width": 12, "heads": 3},
    "two blocks": {"seed": 3, "kind": "ITAMax", "size": 12, "width": 16, "heads": 4, "blocks": 2},
}


def saved(form: str, folder: Path) -> tuple[Path, np.ndarray, np.ndarray]:
    """The file, frames, and the last value of each as Python's integers give it."""
    net, y = compact_transformer(**FORMS[form])
    onnx.save(net.model(y), folder / "m.onnx")
    x = np.random.default_rng(1).integers(-128, 128, (4, *net.shapes["x"]))
    x[0] = np.where(x[0] < 0, -128, 127)
    return folder / "m.onnx", x[:, 0], np.concatenate([net.computed(frame)[y] for frame in x])


@pytest.mark.sweep
@pytest.mark.cases(1)
@pytest.mark.parametrize("form", FORMS)
def test_integers(form: str, tmp_path: Path) -> None:
    path, x, expected = saved(form, tmp_path)
    graph = hlsgen.check(path, hlsgen.Options(input="int8")).graph
    assert (reference.evaluate(graph, x.astype(np.float32)) == expected).all()
    assert len(np.unique(expected)) > 8
    assert not graph.head
    assert not graph.tail


@pytest.mark.sweep
def test_the_first_frames_may_be_further_apart(tmp_path: Path) -> None:
    """A verification of few frames accepts the intervals that are predicted for them, if later ones are shorter."""
    build = hlsgen.check(saved("softmax", tmp_path)[0], hlsgen.Options(input="int8"))
    few, many = (ends_of(build.network, count) for count in (4, 100))
    assert few[3] - few[2] > build.timing.interval == many[99] - many[98]
    assert interval_of(build.network, build.timing, few) == few[3] - few[2]
    assert interval_of(build.network, build.timing, many) == build.timing.interval
    wrong = replace(build.timing, interval=build.timing.interval - 1)
    assert interval_of(build.network, wrong, few) == interval_of(build.network, wrong, many) == wrong.interval


@pytest.mark.sim
@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("target", "simulator"), [("verilog", "verilator"), ("hls", "ap_types")])
def test_in_hardware(form: str, target: str, simulator: str, tmp_path: Path) -> None:
    """Cycles as predicted, the file, the certificate."""
    path, x, expected = saved(form, tmp_path)
    hlsgen.build(path, tmp_path / "out", hlsgen.Options(input="int8", target=target))
    assert hlsgen.certify(tmp_path / "out").ok
    verdict = hlsgen.verify(tmp_path / "out", [simulator], 3)
    assert verdict.ok, (verdict.changed, verdict.simulators, verdict.oracle)
    assert (hlsgen.run(tmp_path / "out", x, "cpp" if target == "hls" else simulator) == expected).all()
