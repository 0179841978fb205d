"""Import of ONNX, TFLite and ALIR files as a Model.

Outside this package only host operations and certify's second reading use onnx.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import onnx

from hlsgen.diagnostics import Collector, fail
from hlsgen.frontend import load
from hlsgen.frontend.alir.file import is_alir, json_of, read_alir
from hlsgen.frontend.alir.importer import import_alir
from hlsgen.frontend.chosen_outputs import suggest_outputs
from hlsgen.frontend.declarations import check_types, check_versions, versions_of
from hlsgen.frontend.dialect_float8 import quantizes_to_floats
from hlsgen.frontend.dynamic_products import runtime_without_them
from hlsgen.frontend.file_kind import model_name
from hlsgen.frontend.graph_inputs import parse_datatype
from hlsgen.frontend.import_options import ImportOptions
from hlsgen.frontend.importer import GraphImporter
from hlsgen.frontend.load import read_bytes, read_model
from hlsgen.frontend.model_diagnostics import report_float_model, report_stuck
from hlsgen.frontend.onnx_graph import all_nodes, name_all
from hlsgen.frontend.onnxruntime_groups import fuse_groups
from hlsgen.frontend.runtimes import check_alir_runtime, runtime_of, tflite_runtime_of
from hlsgen.frontend.tflite.chosen_outputs import with_outputs
from hlsgen.frontend.tflite.file import read_file
from hlsgen.frontend.tflite.importer import import_tflite
from hlsgen.frontend.tflite.schema import is_tflite
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
    softmax: str = "host",
) -> Model | None:
    """Read a file and import its graph. Returns None if an error was added to `problems`.

    fixed_point  import QLinearAdd as QuantizedAdd, with integer multipliers and a shift
    typed        inputs that hardware receives as numbers, not as codes of their first quantizers;
                 true for integers; the key "" holds for all inputs that are not named
    once         keep one body for all iterations of a loop, where the body allows it
    pairs        pass two inputs of one operation side by side, in one tensor
    runtime      the runtime whose integers the Model reproduces, one of `runtimes.CHOICES`
    outputs      tensors at which the graph is cut; empty: the outputs of the file
    softmax      "host" or "hardware", which computes SOFTMAX after the last layer of a TFLite file
    """
    errors_before = len(problems.errors)
    with problems.catching():
        if is_tflite(read_bytes(path)):
            options = ImportOptions(fixed_point, typed, once, pairs, tflite_runtime_of(runtime), softmax == "hardware")
            file = read_file(self_contained(path, outputs), path.stem)
            return import_tflite(file, path.stem, options, problems)
        if is_alir(read_bytes(path)):
            check_alir_runtime(runtime)
            return import_alir(read_alir(self_contained(path, outputs), path.stem), model_name(path))
        proto = read_model(path, problems, outputs)
        check_versions(proto, problems)
        if runtime == "auto" and quantizes_to_floats(proto.graph):
            runtime = "onnx"  # onnxruntime has no kernels for layers of such tensors
        named = runtime_of(all_nodes(proto.graph), runtime)
        named = runtime_without_them(proto, _opset(proto), named, runtime, problems)
        options = ImportOptions(fixed_point, typed, once, pairs, named)
        importer = GraphImporter(proto, path.stem, problems, options)
        model = importer.run()
        check_types(importer.graph, importer.tensors, importer.builder.steps, problems)
        if model is None:
            report_stuck(importer.roles, problems)
            suggest_outputs(importer.graph, importer.usage.followed, problems, errors_before)
            report_float_model(importer.graph, importer.name, problems, errors_before)
        return model if len(problems.errors) == errors_before or model is None else None
    return None


def self_contained(path: Path, outputs: Sequence[str] = ()) -> bytes:
    """The bytes of a file, cut to `outputs`, with any external data included. Raises HG001..HG004, HG040."""
    data = read_bytes(path)
    if is_alir(data):
        if outputs:
            raise fail("HG040", "--outputs", "ALIR files have no names of tensors.", "Build the whole program.")
        return json_of(data, path.stem)
    if not is_tflite(data):
        return load.self_contained(path, outputs)
    return with_outputs(data, outputs, path.stem) if outputs else data


def grouped(path: Path, runtime: str) -> tuple[onnx.ModelProto, dict[str, str]]:
    """The file with the groups that a runtime fuses as operators, and the quantizer's name by fused node's name."""
    proto = read_model(path)
    name_all(proto.graph)
    return proto, fuse_groups(proto.graph, _opset(proto), runtime)


def _opset(model: onnx.ModelProto) -> int:
    """The version of ONNX's operators in a file, within the versions that the installed onnx knows."""
    return max(1, min(versions_of(model)[""], onnx.defs.onnx_opset_version()))
