"""Rows that share multiplier blocks: as many products as are counted, and the same integers."""

from __future__ import annotations

from pathlib import Path

import certified_images
import onnx
import pytest
from builds import assert_verified
from paths import ROOT

import hlsgen
from hlsgen.verilog.shared_blocks import chained, shared_rows, sharing

RTL = ROOT / "templates" / "rtl"
DIGITS = ROOT / "examples" / "digits" / "digits_mlp.onnx"
# bits of codes and of weights, rows, columns, bits of a block
SHAPES = [
    (8, 8, 4, 5, 25),
    (8, 8, 4, 5, 24),
    (4, 4, 7, 6, 25),
    (4, 4, 5, 3, 18),
    (3, 4, 5, 2, 27),
    (4, 2, 3, 1, 16),
    (9, 7, 2, 4, 25),
]


def products(x_bits: int, w_bits: int, rows: int, columns: int, block: int) -> int:
    """Products in hg_mac, as Yosys elaborates it."""
    libyosys = pytest.importorskip("pyosys.libyosys")
    design = libyosys.Design()
    files = (
        "mac",
        "mac_chains",
        "mac_counts",
        "mac_products",
        "totals",
        "agreements",
        "dot_chain",
        "chain",
        "dot_packed",
        "dot_plain",
        "dot_pairs",
        "pair_row",
        "adder_tree",
        "digits",
        "delay",
        "popcount",
    )
    parameters = {"PE": rows, "SIMD": columns, "X_W": x_bits, "W_W": w_bits, "DSP": block, "ACC_W": 24}
    chosen = " ".join(f"-chparam {name} {value}" for name, value in parameters.items())
    for command in (
        "read_verilog -defer " + " ".join(str(RTL / f"hg_{file}.v") for file in files),
        f"hierarchy -top hg_mac {chosen}",
        "proc",
        "flatten",
        "opt",
    ):
        libyosys.run_pass(command, design)
    return sum(cell.type.str() == "$mul" for cell in design.top_module().cells_.values())


@pytest.mark.parametrize("shape", SHAPES)
def test_products_are_as_many_as_counted(shape: tuple[int, int, int, int, int]) -> None:
    x_bits, w_bits, rows, columns, block = shape
    shared = chained(columns, x_bits, False, w_bits, rows, block) or shared_rows(*shape)
    assert products(*shape) == (rows * columns if shared is None else shared.dsp)


def test_sharing() -> None:
    """25 bits hold two products of 8 x 8 exactly, and with one bit of codes more they do not."""
    assert [sharing(8, 8, rows, 25) for rows in (1, 2, 3, 4)] == [(1, 0), (2, 0), (2, 0), (2, 0)]
    assert [sharing(9, 8, 4, 25), sharing(8, 8, 4, 27), sharing(4, 4, 6, 25)] == [(1, 0), (2, 2), (3, 2)]


@pytest.mark.slow
@pytest.mark.sim
def test_a_network(tmp_path: Path) -> None:
    found = hlsgen.build(DIGITS, tmp_path / "out", hlsgen.Options(target_cycles=64, prefer="dsp"))
    assert found.files["rtl/digits_mlp.v"].count(b".DSP(25)") == 3
    assert_verified(tmp_path / "out", "verilator")
    assert hlsgen.certify(tmp_path / "out").ok


@pytest.mark.cases(1)
@pytest.mark.sim
@pytest.mark.parametrize(
    "name, cycles, module",
    [
        ("padded", 1000, "hg_conv"),
        ("pools", 1000, "hg_dwconv"),
        ("grouped", 1, "hg_dwmvu"),
        ("grouped", 1000, "hg_conv"),
        ("pools", 1, "hg_dwmvu"),
    ],
)
def test_windows(name: str, cycles: int, module: str, tmp_path: Path) -> None:
    """Windows whose products are in chains of blocks: the same integers, in the predicted cycles."""
    onnx.save(certified_images.IMAGES[name][0].model(), tmp_path / "net.onnx")  # type: ignore[operator]
    options = hlsgen.Options(target_cycles=cycles, prefer="dsp", top="top")
    text = hlsgen.build(tmp_path / "net.onnx", tmp_path / "out", options).files["rtl/top.v"].decode()
    (units,) = (part.split(";")[0] for part in text.split(f"top_{module} #(")[1:2])
    assert ".DSP(25)" in units
    assert_verified(tmp_path / "out", "verilator", 6)
    assert hlsgen.certify(tmp_path / "out").ok
