"""A system around a core: processor, memory, UART, hg_dma, and firmware that runs the vectors of the build."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from hlsgen.devices import devices
from hlsgen.diagnostics import fail
from hlsgen.library import render
from hlsgen.packaging.core import Core
from hlsgen.packaging.dma import address_bits, dma_files, word_bits
from hlsgen.packaging.firmware import PROGRAM_BYTES, firmware_of
from hlsgen.synthesis import nextpnr, programs, yosys

#: Devices of `make bit`.
DEVICES = ("ecp5-25k", "ecp5-85k")
#: Clock of the UART's default rate, and its bits per second.
CLOCK_MHZ, BAUD = 50.0, 115200
#: Files of the firmware for this system, and of the system. Their templates have the same names.
_BOARD = ("board.c", "start.S", "link.ld")
_SYSTEM = ("soc.v", "sim.cpp", "elf_to_hex.py", "synth.py", "Makefile")


def soc_files(core: Core) -> dict[str, bytes]:
    """The files of `dma_files`, and the folder soc/. Raises HG040."""
    files = dma_files(core)
    if word_bits(core) != 32:
        text = f"the ports of the core have {word_bits(core)} bits."
        raise fail("HG040", "--for soc", text, "The system has memory of 32 bits: build with --bus-width 32.")
    firmware = firmware_of(core)
    memory_bytes = PROGRAM_BYTES + len(firmware.vectors) + firmware.data_bytes
    ecp5 = [devices()[name] for name in DEVICES]
    sources = sorted(PurePosixPath(path).name for path in {*core.sources, *files} if path.endswith(".v"))
    clock_mhz = core.asked_mhz or CLOCK_MHZ
    values = {
        "core": core,
        "name": core.name,
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
    board_files = {name: f"project/soc/{name}.j2" for name in _BOARD}
    texts = {f"soc/{name}": render(f"project/soc/{name}.j2", **values) for name in _SYSTEM}
    files |= {path: text.encode() for path, text in texts.items()}
    files |= replace(firmware, values={**firmware.values, **values}).files("soc/firmware", board_files)
    script = yosys.passes(ecp5[0], [*sources, "picorv32.v", "soc.v"], "soc", dsp=False)
    files["soc/synth.ys"] = ("\n".join(script) + "\n").encode()
    return files
