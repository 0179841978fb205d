"""Runs the tests of a build's testbench on its Verilog in a simulator: values, cycles, stalls, resets."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, zip_longest
from pathlib import Path

from hlsgen.cycle_model.simulate import simulate as cycles
from hlsgen.dataflow.network import Network, Timing
from hlsgen.driver.compile import Build
from hlsgen.driver.weight_update import current_weights, load_sequence, other_weights, reweighted
from hlsgen.library import library_text
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.child_process import work_folder
from hlsgen.simulation.cocotb_runner import NO_LIMITS, Limits, Outcome, simulate, time_limit
from hlsgen.simulation.core_copy import write_core
from hlsgen.simulation.verdict import SimulatorVerdict
from hlsgen.testbench.sample_vectors import starts_text, stream_words
from hlsgen.testbench.stream_codec import to_text
from hlsgen.verilog.bench_config import testbench_config
from hlsgen.verilog.netlist import Design
from hlsgen.verilog.unit_table import latency

TESTS = ["full_rate", "random_stalls", "long_stalls", "reset_mid_frame", "offers_in_reset", "frame_errors"]
#: Those of a core without handshake.
PLAIN_TESTS = ["full_rate", "random_stalls", "reset_mid_frame", "words_in_reset"]
#: Most words of 32 bits that the testbench writes to a core with loadable weights, and writes back.
MAX_PIECES = 4000
#: Frames after which the intervals repeat.
SETTLING = 60


#: Writes other weights for the testbench of these codes into a folder; returns the names of tests for them.
PrepareWeights = Callable[[Array, Path], list[str]]


def no_weights(codes: Array, bench: Path) -> list[str]:
    """The `PrepareWeights` of a core without loadable weights: no tests."""
    return []


def verify_verilog(
    design: Design,
    network: Network,
    timing: Timing,
    files: Mapping[str, bytes],
    codes: Array,
    simulator: str,
    seed: int,
    progress: Callable[[str], None],
    limits: Limits = NO_LIMITS,
    prepare_weights: PrepareWeights = no_weights,
) -> SimulatorVerdict:
    """Runs all tests on these frames with the RTL in `files`; if one fails, a second run finds the first difference.

    Raises HG052, HG053.
    """
    with work_folder(simulator) as work:
        core, bench = write_core(files, work), prepare(design, network, timing, codes, work)
        tests = (PLAIN_TESTS if design.plain else TESTS) + _port_tests(design) + prepare_weights(codes, bench)
        seconds = time_limit(network, timing, files, len(codes), simulator)
        run = partial(simulate, core, bench, bench, seed=seed, seconds=seconds)
        watched = replace(limits, frames=_Eta(simulator, tests, len(codes), progress))
        outcome = run(work / "sim", simulator, tests, limits=watched)
        if not outcome.passed and not outcome.late:
            progress(f"{simulator}: locating the divergence")
            traced = run(work / "trace", simulator, tests, monitor=True)
            outcome = _with_trace(outcome, traced)
        predicted = ends_of(network, len(codes)) if timing.exact else None
        interval = timing.interval if predicted is None else interval_of(network, timing, predicted)
        return _judge(outcome, predicted, len(codes), interval, tests, limits)


def _port_tests(design: Design) -> list[str]:
    """Tests of optional ports that this core has."""
    has_port = {"missing_bytes": design.keep, "control_port": design.control is not None}
    return [name for name, present in has_port.items() if present]


def prepare(design: Design, network: Network, timing: Timing, codes: Array, work: Path) -> Path:
    """Writes a folder with testbench, configuration and the words of these frames; returns it."""
    bench = work / "tb"
    bench.mkdir(parents=True, exist_ok=True)
    for name in ("test_top.py", "run.py"):
        (bench / name).write_text(library_text("tb", name))
    (bench / "config.json").write_text(json.dumps(testbench_config(design, network, timing)))
    input_words, expected_words = stream_words(network, codes)
    for port in network.inputs:
        (bench / f"input{port.label}.hex").write_text(to_text(input_words[port.name]))
    for port in network.outputs:
        (bench / f"expected{port.label}.hex").write_text(to_text(expected_words[port.name]))
    for name, text in starts_text(network, codes).items():
        (bench / name).write_text(text)
    for node in network.nodes:
        if node.position >= 0:
            (bench / f"{node.name}.hex").write_text(to_text(expected_words[node.name]))
    return bench


def prepare_weights(build: Build, codes: Array, bench: Path) -> list[str]:
    """For a core with loadable weights: writes other weights, their expected outputs, and its own weights; returns the
    tests.

    Layers with few weights come first, as writing takes time.
    """
    if not build.design.loads:
        return []
    piece_counts = {load.layer: len(load.pieces) for load in load_sequence(build, current_weights(build))}
    order = sorted(piece_counts, key=piece_counts.__getitem__)
    totals = accumulate(piece_counts[name] for name in order)
    layers_to_write = [name for name, total in zip(order, totals, strict=True) if total <= MAX_PIECES]
    weights = other_weights(build, layers_to_write, seed=1)
    for name, values in (("other", weights), ("own", current_weights(build, weights))):
        writes = [write for load in load_sequence(build, values) for write in load.writes]
        (bench / f"{name}.hex").write_text("".join(f"{address:x} {data:x}\n" for address, data in writes))
    _, words = stream_words(replace(build.network, graph=reweighted(build, weights)), codes)
    for port in build.network.outputs:
        (bench / f"other_expected{port.label}.hex").write_text(to_text(words[port.name]))
    return ["other_weights"] if weights else []


def _with_trace(outcome: Outcome, traced: Outcome) -> Outcome:
    """The first run's outcome with the first divergence that the traced run found."""
    result = dict(outcome.result)
    if "first_divergence" in traced.result:
        result["first_divergence"] = traced.result["first_divergence"]
    return replace(outcome, result=result)


def ends_of(network: Network, frames: int) -> list[int]:
    """The predicted end cycle of each frame, counted from the first input beat, without stalls."""
    flow = cycles(network.nodes, frames, latency)
    return [end - flow.begin for end in flow.ends]


def interval_of(network: Network, timing: Timing, ends: list[int]) -> int:
    """The longest interval in cycles that the test at full rate may measure if frames end in these cycles.

    The first frames can be further apart than all later ones. An interval longer than `timing` says is accepted if
    `ends` predicts it and later frames have a shorter one.
    """
    shown = _measured(ends)
    if shown <= timing.interval or _measured(ends_of(network, len(ends) + SETTLING)) > timing.interval:
        return timing.interval
    return shown


def _measured(ends: list[int]) -> int:
    """The interval of the last quarter of the frames, as `full_rate` in templates/tb/test_top.py records it."""
    return max((ends[k] - ends[k - 1] for k in range(max(1, len(ends) * 3 // 4), len(ends))), default=0)


@dataclass
class _Eta:
    """Reports the running test; for the test at full rate also the frame and the remaining time."""

    simulator: str
    tests: list[str]
    frames: int
    progress: Callable[[str], None]
    first_report: tuple[float, int] | None = None
    last_report: tuple[str, int] = ("", 0)

    def __call__(self, test: str, frames_done: int) -> None:
        if (test, frames_done) == self.last_report:
            return
        self.last_report = test, frames_done
        text = f"{self.simulator}: test {self.tests.index(test) + 1} of {len(self.tests)}, {test}"
        now = time.monotonic()
        if test == "full_rate":
            text += f", frame {frames_done} of {self.frames}"
            self.first_report = self.first_report or (now, frames_done)
            start, start_frames = self.first_report
            if frames_done > start_frames:
                seconds_a_frame = (now - start) / (frames_done - start_frames)
                text += f", about {seconds_a_frame * (self.frames - frames_done):.0f} s left"
        self.progress(text)


def _judge(
    outcome: Outcome, ends_predicted: list[int] | None, requested: int, interval: int, tests: list[str], limits: Limits
) -> SimulatorVerdict:
    """The verdict on an outcome.

    ends_predicted: end cycle of each frame, or None without a prediction: then measured cycles are only reported.
    requested: number of frames.
    """
    result, messages = outcome.result, failures(outcome)
    ends = result.get("ends")
    predicted = ends_predicted if ends_predicted is not None else (ends or [])[:requested]
    if limits.pace is not None and ends:
        predicted = predicted[: len(ends)]
    if outcome.late:
        ended = [test for test in tests if test in outcome.tests]
        messages = [f"the time was up in {tests[len(ended)] if len(ended) < len(tests) else 'the last test'}"]
        predicted = predicted if ends else []
    if ends_predicted is None and outcome.passed and limits.pace is None and len(ends or []) != requested:
        messages.append(f"{len(ends or [])} of {requested} frames ended")
    elif (ends or []) != predicted and (outcome.passed or ends is not None):
        pairs = zip_longest(ends or [], predicted)
        frame, (end, expected) = next((k, pair) for k, pair in enumerate(pairs) if pair[0] != pair[1])
        messages.append(f"frame {frame} ends after {end} cycles, predicted {expected}")
    measured = {key: result.get(key) for key in ("latency", "interval")}
    if ends_predicted is not None and (measured["interval"] or 0) > interval:
        messages.append(f"interval is {measured['interval']} cycles, predicted {interval}")
    mismatches = sum(int(v) for k, v in result.items() if k.endswith(".mismatches"))
    passed = {test: outcome.tests[test] for test in tests if test in outcome.tests}
    return SimulatorVerdict(
        len(predicted),
        mismatches,
        measured,
        messages,
        result.get("first_divergence"),
        result.get("coverage"),
        requested,
        passed,
        outcome.late,
    )


def failures(outcome: Outcome) -> list[str]:
    """At most five messages of failed tests."""
    if outcome.passed or outcome.late:
        return []
    errors = re.findall(r"(?:AssertionError|Error): (.+)", outcome.log)
    messages = list(dict.fromkeys(m.strip() for m in errors))[:5]
    return messages or ["the testbench failed: " + " ".join(outcome.log.strip().splitlines()[-3:])]
