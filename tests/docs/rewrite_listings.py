"""Write the output of commands into the listings of the pages, for example after a change of estimates.

    python tests/docs/rewrite_listings.py                 listings of commands that do not simulate, in all pages
    python tests/docs/rewrite_listings.py README.md       of this page
    python tests/docs/rewrite_listings.py --simulate      and those of commands that simulate, which take minutes

Read the difference before you commit it: sentences beside a listing may quote its numbers. Listings marked `text`
show the output of other tools, and stay.
"""

from __future__ import annotations

import os
import sys
import tempfile
from difflib import SequenceMatcher
from itertools import groupby
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]

from test_listings import FAST, PAGES, ROOT, SLOW, commands, name, prepare, printed  # noqa: E402


def most_similar(old: list[str], new: list[str]) -> int:
    """Index in `new` of the lines that resemble `old` most."""
    places = range(max(1, len(new) - len(old) + 1))
    text = "\n".join(old)
    return max(places, key=lambda n: SequenceMatcher(None, text, "\n".join(new[n : n + len(old)])).ratio())


def updated(shown: list[str], output: list[str]) -> list[str]:
    """The listing with the lines of `output`; each `...` keeps its place."""
    parts = [(left_out, list(lines)) for left_out, lines in groupby(shown, lambda line: line == "...")]
    result: list[str] = []
    for n, (left_out, lines) in enumerate(parts):
        if left_out:
            result += lines
            continue
        if len(parts) == 1:
            count = len(output)
        elif n == len(parts) - 1:
            output, count = output[-len(lines) :], len(lines)
        else:
            output, count = output[most_similar(lines, output) if n else 0 :], len(lines)
        result, output = result + output[:count], output[count:]
    return result


def rewrite(page: Path, folder: Path, prefixes: tuple[str, ...]) -> int:
    """Rewrite the listings of a page; return the number of changed ones."""
    (folder / "examples").symlink_to(ROOT / "examples")
    os.chdir(folder)
    text, changed = page.read_text(encoding="utf-8"), 0
    for command in commands(page):
        if not command.text.startswith(prefixes):
            continue
        prepare(page, command.text, folder)
        output = printed(command.text, page)
        if command.shown is not None:
            old = f"$ {command.text}\n{command.shown}\n"
            new = "\n".join([f"$ {command.text}", *updated(command.shown.splitlines(), output.splitlines()), ""])
            changed += old != new
            text = text.replace(old, new)
    page.write_text(text, encoding="utf-8")
    return changed


if __name__ == "__main__":
    prefixes = (*FAST, *SLOW) if "--simulate" in sys.argv else FAST
    chosen = [Path(argument).resolve() for argument in sys.argv[1:] if argument != "--simulate"] or PAGES
    for page in chosen:
        with tempfile.TemporaryDirectory() as folder:
            print(f"{name(page)}: {rewrite(page, Path(folder), prefixes)} listings changed", flush=True)
