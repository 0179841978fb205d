"""The verdict on a build: its integers, its files, and its hardware in simulation, against the model and its file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from hlsgen.cycle_model.simulate import simulate as cycles
from hlsgen.cycle_model.wiring import INPUT
from hlsgen.dataflow.workload import works_of
from hlsgen.diagnostics import Diagnostic
from hlsgen.driver.build_directory import changed_files
from hlsgen.driver.compile import Build
from hlsgen.driver.weight_update import load_sequence, other_weights, own_weights, reweighted
from hlsgen.interpreter.equivalence import Comparison, compare
from hlsgen.library import library_text
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.child_process import work_folder
from hlsgen.simulation.cocotb_runner import Outcome, simulate, time_limit
from hlsgen.simulation.core_copy import core_files, write_core
from hlsgen.simulation.directed import affordable_frames, directed
from hlsgen.simulation.file_oracle import OracleVerdict, check_choice, hold_file
from hlsgen.simulation.isolate_layer import check_cut, write_cut
from hlsgen.testbench.sample_vectors import vector_words
from hlsgen.testbench.stimuli import stimuli
from hlsgen.testbench.stream_codec import to_text
from hlsgen.verilog.bench_config import testbench_config
from hlsgen.verilog.latency import latency

TESTS = ["full_rate", "random_stalls", "long_stalls", "reset_mid_frame", "offers_in_reset", "frame_errors"]


@dataclass(frozen=True)
class SimulatorVerdict:
    """What one simulator said. `failures`: messages of failed tests.

    `coverage`: the number of `streams`, ports included, and the names of those that were `never_stalled` (valid and
    not ready) and `never_starved` (ready and not valid) in long_stalls; None if it did not come to its end.
    """

    samples: int
    mismatches: int
    cycles: dict[str, int | None]
    failures: list[str]
    first_divergence: dict[str, Any] | None
    coverage: dict[str, Any] | None = None

    @property
    def ok(self) -> bool:
        return not self.failures and not self.mismatches


@dataclass(frozen=True)
class Verdict:
    """`ok` only if every file is as built, all integers are equal and all cycles as predicted.

    If files are changed, nothing is simulated unless that was allowed, and `simulators` is empty.
    `model`: the integers that the hardware stands for, against the model of the file, step by step. `oracle`: the same
    against the file itself, as an executor that is not ours runs it.
    """

    ok: bool
    model: Comparison
    oracle: OracleVerdict
    changed: list[str]
    predicted: dict[str, int]
    simulators: dict[str, SimulatorVerdict] = field(default_factory=dict)

    @property
    def first_divergence(self) -> dict[str, Any] | None:
        return next((s.first_divergence for s in self.simulators.values() if s.first_divergence), None)

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """What of it is no matter of simulation: HG057, HG058, HG059, HG051."""
        difference = self.model.difference
        found = [Diagnostic("HG057", difference.layer, f"{difference.where()}.")] if difference else []
        found += self.oracle.diagnostics
        return [*found, *(Diagnostic("HG051", name, "differs from what the model gives.") for name in self.changed)]


#: Frames that run in an executor of files, at most.
ORACLE_FRAMES = 40
#: Frames from which the interval can be measured.
MIN_FRAMES = 4
#: Words of 32 bits that the testbench writes to a core with loadable weights, and writes back.
MAX_PIECES = 4000
#: Multiplications that a simulator does in about ten seconds.
_BUDGET = {"verilator": 200_000_000, "icarus": 3_000_000}


def default_frames(build: Build, simulator: str) -> int:
    """Frames for a verification: many small ones, a few large ones."""
    work = sum(found.macs for found in works_of(build.graph).values())
    by_cycles = 100_000 // max(1, build.timing.interval)
    return max(6, min(200, by_cycles, _BUDGET[simulator] // max(1, work)))


def verify_build(
    build: Build, directory: Path, simulators: list[str], frames: int | None, seed: int,
    progress: Callable[[str], None] = lambda text: None, *, allow_changed: bool = False, cut: Path | None = None,
    oracle: str = "auto",
) -> Verdict:  # fmt: skip
    """Compares the integers with the model, and with the file in an executor of that name (of `oracles.CHOICES`), and
    files; then simulates the RTL of the build.

    A quarter of the simulated frames are directed ones. allow_changed: the RTL that lies in `directory` is simulated
    even if files differ. cut: a new folder for the first layer that differs. Raises HG040,
    HG059.
    """
    if cut is not None:
        check_cut(cut)
    check_choice(oracle)
    progress("the model, step by step")
    aimed = directed(build.graph, affordable_frames(build.graph), seed)
    model = compare_with_model(build, aimed, seed)
    file = compare_with_file(build, directory, aimed, seed, oracle, progress)
    changed = changed_files(build, directory)
    predicted = {"latency": build.timing.latency, "interval": build.timing.interval}
    verdicts: dict[str, SimulatorVerdict] = {}
    sent: dict[str, Array] = {}
    if changed and not allow_changed:
        return Verdict(False, model, file, changed, predicted)
    files = core_files(build, directory, allow_changed=bool(changed))
    for simulator in simulators:
        count = max(MIN_FRAMES, frames or default_frames(build, simulator))
        sent[simulator] = codes = frames_of(build, aimed, count, seed)
        with work_folder(simulator) as work:
            progress(f"{simulator}: {len(codes)} frames")
            core, bench = write_core(files, work), prepare(build, codes, work)
            tests = TESTS + prepare_weights(build, codes, bench)
            run = partial(simulate, core, bench, bench, seed=seed, seconds=time_limit(build, len(codes), simulator))
            outcome = run(work / "sim", simulator, tests)
            if not outcome.passed:
                progress(f"{simulator}: locating the divergence")
                traced = run(work / "trace", simulator, tests, monitor=True)
                outcome = _with_trace(outcome, traced)
            verdicts[simulator] = _judge(outcome, ends_of(build, len(codes)), build.timing.interval)
    ok = model.ok and file.ok and not changed and all(v.ok for v in verdicts.values())
    verdict = Verdict(ok, model, file, changed, predicted, verdicts)
    where = verdict.first_divergence
    if cut is not None and where and where["layer"]:
        progress(f"cutting out {where['layer']}")
        codes = next(sent[name] for name, found in verdicts.items() if found.first_divergence)
        write_cut(build, files, cut, where["layer"], codes[where["frame"] : where["frame"] + 1])
        where["cut"] = str(cut)
    return verdict


def frames_of(build: Build, aimed: Array, count: int, seed: int) -> Array:
    """The frames that are simulated: random ones, then directed ones of `aimed`, a quarter at most."""
    last = _spread(aimed, count // 4)
    return np.concatenate([stimuli(build.network, count - len(last), seed), last])


def compare_with_model(build: Build, aimed: Array, seed: int) -> Comparison:
    """The integer graph against the model of the file, on directed frames and on others as simulators get them."""
    count = affordable_frames(build.graph)
    others = stimuli(build.network, count, seed)
    return compare(build.model, build.graph, np.concatenate([aimed, _spread(others, count)]))


def compare_with_file(
    build: Build, directory: Path, aimed: Array, seed: int, oracle: str = "auto",
    progress: Callable[[str], None] = lambda text: None,
) -> OracleVerdict:  # fmt: skip
    """The file of a build directory in an executor that is not ours, on fewer such frames. Raises HG001 to HG004."""
    count = min(affordable_frames(build.graph), ORACLE_FRAMES) // 2
    others = stimuli(build.network, count, seed)
    codes = np.concatenate([_spread(aimed, count), _spread(others, count)])
    return hold_file(directory / "model.onnx", build.model, build.graph, codes, oracle, progress)


def _spread(frames: Array, count: int) -> Array:
    """At most `count` of the frames, from the first to the last."""
    return (
        frames[np.unique(np.linspace(0, len(frames) - 1, count).astype(int))] if len(frames) and count else frames[:0]
    )


def prepare(build: Build, codes: Array, work: Path) -> Path:
    """A folder with testbench, configuration and the words of these frames."""
    bench = work / "tb"
    bench.mkdir(parents=True, exist_ok=True)
    for name in ("test_top.py", "run.py"):
        (bench / name).write_text(library_text("tb", name))
    (bench / "config.json").write_text(json.dumps(testbench_config(build.design, build.network, build.timing)))
    sent, words = vector_words(build.network, codes)
    (bench / "input.hex").write_text(to_text(sent))
    (bench / "expected.hex").write_text(to_text(words[build.network.nodes[-1].name]))
    for node in build.network.nodes:
        if node.position >= 0:
            (bench / f"{node.name}.hex").write_text(to_text(words[node.name]))
    return bench


def prepare_weights(build: Build, codes: Array, bench: Path) -> list[str]:
    """Of a core with loadable weights: other ones for its testbench, what they give, and its own; tests for them.

    Layers with few weights first, as writes take time.
    """
    if not build.design.loads:
        return []
    sizes = {load.layer: len(load.pieces) for load in load_sequence(build, own_weights(build))}
    order = sorted(sizes, key=sizes.__getitem__)
    totals = accumulate(sizes[name] for name in order)
    few = [name for name, total in zip(order, totals, strict=True) if total <= MAX_PIECES]
    weights = other_weights(build, few, seed=1)
    for name, loaded in (("other", weights), ("own", own_weights(build, weights))):
        writes = [write for load in load_sequence(build, loaded) for write in load.writes]
        (bench / f"{name}.hex").write_text("".join(f"{address:x} {data:x}\n" for address, data in writes))
    _, words = vector_words(replace(build.network, graph=reweighted(build, weights)), codes)
    (bench / "other_expected.hex").write_text(to_text(words[build.network.nodes[-1].name]))
    return ["other_weights"] if weights else []


def _with_trace(outcome: Outcome, traced: Outcome) -> Outcome:
    """The first run's counts with the traced run's place of the first divergence."""
    result = dict(outcome.result)
    if "first_divergence" in traced.result:
        result["first_divergence"] = traced.result["first_divergence"]
    return Outcome(outcome.passed, result, outcome.log)


def ends_of(build: Build, frames: int) -> list[int]:
    """The predicted cycle in which each frame ends, from the first beat on, without stalls."""
    flow = cycles(build.network.nodes, frames, latency)
    return [end - int(flow.taken[INPUT][0]) for end in flow.ends]


def _judge(outcome: Outcome, predicted: list[int], interval: int) -> SimulatorVerdict:
    result, found = outcome.result, failures(outcome)
    ends = result.get("ends")
    if ends != predicted and (outcome.passed or ends is not None):
        both = zip_longest(ends or [], predicted)
        frame, (end, wanted) = next((k, pair) for k, pair in enumerate(both) if pair[0] != pair[1])
        found.append(f"frame {frame} ends after {end} cycles, predicted {wanted}")
    measured = {key: result.get(key) for key in ("latency", "interval")}
    if (measured["interval"] or 0) > interval:
        found.append(f"interval is {measured['interval']} cycles, predicted {interval}")
    mismatches = sum(int(v) for k, v in result.items() if k.endswith(".mismatches"))
    return SimulatorVerdict(
        len(predicted), mismatches, measured, found, result.get("first_divergence"), result.get("coverage")
    )


def failures(outcome: Outcome) -> list[str]:
    if outcome.passed:
        return []
    found = re.findall(r"(?:AssertionError|Error): (.+)", outcome.log)
    messages = list(dict.fromkeys(m.strip() for m in found))[:5]
    return messages or ["the testbench failed: " + " ".join(outcome.log.strip().splitlines()[-3:])]
