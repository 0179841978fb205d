"""A system around a core: processor, memory, UART, hg_dma, and firmware that runs the vectors of the build."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from hlsgen.devices import devices
from hlsgen.library import render
from hlsgen.packaging.core import Core
from hlsgen.packaging.dma import channels_of, dma_files, dma_values
from hlsgen.packaging.firmware import PROGRAM_BYTES, firmware_of
from hlsgen.synthesis import nextpnr, output_registers, programs, yosys

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
    channels = channels_of(core)
    width = max(channel.width for channel in channels)
    firmware = firmware_of(core)
    memory_bytes = PROGRAM_BYTES + len(firmware.vectors) + firmware.data_bytes
    ram_bytes = 1 << (memory_bytes - 1).bit_length()
    ecp5 = [devices()[name] for name in DEVICES]
    sources = sorted(PurePosixPath(path).name for path in {*core.sources, *files} if path.endswith(".v"))
    clock_mhz = core.asked_mhz or CLOCK_MHZ
    values = {
        "core": core,
        "name": core.name,
        **dma_values(core, channels),
        "width": width,
        "shift": (width // 8).bit_length() - 1,
        "ram_bytes": ram_bytes,
        "ram_words": ram_bytes // (width // 8),
        "divider": round(clock_mhz * 1e6 / BAUD),
        "devices": ecp5,
        "names": programs.names,
        "place": {device.name: " ".join(nextpnr.arguments(device, clock_mhz, 1, bitstream=True)) for device in ecp5},
        "pack": " ".join(nextpnr.pack_arguments(ecp5[0], "soc-$(DEVICE).bit")),
    }
    board_files = {name: f"project/soc/{name}.j2" for name in _BOARD}
    texts = {f"soc/{name}": render(f"project/soc/{name}.j2", **values) for name in _SYSTEM}
    files |= {path: text.encode() for path, text in texts.items()}
    files |= replace(firmware, values={**firmware.values, **values}).files("soc/firmware", board_files)
    script = yosys.passes(ecp5[0], [*sources, "picorv32.v", "soc.v"], "soc", dsp=False)
    files["soc/synth.ys"] = ("\n".join(script) + "\n").encode()
    files[f"soc/{output_registers.FILE}"] = output_registers.source()
    return files
