"""C simulation of builds with C++: equal to the reference; changes are found, and the changed layer is named."""

from __future__ import annotations

import json
import re
import shutil
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paths import DATA, ROOT, needs_icarus

import hlsgen
from hlsgen.diagnostics import HlsgenError
from hlsgen.driver.build_directory import reopen
from hlsgen.interpreter.graph import run_layers
from hlsgen.simulation import cpp_headers, cpp_library
from hlsgen.simulation.directed import affordable_frames, directed
from hlsgen.simulation.frames import frames_of

OPTIONS = {"target_cycles": 20, "realize": {"": "thresholds"}}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("build") / "out"
    hlsgen.build(DATA / "floor_ceil.onnx", out, hlsgen.Options(target="hls", **OPTIONS))  # type: ignore[arg-type]
    return out


@pytest.fixture
def core(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path / "core")
    return tmp_path / "core"


def layer_names(core: Path) -> list[str]:
    return [layer["name"] for layer in json.loads((core / "manifest.json").read_text())["layers"]]


def samples(core: Path, count: int) -> Any:
    build = reopen(core)
    return np.round(np.random.default_rng(5).random((count, *build.graph.model.input_shape[1:])) * 4 - 2).astype("f4")


def change(file: Path, pattern: str, replacement: str) -> None:
    text, count = re.subn(pattern, replacement, file.read_text(), count=1)
    assert count
    file.write_text(text)


@pytest.mark.sim
def test_runs_as_the_reference(built: Path) -> None:
    x = samples(built, 300)
    expected = hlsgen.run(built, x)
    assert len(np.unique(expected)) > 4
    for backend in ("cpp", "cpp-ap"):
        outputs = hlsgen.run(built, x, backend)
        assert outputs.dtype == expected.dtype
        assert (outputs == expected).all()


@pytest.mark.sim
def test_values_after_layers_are_the_reference_s(built: Path) -> None:
    x = samples(built, 20)
    expected_layers, layers = hlsgen.layers(built, x), hlsgen.layers(built, x, "cpp")
    assert [layer.name for layer in layers] == [layer.name for layer in expected_layers] == layer_names(built)
    for layer, expected in zip(layers, expected_layers, strict=True):
        assert layer.differing == 0
        assert (layer.codes == expected.codes).all()
        assert len(np.unique(layer.codes)) > 2


@pytest.mark.sim
def test_untouched_build_is_verified(built: Path) -> None:
    verdict = hlsgen.verify(built, frames=40)
    assert verdict.ok
    assert list(verdict.simulators) == ["ap_types", "ac_types"]
    for simulated in verdict.simulators.values():
        assert (simulated.mismatches, simulated.failures, simulated.cycles) == (0, [], None)
        assert simulated.samples >= 40
    assert "C simulation with g++; not synthesized" in verdict.notes[0]


def first_divergence(core: Path, frames: int = 30) -> dict[str, Any]:
    """The first divergence, after its numbers were compared with the reference."""
    verdict = hlsgen.verify(core, ["ac_types"], frames, allow_changed=True, oracle="none")
    simulated = verdict.simulators["ac_types"]
    assert not verdict.ok
    assert simulated.mismatches > 0
    divergence = verdict.first_divergence
    assert divergence is not None
    build = reopen(core)
    codes = frames_of(build.network, directed(build.graph, affordable_frames(build.graph), 1), frames, 1)
    right = run_layers(build.graph, codes)[layer_names(core).index(divergence["layer"])][divergence["frame"]].ravel()
    assert right[divergence["element"]] == divergence["expected"] != divergence["actual"]
    return divergence


@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize("number", [0, 2])
def test_a_changed_weight_is_located(number: int, core: Path) -> None:
    name = layer_names(core)[number]
    change(core / "hls" / "weights.hpp", rf"({name}_weights[^=]*=\s*\{{*)(-?\d+)", r"\g<1>1 + \2")
    assert first_divergence(core)["layer"] == name
    assert hlsgen.verify(core, ["ac_types"]).changed == ["hls/weights.hpp"]


@pytest.mark.sim
def test_a_changed_threshold_is_located(core: Path) -> None:
    name = layer_names(core)[1]
    plain = re.sub("_+", "_", name)
    change(core / "hls" / "weights.hpp", rf"({plain}_thresholds[^=]*=\s*\{{*)(-?\d+)", r"\g<1>60 + \2")
    assert first_divergence(core)["layer"] == name


@pytest.mark.sim
def test_a_changed_library_line_is_located(core: Path) -> None:
    change(core / "hls" / "hg" / "thresholds.hpp", r"x\[n\] >= thresholds", "x[n] > thresholds")
    divergence = first_divergence(core)
    assert divergence["layer"] == layer_names(core)[1]
    assert divergence["cycle"] is None


@pytest.mark.slow
@pytest.mark.sim
def test_element_of_a_permuted_stream(tmp_path: Path) -> None:
    """The differing element is named by its row-major index, for any order of the stream."""
    core = tmp_path / "core"
    options = hlsgen.Options(target="hls", target_cycles=576, realize={"": "thresholds"})
    build = hlsgen.build(ROOT / "examples" / "digits_cnn" / "digits_cnn.onnx", core, options)
    number = layer_names(core).index("conv2_quant")
    change(core / "hls" / "weights.hpp", r"(conv2_quant_thresholds[^=]*=[^}]*\}+,\s*\{*)(-?\d+)", r"\g<1>300 + \2")
    divergence = first_divergence(core, 12)
    assert divergence["layer"] == "conv2_quant"
    position = int(np.flatnonzero(build.network.orders[number + 1] == divergence["element"])[0])
    assert divergence["element"] != position
    node = next(node for node in build.network.nodes if node.position == number)
    stream = node.result
    assert divergence["beat"] == position // stream.group * stream.group_beats + position % stream.group // stream.lanes


@pytest.mark.sim
def test_layers_counts_differing_codes(core: Path) -> None:
    change(core / "hls" / "hg" / "thresholds.hpp", r"x\[n\] >= thresholds", "x[n] > thresholds")
    with pytest.raises(HlsgenError, match=r"HG051 hls/hg/thresholds.hpp"):
        hlsgen.layers(core, samples(core, 2), "cpp")
    differing_codes = {x.name: x.differing for x in hlsgen.layers(core, samples(core, 200), "cpp", allow_changed=True)}
    assert differing_codes[layer_names(core)[0]] == 0
    assert differing_codes[layer_names(core)[1]] > 0


@pytest.mark.sim
def test_wrong_tlast_is_reported(core: Path) -> None:
    change(core / "hls" / "hg" / "ports.hpp", r"y\.last = beat == BEATS - 1", "y.last = beat == 0")
    assert reopen(core).cpp.outputs[0].stream.beats > 1
    simulated = hlsgen.verify(core, ["ac_types"], 10, allow_changed=True, oracle="none").simulators["ac_types"]
    assert not simulated.ok
    assert simulated.mismatches == 0
    assert re.match(r"TLAST is wrong in \d+ beats, first in beat 0", simulated.failures[0])


@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize(
    "file,pattern,replacement,message",
    [
        ("thresholds.hpp", r"s\.read\(\);", "s.read(); s.read();", "_out: read while it is empty"),
        ("thresholds.hpp", r"m\.write\(y\);", "m.write(y); m.write(y);", r"_out: \d+ values are left"),
        ("thresholds.hpp", r"m\.write\(y\);", "*(volatile int *)0 = 0;", "the core ended by signal 11"),
        ("ports.hpp", r"m\.write\(y\);", "if (beat) m.write(y);", "m_axis: read while it is empty"),
        ("../floor_ceil.cpp", r"#include", "not C++", "could not be compiled: .*error"),
    ],
)
def test_broken_code_is_reported(file: str, pattern: str, replacement: str, message: str, core: Path) -> None:
    change(core / "hls" / "hg" / file, pattern, replacement)
    with pytest.raises(HlsgenError, match=f"HG053 ac_types: .*{message}"):
        hlsgen.run(core, samples(core, 3), "cpp", allow_changed=True)


@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize(
    "loop,message",
    [
        ("for (volatile int n = 0;; n = n) {}", "the simulation did not end within 3 s"),
        ("for (;;) m.write(y);", ".*bad_alloc"),
    ],
)
def test_nothing_runs_for_ever(loop: str, message: str, core: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor takes all memory."""
    monkeypatch.setattr(cpp_library, "MIN_SECONDS", 3.0)
    monkeypatch.setattr(cpp_library, "SLACK", 0)
    monkeypatch.setattr(cpp_library, "_MEMORY", 1300 << 20)
    monkeypatch.setattr(cpp_library, "COMPILE_SECONDS", 300)
    change(core / "hls" / "hg" / "thresholds.hpp", r"m\.write\(y\);", loop)
    with pytest.raises(HlsgenError, match=f"HG053 ac_types: {message}"):
        hlsgen.run(core, samples(core, 3), "cpp", allow_changed=True)


@pytest.mark.sim
def test_changed_files_are_not_executed(core: Path) -> None:
    proof = core.parent / "executed"
    with open(core / "hls" / "floor_ceil.cpp", "a") as top:
        top.write(f'#include <cstdio>\nstatic std::FILE *opened = std::fopen("{proof}", "w");\n')
    verdict = hlsgen.verify(core)
    assert (verdict.ok, verdict.changed, verdict.simulators) == (False, ["hls/floor_ceil.cpp"], {})
    for action in (hlsgen.run, hlsgen.layers):
        with pytest.raises(HlsgenError, match=r"HG051 hls/floor_ceil\.cpp.*--allow-changed"):
            action(core, samples(core, 1), "cpp")
    assert not proof.exists()
    hlsgen.run(core, samples(core, 1), "cpp", allow_changed=True)
    assert proof.exists()


@pytest.mark.sweep
def test_every_changed_file_is_listed(core: Path) -> None:
    build = reopen(core)
    assert len([name for name in build.files if name.startswith("hls/")]) > 10
    for name in build.files:
        if name.startswith("hls/"):
            (core / name).write_bytes(build.files[name] + b" ")
    assert hlsgen.verify(core).changed == [name for name in build.files if name.startswith("hls/")]


@pytest.mark.sweep
def test_files_that_tools_leave_are_no_change(core: Path) -> None:
    for name in ("csim.exe", "csim_ac.exe", "work_top/solution/solution.log", "vitis_hls.log"):
        (core / "hls" / name).parent.mkdir(parents=True, exist_ok=True)
        (core / "hls" / name).write_text("")
    assert hlsgen.verify(core, [], oracle="none").changed == []
    (core / "hls" / "hg" / "more.hpp").write_text("")
    assert hlsgen.verify(core, [], oracle="none").changed == ["hls/hg/more.hpp"]


@pytest.mark.sweep
def test_missing_headers_are_reported(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpp_headers, "find_spec", lambda name: None)
    for name in ("ap_types", "ac_types"):
        with pytest.raises(HlsgenError, match=rf"HG052 {name[:2]}_fixed\.h.*pip install .*\[csim\]'"):
            hlsgen.verify(built, [name], frames=1, oracle="none")
    with pytest.raises(HlsgenError, match="HG052"):
        hlsgen.verify(built, frames=1, oracle="none")


@pytest.mark.parametrize("package", ["alkaid", "hls4ml"])
@pytest.mark.parametrize("dialect", cpp_headers.DIALECTS)
def test_headers_are_found_in_either_package(
    package: str, dialect: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = {
        "alkaid": f"codegen/hls/source/{dialect}_types/include",
        "hls4ml": {"ap": "templates/vivado/ap_types", "ac": "templates/catapult/ac_types/include"}[dialect],
    }
    folder = tmp_path / folders[package]
    folder.mkdir(parents=True)
    spec = ModuleSpec(package, None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(cpp_headers, "find_spec", {package: spec}.get)
    with pytest.raises(HlsgenError, match="HG052"):
        cpp_headers.include_folders(dialect)
    (folder / f"{dialect}_fixed.h").write_text("")
    assert cpp_headers.include_folders(dialect) == [folder]


def test_a_missing_compiler_is_reported(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpp_library.shutil, "which", lambda name: None)
    with pytest.raises(HlsgenError, match=r"HG052 ac_types: g\+\+ is not on PATH"):
        hlsgen.run(built, samples(built, 1), "cpp")


@pytest.mark.sweep
def test_a_target_that_the_build_does_not_have_is_reported(built: Path, tmp_path: Path) -> None:
    for call in (
        lambda: hlsgen.verify(built, ["icarus"], progress=pytest.fail),
        lambda: hlsgen.run(built, samples(built, 1), "verilator"),
        lambda: hlsgen.layers(built, samples(built, 1), "icarus"),
    ):
        with pytest.raises(HlsgenError, match=r"HG040.*the build of 'hls' has no Verilog"):
            call()
    with pytest.raises(HlsgenError, match=r"HG040 --cut.*no Verilog"):
        hlsgen.verify(built, cut=tmp_path / "cut")
    hlsgen.build(DATA / "floor_ceil.onnx", tmp_path / "rtl")
    with pytest.raises(HlsgenError, match=r"HG040.*has no C\+\+"):
        hlsgen.run(tmp_path / "rtl", samples(built, 1), "cpp")
    with pytest.raises(HlsgenError, match=r"HG040.*has no C\+\+"):
        hlsgen.verify(tmp_path / "rtl", ["ap_types"])


@pytest.mark.slow
@pytest.mark.sim
@needs_icarus
def test_verilog_and_cpp_of_one_build_are_verified(tmp_path: Path) -> None:
    """All simulators of one build are compared with the same reference."""
    options = hlsgen.Options(target="verilog,hls", **OPTIONS)  # type: ignore[arg-type]
    hlsgen.build(DATA / "floor_ceil.onnx", tmp_path / "out", options)
    verdict = hlsgen.verify(tmp_path / "out", frames=4)
    assert verdict.ok
    assert list(verdict.simulators) == ["verilator", "icarus", "ap_types", "ac_types"]
    change(tmp_path / "out" / "hls" / "hg" / "thresholds.hpp", r"x\[n\] >= thresholds", "x[n] > thresholds")
    verdict = hlsgen.verify(tmp_path / "out", ["icarus", "ac_types"], 30, allow_changed=True, cut=tmp_path / "cut")
    assert [simulated.ok for simulated in verdict.simulators.values()] == [True, False]
    assert not (tmp_path / "cut").exists()
