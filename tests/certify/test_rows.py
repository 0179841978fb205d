"""A unit on rows of integers that is wrong in its files is not certified, and one that was misread is found."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from certified import changed, messages, sign
from row_models import CASES, model
from tflite_random import random_file

import hlsgen
from hlsgen.certify.second_reading import compare
from hlsgen.ir import RowStep
from hlsgen.ir.row_functions import IntegerNorm, Share


@pytest.fixture(scope="module", params=["softmax", "layer", "rms", "TFLite"])
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    if request.param == "TFLite":
        (folder / "m.tflite").write_bytes(random_file("ATTENTION", 0).data)
        hlsgen.build(folder / "m.tflite", folder / "out", hlsgen.Options(top="top"))
        return folder / "out"
    op, attributes, constants, _ = CASES[request.param]
    onnx.save(model(op, [1, 12], attributes, constants), folder / "m.onnx")
    hlsgen.build(folder / "m.onnx", folder / "out", hlsgen.Options(top="top", input="int8", lanes=3))
    return folder / "out"


def test_wrong_parameters(built: Path) -> None:
    """Every parameter of every unit is decreased by one, or by more if the width has spare bits."""
    assert messages(built) == []
    layers = json.loads((built / "certificate.json").read_text())["layers"]
    for unit in (x for layer in layers for x in layer["instances"] if x["module"].startswith("hg_rows_")):
        for name, value in unit["parameters"].items():
            if isinstance(value, int) and name != "ACC_W":
                changed_value = (
                    1 - value if value in (0, 1) else value - {"SQ_W": 4, "SUM_W": 2, "BITS": 2}.get(name, 1)
                )
                with changed(built, str(unit["instance"]), name, changed_value):
                    assert messages(built), (unit["module"], name, value)


def test_wrong_tables(built: Path) -> None:
    """One bit of one word of each memory."""
    layers = json.loads((built / "certificate.json").read_text())["layers"]
    cells = [x for layer in layers for x in layer["instances"] if x["module"].startswith("hg_rows_")]
    stems = tuple(str(x["parameters"]["FILE"]).removesuffix(".mem") for x in cells if "FILE" in x["parameters"])
    paths = [path for path in sorted((built / "rtl").glob("*.mem")) if path.name.startswith(stems)]
    assert paths
    for path in paths:
        text = path.read_text()
        lines = text.split("\n")
        lines[1] = f"{int(lines[1], 16) ^ 1:0{len(lines[1])}x}"
        path.write_text("\n".join(lines))
        sign(built, f"rtl/{path.name}")
        assert any(re.search(r"\.mem", text) for text in messages(built)), path.name
        path.write_text(text)
        sign(built, f"rtl/{path.name}")
    assert messages(built) == []


@pytest.mark.parametrize("case", CASES)
def test_numbers_are_read_twice(case: str, tmp_path: Path) -> None:
    op, attributes, constants, _ = CASES[case]
    onnx.save(model(op, [1, 12], attributes, constants), tmp_path / "m.onnx")
    right = hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(input="int8")).graph.model
    assert not compare(tmp_path / "m.onnx", right).problems
    last = right.steps[-1]
    assert isinstance(last.op, RowStep)
    function = last.op.function
    wrong: list[object] = []
    if isinstance(function, Share):
        for field in ("weights", "numbers"):
            table = getattr(function, field).copy()
            table[7] += 1
            wrong.append(replace(function, **{field: table}))
    else:
        assert isinstance(function, IntegerNorm)
        wrong = [
            replace(function, weight=function.weight + np.eye(12, dtype=np.int64)[3]),
            replace(function, shift=3),
            replace(function, bias=function.bias + 1),
            replace(function, wraps=not function.wraps),
        ]
    for wrong_function in wrong:
        step = replace(last, op=RowStep(wrong_function))  # type: ignore[arg-type]
        assert compare(tmp_path / "m.onnx", replace(right, steps=(*right.steps[:-1], step))).problems
