"""Test suites of others: each of their models built, and its integers held against the outputs that they give.

    python benchmarks/foreign_suites.py FOLDER ... [--only PATTERN ...] [--all-types] [--backend verilator] [--json
    FILE]

A test is a folder in the form of onnx's backend tests (model.onnx, test_data_set_0/input_0.pb, output_0.pb) or of
Deeploy's (network.onnx, inputs.npz, outputs.npz); FOLDER is a test, or has tests in it at any depth. Without FOLDER:
the operator tests that the package onnx brings. Of these are taken those of integers: every input, or every output, is
of an integer type of at most 32 bits. `--all-types` takes all.

A model is built as it is: every input of the graph is an input of the core. Where that is refused, scales, zero points
and other single numbers are constants of the test's values, as in real networks; and then all inputs but the first.
Types of float inputs are those of the test's arrays, as `--calibrate` takes them.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import hlsgen
from hlsgen.driver.calibration import input_type_of

ROOT = Path(__file__).resolve().parent.parent
PAGE, BEGIN, END = ROOT / "docs" / "benchmarks.md", "<!-- foreign suites -->", "<!-- end of foreign suites -->"
#: Where the package onnx has its tests.
OWN = Path(onnx.__file__).parent / "backend" / "test" / "data" / "node"
_INTEGERS = {
    getattr(TensorProto, name) for name in ("INT4", "UINT4", "INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32")
}

Array = Any


@dataclass
class Result:
    """`state`: equal, differs, refused, or failed (an error that is no diagnostic). `how`: the inputs that are
    constants.
    """

    test: str
    operators: str
    state: str
    how: str = ""
    codes: str = ""
    reason: str = ""


@dataclass
class Test:
    """A model with arrays by the names of its inputs and outputs."""

    name: str
    model: onnx.ModelProto
    inputs: dict[str, Array]
    outputs: dict[str, Array]


def tests_in(folder: Path) -> Iterator[Path]:
    """The models of all tests in a folder."""
    yield from sorted({*folder.rglob("model.onnx"), *folder.rglob("network.onnx")})


def declared_types(values: Iterable[onnx.ValueInfoProto]) -> dict[str, np.dtype[Any]]:
    """The dtype of each tensor that has one in numpy itself."""
    kinds = {value.name: value.type.tensor_type.elem_type for value in values}
    return {name: helper.tensor_dtype_to_np_dtype(kind) for name, kind in kinds.items() if kind}


def in_declared_type(array: Array, dtype: np.dtype[Any] | None) -> Array:
    """The array in the type that the model declares, if that holds every value: Deeploy stores int64 for all
    tensors.
    """
    array = np.asarray(array)
    if dtype is None or array.dtype.kind not in "iu":
        return array
    converted = array.astype(dtype)
    return converted if (converted.astype(np.float64) == array.astype(np.float64)).all() else array


def read(path: Path) -> Test:
    model, folder = onnx.load(path), path.parent
    known = {t.name for t in model.graph.initializer}
    names = [i.name for i in model.graph.input if i.name not in known], [o.name for o in model.graph.output]
    if path.name == "network.onnx":
        found = [dict(np.load(folder / f"{kind}.npz")) for kind in ("inputs", "outputs")]
        given = [
            f if set(f) >= set(n) else dict(zip(n, f.values(), strict=False)) for f, n in zip(found, names, strict=True)
        ]
        ends = [
            {name: in_declared_type(x, types.get(name)) for name, x in arrays.items()}
            for arrays, types in zip(given, map(declared_types, (model.graph.input, model.graph.output)), strict=True)
        ]
        return Test(folder.name, model, *ends)
    ends = []
    for kind, own in zip(("input", "output"), names, strict=True):
        arrays = {}
        for number, name in enumerate(own):
            file = folder / "test_data_set_0" / f"{kind}_{number}.pb"
            if file.exists():
                arrays[name] = numpy_helper.to_array(onnx.load_tensor(str(file)))
        ends.append(arrays)
    return Test(folder.name, model, *ends)


def of_integers(model: onnx.ModelProto) -> bool:
    """Whether every input, or every output, is of integers of at most 32 bits."""
    sides = [[v.type.tensor_type.elem_type for v in side] for side in (model.graph.input, model.graph.output)]
    return any(side and all(kind in _INTEGERS for kind in side) for side in sides)


def fixed(test: Test, kept: list[str]) -> Test:
    """The test with all inputs but these as constants."""
    model = onnx.ModelProto()
    model.CopyFrom(test.model)
    for name, value in test.inputs.items():
        if name not in kept:
            model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    sources = [i for i in model.graph.input if i.name in kept]
    del model.graph.input[:]
    model.graph.input.extend(sources)
    return Test(test.name, model, {name: test.inputs[name] for name in kept}, test.outputs)


def ways_of(test: Test) -> list[tuple[str, Test]]:
    """The test as it is; with scales and other single numbers as constants; with all inputs but the first."""
    first, found = next(iter(test.inputs), ""), [("", test)]
    several = {n for n, x in test.inputs.items() if np.size(x) > 1 and np.asarray(x).dtype.kind in "iu"}
    data = [n for n in test.inputs if n == first or (n in several and np.asarray(test.inputs[n]).dtype.itemsize < 8)]
    for how, kept in (("parameters are constants", data), ("inputs but the first are constants", [first])):
        if len(kept) < len(found[-1][1].inputs):
            found.append((how, fixed(test, kept)))
    return found


def types_of(test: Test) -> dict[str, str]:
    """Types of float inputs that no quantizer takes, by the values of the test."""
    quantized = {n.input[0] for n in test.model.graph.node if n.op_type in ("QuantizeLinear", "Quant", "IntQuant")}
    floats = {n: x for n, x in test.inputs.items() if np.asarray(x).dtype.kind == "f" and n not in quantized}
    try:
        return {name: input_type_of(x) for name, x in floats.items()}
    except hlsgen.HlsgenError:
        return {}


def tried(test: Test, backend: str, folder: Path) -> None:
    """Builds and runs a test. Raises HlsgenError, and ValueError for a difference."""
    onnx.save(test.model, folder / "m.onnx")
    types = types_of(test)
    hlsgen.build(folder / "m.onnx", folder / "build", hlsgen.Options(input=types or None))
    got = hlsgen.run(folder / "build", test.inputs, backend)
    found = got if isinstance(got, dict) else {next(iter(test.outputs)): got}
    for name, wanted in test.outputs.items():
        own = np.asarray(found[name]) if name in found else None
        if own is None:
            raise ValueError(f"{name} is no output of the build")
        if wanted.dtype.name in ("int2", "int4", "uint2", "uint4"):  # numpy has no such type: codes are in bytes
            wanted = wanted.astype(f"{wanted.dtype.name[:-1]}8")
        if own.dtype != wanted.dtype or own.size != wanted.size:
            raise ValueError(f"{name}: {own.dtype} {own.shape}, the test has {wanted.dtype} {wanted.shape}")
        wrong = own.reshape(wanted.shape) != wanted
        if wrong.any():
            raise ValueError(f"{name}: {int(wrong.sum())} of {wrong.size} differ")


def held(test: Test, backend: str) -> Result:
    """A test as it is, and where that is refused with constants."""
    operators = ", ".join(dict.fromkeys(node.op_type for node in test.model.graph.node))
    result = Result(test.name, operators, "refused")
    for how, one in ways_of(test):
        with tempfile.TemporaryDirectory(prefix="hlsgen_suite_") as folder:
            try:
                tried(one, backend, Path(folder))
            except hlsgen.HlsgenError as error:
                if not result.codes:
                    found = error.diagnostics
                    result.codes, result.reason = " ".join(dict.fromkeys(d.code for d in found)), str(found[0])
                continue
            except ValueError as error:
                return Result(test.name, operators, "differs", how, "", str(error))
            except Exception as error:  # whatever it is: it is a defect, and the others go on
                return Result(test.name, operators, "failed", how, "", f"{type(error).__name__}: {error}")
            return Result(test.name, operators, "equal", how)
    return result


def table(results: list[Result]) -> list[str]:
    """A row for each operator, or group of them; one for all of which every test is refused."""
    rows = ["| operators | tests | equal | differ | refused |", "|---|---|---|---|---|"]
    built = {r.operators for r in results if r.state != "refused"}
    for operators in [*sorted(built), "others"]:
        own = [r for r in results if r.operators == operators or (operators == "others" and r.operators not in built)]
        count = Counter(r.state for r in own)
        codes = Counter(r.codes for r in own if r.state == "refused")
        refused = ", ".join(f"{n} x {code}" if n > 1 else code for code, n in sorted(codes.items()))
        fixed_ones = sum(r.state == "equal" and bool(r.how) for r in own)
        equal = f"{count['equal']}" + (f" ({fixed_ones} with constants)" if fixed_ones else "")
        rows.append(f"| {operators} | {len(own)} | {equal} | {count['differs'] + count['failed']} | {refused} |")
    count = Counter(r.state for r in results)
    rows.append(
        f"| all | {len(results)} | {count['equal']} | {count['differs'] + count['failed']} | {count['refused']} |"
    )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[OWN])
    parser.add_argument("--only", nargs="*", default=["*"], help="patterns of the names of tests")
    parser.add_argument("--all-types", action="store_true")
    parser.add_argument("--backend", default="reference")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--write", action="store_true", help="write the table into docs/benchmarks.md")
    asked = parser.parse_args()
    results = []
    for path in (path for folder in asked.folders for path in tests_in(folder)):
        if not any(fnmatch.fnmatch(path.parent.name, pattern) for pattern in asked.only):
            continue
        if not asked.all_types and not of_integers(onnx.load(path)):
            continue
        results.append(held(read(path), asked.backend))
        print(f"{results[-1].test}: {results[-1].state} {results[-1].how} {results[-1].reason}", flush=True)
    rows = table(results)
    print("\n".join(rows))
    if asked.json:
        asked.json.write_text(json.dumps([asdict(r) for r in results], indent=1))
    if asked.write:
        text = PAGE.read_text()
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        PAGE.write_text("\n".join([before + BEGIN, *rows, END + after]))
    return int(any(r.state in ("differs", "failed") for r in results))


if __name__ == "__main__":
    sys.exit(main())
