"""The checker of modules that run a program: it accepts what the printer writes, and no altered line."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from certified import messages
from random_programs import random_program

import hlsgen
from hlsgen.certify.netlist_reader import Cell
from hlsgen.certify.program_modules import check_program
from hlsgen.dataflow.smaller_program import smaller_program
from hlsgen.diagnostics import HlsgenError
from hlsgen.ir import Fixed, IntegerRows, Value
from hlsgen.ir.programs import Program, Take, output_type
from hlsgen.numerics.fixed import IntType
from hlsgen.verilog.program_stages import staged
from hlsgen.verilog.program_text import program_module_text
from tests.support.alir_files import random_alir

SEEDS = (4, 9, 11, 17)


def built(seed: int, folder: Path) -> tuple[IntegerRows, Path]:
    """The layer of a built random program, and the file of its module."""
    path = folder / "net.alir.json"
    path.write_bytes(random_alir(seed))
    build = hlsgen.build(path, folder / "out")
    layer = next(layer for layer in build.graph.layers if isinstance(layer, IntegerRows))
    (module,) = (folder / "out" / "rtl").glob("*_program.v")
    return layer, module


@pytest.mark.parametrize("seed", SEEDS)
def test_no_altered_module_is_accepted(seed: int, tmp_path: Path) -> None:
    layer, module = built(seed, tmp_path)
    assert hlsgen.certify(tmp_path / "out").ok
    assert isinstance(layer.function, Program)
    program = smaller_program(layer.function)
    text, prefix = module.read_text(), module.name.removesuffix("n_program_program.v")
    cell = Cell("program", "n_program", {}, {})
    check_program(layer, program, cell, prefix, module.parent)
    body = text.index("wire unused = ")
    places = [
        m.start()
        for m in re.finditer(r"[0-9a-f~+?:&|^-]", text)
        if m.start() > body and "unused_results" not in text[: m.start()]
    ]
    rng, same = np.random.default_rng(seed), 0
    for place in rng.choice(places, 120):
        other = str(rng.choice(sorted(set("0123456789~+-") - {text[place]})))
        module.write_text(text[:place] + other + text[place + 1 :])
        try:
            check_program(layer, program, cell, prefix, module.parent)
        except HlsgenError:
            continue
        same += 1  # an entry of a table for an operand that cannot occur
        assert "localparam" in text[text.rindex("\n", 0, place) : place]
    assert same < 20


@pytest.mark.parametrize("seed", [*range(20), 401, 435, 447, 586, 657])
def test_modules_of_rewritten_programs_are_accepted(seed: int, tmp_path: Path) -> None:
    model = random_program(seed)
    program = smaller_program(model)
    lanes = sum(isinstance(operation, Take) for operation in model.operations)
    types = IntType(0, 31), output_type(model)
    values = [Value((1, n), t, Fixed(0)) for n, t in zip((lanes, len(model.outputs)), types, strict=True)]
    layer = IntegerRows("layer", model, *values, (0,))
    sizes = lanes, types[0].bits, types[1].bits
    text = program_module_text("unit_program", staged(program, 2), *sizes)
    (tmp_path / "unit_program.v").write_text(text)
    check_program(layer, program, Cell("program", "unit", {}, {}), "", tmp_path)


def test_the_stated_program_is_proven(tmp_path: Path) -> None:
    """Another number in an operation of the statement, and in the module: the outputs are other ones."""
    layer, _ = built(9, tmp_path)
    path = tmp_path / "out" / "certificate.json"
    certificate = json.loads(path.read_text())
    (entry,) = (entry for entry in certificate["layers"] if entry["layer"] == layer.name)
    tables = [n for n, row in enumerate(entry["program"]) if row[0] == "table"]
    assert tables
    for n in tables:
        row = entry["program"][n]
        entry["program"][n] = [*row[:4], row[4] + 1, *row[5:]]
        path.write_text(json.dumps(certificate))
        assert any("not proven equal to the model's" in message for message in messages(tmp_path / "out"))
        entry["program"][n] = row


@pytest.mark.parametrize("shift", [55, 59])
def test_a_statement_of_wider_numbers_is_refused(shift: int, tmp_path: Path) -> None:
    """Numbers of more bits than int64 would wrap in the proof."""
    layer, _ = built(9, tmp_path)
    path = tmp_path / "out" / "certificate.json"
    certificate = json.loads(path.read_text())
    (entry,) = (entry for entry in certificate["layers"] if entry["layer"] == layer.name)
    rows = entry["program"]
    source = next(n for n, row in enumerate(rows) if row[0] == "take")
    rows.insert(-1, ["sum", source, shift, source, shift])
    rows.insert(-1, ["sum", len(rows) - 2, shift, source, 0])
    path.write_text(json.dumps(certificate))
    (message,) = messages(tmp_path / "out")
    assert "of its program has" in message
    assert "bits, more than 60" in message


@pytest.mark.parametrize(
    "row",
    [["table", 0, 0], ["sum", 0, 0, 999, 0], ["wrap", 0, 0, 0, 4], ["join", 0, 0], ["take", 99, 0, 1], ["sine", 1], []],
)
def test_a_statement_of_no_program_is_refused(row: list[object], tmp_path: Path) -> None:
    layer, _ = built(9, tmp_path)
    path = tmp_path / "out" / "certificate.json"
    certificate = json.loads(path.read_text())
    (entry,) = (entry for entry in certificate["layers"] if entry["layer"] == layer.name)
    entry["program"][-2] = row
    path.write_text(json.dumps(certificate))
    assert any("of its program is" in message for message in messages(tmp_path / "out"))
