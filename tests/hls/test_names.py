"""Layer names that are reserved by C++, its headers, or the text of the core."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from models import Net, save
from paths import ROOT

import hlsgen
from hlsgen.hls.names import identifier
from hlsgen.hls.reserved import is_reserved
from hlsgen.simulation.cpp_headers import DIALECTS, include_folders

#: Names in C++, in system headers, and in the emitted text, including derived names.
NAMES = (
    "time",
    "size",
    "clock",
    "key",
    "pthread",
    "int8",
    "ssize",
    "ptrdiff",
    "max_align",
    "random",
    "index",
    "y1",
    "stdin",
    "errno",
    "class",
    "main",
    "std",
    "1",
    "Größe",
    "__x",
    "take_frame",
    "send_frame",
    "input_word",
    "top",
    "fc",
    "fc_out",
    "fc_beat",
    "bb_out",
    "bb",
    "native",
    "hg_trace",
    "assert",
    "NULL",
    "EOF",
    "INT_MAX",
    "isnan",
    "min",
    "max",
    "va_end",
    "offsetof",
    "size_t",
    "environ",
    "HLS_REG",
    "AP_TRN",
)


@pytest.mark.slow
@pytest.mark.sim
def test_layers_may_have_reserved_names(tmp_path: Path) -> None:
    net = Net().quant(name="q0", signed=1)
    for number, name in enumerate(NAMES):
        net = net.linear(3, 3 if number else 4, name=name).quant(bits=3.0, signed=1, name=f"{name}_q")
    path = save(net.model(), tmp_path / "m.onnx")
    build = hlsgen.build(path, tmp_path / "out", hlsgen.Options(target="hls", realize={"": "thresholds"}))
    assert len({layer.name for layer in build.graph.layers} & set(NAMES)) == len(NAMES)
    x = np.random.default_rng(1).integers(-8, 8, (9, 4)).astype(np.float32) / 2
    for backend in ("cpp", "cpp-ap"):
        for layer in hlsgen.layers(tmp_path / "out", x, backend):
            assert layer.differing == 0, layer.name


CPP = ROOT / "templates" / "cpp"
#: Headers that test benches, C simulation and vendors' headers include.
SYSTEM = """cassert cerrno cfloat climits cmath condition_variable cstddef cstdint cstdio cstdlib cstring fstream
    iomanip iostream limits map memory mutex pthread.h queue sstream string sys/resource.h thread unordered_map utility
    vector""".split()


def headers() -> str:
    """Text that includes all headers compiled with a core."""
    lines = [f"#include <{name}>" for name in (*SYSTEM, "hls_stream.h", "ap_axi_sdata.h")]
    return "\n".join([*lines, *(f'#include "hg/{path.name}"' for path in sorted((CPP / "hg").glob("*.hpp"))), ""])


def compiler(dialect: str, *options: str, text: str) -> subprocess.CompletedProcess[str]:
    """Run g++ with the headers of a dialect on `text`."""
    folders = [CPP, CPP / "csim", *([CPP / "csim_ac"] if dialect == "ac" else [])]
    command = ["g++", "-std=c++14", "-w", *options, *(f"-I{folder}" for folder in folders)]
    command += [word for folder in include_folders(dialect) for word in ("-isystem", str(folder))]
    return subprocess.run([*command, "-x", "c++", "-"], input=text, capture_output=True, text=True, check=False)


@pytest.mark.sim
@pytest.mark.parametrize("dialect", DIALECTS)
def test_macros_of_the_headers_are_reserved(dialect: str) -> None:
    """Every macro that the preprocessor lists is reserved, except names with a leading underscore."""
    completed = compiler(dialect, "-dM", "-E", text=headers())
    assert completed.returncode == 0, completed.stderr
    macros = re.findall(r"^#define ([A-Za-z]\w*)", completed.stdout, re.MULTILINE)
    assert {"assert", "NULL", "EOF", "INT_MAX"} < set(macros)
    assert [name for name in macros if not is_reserved(name)] == []
    assert [name for name in macros if identifier(name) in macros] == []


@pytest.mark.sweep
@pytest.mark.sim
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_word_of_the_headers_is_a_name_or_reserved(dialect: str) -> None:
    """A process with any other word as its name compiles, and so does a call of it."""
    completed = compiler(dialect, "-E", "-P", text=headers())
    words = {
        word for word in re.findall(r"\b[A-Za-z]\w*", completed.stdout) if "__" not in word and not is_reserved(word)
    }
    assert len(words) > 2000
    port = "hls::stream<hg::vec<ap_int<4>, 2> > &"
    lines = [f"static void {word}({port} s, {port} m) {{ m.write(s.read()); }}" for word in sorted(words)]
    lines += [
        f"void taker({port} s_axis, {port} m_axis) {{",
        *(f"{word}(s_axis, m_axis);" for word in sorted(words)),
        "}",
    ]
    completed = compiler(dialect, "-fsyntax-only", "-fmax-errors=20", text=headers() + "\n".join([*lines, ""]))
    assert completed.returncode == 0, completed.stderr[:2000]
