"""The house rules: one direction of imports, a top level without logic, packaged templates."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

import pytest
from paths import DATA, ROOT

import hlsgen
from hlsgen.library import licence_line

PACKAGE = ROOT / "hlsgen"
#: Packages from what everything may use to what uses everything. Those of one line do not know each other.
ORDER = (
    ("diagnostics", "installation", "library"),
    ("file_writing",),
    ("devices", "numerics"),
    ("ir", "lut_network"),
    ("interpreter",),
    ("adder_graph", "frontend", "passes", "rescale"),
    ("dataflow", "quantization"),
    ("cycle_model",),
    ("hls", "testbench", "verilog"),
    ("host",),
    ("artifacts",),
    ("driver",),
    ("simulation",),
    ("certify", "synthesis"),
    ("explore", "packaging"),
    ("",),
    ("cli",),
)
#: What the independent checker may use.
CERTIFY = {"diagnostics", "library", "numerics", "ir", "frontend", "passes"}


def _package(module: str) -> str:
    name = ([*module.split("."), ""])[1]
    return "cli" if name == "__main__" else name


def _rank(module: str) -> int:
    return next(n for n, packages in enumerate(ORDER) if _package(module) in packages)


def _imports(path: Path, modules: set[str]) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("hlsgen"):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in modules else node.module)
        elif isinstance(node, ast.Import):
            found |= {a.name for a in node.names if a.name.startswith("hlsgen")}
    return found


@cache
def _modules() -> dict[str, set[str]]:
    """What each module imports, by name."""
    paths = {p.relative_to(ROOT).with_suffix("").as_posix().replace("/", "."): p for p in PACKAGE.rglob("*.py")}
    names = {*paths, *(name.removesuffix(".__init__") for name in paths)}
    return {name.removesuffix(".__init__"): _imports(path, names) for name, path in paths.items()}


@pytest.mark.sweep
def test_imports_go_one_way() -> None:
    assert len(ORDER) <= 18
    wrong = []
    for module, targets in _modules().items():
        for target in targets:
            if _package(target) != _package(module) and _rank(target) >= _rank(module):
                wrong.append(f"{module} imports {target}")
    assert not wrong


@pytest.mark.sweep
def test_no_module_imports_itself_in_a_circle() -> None:
    modules = _modules()
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path, module))
        if module not in done:
            for target in modules.get(module, ()):
                if target != module:
                    visit(target, (*path, module))
            done.add(module)

    for module in modules:
        visit(module, ())


@pytest.mark.sweep
def test_the_checker_stands_alone() -> None:
    used = {
        _package(target) for module, found in _modules().items() if _package(module) == "certify" for target in found
    }
    assert used <= CERTIFY | {"certify"}
    for module, found in _modules().items():
        assert not any(_package(target) == "certify" for target in found) or _package(module) in ("certify", ""), module


def test_who_knows_onnx() -> None:
    """The frontend, the interpreter, the quantizer, and the independent checks of the ONNX file."""
    oracle = {
        f"{name}.py"
        for name in (
            "oracles",
            "unrolled_file",
            "reference_evaluator",
            "exact_attention",
            "exact_nodes",
            "exact_pools",
            "exact_softmax",
            "exact_values",
            "explanation",
            "file_pieces",
            "file_oracle",
            "host_quantizer",
            "fused_nodes",
            "host_rounding",
            "whole_file",
        )
    }
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text()
        if re.search(r"^\s*(import onnx|from onnx)", text, re.MULTILINE):
            known = {"frontend", "interpreter", "quantization", "second_reading"} & set(path.parts)
            assert known or (path.parent.name == "simulation" and path.name in oracle), path


@pytest.mark.parametrize("name", ["floor_ceil", "bin_tern"])
def test_top_level_holds_only_wiring(name: str) -> None:
    build = hlsgen.check(DATA / f"{name}.onnx", hlsgen.Options(input="float32"))
    text = re.sub(r"//.*|\(\* X_INTERFACE_\w+ = \"[\w :.,]*\" \*\)", "", build.files[f"rtl/{name}.v"].decode())
    assert not re.search(r"\b(always|assign|reg|initial|case|if)\b", text)
    assert not re.search(r"[-+*/?&|^~]", re.sub(r"\(-\d+\)", "()", text))


def test_no_word_of_a_workplace() -> None:
    pattern = re.compile("|".join(["/" + "work/", "/tmp" + "/v", r"\bthis session\b"]))
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    for name in tracked:
        if not name.endswith((".onnx", ".png", ".npy")) and (ROOT / name).is_file():
            assert not pattern.search((ROOT / name).read_text(errors="replace")), name


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy: two processes that build in one folder at a time disturb each other."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in ("hlsgen", "templates", "examples/digits"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return next(folder.glob("hlsgen-*.whl"))


@pytest.mark.sweep
def test_wheel_holds_all_templates(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    for path in (ROOT / "templates").rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            assert f"hlsgen/templates/{path.relative_to(ROOT / 'templates').as_posix()}" in names
    assert "hlsgen/example/digits_mlp.onnx" in names


@pytest.mark.sweep
def test_installed_wheel_builds(wheel: Path, tmp_path: Path) -> None:
    """From the wheel alone, away from the source tree."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--target",
        str(tmp_path / "site"),
        str(wheel),
    ]
    subprocess.run(command, check=True, capture_output=True)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import hlsgen; assert sys.argv[1] in hlsgen.__file__;"
        "hlsgen.build(sys.argv[2], sys.argv[3]); from hlsgen.library import example_model; assert example_model()"
    )
    arguments = [str(tmp_path / "site"), str(DATA / "bin_tern.onnx"), str(tmp_path / "out")]
    subprocess.run([sys.executable, "-I", "-c", code, *arguments], check=True, cwd=tmp_path)
    emitted = (tmp_path / "out" / "rtl" / "bin_tern_hg_mvu.v").read_text()
    template = licence_line("hg_mvu.v") + (ROOT / "templates" / "rtl" / "hg_mvu.v").read_text()
    assert emitted.replace("bin_tern_hg_", "hg_") == template
    assert (tmp_path / "out" / "tb" / "run.py").exists()


def test_names_of_test_modules_are_unique() -> None:
    """Both folders are on the path of every test."""
    both = {path.name for path in (ROOT / "tests").glob("*.py")} & {p.name for p in (ROOT / "rtl_tests").glob("*.py")}
    assert both <= {"conftest.py"}
