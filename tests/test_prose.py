"""Names and sentences are plain: no file gets worse, and the checkers find what they should."""

from __future__ import annotations

import json

import commit_subject
import prose
import pytest


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("The unit emits a frame in eight cycles.", []),
        ("Of those the first is taken.", ["start"]),
        ("It emits what the layer in front of it sends.", ["phrase", "phrase"]),
        ("word " * 29, ["long"]),
        ("`what` is code here, and nothing else.", []),
        ("| what | a table |", []),
    ],
)
def test_sentences_are_judged(text: str, kinds: list[str]) -> None:
    total = prose.Figures()
    for sentence in prose.sentences(text):
        prose._judge(sentence, "place", total)
    assert list(total.counts.elements()) == kinds


@pytest.mark.parametrize(
    ("subject", "problem"),
    [
        ("cycle_model: cap the FIFO search at the shared bound", None),
        ("hg_mvu: cover four tables\n\nBody of any length. " + "word " * 30, None),
        ("Merge branch 'x'", None),
        ("cycle_model: " + "cap " * 20, "characters"),
        ("Refreshed digests", "area: verb"),
        ("bench: refreshed digests", "imperative"),
    ],
)
def test_commit_subjects_are_checked(subject: str, problem: str | None) -> None:
    answer = commit_subject.problem_of(subject)
    assert (answer is None) == (problem is None)
    assert problem is None or problem in str(answer)


@pytest.mark.sweep
def test_no_file_gets_worse() -> None:
    """Counts may only fall. After a change that lowers them: python tests/support/prose.py --record."""
    recorded = json.loads(prose.RECORD.read_text())
    worse = {}
    for path in prose.files():
        name = path.relative_to(prose.ROOT).as_posix()
        counts = prose.counts(path)
        limits = recorded.get(name, [0] * len(prose.KINDS))
        if any(count > limit for count, limit in zip(counts, limits, strict=True)):
            worse[name] = dict(zip(prose.KINDS, zip(limits, counts, strict=True), strict=True))
    assert not worse, f"{worse}; python tests/support/prose.py FILE lists the lines"
