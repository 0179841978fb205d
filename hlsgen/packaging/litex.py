"""LiteX modules for a core, a simulated SoC, a SoC for boards with ECP5 FPGAs, and firmware that runs the vectors."""

from __future__ import annotations

from dataclasses import replace

from hlsgen.library import render
from hlsgen.packaging.core import Core
from hlsgen.packaging.dma import channels_of, dma_files, dma_values
from hlsgen.packaging.firmware import PROGRAM_BYTES, STACK_BYTES, firmware_of

#: Files of the SoC. Their templates have the same names.
_SYSTEM = ("hlsgen_litex.py", "firmware.py", "sim.py", "sim.cpp", "board.py")
#: Files of the firmware for this SoC.
_BOARD = ("board.c", "start.S", "link.ld")


def litex_files(core: Core) -> dict[str, bytes]:
    """The files of `dma_files`, and the folder litex/. Raises HG040."""
    files = dma_files(core)
    firmware = firmware_of(core)
    values = {
        **firmware.values,
        **dma_values(core, channels_of(core)),
        "rom_bytes": _power(PROGRAM_BYTES + len(firmware.vectors)),
        "sram_bytes": _power(STACK_BYTES + firmware.data_bytes),
    }
    files["litex/manifest.json"] = core.build.files["manifest.json"]
    files |= {f"litex/{name}": render(f"project/litex/{name}.j2", **values).encode() for name in _SYSTEM}
    board_files = {name: f"project/litex/{name}.j2" for name in _BOARD}
    return files | replace(firmware, values=values).files("litex/firmware", board_files)


def _power(count: int) -> int:
    """The next power of two."""
    return 1 << (count - 1).bit_length()
