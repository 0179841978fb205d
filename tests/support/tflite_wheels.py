"""Runs TFLite files in the wheels, in a child process: some files corrupt the wheels' memory."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tflite_random import RandomFile

from hlsgen.numerics.tflite.multipliers import Runtime

#: Runs files in a runtime. Reads a pickle of (bytes, codes of the frames) and writes the codes of the results.
CHILD = """
import pickle, sys
import numpy as np

def run_tflm(data, frames):
    from tflite_micro.python.tflite_micro import runtime
    interpreter = runtime.Interpreter.from_bytes(data, arena_size=1 << 22)
    for frame in frames:
        for number, codes in enumerate(frame):
            interpreter.set_input(codes, number)
        interpreter.invoke()
        yield np.array(interpreter.get_output(0))

def run_litert(data, frames, kind):
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    reference = {"experimental_op_resolver_type": OpResolverType.BUILTIN_REF}
    interpreter = Interpreter(model_content=data, num_threads=1, **(reference if kind == "litert-ref" else {}))
    interpreter.allocate_tensors()
    for frame in frames:
        for details, codes in zip(interpreter.get_input_details(), frame):
            interpreter.set_tensor(details["index"], codes)
        interpreter.invoke()
        yield np.array(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))

kind = sys.argv[1]
files = pickle.load(sys.stdin.buffer)
results = [list(run_tflm(*file) if kind == "tflm" else run_litert(*file, kind)) for file in files]
with open(sys.argv[2], "wb") as out:
    pickle.dump(results, out)
"""
WHEELS = {Runtime.TFLM: "tflite_micro", Runtime.LITERT_REF: "ai_edge_litert", Runtime.LITERT: "ai_edge_litert"}


def run(runtime: Runtime, files: Sequence[RandomFile], tmp_path: Path) -> list[list[Any]]:
    """The first output of each frame of each file; skips if the runtime is not installed."""
    if find_spec(WHEELS[runtime]) is None:
        pytest.skip(f"{WHEELS[runtime]} is not installed: not compared with {runtime.value}")
    data = pickle.dumps([(file.data, file.frames) for file in files])
    path = tmp_path / "results"
    child = [sys.executable, "-c", CHILD, runtime.value, str(path)]
    process = subprocess.run(child, input=data, capture_output=True, timeout=300, check=False)
    assert not process.returncode, process.stderr.decode()[-2000:]
    results: list[list[Any]] = pickle.loads(path.read_bytes())
    return results
