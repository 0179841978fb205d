"""Calls of library functions, compiled with g++ in both dialects, with warnings as errors and sanitizers, and run.

Expected values come from the same reference functions as those of the Verilog modules.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hlsgen.hls.emit import rom_text
from hlsgen.hls.process import Process, spell
from hlsgen.library import headers_used, library_text
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.simulation.cpp_headers import DIALECTS, include_folders

FLAGS = "-std=c++14 -O1 -ffp-contract=off -Wall -Wextra -Werror -Wno-unknown-pragmas -Wno-uninitialized -Wno-maybe-uninitialized"
#: Streams seem empty at random, which only the pace of a process may depend on.
PAUSE = "-DHG_PAUSE=(std::rand()%3==0)"
SANITIZE = "-fsanitize=undefined,address -fno-sanitize-recover=all"
#: ap_int itself shifts negative numbers to the left, which C++ defines only since C++20.
EXCEPT = {"ap": ["-fno-sanitize=shift"], "ac": []}


@dataclass(frozen=True, eq=False)
class Case:
    """A call with its streams: each int64 (beats, lanes) of a type; all frames one after the other.

    `takes`, `gives`: types of the elements of the input and output streams and their lanes. `frames`: calls.
    """

    call: Process
    inputs: Sequence[Array]
    takes: Sequence[tuple[IntType, int]]
    gives: Sequence[tuple[IntType, int]]
    frames: int = 1


def run_cases(folder: Path, cases: Sequence[Case], dialect: str, *, exact: bool = False) -> list[list[Array]]:
    """What each output stream of each case has: int64 (beats, lanes). `exact`: with constants of hardware's types.

    The program ends with an error if a process reads what is not there, or leaves something.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in headers_used({f"{case.call.header}.hpp" for case in cases}):
        (folder / "hg").mkdir(exist_ok=True)
        (folder / "hg" / name).write_text(library_text("cpp/hg", name))
    for part in ("csim", "csim_ac"):
        (folder / part).mkdir(exist_ok=True)
        for name in ("hls_stream.h", "ap_axi_sdata.h") if part == "csim" else ("ap_int.h", "ap_fixed.h"):
            (folder / part / name).write_text(library_text(f"cpp/{part}", name))
    (folder / "cases.cpp").write_text(_program(cases))
    with open(folder / "sent.txt", "w") as sent:
        for case in cases:
            for values in case.inputs:
                np.savetxt(sent, values.reshape(1, -1), fmt="%d")
    includes = [flag for path in include_folders(dialect) for flag in ("-isystem", str(path))]
    own = ["-I.", "-Icsim"] + (["-Icsim_ac"] if dialect == "ac" else [])
    compiler = ["ccache", "g++"] if shutil.which("ccache") else ["g++"]
    exact_types = ["-DHG_EXACT"] if exact else []
    flags = [*FLAGS.split(), *exact_types, *SANITIZE.split(), PAUSE, *EXCEPT[dialect], *own, *includes]
    done = subprocess.run([*compiler, *flags, "cases.cpp", "-o", "cases"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-6000:]
    done = subprocess.run(
        ["./cases"], cwd=folder, capture_output=True, text=True, env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = iter(done.stdout.splitlines())
    return [[np.array(next(lines).split(), np.int64).reshape(-1, lanes) for _, lanes in case.gives] for case in cases]


def _program(cases: Sequence[Case]) -> str:
    headers = sorted({case.call.header for case in cases})
    parts = ["#include <cstdio>", *(f'#include "hg/{name}.hpp"' for name in headers), _HELPERS]
    for n, case in enumerate(cases):
        names = {end: f"case{n}_{end}" for end in case.call.tables}
        parts += [f"static const {rom_text(names[end], table)}" for end, table in case.call.tables.items()]
        streams = [*case.takes, *case.gives]
        types = [f"hg::vec<{spell(type_)}, {lanes}>" for type_, lanes in streams]
        body = [f'    hls::stream<{text} > s{k}("case {n}, stream {k}");' for k, text in enumerate(types)]
        body += [f"    take(s{k}, {len(values)});" for k, values in enumerate(case.inputs)]
        arguments = ", ".join(f"{text} /* {name} */" for name, text in case.call.arguments)
        call = f"{case.call.function}<{arguments}>" if arguments else case.call.function
        given = ", ".join([*(f"s{k}" for k in range(len(streams))), *names.values()])
        body += [f"    for (int frame = 0; frame < {case.frames}; frame++) {call}({given});"]
        body += [f"    give(s{k});" for k in range(len(case.takes), len(streams))]
        parts += [f"static void case{n}() {{", *body, "}"]
    return "\n".join([*parts, "int main() {", *(f"    case{n}();" for n in range(len(cases))), "}", ""])


_HELPERS = """
static std::FILE *sent = std::fopen("sent.txt", "r");
template <typename T, int N>
void take(hls::stream<hg::vec<T, N> > &s, long beats) {
    for (long beat = 0; beat < beats; beat++) {
        hg::vec<T, N> x;
        for (int n = 0; n < N; n++) {
            long long value = 0;
            if (std::fscanf(sent, "%lld", &value) != 1) std::abort();
            x[n] = T(value);
        }
        s.write(x);
    }
}
template <typename T, int N>
void give(hls::stream<hg::vec<T, N> > &m) {
    while (m.size()) {
        const hg::vec<T, N> y = m.read();
        for (int n = 0; n < N; n++) std::printf("%lld ", static_cast<long long>(y[n].to_int64()));
    }
    std::printf("\\n");
}
"""

__all__ = ["DIALECTS", "Case", "run_cases"]
