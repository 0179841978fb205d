"""The proof of merged layers: the checker's own program, and no other one."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from certified import messages
from models import Net

import hlsgen
from hlsgen.certify.merged_layers import merged_graph
from hlsgen.dataflow import merge_layers
from hlsgen.dataflow.merge_layers import merged_layers
from hlsgen.ir.equal_programs import unproven_output
from hlsgen.ir.programs import Program, intervals_of


def network(
    folder: Path, seed: int = 3, sizes: tuple[int, ...] = (6, 7, 3), largest: int = 6, *, sums: bool = False
) -> Path:
    """`sums`: the outputs are sums, not codes."""
    rng = np.random.default_rng(seed)
    net = Net((1, sizes[0]))
    for n, (columns, rows) in enumerate(itertools.pairwise(sizes)):
        net.quant(0.25, 0.0, 4.0, signed=int(not n), narrow=0)
        weight = rng.integers(-largest, largest + 1, (columns, rows)) * 0.5
        net.linear(weight=weight.astype(np.float32), scale=0.5, bits=4.0, name=f"fc{n}")
        if n < len(sizes) - 2 or not sums:
            net.then("Add", rng.normal(0, 1, rows).astype(np.float32))
            net.then("Relu")
    path = folder / "model.onnx"
    onnx.save((net if sums else net.quant(1.0, 0.0, 3.0, signed=0)).model(), path)
    return path


@pytest.mark.parametrize("seed", range(36))
def test_the_checker_s_program_has_the_same_results(seed: int, tmp_path: Path) -> None:
    """Few and small weights: rows are equal or cancel, and intervals of sums show whether both programs see it."""
    sizes = [(12, 2, 9, 4), (3, 8, 5), (5, 6, 6, 2)][seed % 3]
    path = network(tmp_path, seed, sizes, largest=1 + seed % 2, sums=bool(seed % 4))
    graph = hlsgen.check(path, hlsgen.Options(input="codes")).graph
    graphs = [merge(graph) for merge in (merged_layers, merged_graph)]
    first, second = (merged.layers[0].function for merged in graphs)
    assert isinstance(first, Program)
    assert isinstance(second, Program)
    assert graphs[0].output.type == graphs[1].output.type
    assert unproven_output(first, second, intervals_of) is None


def test_both_programs_of_a_model_are_proven_equal(tmp_path: Path) -> None:
    graph = hlsgen.check(network(tmp_path), hlsgen.Options(input="codes")).graph
    first, second = (merge(graph).layers[0].function for merge in (merged_layers, merged_graph))
    assert isinstance(first, Program)
    assert isinstance(second, Program)
    assert first != second
    assert unproven_output(first, second, intervals_of) is None


@pytest.mark.parametrize("fault", ["weight", "offset", "code"])
def test_a_wrong_merge_is_found(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The build is consistent in itself: its reference has the same fault."""
    table_of, sum_of = merge_layers._StepTable.of, merge_layers._Writer.sum

    def wrong_table(*arguments):
        table = table_of(*arguments)
        if fault == "offset":
            return merge_layers.replace(table, offset=table.offset + 1)
        place = next(n for n in range(1, len(table.codes)) if table.codes[n] != table.codes[n - 1])
        return merge_layers.replace(
            table, codes=(*table.codes[:place], *table.codes[place - 1 : place], *table.codes[place + 1 :])
        )

    if fault == "weight":
        monkeypatch.setattr(
            merge_layers._Writer, "sum", lambda self, row, numbers: sum_of(self, [row[0] + 1, *row[1:]], numbers)
        )
    else:
        monkeypatch.setattr(merge_layers._StepTable, "of", staticmethod(wrong_table))
    hlsgen.build(network(tmp_path), tmp_path / "out", hlsgen.Options(input="codes", merge_layers=True))
    monkeypatch.undo()
    assert any("not proven equal to the model's" in message for message in messages(tmp_path / "out"))


def test_an_altered_list_of_layers_is_found(tmp_path: Path) -> None:
    hlsgen.build(network(tmp_path), tmp_path / "out", hlsgen.Options(input="codes", merge_layers=True))
    path = tmp_path / "out" / "manifest.json"
    manifest = json.loads(path.read_text())
    (row,) = manifest["layers"]
    assert row["merged"][0] == "fc0"
    row["merged"].pop()
    path.write_text(json.dumps(manifest))
    assert messages(tmp_path / "out")


def test_a_build_that_denies_merging_is_refused(tmp_path: Path) -> None:
    hlsgen.build(network(tmp_path), tmp_path / "out", hlsgen.Options(input="codes", merge_layers=True))
    path = tmp_path / "out" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["options"]["merge_layers"] = False
    path.write_text(json.dumps(manifest))
    assert messages(tmp_path / "out")


def test_equal_neurons_cancel_in_both_programs(tmp_path: Path) -> None:
    """The interval of a sum of two equal numbers with opposite weights does not depend on them."""
    net = Net((1, 3)).quant(0.25, 0.0, 4.0, narrow=0)
    net.linear(weight=np.array([[1, 1, 2], [3, 3, -1], [-2, -2, 1]], np.float32), scale=1.0, bits=4.0, name="fc0")
    net.then("Relu").quant(1.0, 0.0, 3.0, signed=0)
    net.linear(weight=np.array([[1], [-1], [1]], np.float32), scale=1.0, bits=4.0, name="fc1")
    path = tmp_path / "model.onnx"
    onnx.save(net.model(), path)
    hlsgen.build(path, tmp_path / "out", hlsgen.Options(input="codes", merge_layers=True))
    assert hlsgen.certify(tmp_path / "out").ok
