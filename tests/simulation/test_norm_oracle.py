"""Normalizations compared with onnxruntime: each differing code is explained by the exact number, a wrong one is
not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from norm_nets import norm_net, samples

from hlsgen.diagnostics import Collector
from hlsgen.frontend import import_model
from hlsgen.interpreter import graph as reference
from hlsgen.passes.lower import lower
from hlsgen.simulation.file_oracle import compare_file
from hlsgen.simulation.file_verdict import OracleVerdict


def compared(net: onnx.ModelProto, file_model: onnx.ModelProto, folder: Path, frames: int) -> OracleVerdict:
    """The verdict on `file_model` in onnxruntime, compared with our integers of `net`."""
    path, file = folder / "net.onnx", folder / "file.onnx"
    onnx.save(net, path)
    onnx.save(file_model, file)
    problems = Collector()
    model = import_model(path, problems)
    assert model is not None
    graph = lower(model, None, problems)
    codes: Any = reference.encode_input(graph, reference.frames_of(graph, samples(net, frames)))
    return compare_file(file, model, graph, codes, "onnxruntime")


@pytest.mark.sweep
@pytest.mark.cases(1)
@pytest.mark.parametrize(("form", "length"), [("layer reciprocal", 64), ("rms one over", 24)])
def test_differences_are_explained(form: str, length: int, tmp_path: Path) -> None:
    net = norm_net(form, length=length, bits=8, rows=40, seed=5)
    verdict = compared(net, net, tmp_path, 60)
    assert verdict.unexplained == 0
    assert not verdict.left
    assert sum(verdict.explained.values()) > 0


@pytest.mark.sweep
@pytest.mark.parametrize("form", ["LayerNormalization", "rms reciprocal"])
def test_another_epsilon_is_not_explained(form: str, tmp_path: Path) -> None:
    nets = [norm_net(form, length=16, bits=8, rows=8, epsilon=epsilon, seed=5) for epsilon in (1e-3, 1.1e-3)]
    assert np.all([len(net.graph.node) == len(nets[0].graph.node) for net in nets])
    assert compared(nets[0], nets[1], tmp_path, 40).unexplained > 0
