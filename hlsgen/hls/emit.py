"""Prints a core in C++: its types and top level, its constants, its test bench, and the files that tools take."""

from __future__ import annotations

import numpy as np

from hlsgen.hls.core import Core, wrapped
from hlsgen.hls.process import Rom, spell
from hlsgen.library import headers_used, library_text, render

#: Words of ap_int that are wider have to be asked for.
_AP_INT_BITS = 1024
#: What takes the place of a vendor's headers in C simulation, by folder.
_STAND_INS = {
    "csim": ("hls_stream.h", "ap_axi_sdata.h"), "csim_ac": ("ap_int.h", "ap_fixed.h"), "catapult": ("hls_stream.h",),
}  # fmt: skip


def emit(core: Core) -> dict[str, str]:
    """Relative path -> text of all files but the test vectors."""
    headers = sorted({part.call.header for part in core.parts} | {"ports"})
    types = [(f"{part.name}_beat", part.node.result) for part in core.parts if part.outputs]
    values = {
        "core": core,
        "headers": headers,
        "types": [*((end.channel.type, end.stream) for end in core.inputs), *types],
        "signature": _signature(core),
        "wide": -(-core.bits // 1024) * 1024 if core.bits > _AP_INT_BITS else 0,
        "spell": spell,
    }
    files = {
        f"hls/{core.top}.hpp": render("cpp/top.hpp.j2", **values),
        f"hls/{core.top}.cpp": render("cpp/top.cpp.j2", **values),
        "hls/weights.hpp": _constants(core),
        f"hls/tb/{core.top}_tb.cpp": render("cpp/tb.cpp.j2", **values),
        "hls/Makefile": render("cpp/Makefile.j2", **values),
        "hls/hls_config.cfg": render("cpp/hls_config.cfg.j2", **values),
        "hls/run_hls.tcl": render("cpp/run_hls.tcl.j2", **values),
        "hls/catapult.tcl": render("cpp/catapult.tcl.j2", **values),
    }
    files |= {f"hls/hg/{name}": library_text("cpp/hg", name) for name in headers_used({f"{h}.hpp" for h in headers})}
    for folder, names in _STAND_INS.items():
        files |= {f"hls/{folder}/{name}": library_text(f"cpp/{folder}", name) for name in names}
    return files


def _signature(core: Core) -> str:
    """The head of the top function."""
    ports = ", ".join(f"hls::stream<{end.word}> &{end.port}" for end in (*core.inputs, *core.outputs))
    return wrapped(f"void {core.top}({ports})", 6 + len(core.top), 0)


def _constants(core: Core) -> str:
    """weights.hpp: all constants of the core."""
    guard = f"{core.top.upper()}_WEIGHTS_HPP"
    lines = [
        f"// Constants of {core.title}: weights, thresholds, multipliers, tables.", f"#ifndef {guard}",
        f"#define {guard}", "", '#include "hg/types.hpp"', "",
    ]  # fmt: skip
    for part in core.parts:
        for name, table in part.roms.items():
            lines.append(f"// {part.about}. {table.meaning}")
            lines += [f"static const {rom_text(name, table)}", ""]
    return "\n".join([*lines, "#endif", ""])


def rom_text(name: str, table: Rom) -> str:
    """The declaration of a table, behind `static const`."""
    return f"{_rom_type(table)} {name}{_extents(table)} =\n    {_braces(table.values)};"


def _rom_type(table: Rom) -> str:
    return "float" if table.type is None else f"HG_ROM({table.native}, {spell(table.type)})"


def _extents(table: Rom) -> str:
    return "".join(f"[{n}]" for n in table.values.shape)


def _braces(values: np.ndarray) -> str:
    """An array as an initializer, its innermost rows on lines of their own."""
    if values.ndim == 1:
        return "{" + ", ".join(map(_literal, values.tolist())) + "}"
    inner = ",\n    ".join(_braces(row) for row in values)
    return "{" + inner + "}"


def _literal(value: float) -> str:
    if isinstance(value, float):
        if not np.isfinite(value):
            return "NAN" if np.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
        text = np.format_float_scientific(np.float32(value), unique=True)
        return f"{text}f"
    return f"{value}LL" if abs(value) >= 1 << 31 else str(value)
