"""Text output of `verify`."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import Any

from rich.markup import escape

from hlsgen.cli.console import err, out, plain
from hlsgen.diagnostics import counted, printable
from hlsgen.interpreter.equivalence import Comparison
from hlsgen.simulation.file_verdict import OracleVerdict
from hlsgen.simulation.host_selftest import HostVerdict
from hlsgen.simulation.verdict import SimulatorVerdict, Verdict


def print_part(name: str, part: object) -> None:
    """Prints one part of a verdict as soon as it is complete."""
    match part:
        case Comparison():
            print_model(part)
        case OracleVerdict():
            print_oracle(part)
        case HostVerdict():
            print_host(part)
        case SimulatorVerdict():
            print_simulator(name, part)
        case _:
            pass


def print_model(model: Comparison) -> None:
    state = "[green]equal[/]" if model.ok else "[red]different[/]"
    out.print(f"model: {state}, {counted(model.frames, 'frame')}, the output and {counted(model.layers, 'layer')}")


def print_host(host: HostVerdict) -> None:
    """Prints which languages of the host code ran, and whether their results equal the interpreter's."""
    state = "[green]equal[/]" if host.ok else "[red]different[/]"
    languages = " and ".join(host.differences)
    head = f", input codes as in {host.head.executor}" if host.head.executor and host.ok else ""
    out.print(f"host: {state}, {counted(host.frames, 'frame')} in {languages}{escape(head)}", soft_wrap=True)


def print_simulator(name: str, v: SimulatorVerdict) -> None:
    """Prints the comparison, the measured cycles and the failures of a simulator."""
    cycles = f", latency {v.cycles['latency']}, interval {v.cycles['interval']} cycles" if v.cycles else ""
    state = "[green]equal[/]" if v.ok else "[red]different[/]" if v.mismatches or not v.late else "[red]not verified[/]"
    out.print(f"{name}: {state}, {counted(v.samples, 'frame')}, {counted(v.mismatches, 'differing beat')}{cycles}")
    if v.ok and v.coverage:
        out.print(
            f"  streams {_stream_coverage(v.coverage, 'stalled')}, {_stream_coverage(v.coverage, 'starved')}",
            soft_wrap=True,
        )
    for failure in v.failures:
        err.print(f"  {plain(failure)}", soft_wrap=True)
    if v.late and v.tests:
        passed = ", ".join(test for test, ok in v.tests.items() if ok) or "nothing"
        out.print(f"  passed until then: {passed}", soft_wrap=True)


def print_end(verdict: Verdict) -> None:
    """Prints problems, the first difference, notes on parts that were not compared, and the verdict."""
    problems = verdict.diagnostics
    for problem in problems[:20]:
        err.print(f"[red]{problem.code}[/]{escape(str(problem).removeprefix(problem.code))}", soft_wrap=True)
    if len(problems) > 20:
        err.print(f"... and {len(problems) - 20} more problems.")
    divergence = verdict.first_divergence
    if divergence:
        cycle = "" if divergence["cycle"] is None else f", cycle {divergence['cycle']}"
        out.print(
            plain(
                f"first divergence: layer {divergence['layer']}, "
                f"channel {divergence['channel']} (element {divergence['element']}), "
                f"frame {divergence['frame']}{cycle}: expected {divergence['expected']}, got {divergence['actual']}"
            )
        )
        if "cut" in divergence:
            run = shlex.quote(f"{divergence['cut']}/tb/run.py")
            out.print(f"the layer alone, with a failing test: python {plain(run)}", soft_wrap=True)
        elif divergence["layer"] and divergence["cycle"] is not None:
            out.print("--cut FOLDER writes this layer alone, with a failing test")
    if verdict.changed and not verdict.simulators:
        out.print(
            "not simulated: files differ from the build; --allow-changed simulates them, if you trust their author"
        )
    for note in verdict.notes:
        out.print(plain(note), soft_wrap=True)
    latency, interval = verdict.predicted["latency"], verdict.predicted["interval"]
    predicted = f"predicted latency {latency}, interval {interval}"
    if verdict.predicted.get("estimated"):
        predicted = f"cycles are not predicted: estimated latency {latency}, interval {interval} or more"
    out.print(("[green]verified[/]" if verdict.ok else "[red]NOT verified[/]") + f" ({predicted})")


def print_oracle(oracle: OracleVerdict) -> None:
    """Prints which runtime ran the model file, and how its outputs differ."""
    if oracle.asked == "none":
        return
    if not oracle.ran:
        out.print(f"file: not compared, {escape(printable(oracle.reason))}", soft_wrap=True)
        return
    text = oracle.summary if oracle.ok else f"different, {oracle.summary}"
    color = "green" if oracle.ok else "red"
    out.print(
        f"file: [{color}]{escape(text)}[/], {counted(oracle.frames, 'frame')} in {escape(oracle.ran)}, "
        f"{counted(oracle.compared, 'tensor')}{'' if oracle.explained or not oracle.ok else ', 0 differences'}",
        soft_wrap=True,
    )
    if oracle.left_out:
        frames = f"{counted(oracle.left_out, 'frame')} with NaN or infinities"
        out.print(escape(printable(f"  not compared: {frames}: {oracle.left_out_because}")), soft_wrap=True)
    reasons = Counter(oracle.left.values())
    for reason, count in reasons.items():
        names = next(name for name, why in oracle.left.items() if why == reason)
        remaining = f" and {count - 1} more" if count > 1 else ""
        out.print(escape(printable(f"  not compared: {names}{remaining}: {reason}")), soft_wrap=True)


def _stream_coverage(coverage: dict[str, Any], kind: str) -> str:
    """The number of streams that were in a state, and the names of a few that never were."""
    count, never = coverage["streams"], coverage[f"never_{kind}"]
    names = ", ".join(never[:6]) + (", ..." if len(never) > 6 else "")
    return f"{kind} {count - len(never)} of {count}" + (f" (not {escape(names)})" if never else "")
