"""The choice of the runtime whose integers a build reproduces, and its record."""

from __future__ import annotations

import json
from importlib.metadata import requires, version
from pathlib import Path

import onnx
import pytest
from certified import messages
from models import quantizer, save
from packaging.requirements import Requirement

import hlsgen
from hlsgen.diagnostics import HlsgenError
from hlsgen.driver.summary import summary
from hlsgen.frontend.runtimes import ALIR, RUNTIMES, TFLITE, VERSIONS, runtime_of, tflite_runtime_of


@pytest.mark.parametrize(
    ("domain", "op", "name"),
    [
        ("qonnx.custom_op.general", "BipolarQuant", "qonnx"),
        ("", "IntQuant", "qonnx"),
        ("", "DequantizeLinear", "onnxruntime"),
        ("com.microsoft", "QGemm", "onnxruntime"),
        ("", "MatMulInteger", "onnx"),
    ],
)
def test_auto_takes_the_runtime_that_the_operators_are_made_for(domain: str, op: str, name: str) -> None:
    nodes = [onnx.helper.make_node("Relu", ["x"], ["y"]), onnx.helper.make_node(op, ["y"], ["z"], domain=domain)]
    assert runtime_of(nodes) == name


@pytest.mark.parametrize("name", [name for name in RUNTIMES if name not in (*TFLITE, ALIR)])
def test_a_runtime_that_is_named_is_taken(name: str) -> None:
    assert runtime_of([], name) == name
    with pytest.raises(HlsgenError, match="HG040"):
        tflite_runtime_of(name)


@pytest.mark.parametrize("name", TFLITE)
def test_a_runtime_of_tflite_files_is_taken_for_them_only(name: str) -> None:
    assert tflite_runtime_of(name) == name
    with pytest.raises(HlsgenError, match="HG040"):
        runtime_of([], name)


def test_auto_is_tflite_micro_for_tflite_files() -> None:
    assert tflite_runtime_of() == "tflm"


def test_another_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HlsgenError, match="HG040"):
        hlsgen.check(save(quantizer().model(), tmp_path / "m.onnx"), hlsgen.Options(runtime="tensorrt"))


@pytest.mark.parametrize("package", VERSIONS)
def test_the_recorded_version_is_the_one_that_the_tests_compare_with(package: str) -> None:
    assert version(package) == VERSIONS[package]


@pytest.mark.parametrize("installed", ["", "1.99.0"])
def test_another_version_of_the_runtime_is_named(
    installed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record stays: it is the version that the integers are of."""
    built = hlsgen.check(save(quantizer().model(), tmp_path / "m.onnx"), hlsgen.Options(runtime="onnxruntime"))
    if installed:
        monkeypatch.setattr("hlsgen.frontend.runtimes.version", lambda package: installed)
    stated = VERSIONS["onnxruntime"]
    result = summary(built, 200.0)
    assert result["runtime"].startswith(f"onnxruntime {stated} ")
    notes = [note for note in result["notes"] if "is installed" in note]
    assert [note.split(":")[0] for note in notes] == (["onnxruntime 1.99.0 is installed"] if installed else [])


def test_manifest_and_certificates_record_the_runtime(tmp_path: Path) -> None:
    core = tmp_path / "core"
    hlsgen.build(
        save(quantizer().model(), tmp_path / "m.onnx"), core, hlsgen.Options(runtime="onnx", target="verilog,hls")
    )
    for name in ("manifest.json", "certificate.json", "hls/certificate.json"):
        model = json.loads((core / name).read_text())["model"]
        assert (model["runtime"], model["runtime_version"]) == ("onnx", VERSIONS["onnx"])
    assert hlsgen.certify(core).ok
    for name in ("certificate.json", "hls/certificate.json"):
        path = core / name
        text = path.read_text()
        path.write_text(text.replace('"runtime": "onnx"', '"runtime": "qonnx"'))
        assert any(f"another runtime, than in {name}" in text for text in messages(core))
        path.write_text(text)


def test_the_recorded_versions_are_pinned() -> None:
    """A new release of a runtime changes no result of the tests."""
    requirements = [Requirement(text) for text in requires("hlsgen") or []]
    pins = {r.name.replace("-", "_"): str(r.specifier) for r in requirements if str(r.specifier).startswith("==")}
    assert {package: pins.get(package) for package in VERSIONS} == {p: f"=={v}" for p, v in VERSIONS.items()}
