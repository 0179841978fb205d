"""The pipeline reports illegal passes, and legal models of all kinds pass the checks."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import onnx
import pytest
import random_graphs
from paths import DATA, ROOT
from small_models import chain_of, quant

from hlsgen import cli
from hlsgen.diagnostics import Collector, HlsgenError
from hlsgen.frontend import import_model
from hlsgen.ir import Graph, Model
from hlsgen.passes import lower, pipeline

MODEL = chain_of((1, 4), quant(2))
FILES = [*sorted(DATA.glob("*.onnx")), *sorted((ROOT / "examples").rglob("*.onnx"))]


def _spoiled(model: Model) -> Model:
    """A pass that forgets the shape of its last step."""
    return replace(model, steps=(*model.steps[:-1], replace(model.steps[-1], shape=(1, 5))))


def test_the_tests_check_every_pass() -> None:
    with pytest.raises(HlsgenError):
        pipeline.run_pipeline(MODEL, (("spoiled", _spoiled),))


def test_an_illegal_pass_is_named() -> None:
    with pytest.raises(HlsgenError) as error:
        pipeline.run_pipeline(MODEL, (*pipeline.PIPELINE, ("spoiled", _spoiled), ("never", lambda model: 1 / 0)))
    assert str(error.value) == (
        "HG098 pass spoiled: produced an illegal form. step 1 's1' (IntQuant): shape is (1, 5); expected (1, 4). "
        "This is a defect of hlsgen: please report it, with the model."
    )


def test_the_frontend_is_checked_too() -> None:
    with pytest.raises(HlsgenError, match="HG098 the frontend: produced an illegal form"):
        pipeline.run_pipeline(_spoiled(MODEL), ())


def test_the_graph_is_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = lower(MODEL, None, Collector())
    with pytest.raises(HlsgenError, match="HG098 lowering: produced an illegal form"):
        pipeline.check_graph(replace(graph, output_is_index=True), "lowering")


def test_without_the_variable_nothing_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HLSGEN_CHECK")
    assert pipeline.run_pipeline(MODEL, (("spoiled", _spoiled),)).steps[-1].shape == (1, 5)


def test_a_user_sees_a_diagnostic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = pipeline.verify_graph

    def wrong(graph: Graph) -> list[pipeline.Violation]:
        return real(replace(graph, output_is_index=not graph.output_is_index))

    monkeypatch.setattr(pipeline, "verify_graph", wrong)
    output = str(tmp_path / "out")
    monkeypatch.setattr(sys, "argv", ["hlsgen", "build", str(DATA / "asym_tensor.onnx"), "-o", output, "--json"])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    shown = capsys.readouterr()
    diagnostics = json.loads(shown.out)["diagnostics"]
    assert stopped.value.code == 1
    assert [(d["code"], d["node"]) for d in diagnostics] == [("HG098", "lowering")]
    assert "Traceback" not in shown.err
    assert not (tmp_path / "out").exists()


def test_many_violations_are_cut() -> None:
    def all_wrong(model: Model) -> Model:
        return replace(model, steps=tuple(replace(step, op=quant(2, scale=0)) for step in model.steps))

    long = chain_of((1, 4), *[quant(2)] * 40)
    with pytest.raises(HlsgenError) as error:
        pipeline.run_pipeline(long, (("all_wrong", all_wrong),))
    assert len(error.value.diagnostics) == 20


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_models_of_files_are_legal(path: Path) -> None:
    _lowered(path)


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_are_legal(seed: int, tmp_path: Path) -> None:
    for name, model in (("d", random_graphs.datapath(seed)), ("p", random_graphs.perceptron(seed, seed % 2 == 0))):
        onnx.save(model, tmp_path / f"{name}.onnx")
        _lowered(tmp_path / f"{name}.onnx")


def _lowered(path: Path) -> None:
    """Imports and lowers a file with all checks on; diagnostics of the model itself are as good as a Graph."""
    problems = Collector()
    model = import_model(path, problems)
    with problems.catching():
        if model is not None:
            lower(model, None, problems)
    assert not [d for d in problems.items if d.code == "HG098"]
