"""Random networks at random foldings: a cycle or many a window, divisors or not, all taps at once or one by one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import image_nets
import numpy as np
import onnx
import pytest
from paths import needs_icarus

import hlsgen
from hlsgen.cycle_model.simulate import measure
from hlsgen.dataflow.units import (
    ConcatChannels,
    ConvUnit,
    GroupedMatVec,
    PoolUnit,
    ReduceTree,
    SelectLanes,
    SlidingWindow,
    TiledPool,
)
from hlsgen.dataflow.workload import Workload, works_of
from hlsgen.verilog.unit_table import latency

KINDS = ("plain", "grouped", "bipolar", "signal", "residual", "blocks", "pooled")


def random_folding(works: dict[str, Workload], rng: np.random.Generator) -> dict[str, dict[str, int]]:
    """A random legal folding; some layers process all taps at once, some several windows."""
    folding = {}
    for name, work in works.items():
        pe, simd = int(rng.integers(1, work.rows + 1)), int(rng.integers(1, work.columns + 1))
        if work.unrolls and rng.random() < 0.6:
            if work.groups == 1:
                simd *= work.taps
            else:
                pe, simd = int(rng.integers(1, work.groups + 1)) * work.rows, work.taps * work.columns
        few = [n for n in work.window_counts if n * work.outputs * work.taps * work.columns <= 2000]
        if few and rng.random() < 0.4:
            pe, simd = int(rng.choice(few)) * work.outputs, work.taps * work.columns
        folding[name] = {"pe": pe, "simd": simd}
        assert work.legal(pe, simd)
    return folding


def folded(kind: str, seed: int, tmp_path: Path) -> hlsgen.Build:
    path = tmp_path / "net.onnx"
    onnx.save(image_nets.network(kind, seed), path)
    works = works_of(hlsgen.check(path).graph)
    folding = random_folding(works, np.random.default_rng(seed))
    build = hlsgen.build(path, tmp_path / "out", hlsgen.Options(folding=folding))
    assert build.network.folding["layers"] == folding
    assert measure(build.network.nodes, latency) == (build.timing.latency, build.timing.interval)
    return build


CASES = [("plain", 1), ("grouped", 2), ("bipolar", 0), ("signal", 0), ("residual", 2), ("blocks", 1)]
MANY = [(kind, seed) for kind in KINDS for seed in range(20, 26)]


@pytest.mark.cases(2)
@pytest.mark.sim
@needs_icarus
@pytest.mark.parametrize("kind, seed", [*CASES, *(pytest.param(*case, marks=pytest.mark.slow) for case in MANY)])
def test_any_folding_is_exact_and_certified(kind: str, seed: int, tmp_path: Path) -> None:
    """Values, latency and interval in simulation, with stalls and resets; and the proof from the files."""
    folded(kind, seed, tmp_path)
    verdict = hlsgen.verify(tmp_path / "out", ["icarus"])
    assert verdict.ok, verdict
    certified = hlsgen.certify(tmp_path / "out")
    assert certified.ok, certified.problems


@pytest.mark.sweep
def test_cases_have_all_units(tmp_path: Path) -> None:
    """The cases above cover both implementations of every kind of layer."""
    kinds = set()
    for kind, seed in CASES:
        folder = tmp_path / f"{kind}{seed}"
        folder.mkdir()
        kinds |= {type(node.unit) for node in folded(kind, seed, folder).network.nodes}
    assert kinds >= {SlidingWindow, GroupedMatVec, ConvUnit}


def pools(tmp_path: Path, kind: str, cycles: int) -> hlsgen.Build:
    """A convolution and an overlapping pool, for `cycles` cycles a frame."""
    from image_models import Builder

    b = Builder(5, True, 4)
    x = b.activation(b.input(1, 2, 6, 6))
    x = b.activation(b.conv(x, 4, kernel_shape=[3, 3], pads=[1, 1, 1, 1]))
    x = b.activation(b.behind(x, kind, kernel_shape=[3, 3], strides=[1, 1], pads=[1, 1, 1, 1]))
    onnx.save(b.model(x), tmp_path / "net.onnx")
    return hlsgen.build(tmp_path / "net.onnx", tmp_path / "out", hlsgen.Options(target_cycles=cycles))


@pytest.mark.sim
@needs_icarus
@pytest.mark.parametrize("kind", ["MaxPool"])
def test_a_window_a_cycle(kind: str, tmp_path: Path) -> None:
    """Convolution and pool process a pixel a cycle, without overhead."""
    build = pools(tmp_path, kind, 36)
    units = [type(node.unit) for node in build.network.nodes]
    assert SlidingWindow in units
    assert ReduceTree in units
    assert PoolUnit not in units
    assert TiledPool not in units
    assert build.timing.interval == 36
    verdict = hlsgen.verify(tmp_path / "out", ["icarus"])
    assert verdict.ok, verdict
    assert hlsgen.certify(tmp_path / "out").ok


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.sim
@needs_icarus
@pytest.mark.parametrize("cycles", [18, 6])
def test_several_windows_a_cycle(cycles: int, tmp_path: Path) -> None:
    """Less than a cycle a window, without overhead."""
    build = pools(tmp_path, "MaxPool", cycles)
    units = [node.unit for node in build.network.nodes]
    counts = {(unit.pixels, unit.windows) for unit in units if isinstance(unit, SlidingWindow)}
    assert counts == {(36 // cycles, 36 // cycles)}
    assert build.timing.interval == cycles
    verdict = hlsgen.verify(tmp_path / "out", ["icarus"])
    assert verdict.ok, verdict
    assert hlsgen.certify(tmp_path / "out").ok


@pytest.mark.slow
@pytest.mark.sim
@needs_icarus
def test_channels_of_several_pixels(tmp_path: Path) -> None:
    """The port, a pool, slices, a concatenation and an upsampling process several pixels a cycle."""
    from image_models import Builder

    b = Builder(5, True, 4)
    x = b.quant(b.input(1, 6, 8, 8))
    x = b.quant(b.behind(x, "MaxPool", kernel_shape=[2, 2], strides=[2, 2]))
    x = replace(x, shape=(1, 6, 4, 4))
    halves = []
    for start in (0, 3):
        cut = b.node("Slice", x.name, *(b.const([v], np.int64) for v in (start, start + 3, 1)))
        halves.append(b.quant(b.conv(replace(x, name=cut, shape=(1, 3, 4, 4)), 2, kernel_shape=[1, 1])))
    x = b.quant(b.concat(*halves))
    modes = {"mode": "nearest", "nearest_mode": "floor", "coordinate_transformation_mode": "asymmetric"}
    size = b.node("Resize", x.name, "", b.const([1.0, 1.0, 2.0, 2.0]), **modes)
    x = b.quant(b.conv(replace(x, name=size, shape=(1, 4, 8, 8)), 1, kernel_shape=[1, 1]))
    onnx.save(b.model(x), tmp_path / "net.onnx")
    assert hlsgen.check(tmp_path / "net.onnx").timing.interval >= 64  # a pixel a cycle is enough by default
    build = hlsgen.build(tmp_path / "net.onnx", tmp_path / "out", hlsgen.Options(target_cycles=32))
    assert build.timing.interval == 32
    fast = hlsgen.build(tmp_path / "net.onnx", tmp_path / "out", hlsgen.Options(target_cycles=8))
    assert fast.timing.interval == 8
    assert {ConcatChannels, SelectLanes} <= {type(node.unit) for node in fast.network.nodes}
    verdict = hlsgen.verify(tmp_path / "out", ["icarus"])
    assert verdict.ok, verdict
    assert hlsgen.certify(tmp_path / "out").ok


def test_no_layer_is_faster_than_the_slowest(tmp_path: Path) -> None:
    """A border takes a pixel a cycle: the next convolution is not folded to be faster."""
    from image_models import Builder

    b = Builder(5, True, 4)
    x = b.quant(b.input(1, 2, 4, 6))
    x = replace(x, name=b.node("Pad", x.name, b.const([0, 0, 1, 1, 0, 0, 1, 1], np.int64)), shape=(1, 2, 6, 8))
    x = b.quant(b.conv(b.quant(x), 4, kernel_shape=[3, 3]))
    onnx.save(b.model(x), tmp_path / "net.onnx")
    build = hlsgen.check(tmp_path / "net.onnx", hlsgen.Options(target_cycles=1))
    assert build.timing.interval == 48
    (row,) = build.network.folding["layers"].values()
    (work,) = works_of(build.graph).values()
    assert work.cycles(row["pe"], row["simd"]) > 24
    assert any(w.code == "HG090" and "the interval is 48" in w.message for w in build.warnings)


def test_simd_of_all_taps_only(tmp_path: Path) -> None:
    """SIMD above the columns of a tap is whole kernels, if all taps can be processed at once."""
    path = tmp_path / "net.onnx"
    onnx.save(image_nets.network("plain", 1), path)
    name, work = next((n, w) for n, w in works_of(hlsgen.check(path).graph).items() if w.unrolls)
    assert not replace(work, groups=2).legal(1, work.columns + 1)
    with pytest.raises(hlsgen.HlsgenError, match=f"HG041 {name}: pe = 1, simd = {work.taps * work.columns + 1}"):
        hlsgen.check(path, hlsgen.Options(folding={name: {"pe": 1, "simd": work.taps * work.columns + 1}}))
