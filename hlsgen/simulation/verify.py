"""The verdict on a build: its integers, its files, and its hardware in simulation, against the model and its file."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from hlsgen.dataflow.workload import works_of
from hlsgen.diagnostics import counted, fail
from hlsgen.driver.build_directory import changes
from hlsgen.driver.compile import Build
from hlsgen.interpreter.equivalence import Comparison, compare
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.cocotb_runner import Limits
from hlsgen.simulation.core_copy import core_files
from hlsgen.simulation.directed import affordable_frames, directed
from hlsgen.simulation.file_oracle import check_choice, compare_file
from hlsgen.simulation.file_verdict import OracleVerdict
from hlsgen.simulation.host_selftest import check_host
from hlsgen.simulation.isolate_layer import check_cut, write_cut
from hlsgen.simulation.simulators import CPP, VERILOG
from hlsgen.simulation.verdict import SimulatorVerdict, Verdict
from hlsgen.simulation.verify_cpp import note_on_synthesis, verify_cpp
from hlsgen.simulation.verify_verilog import verify_verilog
from hlsgen.simulation.vitis import VITIS, cosimulate, require_vitis
from hlsgen.testbench.stimuli import stimuli

#: Frames that run in an executor of files, at most.
ORACLE_FRAMES = 40
#: Share of the time of a simulator in which frames are sent at full rate; the other tests need the rest.
PACE = 0.4
#: Frames from which the interval can be measured.
MIN_FRAMES = 4
#: Multiplications that a simulator does in about ten seconds.
_BUDGET = {"verilator": 200_000_000, "icarus": 3_000_000, "ap_types": 200_000_000, "ac_types": 1_000_000_000}


def default_frames(build: Build, simulator: str) -> int:
    """Frames for a verification: many small ones, a few large ones."""
    work = sum(found.macs for found in works_of(build.graph).values())
    by_cycles = 100_000 // max(1, build.timing.interval)
    return max(6, min(200, by_cycles, _BUDGET[simulator] // max(1, work)))


def verify_build(
    build: Build, directory: Path, simulators: list[str], frames: int | None, seed: int,
    progress: Callable[[str], None] = lambda text: None, *, allow_changed: bool = False, cut: Path | None = None,
    oracle: str = "auto", cosim: bool = False, found: Callable[[str, object], None] = lambda name, part: None,
    budget: float | None = None, waves: Path | None = None,
) -> Verdict:  # fmt: skip
    """Compares the integers with the model, and with the file in an executor of that name (of `oracles.CHOICES`), and
    files; then simulates the Verilog and the C++ of the build, as the names of `simulators` say.

    A quarter of the simulated frames are directed ones. allow_changed: what lies in `directory` is simulated
    even if files differ. cut: a new folder for the first layer of Verilog that differs. cosim: the C++ is synthesized by
    Vitis and simulated as well. Raises HG040, HG052, HG059.

    found: told each part of the verdict when it is there: "model", "oracle", "host", "changed", and the names of simulators. budget:
    seconds that all may take: the test at full rate takes fewer frames, and what has not ended in time is said and not ok.
    waves: a file .vcd or .fst for the streams of the only simulator of Verilog.
    """
    if cut is not None:
        check_cut(cut)
        if not set(simulators) & set(VERILOG):
            raise fail("HG040", "--cut", "cuts a layer out of Verilog, and no Verilog is simulated.", "Leave it out.")
    if waves is not None:
        if len(simulators) != 1 or simulators[0] not in VERILOG:
            raise fail(
                "HG040", "--waves", "takes one simulator of Verilog.", f"Name it: --sim {' or --sim '.join(VERILOG)}."
            )
        if waves.suffix not in (".vcd", ".fst") or not waves.parent.is_dir():
            raise fail("HG040", "--waves", f"{str(waves)!r}.", "Name a file .vcd or .fst in a folder that is there.")
    check_choice(oracle)
    end = None if budget is None else time.monotonic() + budget
    for simulator in simulators:
        _ = build.cpp if simulator in CPP else build.design  # raises what is missing, before work is done
    if cosim:
        _ = build.cpp
        require_vitis()
    progress("the model, step by step")
    aimed = directed(build.graph, affordable_frames(build.graph), seed)
    model = compare_with_model(build, aimed, seed)
    found("model", model)
    file = compare_with_file(build, directory, aimed, seed, oracle, progress)
    found("oracle", file)
    host = check_host(build, directory / "model.onnx", seed, oracle, progress)
    found("host", host)
    changed = changes(build, directory)
    found("changed", changed)
    predicted = build.timing.cycles
    verdicts: dict[str, SimulatorVerdict] = {}
    sent: dict[str, Array] = {}
    if changed and not allow_changed:
        return Verdict(False, model, file, changed, predicted, notes=host.notes, host=host)
    files = core_files(build, directory, allow_changed=bool(changed))
    for number, simulator in enumerate(simulators):
        count = max(MIN_FRAMES, frames or default_frames(build, simulator))
        sent[simulator] = codes = frames_of(build, aimed, count, seed)
        progress(f"{simulator}: {counted(len(codes), 'frame')}")
        limits = Limits(waves=waves)
        if end is not None:
            left = max(0.0, end - time.monotonic())
            share = time.monotonic() + left / (len(simulators) - number)
            limits = Limits(share, time.monotonic() + left / (len(simulators) - number) * PACE, waves)
            if not left:
                late = "not run: the time was up before"
                verdicts[simulator] = SimulatorVerdict(0, 0, None, [late], None, asked=len(codes), late=True)
                found(simulator, verdicts[simulator])
                continue
        if simulator in CPP:
            verdicts[simulator] = verify_cpp(build, files, codes, simulator, seed, progress)
        else:
            verdicts[simulator] = verify_verilog(build, files, codes, simulator, seed, progress, limits)
        found(simulator, verdicts[simulator])
    if cosim:
        verdicts[VITIS] = cosimulate(build, files, progress)
        found(VITIS, verdicts[VITIS])
    ok = model.ok and file.ok and host.ok and not changed and all(v.ok for v in verdicts.values())
    notes = [*host.notes, *([note_on_synthesis()] if set(simulators) & set(CPP) and not cosim else [])]
    notes += [
        f"{name}: {v.samples} of {v.asked} frames, for which the time sufficed."
        for name, v in verdicts.items()
        if 0 < v.samples < v.asked
    ]
    if cut is not None:
        _cut_first(build, files, cut, {name: verdicts[name] for name in verdicts if name in VERILOG}, sent, progress)
    return Verdict(ok, model, file, changed, predicted, verdicts, notes, host)


def _cut_first(
    build: Build, files: dict[str, bytes], folder: Path, verdicts: dict[str, SimulatorVerdict],
    sent: dict[str, Array], progress: Callable[[str], None],
) -> None:  # fmt: skip
    """Cuts out the layer of the first divergence of a simulator of Verilog, and says there in which folder."""
    name = next((name for name, found in verdicts.items() if found.first_divergence), "")
    where = verdicts[name].first_divergence if name else None
    if where and where["layer"]:
        progress(f"cutting out {where['layer']}")
        write_cut(build, files, folder, where["layer"], sent[name][where["frame"] : where["frame"] + 1])
        where["cut"] = str(folder)


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
    return compare_file(directory / "model.onnx", build.model, build.graph, codes, oracle, progress)


def _spread(frames: Array, count: int) -> Array:
    """At most `count` of the frames, from the first to the last."""
    return (
        frames[np.unique(np.linspace(0, len(frames) - 1, count).astype(int))] if len(frames) and count else frames[:0]
    )
