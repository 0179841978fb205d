"""The one Jinja environment, and the package's template files."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import resources

import jinja2

from hlsgen.binding.words import Bits, Parameter


def constant(value: Parameter) -> str:
    """A Verilog constant: integers plainly, strings quoted, `Bits` as sized hexadecimal."""
    match value:
        case Bits(width, number):
            return f"{width}'h{number & ((1 << width) - 1):x}"
        case str():
            return f'"{value}"'
        case _:
            return str(value)


def identifier(text: str) -> str:
    """The nearest Verilog identifier."""
    name = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_") or "top"
    return f"m_{name}" if name[0].isdigit() else name


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    env = jinja2.Environment(
        loader=jinja2.PackageLoader("hlsgen.templates", "."),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    env.filters["constant"] = constant
    return env


def render(template: str, **values: object) -> str:
    """Renders a template of the package, e.g. "verilog/top.v.j2"."""
    return _environment().get_template(template).render(**values)


@lru_cache(maxsize=256)
def library_text(folder: str, name: str) -> str:
    """A file of the package's templates, verbatim."""
    return resources.files("hlsgen.templates").joinpath(folder).joinpath(name).read_text(encoding="utf-8")


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
