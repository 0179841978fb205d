"""Names and sentences are plain: the checkers find what they should."""

from __future__ import annotations

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
