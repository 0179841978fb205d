"""Names on the pages exist: modules, their contents, files, and the imports of Python examples."""

from __future__ import annotations

import ast
import builtins
import importlib
import pkgutil
import re
import subprocess
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import onnx
import pytest
from paths import ROOT

import hlsgen

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md")])
#: Packages of others, and the parts of a manifest.
OTHERS = {"concurrent", "torch", "onnx", "qonnx", "finn", "com", "host", "input", "output", "numpy", "tf"}
#: Endings of files of a build or of a user, which are not in the repository.
DATA = r"\.(jsonl|json|html|yaml|onnx|tflite|wav|mem|hex|f|npy|npz|hpp|cpp|cfg|tcl|h|c)"
#: Files of packages for LiteX.
LITEX = ROOT / "templates" / "project" / "litex"
BUILT = {"soc/soc.v", "rtl/digits_mlp.v", "rtl/digits_cnn.v", "report.md"} | {
    f"host/digits{end}" for end in (".py", ".c", "_selftest.c")
}
BUILT |= {f"{folder}{path.stem}" for path in LITEX.iterdir() for folder in ("", "litex/")}


@cache
def tracked() -> tuple[str, ...]:
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return tuple(f"/{name}" for name in listing.stdout.split())


@cache
def modules() -> dict[str, ModuleType]:
    names = [info.name for info in pkgutil.walk_packages(hlsgen.__path__, "hlsgen.")]
    return {name: importlib.import_module(name) for name in ["hlsgen", *names] if not name.endswith("__main__")}


@cache
def sources() -> str:
    paths = [*(ROOT / "hlsgen").rglob("*.py"), *LITEX.iterdir()]
    return "\n".join(path.read_text(encoding="utf-8") for path in paths)


def has(item: Any, names: list[str]) -> bool:
    """True if item.name.name ... exists, fields of dataclasses included."""
    for name in names:
        if name in getattr(item, "__annotations__", {}):
            return True
        if not hasattr(item, name):
            return False
        item = getattr(item, name)
    return True


def resolves(name: str) -> bool:
    """True if it names a module (the end of its path suffices), or a member of a module or of a class."""
    parts = name.split(".")
    for path, module in modules().items():
        if has(module, parts):
            return True
        for n in range(1, len(parts) + 1):
            if f".{path}".endswith("." + ".".join(parts[:n])) and has(module, parts[n:]):
                return True
    return False


def missing(text: str) -> str:
    """The kind of thing that a name in backticks lacks; empty if it exists, or is not our name."""
    name = re.sub(r"\(.*\)$", "", text.strip())
    if re.fullmatch(r"[\w./-]+\.(py|v|j2|md|toml|svg)", name):
        folder, _, file = name.rpartition("/")
        if "NAME" in file or name in BUILT:
            return "" if name in BUILT or any(f"/{folder}/" in path for path in tracked()) or not folder else "folder"
        return "" if any(path.endswith(f"/{name}") for path in tracked()) else "file"
    if re.fullmatch(r"[\w/]+/", name) and name.islower():
        is_known = any(f"/{name}" in path for path in tracked()) or name in (
            "rtl/",
            "tb/",
            "hls/",
            "results/",
            "digits/",
        )
        return "" if is_known else "folder"
    if re.fullmatch(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+", name):
        if name.split(".")[0] in OTHERS or re.search(DATA + "$", name) or "NAME" in name:
            return ""
        return "" if resolves(name) else "name"
    if re.fullmatch(r"[A-Z][a-z]\w*", name):
        is_known = re.search(rf"\b{name}\b", sources()) or hasattr(builtins, name) or name in operators()
        return "" if is_known else "class or operator"
    return ""


@cache
def operators() -> set[str]:
    return {schema.name for schema in onnx.defs.get_all_schemas_with_history()}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_names_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    plain = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    wrong = {name: missing(name) for name in re.findall(r"`([^`\n]+)`", plain) if missing(name)}
    assert not wrong
    for code in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S):
        for line in re.findall(r"^(?:from|import) hlsgen.*", code, re.M):
            (node,) = ast.parse(line).body
            imported = modules()[node.module or ""] if isinstance(node, ast.ImportFrom) else hlsgen
            assert isinstance(node, ast.ImportFrom | ast.Import)
            for alias in node.names:
                assert isinstance(node, ast.Import) or hasattr(imported, alias.name), line


def test_names_that_do_not_exist_are_found() -> None:
    assert missing("rescale/realize/nothing.py") == "file"
    assert missing("hlsgen.nothing.more()") == "name"
    assert missing("ThresholdTable.nothing") == "name"
    assert missing("Nothingness") == "class or operator"
    assert missing("nothing/NAME.py") == "folder"
    assert missing("nothing/") == "folder"
    for name in (
        "rescale/realize/rank.py",
        "hlsgen.verify",
        "ThresholdTable.corners()",
        "evaluate.apply",
        "Rank",
        "ir/",
    ):
        assert not missing(name), name
