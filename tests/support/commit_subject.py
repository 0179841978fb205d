"""Checks the subject of a commit message, as a hook of pre-commit: python tests/support/commit_subject.py FILE"""

from __future__ import annotations

import re
import sys
from pathlib import Path

LONGEST = 72
#: An area, then a verb in the imperative.
SHAPE = re.compile(r"[\w./-]+(\([\w./-]+\))?: (?P<verb>[a-z-]+) \S")
#: Endings of verbs that are not imperative.
_OTHER_FORMS = re.compile(r"\w+(ing|ed)$")
_IMPERATIVES = frozenset(
    ("embed", "exceed", "feed", "need", "proceed", "seed", "speed", "bring", "string", "shed", "wed")
)


def problem_of(message: str) -> str | None:
    """The problem of a commit message, in one line; None if there is none."""
    subject = message.split("\n", 1)[0]
    if subject.startswith(("Merge ", "Revert ", "fixup! ", "squash! ")):
        return None
    if len(subject) > LONGEST:
        return f"the subject has {len(subject)} characters, more than {LONGEST}"
    match = SHAPE.match(subject)
    if match is None:
        return "the subject is not `area: verb ...` with a verb in lower case"
    verb = match["verb"]
    if _OTHER_FORMS.match(verb) and verb not in _IMPERATIVES:
        return f"the subject begins with {verb!r}; use the imperative"
    return None


if __name__ == "__main__":
    problem = problem_of(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if problem:
        sys.exit(f"{problem}.")
