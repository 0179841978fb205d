"""Child process that runs a TFLite file in a runtime: `python tflite_child.py RUNTIME`, in a folder with its files.

Reads model.tflite and input_N.npy (frames, *shape) of all inputs; writes output_N.npy. The runtime and its state live
as long as the process; frames run in order. It imports nothing of hlsgen, as some files corrupt its memory.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

#: Largest memory of the process, in bytes.
_MEMORY = 4 << 30
#: Memory for the tensors of tflite-micro, in bytes: the first that suffices.
_ARENAS = (8 << 20, 64 << 20, 512 << 20)
Run = Callable[[Sequence[Any], int], list[Any]]


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


def _tflm(data: bytes) -> Run:
    runtime = importlib.import_module("tflite_micro.python.tflite_micro").runtime

    interpreter: Any = None
    for arena in _ARENAS:
        try:
            interpreter = runtime.Interpreter.from_bytes(data, arena_size=arena)
            break
        except RuntimeError:
            if arena == _ARENAS[-1]:
                raise

    def run(inputs: Sequence[Any], outputs: int) -> list[Any]:
        for number, x in enumerate(inputs):
            interpreter.set_input(x, number)
        interpreter.invoke()
        return [np.array(interpreter.get_output(number)) for number in range(outputs)]

    return run


def _litert(data: bytes, reference: bool) -> Run:
    litert = importlib.import_module("ai_edge_litert.interpreter")

    resolver = {"experimental_op_resolver_type": litert.OpResolverType.BUILTIN_REF} if reference else {}
    interpreter = litert.Interpreter(model_content=data, num_threads=1, **resolver)
    interpreter.allocate_tensors()
    places = [entry["index"] for entry in interpreter.get_input_details()]
    result_places = [entry["index"] for entry in interpreter.get_output_details()]

    def run(inputs: Sequence[Any], outputs: int) -> list[Any]:
        for place, x in zip(places, inputs, strict=True):
            interpreter.set_tensor(place, x)
        interpreter.invoke()
        return [np.array(interpreter.get_tensor(place)) for place in result_places[:outputs]]

    return run


def main(runtime: str, inputs: int, outputs: int) -> None:
    """Runs all frames and writes the outputs."""
    _limit_memory()
    data = Path("model.tflite").read_bytes()
    frames = [np.load(f"input_{number}.npy") for number in range(inputs)]
    run = _tflm(data) if runtime == "tflm" else _litert(data, runtime == "litert-ref")
    results = [run(frame, outputs) for frame in zip(*frames, strict=True)]
    for number in range(outputs):
        np.save(f"output_{number}.npy", np.stack([result[number] for result in results]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
