"""Random networks of attention equal their executors: a few in the normal suite, many more with the marker slow."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from attention_nets import network
from fuzz_attention import judged, main

from hlsgen.interpreter import graph as reference


@pytest.mark.parametrize("seed", range(12))
def test_random_networks(seed: int) -> None:
    """The fixed seeds are all accepted, and none needs an explanation."""
    assert judged(network(seed, 4), seed).kind == "equal"


@pytest.mark.sweep
@pytest.mark.parametrize("seed", [3])
def test_built_and_certified(seed: int) -> None:
    """Quantized by onnxruntime's optimizer, with a LayerNormalization of which it has fused a part."""
    model = network(seed, 3)
    assert any(node.op_type == "SimplifiedLayerNormalization" for node in model.graph.node)
    assert judged(model, seed, build=True).kind == "equal"


@pytest.mark.sim
@pytest.mark.slow
@pytest.mark.parametrize("first", range(100, 500, 20))
def test_many_random_networks(first: int) -> None:
    for seed in range(first, first + 20):
        outcome = judged(
            network(seed, 64 if seed % 10 == 0 else 12), seed, build=seed % 20 == 0, simulate=seed % 100 == 0
        )
        assert not outcome.is_finding, f"seed {seed}: {outcome.kind}: {outcome.text}"


def test_a_difference_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Integers that differ from the executor's without a rounding that explains it."""
    right = reference.evaluate
    monkeypatch.setattr("fuzz_attention.reference.evaluate", lambda graph, x: right(graph, x) * 2)
    assert judged(network(2, 4), 2).kind == "differs"


@pytest.mark.sweep
def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sys.argv",
        ["fuzz_attention.py", "--seconds", "1", "--largest", "3", "--build", "0", "--keep", str(tmp_path / "kept")],
    )
    assert main() == 0
    assert "seeds 0 to" in capsys.readouterr().out
    assert not list(tmp_path.glob("kept/*")) or onnx.load(next(tmp_path.glob("kept/*")))
