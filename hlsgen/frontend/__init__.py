"""ONNX -> Model. Only host operations and the second reading of certify know onnx besides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import onnx

from hlsgen.diagnostics import Collector
from hlsgen.frontend.chosen_outputs import suggest_outputs
from hlsgen.frontend.declarations import check_types, check_versions, versions_of
from hlsgen.frontend.graph_inputs import parse_datatype
from hlsgen.frontend.importer import Importer
from hlsgen.frontend.load import read_model, self_contained
from hlsgen.frontend.onnx_graph import all_nodes, name_all
from hlsgen.frontend.onnxruntime_groups import fuse_groups
from hlsgen.frontend.runtimes import runtime_of
from hlsgen.frontend.whole_model import report_float_model, report_stuck
from hlsgen.ir import Model

__all__ = ["grouped", "import_model", "parse_datatype", "self_contained"]


def import_model(
    path: Path,
    problems: Collector,
    fixed_point: bool = False,
    typed: Mapping[str, bool] = MappingProxyType({}),
    *,
    once: bool = False,
    pairs: bool = True,
    runtime: str = "auto",
    outputs: Sequence[str] = (),
) -> Model | None:
    """Reads a file and walks its graph; None if an error went to `problems`.

    `fixed_point`: a QLinearAdd becomes a QuantizedAdd, with multipliers and a shift. `typed`: inputs that go to hardware as
    numbers, not as codes of their first quantizers, and whether as integers; "" for all that are not named. `once`: bodies of loops stay one.
    `pairs`: two inputs that one operation joins come side by side, in one tensor. `runtime`: whose integers the Model has,
    one of `runtimes.CHOICES`. `outputs`: tensors that the graph is cut to, unless there are none.
    """
    before = len(problems.errors)
    with problems.catching():
        proto = read_model(path, problems, outputs)
        check_versions(proto, path.stem, problems)
        runtime = runtime_of(all_nodes(proto.graph), runtime)
        walk = Importer(proto, path.stem, problems, fixed_point, typed, runtime)
        walk.once, walk.pairs = once, pairs
        model = walk.run()
        check_types(walk.graph, walk.tensors, walk.steps, problems)
        if model is None:
            report_stuck(walk.roles, problems)
            suggest_outputs(walk.graph, walk.followed, problems, before)
            report_float_model(walk.graph, walk.name, problems, before)
        return model if len(problems.errors) == before or model is None else None
    return None


def grouped(path: Path, runtime: str) -> tuple[onnx.ModelProto, dict[str, str]]:
    """The file with the groups of a runtime as operators, and by name of a fused node that of its quantizer."""
    proto = read_model(path)
    name_all(proto.graph)
    opset = max(1, min(versions_of(proto)[""], onnx.defs.onnx_opset_version()))
    return proto, fuse_groups(proto.graph, opset, runtime)
