"""A network for a slower rate takes no more LUT than one for a faster rate."""

from __future__ import annotations

from pathlib import Path

import pytest
from image_nets import network
from models import save
from paths import ROOT

import hlsgen
from hlsgen.driver.compile import network_cost

DIGITS = ROOT / "examples" / "digits" / "digits_mlp.onnx"


def assert_no_larger(path: Path, slow: int, fast: int) -> None:
    """The network for `slow` cycles a frame is at most 1 % larger than that for `fast` cycles."""
    slower, faster = (hlsgen.check(path, hlsgen.Options(target_cycles=cycles)) for cycles in (slow, fast))
    assert faster.timing.interval <= slower.timing.interval
    slow_cost, fast_cost = network_cost(slower), network_cost(faster)
    assert slow_cost.bram == fast_cost.bram
    assert slow_cost.lut <= 1.01 * fast_cost.lut


@pytest.mark.parametrize("kind, seed, slow, fast", [("plain", 3, 20, 18), ("keras", 4, 30, 24)])
def test_width_converters_count(kind: str, seed: int, slow: int, fast: int, tmp_path: Path) -> None:
    """Several windows at once have beats that no beat of the slower rate divides."""
    assert_no_larger(save(network(kind, seed, True, 10, 4), tmp_path / "m.onnx"), slow, fast)


def test_converters_after_other_layers_count(tmp_path: Path) -> None:
    """The search does not see beats that come from a sum; it does after a network was laid out."""
    assert_no_larger(save(network("residual", 3, True, 10, 4), tmp_path / "m.onnx"), 32, 24)


@pytest.mark.parametrize("slow, fast", [(55, 50), (60, 50)])
def test_quantizers_count(slow: int, fast: int) -> None:
    """Quantizers with parameters for each channel cost much for each row at once."""
    assert_no_larger(DIGITS, slow, fast)


def test_one_channel_a_lane_counts(tmp_path: Path) -> None:
    """With all rows at once, quantizers cost less for each row than with some."""
    assert_no_larger(save(network("blocks", 3, True, 10, 4), tmp_path / "m.onnx"), 16, 8)


@pytest.mark.parametrize("kind, seed, fast, reachable", [("pooled", 5, 4, 18), ("blocks", 4, 20, 180)])
def test_no_layer_is_faster_than_the_slowest_unit(
    kind: str, seed: int, fast: int, reachable: int, tmp_path: Path
) -> None:
    path = save(network(kind, seed, True, 10, 4), tmp_path / "m.onnx")
    asked, slower = (hlsgen.check(path, hlsgen.Options(target_cycles=cycles)) for cycles in (fast, reachable))
    assert asked.timing.interval == slower.timing.interval == reachable
    assert network_cost(asked) == network_cost(slower)
