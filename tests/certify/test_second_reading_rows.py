"""The second reading of normalizations: every form, and each of its numbers that could be misread."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from norm_nets import FORMS, norm_net

from hlsgen.certify.second_reading import compare
from hlsgen.diagnostics import Collector
from hlsgen.frontend import import_model
from hlsgen.ir import Model, Normalize, NormKind
from hlsgen.ir.ops import Add, Mul


def imported(form: str, folder: Path) -> tuple[Path, Model]:
    path = folder / "net.onnx"
    onnx.save(norm_net(form), path)
    model = import_model(path, Collector())
    assert model is not None
    return path, model


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_read_twice(form: str, tmp_path: Path) -> None:
    path, model = imported(form, tmp_path)
    reading = compare(path, model)
    assert not reading.problems
    assert not reading.once


@pytest.mark.parametrize("form", ["LayerNormalization", "RMSNormalization", "layer twice", "rms reciprocal"])
@pytest.mark.parametrize("parameter", ["epsilon", "kind", "gamma", "beta"])
def test_a_misread_number_is_found(form: str, parameter: str, tmp_path: Path) -> None:
    path, model = imported(form, tmp_path)
    steps, changed = list(model.steps), 0
    for i, step in enumerate(steps):
        op = step.op
        if isinstance(op, Normalize) and parameter in ("epsilon", "kind"):
            other_kind = NormKind.RMS if op.kind is NormKind.LAYER else NormKind.LAYER
            next_epsilon = float(np.nextafter(np.float32(op.epsilon), np.float32(1)))
            op = replace(op, epsilon=next_epsilon) if parameter == "epsilon" else replace(op, kind=other_kind)
        elif isinstance(op, Mul if parameter == "gamma" else Add) and parameter in ("gamma", "beta"):
            op = replace(op, value=np.nextafter(op.value, np.float32(9)))
        changed += op is not step.op
        steps[i] = replace(step, op=op)
    if changed:
        assert compare(path, replace(model, steps=tuple(steps))).problems
    else:
        assert parameter == "beta"
        assert "rms" in form.lower()
