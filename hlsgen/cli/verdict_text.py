"""What `verify` prints."""

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


def print_verdict(verdict: Verdict) -> None:
    """What the model and every simulator said, and where the first difference is."""
    print_model(verdict.model)
    print_oracle(verdict.oracle)
    if verdict.host:
        print_host(verdict.host)
    for name, found in verdict.simulators.items():
        print_simulator(name, found)
    print_end(verdict)


def print_part(name: str, part: object) -> None:
    """A part of a verdict, as soon as it is there."""
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
    """Which languages of the host code ran, and whether their numbers are the interpreter's."""
    state = "[green]equal[/]" if host.ok else "[red]different[/]"
    languages = " and ".join(host.differences)
    head = f", input codes as in {host.head.executor}" if host.head.executor and host.ok else ""
    out.print(f"host: {state}, {counted(host.frames, 'frame')} in {languages}{escape(head)}", soft_wrap=True)


def print_simulator(name: str, v: SimulatorVerdict) -> None:
    """Of a simulator: what it compared, what it measured, what failed."""
    cycles = f", latency {v.cycles['latency']}, interval {v.cycles['interval']} cycles" if v.cycles else ""
    state = "[green]equal[/]" if v.ok else "[red]different[/]" if v.mismatches or not v.late else "[red]not verified[/]"
    out.print(f"{name}: {state}, {counted(v.samples, 'frame')}, {counted(v.mismatches, 'differing beat')}{cycles}")
    if v.ok and v.coverage:
        out.print(f"  streams {_seen(v.coverage, 'stalled')}, {_seen(v.coverage, 'starved')}", soft_wrap=True)
    for failure in v.failures:
        err.print(f"  {plain(failure)}", soft_wrap=True)
    if v.late and v.tests:
        passed = ", ".join(test for test, ok in v.tests.items() if ok) or "nothing"
        out.print(f"  passed until then: {passed}", soft_wrap=True)


def print_end(verdict: Verdict) -> None:
    """Problems, the first difference, what was not looked at, and the verdict."""
    problems = verdict.diagnostics
    for problem in problems[:20]:
        err.print(f"[red]{problem.code}[/]{escape(str(problem).removeprefix(problem.code))}", soft_wrap=True)
    if len(problems) > 20:
        err.print(f"... and {len(problems) - 20} more problems.")
    where = verdict.first_divergence
    if where:
        cycle = "" if where["cycle"] is None else f", cycle {where['cycle']}"
        out.print(
            plain(
                f"first divergence: layer {where['layer']}, channel {where['channel']} (element {where['element']}), "
                f"frame {where['frame']}{cycle}: expected {where['expected']}, got {where['actual']}"
            )
        )
        if "cut" in where:
            run = shlex.quote(f"{where['cut']}/tb/run.py")
            out.print(f"the layer alone, with a test that fails: python {plain(run)}", soft_wrap=True)
        elif where["layer"] and where["cycle"] is not None:
            out.print("--cut FOLDER writes this layer alone, with a test that fails")
    if verdict.changed and not verdict.simulators:
        out.print("not simulated, as files differ; --allow-changed simulates them if you trust whoever changed them")
    for note in verdict.notes:
        out.print(plain(note), soft_wrap=True)
    latency, interval = verdict.predicted["latency"], verdict.predicted["interval"]
    predicted = f"predicted latency {latency}, interval {interval}"
    if verdict.predicted.get("estimated"):
        predicted = f"cycles are not predicted: estimated latency {latency}, interval {interval} or more"
    out.print(("[green]verified[/]" if verdict.ok else "[red]NOT verified[/]") + f" ({predicted})")


def print_oracle(oracle: OracleVerdict) -> None:
    """What ran the file itself, and how its numbers differ."""
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
    reasons = Counter(oracle.left.values())
    for reason, count in reasons.items():
        names = next(name for name, why in oracle.left.items() if why == reason)
        more = f" and {count - 1} more" if count > 1 else ""
        out.print(escape(printable(f"  not compared: {names}{more}: {reason}")), soft_wrap=True)


def _seen(coverage: dict[str, Any], kind: str) -> str:
    """How many streams were seen in a state, and the names of a few that were not."""
    count, never = coverage["streams"], coverage[f"never_{kind}"]
    rest = ", ".join(never[:6]) + (", ..." if len(never) > 6 else "")
    return f"{kind} {count - len(never)} of {count}" + (f" (not {escape(rest)})" if never else "")
