"""`hlsgen certify` of builds without dead channels: the checker proves each removed element from the model alone."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import image_nets
import numpy as np
import onnx
import pytest
from builds import assert_verified
from certified import messages
from models import newer
from paths import needs_icarus
from sparse_models import bordered, compared, dead_neurons, flattened, lowered, thinned

import hlsgen
from hlsgen.certify.removed_elements import without_removed
from hlsgen.dataflow import dead_channels
from hlsgen.dataflow import smaller_graph as generator
from hlsgen.dataflow.layer_statements import removed_elements
from hlsgen.diagnostics import HlsgenError
from hlsgen.ir import Linear, View

KINDS = ("plain", "signal", "residual", "grouped", "blocks", "bordered", "keras")


def built(folder: Path, **options: Any) -> hlsgen.Build:
    onnx.save(newer(dead_neurons()), folder / "model.onnx")
    return hlsgen.build(folder / "model.onnx", folder / "core", hlsgen.Options(top="top", **options))


def same(left: Any, right: Any) -> bool:
    """True if two layers, or parts of them, are equal in all fields."""
    if isinstance(left, np.ndarray):
        return isinstance(right, np.ndarray) and np.array_equal(left, right)
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if is_dataclass(left):
        names = [f.name for f in fields(left)]
        return type(left) is type(right) and all(same(getattr(left, n), getattr(right, n)) for n in names)
    return bool(left == right)


@pytest.mark.sim
@needs_icarus
@pytest.mark.parametrize("options", [{"target_cycles": 1}, {"target_cycles": 12}, {"target_cycles": 60}])
def test_builds_without_dead_channels_are_proven(options: dict[str, int], tmp_path: Path) -> None:
    build = built(tmp_path, **options)
    assert build.graph.removed
    assert_verified(tmp_path / "core", "icarus", 16)
    assert messages(tmp_path / "core") == []


def test_the_certificate_of_cpp_states_the_same(tmp_path: Path) -> None:
    build = built(tmp_path, target_cycles=60, target="hls")
    certificate = json.loads((tmp_path / "core" / "hls" / "certificate.json").read_text())
    assert certificate["removed"] == removed_elements(build.graph)["removed"]
    assert messages(tmp_path / "core", listed=False) == []


def test_weights_that_can_be_written_keep_all_channels(tmp_path: Path) -> None:
    build = built(tmp_path, target_cycles=60, loadable=True)
    assert not build.graph.removed
    assert "removed" not in json.loads((tmp_path / "core" / "certificate.json").read_text())


@pytest.mark.parametrize("kind", KINDS)
def test_both_derive_the_same_graph(kind: str, tmp_path: Path) -> None:
    for seed in range(4):
        graph = lowered(thinned(image_nets.network(kind, seed), seed), tmp_path)
        smaller = generator.smaller_graph(graph)
        derived = without_removed(graph, removed_elements(smaller))
        assert same(derived.layers, smaller.layers)


def test_each_other_element_is_needed(tmp_path: Path) -> None:
    """No channel more can be removed, from a tensor alone or from the sums and the codes of a quantizer."""
    graph = lowered(dead_neurons(), tmp_path)
    removed = removed_elements(generator.smaller_graph(graph))["removed"]
    by_value = {entry["value"]: entry["positions"] for entry in removed}
    for value, layer in enumerate(graph.layers[:-1], 1):
        for channel in set(range(layer.result.shape[-1])) - set(by_value[value][1]):
            sums = value - 1 if value % 2 else value
            for values in ([value], [sums, sums + 1]):
                more = [
                    {"value": v, "positions": [[], sorted({*p[1], channel} if v in values else p[1])]}
                    for v, p in by_value.items()
                ]
                with pytest.raises(HlsgenError, match="HG055"):
                    without_removed(graph, {"removed": more})


@pytest.mark.parametrize("value", [0, 7, 99])
def test_ends_of_the_network_keep_all_elements(value: int, tmp_path: Path) -> None:
    graph = lowered(dead_neurons(), tmp_path)
    with pytest.raises(HlsgenError, match="no hidden tensor"):
        without_removed(graph, {"removed": [{"value": value, "positions": [[], [0]]}]})


@pytest.mark.parametrize("pad", [0, 1])
def test_a_border_of_another_code_refutes_a_constant_channel(pad: int, tmp_path: Path) -> None:
    without_border = lowered(bordered(0), tmp_path)
    claim = removed_elements(generator.smaller_graph(without_border))
    graph = lowered(bordered(pad), tmp_path)
    if pad:
        with pytest.raises(HlsgenError, match="whose codes vary"):
            without_removed(graph, claim)
    else:
        assert without_removed(graph, claim).layers[-1].result.size == graph.output.size


def test_sums_that_are_compared_keep_their_constants(tmp_path: Path) -> None:
    graph = lowered(compared(), tmp_path)
    first, second = (i for i, layer in enumerate(graph.layers) if isinstance(layer, Linear))
    with pytest.raises(HlsgenError, match="compares or moves"):
        without_removed(graph, {"removed": [{"value": v + 1, "positions": [[], [0]]} for v in range(first, second)]})


def test_a_view_moves_the_elements_that_are_left(tmp_path: Path) -> None:
    """Channel 1 of four pixels is removed, but after the reshape other elements are."""
    graph = lowered(flattened(), tmp_path)
    view = next(i for i, layer in enumerate(graph.layers) if isinstance(layer, View) and layer.result.shape == (1, 12))
    right = removed_elements(generator.smaller_graph(graph))["removed"]
    assert without_removed(graph, {"removed": right}).layers[view].result.shape == (1, 8)
    for entry in right:
        if entry["value"] == view + 1:
            entry["positions"][1] = [(p + 1) % 12 for p in entry["positions"][1]]
    with pytest.raises(HlsgenError, match="that the layer needs"):
        without_removed(graph, {"removed": right})


def test_certify_finds_a_wrong_constant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The neuron that is always 3 counts as 2 in the next bias."""
    right = generator.column_ranges
    monkeypatch.setattr(generator, "column_ranges", lambda *a: (right(*a)[0] - (right(*a)[0] == 3), right(*a)[1]))
    built(tmp_path, target_cycles=1)
    assert messages(tmp_path / "core")


def test_certify_finds_a_channel_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = dead_channels.unneeded_columns

    def wrong(*arguments: Any) -> Any:
        columns = right(*arguments)
        columns[np.flatnonzero(~columns)[:1]] = True
        return columns

    monkeypatch.setattr(dead_channels, "unneeded_columns", wrong)
    built(tmp_path, target_cycles=12)
    assert "whose codes vary and have weights" in " ".join(messages(tmp_path / "core"))
