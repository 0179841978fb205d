"""Writes a verdict as a JUnit file for CI systems: one case for each comparison."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree import ElementTree

from hlsgen.diagnostics import printable
from hlsgen.simulation.verdict import SimulatorVerdict, Verdict

#: Suite, case and problem; "": the case passed, None: it did not run.
Case = tuple[str, str, str | None]


def junit(verdict: Verdict) -> bytes:
    """Content of the JUnit file. It contains a failure exactly if the verdict is not ok."""
    cases = list(_cases(verdict))
    if not verdict.ok and not any(problem for *_, problem in cases):
        cases.append(("hlsgen", "verify", "not verified"))
    root = ElementTree.Element("testsuites", name="hlsgen verify")
    for suite in dict.fromkeys(suite for suite, *_ in cases):
        suite_cases = [(name, problem) for case_suite, name, problem in cases if case_suite == suite]
        counts = {
            "tests": len(suite_cases),
            "failures": sum(bool(problem) for _, problem in suite_cases),
            "skipped": sum(problem is None for _, problem in suite_cases),
        }
        element = ElementTree.SubElement(
            root, "testsuite", {"name": suite, **{key: str(n) for key, n in counts.items()}}
        )
        for name, problem in suite_cases:
            case = ElementTree.SubElement(element, "testcase", classname=f"hlsgen.{suite}", name=name)
            if problem is None:
                ElementTree.SubElement(case, "skipped")
            elif problem:
                ElementTree.SubElement(case, "failure", message=printable(problem))
    ElementTree.indent(root)
    text: str = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'.encode()


def _cases(verdict: Verdict) -> Iterator[Case]:
    difference = verdict.model.difference
    yield (
        "model",
        "layers of the model",
        "" if verdict.model.ok else difference.describe() if difference else "different",
    )
    oracle = verdict.oracle
    if oracle.asked != "none":
        texts = "; ".join(d.message for d in oracle.diagnostics if d.severity == "error")
        yield "model", "the model file", "" if oracle.ok else texts or "different"
    if verdict.host is not None:
        yield "model", "host code", "; ".join(d.message for d in verdict.host.diagnostics)
    yield "build", "files", ", ".join(f"{change.node} {change.message[:-1]}" for change in verdict.changes)
    for name, simulator_verdict in verdict.simulators.items():
        for case, problem in _of_simulator(simulator_verdict):
            yield name, case, problem


def _of_simulator(verdict: SimulatorVerdict) -> Iterator[tuple[str, str | None]]:
    """One case for each test, and one for problems of the whole simulation."""
    text = "; ".join(verdict.failures) or (f"{verdict.mismatches} beats differ" if verdict.mismatches else "")
    for name, passed in verdict.tests.items():
        yield name, "" if passed else text or "failed"
    if not verdict.tests or (text and all(verdict.tests.values())):
        yield "simulation", text
