"""Hooks of mkdocs: pages of the repository outside docs/ go into the site, and links lead where they do on GitHub.

A link to a file that is no page, such as a program or a model, becomes its name.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
#: Pages outside docs/: path in the repository -> path in the site.
OUTSIDE = {
    "README.md": "index.md",
    **{name: name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")},
    **{
        path.relative_to(ROOT).as_posix(): path.relative_to(ROOT).as_posix()
        for path in sorted(ROOT.glob("examples/**/*.md"))
    },
}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages, and the pictures that they show."""
    for source, place in OUTSIDE.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    for path in sorted(ROOT.glob("examples/**/*.png")):
        name = path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, files: Files, **_: Any) -> str:
    """The text with links between pages of the site."""
    place = page.file.src_uri
    source = next((name for name, site in OUTSIDE.items() if site == place), f"docs/{place}")

    def linked(match: re.Match[str]) -> str:
        picture, text, target = match.groups()
        name, _, anchor = target.partition("#")
        if "://" in target or not name:
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), name))
        site = OUTSIDE.get(path, path.removeprefix("docs/"))
        if files.get_file_from_path(site) is None:
            return text
        relative = posixpath.relpath(site, posixpath.dirname(place) or ".")
        return f"{picture}[{text}]({relative}{'#' + anchor if anchor else ''})"

    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.M | re.S)
    return "".join(part if part.startswith("```") else LINK.sub(linked, part) for part in parts)
