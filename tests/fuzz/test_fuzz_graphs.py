"""Random graphs equal the oracle: a fixed sample in the normal suite, many more with the marker slow."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from fuzz_confirm import differing
from fuzz_graphs import Case, case, judged, main
from fuzz_shrink import shrunk
from models import Net
from onnx import TensorProto, helper
from paths import ROOT

#: Seeds of graphs in one test.
CHUNK = 25


@pytest.mark.parametrize(
    "name",
    ["fuzz/fuzz_graphs.py", "fuzz/fuzz_qdq_files.py", "fuzz/fuzz_attention.py", "fuzz/soak.py", "mutation/mutate.py"],
)
@pytest.mark.sweep
def test_programs_that_make_starts(name: str) -> None:
    """They find the helpers of the tests without pytest."""
    completed = subprocess.run([sys.executable, str(ROOT / "tests" / name), "--help"], capture_output=True, text=True)
    assert (completed.returncode, completed.stderr) == (0, "")
    assert "--" in completed.stdout


def sample(first: int, build: int) -> Counter[str]:
    """Outcomes of CHUNK graphs. Every `build`-th one is also built and certified."""
    outcome_counts: Counter[str] = Counter()
    for seed in range(first, first + CHUNK):
        outcome = judged(case(seed), whole=seed % build == 0)
        assert not outcome.is_finding, f"seed {seed}: {outcome.kind}: {outcome.text}"
        assert outcome.kind != "invalid", f"seed {seed}: {outcome.text}"
        outcome_counts[outcome.kind] += 1
    return outcome_counts


@pytest.mark.sweep
@pytest.mark.parametrize("first", range(0, 150, CHUNK))
def test_random_graphs(first: int) -> None:
    assert sample(first, build=25)["equal"] >= CHUNK * 0.4


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 6000, CHUNK))
def test_many_random_graphs(first: int) -> None:
    sample(first, build=10)


@pytest.mark.sweep
def test_onnxruntime_confirms_the_oracle() -> None:
    """Every operator of a sample that both compute by the same rules."""
    for seed in range(200, 230):
        fuzz_case = case(seed)
        assert fuzz_case.fused or differing(fuzz_case.model, fuzz_case.x[:16]) == [], seed


def test_the_same_for_the_same_seed() -> None:
    first, repeated = case(5), case(5)
    assert first.model == repeated.model
    assert (first.x == repeated.x).all()


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sys.argv", ["fuzz_graphs.py", "--seconds", "1", "--seed", "3", "--keep", str(tmp_path / "kept")]
    )
    assert main() == 0
    assert "seeds 3 to" in capsys.readouterr().out
    assert not (tmp_path / "kept").exists()


def wrong() -> Case:
    """A model of five nodes, for which the oracle gets another constant than hlsgen."""
    net = Net((1, 4)).quant(1.0, bits=4.0).then("Add", 1.0).then("Relu").then("Mul", 2.0).quant(1.0, bits=6.0)
    model = net.model()
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info(net.last, TensorProto.FLOAT, [1, 4]))
    return Case(model, np.arange(-8, 8, dtype=np.float32).reshape(4, 4), None)


def test_a_difference_is_seen_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a Mul is wrong only for 6 times 2, shrinking keeps it, its quantizer and one frame."""
    from hlsgen.ir import evaluate
    from hlsgen.ir.ops import Mul

    right = evaluate.apply

    def apply(op: object, x: object) -> object:
        y = right(op, x)  # type: ignore[arg-type]
        return np.where(x == 6, y + 1, y).astype(y.dtype) if isinstance(op, Mul) else y  # type: ignore[operator]

    fuzz_case = wrong()
    assert judged(fuzz_case).kind == "equal"
    monkeypatch.setattr("hlsgen.interpreter.graph.apply", apply)
    monkeypatch.setattr("hlsgen.passes.quantization.apply", apply)
    outcome = judged(fuzz_case)
    assert (outcome.kind, outcome.is_finding) == ("differs", True)
    small = shrunk(fuzz_case, lambda c: judged(c).kind == "differs")
    assert "Mul" in [n.op_type for n in small.model.graph.node]
    assert len(small.model.graph.node) <= 3
    assert len(small.x) == 1
