"""Version and template files of the package: both libraries, the testbench, and templates of generated text."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import resources
from importlib.metadata import PackageNotFoundError, version

import jinja2


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
    """Sorted names of modules and of all library modules that they instantiate."""
    modules: set[str] = set()
    open_ = set(roots)
    while open_:
        name = open_.pop()
        modules.add(name)
        uses = modules_in(library_text("rtl", f"{name}.v"))
        open_ |= {u for u in uses if u not in modules and not u.startswith("hg_parameter_error")}
    return sorted(modules)


def modules_in(text: str, prefix: str = "") -> set[str]:
    """Library modules that a Verilog text instantiates under names with `prefix`."""
    return set(re.findall(rf"^\s*{re.escape(prefix)}(hg_\w+)\s*#?\s*\(", text, re.MULTILINE))


def scoped(text: str, prefix: str) -> str:
    """Adds `prefix` to the name of every library module in a Verilog text, also in comments."""
    return re.sub(r"\bhg_\w+", lambda name: prefix * (name[0] in library_modules()) + name[0], text)


@lru_cache(maxsize=1)
def environment() -> jinja2.Environment:
    """Jinja environment of the package; targets add filters."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("hlsgen.templates", "."),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


@lru_cache(maxsize=1)
def html_environment() -> jinja2.Environment:
    """Jinja environment that escapes values for HTML. It is cached: compiling a page takes longer than rendering it."""
    return environment().overlay(autoescape=True)


def render(template: str, **values: object) -> str:
    """Renders a template of the package, e.g. "verilog/top.v.j2"."""
    return environment().get_template(template).render(**values)


def headers_used(roots: set[str]) -> list[str]:
    """Sorted names of C++ headers and of all library headers that they include."""
    headers: set[str] = set()
    open_ = set(roots)
    while open_:
        name = open_.pop()
        headers.add(name)
        open_ |= set(re.findall(r'^#include "(\w+\.hpp)"', library_text("cpp/hg", name), re.MULTILINE)) - headers
    return sorted(headers)
