"""Random small graphs that exercise frontend fusion and passes, compared with an executor without code of hlsgen.

    python tests/fuzz/fuzz_graphs.py --seconds 600 --seed 1 --keep findings

A graph is built node by node, together with its values for about a hundred frames. Constants therefore fit the data,
nothing is NaN, and sums are exact in float. Frontend, passes and integer reference must reproduce these values.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import fuzz_oracle
import numpy as np
import onnx
from fuzz_compose import random_sketch
from fuzz_confirm import differing
from fuzz_qdq import executed, random_groups
from numpy.typing import NDArray

import hlsgen
from hlsgen.diagnostics import Collector, HlsgenError
from hlsgen.driver.options import parse_input
from hlsgen.frontend import import_model
from hlsgen.interpreter import graph as reference
from hlsgen.passes import lower

Array = NDArray[Any]
#: Seconds for a whole build, and for its simulation; longer ones count as slow.
LIMIT, SIMULATION_LIMIT = 30, 240


@dataclass(frozen=True, eq=False)
class Case:
    """A model, frames of its input, and how its input port is declared (--input).

    `fused`: the oracle is onnxruntime, which fuses QDQ groups as on ARM, instead of single nodes.
    """

    model: onnx.ModelProto
    x: Array
    input: str | None
    fused: bool = False

    @property
    def runtime(self) -> str:
        """Whose integers the oracle has."""
        return "onnxruntime-arm" if self.fused else "onnx"


@dataclass(frozen=True, eq=False)
class Outcome:
    """`kind`: equal, refused, differs, crash, uncertified, unproven, slow, or invalid.

    Unproven: beyond what the checker can prove. Invalid: the oracle cannot execute it.

    `text`: the codes of a rejection, or the failure. `why`: the message of a rejection.
    """

    kind: str
    text: str = ""
    why: str = ""

    @property
    def is_finding(self) -> bool:
        return self.kind in ("differs", "crash", "uncertified")


def case(seed: int) -> Case:
    """The same for the same seed: the first graph of it that the oracle can execute; a tenth are QDQ groups."""
    if seed % 10 == 7:
        groups = random_groups(seed)
        return Case(groups.model(), groups.x, None, fused=True)
    for attempt in itertools.count():
        sketch = random_sketch(seed, attempt)
        fuzz_case = Case(sketch.model(), sketch.x, sketch.port)
        with suppress(ValueError):
            expected(fuzz_case)
            return fuzz_case
    raise AssertionError


def expected(fuzz_case: Case) -> Array:
    """The model's output by the oracle, (frames, elements)."""
    if fuzz_case.fused:
        return executed(fuzz_case.model, fuzz_case.x).reshape(len(fuzz_case.x), -1)
    result = fuzz_oracle.values(fuzz_case.model, fuzz_case.x)[fuzz_case.model.graph.output[0].name]
    return np.asarray(result.reshape(len(fuzz_case.x), -1))


def judged(fuzz_case: Case, whole: bool = False, simulate: bool = False) -> Outcome:
    """Outcome of a case. `whole`: also build and certify it. `simulate`: also verify it in Verilator.

    Runs the reference on the integers of the Graph.
    """
    try:
        want = expected(fuzz_case)
    except Exception:
        return Outcome("invalid", traceback.format_exc())
    try:
        with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
            path = Path(folder) / "fuzz.onnx"
            path.write_bytes(fuzz_case.model.SerializeToString())
            actual = _ours(path, fuzz_case)
            outcome = _compared(actual, want)
            if (whole or simulate) and outcome.kind == "equal":
                outcome = _built(path, fuzz_case, simulate)
    except HlsgenError as error:
        codes = sorted({d.code for d in error.diagnostics if d.severity == "error"})
        return Outcome("crash" if "HG099" in codes else "refused", " ".join(codes), str(error))
    except TimeoutError:
        return Outcome("slow")
    except Exception:
        return Outcome("crash", traceback.format_exc())
    return outcome


def _ours(path: Path, fuzz_case: Case) -> Array:
    """Frontend, passes, integer reference: (frames, elements)."""
    problems = Collector()
    model = import_model(path, problems, runtime=fuzz_case.runtime)
    if model is None:
        problems.finish()
    assert model is not None
    graph = lower(model, parse_input(fuzz_case.input), problems)
    problems.finish()
    codes = reference.encode_input(
        graph, reference.frames_of(graph, fuzz_case.x if graph.model.batched else fuzz_case.x[:, None])
    )
    result = reference.decode_output(graph, [codes, *reference.run_layers(graph, codes)][-1])
    return np.asarray(result.reshape(len(fuzz_case.x), -1))


def _compared(actual: Array, want: Array) -> Outcome:
    if actual.shape != want.shape:
        return Outcome("differs", f"shape {actual.shape[1:]}, wanted {want.shape[1:]}")
    wrong = (actual != want) & ~(np.isnan(actual.astype(np.float64)) & np.isnan(want.astype(np.float64)))
    if not wrong.any():
        return Outcome("equal")
    at = tuple(np.argwhere(wrong)[0])
    text = f"{int(wrong.sum())} of {wrong.size} values; frame {at[0]}, element {at[1]}"
    text += f": {actual[at]!r}, expected {want[at]!r}"
    return Outcome("differs", text)


def _built(path: Path, fuzz_case: Case, simulate: bool) -> Outcome:
    with _time_limit(LIMIT):
        directory = path.parent / "build"
        hlsgen.build(path, directory, hlsgen.Options(input=fuzz_case.input, runtime=fuzz_case.runtime))
        certificate = hlsgen.certify(directory)
    if simulate:
        with _time_limit(SIMULATION_LIMIT):
            verdict = hlsgen.verify(directory, ["verilator"], 8)
        if not verdict.ok:
            return Outcome("differs", f"in simulation: {verdict}"[:2000])
    if certificate.ok:
        return Outcome("equal", "simulated" if simulate else "built")
    text = "\n".join(map(str, certificate.problems))
    return Outcome(
        "unproven" if all("cannot be certified" in str(p) for p in certificate.problems) else "uncertified", text
    )


@contextmanager
def _time_limit(seconds: int) -> Iterator[None]:
    def stop(_signal: int, _frame: Any) -> None:
        raise TimeoutError

    old_handler = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old_handler)


# --------------------------------------------------------------------------- the command line


def keep(folder: Path, seed: int, fuzz_case: Case, outcome: Outcome) -> None:
    """Write a shrunk finding: model, input, and outcome."""
    from fuzz_shrink import shrunk

    folder.mkdir(parents=True, exist_ok=True)
    small = fuzz_case
    whole = judged(fuzz_case).kind != outcome.kind
    if not outcome.text.startswith("in simulation"):
        small = shrunk(fuzz_case, lambda c: judged(c, whole).kind == outcome.kind)
    onnx.save(small.model, folder / f"{seed}.onnx")
    np.save(folder / f"{seed}.npy", small.x)
    small_outcome = judged(small, whole)
    text = f"seed {seed}, {outcome.kind}, --input {fuzz_case.input}\nfirst: {outcome.text}\nnow: {small_outcome.text}\n"
    (folder / f"{seed}.txt").write_text(text + onnx.printer.to_text(small.model))
    print(
        f"seed {seed}: {small_outcome.kind} {(small_outcome.text.strip().splitlines() or [''])[-1]}",
        flush=True,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Random graphs against numpy, qonnx and onnx's evaluator.")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first graph; the next ones follow")
    parser.add_argument("--keep", type=Path, default=Path("findings"), help="folder for models that differ")
    parser.add_argument("--build", type=float, default=0.1, help="share of graphs that are built and certified")
    parser.add_argument("--simulate", type=float, default=0.001, help="share of graphs that are simulated as well")
    parser.add_argument("--confirm", type=float, default=0.03, help="share of graphs whose oracle onnxruntime confirms")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    importlib.import_module("fuzz_shrink")  # needs this module; now, as the code may change while it runs
    counts: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    operators: Counter[str] = Counter()
    start = shown = time.monotonic()
    seed = args.seed
    while time.monotonic() - start < args.seconds:
        fuzz_case = case(seed)
        whole = np.random.default_rng([seed, 1]).random() < args.build
        simulate = np.random.default_rng([seed, 3]).random() < args.simulate
        outcome = judged(fuzz_case, whole, simulate)
        counts["graphs"] += 1
        if not fuzz_case.fused and np.random.default_rng([seed, 2]).random() < args.confirm:
            counts["confirmed"] += 1
            for text in differing(fuzz_case.model, fuzz_case.x):
                counts["doubts"] += 1
                print(f"seed {seed}: onnxruntime differs from the oracle: {text}", flush=True)
        counts[outcome.kind] += 1
        counts["built"] += outcome.text in ("built", "simulated")
        counts["simulated"] += outcome.text == "simulated"
        if outcome.kind == "refused":
            codes.update(outcome.text.split())
        else:
            operators.update({n.op_type for n in fuzz_case.model.graph.node})
        if outcome.is_finding:
            keep(args.keep, seed, fuzz_case, outcome)
        seed += 1
        if time.monotonic() - shown > 30:
            shown = time.monotonic()
            print(f"{seed}: {_line(counts)}", flush=True)
    print("operators: " + ", ".join(f"{k} {v}" for k, v in operators.most_common()))
    print("refused: " + ", ".join(f"{k} {v}" for k, v in codes.most_common()))
    print(f"seeds {args.seed} to {seed - 1}: {_line(counts)}")
    return int(any(counts[kind] for kind in ("differs", "crash", "uncertified")))


def _line(counts: Counter[str]) -> str:
    return (
        f"{counts['graphs']} graphs, {counts['equal']} equal ({counts['built']} of them built and certified, "
        f"{counts['simulated']} simulated), "
        f"{counts['refused']} refused, {counts['differs']} differing, {counts['crash']} crashes, "
        f"{counts['uncertified']} not certified, {counts['unproven']} beyond the checker, {counts['slow']} slow; "
        f"onnxruntime compared with the oracle in {counts['confirmed']}, {counts['doubts']} nodes differ"
    )


if __name__ == "__main__":
    sys.exit(main())
