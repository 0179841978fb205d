"""The name of a core is that of its model's file, as far as the languages of its targets allow."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from models import Net, save
from paths import DATA

import hlsgen
from hlsgen.driver.build_directory import reopen
from hlsgen.driver.options import check_options, default_top

LONG = "n" * 100


@pytest.mark.parametrize(
    ("stem", "target", "top"),
    [
        ("floor_ceil", "verilog", "floor_ceil"),
        ("7 seg", "verilog", "core_7_seg"),
        ("a-b c", "verilog,hls", "a_b_c"),
        ("a.b", "verilog", "a_b"),
        ("main", "hls", "main_core"),
        ("main", "verilog,hls", "main_core"),
        ("main", "verilog", "main"),
        ("weights", "hls", "weights_core"),
        ("module", "verilog", "module_core"),
        ("hg_fifo", "verilog", "core_hg_fifo"),
        ("hg", "verilog,hls", "core_hg"),
        ("hg_", "verilog", "core_hg"),
        ("ü", "verilog", "core"),
        ("größe", "verilog,hls", "gr_e"),
        ("模型", "hls", "core"),
        ("", "verilog", "core"),
        ("_", "hls", "core"),
        ("٣", "verilog", "core"),
        (LONG, "verilog,hls", "n" * 58),
        ("7" * 100, "verilog", "core_" + "7" * 58),
    ],
)
def test_names(stem: str, target: str, top: str) -> None:
    assert default_top(stem, target) == top
    check_options(hlsgen.Options(target=target, top=top))


@pytest.mark.sweep
@pytest.mark.parametrize("stem", ["7 seg", "main", "module", "hg_fifo", "ü", LONG, "a-b c", "clk", "node_linear"])
def test_builds(stem: str, tmp_path: Path) -> None:
    """Both targets, certified; the same again from the build alone, and from what its manifest says."""
    path = tmp_path / f"{stem}.onnx"
    shutil.copyfile(DATA / "floor_ceil.onnx", path)
    build = hlsgen.build(path, tmp_path / "out", hlsgen.Options(target="verilog,hls", target_cycles=20))
    top = default_top(stem, "verilog,hls")
    assert build.tops == {"module": top, "function": top}
    files = {name for name in build.files if name.startswith("rtl/")}
    assert all(name.startswith((f"rtl/{top}.v", f"rtl/{top}_")) for name in files), files
    assert {f"rtl/{top}.v", f"rtl/{top}_hg_mvu.v", f"rtl/{top}_node_linear.mem", f"hls/{top}.cpp"} <= set(build.files)
    assert json.loads(build.files["manifest.json"])["options"]["top"] == top
    assert reopen(tmp_path / "out").files == build.files
    found = hlsgen.certify(tmp_path / "out")
    assert found.ok, found.problems


@pytest.mark.sweep
def test_layers_with_names_of_the_library(tmp_path: Path) -> None:
    """Layers named like modules keep their names; their instances and modules of adders get a prefix."""
    net = Net((1, 6)).quant(0.25, name="hg_slice").linear(4, 6, name="hg_mac").quant(0.5, name="hg_threshold")
    build = hlsgen.build(
        save(net.model(), tmp_path / "hg_stages.onnx"), tmp_path / "out", hlsgen.Options(target_cycles=1)
    )
    assert "rtl/core_hg_stages_n_hg_mac_adders.v" in build.files
    assert {layer.name for layer in build.graph.layers} >= {"hg_mac", "hg_threshold"}
    assert b"// layer hg_mac: " in build.files["rtl/core_hg_stages.v"]
    found = hlsgen.certify(tmp_path / "out")
    assert found.ok, found.problems
    assert hlsgen.verify(tmp_path / "out", []).changed == []
