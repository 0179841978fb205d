"""The input of a model that does not say which numbers it takes: asked for, found from a sample, rounded to."""

from __future__ import annotations

import json
import os
import re
import tracemalloc
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from models import Net, quantizer, save
from typer.testing import CliRunner

import hlsgen
from hlsgen.cli import app
from hlsgen.driver.calibration import input_type_of
from hlsgen.driver.options import parse_input
from hlsgen.frontend.graph_inputs import declared_type

SAMPLES = {
    "bytes": (np.arange(256), "ufixed:8,8"),
    "a byte more": ([0, 256], "ufixed:9,9"),
    "signs": ([-128, 127], "fixed:8,8"),
    "beyond": ([-128, 128], "fixed:9,9"),
    "quarters": ([-0.5, 0.25], "fixed:2,0"),
    "eighths": ([4, 0.125], "ufixed:6,3"),
    "zeros": ([0.0, -0.0], "ufixed:1,1"),
    "minus": ([-1.0], "fixed:1,1"),
    "large": ([4294967295], "ufixed:32,32"),
    "truth": ([True, False], "ufixed:1,1"),
    "small": ([2.0**-64], "ufixed:1,-63"),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_smallest_type(name: str) -> None:
    assert input_type_of(np.asarray(SAMPLES[name][0])) == SAMPLES[name][1]


def test_every_value_is_a_code_and_no_smaller_type_has_them() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        step, least = 2.0 ** -int(rng.integers(0, 20)), int(rng.choice([0, -(2 ** rng.integers(1, 20))]))
        values = rng.integers(least, 2 ** rng.integers(1, 20), rng.integers(1, 6)) * step
        text = input_type_of(values)
        mode = parse_input(text)
        assert mode is not None
        assert mode.type is not None
        codes = [Fraction(float(v)) * Fraction(2) ** mode.fraction for v in values]
        assert all(c.denominator == 1 and mode.type.lo <= c <= mode.type.hi for c in codes)
        # Half the range, or half the fineness, loses one.
        assert any(c < -((-mode.type.lo) // 2) or c > mode.type.hi // 2 for c in codes) or mode.type.bits == 1
        assert mode.fraction == 0 or any(c % 2 for c in codes)


@pytest.mark.parametrize("values", [[2.0**70], [2.0**40, -(2.0**45)], [3 * 2**33, 2**62]])
def test_large_steps(values: list[float]) -> None:
    """One type of 32 bits has all of them, though its steps are larger than 1."""
    mode = parse_input(input_type_of(np.array(values)))
    assert mode is not None
    assert mode.type is not None
    codes = [Fraction(v) * Fraction(2) ** mode.fraction for v in values]
    assert all(c.denominator == 1 and mode.type.lo <= c <= mode.type.hi for c in codes)
    assert any(c % 2 for c in codes) or mode.fraction == -64


@pytest.mark.parametrize("values", [[2**63 - 1], [2**62 + 1], [-(2**63) + 1, 0], [1.7e308, -1e300], [2.0**120], [1e30]])
def test_what_is_proposed_holds_the_sample(values: list[float]) -> None:
    """Also of numbers that no type has: none is proposed that would saturate, and none moves farther than it says."""
    with pytest.raises(hlsgen.HlsgenError, match="HG061") as error:
        input_type_of(np.array(values))
    hint = error.value.diagnostics[0].hint
    for text, far in re.findall(r"--input (\S+) \(values move by at most (\S+)\)", hint):
        mode = parse_input(text)
        assert mode is not None
        assert mode.type is not None
        step = Fraction(2) ** -mode.fraction
        nearest = [min(max(round(Fraction(v) / step), mode.type.lo), mode.type.hi) * step for v in values]
        assert all(abs(n - Fraction(v)) <= Fraction(far) for n, v in zip(nearest, values, strict=True))
    assert ("Choose" in hint) == (max(map(abs, values)) < 2.0**80)


def test_a_large_sample_of_small_integers() -> None:
    """It is not made larger: the file of a camera may have a gigabyte."""
    sample = np.zeros(1 << 26, np.uint8)
    sample[7] = 200
    tracemalloc.start()
    assert input_type_of(sample) == "ufixed:8,8"
    assert tracemalloc.get_traced_memory()[1] < 3 << 26
    tracemalloc.stop()


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "none", "link"])
def test_what_is_no_file(kind: str, tmp_path: Path) -> None:
    """It does not wait for a writer."""
    sample = Path("/dev/zero") if kind == "device" else tmp_path / "x.npy"
    if kind == "pipe":
        os.mkfifo(sample)
    elif kind == "folder":
        sample.mkdir()
    elif kind == "link":
        os.mkfifo(tmp_path / "pipe")
        sample.symlink_to("pipe")
    model = save(Net().linear().model(), tmp_path / "m.onnx")
    code, answer = invoke("check", model, "--calibrate", sample)
    assert (code, [d["code"] for d in answer["diagnostics"]]) == (1, ["HG001"])
    hlsgen.build(model, tmp_path / "d", hlsgen.Options(input="INT8"))
    code, answer = invoke("run", tmp_path / "d", "--input", sample, "--output", tmp_path / "y.npy")
    assert (code, [d["code"] for d in answer["diagnostics"]]) == (1, ["HG001"])


@pytest.mark.parametrize("kind", ["float32", "fixed:8,4"])
def test_values_that_are_no_numbers_give_no_warning(
    kind: str, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    model = quantizer().model() if kind == "float32" else Net().linear().model()
    hlsgen.build(save(model, tmp_path / "m.onnx"), tmp_path / "d", hlsgen.Options(input=kind))
    shape = json.loads((tmp_path / "d" / "manifest.json").read_text())["input"]["shape"]
    for value in (np.nan, np.inf, 1e300):
        with nullcontext() if kind == "float32" else pytest.raises(hlsgen.HlsgenError, match="HG054"):
            hlsgen.run(tmp_path / "d", np.full(shape, value))
    assert [str(x.message) for x in recwarn] == []


def test_nearly() -> None:
    values = np.array([-3.9, 0.1, 2.5], np.float32)
    with pytest.raises(hlsgen.HlsgenError) as error:
        input_type_of(np.r_[values, 2.0**-40])
    (found,) = error.value.diagnostics
    assert found.code == "HG061"
    for text in ("fixed:8,3", "fixed:12,3", "fixed:16,3"):
        mode = parse_input(text)
        assert mode is not None
        far = np.abs(np.rint(values * 2.0**mode.fraction) / 2.0**mode.fraction - values).max()
        said = re.search(rf"--input {text} \(values move by at most (\S+)\)", found.hint)
        assert said
        assert far <= float(said[1]) <= 1.1 * far


@pytest.mark.parametrize("sample", [[], ["a"], [np.nan], [1, np.inf], [1j]])
def test_no_sample(sample: list[Any]) -> None:
    with pytest.raises(hlsgen.HlsgenError, match="HG054"):
        input_type_of(np.array(sample))


def invoke(*arguments: object) -> tuple[int, dict[str, Any]]:
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    return result.exit_code, json.loads(result.stdout)


def test_commands(tmp_path: Path) -> None:
    """Asked for; a sample decides; what lies between the codes is refused, or rounded."""
    model, sample, out, y = (
        save(Net().linear().model(), tmp_path / "m.onnx"),
        tmp_path / "x.npy",
        tmp_path / "d",
        tmp_path / "y.npy",
    )
    code, answer = invoke("build", model, "-o", out)
    assert (code, [d["code"] for d in answer["diagnostics"]], out.exists()) == (1, ["HG061"], False)
    np.save(sample, np.array([[0.5, -2.0, 1.25, 0.0]]))
    code, answer = invoke("build", model, "-o", out, "--calibrate", sample)
    assert (code, answer["diagnostics"]) == (0, [])
    assert json.loads((out / "manifest.json").read_text())["options"]["input"] == "fixed:4,2"
    x = np.array([[0.5, -2.0, 1.25, 0.0], [0.374, 0.375, 0.125, -1.9]], np.float32)
    np.save(sample, x)
    code, answer = invoke("run", out, "--input", sample, "--output", y)
    assert (code, answer["diagnostics"][0]["code"], y.exists()) == (1, "HG054", False)
    code, _ = invoke("run", out, "--input", sample, "--output", y, "--round-input")
    rounded = np.array([x[0], [0.25, 0.5, 0.0, -2.0]], np.float32)
    assert code == 0
    assert (np.load(y) == hlsgen.run(out, rounded)).all()
    np.save(sample, np.array([[2.0, 0, 0, 0]]))
    code, answer = invoke("run", out, "--input", sample, "--output", y, "--round-input")
    assert (code, answer["diagnostics"][0]["code"]) == (1, "HG054")
    code, answer = invoke("check", model, "--calibrate", sample, "--input", "INT8")
    assert (code, answer["diagnostics"][0]["code"]) == (2, "HG040")
    np.savez(tmp_path / "two.npz", a=x, b=x)
    code, answer = invoke("check", model, "--calibrate", tmp_path / "two.npz")
    assert (code, answer["diagnostics"][0]["code"]) == (2, "HG040")


def test_with_what_else_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(hlsgen.HlsgenError) as error:
        hlsgen.check(
            save(Net().linear().then("Relu").then("Sqrt").linear(2, 3, name="fc1").model(), tmp_path / "m.onnx")
        )
    assert {d.code for d in error.value.diagnostics} == {"HG030", "HG061"}


def annotate(model: onnx.ModelProto, tensor: str, type: str) -> None:
    note = onnx.TensorAnnotation(tensor_name=tensor)
    note.quant_parameter_tensor_names.append(onnx.StringStringEntryProto(key="finn_datatype", value=type))
    model.graph.quantization_annotation.append(note)


def test_annotation_behind_a_move(tmp_path: Path) -> None:
    model = Net((1, 2, 2)).then("Reshape", np.array([1, 4])).linear().model()
    annotate(model, model.graph.node[0].output[0], "UINT3")
    assert str(hlsgen.check(save(model, tmp_path / "m.onnx")).graph.input.type) == str(parse_input("UINT3").type)  # type: ignore[union-attr]
    annotate(model, model.graph.input[0].name, "INT5")
    assert str(hlsgen.check(save(model, tmp_path / "m.onnx")).graph.input.type) == str(parse_input("INT5").type)  # type: ignore[union-attr]
    del model.graph.quantization_annotation[:]
    annotate(model, model.graph.node[-1].output[0], "UINT3")
    with pytest.raises(hlsgen.HlsgenError, match="HG061"):
        hlsgen.check(save(model, tmp_path / "m.onnx"))


def test_a_move_of_nothing() -> None:
    """A node that lacks its input is found by the frontend's rules, later."""
    graph = onnx.helper.make_graph([onnx.helper.make_node("Identity", [], ["y"])], "g", [], [])
    assert declared_type(graph, onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 4])) is None
