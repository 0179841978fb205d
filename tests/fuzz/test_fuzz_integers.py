"""Random graphs of integers equal onnx's reference evaluator: a few by default, many more with the marker slow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from fuzz_integers import compared, judged, main, network


@pytest.mark.parametrize("seed", range(30))
def test_random_graphs(seed: int) -> None:
    outcome = judged(network(seed), seed)
    assert not outcome.is_finding, f"{outcome.kind}: {outcome.text}"


@pytest.mark.sweep
def test_most_are_built() -> None:
    assert sum(judged(network(seed), seed).kind == "equal" for seed in range(30)) > 10


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 12_000, 100))
def test_many_random_graphs(first: int) -> None:
    for seed in range(first, first + 100):
        outcome = judged(network(seed), seed)
        assert not outcome.is_finding, f"seed {seed}: {outcome.kind}: {outcome.text}"


def test_a_difference_is_seen() -> None:
    model = network(0)
    right = [np.zeros((1, 2), np.int8) for _ in model.graph.output]
    assert compared(model, right, right).kind == "equal"
    assert compared(model, [right[0] + np.int8(1), *right[1:]], right).kind == "differs"
    assert compared(model, [right[0].astype(np.int16), *right[1:]], right).kind == "differs"


@pytest.mark.sim
def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["fuzz_integers.py", "--seconds", "1", "--keep", str(tmp_path / "kept")])
    assert main() == 0
    assert "seeds 0 to" in capsys.readouterr().out
