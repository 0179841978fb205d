"""A product of two tensors that is wrong in its files is not certified, and one that was misread is found."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from certified import changed, messages
from product_models import Codes, Shape, model
from score_models import attention

import hlsgen
from hlsgen.certify.second_reading import compare
from hlsgen.dataflow.units import DynamicMatVec
from hlsgen.ir import BatchMatMulInteger
from hlsgen.ir.ops import Mul

KINDS = ["qdq", "qlinear", "integer"]


def product_model(kind: str) -> onnx.ModelProto:
    codes = Codes("uint8", 7, 8, 0.1), Codes("uint8", 200, 5, 0.3), Codes("uint8", 3, 8, 0.9)
    return model(kind, Shape(2, 4, 6, 4), *codes)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("product")
    onnx.save(product_model("qlinear"), folder / "m.onnx")
    graph = hlsgen.check(folder / "m.onnx").graph
    layer = next(x.name for x in graph.layers if type(x).__name__ == "MatrixProduct")
    options = hlsgen.Options(top="top", folding={layer: {"pe": 2, "simd": 3}})
    hlsgen.build(folder / "m.onnx", folder / "out", options)
    return folder / "out"


def instances(directory: Path, module: str) -> list[dict[str, object]]:
    layers = json.loads((directory / "certificate.json").read_text())["layers"]
    return [x for layer in layers for x in layer["instances"] if x["module"] == module]


@pytest.mark.parametrize(
    "name, value, text",
    [
        ("ROWS_FIRST", 0, "does not sum the products"),
        ("A_OFFSET", -6, "the model another number"),
        ("B_OFFSET", -201, "the model another number"),
        ("A_SHIFT", 1, "the model another number"),
        ("X_W", 8, "do not fit"),
        ("X_SIGNED", 0, "do not fit"),
        ("W_W", 8, "do not fit"),
        ("A_SIGNED", 1, "signed"),
        ("FOLDS", 1, "not the model's"),
        ("EVERY", 65, "invalid value"),
    ],
)
def test_a_wrong_unit(built: Path, name: str, value: int, text: str) -> None:
    (unit,) = instances(built, "hg_dynmvu")
    assert messages(built) == []
    with changed(built, str(unit["instance"]), name, value):
        reported = messages(built)
        assert reported
        assert re.search(text, reported[0]), reported


def test_wrong_buffers(built: Path) -> None:
    """The order in which stored elements are sent again."""
    buffers = [x for x in instances(built, "hg_gather") if "repeat" in str(x["instance"])]
    assert len(buffers) == 2
    for x in buffers:
        strides = str(x["parameters"]["STRIDES"])  # type: ignore[index]
        size, digits = strides.split("'h")
        fewer = f"{size}'h{int(digits, 16) >> 32 << 32:0{len(digits)}x}"
        changed_strides = fewer if fewer != strides else f"{size}'h{int(digits, 16) ^ 1:0{len(digits)}x}"
        with changed(built, str(x["instance"]), "STRIDES", changed_strides):
            assert messages(built)


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_read_twice(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(product_model(kind), path)
    right = hlsgen.check(path).model
    assert compare(path, right).problems == compare(path, right).once == ()
    steps = right.steps
    at = next(i for i, step in enumerate(steps) if isinstance(step.op, BatchMatMulInteger))
    wrong = replace(steps[at], op=BatchMatMulInteger((7, 201)))
    differences = compare(path, replace(right, steps=(*steps[:at], wrong, *steps[at + 1 :]))).problems
    assert [text for _, text in differences] == [
        "zero point of the right operand 201 was imported, the file has 200 (at [0])."
    ]
    if kind != "integer":
        at = next(i for i, step in enumerate(steps) if isinstance(step.op, Mul))
        wrong = replace(steps[at], op=Mul(np.nextafter(steps[at].op.value, np.float32(1))))  # type: ignore[union-attr]
        differences = compare(path, replace(right, steps=(*steps[:at], wrong, *steps[at + 1 :]))).problems
        assert len(differences) == 1
        assert differences[0][1].startswith("factor ")


@pytest.mark.sweep
def test_many_sums_one_at_a_time(tmp_path: Path) -> None:
    """9,216 sums of each product, a sum a beat."""
    onnx.save(attention((1, 96, 2), 0.05), tmp_path / "m.onnx")
    build = hlsgen.build(tmp_path / "m.onnx", tmp_path / "out", hlsgen.Options(target_cycles=20_000))
    assert {node.unit.pe for node in build.network.nodes if isinstance(node.unit, DynamicMatVec)} == {1}
    assert hlsgen.certify(tmp_path / "out").problems == []
