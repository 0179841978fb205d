"""Deeploy's integer softmaxes and normalizations equal its kernels and golden networks, in hardware, certified."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from paths import needs_icarus, shared_model
from row_models import CASES, expected, model, rows

import hlsgen
from hlsgen.interpreter import graph as reference

INT8 = hlsgen.Options(input="int8")


def saved(case: str, folder: Path, form: str = "tensor", shape: tuple[int, ...] = (1, 12)) -> Path:
    op, attributes, constants, _ = CASES[case]
    onnx.save(model(op, list(shape), attributes, constants, form), folder / "m.onnx")
    return folder / "m.onnx"


@pytest.mark.parametrize("form", ["tensor", "int"])
@pytest.mark.parametrize("case", CASES)
def test_equals_the_kernel(case: str, form: str, tmp_path: Path) -> None:
    x = rows()
    build = hlsgen.check(saved(case, tmp_path, form), INT8)
    outputs = reference.evaluate(build.graph, x.astype(np.float32))
    assert (outputs == expected(case, x)).all()
    assert len(np.unique(outputs)) > 5


@pytest.mark.parametrize("name", ["isoftmax", "irmsnorm", pytest.param("attention_isoftmax", marks=pytest.mark.slow)])
def test_golden(name: str) -> None:
    """The golden outputs of Deeploy's networks are reproduced."""
    path = shared_model(f"attention/deeploy_{name}")
    arrays = np.load(path.with_suffix(".npz"))
    x, y = (next(arrays[key] for key in arrays if key.startswith(start)) for start in ("x_input", "golden_output"))
    outputs = reference.evaluate(hlsgen.check(path, INT8).graph, x.astype(np.float32))
    assert (outputs.reshape(y.shape) == y).all()


@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize(
    "case, simulator, lanes",
    [
        pytest.param("softmax", "icarus", 3, marks=needs_icarus),
        ("layer", "verilator", 2),
        ("rms", "verilator", 4),
        pytest.param("ita", "icarus", 1, marks=needs_icarus),
        pytest.param("rms", "icarus", 12, marks=[needs_icarus, pytest.mark.slow]),
    ],
)
def test_in_hardware(case: str, simulator: str, lanes: int, tmp_path: Path) -> None:
    """Predicted cycles, golden values, the executed file and the certificate agree."""
    path, out = saved(case, tmp_path, shape=(1, 2, 12)), tmp_path / "out"
    hlsgen.build(path, out, hlsgen.Options(input="int8", lanes=lanes))
    verdict = hlsgen.verify(out, [simulator], 4)
    assert verdict.ok, (verdict.changed, verdict.simulators, verdict.oracle)
    assert verdict.oracle.ran
    assert not verdict.oracle.left
    x = rows(20)
    assert (hlsgen.run(out, x.reshape(10, 2, 12), simulator).reshape(20, 12) == expected(case, x)).all()
    certified = hlsgen.certify(out)
    assert certified.ok, certified.problems


@pytest.mark.parametrize(
    "case, attributes, code",
    [
        ("softmax", {"log2": 1}, "HG013"),
        ("softmax", {"coeffC": -(1 << 20)}, "HG013"),
        ("softmax", {"axis": 0}, "HG013"),
        ("softmax", {"coeffA": 1 << 30}, "HG013"),
        ("ita partial", {"group_width": 4}, "HG013"),
        ("layer", {"D": 100}, "HG013"),
        ("rms", {"n_levels": 128}, "HG013"),
    ],
)
def test_refused(case: str, attributes: dict[str, Any], code: str, tmp_path: Path) -> None:
    op, defaults, constants, _ = CASES[case]
    onnx.save(model(op, [1, 12], defaults | attributes, constants), tmp_path / "m.onnx")
    with pytest.raises(hlsgen.HlsgenError) as error:
        hlsgen.check(tmp_path / "m.onnx", INT8)
    assert [d.code for d in error.value.diagnostics] == [code]
