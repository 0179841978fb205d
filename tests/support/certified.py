"""Builds for the tests of `hlsgen certify`: one for each module that realizes a function."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import random_graphs
from integer_models import prequantized
from onnx import helper, numpy_helper
from paths import DATA

import hlsgen
from hlsgen.certify import certify as prove
from hlsgen.frontend import domain_hlsgen
from hlsgen.numerics.quantized_add import Parameters


@dataclass(frozen=True)
class Case:
    """A model and options, and modules that its build must have. The core is `top`, whatever its model is called."""

    model: str | Callable[[], onnx.ModelProto]
    options: hlsgen.Options = field(default_factory=hlsgen.Options)
    modules: tuple[str, ...] = ()

    def build(self, directory: Path) -> Path:
        path = DATA / f"{self.model}.onnx"
        if not isinstance(self.model, str):
            path = directory.with_suffix(".onnx")
            onnx.save(self.model(), path)
        hlsgen.build(path, directory, replace(self.options, top=self.options.top or "top"))
        return directory


def quantizer(*before: str, scale: Any = 0.7, bits: float = 4, channels: int = 3, **attributes: Any) -> onnx.ModelProto:
    """Operators and a quantizer, with constants by channel."""
    g = random_graphs.Graph((1, channels))
    g.then("Mul", np.linspace(0.4, 1.1, channels))
    for op in before:
        g.then(op)
    g.quant(scale, 0.0, bits, **attributes)
    return g.model()


def repeated() -> onnx.ModelProto:
    """Twelve channels of two functions, in an order that does not repeat."""
    g = random_graphs.Graph((1, 12))
    g.then("Mul", np.array([0.4, 0.4, 0.9, 0.9, 0.9, 0.4, 0.9, 0.4, 0.9, 0.9, 0.4, 0.4]))
    g.then("Abs")
    g.quant(0.7, 0.0, 4.0)
    return g.model()


def forced(kind: str, **options: Any) -> hlsgen.Options:
    return hlsgen.Options(realize={"": kind}, **options)


FIXED = {"input": "fixed:7,7"}
CASES = {
    "network": Case("floor_ceil", hlsgen.Options(target_cycles=20)),
    "folded": Case("floor_ceil", forced("thresholds", target_cycles=12), ("hg_width", "hg_threshold")),
    "adders": Case("floor_ceil", hlsgen.Options(target_cycles=1)),
    "tables of sums": Case("floor_ceil", hlsgen.Options(target_cycles=4)),
    "binary": Case("bin_tern", hlsgen.Options(reset_active_low=True, top="core")),
    "argmax": Case(lambda: winner(), hlsgen.Options(target_cycles=9), ("hg_argmax",)),
    "float": Case("floor_ceil", forced("float-units"), ("hg_f32_decode", "hg_f32_encode")),
    "rank": Case("hardtanh_clip", forced("rank"), ("hg_rank",)),
    "compare": Case(lambda: quantizer(bits=3), forced("compare", **FIXED), ("hg_compare",)),
    "shift": Case(lambda: power_of_two(), forced("shift", **FIXED), ("hg_shift",)),
    "lane shift": Case(lambda: powers_of_two(), forced("lane-shift", lanes=4, **FIXED), ("hg_lane_shift",)),
    "lane table": Case(lambda: curves(), forced("lane-table", lanes=4, **FIXED), ("hg_lane_table",)),
    "neurons": Case(lambda: neurons(), hlsgen.Options(target_cycles=1), ("hg_lut_network",)),
    "table": Case(lambda: quantizer("Abs"), forced("table", **FIXED), ("hg_table",)),
    "indexed": Case(lambda: quantizer("Abs"), forced("indexed", lanes=3, **FIXED), ("hg_threshold", "hg_table")),
    "shared table": Case(lambda: repeated(), forced("shared-table", lanes=1, **FIXED), ("hg_shift", "hg_table")),
    "shared indexed": Case(
        lambda: repeated(), forced("shared-indexed", lanes=2, **FIXED), ("hg_shift", "hg_threshold", "hg_table")
    ),
    "keys": Case(lambda: random_graphs.datapath(4), forced("thresholds"), ("hg_float_key", "hg_threshold")),
    "scale": Case(lambda: quantizer(bits=5), forced("scale", **FIXED), ("hg_scale",)),
    "product of float32": Case(
        lambda: prequantized("F2", (2, 4)), forced("float-scale", target_cycles=8), ("hg_scale_f32",)
    ),
    "correct": Case("floor_ceil", forced("correct"), ("hg_correct",)),
    "many steps": Case(lambda: wide(), forced("shift", input="fixed:16,16"), ("hg_shift", "constants")),
    "every input": Case(lambda: swish(), forced("indexed", input="fixed:12,12"), ("hg_threshold", "hg_table")),
    "sum": Case(lambda: pair("QuantizedAdd"), modules=("hg_pair_add",)),
    "product": Case(lambda: pair("QLinearMul"), modules=("hg_pair_scale",)),
    "integer": Case(lambda: prequantized("F1", (16, 6)), forced("thresholds")),
}


def winner() -> onnx.ModelProto:
    g, rng = random_graphs.Graph((1, 10)), np.random.default_rng(4)
    g.quant(0.5, 0.0, 4.0, signed=1, narrow=0)
    g.then("MatMul", rng.integers(-3, 4, (10, 9)))
    g.then("ArgMax", axis=1, keepdims=0)
    model = g.model((1, 1))
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
    return model


def pair(op: str) -> onnx.ModelProto:
    """An operation of two int8 inputs."""
    node = domain_hlsgen.make_quantized_add("a", "b", "c", Parameters(-3, 7, 2, 300, 250, 3, 13))
    constants = {}
    if op != "QuantizedAdd":
        constants = {"s": np.float32(0.25), "t": np.float32(1), "z": np.int8(3)}
        node = helper.make_node(op, ["a", "s", "z", "b", "s", "z", "t", "z"], ["c"], domain="com.microsoft")
    a, b, c = (helper.make_tensor_value_info(name, onnx.TensorProto.INT8, [1, 4]) for name in "abc")
    values = [numpy_helper.from_array(np.asarray(v), name) for name, v in constants.items()]
    graph = helper.make_graph([node], "pair", [a, b], [c], values)
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("com.microsoft", 1), domain_hlsgen.opset_import()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def wide() -> onnx.ModelProto:
    """More codes than a certificate lists."""
    g = random_graphs.Graph((1, 2))
    g.quant(2.0, np.array([1.0, -2.0]), 15.0)
    return g.model()


def swish() -> onnx.ModelProto:
    """A function that is not known to be monotone."""
    g = random_graphs.Graph((1, 2))
    g.then("Mul", np.array([0.01, 0.02]))
    g.then("HardSwish")
    g.quant(0.1, 0.0, 5.0)
    model = g.model()
    model.opset_import[0].version = 20
    return model


def power_of_two() -> onnx.ModelProto:
    g = random_graphs.Graph((1, 3))
    g.quant(4.0, np.array([1.0, 2.0, -1.0]), 5.0)
    return g.model()


def powers_of_two() -> onnx.ModelProto:
    """A scale, a bias and bounds for each channel, one of them constant."""
    g = random_graphs.Graph((1, 4))
    g.then("Add", np.array([0.0, 3.0, -5.0, 1.0]))
    g.then("Min", np.array([40.0, 14.0, 8.0, -90.0]))
    g.then("Max", np.array([-3.0, -64.0, 0.0, -90.0]))
    g.quant(np.array([1.0, 2.0, 4.0, 8.0]), 0.0, 6.0)
    return g.model()


def curves() -> onnx.ModelProto:
    """A curve over steps of each channel, one of them constant."""
    g = random_graphs.Graph((1, 4))
    g.then("Mul", np.array([0.25, 0.5, 0.125, 0.0]))
    g.then("Add", np.array([0.5, 0.0, 0.5, 1.0]))
    g.then("Floor")
    g.then("Abs")
    g.then("Min", np.array([9.0, 12.0, 3.0, 5.0]))
    g.quant(1.0, 0.0, 5.0)
    return g.model()


def neurons(fan_in: int = 4, bits: int = 2) -> onnx.ModelProto:
    """Two layers whose neurons use few inputs each."""
    rng = np.random.default_rng(6)
    g = random_graphs.Graph((1, 6))
    g.quant(0.5, 0.0, float(bits), signed=0, narrow=0)
    for columns, rows in ((6, 7), (7, 3)):
        weights = np.zeros((columns, rows))
        for row in range(rows):
            used = rng.permutation(columns)[:fan_in]
            weights[used, row] = rng.choice([-3, -2, -1, 1, 2, 3, 4], fan_in) / 4
        g.then("MatMul", weights)
        g.then("Add", rng.integers(-2, 5, rows) / 8)
        g.then("Relu")
        g.quant(0.5, 0.0, float(bits), signed=0, narrow=0)
    return g.model((1, 3))


def for_cores(*names: str) -> Any:
    """Parametrizes the fixture `core`."""
    return pytest.mark.parametrize("core", names or list(CASES), indirect=True)


def messages(directory: Path, *, listed: bool = True) -> list[str]:
    """What the proof alone finds wrong. listed: the list of files in the manifest is made to agree before."""
    if listed:
        list_files(directory)
    return [str(p) for p in prove(directory).problems]


def list_files(directory: Path) -> None:
    """Makes the hashes in the manifest agree with the files that are certified."""
    path, others = directory / "manifest.json", ("report.", "folding.yaml", "tb/", "host/")
    try:
        manifest = json.loads(path.read_text())
        hashes = {name: value for name, value in manifest["files"].items() if name.startswith(others)}
    except (ValueError, KeyError, TypeError, AttributeError, OSError):
        return
    names = [
        "model.onnx",
        "model.tflite",
        "certificate.json",
        "files.f",
        *(f"rtl/{p.name}" for p in (directory / "rtl").iterdir()),
    ]
    for name in names:
        if (directory / name).is_file() and not (directory / name).is_symlink():
            hashes[name] = _hash(directory / name)
    path.write_text(json.dumps({**manifest, "files": hashes}))


def _hash(path: Path) -> str:
    """Of files of any size."""
    found = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            found.update(chunk)
    return found.hexdigest()


def with_changed_top(built: Path, tmp_path: Path, old: str, new: str) -> Path:
    """A copy of a core named `core`, in whose top level `new` replaces the first match of `old`."""
    core = tmp_path / "core"
    shutil.copytree(built, core)
    path = core / "rtl" / "core.v"
    original = path.read_text()
    text = re.sub(old, new, original, count=1)
    assert original != text
    path.write_text(text)
    sign(core, "rtl/core.v")
    return core


def sign(directory: Path, name: str) -> None:
    """Makes the hash of a file in the certificate, and those in the manifest, agree."""
    path = directory / "certificate.json"
    certificate = json.loads(path.read_text())
    certificate["rtl"][name] = hashlib.sha256((directory / name).read_bytes()).hexdigest()
    path.write_text(json.dumps(certificate))
    list_files(directory)


@contextmanager
def changed(directory: Path, instance: str, name: str, value: int | str) -> Iterator[None]:
    """A parameter of an instance, in top level and certificate alike."""
    top, path = directory / "rtl" / "top.v", directory / "certificate.json"
    before, original = top.read_text(), path.read_text()
    block = re.search(rf"\S+ #\([^;]*?\) {instance} \(", before)
    assert block
    certificate = json.loads(original)
    for x in (x for layer in certificate["layers"] for x in layer["instances"] if x["instance"] == instance):
        old, x["parameters"][name] = x["parameters"][name], value
    assert f".{name}({old})" in block[0]
    path.write_text(json.dumps(certificate))
    top.write_text(before.replace(block[0], block[0].replace(f".{name}({old})", f".{name}({value})")))
    sign(directory, "rtl/top.v")
    yield
    top.write_text(before)
    path.write_text(original)
