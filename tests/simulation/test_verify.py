"""A verification fails if any file of a build is changed, and locates differences of the hardware."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from paths import DATA, ROOT, needs_icarus

import hlsgen
from hlsgen.driver.build_directory import changed_files, reopen
from hlsgen.interpreter.graph import run_layers
from hlsgen.testbench.stimuli import stimuli

pytestmark = needs_icarus


@pytest.fixture
def core(tmp_path: Path) -> Path:
    hlsgen.build(DATA / "floor_ceil.onnx", tmp_path / "core", hlsgen.Options(target_cycles=20))
    return tmp_path / "core"


def flip(file: Path, line: int, bit: int = 0) -> None:
    """Flips one bit of one word of a memory file."""
    words = file.read_text().splitlines()
    words[line] = f"{int(words[line], 16) ^ (1 << bit):0{len(words[line])}x}"
    file.write_text("\n".join(words) + "\n")


@pytest.mark.sim
def test_untouched_build_is_verified(core: Path) -> None:
    assert hlsgen.verify(core, ["icarus"], frames=10).ok


@pytest.mark.slow
@pytest.mark.sim
def test_a_changed_weight_is_located(core: Path) -> None:
    memory = core / "rtl" / "floor_ceil_node_linear.mem"
    flip(memory, 0, 1)
    verdict = hlsgen.verify(core, ["icarus"], frames=10, allow_changed=True)
    assert not verdict.ok
    assert verdict.changed == ["rtl/floor_ceil_node_linear.mem"]
    simulated = verdict.simulators["icarus"]
    assert simulated.mismatches > 0 or simulated.failures
    divergence = verdict.first_divergence
    assert divergence is not None
    first = json.loads((core / "manifest.json").read_text())["layers"][0]
    assert divergence["layer"] == first["name"]
    assert divergence["expected"] != divergence["actual"]


@pytest.mark.slow
@pytest.mark.sim
def test_a_changed_threshold_is_located(core: Path) -> None:
    memory = next(iter(sorted((core / "rtl").glob("floor_ceil_node_symbolic_2_*_00.mem"))))
    flip(memory, 0, 4 * len(memory.read_text().splitlines()[0]) - 5)
    verdict = hlsgen.verify(core, ["icarus"], frames=30, allow_changed=True)
    assert verdict.changed == [f"rtl/{memory.name}"]
    assert verdict.first_divergence is not None
    assert verdict.first_divergence["layer"] == json.loads((core / "manifest.json").read_text())["layers"][1]["name"]
    assert not verdict.ok


@pytest.mark.sweep
def test_every_changed_file_is_listed(core: Path) -> None:
    build = reopen(core)
    assert changed_files(build.files, core) == []
    for name in build.files:
        if name == "model.onnx":
            continue
        file = core / name
        original = file.read_bytes()
        file.write_bytes(original + b" ")
        assert changed_files(build.files, core) == [name]
        file.unlink()
        assert changed_files(build.files, core) == [name]
        file.write_bytes(original)
    (core / "rtl" / "extra.v").write_text("module extra; endmodule\n")
    assert changed_files(build.files, core) == ["rtl/extra.v"]


@pytest.mark.sweep
def test_a_changed_model_is_noticed(core: Path) -> None:
    data = bytearray((core / "model.onnx").read_bytes())
    (core / "model.onnx").write_bytes(bytes(data) + b"\x1a\x00")
    with_model = hlsgen.verify(core, [], frames=1)
    assert not with_model.ok
    assert "manifest.json" in with_model.changed


@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize(
    "file,pattern,replacement",
    [
        ("rtl/floor_ceil_hg_threshold.v", r">= \$signed\(word", r"> $signed(word"),
        ("rtl/floor_ceil_hg_replay.v", r"assign s_ready = ready_reg;", r"assign s_ready = 1'b1;"),
        ("rtl/floor_ceil_hg_totals.v", r"first_reg <= last_reg", r"first_reg <= !last_reg"),
        ("rtl/floor_ceil_hg_slice.v", r"if \(!full_reg\) skid_reg <= s_data;", r"skid_reg <= s_data;"),
        ("rtl/floor_ceil_hg_axis_out.v", r"beat_reg == LAST;", r"beat_reg == 0;"),
        # Resets that keep a part of the previous frame.
        ("rtl/floor_ceil_hg_axis_out.v", r"if \(rst\) beat_reg", r"if (rst && ^beat_reg === 1'bx) beat_reg"),
        (
            "rtl/floor_ceil_hg_replay.v",
            r"some_reg, (.*)able_reg, (.*) <= 7'd0;",
            r"\1\2 <= 5'd0; if (^able_reg === 1'bx) {some_reg, able_reg} <= 0;",
        ),
        ("rtl/floor_ceil_hg_width_widen.v", r"begun_reg <= 1'b0;", r"if (^begun_reg === 1'bx) begun_reg <= 0;"),
        ("rtl/floor_ceil_hg_index.v", r"(ahead_reg <= SECOND)", r"if (^ahead_reg === 1'bx) \1"),
    ],
)
def test_broken_rtl_fails_in_simulation(core: Path, file: str, pattern: str, replacement: str) -> None:
    """The simulation itself fails, not only the comparison of files."""
    path = core / file
    text, count = re.subn(pattern, replacement, path.read_text())
    assert count
    path.write_text(text)
    verdict = hlsgen.verify(core, ["icarus"], frames=10, allow_changed=True)
    assert not verdict.simulators["icarus"].ok


@pytest.mark.sim
def test_rtl_that_does_not_compile_is_an_error(core: Path) -> None:
    (core / "rtl" / "floor_ceil.v").write_text("module floor_ceil(;\n")
    with pytest.raises(hlsgen.HlsgenError, match="HG053"):
        hlsgen.verify(core, ["icarus"], frames=2, allow_changed=True)


@pytest.mark.sim
def test_wrong_prediction_is_noticed(core: Path) -> None:
    """A vector buffer that reads in every other cycle still gives right values; the cycles are not as predicted."""
    path = core / "rtl" / "floor_ceil_hg_replay.v"
    text = path.read_text()
    slow = "reg reads_reg;\n    always @(posedge clk) reads_reg <= !rst && !reads_reg;\n    wire end_pass "
    for old_text, new_text in (
        ("wire end_pass ", slow),
        ("assign able    = able_reg;", "assign able    = reads_reg && able_reg;"),
        ("ends = able_reg", "ends = reads_reg && able_reg"),
        ("valid_reg <= able_reg;", "valid_reg <= reads_reg && able_reg;"),
        ("wire free     = ", "wire free     = reads_reg && "),
        ("first    = advance", "first    = reads_reg && advance"),
        ("wire empties  = ", "wire empties  = reads_reg && "),
    ):
        assert text.count(old_text) == 1
        text = text.replace(old_text, new_text)
    path.write_text(text)
    simulated = hlsgen.verify(core, ["icarus"], frames=10, allow_changed=True).simulators["icarus"]
    assert simulated.mismatches == 0
    assert any("predicted" in message for message in simulated.failures)


@pytest.mark.slow
@pytest.mark.sim
def test_element_of_a_permuted_stream(tmp_path: Path) -> None:
    """The differing element is named by its row-major index, for any order of the stream."""
    core = tmp_path / "core"
    build = hlsgen.build(ROOT / "examples" / "digits_cnn" / "digits_cnn.onnx", core, hlsgen.Options(target_cycles=1152))
    number, layer = next((n, x) for n, x in enumerate(build.graph.layers) if x.name == "conv2_quant")
    assert (build.network.orders[number + 1] != np.arange(64)).any()
    name = next(node.name for node in build.network.nodes if node.position == number)
    for line in range(3, 16):
        flip(sorted((core / "rtl").glob(f"digits_cnn_{name}_*.mem"))[0], line, 12)
    divergence = hlsgen.verify(core, ["verilator"], frames=2, allow_changed=True).first_divergence
    assert divergence is not None
    assert divergence["layer"] == layer.name
    outputs = run_layers(build.graph, stimuli(build.network, 2, 1))[number]
    assert outputs[divergence["frame"]].ravel()[divergence["element"]] == divergence["expected"]
    assert divergence["element"] == build.network.orders[number + 1][divergence["beat"]] != divergence["beat"]
