"""How plain names and sentences are, file by file: python tests/support/prose.py [--record] [PATH ...]

Prints each name and each sentence that is not plain, and a summary. `--record` writes the counts of all files to
tests/data/prose.json; tests compare with them, so that no file gets worse.

A name is empty if it does not say what the value is (`found`, `own`, `rest`). A sentence is not plain if it has more
than 28 words, begins with a relative clause, or holds a turn of phrase that readers stumble over.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "tests" / "data" / "prose.json"
#: Names that do not say what the value is.
EMPTY = frozenset(
    "about again apart asked before behind beside both direct done every far found given got held its kept known least "
    "left made mine more most much near one other others own rest same seen sent several taken there those together "
    "told upwards wanted way ways what where whole wide within".split()
)
#: First words of sentences that put the relative clause before the subject.
START = re.compile(
    r"(Of|What|Where|Whether|Whatever|Whoever|Who|Those|That|None|With|Behind|Without|But|So|In front)\b"
)
#: Turns of phrase that have a plain word.
PHRASES = re.compile(
    r"\b(what|behind|in front of|that of|those of|is asked for|are asked for|held against|is told|are told|stands?|"
    r"goes far|comes late|dear|takers?|whoever|whatever|so many|none of)\b",
    re.IGNORECASE,
)
LONGEST = 28
#: What counts of a file, in the order of the record.
KINDS = ("names", "long", "start", "phrase")


@dataclass
class Figures:
    """Counts of one file, or of many: `counts` by kind, and what they are counted of."""

    counts: Counter[str] = field(default_factory=Counter)
    assignments: int = 0
    sentences: int = 0
    words: int = 0
    lines: list[str] = field(default_factory=list)

    def add(self, other: Figures) -> None:
        self.counts += other.counts
        self.assignments += other.assignments
        self.sentences += other.sentences
        self.words += other.words
        self.lines += other.lines

    def share(self, kind: str) -> float:
        """Of all assignments, sentences or, for phrases, thousand words."""
        total = {"names": self.assignments, "phrase": self.words / 1000}.get(kind, self.sentences)
        return self.counts[kind] / total if total else 0.0

    def __str__(self) -> str:
        return (
            f"{self.counts['names']} empty names ({self.share('names'):.1%} of the assignments); "
            f"{self.sentences} sentences: {self.words / max(self.sentences, 1):.1f} words each, {self.share('long'):.1%} over {LONGEST}, "
            f"{self.share('start'):.1%} odd starts, {self.share('phrase'):.1f} phrases a thousand words"
        )


def files(root: Path = ROOT) -> list[Path]:
    """All files whose names and sentences readers see."""
    pages = [root / "README.md", root / "CHANGELOG.md", *(root / "docs").glob("*.md")]
    library = [path for path in (root / "templates").rglob("*") if path.suffix in (".v", ".hpp", ".h")]
    return sorted([*pages, *library, *(root / "hlsgen").rglob("*.py")])


def figures(path: Path) -> Figures:
    """The figures of one file."""
    found = Figures()
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        for line, name in _names(ast.parse(text), found):
            found.counts["names"] += 1
            found.lines.append(f"{path}:{line}: name {name}")
    for line, part in _texts(path, text):
        for sentence in sentences(part):
            _judge(sentence, f"{path}:{line}", found)
    return found


def sentences(text: str) -> list[str]:
    """Sentences of four words or more in prose; code, tables, headings and links' targets are left out."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    text = re.sub(r"^(\||#|=|\.\. |\s{4}).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`+[^`]*`+", "CODE", text)
    text = re.sub(r"<!--.*?-->|<[^>]+>", "", text, flags=re.DOTALL)
    blocks = re.split(r"\n\s*\n|\n\s*[-*] |\n\d+\. ", text)
    parts = (part for block in blocks for part in re.split(r"(?<=[.!?:;])\s+(?=[A-Z`(])", " ".join(block.split())))
    return [part for part in parts if len(part.split()) >= 4]


def _judge(sentence: str, place: str, found: Figures) -> None:
    words = len(sentence.split())
    phrases = [match.lower() for match in PHRASES.findall(sentence)]
    kinds = [*["long"] * (words > LONGEST), *["start"] * bool(START.match(sentence)), *["phrase"] * len(phrases)]
    found.sentences += 1
    found.words += words
    found.counts.update(kinds)
    if kinds:
        found.lines.append(f"{place}: {', '.join([*dict.fromkeys(kinds), *phrases])}: {sentence[:160]}")


def _names(tree: ast.AST, found: Figures) -> Iterator[tuple[int, str]]:
    """Empty names of variables, parameters and functions with their lines; counts all assignments."""
    for node in ast.walk(tree):
        name = ""
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
            found.assignments += 1
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            name = node.name
        if name.strip("_") in EMPTY:
            yield node.lineno, name


def _texts(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """Prose of a file with the line that it begins in: pages, docstrings, comments of Verilog and C++."""
    if path.suffix == ".md":
        yield 1, text
    elif path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                yield getattr(node, "lineno", 1), ast.get_docstring(node) or ""
    else:
        comments = (re.match(r"\s*//+\s?(.*)", line) for line in text.split("\n"))
        yield 1, "\n".join(match[1] if match else "" for match in comments)


def counts(path: Path) -> list[int]:
    """The counts of a file in the order of `KINDS`."""
    found = figures(path).counts
    return [found[kind] for kind in KINDS]


def main() -> None:
    arguments = [argument for argument in sys.argv[1:] if argument != "--record"]
    if "--record" in sys.argv:
        table = {path.relative_to(ROOT).as_posix(): counts(path) for path in files()}
        rows = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in table.items() if any(row)]
        RECORD.write_text("{\n" + ",\n".join(rows) + "\n}\n")
        return
    total = Figures()
    for argument in arguments or [str(ROOT)]:
        path = Path(argument)
        inside = [one for one in path.rglob("*") if one.suffix in (".py", ".md", ".v", ".hpp", ".h")]
        for one in files() if not arguments else sorted(inside) if path.is_dir() else [path]:
            total.add(figures(one))
    print("\n".join(total.lines))
    print(total)


if __name__ == "__main__":
    main()
