"""The packages of hlsgen as a drawing and as a table, both made from the code: `python docs/house.py`.

Writes docs/images/house.svg, and the tables of docs/architecture.md between its two markers. A package stands above
all that it imports. Arrows that a longer way implies are left out. The sentences are those of the docstrings.
"""

from __future__ import annotations

import argparse
import ast
import textwrap
from pathlib import Path

from images.draw import PALE, Svg

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "hlsgen"
BEGIN, END = "<!-- made by docs/house.py -->", "<!-- end -->"
WIDTH, HEIGHT, ACROSS, DOWN = 250, 74, 290, 118


def sentence(path: Path) -> str:
    """The first paragraph of a module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


def packages() -> dict[str, Path]:
    """Folders and single modules below hlsgen/, by name; the library's face is called hlsgen."""
    found = {p.parent.name: p for p in sorted(PACKAGE.glob("*/__init__.py"))}
    found |= {p.stem: p for p in sorted(PACKAGE.glob("*.py")) if not p.stem.startswith("__")}
    return {**found, "hlsgen": PACKAGE / "__init__.py"}


def modules(name: str, path: Path) -> list[Path]:
    """All files of a package."""
    return sorted(path.parent.rglob("*.py")) if path.name == "__init__.py" and name != "hlsgen" else [path]


def imports(path: Path, names: set[str]) -> set[str]:
    """The packages that a file imports from."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "hlsgen":
            parts = (node.module or "").split(".")
            found |= {parts[1]} if len(parts) > 1 else {a.name if a.name in names else "hlsgen" for a in node.names}
        elif isinstance(node, ast.Import) and any(a.name == "hlsgen" for a in node.names):
            found.add("hlsgen")
    return found


def uses() -> dict[str, set[str]]:
    """Package -> the packages that it imports."""
    all_ = packages()
    return {
        name: set().union(*(imports(file, set(all_)) for file in modules(name, path))) - {name}
        for name, path in all_.items()
    }


def floors(graph: dict[str, set[str]]) -> dict[str, int]:
    """The height of each package: one above the highest that it imports."""
    heights: dict[str, int] = {}

    def height(name: str, above: tuple[str, ...]) -> int:
        if name in above:
            raise SystemExit(f"packages import each other in a circle: {' -> '.join((*above, name))}")
        if name not in heights:
            heights[name] = 1 + max((height(other, (*above, name)) for other in sorted(graph[name])), default=-1)
        return heights[name]

    for name in graph:
        height(name, ())
    return heights


def direct(graph: dict[str, set[str]]) -> set[tuple[str, str]]:
    """The arrows that no longer way implies."""

    def reached(name: str) -> set[str]:
        return set().union(graph[name], *(reached(other) for other in graph[name]))

    return {
        (name, other)
        for name, others in graph.items()
        for other in others
        if not any(other in reached(between) for between in others - {other})
    }


def draw(folder: Path) -> None:
    """house.svg."""
    graph, all_ = uses(), packages()
    heights = floors(graph)
    top = max(heights.values())
    rows = [sorted(name for name, height in heights.items() if height == top - n) for n in range(top + 1)]
    widest = max(map(len, rows))
    svg = Svg(widest * ACROSS + 20, (top + 1) * DOWN + 10)
    place = {
        name: (20 + (widest - len(row)) * ACROSS / 2 + n * ACROSS, 10 + level * DOWN)
        for level, row in enumerate(rows)
        for n, name in enumerate(row)
    }
    for name, other in sorted(direct(graph)):
        (x, y), (u, v) = place[name], place[other]
        shift = (u - x) / (widest * ACROSS) * WIDTH / 2
        svg.line([(x + WIDTH / 2 + shift, y + HEIGHT), (u + WIDTH / 2 - shift, v)], "#9aa0a6", 1.2, arrow=True)
    for name, (x, y) in place.items():
        files = modules(name, all_[name])
        svg.box(x, y, WIDTH, HEIGHT, PALE)
        svg.text(x + 8, y + 18, name, size=14)
        svg.text(x + WIDTH - 8, y + 18, f"{len(files)} module{'s' * (len(files) > 1)}", "end", 11, "#777")
        for n, line in enumerate(textwrap.wrap(sentence(all_[name]), 39)[:3]):
            svg.text(x + 8, y + 36 + 14 * n, line, size=11)
    svg.save("house.svg", folder)


def tables() -> str:
    """Every package with its modules, as Markdown, from the top of the house to its ground."""
    heights, all_ = floors(uses()), packages()
    parts = []
    for name in sorted(all_, key=lambda name: (-heights[name], name)):
        path = all_[name]
        folder = path.name == "__init__.py" and name != "hlsgen"
        title = f"{name}/" if folder else "__init__.py" if name == "hlsgen" else f"{name}.py"
        parts.append(f"**`{title}`** {sentence(path)}\n")
        rows = [p for p in modules(name, path) if p != path]
        if rows:
            table = [
                f"| `{p.relative_to(path.parent).as_posix().replace('__init__.py', '')}` | {sentence(p)} |"
                for p in rows
            ]
            parts.append("\n".join(["| module | what it holds |", "|---|---|", *table]) + "\n")
    return "\n".join(parts)


def page(text: str) -> str:
    """The page with the tables of today."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n\n{tables()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images", metavar="FOLDER")
    folder = parser.parse_args().out
    draw(folder)
    target = ROOT / "docs" / "architecture.md"
    (target if folder.parent == target.parent else folder / "architecture.md").write_text(page(target.read_text()))
