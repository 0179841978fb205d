"""TFLite files through the commands: build, verify in the file's runtime and in simulation, certify."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from paths import needs_icarus
from tflite_random import Choices, random_file
from tflite_wheels import run

import hlsgen
from hlsgen.driver.build_directory import reopen
from hlsgen.driver.weight_update import current_weights, load_sequence
from hlsgen.frontend.runtimes import TFLITE
from hlsgen.frontend.tflite.file import read_file
from hlsgen.ir import IntegerRows
from hlsgen.numerics.tflite.multipliers import Runtime
from hlsgen.simulation import tflite_oracle
from hlsgen.simulation.verilator_library import NativeCore


@needs_icarus
@pytest.mark.sim
@pytest.mark.oracle
@pytest.mark.parametrize(
    ("kind", "runtime"),
    [*(("NET", runtime) for runtime in TFLITE), ("LOGISTIC:int16", "litert"), ("RELU:int16", "tflm")],
)
def test_a_file_is_verified_and_certified(kind: str, runtime: str, tmp_path: Path) -> None:
    if tflite_oracle.missing(runtime):
        pytest.skip(tflite_oracle.missing(runtime))
    path, core = tmp_path / "net.tflite", tmp_path / "core"
    path.write_bytes(random_file(kind, 1).data)
    hlsgen.build(path, core, hlsgen.Options(runtime=runtime))
    verdict = hlsgen.verify(core, ["icarus"], frames=4)
    assert verdict.ok
    assert verdict.oracle.outputs > 0
    assert runtime in verdict.oracle.ran
    assert hlsgen.certify(core, path).ok


@needs_icarus
@pytest.mark.sim
@pytest.mark.oracle
@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("kind", "seed", "runtime", "target"),
    [
        ("ATTENTION", 0, "tflm", "verilog"),
        ("ATTENTION", 3, "litert-ref", "verilog"),
        ("ATTENTION:uint8", 1, "litert-ref", "verilog"),
        ("ATTENTION", 6, "tflm", "verilog,hls"),
    ],
)
def test_softmax_between_layers(kind: str, seed: int, runtime: str, target: str, tmp_path: Path) -> None:
    if tflite_oracle.missing(runtime):
        pytest.skip(tflite_oracle.missing(runtime))
    path, core = tmp_path / "net.tflite", tmp_path / "core"
    path.write_bytes(random_file(kind, seed).data)
    build = hlsgen.build(path, core, hlsgen.Options(runtime=runtime, target=target))
    assert any(isinstance(layer, IntegerRows) for layer in build.graph.layers)
    verdict = hlsgen.verify(core, ["icarus"], frames=2)
    assert verdict.ok
    assert verdict.oracle.outputs > 0
    result = hlsgen.certify(core, path)
    assert result.ok
    assert "read-once" not in [statement.name for statement in result.assumed]


@needs_icarus
@pytest.mark.sim
@pytest.mark.oracle
@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("kind", "seed", "runtime"), [("NET", 1, "tflm"), ("SOFTMAX:8to16", 1, "tflm"), ("SOFTMAX:uint8", 2, "litert-ref")]
)
def test_the_last_softmax_can_be_in_hardware(kind: str, seed: int, runtime: str, tmp_path: Path) -> None:
    if tflite_oracle.missing(runtime):
        pytest.skip(tflite_oracle.missing(runtime))
    path, core = tmp_path / "net.tflite", tmp_path / "core"
    path.write_bytes(random_file(kind, seed).data)
    build = hlsgen.build(path, core, hlsgen.Options(runtime=runtime, softmax="hardware"))
    assert any(isinstance(layer, IntegerRows) for layer in build.graph.layers)
    assert not build.graph.tail
    verdict = hlsgen.verify(core, ["icarus"], frames=2)
    assert verdict.ok
    assert verdict.oracle.outputs > 0
    result = hlsgen.certify(core, path)
    assert result.ok
    assert "read-once" not in [statement.name for statement in result.assumed]


@needs_icarus
@pytest.mark.sim
@pytest.mark.oracle
@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("kind", "runtime", "softmax"),
    [
        ("TRANSPOSE", "tflm", "host"),
        ("RESHAPE", "litert", "host"),
        ("SOFTMAX", "tflm", "host"),
        ("SOFTMAX", "tflm", "hardware"),
        ("SOFTMAX", "litert", "host"),
        ("SOFTMAX:uint8", "litert-ref", "host"),
        ("SOFTMAX:int16", "litert", "host"),
    ],
)
def test_files_of_one_operator_have_a_core(kind: str, runtime: str, softmax: str, tmp_path: Path) -> None:
    """The host computes moves and SOFTMAX, after a core that copies codes, unless the core has the SOFTMAX."""
    if tflite_oracle.missing(runtime):
        pytest.skip(tflite_oracle.missing(runtime))
    path, core = tmp_path / "net.tflite", tmp_path / "core"
    path.write_bytes(random_file(kind, 1).data)
    build = hlsgen.build(path, core, hlsgen.Options(runtime=runtime, target="verilog,hls", softmax=softmax))
    assert build.graph.layers
    assert bool(build.graph.tail) == (softmax == "host")
    verdict = hlsgen.verify(core, ["icarus"], frames=4)
    assert verdict.ok
    assert verdict.oracle.outputs > 0
    assert hlsgen.certify(core, path).ok


@needs_icarus
@pytest.mark.sim
@pytest.mark.oracle
@pytest.mark.cases(1)
@pytest.mark.parametrize("ports", ["separate", "packed"])
@pytest.mark.parametrize("inputs", [2, 1])
def test_moves_of_several_tensors_have_a_core(inputs: int, ports: str, tmp_path: Path) -> None:
    """Two transposed tensors, of an input each or of the same one."""
    if tflite_oracle.missing("tflm"):
        pytest.skip(tflite_oracle.missing("tflm"))
    file, path = Choices("TRANSPOSE", 1), tmp_path / "net.tflite"
    sources = [file.tensor((1, 4, 6)) for _ in range(inputs)]
    results = [file.like(sources[0], (1, 6, 4)), file.like(sources[-1], (6, 4, 1))]
    for source, result, order in zip((sources[0], sources[-1]), results, ([0, 2, 1], [2, 1, 0]), strict=True):
        file.graph.operator("TRANSPOSE", [source, file.graph.integers(order)], [result])
    path.write_bytes(file.finish(sources, results).data)
    hlsgen.build(path, tmp_path / "core", hlsgen.Options(runtime="tflm", target="verilog,hls", ports=ports))
    verdict = hlsgen.verify(tmp_path / "core", ["icarus"], frames=4)
    assert verdict.ok
    assert verdict.oracle.outputs > 0
    assert hlsgen.certify(tmp_path / "core", path).ok


def test_litert_has_no_softmax_in_hardware(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(random_file("NET", 1).data)
    with pytest.raises(hlsgen.HlsgenError, match="float32, in the order of the row") as raised:
        hlsgen.check(path, hlsgen.Options(runtime="litert", softmax="hardware"))
    assert [d.code for d in raised.value.diagnostics] == ["HG030"]


@pytest.mark.sim
@pytest.mark.oracle
@pytest.mark.cases(1)
@pytest.mark.parametrize("scale", [0.09, 0.021, 1.3])
def test_softmax_of_all_pairs_of_codes(scale: float, tmp_path: Path) -> None:
    """All 65536 rows of two codes, through the core and through tflite-micro; the last layer keeps the codes."""
    codes = np.arange(-128, 128)
    rows = np.stack(np.meshgrid(codes, codes), -1).astype(np.int8)
    c = Choices("SOFTMAX", 0)
    x, y = c.tensor((256, 2), np.float32(scale), 3), c.tensor((256, 2), np.float32(1 / 256), -128)
    c.graph.operator("SOFTMAX", [x], [y], beta=1.0)
    weights = c.graph.tensor((2, 2), "int8", np.float32(1 / 127), data=np.array([[127, 0], [0, 127]]))
    z = c.tensor((256, 2), np.float32(1 / 256), -128)
    c.graph.operator("FULLY_CONNECTED", [y, weights, -1], [z], fused_activation_function="NONE")
    file = c.finish([x], [z], [[frame] for frame in rows])
    path = tmp_path / "net.tflite"
    path.write_bytes(file.data)
    (expected,) = run(Runtime.TFLM, [file], tmp_path)
    build = hlsgen.build(path, tmp_path / "core")
    with NativeCore(build, tmp_path / "core", tmp_path / "native") as native:
        results = native.run(rows.astype(np.int64))
    assert np.array_equal(results.reshape(rows.shape), np.stack(expected))


def test_a_step_at_the_begin_of_the_last_cell(tmp_path: Path) -> None:
    """The last code of hg_correct begins where a cell does, which compares once more."""
    path, core = tmp_path / "net.tflite", tmp_path / "core"
    path.write_bytes(random_file("ATTENTION", 6).data)
    build = hlsgen.build(path, core, hlsgen.Options(outputs=["t2"]))
    assert [choice.name for choice in build.network.choices.values()] == ["correct"]
    assert hlsgen.certify(core).ok


@pytest.mark.sweep
def test_a_build_needs_no_runtime(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(random_file("FULLY_CONNECTED", 1).data)
    program = (
        "import sys, hlsgen\n"
        f"hlsgen.build({str(path)!r}, {str(tmp_path / 'core')!r})\n"
        "assert not {'tflite_micro', 'ai_edge_litert', 'flatbuffers'} & {m.split('.')[0] for m in sys.modules}"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert not ended.returncode, ended.stderr


def test_commands_for_onnx_refuse_a_file_by_its_kind(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(random_file("FULLY_CONNECTED", 1).data)
    with pytest.raises(hlsgen.HlsgenError, match="is a TFLite file") as raised:
        hlsgen.quantize(path, np.zeros((1, 4), np.float32), tmp_path / "q.onnx")
    assert "converter" in raised.value.diagnostics[0].hint


@needs_icarus
@pytest.mark.sim
def test_a_missing_or_wrong_runtime_ends_the_command_with_1(tmp_path: Path) -> None:
    """The child process finds no package of a runtime, as if none was installed."""
    path, core = tmp_path / "net.tflite", tmp_path / "core"
    path.write_bytes(random_file("FULLY_CONNECTED", 1).data)
    hlsgen.build(path, core, hlsgen.Options(runtime="litert-ref"))
    program = (
        "import importlib.util, sys\n"
        "find = importlib.util.find_spec\n"
        "hidden = ('ai_edge_litert', 'tflite_micro')\n"
        "importlib.util.find_spec = lambda name, package=None: None if name in hidden else find(name, package)\n"
        "from hlsgen.cli import main\n"
        "main()"
    )
    cases = {
        "auto": "litert-ref is not installed",
        "tflm": "tflm is not installed",
        "onnxruntime": "onnxruntime does not run TFLite files",
    }
    for oracle, why in cases.items():
        command = [sys.executable, "-c", program, "verify", str(core), "--sim", "icarus", "--frames", "2"]
        command += ["--oracle", oracle, "--json"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ended.returncode == 1, ended.stderr
        assert "HG059" in ended.stdout
        assert why in ended.stdout
        assert '"outputs": ' not in ended.stdout or '"outputs": 0' in ended.stdout


@pytest.mark.sweep
def test_run_keeps_variables_from_frame_to_frame(tmp_path: Path) -> None:
    path, core = tmp_path / "net.tflite", tmp_path / "core"
    file = random_file("STATE", 3)
    path.write_bytes(file.data)
    hlsgen.build(path, core, hlsgen.Options(state=["none"]))
    frames = np.concatenate([frame[0] for frame in file.frames])
    results = hlsgen.run(core, frames)
    (output,) = (name for name in results if name != "s0")
    graph = read_file(file.data, "net").graphs[1]
    state = next(tensor.data for tensor in graph.tensors if tensor.data is not None)
    alone = []
    for frame in frames:
        result = hlsgen.run(core, {"t0": frame[np.newaxis], "s0": state})
        alone.append(result[output].reshape(results[output].shape[1:]))
        state = result["s0"].reshape(state.shape)
    assert np.array_equal(np.stack(alone), results[output])
    if not tflite_oracle.missing("tflm"):
        (theirs,) = tflite_oracle.run_file(file.data, "tflm", [frames[:, np.newaxis]], 1)
        assert np.array_equal(theirs.reshape(results[output].shape), results[output])


@pytest.mark.sweep
@pytest.mark.oracle
@pytest.mark.parametrize(("kind", "seed"), [("STATE", 3), ("SVDF", 3)])
def test_variables_are_states_by_themselves(kind: str, seed: int, tmp_path: Path) -> None:
    """The core has the ports of the file, and its frames are those of tflite-micro, which keeps its variables."""
    if tflite_oracle.missing("tflm"):
        pytest.skip(tflite_oracle.missing("tflm"))
    path, core = tmp_path / "net.tflite", tmp_path / "core"
    file = random_file(kind, seed)
    path.write_bytes(file.data)
    hlsgen.build(path, core)
    names = list(read_file(file.data, "net").input_names)
    manifest = json.loads((core / "manifest.json").read_text())
    assert ([manifest["input"]["tensor"]], manifest["options"]["state"]) == (names, ["variables"])
    frames = np.concatenate([frame[0] for frame in file.frames])
    (theirs,) = tflite_oracle.run_file(file.data, "tflm", [np.stack([frame[0] for frame in file.frames])], 1)
    results = hlsgen.run(core, frames)
    assert np.array_equal(theirs.reshape(results.shape), results)
    assert hlsgen.certify(core, path).ok


def test_a_pair_replaces_the_initial_value_of_a_variable(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(random_file("STATE", 3).data)
    build = hlsgen.build(path, tmp_path / "core", hlsgen.Options(state=["s0=s0:5"]))
    assert build.options.state == ["s0=s0:5"]
    assert [set(state.initial.tolist()) for state in build.graph.states] == [{5}]


def test_a_build_that_cannot_have_states_names_the_way_out(tmp_path: Path) -> None:
    path = tmp_path / "net.tflite"
    path.write_bytes(random_file("STATE", 3).data)
    with pytest.raises(hlsgen.HlsgenError, match="HG040 --state") as raised:
        hlsgen.check(path, hlsgen.Options(loadable=True))
    assert "--state none" in str(raised.value)
    assert hlsgen.check(path, hlsgen.Options(state=["none"], loadable=True)).graph.states == ()


def test_the_workflow_of_a_package_installs_the_runtimes(tmp_path: Path) -> None:
    path, core, package = tmp_path / "net.tflite", tmp_path / "core", tmp_path / "package"
    path.write_bytes(random_file("FULLY_CONNECTED", 1).data)
    hlsgen.build(path, core)
    hlsgen.package(core, package, ["ci", "fusesoc", "yosys", "verilator"])
    assert "[sim,tflite]" in (package / ".github/workflows/net.yml").read_text()


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ["CONV_2D", "NET"])
@pytest.mark.parametrize("runtime", TFLITE)
def test_weights_of_another_file_can_be_loaded(kind: str, runtime: str, tmp_path: Path) -> None:
    path, other_path, core = tmp_path / "net.tflite", tmp_path / "other.tflite", tmp_path / "core"
    data = random_file(kind, 12).data
    graph = read_file(data, "net").graphs[0]
    path.write_bytes(data)
    hlsgen.build(path, core, hlsgen.Options(runtime=runtime, loadable=True))
    changed = data
    for operator in graph.operators:
        if operator.name in ("CONV_2D", "FULLY_CONNECTED"):
            weights = graph.tensors[operator.inputs[1]].data
            assert weights is not None
            reversed_rows = weights.reshape(len(weights), -1)[:, ::-1].reshape(weights.shape)
            changed = changed.replace(weights.tobytes(), np.ascontiguousarray(reversed_rows).tobytes())
    assert changed != data
    other_path.write_bytes(changed)
    loads = load_sequence(reopen(core), other_path)
    assert [load.layer for load in loads] == list(current_weights(reopen(core)))
    assert loads != load_sequence(reopen(core), path)


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ["CONV_2D", "STATE"])
def test_a_file_is_explored_and_packed(kind: str, tmp_path: Path) -> None:
    path, core = tmp_path / "net.tflite", tmp_path / "core"
    file = random_file(kind, 3)
    path.write_bytes(file.data)
    front = hlsgen.explore(path, points=2, jobs=1)
    assert front
    hlsgen.build(path, core)
    frames = np.concatenate([frame[0] for frame in file.frames])
    packed = hlsgen.pack(core, frames)
    sizes = [len(packed)] if isinstance(packed, bytes) else [len(part) for part in packed.values()]
    assert all(size and size % len(frames) == 0 for size in sizes)
