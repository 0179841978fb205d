"""State between frames: the core equals onnxruntime frame by frame, its outputs fed back; bad pairs are refused."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from paths import ROOT
from state_models import SCALE, coupled, delays, in_onnxruntime, recurrent, streaming, summed

import hlsgen
from hlsgen.diagnostics import Collector, HlsgenError
from hlsgen.driver.backends import backends_of
from hlsgen.driver.build_directory import reopen
from hlsgen.driver.compile import targets_of
from hlsgen.driver.schedule import plan
from hlsgen.explore.work import graph_of, source_of
from hlsgen.frontend import import_model
from hlsgen.interpreter.frame_states import as_sequence, without_states
from hlsgen.interpreter.graph import decode_output, encode_input, run_output
from hlsgen.ir import Map
from hlsgen.numerics.fixed import Array
from hlsgen.passes import lower
from hlsgen.passes.frame_states import states_last, with_default, with_states
from hlsgen.simulation.cpp_headers import include_folders
from hlsgen.simulation.verilator_library import NativeCore

PAIR = {"h": "h_out"}


def built(proto: onnx.ModelProto, folder: Path, **options: object) -> Path:
    onnx.save(proto, folder / "m.onnx")
    hlsgen.build(folder / "m.onnx", folder / "build", hlsgen.Options(**options))  # type: ignore[arg-type]
    return folder / "build"


def frames_of(shape: tuple[int, ...], count: int = 12) -> Array:
    """Random numbers, most of them codes of the quantizers."""
    return (np.random.default_rng(2).integers(-140, 140, (count, *shape)) / 16).astype(np.float32)


@pytest.mark.sweep
@pytest.mark.parametrize("inputs_first", [True, False])
def test_a_recurrent_step_equals_the_file_fed_back(tmp_path: Path, inputs_first: bool) -> None:
    proto, x = recurrent(inputs_first=inputs_first), frames_of((4,))
    build = built(proto, tmp_path, state=["h=h_out:0.5"])
    expected = in_onnxruntime(proto, x, PAIR, {"h": 0.5}, [5, 6])
    assert np.array_equal(hlsgen.run(build, x, starts=[5, 6]), expected)
    assert not np.array_equal(hlsgen.run(build, x), expected)
    assert np.array_equal(hlsgen.run(build, x), in_onnxruntime(proto, x, PAIR, {"h": 0.5}))


def test_delay_lines_equal_the_file_fed_back(tmp_path: Path) -> None:
    proto, x = delays(), frames_of((2, 1, 1))
    np.save(tmp_path / "line.npy", np.full((1, 2, 3, 1), -0.25, np.float32))
    build = built(proto, tmp_path, state=[f"line=line_out:{tmp_path}/line.npy", "last=last_out"])
    expected = in_onnxruntime(proto, x, {"line": "line_out", "last": "last_out"}, {"line": -0.25}, [7])
    assert np.array_equal(hlsgen.run(build, x, starts=[7]), expected)


def test_a_layer_and_a_state_share_their_quantizer(tmp_path: Path) -> None:
    """Also an output and a layer, without a state. report.md and report.html have the loop."""
    onnx.save(recurrent(), tmp_path / "m.onnx")
    for options in (hlsgen.Options(state=["h=h_out"]), hlsgen.Options()):
        build = hlsgen.check(tmp_path / "m.onnx", options)
        assert [layer.name for layer in build.graph.layers if isinstance(layer, Map)] == ["h_out_q QuantizeLinear"]
        loop = "Loop: input h → xh Concat → pre MatMul → h_out_q QuantizeLinear → input h."
        assert (loop in build.files["report.md"].decode()) == bool(options.state)
        assert ('class="loop"' in build.files["report.html"].decode()) == bool(options.state)


def test_no_port_and_no_host_code_know_the_state(tmp_path: Path) -> None:
    build = built(recurrent(), tmp_path, state=["h=h_out"])
    manifest = json.loads((build / "manifest.json").read_text())
    assert (manifest["input"]["tensor"], manifest["output"]["tensor"]) == ("x", "y")
    assert [(row["input"], row["output"], row["initial"]) for row in manifest["states"]] == [("h", "h_out", 0)]
    assert "h_out" not in (build / "host/m.h").read_text()
    assert len(hlsgen.pack(build, frames_of((4,), 3))) == 3 * 4


@pytest.mark.sweep
def test_packages_of_a_core_with_a_state(tmp_path: Path) -> None:
    """The vectors of a system are one sequence, which memory access starts."""
    build = built(recurrent(), tmp_path, state=["h=h_out"], bus_width="32")
    hlsgen.package(build, tmp_path / "system", ["soc"])
    assert ".s_axis_tuser(in_user)" in (tmp_path / "system/rtl/m_dma.v").read_text()
    vectors = (tmp_path / "system/soc/firmware/vectors.bin").read_bytes()
    words = [json.loads((build / "manifest.json").read_text())[side]["bus"]["words"] for side in ("input", "output")]
    rows = np.frombuffer(vectors, np.float32).reshape(-1, 4 + sum(words) + 3)
    assert len(rows) > 2
    assert np.array_equal(hlsgen.run(build, rows[:, :4]), rows[:, -3:])


@pytest.mark.sweep
def test_a_sweep_has_the_interval_of_the_build(tmp_path: Path) -> None:
    onnx.save(recurrent(), tmp_path / "m.onnx")
    options = hlsgen.Options(state=["h=h_out"], target_cycles=4)
    graph, _ = graph_of(source_of(tmp_path / "m.onnx", (tmp_path / "m.onnx").read_bytes()), options)
    backend = next(iter(backends_of("verilog").values()))
    expected = hlsgen.check(tmp_path / "m.onnx", options).timing.interval
    assert plan(graph, targets_of(options), backend)[1].interval == expected > 4


@pytest.mark.parametrize(("cycles", "reached"), [(40, True), (20, True), (13, True), (8, False)])
def test_the_loop_of_a_state_keeps_the_target_if_it_can(tmp_path: Path, cycles: int, reached: bool) -> None:
    """A folding for 20 cycles in each layer would take 27 cycles in the loop."""
    onnx.save(recurrent(), tmp_path / "m.onnx")
    build = hlsgen.check(tmp_path / "m.onnx", hlsgen.Options(state=["h=h_out"], target_cycles=cycles))
    assert (build.timing.interval <= cycles) == reached
    texts = [warning.message for warning in build.warnings if warning.code == "HG090"]
    assert texts == (
        [] if reached else ["8 cycles cannot be met; the interval is 13, which the loop of a state needs."]
    )


@pytest.mark.sim
@pytest.mark.parametrize("start", ["tuser", "register", "reset"])
def test_hardware_equals_the_reference(tmp_path: Path, start: str) -> None:
    """Stalls, resets in the middle of frames, sequence starts, and the cycle in which each frame ends."""
    build = built(recurrent(), tmp_path, state=["h=h_out:0.5"], state_start=start, control=start == "register")
    verdict = hlsgen.verify(build, ["icarus"], frames=8, oracle="none")
    assert verdict.ok, verdict


@pytest.mark.sim
@pytest.mark.parametrize(
    ("proto", "state", "initial"),
    [
        (delays(), {"line": "line_out", "last": "last_out"}, {"line": -0.25}),
        (coupled(), {"g": "g_out", "h": "h_out"}, {"h": 0.5}),
    ],
    ids=["delays", "coupled"],
)
@pytest.mark.cases(1)
def test_cpp_equals_the_file_fed_back(
    tmp_path: Path, proto: onnx.ModelProto, state: dict[str, str], initial: dict[str, float]
) -> None:
    x = frames_of(tuple(d.dim_value for d in proto.graph.input[0].type.tensor_type.shape.dim[1:]))
    pairs = [f"{source}={target}:{initial.get(source, 0)}" for source, target in state.items()]
    build = built(proto, tmp_path, state=pairs, target="hls")
    expected = in_onnxruntime(proto, x, state, initial, [4, 7, 8])
    assert np.array_equal(hlsgen.run(build, x, "cpp", starts=[4, 7, 8]), expected)


@pytest.mark.sim
@pytest.mark.sweep
@pytest.mark.cases(1)
@pytest.mark.parametrize("start", ["tuser", "reset"])
@pytest.mark.parametrize("proto", [recurrent(), summed()], ids=["recurrent", "summed"])
def test_cpp_equals_the_reference(tmp_path: Path, proto: onnx.ModelProto, start: str) -> None:
    """Sequence starts, and frames back to back between streams of the requested depths, with both sets of headers."""
    build = built(proto, tmp_path, state=["h=h_out:0.5"], state_start=start, target="hls", target_cycles=12)
    verdict = hlsgen.verify(build, frames=24, oracle="none")
    assert verdict.ok, verdict
    bench = ["g++", "-std=c++14", "-w", "-ffp-contract=off", "-fsanitize=undefined,address", "-Icsim", "-Icsim_ac"]
    headers = [flag for path in include_folders("ac") for flag in ("-isystem", str(path))]
    subprocess.run([*bench, *headers, "m.cpp", "tb/m_tb.cpp", "-o", "tb/run"], cwd=build / "hls", check=True)
    subprocess.run(["tb/run", str(build / "tb")], cwd=build / "hls", check=True)
    (build / "tb/expected.hex").write_text((build / "tb/expected.hex").read_text().replace("0", "1", 1))
    assert subprocess.run(["tb/run", str(build / "tb")], cwd=build / "hls", check=False).returncode == 1


def test_cpp_has_no_register(tmp_path: Path) -> None:
    with pytest.raises(HlsgenError, match="HG040 --control"):
        built(recurrent(), tmp_path, state=["h=h_out"], target="hls", state_start="register", control=True)


@pytest.mark.sim
def test_two_states_on_a_bus_equal_the_reference(tmp_path: Path) -> None:
    """A frame of two beats is one word of the bus."""
    state = ["line=line_out:-0.25", "last=last_out"]
    build = built(delays(), tmp_path, state=state, bus_width="32", tkeep=True)
    verdict = hlsgen.verify(build, ["icarus"], frames=8, oracle="none")
    assert verdict.ok, verdict


@pytest.mark.sim
@pytest.mark.parametrize("cycles", [1, 12])
def test_a_layer_of_the_state_alone(tmp_path: Path, cycles: int) -> None:
    """Sizing adds a FIFO between the state and its layer."""
    proto, x = summed(), frames_of((4,))
    build = built(proto, tmp_path, state=["h=h_out"], target_cycles=cycles)
    assert np.array_equal(hlsgen.run(build, x, starts=[4]), in_onnxruntime(proto, x, PAIR, {}, [4]))
    verdict = hlsgen.verify(build, ["icarus"], frames=8, oracle="none")
    assert verdict.ok, verdict
    assert hlsgen.certify(build).ok


@pytest.mark.sim
@pytest.mark.parametrize("frames", [1_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_many_frames_under_stalls_starts_and_resets(tmp_path: Path, frames: int) -> None:
    """Dilated streaming convolutions in Verilator equal onnxruntime, frame by frame."""
    proto, pairs = streaming(), {"near": "near_out", "far": "far_out"}
    build_folder = built(proto, tmp_path, state=[f"{source}={target}" for source, target in pairs.items()])
    build, rng, compared = reopen(build_folder), np.random.default_rng(frames), 0
    with NativeCore(build, build_folder, tmp_path / "sim") as core:
        while compared < frames:
            starts = rng.random(count := min(frames, 20_000)) < 1 / 16
            starts[0] = True
            x = (rng.integers(-140, 140, (count, 3, 1, 1)) / 16).astype(np.float32)
            y = in_onnxruntime(proto, x, pairs, {}, np.flatnonzero(starts).tolist())
            codes = as_sequence(build.graph, encode_input(build.graph.host_graph, x), starts)
            own = without_states(run_output(build.graph, codes), build.graph.host_graph.output.shape)
            assert np.array_equal(decode_output(build.graph.host_graph, own), y)
            soaked = core.soak(codes, 6 * count * build.timing.interval, compared)
            assert soaked.error == ""
            assert soaked.resets > count / 1000
            compared += soaked.output_beats // build.network.outputs[0].layout.words
    print(f"{compared} frames")


@pytest.mark.sim
def test_a_run_in_a_simulator_starts_sequences(tmp_path: Path) -> None:
    proto, x = recurrent(), frames_of((4,), 5)
    build = built(proto, tmp_path, state=["h=h_out"])
    assert np.array_equal(hlsgen.run(build, x, "icarus", starts=[2]), in_onnxruntime(proto, x, PAIR, {}, [2]))


@pytest.mark.parametrize(
    ("proto", "state", "text"),
    [
        (recurrent(out_scale=SCALE * 2), ["h=h_out"], "the scales differ: 0.0625 and 0.125"),
        (recurrent(), ["h=y"], "the shapes differ"),
        (recurrent(), ["h=z"], "z: is no output of the model"),
        (recurrent(), ["g=h_out"], "g: is no input of the model"),
        (recurrent(), ["h"], "Write IN=OUT"),
        (recurrent(), ["h=h_out:0.03"], "no code represents the initial value"),
        (recurrent(), ["h=h_out:a"], "is no number"),
        (recurrent(), ["h=h_out:[1, 2]"], "initial values of shape [2]"),
        (recurrent(), ["h=h_out:none.npy"], "cannot be read"),
        (recurrent(), ["x=y", "h=h_out"], "no input is left"),
        (delays(), ["line=line_out"], "--ports separate"),
    ],
)
def test_bad_pairs_are_refused(tmp_path: Path, proto: onnx.ModelProto, state: list[str], text: str) -> None:
    with pytest.raises(HlsgenError, match="HG043 ") as error:
        built(proto, tmp_path, state=state)
    assert text in str(error.value)


def test_variables_of_a_file_need_a_file_with_variables(tmp_path: Path) -> None:
    with pytest.raises(HlsgenError, match="the file assigns no variables"):
        built(recurrent(), tmp_path, state=["variables"])
    with pytest.raises(HlsgenError, match="both variables and none"):
        built(recurrent(), tmp_path, state=["variables", "none"])


WAKE_WORD = ROOT.parent / "shared/tflite/models/wakeword_okay_nabu_v2.tflite"


@pytest.mark.skipif(not WAKE_WORD.exists(), reason=f"{WAKE_WORD} is missing")
def test_the_variables_of_a_wake_word_become_states(tmp_path: Path) -> None:
    """Six ring buffers, with the file's initial value: the core has one input and one output."""
    imported = import_model(WAKE_WORD, Collector(), False, {})
    assert imported is not None
    assert with_default(imported, []) == ["variables"]
    model, pairs = states_last(imported, ["variables"])
    graph = with_states(lower(model, {}, Collector(), separate=True), pairs, packed=True)
    assert [state.initial.tolist() for state in graph.states] == [[-128] * state.initial.size for state in graph.states]
    assert sorted(state.initial.size for state in graph.states) == [80, 128, 320, 640, 896, 1408]
    assert (graph.host_graph.input.shape, graph.host_graph.output.shape) == ((1, 3, 40), (1, 1))


def test_starts_need_states(tmp_path: Path) -> None:
    build = built(recurrent(), tmp_path)
    with pytest.raises(HlsgenError, match="no state between frames"):
        hlsgen.run(build, {"x": frames_of((4,), 1), "h": frames_of((6,), 1)}, starts=[0])
