"""The package's version and its template files: the Verilog library and the testbench."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import resources
from importlib.metadata import PackageNotFoundError, version


def tool_version() -> str:
    """Version of the installed package."""
    try:
        return version("hlsgen")
    except PackageNotFoundError:
        return "unknown"


@lru_cache(maxsize=256)
def library_text(folder: str, name: str) -> str:
    """A file of the package's templates, verbatim."""
    return resources.files("hlsgen.templates").joinpath(folder).joinpath(name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def library_modules() -> frozenset[str]:
    """The names of all modules of the library."""
    files = resources.files("hlsgen.templates").joinpath("rtl").iterdir()
    return frozenset(file.name.removesuffix(".v") for file in files if file.name.endswith(".v"))


def modules_used(roots: set[str]) -> list[str]:
    """Library modules that the given ones instantiate, themselves included, sorted."""
    found: set[str] = set()
    open_ = set(roots)
    while open_:
        name = open_.pop()
        found.add(name)
        uses = re.findall(r"^\s*(hg_\w+)\s*#?\s*\(", library_text("rtl", f"{name}.v"), re.MULTILINE)
        open_ |= {u for u in uses if u not in found and not u.startswith("hg_parameter_error")}
    return sorted(found)
