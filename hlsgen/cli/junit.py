"""A verdict as a JUnit file, which CI systems show: a case for everything that a build was held against."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

from hlsgen.diagnostics import printable
from hlsgen.simulation.verdict import SimulatorVerdict, Verdict

#: A suite, a case, and what is wrong; "" if nothing is, None if it was not run.
Case = tuple[str, str, str | None]


def junit(verdict: Verdict) -> bytes:
    """The text of the file. There is a failure in it if, and only if, the verdict is not ok."""
    cases = list(_cases(verdict))
    if not verdict.ok and not any(wrong for *_, wrong in cases):
        cases.append(("hlsgen", "verify", "not verified"))
    root = ElementTree.Element("testsuites", name="hlsgen verify")
    for suite in dict.fromkeys(suite for suite, *_ in cases):
        own = [(name, wrong) for one, name, wrong in cases if one == suite]
        counts = {
            "tests": len(own), "failures": sum(bool(wrong) for _, wrong in own), "skipped": sum(wrong is None for _, wrong in own),
        }  # fmt: skip
        element = ElementTree.SubElement(
            root, "testsuite", {"name": suite, **{key: str(n) for key, n in counts.items()}}
        )
        for name, wrong in own:
            case = ElementTree.SubElement(element, "testcase", classname=f"hlsgen.{suite}", name=name)
            if wrong is None:
                ElementTree.SubElement(case, "skipped")
            elif wrong:
                ElementTree.SubElement(case, "failure", message=printable(wrong))
    ElementTree.indent(root)
    text: str = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'.encode()


def _cases(verdict: Verdict) -> Iterator[Case]:
    difference = verdict.model.difference
    yield "model", "steps of the model", "" if verdict.model.ok else difference.where() if difference else "different"
    oracle = verdict.oracle
    if oracle.asked != "none":
        texts = "; ".join(d.message for d in oracle.diagnostics if d.severity == "error")
        yield "model", "the file itself", "" if oracle.ok else texts or "different"
    if verdict.host is not None:
        yield "model", "host code", "; ".join(d.message for d in verdict.host.diagnostics)
    yield "build", "files", ", ".join(f"{change.node} {change.message[:-1]}" for change in verdict.changes)
    for name, found in verdict.simulators.items():
        for case, wrong in _of_simulator(found):
            yield name, case, wrong


def _of_simulator(found: SimulatorVerdict) -> Iterator[tuple[str, str | None]]:
    """A case for each test, and one for what is wrong with all of them."""
    text = "; ".join(found.failures) or (f"{found.mismatches} beats differ" if found.mismatches else "")
    for name, passed in found.tests.items():
        yield name, "" if passed else text or "failed"
    if not found.tests or (text and all(found.tests.values())):
        yield "simulation", text
