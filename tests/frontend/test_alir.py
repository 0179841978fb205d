"""ALIR files: the reader, the importer against alkaid's interpreter, and the second reading."""

import contextlib
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hlsgen
from hlsgen.certify.second_reading import alir as second_reading
from hlsgen.diagnostics import HlsgenError
from hlsgen.frontend.alir.file import read_alir
from hlsgen.frontend.alir.importer import import_alir
from hlsgen.interpreter.model import interpret_from
from hlsgen.interpreter.tensor import tensor_of_numbers
from hlsgen.ir import Model
from hlsgen.ir.programs import Program, intervals_of, program_values
from hlsgen.numerics.fixed import Array
from tests.support.alir_files import AlirWriter, random_alir

FRAMES = 50


def imported(data: bytes) -> Model:
    return import_alir(read_alir(data, "file"), "file")


def program_of(model: Model) -> Program:
    return next(step.op.function for step in model.steps if hasattr(step.op, "function"))


def interpreted(data: bytes, x: Array) -> Array:
    """The outputs of alkaid's interpreter."""
    types = pytest.importorskip("alkaid.types", reason="alkaid is not installed: nothing is compared with it")
    return np.asarray(types.CombLogic.from_dict(json.loads(data)).predict(x, n_threads=1))


def outputs(model: Model, x: Array) -> Array:
    return interpret_from(model, 0, tensor_of_numbers(x[:, None]))[-1].value.reshape(len(x), -1)


def random_models(first: int, count: int) -> list[tuple[bytes, Model]]:
    """Random programs whose outputs depend on the input."""
    models, codes = [], set[str]()
    for seed in range(first, first + count):
        data = random_alir(seed)
        try:
            models.append((data, imported(data)))
        except HlsgenError as error:
            codes.add(error.diagnostics[0].code)
    assert codes <= {"HG015"}
    assert len(models) > count / 2
    return models


def test_random_programs_equal_the_interpreter() -> None:
    for data, model in random_models(0, 60):
        rng = np.random.default_rng(1)
        x = rng.normal(0, 8, (FRAMES, model.input_shape[-1]))
        x[::2] = np.round(x[::2] * 16) / 16
        assert (outputs(model, x) == interpreted(data, x)).all()


def test_results_stay_within_their_intervals() -> None:
    for _, model in random_models(100, 30):
        program = program_of(model)
        everything = Program(program.operations, tuple(range(len(program.operations))))
        codes = np.random.default_rng(2).integers(0, 1 << 16, (200, model.input_shape[-1]))
        values = program_values(everything, codes)
        for n, interval in enumerate(intervals_of(program)):
            assert interval.lo <= values[:, n].min()
            assert values[:, n].max() <= interval.hi


@pytest.mark.sweep
def test_the_second_reading_agrees_and_sees_changes() -> None:
    for data, model in random_models(200, 20):
        assert second_reading.compare(data, model).problems == ()
    data = random_alir(205)
    content = json.loads(data)
    for record in content["model"][5]:
        if record[1] in (0, 1):
            record[2][0] += 1
            break
    else:
        raise AssertionError("no sum in this program")
    assert second_reading.compare(json.dumps(content).encode(), imported(data)).problems


def test_an_input_of_two_formats_and_gzip(tmp_path: Path) -> None:
    writer = AlirWriter(1, [1])
    fine = writer.add(-1, [], [0], (-2.0, 1.75, 0.25))
    coarse = writer.add(-1, [], [0], (0.0, 7.0, 1.0))
    total = writer.add(0, [fine, coarse], [0], (-2.0, 8.75, 0.25))
    data = writer.content([total, -1, coarse], [0, 3, 1], [True, False, False])
    x = np.random.default_rng(3).normal(0, 4, (FRAMES, 1))
    assert (outputs(imported(data), x) == interpreted(data, x)).all()
    path = tmp_path / "net.alir.json.gz"
    path.write_bytes(gzip.compress(data))
    hlsgen.build(path, tmp_path / "out")
    assert (tmp_path / "out" / "rtl" / "net.v").exists()
    assert (tmp_path / "out" / "model.alir.json").read_bytes() == data


def broken(change: str, value: Any) -> bytes:
    """A file with one value replaced; `change` is the path to it."""
    writer = AlirWriter(2)
    a = writer.add(-1, [], [0], (-2.0, 1.75, 0.25))
    b = writer.add(8, [a], [writer.table([1, 2, 3] + [0] * 13, 0.5)], (0.0, 1.5, 0.5))
    content = json.loads(writer.content([writer.add(7, [a, b], [], (-3.0, 3.0, 0.125))]))
    place: Any = content
    *path, last = (int(key) if key.lstrip("-").isdigit() else key for key in change.split("."))
    for key in path:
        place = place[key]
    place[last] = value
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    "change, value, code",
    [
        ("meta", "Other", "HG002"),
        ("spec_version", 3, "HG002"),
        ("model", None, "HG002"),
        ("model.0", [2], "HG002"),
        ("model.1", [0], "HG002"),
        ("model.2", [3], "HG002"),
        ("model.3", ["x"], "HG002"),
        ("model.5.1.0", [1], "HG002"),
        ("model.5.1.1", 99, "HG010"),
        ("model.5.1.1", [8], "HG010"),
        ("model.5.1.1", None, "HG010"),
        ("model.5.1.2", [1], "HG002"),
        ("model.5.0.2", [2], "HG002"),
        ("model.5.0.3", [0.0, 1.0, 0.3], "HG002"),
        ("model.5.0.3", [0.0, 1.1, 0.5], "HG002"),
        ("model.5.0.3", [0.0, 1e200, 0.5], "HG021"),
        ("model.8.0.table", [], "HG002"),
        ("model.8.0.spec", 3, "HG002"),
        ("model.2", [-1], "HG015"),
    ],
)
def test_broken_files_are_refused(change: str, value: Any, code: str) -> None:
    with pytest.raises(HlsgenError, match=code):
        imported(broken(change, value))


def squares(writer: AlirWriter, number: int) -> int:
    """A number squared 40 times: the last result has 2^40 bits and more."""
    for _ in range(40):
        number = writer.add(7, [number, number], [], (0.0, 1.0, 1.0))
    return number


def totals(writer: AlirWriter, number: int) -> int:
    """3,000 inputs added one by one, and every partial sum to a wrapped number: millions of summands."""
    for element in range(1, writer.inputs):
        summand = writer.add(-1, [], [element], (-2.0, 1.75, 0.25))
        number = writer.add(0, [number, summand], [0], (-4.0, 4.0, 0.25))
    return number


def wide_operand(writer: AlirWriter, number: int) -> int:
    """A table whose operand can have more numbers than its interval says."""
    shifted = writer.add(0, [number, number], [18], (0.0, 0.75, 0.25))
    return writer.add(8, [shifted], [writer.table([1, 2, 3, 4], 0.5)], (0.5, 2.0, 0.5))


@pytest.mark.parametrize(
    "grow, inputs, code", [(squares, 1, "HG033"), (totals, 3000, "HG004"), (wide_operand, 1, "HG033")]
)
def test_programs_that_grow_are_refused(grow: Callable[[AlirWriter, int], int], inputs: int, code: str) -> None:
    writer = AlirWriter(inputs)
    last = grow(writer, writer.add(-1, [], [0], (-2.0, 1.75, 0.25)))
    with pytest.raises(HlsgenError, match=code):
        imported(writer.content([last]))


def test_space_before_the_program_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "net.alir.json").write_bytes(b"\n" * 20 + random_alir(1))
    hlsgen.build(tmp_path / "net.alir.json", tmp_path / "out")
    assert hlsgen.certify(tmp_path / "out").ok


def test_altered_bytes_give_diagnostics_only() -> None:
    rng = np.random.default_rng(4)
    for seed in range(150):
        data = bytearray(random_alir(seed % 10))
        for place in rng.integers(len(data), size=int(rng.integers(1, 6))):
            data[place] = int(rng.choice(list(b'0123456789-[]{},.e"x')))
        with contextlib.suppress(HlsgenError):
            imported(bytes(data))


def test_other_runtimes_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.alir.json"
    path.write_bytes(random_alir(1))
    with pytest.raises(HlsgenError, match="HG040 --runtime"):
        hlsgen.build(path, tmp_path / "out", hlsgen.Options(runtime="qonnx"))
    with pytest.raises(HlsgenError, match="HG040 program"):
        hlsgen.build(path, tmp_path / "out", hlsgen.Options(target="hls"))
    assert not (tmp_path / "out").exists()
