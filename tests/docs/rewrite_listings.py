"""Write what commands print today into the listings of the pages: after a change of estimates, say.

    python tests/docs/rewrite_listings.py                 listings of commands that do not simulate, in all pages
    python tests/docs/rewrite_listings.py README.md       of this page
    python tests/docs/rewrite_listings.py --simulate      and those of commands that simulate, which take minutes

Look at the difference before you commit it: sentences beside a listing may quote its numbers. Listings marked `text`
show what other tools measured, and stay.
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


def likest(old: list[str], new: list[str]) -> int:
    """Where in `new` the lines are that are most like `old`."""
    places = range(max(1, len(new) - len(old) + 1))
    text = "\n".join(old)
    return max(places, key=lambda n: SequenceMatcher(None, text, "\n".join(new[n : n + len(old)])).ratio())


def renewed(shown: list[str], got: list[str]) -> list[str]:
    """The listing with the lines of `got`; each `...` stands where it stood."""
    parts = [(left_out, list(lines)) for left_out, lines in groupby(shown, lambda line: line == "...")]
    result: list[str] = []
    for n, (left_out, lines) in enumerate(parts):
        if left_out:
            result += lines
            continue
        if len(parts) == 1:
            taken = len(got)
        elif n == len(parts) - 1:
            got, taken = got[-len(lines) :], len(lines)
        else:
            got, taken = got[likest(lines, got) if n else 0 :], len(lines)
        result, got = result + got[:taken], got[taken:]
    return result


def rewrite(page: Path, folder: Path, wanted: tuple[str, ...]) -> int:
    """The number of listings that are others now."""
    (folder / "examples").symlink_to(ROOT / "examples")
    os.chdir(folder)
    text, changed = page.read_text(encoding="utf-8"), 0
    for one in commands(page):
        if not one.text.startswith(wanted):
            continue
        prepare(page, one.text, folder)
        got = printed(one.text, page)
        if one.shown is not None:
            old = f"$ {one.text}\n{one.shown}\n"
            new = "\n".join([f"$ {one.text}", *renewed(one.shown.splitlines(), got.splitlines()), ""])
            changed += old != new
            text = text.replace(old, new)
    page.write_text(text, encoding="utf-8")
    return changed


if __name__ == "__main__":
    wanted = (*FAST, *SLOW) if "--simulate" in sys.argv else FAST
    chosen = [Path(given).resolve() for given in sys.argv[1:] if given != "--simulate"] or PAGES
    for page in chosen:
        with tempfile.TemporaryDirectory() as folder:
            print(f"{name(page)}: {rewrite(page, Path(folder), wanted)} listings changed", flush=True)
