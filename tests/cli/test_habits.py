"""What people expect of any command line: short help, completion, a quick start, errors in the form that was asked
for.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from models import quantizer, save
from paths import ROOT
from typer.testing import CliRunner

import hlsgen
from hlsgen.cli import COMMANDS, app
from hlsgen.cli.options import GROUPS, _flags

DIGITS = ROOT / "examples" / "digits" / "digits_mlp.onnx"


def output(code: int, *arguments: object) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result.stdout


def python(code: str, *arguments: object) -> str:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_help_version_and_completion_import_no_heavy_package() -> None:
    """They start in a tenth of a second (benchmarks/start_up.py); numpy and onnx alone take longer."""
    code = (
        "import sys; import hlsgen.cli as cli; from typer.testing import CliRunner\n"
        "for words in (['--help'], ['--version'], []): CliRunner().invoke(cli.app, words)\n"
        "heavy = {'numpy', 'onnx', 'yaml', 'google', 'rich.markdown', 'hlsgen.driver', 'hlsgen.ir'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert python(code).strip() == "[]"


def test_help_says_all_of_every_command() -> None:
    shown = " ".join(output(0, "--help").split())
    assert [text for text in COMMANDS.values() if text not in shown] == []


def test_short_and_long_help_are_the_same() -> None:
    assert output(0, "-h") == output(0, "--help")
    for name, text in COMMANDS.items():
        long = output(0, name, "--help")
        assert output(0, name, "-h") == long
        assert " ".join(text.split()) in " ".join(long.split())


def test_help_groups_the_options_of_a_build() -> None:
    """Each option has one heading."""
    shown = output(0, "build", "--help")
    headings = [line[:-1] for line in shown.splitlines() if re.fullmatch(r"\w[\w ]*:", line)]
    assert headings[:2] == ["Arguments", "Options"]
    assert set(headings[2:]) == set(GROUPS)
    grouped = [name for names in GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(flag.name for flag in _flags())


def test_as_a_module() -> None:
    done = subprocess.run([sys.executable, "-m", "hlsgen", "--version"], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"hlsgen \d\S*\n", done.stdout)


@pytest.mark.sweep
@pytest.mark.parametrize(
    "words, wanted",
    [
        (["ver"], ["verify"]),
        (["verify", "--fr"], ["--frames"]),
        (["check", "--cal"], ["--calibrate"]),
        (["build", "--device", "ecp5"], ["ecp5-12k", "ecp5-25k", "ecp5-45k", "ecp5-85k"]),
        (["build", "--runtime", "onnxr"], ["onnxruntime", "onnxruntime-arm"]),
    ],
)
def test_completion_in_bash(words: list[str], wanted: list[str]) -> None:
    """The script of --show-completion, with the program that it calls."""
    program = Path(sys.executable).parent / "hlsgen"
    script = f"""eval "$({program} --show-completion bash)"
        COMP_WORDS=(hlsgen {" ".join(words)}) COMP_CWORD={len(words)}
        _hlsgen_completion {program}; echo "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == wanted


@pytest.mark.parametrize(
    "words, where, text",
    [
        (["check", DIGITS, "--lut"], "hlsgen check", "No such option: --lut"),
        (["check"], "hlsgen check", "Missing argument 'MODEL'."),
        (["build", DIGITS], "hlsgen build", "'--output'"),
        (["check", DIGITS, "--lanes", "two"], "hlsgen check", "Invalid value for '--lanes'"),
        (["chek", DIGITS], "hlsgen", "Did you mean 'check'?"),
    ],
)
def test_wrong_usage_with_json(words: list[object], where: str, text: str) -> None:
    data = json.loads(output(2, *words, "--json"))
    (problem,) = data["diagnostics"]
    assert (data["ok"], problem["code"], problem["node"]) == (False, "HG040", where)
    assert text in problem["message"]
    assert f"`{where} --help`" in problem["hint"]
    assert "{" not in output(2, *words)


@pytest.mark.sweep
def test_the_functions_are_not_hidden_by_packages_of_their_names() -> None:
    code = "import hlsgen.certify.checker, hlsgen; print(hlsgen.certify.__qualname__, hlsgen.Options().target)"
    assert python(code).split() == ["certify", "verilog"]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("digits") / "out"
    hlsgen.build(DIGITS, folder)
    return folder


def problem(*arguments: object) -> dict[str, str]:
    (found,) = json.loads(output(1, *arguments, "--json"))["diagnostics"]
    return dict(found)


def test_a_directory_given_as_model(build: Path, tmp_path: Path) -> None:
    found = problem("check", build)
    assert (found["code"], found["message"]) == ("HG001", "is a directory, not a model file.")
    assert str(build / "model.onnx") in found["hint"]
    assert "Name an .onnx, .tflite or .alir.json file" in problem("check", tmp_path)["hint"]


@pytest.mark.parametrize(
    "name, text", [("x.csv", "loadtxt('x.csv', delimiter=',')"), ("x.bin", "numpy.save"), ("x.npy", "numpy.save")]
)
def test_an_input_that_is_no_array(name: str, text: str, build: Path, tmp_path: Path) -> None:
    (tmp_path / name).write_text("1,2\n3,4\n")
    found = problem("run", build, "--input", tmp_path / name, "--output", tmp_path / "y.npy")
    assert (found["code"], found["message"]) == ("HG001", "is not a .npy or .npz file.")
    assert text in found["hint"]


@pytest.mark.parametrize(
    "shape, hint", [((64,), "[1, 64]: x[numpy.newaxis]"), ((5, 8, 8), "x.reshape(-1, 64)"), ((64, 5), "")]
)
def test_a_sample_of_another_shape(shape: tuple[int, ...], hint: str, build: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(shape, np.float32))
    found = problem("run", build, "--input", tmp_path / "x.npy", "--output", tmp_path / "y.npy")
    assert (found["code"], hint in found["hint"], bool(found["hint"])) == ("HG054", True, True)


def test_one_thing_is_singular(tmp_path: Path) -> None:
    """Of a core of one beat neither commands nor the report print "1 cycles", "1 words" and the like."""
    save(quantizer().model(), tmp_path / "m.onnx")
    said = output(0, "build", tmp_path / "m.onnx", "-o", tmp_path / "b", "--lanes", 4, "--bus-width", 256)
    assert "interval 1 cycle:" in said
    assert "a frame is 1 word at the input" in said
    texts = [said, (tmp_path / "b" / "report.md").read_text(), output(0, "certify", tmp_path / "b")]
    assert not [text for text in texts if re.search(r"\b1 (cycles|words|frames|layers|files|beats|inputs)\b", text)]
