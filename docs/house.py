"""Draw the packages of hlsgen and list them in a table, both from the code: `python docs/house.py`.

Writes docs/images/house.svg, and the table of docs/architecture.md between its two markers. Each package is drawn above
all packages that it imports. An arrow is left out if a longer path implies it. The sentences are the docstrings'.
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
    """Packages and single modules of hlsgen/ by name; the public interface is called hlsgen."""
    path_by_name = {p.parent.name: p for p in sorted(PACKAGE.glob("*/__init__.py"))}
    path_by_name |= {p.stem: p for p in sorted(PACKAGE.glob("*.py")) if not p.stem.startswith("__")}
    return {**path_by_name, "hlsgen": PACKAGE / "__init__.py"}


def modules(name: str, path: Path) -> list[Path]:
    """All files of a package."""
    return sorted(path.parent.rglob("*.py")) if path.name == "__init__.py" and name != "hlsgen" else [path]


def imports(path: Path, names: set[str]) -> set[str]:
    """The packages that a file imports from."""
    imported: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "hlsgen":
            parts = (node.module or "").split(".")
            imported |= {parts[1]} if len(parts) > 1 else {a.name if a.name in names else "hlsgen" for a in node.names}
        elif isinstance(node, ast.Import) and any(a.name == "hlsgen" for a in node.names):
            imported.add("hlsgen")
    return imported


def uses() -> dict[str, set[str]]:
    """Package -> the packages that it imports."""
    path_by_name = packages()
    return {
        name: set().union(*(imports(file, set(path_by_name)) for file in modules(name, path))) - {name}
        for name, path in path_by_name.items()
    }


def floors(graph: dict[str, set[str]]) -> dict[str, int]:
    """The height of each package: one above the highest package that it imports."""
    heights: dict[str, int] = {}

    def height(name: str, importers: tuple[str, ...]) -> int:
        if name in importers:
            raise SystemExit(f"packages import each other in a circle: {' -> '.join((*importers, name))}")
        if name not in heights:
            heights[name] = 1 + max((height(lower, (*importers, name)) for lower in sorted(graph[name])), default=-1)
        return heights[name]

    for name in graph:
        height(name, ())
    return heights


def shortest_edges(graph: dict[str, set[str]]) -> set[tuple[str, str]]:
    """The imports that no longer path implies (the transitive reduction)."""

    def reachable(name: str) -> set[str]:
        return set().union(graph[name], *(reachable(lower) for lower in graph[name]))

    return {
        (name, lower)
        for name, imported in graph.items()
        for lower in imported
        if not any(lower in reachable(middle) for middle in imported - {lower})
    }


def draw(folder: Path) -> None:
    """Write house.svg."""
    graph, path_by_name = uses(), packages()
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
    for name, lower in sorted(shortest_edges(graph)):
        (x, y), (u, v) = place[name], place[lower]
        shift = (u - x) / (widest * ACROSS) * WIDTH / 2
        svg.line([(x + WIDTH / 2 + shift, y + HEIGHT), (u + WIDTH / 2 - shift, v)], "#9aa0a6", 1.2, arrow=True)
    for name, (x, y) in place.items():
        svg.box(x, y, WIDTH, HEIGHT, PALE)
        svg.text(x + 8, y + 18, name, size=14)
        for n, line in enumerate(textwrap.wrap(sentence(path_by_name[name]), 39)[:3]):
            svg.text(x + 8, y + 36 + 14 * n, line, size=11)
    svg.save("house.svg", folder)


def table() -> str:
    """Every package in a Markdown table, from the top of the house to its ground."""
    heights, path_by_name = floors(uses()), packages()
    lines = ["| package | purpose |", "|---|---|"]
    for name in sorted(path_by_name, key=lambda name: (-heights[name], name)):
        path = path_by_name[name]
        is_folder = path.name == "__init__.py" and name != "hlsgen"
        title = f"{name}/" if is_folder else "__init__.py" if name == "hlsgen" else f"{name}.py"
        lines.append(f"| `{title}` | {sentence(path)} |")
    return "\n".join(lines)


def page(text: str) -> str:
    """The page with the table of today."""
    start, remainder = text.split(BEGIN)
    return f"{start}{BEGIN}\n\n{table()}\n\n{END}{remainder.split(END)[1]}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images", metavar="FOLDER")
    folder = parser.parse_args().out
    draw(folder)
    target = ROOT / "docs" / "architecture.md"
    (target if folder.parent == target.parent else folder / "architecture.md").write_text(page(target.read_text()))
