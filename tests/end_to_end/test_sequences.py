"""The example networks that read an image as a sequence: compared with their files in executors, with one cell too."""

from __future__ import annotations

import json

import numpy as np
import pytest
from paths import ROOT

from hlsgen.diagnostics import Collector
from hlsgen.frontend import import_model
from hlsgen.interpreter import graph as reference
from hlsgen.passes import lower
from hlsgen.simulation.file_oracle import compare_file

FOLDER = ROOT / "examples" / "digits_sequences"


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["vit", "gru"])
def test_files_and_accuracy(name: str) -> None:
    """Each difference from the executor is explained; the accuracy is the one that PyTorch measured."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    pixels, labels = load_digits(return_X_y=True)
    _, x, _, y = train_test_split(pixels, labels, test_size=0.25, random_state=0, stratify=labels)
    images = (x / 16).astype(np.float32).reshape(-1, 8, 8)
    if name == "vit":
        images = images.reshape(-1, 4, 2, 4, 2).transpose(0, 1, 3, 2, 4).reshape(-1, 16, 4)
    path, problems = FOLDER / f"digits_{name}.onnx", Collector()
    model = import_model(path, problems)
    problems.finish()
    assert model is not None
    graph = lower(model, None, problems)
    codes = reference.encode_input(graph, images)
    verdict = compare_file(path, model, graph, codes[:3])
    assert verdict.ok, verdict.diagnostics
    assert verdict.compared > (14 if name == "vit" else 80)  # after every quantizer, in each step
    scores = reference.evaluate(graph, images)
    measured = json.loads((FOLDER / "training.json").read_text())[f"{name}_quantized_accuracy"]
    assert round(float(np.mean(scores.reshape(len(y), -1).argmax(axis=1) == y)), 4) == measured
