"""Runs TFLite files of others in their runtimes and as imported graphs: python benchmarks/tflite_files.py FOLDER

Prints, for each file and runtime, how many elements of the outputs differ; exit code 1 if any does. Frames are random
codes; a quarter of them are walks, whose elements change slowly. Frames of files with variables are one sequence. Files
that a runtime or hlsgen refuses are listed with the reason.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from hlsgen.diagnostics import Collector, HlsgenError
from hlsgen.driver.compile import lowered
from hlsgen.driver.options import Options
from hlsgen.frontend.runtimes import TFLITE
from hlsgen.interpreter.frame_sequence import with_variables
from hlsgen.interpreter.graph import encode_input, pack_inputs
from hlsgen.ir import Graph
from hlsgen.numerics.fixed import Array
from hlsgen.simulation.file_oracle import compare_file
from hlsgen.simulation.file_verdict import OracleVerdict

#: Most elements of a batch of inputs.
_BATCH = 1 << 22


def random_codes(graph: Graph, frames: int, seed: int) -> Array:
    """Codes (frames, *shape) of the input: random ones, then walks from element to element."""
    rng = np.random.default_rng(seed)
    parts = []
    for _, _, value in graph.streamed_inputs:
        lowest, highest = value.type.lo, value.type.hi
        uniform = rng.integers(lowest, highest + 1, (frames - frames // 4, value.size))
        steps = rng.normal(0, (highest - lowest) / 16, (frames // 4, value.size))
        middle = rng.integers(lowest, highest + 1, (frames // 4, 1))
        walks = np.clip(np.rint(middle + np.cumsum(steps, axis=1)), lowest, highest).astype(np.int64)
        parts.append(np.concatenate([uniform, walks]))
    codes: Array = np.concatenate(parts, axis=1)
    return codes.reshape(frames, *graph.input.shape)


def recorded_codes(graph: Graph, path: Path) -> Array:
    """Codes of the inputs in a file .npy, one sequence of frames."""
    arrays, _ = with_variables(graph, np.load(path))
    return encode_input(graph, pack_inputs(graph, arrays))


def compared(path: Path, runtime: str, frames: int, seed: int, inputs: Path | None) -> list[OracleVerdict]:
    """Verdicts of batches of frames. Raises HlsgenError for a file that hlsgen refuses."""
    _, model, graph = lowered(path, Options(runtime=runtime, state=["none"]), Collector())
    recorded = None if inputs is None else inputs / f"{path.stem}.npy"
    codes = random_codes(graph, frames, seed)
    if recorded is not None and recorded.is_file():
        codes = recorded_codes(graph, recorded)
        frames = len(codes)
    size = frames if model.variables else max(1, _BATCH // graph.input.size)
    return [compare_file(path, model, graph, codes[n : n + size], runtime) for n in range(0, frames, size)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder with files .tflite")
    parser.add_argument("--frames", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--inputs", type=Path, help="folder with recorded inputs: FILE.npy for FILE.tflite")
    parser.add_argument("--runtime", choices=TFLITE, action="append")
    parser.add_argument("--only", default="*", help="pattern of file names")
    arguments = parser.parse_args()
    paths = sorted(arguments.folder.glob(f"{arguments.only}.tflite"))
    if not paths:
        print(f"no files .tflite in {arguments.folder}: nothing was compared", file=sys.stderr)
        return 1
    print("| file | runtime | frames | elements | differing | seconds |\n|---|---|---|---|---|---|")
    wrong = 0
    for path in paths:
        for runtime in arguments.runtime or TFLITE:
            start = time.monotonic()
            try:
                verdicts = compared(path, runtime, arguments.frames, arguments.seed, arguments.inputs)
            except HlsgenError as error:
                print(f"| {path.stem} | {runtime} | refused by hlsgen: {error.diagnostics[0]} | | | |", flush=True)
                continue
            reasons = [verdict.reason for verdict in verdicts if verdict.reason]
            if reasons:
                print(f"| {path.stem} | {runtime} | not compared: {reasons[0]} | | | |", flush=True)
                continue
            differing = sum(verdict.outputs_differ for verdict in verdicts)
            counts = [sum(v.frames for v in verdicts), sum(v.outputs for v in verdicts), differing]
            cells = " | ".join(f"{count:,}" for count in counts)
            print(f"| {path.stem} | {runtime} | {cells} | {time.monotonic() - start:.0f} |", flush=True)
            for diagnostic in (d for verdict in verdicts for d in verdict.diagnostics):
                print(f"  {diagnostic}", file=sys.stderr)
            wrong += differing
    return min(1, wrong)


if __name__ == "__main__":
    sys.exit(main())
