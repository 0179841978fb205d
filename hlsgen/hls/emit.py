"""Prints a core in C++: its types and top level, its constants, its test bench, and files for tools."""

from __future__ import annotations

import numpy as np

from hlsgen.hls.core import Core, wrap_code
from hlsgen.hls.process import Rom, type_text
from hlsgen.library import headers_used, library_text, licensed, render

#: Wider ap_int words need AP_INT_MAX_W.
_AP_INT_BITS = 1024
#: Replacements of vendor headers for C simulation, by folder.
_REPLACEMENT_HEADERS = {
    "csim": ("hls_stream.h", "ap_axi_sdata.h"),
    "csim_ac": ("ap_int.h", "ap_fixed.h"),
    "catapult": ("hls_stream.h",),
}


def emit(core: Core) -> dict[str, str]:
    """Text of every file except the test vectors, by relative path."""
    headers = sorted({part.call.header for part in core.parts} | {"ports"})
    types = [(f"{part.name}_beat", part.node.result) for part in core.parts if part.outputs]
    values = {
        "core": core,
        "headers": headers,
        "types": [*((end.channel.type, end.stream) for end in core.inputs), *types],
        "signature": _signature(core),
        "wide": -(-core.bits // 1024) * 1024 if core.bits > _AP_INT_BITS else 0,
        "type_text": type_text,
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
    for folder, names in _REPLACEMENT_HEADERS.items():
        files |= {f"hls/{folder}/{name}": library_text(f"cpp/{folder}", name) for name in names}
    return licensed(files)


def _signature(core: Core) -> str:
    """Signature of the top function."""
    ports = ", ".join(f"hls::stream<{end.word}> &{end.port}" for end in (*core.inputs, *core.outputs))
    return wrap_code(f"void {core.top}({ports})", 6 + len(core.top), 0)


def _constants(core: Core) -> str:
    """Text of weights.hpp: all constants of the core."""
    guard = f"{core.top.upper()}_WEIGHTS_HPP"
    lines = [
        f"// Constants of {core.title}: weights, thresholds, multipliers, lookup tables.",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        '#include "hg/types.hpp"',
        "",
    ]
    for part in core.parts:
        for name, table in part.roms.items():
            lines.append(f"// {part.comment}. {table.meaning}")
            lines += [f"static const {rom_text(name, table)}", ""]
    return "\n".join([*lines, "#endif", ""])


def rom_text(name: str, table: Rom) -> str:
    """Declaration of a constant array, without `static const`."""
    return f"{_rom_type(table)} {name}{_extents(table)} =\n    {_initializer(table.values)};"


def _rom_type(table: Rom) -> str:
    return "float" if table.type is None else f"HG_ROM({table.native}, {type_text(table.type)})"


def _extents(table: Rom) -> str:
    return "".join(f"[{n}]" for n in table.values.shape)


def _initializer(values: np.ndarray) -> str:
    """C++ initializer of an array, one innermost row per line."""
    if values.ndim == 1:
        return "{" + ", ".join(map(_literal, values.tolist())) + "}"
    inner = ",\n    ".join(_initializer(row) for row in values)
    return "{" + inner + "}"


def _literal(value: float) -> str:
    if isinstance(value, float):
        if not np.isfinite(value):
            return "NAN" if np.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
        text = np.format_float_scientific(np.float32(value), unique=True)
        return f"{text}f"
    return f"{value}LL" if abs(value) >= 1 << 31 else str(value)
