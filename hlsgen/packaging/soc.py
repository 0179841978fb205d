"""A system around a core: processor, memory, UART, hg_dma, and firmware that runs the vectors of the build."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import PurePosixPath

import numpy as np

from hlsgen.devices import devices
from hlsgen.diagnostics import fail
from hlsgen.host.c_values import STORED
from hlsgen.host.plan import Head, by_input, plan_head, plan_outputs
from hlsgen.host.vectors import self_test_vectors
from hlsgen.interpreter.frame_states import without_states
from hlsgen.library import render
from hlsgen.packaging.core import Core
from hlsgen.packaging.dma import address_bits, dma_files, word_bits
from hlsgen.synthesis import nextpnr, programs, yosys
from hlsgen.testbench.sample_vectors import sample_codes

#: Devices of `make bit`.
DEVICES = ("ecp5-25k", "ecp5-85k")
#: Clock of the UART's default rate, and its bits per second.
CLOCK_MHZ, BAUD = 50.0, 115200
#: Bytes of memory for the program and the stack, and the largest part of the build's vectors that firmware holds.
PROGRAM_BYTES, VECTOR_BYTES = 40 << 10, 64 << 10
#: Folder of the firmware, and its files whose templates have the same name.
_FIRMWARE = ("main.c", "board.h", "board.c", "bare.c", "math.h", "string.h", "start.S", "vectors.S", "link.ld")
_SYSTEM = ("soc.v", "sim.cpp", "elf_to_hex.py", "synth.py", "Makefile")


def soc_files(core: Core) -> dict[str, bytes]:
    """The files of `dma_files`, and the folder soc/. Raises HG040."""
    files = dma_files(core)
    if word_bits(core) != 32:
        text = f"the ports of the core have {word_bits(core)} bits."
        raise fail("HG040", "--for soc", text, "The system has memory of 32 bits: build with --bus-width 32.")
    graph = core.build.network.graph.host_graph
    heads = [plan_head(part) for part in by_input(graph)]
    outputs = plan_outputs(graph)
    tails = [output.tail for output in outputs]
    makes_codes = all(head.makes_codes for head in heads)
    number_bytes = sum(map(_head_bytes, heads)) if makes_codes else 0
    result_bytes = sum(_bytes(tail.end.dtype, tail.end.shape) for tail in tails)
    into, out = core.inputs[0].layout.frame_bytes, core.outputs[0].layout.frame_bytes
    samples = without_states(sample_codes(core.build.network)[0], graph.input.shape)
    vectors = self_test_vectors(core.build.network, heads, outputs, samples, None).data
    vector_bytes = number_bytes + into + out + result_bytes
    frames = max(1, min(len(vectors), VECTOR_BYTES) // vector_bytes)
    codes = 8 * (math.prod(graph.input.shape) + math.prod(graph.output.shape))
    memory_bytes = PROGRAM_BYTES + frames * vector_bytes + vector_bytes + codes
    ecp5 = [devices()[name] for name in DEVICES]
    sources = sorted(PurePosixPath(path).name for path in {*core.sources, *files} if path.endswith(".v"))
    clock_mhz = core.asked_mhz or CLOCK_MHZ
    values = {
        "core": core,
        "name": core.name,
        "input": core.inputs[0],
        "output": core.outputs[0],
        "control": any(group.endswith("ctrl") for group in core.axi_lite),
        "head": STORED[heads[0].start.dtype] if makes_codes and len(heads) == 1 and not heads[0].pairs else "",
        "tail": STORED[tails[0].end.dtype] if len(tails) == 1 else "",
        "frames": frames,
        "number_bytes": number_bytes,
        "result_bytes": result_bytes,
        "ram_words": 1 << (memory_bytes - 1).bit_length() - 2,
        "address_bits": address_bits(core),
        "divider": round(clock_mhz * 1e6 / BAUD),
        "devices": ecp5,
        "names": programs.names,
        "place": {
            device.name: " ".join(nextpnr.arguments(device, clock_mhz, 1, bitstream=True, pins=True)) for device in ecp5
        },
        "pack": " ".join(nextpnr.pack_arguments(ecp5[0], "soc-$(DEVICE).bit")),
    }
    files |= _rendered("soc", _SYSTEM, values) | _rendered("soc/firmware", _FIRMWARE, values)
    script = yosys.passes(ecp5[0], [*sources, "picorv32.v", "soc.v"], "soc", dsp=False)
    files["soc/synth.ys"] = ("\n".join(script) + "\n").encode()
    files["soc/firmware/vectors.bin"] = vectors[: frames * vector_bytes]
    return files


def _rendered(folder: str, names: Sequence[str], values: dict[str, object]) -> dict[str, bytes]:
    return {f"{folder}/{name}": render(f"project/soc/{name}.j2", **values).encode() for name in names}


def _head_bytes(head: Head) -> int:
    """Bytes of the numbers of a vector from which a head makes codes."""
    return _bytes(head.start.dtype, head.start.shape) * (2 if head.pairs else 1)


def _bytes(dtype: str, shape: Sequence[int]) -> int:
    return math.prod(shape) * np.dtype(dtype).itemsize
