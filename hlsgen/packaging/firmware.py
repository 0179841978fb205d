"""Firmware that runs the vectors of a build through the core, for any board that has the functions of board.h."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hlsgen.host.c_values import STORED
from hlsgen.host.emit import function_labels
from hlsgen.host.plan import Head, by_input, plan_head, plan_outputs
from hlsgen.host.vectors import self_test_vectors
from hlsgen.interpreter.frame_states import without_states
from hlsgen.library import render
from hlsgen.packaging.core import Core
from hlsgen.testbench.sample_vectors import sample_codes

#: Bytes of memory for the program and the stack, and the largest part of the build's vectors that firmware holds.
PROGRAM_BYTES, STACK_BYTES, VECTOR_BYTES = 40 << 10, 4 << 10, 64 << 10
#: Largest size of the frames of a job of several frames, in bytes of all ports.
JOB_BYTES = 16 << 10
#: Files of the firmware for every board, whose templates have the same name.
COMMON = ("main.c", "board.h", "bare.c", "math.h", "string.h", "vectors.S")


@dataclass(frozen=True, eq=False)
class Firmware:
    """Values for the templates of the firmware, and its vectors.

    - vectors: for each frame numbers of the heads, bytes of the inputs, bytes of the outputs, numbers of the tails.
    - data_bytes: memory for all variables without the stack.
    """

    values: dict[str, Any]
    vectors: bytes
    data_bytes: int

    def files(self, folder: str, templates: dict[str, str]) -> dict[str, bytes]:
        """Files of the firmware below `folder`. templates: of the files for a board, by file name."""
        common = {name: f"project/soc/{name}.j2" for name in COMMON}
        texts = {name: render(template, **self.values) for name, template in {**common, **templates}.items()}
        return {f"{folder}/{name}": text.encode() for name, text in texts.items()} | {
            f"{folder}/vectors.bin": self.vectors
        }


def firmware_of(core: Core) -> Firmware:
    """The firmware for a core whose ports memory can serve."""
    graph = core.build.network.graph.host_graph
    plans = [plan_head(part) for part in by_input(graph)]
    outputs = plan_outputs(graph)
    tails = [output.tail for output in outputs]
    heads = plans if all(head.makes_codes for head in plans) else []
    number_bytes = sum(map(_head_bytes, heads))
    result_bytes = sum(_bytes(tail.end.dtype, tail.end.shape) for tail in tails)
    port_bytes = sum(port.layout.frame_bytes for port in (*core.inputs, *core.outputs))
    samples = without_states(sample_codes(core.build.network)[0], graph.input.shape)
    data = self_test_vectors(core.build.network, plans, outputs, samples, None).data
    vector_bytes = number_bytes + port_bytes + result_bytes
    frames = max(1, min(len(data), VECTOR_BYTES) // vector_bytes)
    job_frames = min(frames, max(1, JOB_BYTES // port_bytes))
    codes = 8 * (math.prod(graph.input.shape) + math.prod(graph.output.shape))
    head_labels, tail_labels = function_labels(graph)
    values = {
        "core": core,
        "name": core.name,
        "inputs": core.inputs,
        "outputs": core.outputs,
        "control": any(group.endswith("ctrl") for group in core.axi_lite),
        "starts": core.build.options.starts_by,
        "heads": [
            {"label": label, "type": STORED[head.start.dtype], "pairs": head.pairs}
            for label, head in zip(head_labels, heads, strict=False)
        ],
        "tails": [
            {"label": label, "type": STORED[tail.end.dtype]} for label, tail in zip(tail_labels, tails, strict=True)
        ],
        "frames": frames,
        "job_frames": job_frames,
        "vector_bytes": vector_bytes,
    }
    data_bytes = number_bytes + (1 + job_frames) * port_bytes + result_bytes + codes
    return Firmware(values, data[: frames * vector_bytes], data_bytes)


def _head_bytes(head: Head) -> int:
    """Bytes of the numbers of a vector from which a head makes codes."""
    return _bytes(head.start.dtype, head.start.shape) * (2 if head.pairs else 1)


def _bytes(dtype: str, shape: Sequence[int]) -> int:
    return math.prod(shape) * np.dtype(dtype).itemsize
