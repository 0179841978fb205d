"""Host code runs in a verification: Python, C, interpreter and the file's executor agree, and seeded bugs are found."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from models import Net, mlp, quantizer, save
from onnx.parser import parse_model

import hlsgen
from hlsgen.cli.junit import junit
from hlsgen.host import plan
from hlsgen.host.emit import host_files
from hlsgen.interpreter import graph as reference
from hlsgen.ir.evaluate import quantize
from hlsgen.ir.ops import QuantizeLinear
from hlsgen.simulation import host_plan_check, host_quantizer, host_selftest
from hlsgen.simulation.host_selftest import HostVerdict, check_host
from hlsgen.simulation.verify import VerifyRequest, verify_build

Array = Any


def qdq(inputs: str = "float[1, 6] x", head: str = "h = Identity(x)", constants: str = "") -> onnx.ModelProto:
    """A quantizer whose scale has an inexact reciprocal, after `head`, and a layer."""
    return parse_model(
        f'<ir_version: 10, opset_import: ["" : 21]> net ({inputs}) => (int32[1, 2] y) '
        f"<float s = {{0.3}}, uint8 z = {{7}}, int8[6, 2] w = {{1, -2, 3, 5, -7, 4, 2, 2, 9, -8, 6, 1}}{constants}> "
        f"{{ {head} q = QuantizeLinear(h, s, z) y = MatMulInteger(q, w, z) }}"
    )


def two_inputs() -> onnx.ModelProto:
    return qdq(
        "float[1, 6] a, float[1, 6] b",
        "t = QuantizeLinear(a, s, z) u = QuantizeLinear(b, s, z) "
        "c = DequantizeLinear(t, s, z) d = DequantizeLinear(u, s, z) h = Add(c, d)",
    )


MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "qonnx": (lambda: quantizer(scale=0.3, bits=5.0).model(), {"input": "codes"}),
    "layer": (lambda: mlp().model(), {}),
    "float32 port": (lambda: quantizer().model(), {"input": "float32", "lanes": 3}),
    "fixed port": (lambda: quantizer(scale=0.3, bits=5.0).model(), {"input": "fixed:9,4"}),
    "scales of channels": (
        lambda: Net((1, 3, 2, 2)).quant(scale=np.array([0.5, 0.3, 0.1], np.float32).reshape(1, 3, 1, 1)).model(),
        {"input": "codes"},
    ),
    "onnxruntime": (qdq, {}),
    "onnx": (qdq, {"runtime": "onnx"}),
    "arithmetic": (
        lambda: qdq(head="a = Sub(x, m) h = Div(a, k)", constants=", float m = {0.45}, float k = {0.22}"),
        {},
    ),
    "bytes": (
        lambda: qdq("uint8[1, 6] x", "f = Cast<to = 1>(x) h = Div(f, k)", ", float k = {3.1}"),
        {"input": "codes"},
    ),
    "left to the user": (lambda: qdq(head="h = Softmax(x)"), {}),
    "two inputs": (two_inputs, {}),
    "separate ports": (two_inputs, {"ports": "separate"}),
}


def built(name: str, folder: Path) -> tuple[hlsgen.Build, Path]:
    make, options = MODELS[name]
    model = save(make(), folder / "m.onnx")
    return hlsgen.build(model, folder / "out", hlsgen.Options(**options)), folder / "out"


def checked(name: str, folder: Path) -> HostVerdict:
    build, out = built(name, folder)
    return check_host(build.model, build.network, out / "model.onnx", 1, "auto")


@pytest.mark.parametrize("name", MODELS)
def test_python_c_interpreter_and_executor_agree(name: str, tmp_path: Path) -> None:
    verdict = checked(name, tmp_path)
    assert verdict.ok, verdict
    assert verdict.differences == {"Python": 0, "C": 0}
    assert verdict.frames > 1
    ports_without = ("float32 port", "fixed port")
    assert (verdict.head.compared > 0) is (name not in ports_without)


def reciprocal(op: Any, x: Array) -> Array:
    """The code of x times the reciprocal of the scale, in the place of the quotient."""
    with np.errstate(all="ignore"):
        product = x * (np.float32(1) / op.scale)
    return quantize(replace(op, scale=np.ones_like(op.scale)), product)


def nan_is_highest(op: Any, x: Array) -> Array:
    codes = quantize(op, x)
    return np.where(np.isnan(x), op.type.hi, codes)


def test_a_product_with_the_reciprocal_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both languages show it. The executor shows it even if all of hlsgen has the bug."""
    build, out = built("onnxruntime", tmp_path)
    assert isinstance(build.graph.encode, QuantizeLinear)
    monkeypatch.setattr(reference, "quantize", reciprocal)
    verdict = check_host(build.model, build.network, out / "model.onnx", 1, "auto")
    assert verdict.head.different > 0
    assert verdict.differences["Python"] > 0
    assert verdict.differences["C"] > 0
    assert not verdict.ok


def test_a_wrong_code_for_nan_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NaN is the lowest code in onnxruntime, Python, C and the interpreter."""
    build, out = built("onnxruntime", tmp_path)
    monkeypatch.setattr(reference, "quantize", nan_is_highest)
    verdict = check_host(build.model, build.network, out / "model.onnx", 1, "auto")
    assert verdict.head.different > 0
    assert min(verdict.differences.values()) > 0
    assert {d.code for d in verdict.diagnostics} == {"HG064"}
    assert "nan" in verdict.head.text


def shares(rows: int) -> onnx.ModelProto:
    """Codes of a Softmax, with a step of 2^-16."""
    return parse_model(
        f'<ir_version: 10, opset_import: ["" : 21]> net (float[1, {rows}, 6] x) => (float[1, {rows}, 6] y) '
        "<float s = {0.0000152587890625}, uint16 z = {7}> "
        "{ h = Softmax(x) q = QuantizeLinear(h, s, z) y = DequantizeLinear(q, s, z) }"
    )


@pytest.mark.parametrize(("steps", "is_explained"), [(30, True), (-30, True), (3000, False)])
def test_an_operator_on_the_host_may_add_in_another_order(
    steps: int, is_explained: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results of a Softmax some steps of float32 away give other codes, and are as good; those far away are wrong."""
    build = hlsgen.build(save(shares(20), tmp_path / "m.onnx"), tmp_path / "out", hlsgen.Options(input="codes"))
    run = host_quantizer.run_step

    def moved(step: Any, x: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray((run(step, x) * np.float32(1 + steps * 2.0**-23)).astype(np.float32))

    arguments = build.model, build.graph, tmp_path / "m.onnx", 1, "auto"
    monkeypatch.setattr(reference, "run_step", moved)
    assert host_quantizer.check_head(*arguments).different > 0
    monkeypatch.setattr(host_quantizer, "run_step", moved)
    result = host_quantizer.check_head(*arguments)
    assert result.compared > 0
    assert (result.different == 0) is is_explained


@pytest.mark.parametrize(("ending", "language"), [(".py", "Python"), (".c", "C")])
@pytest.mark.parametrize("name", ["onnxruntime", "qonnx"])
def test_a_bug_in_one_language_is_found(
    ending: str, language: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the two languages multiplies with the reciprocal instead of dividing."""

    def wrong(*args: Any) -> dict[str, bytes]:
        files = host_files(*args)
        path = f"host/host{ending}"
        text = files[path].decode()
        changed = (
            text.replace("a / b;", "a * (1 / b);")
            if ending == ".c"
            else text.replace("x / ", "x * (np.float32(1) / ", 1)
        )
        if ending == ".py":
            start = changed.index("x * (np.float32(1) / ") + len("x * (np.float32(1) / ")
            end = next(n for n in range(start, len(changed)) if changed[n] in " ,)")
            changed = changed[:end] + ")" + changed[end:]
        assert changed != text
        return {**files, path: changed.encode()}

    build, out = built(name, tmp_path)
    monkeypatch.setattr(host_selftest, "host_files", wrong)
    verdict = check_host(build.model, build.network, out / "model.onnx", 1, "none")
    assert [name_ for name_, count in verdict.differences.items() if count] == [language]


def with_tail() -> onnx.ModelProto:
    """A layer whose sums the host multiplies and adds to."""
    return (
        Net((1, 4))
        .quant(0.5)
        .linear(3, 4, name="fc")
        .then("Mul", 0.75, name="mul")
        .then("Add", 0.5, name="add")
        .model()
    )


@pytest.mark.sweep
@pytest.mark.parametrize("place", ["first", "last"])
def test_a_lost_step_is_found(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code and vectors follow the plan, so that both lack the step."""
    path = save(with_tail(), tmp_path / "m.onnx")
    build = hlsgen.build(path, tmp_path / "out")
    assert check_host(build.model, build.network, path, 1, "none").ok
    complete = plan.plan_tail(build.graph)
    assert len(complete.steps) > 1
    steps = complete.steps[1:] if place == "first" else complete.steps[:-1]
    monkeypatch.setattr(plan, "plan_tail", lambda graph: replace(complete, steps=steps))
    verdict = check_host(build.model, build.network, path, 1, "none")
    assert min(verdict.differences.values()) > 0
    # Both parts see it: the names of the steps, and the results.
    outputs = plan.plan_outputs(build.graph)
    assert host_plan_check._lost_steps(build.graph, outputs) == 1
    codes = np.arange(6).reshape(2, *build.graph.output.shape)
    assert host_plan_check._wrong_results(build.graph, outputs, codes) > 0


def test_a_missing_compiler_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_selftest.shutil, "which", lambda name: None)
    verdict = checked("layer", tmp_path)
    assert list(verdict.differences) == ["Python"]
    assert "no C compiler" in verdict.notes[0]


def test_a_difference_fails_the_verification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The host code is a part of the verdict, with a JUnit case and a diagnostic."""
    build, out = built("layer", tmp_path)
    monkeypatch.setattr(
        "hlsgen.simulation.verify.check_host", lambda *_: HostVerdict(4, {"Python": 0, "C": 2}, notes=["a note"])
    )
    parts: dict[str, object] = {}
    verdict = verify_build(
        build.model,
        build.network,
        build.timing,
        build.files,
        out,
        VerifyRequest([], 4, oracle="none"),
        report=parts.__setitem__,
    )
    assert not verdict.ok
    assert [d.code for d in verdict.diagnostics] == ["HG064"]
    assert verdict.notes == ["a note"]
    assert isinstance(parts["host"], HostVerdict)
    assert b"2 results of the host code in C differ" in junit(verdict)
    assert json.dumps([d.as_dict() for d in verdict.diagnostics])


def test_no_file_of_the_build_directory_is_executed(tmp_path: Path) -> None:
    build, out = built("layer", tmp_path)
    for path in (out / "host").iterdir():
        path.write_text("raise SystemExit(1)\n#error\n")
    assert check_host(build.model, build.network, out / "model.onnx", 1, "none").ok
