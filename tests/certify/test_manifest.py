"""`hlsgen certify` detects every change of a statement of manifest.json, except statements listed as not proven."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import certified_images
import numpy as np
import onnx
import pytest
from builds import LazyBuilds
from certified import CASES, Case, messages
from manifest_fields import NOT_PROVEN, leaves, lie
from onnx import numpy_helper
from paths import DATA
from typer.testing import CliRunner

import hlsgen
from hlsgen.artifacts.manifest import describe
from hlsgen.certify.manifest import meaning
from hlsgen.certify.manifest_layers import REALIZATIONS
from hlsgen.cli import app
from hlsgen.ir import Accumulator, Affine, Fixed, FloatKey, IntegerEncoding, ThresholdCount
from hlsgen.rescale import KINDS

BUILDS: dict[str, Case] = {
    **{name: CASES[name] for name in ("network", "binary", "argmax", "float", "keys", "sum", "every input", "integer")},
    "bus": Case(
        "floor_ceil",
        hlsgen.Options(
            bus_width="32", tkeep=True, control=True, clock_name="aclk", reset_name="aresetn", reset_active_low=True
        ),
    ),
    "loadable": Case("floor_ceil", hlsgen.Options(loadable=True, target_cycles=20, weights="lutram")),
}


IMAGES = [
    ("residual", False),
    ("residual", True),
    ("moved", False),
    ("pools", False),
    ("pools", True),
    ("grouped", True),
]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> LazyBuilds:
    folder = tmp_path_factory.mktemp("builds")

    def build(name: str) -> Path:
        if name in BUILDS:
            return BUILDS[name].build(folder / name)
        image, entire_image = next(image_case for image_case in IMAGES if name == f"{image_case[0]} {image_case[1]}")
        return certified_images.build(image, folder / name, whole=entire_image)

    return LazyBuilds(build)


@pytest.mark.parametrize("name", [*BUILDS, *(f"{name} {entire_image}" for name, entire_image in IMAGES)])
@pytest.mark.sweep
def test_every_statement(built: LazyBuilds, name: str, tmp_path: Path) -> None:
    """All statements are changed at once, and each proven one is reported."""
    shutil.copytree(built[name], tmp_path / "core")
    path = tmp_path / "core" / "manifest.json"
    manifest = json.loads(path.read_text())
    expected = set()
    for place, container, key in list(leaves(manifest)):
        if not NOT_PROVEN.fullmatch(place):
            container[key] = lie(container[key])
            expected.add(place)
    path.write_text(json.dumps(manifest))
    reported = {
        match[1]
        for text in messages(tmp_path / "core", listed=False)
        if (match := re.match(r"HG055 manifest\.json: (\S+) ", text))
    }
    assert reported == expected


@pytest.mark.parametrize("place", ["", "options", "input", "layers", "fifos", "host", "top"])
def test_entries_too_many_or_missing(built: LazyBuilds, place: str, tmp_path: Path) -> None:
    shutil.copytree(built["network"], tmp_path / "core")
    path = tmp_path / "core" / "manifest.json"
    original = path.read_text()
    for change in ("more", "less"):
        manifest = json.loads(original)
        part = manifest[place] if place else manifest
        if isinstance(part, list):
            part.append({}) if change == "more" else part and part.pop()
        elif change == "more":
            part["note"] = "all tests passed"
        else:
            part.pop("tensor" if place == "input" else next(reversed(part)))
        path.write_text(json.dumps(manifest))
        assert messages(tmp_path / "core") or (place, change) == ("fifos", "less"), change


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("top", "other"),
        ("reset_active_low", True),
        ("reset_active_low", 0),
        ("loadable", True),
        ("name", "other"),
        ("name", None),
        ("input", "float32"),
        ("input", 3),
        ("add", "other"),
        ("weights", "bram"),
        ("weights", "x"),
        ("lanes", "2"),
        ("folding", []),
        ("max_lut", -1),
        ("target", None),
        ("device", 3),
        ("bus_width", "64"),
        ("bus_width", "7"),
        ("bus_width", "auto"),
        ("bus_width", []),
        ("tkeep", True),
        ("control", True),
        ("clock_name", "aclk"),
        ("clock_name", None),
        ("reset_name", "aresetn"),
        ("reset_name", ""),
    ],
)
def test_options(built: LazyBuilds, option: str, value: object, tmp_path: Path) -> None:
    """Options that decide the hardware are compared with it; for others, the form is checked."""
    shutil.copytree(built["network"], tmp_path / "core")
    path = tmp_path / "core" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["options"][option] = value
    path.write_text(json.dumps(manifest))
    assert messages(tmp_path / "core")


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda files: files.update({"rtl/top.v": files["rtl/top_node_linear.mem"]}), "rtl/top.v"),
        (lambda files: files.pop("certificate.json"), "certificate.json"),
        (lambda files: files.pop("report.md"), "report.md"),
        (lambda files: files.update({"README": "0" * 64}), "README"),
        (lambda files: files.update({"../x": "0" * 64}), "../x"),
        (lambda files: files.update({"tb/run.py": "0" * 63}), "tb/run.py"),
        (lambda files: files.update({"files.f": "0" * 64}), "files.f"),
    ],
)
def test_the_list_of_files(built: LazyBuilds, change: Callable[[Any], object], name: str, tmp_path: Path) -> None:
    """`hlsgen build` replaces only files of this list."""
    shutil.copytree(built["network"], tmp_path / "core")
    path = tmp_path / "core" / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest["files"])
    path.write_text(json.dumps(manifest))
    reported = messages(tmp_path / "core", listed=False)
    assert [text.split()[2] for text in reported] == [f"files.{name}"]


def test_every_option_and_realization_is_known() -> None:
    """A new one has to be checked, or listed as not proven."""
    known_options = {
        "input",
        "add",
        "reset_active_low",
        "loadable",
        "top",
        "name",
        "weights",
        "target",
        "prefer",
        "folding",
    }
    known_options |= {
        "bus_width",
        "ports",
        "tkeep",
        "control",
        "clock_name",
        "reset_name",
        "recurrence",
        "runtime",
        "softmax",
        "merge_layers",
        "state",
        "state_start",
        "source",
        "outputs",
    }
    known_options |= {
        "latency_cycles",
        "realize",
        "lanes",
        "target_cycles",
        "device",
        "clock_mhz",
        "max_lut",
        "max_dsp",
        "max_bram",
    }
    assert {field.name for field in fields(hlsgen.Options)} == known_options
    assert set(REALIZATIONS) == set(KINDS)


def test_meanings() -> None:
    """The checker's own code gives the compiler's texts."""
    equal_scales, different_scales = np.float32([0.1, 0.1]), np.float32([0.1, 1e-9])
    equal_offsets, different_offsets = np.array([3, 3]), np.array([0, -3])
    encodings = [
        Affine(s, z.astype(np.float32))
        for s in (equal_scales, different_scales)
        for z in (equal_offsets, different_offsets)
    ]
    encodings += [
        Accumulator(f, o, s.astype(float))
        for f in (1, 3)
        for o in (equal_offsets, different_offsets, 0 * equal_offsets)
        for s in (equal_scales, different_scales)
    ]
    encodings += [
        IntegerEncoding("int8", o) for o in (equal_offsets, -equal_offsets, different_offsets, 0 * equal_offsets)
    ]
    for encoding in [*encodings, FloatKey(), Fixed(7), ThresholdCount(0.3, -1.0)]:
        assert meaning(encoding) == describe(encoding)


# --------------------------------------------------------------------------- the intended model


def edited(change: Callable[[onnx.ModelProto], object], source: Path, target: Path) -> Path:
    model = onnx.load(source)
    change(model)
    onnx.save(model, target)
    return target


@pytest.mark.sweep
def test_the_intended_model(tmp_path: Path) -> None:
    """A build of another model is consistent; only the intended model shows the difference."""
    intended = DATA / "floor_ceil.onnx"

    def other_weight(model: onnx.ModelProto) -> None:
        weights = next(t for t in model.graph.initializer if len(t.dims) == 2 and min(t.dims) > 1)
        values = numpy_helper.to_array(weights).copy()
        values[0, 0] = -values[0, 0]
        weights.CopyFrom(numpy_helper.from_array(values, weights.name))

    hlsgen.build(edited(other_weight, intended, tmp_path / "floor_ceil.onnx"), tmp_path / "out")
    assert hlsgen.certify(tmp_path / "out").ok
    assert hlsgen.certify(tmp_path / "out", tmp_path / "floor_ceil.onnx").ok
    certified = hlsgen.certify(tmp_path / "out", model=intended)
    assert not certified.ok
    assert str(certified.problems[0]).startswith("HG055 model.onnx: is not the model in ")
    command = ["certify", str(tmp_path / "out"), "--json", "--model"]
    result = CliRunner().invoke(app, [*command, str(intended)])
    assert (result.exit_code, json.loads(result.stdout)["ok"]) == (1, False)
    assert CliRunner().invoke(app, [*command, str(tmp_path / "floor_ceil.onnx")]).exit_code == 0
    result = CliRunner().invoke(app, [*command, str(tmp_path / "none.onnx")])
    assert result.exit_code == 1
    assert "HG001" in result.stdout


@pytest.mark.sweep
def test_a_model_with_external_data(tmp_path: Path) -> None:
    """The data is stored inside the file, and the model is the same. A build must not have external data."""
    model = onnx.load(DATA / "floor_ceil.onnx")
    path = tmp_path / "m.onnx"
    onnx.save_model(model, path, save_as_external_data=True, location="m.bin", size_threshold=0)
    hlsgen.build(path, tmp_path / "out")
    assert hlsgen.certify(tmp_path / "out", path).ok
    assert not hlsgen.certify(tmp_path / "out", DATA / "asym_tensor.onnx").ok
    shutil.copy(path, tmp_path / "out" / "model.onnx")
    shutil.copy(tmp_path / "m.bin", tmp_path / "out" / "m.bin")
    assert any("model.onnx: has external data" in text for text in messages(tmp_path / "out"))
