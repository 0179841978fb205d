"""`hlsgen certify`: no statement of manifest.json can be changed unnoticed, but those that are named as not proven."""

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
        image, whole = next(one for one in IMAGES if name == f"{one[0]} {one[1]}")
        return certified_images.build(image, folder / name, whole=whole)

    return LazyBuilds(build)


@pytest.mark.parametrize("name", [*BUILDS, *(f"{name} {whole}" for name, whole in IMAGES)])
@pytest.mark.sweep
def test_every_statement(built: LazyBuilds, name: str, tmp_path: Path) -> None:
    """All are changed at once, and each that is proven is named."""
    shutil.copytree(built[name], tmp_path / "core")
    path = tmp_path / "core" / "manifest.json"
    manifest = json.loads(path.read_text())
    wanted = set()
    for place, container, key in list(leaves(manifest)):
        if not NOT_PROVEN.fullmatch(place):
            container[key] = lie(container[key])
            wanted.add(place)
    path.write_text(json.dumps(manifest))
    found = {
        match[1]
        for text in messages(tmp_path / "core", listed=False)
        if (match := re.match(r"HG055 manifest\.json: (\S+) ", text))
    }
    assert found == wanted


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
        ("top", "other"), ("reset_active_low", True), ("reset_active_low", 0), ("loadable", True), ("name", "other"),
        ("name", None), ("input", "float32"), ("input", 3), ("add", "other"), ("weights", "bram"), ("weights", "x"),
        ("lanes", "2"), ("folding", []), ("max_lut", -1), ("target", None), ("device", 3), ("bus_width", "64"), ("bus_width", "7"),
        ("bus_width", "auto"), ("bus_width", []), ("tkeep", True), ("control", True), ("clock_name", "aclk"), ("clock_name", None),
        ("reset_name", "aresetn"), ("reset_name", ""),
    ],
)  # fmt: skip
def test_options(built: LazyBuilds, option: str, value: object, tmp_path: Path) -> None:
    """Those that decide what is built are held against the hardware, of the others the form is."""
    shutil.copytree(built["network"], tmp_path / "core")
    path = tmp_path / "core" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["options"][option] = value
    path.write_text(json.dumps(manifest))
    assert messages(tmp_path / "core")


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (lambda files: files.update({"rtl/top.v": files["rtl/top_mv0.mem"]}), "rtl/top.v"),
        (lambda files: files.pop("certificate.json"), "certificate.json"),
        (lambda files: files.pop("report.md"), "report.md"),
        (lambda files: files.update({"README": "0" * 64}), "README"),
        (lambda files: files.update({"../x": "0" * 64}), "../x"),
        (lambda files: files.update({"tb/run.py": "0" * 63}), "tb/run.py"),
        (lambda files: files.update({"files.f": "0" * 64}), "files.f"),
    ],
)
def test_the_list_of_files(built: LazyBuilds, change: Callable[[Any], object], name: str, tmp_path: Path) -> None:
    """By it `hlsgen build` decides which files it may replace."""
    shutil.copytree(built["network"], tmp_path / "core")
    path = tmp_path / "core" / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest["files"])
    path.write_text(json.dumps(manifest))
    found = messages(tmp_path / "core", listed=False)
    assert [text.split()[2] for text in found] == [f"files.{name}"]


def test_every_option_and_realization_is_known() -> None:
    """A new one has to be held, or named as not proven."""
    known = {"input", "add", "reset_active_low", "loadable", "top", "name", "weights", "target", "prefer", "folding"}
    known |= {"bus_width", "ports", "tkeep", "control", "clock_name", "reset_name", "recurrence", "runtime", "outputs"}
    known |= {"realize", "lanes", "target_cycles", "device", "clock_mhz", "max_lut", "max_dsp", "max_bram"}
    assert {field.name for field in fields(hlsgen.Options)} == known
    assert set(REALIZATIONS) == set(KINDS)


def test_meanings() -> None:
    """As the compiler writes them, in code of its own."""
    one, several = np.float32([0.1, 0.1]), np.float32([0.1, 1e-9])
    whole, shifts = np.array([3, 3]), np.array([0, -3])
    found = [Affine(s, z.astype(np.float32)) for s in (one, several) for z in (whole, shifts)]
    found += [
        Accumulator(f, o, s.astype(float)) for f in (1, 3) for o in (whole, shifts, 0 * whole) for s in (one, several)
    ]
    found += [IntegerEncoding("int8", o) for o in (whole, -whole, shifts, 0 * whole)]
    for encoding in [*found, FloatKey(), Fixed(7), ThresholdCount(0.3, -1.0)]:
        assert meaning(encoding) == describe(encoding)


# --------------------------------------------------------------------------- the model that was meant


def edited(change: Callable[[onnx.ModelProto], object], source: Path, target: Path) -> Path:
    model = onnx.load(source)
    change(model)
    onnx.save(model, target)
    return target


def test_the_model_that_was_meant(tmp_path: Path) -> None:
    """A build of another model is right by itself; the model that was meant tells."""
    meant = DATA / "floor_ceil.onnx"

    def other_weight(model: onnx.ModelProto) -> None:
        weights = next(t for t in model.graph.initializer if len(t.dims) == 2 and min(t.dims) > 1)
        values = numpy_helper.to_array(weights).copy()
        values[0, 0] = -values[0, 0]
        weights.CopyFrom(numpy_helper.from_array(values, weights.name))

    hlsgen.build(edited(other_weight, meant, tmp_path / "floor_ceil.onnx"), tmp_path / "out")
    assert hlsgen.certify(tmp_path / "out").ok
    assert hlsgen.certify(tmp_path / "out", tmp_path / "floor_ceil.onnx").ok
    found = hlsgen.certify(tmp_path / "out", model=meant)
    assert not found.ok
    assert str(found.problems[0]).startswith("HG055 model.onnx: is not the model in ")
    command = ["certify", str(tmp_path / "out"), "--json", "--model"]
    done = CliRunner().invoke(app, [*command, str(meant)])
    assert (done.exit_code, json.loads(done.stdout)["ok"]) == (1, False)
    assert CliRunner().invoke(app, [*command, str(tmp_path / "floor_ceil.onnx")]).exit_code == 0
    done = CliRunner().invoke(app, [*command, str(tmp_path / "none.onnx")])
    assert done.exit_code == 1
    assert "HG001" in done.stdout


def test_a_model_with_external_data(tmp_path: Path) -> None:
    """It is stored with its data inside, and is the same model; a build whose model has external data is none."""
    model = onnx.load(DATA / "floor_ceil.onnx")
    path = tmp_path / "m.onnx"
    onnx.save_model(model, path, save_as_external_data=True, location="m.bin", size_threshold=0)
    hlsgen.build(path, tmp_path / "out")
    assert hlsgen.certify(tmp_path / "out", path).ok
    assert not hlsgen.certify(tmp_path / "out", DATA / "asym_tensor.onnx").ok
    shutil.copy(path, tmp_path / "out" / "model.onnx")
    shutil.copy(tmp_path / "m.bin", tmp_path / "out" / "m.bin")
    assert any("model.onnx: has external data" in text for text in messages(tmp_path / "out"))
