"""Models of several inputs and outputs equal onnxruntime and onnx's reference implementation, also in hardware."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import ort
import pytest
from end_cases import (
    CASES,
    INT8,
    ORACLES,
    REFERENCE,
    Case,
    Tensors,
    fixed_inputs,
    inner_output,
    node,
    outputs_of,
    three_inputs,
    unlike_types,
)
from host_code import self_tested
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from paths import ROOT
from typer.testing import CliRunner

import hlsgen
from hlsgen import cli
from hlsgen.driver.compile import Build
from hlsgen.ir import Map

pytestmark = pytest.mark.sim


def built(case: Case, folder: Path) -> tuple[Build, Path]:
    onnx.save(case.proto(), folder / "m.onnx")
    return hlsgen.build(folder / "m.onnx", folder / "build", hlsgen.Options(**case.options)), folder / "build"


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_file(tmp_path: Path, name: str) -> None:
    """The integer reference and hardware equal the executor, frame by frame."""
    case = CASES[name]()
    _, folder = built(case, tmp_path)
    frames = case.frames(5)
    runs: Any = ReferenceEvaluator(case.proto()) if name in REFERENCE else ort.session(case.proto())
    expected = [dict(zip(case.outputs, runs.run(list(case.outputs), frame), strict=True)) for frame in frames]
    arrays = {k: np.concatenate([frame[k] for frame in frames]) for k in case.inputs}
    x = arrays if len(arrays) > 1 else next(iter(arrays.values()))
    for backend in ("reference", "icarus"):
        outputs = outputs_of(case, hlsgen.run(folder, x, backend))
        for output in case.outputs:
            reference = np.concatenate([frame[output] for frame in expected])
            assert outputs[output].dtype == reference.dtype
            is_equal = (
                np.abs(outputs[output] - reference).max() < 1e-6
                if output == "g"
                else (outputs[output] == reference).all()
            )  # the host's Sigmoid is rounded differently
            assert is_equal, (backend, output)


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("name", CASES)
def test_verify_and_certify(tmp_path: Path, name: str) -> None:
    _, folder = built(CASES[name](), tmp_path)
    oracle = ORACLES.get(name, "auto")
    verdict = hlsgen.verify(folder, ["verilator"], frames=6, oracle=oracle)
    assert verdict.ok
    assert verdict.oracle.compared or oracle == "none"
    assert hlsgen.certify(folder).ok


def test_parts_in_the_manifest(tmp_path: Path) -> None:
    build, folder = built(unlike_types(), tmp_path)
    manifest = json.loads((folder / "manifest.json").read_text())
    rows = [(p["tensor"], p["offset"], p["elements"], p["range"]) for p in manifest["input"]["parts"]]
    assert rows == [("x", 0, 6, [-128, 127]), ("u", 6, 4, [0, 255])]
    assert (manifest["input"]["range"], manifest["input"]["axes"]) == ([-128, 255], [0])
    assert [p["offset"] for p in manifest["output"]["parts"]] == [0, 3, 13]
    narrowed = [
        layer.name for layer in build.graph.layers if isinstance(layer, Map) and layer.name.startswith("input ")
    ]
    assert narrowed == ["input x (codes)", "input u (codes)"]


@pytest.mark.parametrize("change", [("offset", 1), ("meaning", "real = code"), ("range", [0, 1]), ("tensor", "v")])
def test_certify_holds_the_parts(tmp_path: Path, change: tuple[str, object]) -> None:
    _, folder = built(inner_output(), tmp_path)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["output"]["parts"][1][change[0]] = change[1]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert any(f"parts[1].{change[0]}" in d.message for d in hlsgen.certify(folder).problems)


def test_bytes_of_the_port(tmp_path: Path) -> None:
    """`pack` concatenates the inputs, `unpack` returns the outputs by name."""
    _, folder = built(inner_output(), tmp_path)
    (frame,) = inner_output().frames(1)
    data = np.frombuffer(hlsgen.pack(folder, frame), np.int8)
    assert (data == np.concatenate([frame["a"].ravel(), frame["b"].ravel()])).all()
    back = hlsgen.unpack(folder, bytes(range(50)), codes=True)
    assert (np.concatenate([back["s"].ravel(), back["p"].ravel()]) == np.arange(50)).all()


def test_wrong_inputs_are_refused(tmp_path: Path) -> None:
    _, folder = built(inner_output(), tmp_path)
    (frame,) = inner_output().frames(1)
    for wrong in ({"a": frame["a"]}, {**frame, "c": frame["a"]}, {**frame, "b": frame["b"][:, :1]}, frame["a"]):
        with pytest.raises(hlsgen.HlsgenError, match="HG054"):
            hlsgen.run(folder, wrong)


def test_wide_types_do_not_share_a_port(tmp_path: Path) -> None:
    case = three_inputs()
    case.inputs |= {"a": (TensorProto.UINT32, [1, 5])}
    onnx.save(case.proto(), tmp_path / "m.onnx")
    with pytest.raises(hlsgen.HlsgenError, match="HG042"):
        hlsgen.check(tmp_path / "m.onnx")


def test_types_by_name(tmp_path: Path) -> None:
    """HG090: the unquantized inputs have products that onnxruntime quantizes at run time."""
    case = fixed_inputs()
    onnx.save(case.proto(), tmp_path / "m.onnx")
    for types, code in (({"y": "fixed:8,5"}, "HG061"), ({"n": "INT8", "": "INT8"}, "HG040")):
        with pytest.raises(hlsgen.HlsgenError) as error:
            hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(input=types))
        assert [d.code for d in error.value.diagnostics] == ["HG090", code]


def test_codes_of_a_pair(tmp_path: Path) -> None:
    """The integers of two inputs of one operation are codes."""
    names = ["a", "sa", "z", "b", "sb", "z", "sc", "z"]
    nodes = [helper.make_node("QLinearAdd", names, ["c"], domain="com.microsoft")]
    constants = {"sa": np.float32(0.5), "sb": np.float32(0.25), "sc": np.float32(0.5), "z": np.int8(0)}
    case = Case({"a": (INT8, [1, 4]), "b": (INT8, [1, 4])}, {"c": (INT8, [1, 4])}, nodes, constants, {"input": "codes"})
    proto = case.proto()
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    onnx.save(proto, tmp_path / "m.onnx")
    hlsgen.build(tmp_path / "m.onnx", tmp_path / "build", hlsgen.Options(input="codes"))
    (frame,) = case.frames(1)
    (expected,) = ort.session(proto).run(None, frame)
    assert (hlsgen.run(tmp_path / "build", frame) == expected).all()
    assert len(hlsgen.pack(tmp_path / "build", frame)) == 8


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", CASES)
def test_host_code(tmp_path: Path, name: str) -> None:
    """Python and C host code pack inputs and unpack outputs like hlsgen."""
    case = CASES[name]()
    build, folder = built(case, tmp_path)
    top = build.design.top
    spec = importlib.util.spec_from_file_location(f"host_{name}", folder / "host" / f"{top}.py")
    assert spec is not None
    assert spec.loader is not None
    host = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(host)
    assert host.self_test() == 0
    frames = case.frames(3)
    arrays = {k: np.concatenate([frame[k] for frame in frames]) for k in case.inputs}
    x = arrays if len(arrays) > 1 else next(iter(arrays.values()))
    assert host.encode(x) == hlsgen.pack(folder, x)
    outputs = build.network.outputs[0].layout.frame_bytes
    data = np.random.default_rng(1).integers(0, 2, outputs).astype(np.uint8).tobytes()
    if name != "one_input":  # its Sigmoid is left to the user
        decoded, reference = (
            outputs_of(case, unpacked) for unpacked in (host.decode(data), hlsgen.unpack(folder, data))
        )
        for output in case.outputs:
            assert (decoded[output].ravel() == reference[output].ravel()).all()
    self_tested(folder, top)


@pytest.mark.parametrize("count", [2, 3])
def test_inputs_of_which_only_the_shape_counts(tmp_path: Path, count: int) -> None:
    """Inputs whose shape alone is used are no inputs of the core."""
    nodes = [
        node("Shape", "n", "k"),
        node("Reshape", "a k", "ar"),
        *([] if count == 2 else [node("Add", "ar b", "s")]),
        node("MaxPool", "s" if count == 3 else "ar", "p", kernel_shape=[2]),
    ]
    inputs: Tensors = {"n": (INT8, [1, 2, 4]), "a": (INT8, [1, 4, 2]), "b": (INT8, [1, 2, 4])}
    case = Case({k: inputs[k] for k in list(inputs)[:count]}, {"p": (INT8, [1, 2, 3])}, nodes, {}, {})
    build, folder = built(case, tmp_path)
    (frame,) = case.frames(1)
    del frame["n"]
    (expected,) = ort.session(case.proto()).run(None, {"n": np.zeros([1, 2, 4], np.int8), **frame})
    assert (hlsgen.run(folder, frame) == expected).all()
    assert [source.name for source in build.model.all_inputs] == list(frame)


def test_command_line(tmp_path: Path) -> None:
    """Input and output are arrays by name in .npz."""
    runner, (build, folder) = CliRunner(), built(inner_output(), tmp_path)
    frame = inner_output().frames(2)
    x = {name: np.concatenate([sample[name] for sample in frame]) for name in frame[0]}
    np.savez(tmp_path / "x.npz", **x)
    called = ["run", str(folder), "--input", str(tmp_path / "x.npz"), "--json", "--output"]
    result = runner.invoke(cli.app, [*called, str(tmp_path / "y.npz")])
    assert json.loads(result.stdout)["output_shape"] == {"s": [2, 2, 4, 4], "p": [2, 2, 3, 3]}
    outputs = np.load(tmp_path / "y.npz")
    assert (outputs["s"] == x["a"] + x["b"]).all()
    assert runner.invoke(cli.app, [*called, str(tmp_path / "y.npy")]).exit_code == 1
    packed = runner.invoke(cli.app, ["pack", str(folder), str(tmp_path / "x.npz"), "-o", str(tmp_path / "in.bin")])
    assert packed.exit_code == 0
    assert (tmp_path / "in.bin").read_bytes() == hlsgen.pack(folder, x)
    (tmp_path / "out.bin").write_bytes(bytes(build.network.outputs[0].layout.frame_bytes))
    unpacked = runner.invoke(cli.app, ["unpack", str(folder), str(tmp_path / "out.bin"), "-o", str(tmp_path / "u.npz")])
    assert unpacked.exit_code == 0
    assert set(np.load(tmp_path / "u.npz")) == {"s", "p"}


def test_types_on_the_command_line(tmp_path: Path) -> None:
    """A type for one input and one for all others, or a sample of each."""
    case, runner = fixed_inputs(), CliRunner()
    onnx.save(case.proto(), tmp_path / "m.onnx")
    np.savez(tmp_path / "x.npz", **case.frames(1)[0])
    for options in (["--input", "x=fixed:8,5", "--input", "fixed:10,5"], ["--calibrate", str(tmp_path / "x.npz")]):
        result = runner.invoke(cli.app, ["build", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "build"), *options])
        assert result.exit_code == 0, result.stderr
        written = json.loads((tmp_path / "build" / "manifest.json").read_text())["options"]["input"]
        assert set(written) == ({"x", ""} if "--input" in options else {"x", "y"})
        assert hlsgen.certify(tmp_path / "build").ok


def foreign_suites() -> ModuleType:
    """The script in benchmarks/."""
    spec = importlib.util.spec_from_file_location("foreign_suites", ROOT / "benchmarks" / "foreign_suites.py")
    assert spec is not None
    assert spec.loader is not None
    suites = sys.modules["foreign_suites"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(suites)
    return suites


def test_integers_of_a_suite_for_float_tensors(tmp_path: Path) -> None:
    """Deeploy stores arrays as int64, which are numbers of the declared type; the input needs a fixed-point type."""
    weights = helper.make_tensor("w", onnx.TensorProto.FLOAT, (4, 2), [1, -2, 3, 4, -5, 6, 7, 8])
    ends = [
        helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        for name, shape in (("x", (1, 4)), ("y", (1, 2)))
    ]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", ends[:1], ends[1:], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), tmp_path / "network.onnx")
    np.savez(tmp_path / "inputs.npz", input_0=np.array([[1, 2, 3, 200]]))
    np.savez(tmp_path / "outputs.npz", output_0=np.array([[1392, 1624]]))
    suites = foreign_suites()
    result = suites.held(suites.read(tmp_path / "network.onnx"), "reference")
    assert (result.state, result.codes, result.reason) == ("equal", "", "")


def test_suites_of_others(tmp_path: Path) -> None:
    """A test in Deeploy's layout, and one in onnx's with a wrong number."""
    suites = foreign_suites()
    case = inner_output()
    (frame,) = case.frames(1)
    outputs = dict(zip(case.outputs, ort.session(case.proto()).run(list(case.outputs), frame), strict=True))
    deeploy_test, onnx_test = tmp_path / "one", tmp_path / "other"
    (onnx_test / "test_data_set_0").mkdir(parents=True)
    deeploy_test.mkdir()
    onnx.save(case.proto(), deeploy_test / "network.onnx")
    np.savez(deeploy_test / "inputs.npz", **frame)
    np.savez(deeploy_test / "outputs.npz", **outputs)
    onnx.save(case.proto(), onnx_test / "model.onnx")
    outputs["p"] = outputs["p"] ^ 1
    for kind, arrays in (("input", frame), ("output", outputs)):
        for number, array in enumerate(arrays.values()):
            onnx.save_tensor(numpy_helper.from_array(array), str(onnx_test / "test_data_set_0" / f"{kind}_{number}.pb"))
    results = [suites.held(suites.read(path), "reference") for path in suites.tests_in(tmp_path)]
    assert [(r.test, r.state) for r in results] == [("one", "equal"), ("other", "differs")]
    assert "18 of 18 differ" in results[1].reason
