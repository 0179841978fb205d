"""Names of nodes after layers: identifiers, unique, and no start of another layer's derived names."""

from __future__ import annotations

import itertools
import random
import re
from pathlib import Path

import numpy as np
import pytest
from models import Net, save

import hlsgen
from hlsgen.dataflow.ends import divided
from hlsgen.dataflow.keywords import is_keyword
from hlsgen.dataflow.layer_names import MAX_LENGTH, layer_names


def test_plain_names_stay_as_they_are() -> None:
    assert layer_names(["conv1", "conv1_quant", "node_linear", "node_linear_1"]) == [
        "conv1",
        "conv1_quant",
        "node_linear",
        "node_linear_1",
    ]


def test_other_characters_become_single_underscores() -> None:
    assert layer_names(["/block.0/conv__1/Conv", "Größe", "_x_"]) == ["block_0_conv_1_Conv", "Gr_e", "x"]


def test_reserved_names_get_a_prefix() -> None:
    taken = ["reg", "signal", "clk", "load", "port_in", "s_axis", "hg_mvu", "1st", "rst_core", ""]
    assert layer_names(taken) == [f"n_{name or 'layer'}" for name in taken]


def test_equal_names_are_numbered_without_regard_to_case() -> None:
    assert layer_names(["fc", "fc", "FC", "fc_2"]) == ["fc", "fc_2", "FC_3", "fc_2_2"]


def test_names_derived_from_another_layer_get_a_prefix() -> None:
    assert layer_names(["fc", "fc_width", "fc_wait0_slice", "fc_0001"]) == [
        "fc",
        "n_fc_width",
        "n_fc_wait0_slice",
        "n_fc_0001",
    ]
    assert layer_names(["fc_width", "fc"]) == ["fc_width", "n_fc"]


def test_long_names_keep_both_ends() -> None:
    names = layer_names([f"{'a' * 200}{end}" for end in "xyx"])
    assert [name[-1] for name in names[:2]] == ["x", "y"]
    assert len(set(names)) == 3
    assert all(len(name) <= MAX_LENGTH + 2 for name in names)


def test_random_names_are_legal_and_never_meet() -> None:
    """No name with a suffix is another name with a suffix."""
    words = ("fc", "Fc", "width", "fork", "0", "1", "0001", "data", "wait0", "n", "reg", "a", "slice", "hg", "table3")
    suffixes = ("", "_width", "_data", "_fork_0_data", "_wait0_slice", "_0001", "_table3", "_a1", "_slice_valid")
    rng = random.Random(3)
    for _ in range(300):
        names = layer_names("_".join(rng.choices(words, k=rng.randint(1, 4))) for _ in range(12))
        assert all(re.fullmatch(r"[A-Za-z]\w*", name) and not is_keyword(name) for name in names), names
        derived = [name.lower() + suffix for name, suffix in itertools.product(names, suffixes)]
        assert len(set(derived)) == len(derived), names


def test_nodes_and_files_are_named_after_the_layers(tmp_path: Path) -> None:
    """Names that meet those of nodes, nets, files and keywords: the build is certified in both languages."""
    net = Net((1, 6)).quant(0.25, name="reg")
    for name, columns, rows in (("fc", 6, 4), ("fc_width", 4, 6), ("fc_1", 6, 4)):
        weight = np.random.default_rng(1).integers(-7, 8, (columns, rows)).astype(np.float32)
        net = net.linear(rows, columns, weight, name=name).quant(0.5, name=f"{name}_data")
    path = save(net.model(), tmp_path / "m.onnx")
    build = hlsgen.build(path, tmp_path / "out", hlsgen.Options(target="verilog,hls", target_cycles=4, top="core"))
    names = {node.name for node in build.network.nodes}
    assert {"fc", "n_fc_width", "fc_1", "n_fc_data", "n_n_fc_width_data", "n_fc_1_data"} <= names
    assert any(re.match(r"rtl/core_n_fc_width(\.|_0|_adders)", name) for name in build.files)
    certified = hlsgen.certify(tmp_path / "out")
    assert certified.ok, certified.problems


@pytest.mark.parametrize("name", ["input", "input_q", "output", "port_out"])
@pytest.mark.parametrize("ports", ["packed", "separate"])
def test_no_layer_before_an_output_port_is_taken_for_an_input(name: str, ports: str, tmp_path: Path) -> None:
    """Layers may be named as the streams outside of the core."""
    save(Net((1, 4)).quant(0.25, name="first").linear(3).quant(0.5, name=name).model(), tmp_path / "m.onnx")
    build = hlsgen.build(tmp_path / "m.onnx", tmp_path / "core", hlsgen.Options(ports=ports, target="verilog,hls"))
    assert [node.name for node in divided(build.network.nodes)[0]] == ["s_axis"]
    assert [node.name for node in divided(build.network.nodes)[2]] == ["m_axis"]
