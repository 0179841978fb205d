"""Compiles and runs calls of library functions with g++ in both dialects, with warnings as errors and sanitizers.

Expected values come from the same reference functions as in the tests of the Verilog modules.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hlsgen.dataflow.units import Node
from hlsgen.hls.binding.units import bind_node
from hlsgen.hls.emit import rom_text
from hlsgen.hls.process import Process, type_text
from hlsgen.hls.read_order import read_beats
from hlsgen.library import headers_used, library_text
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.simulation.cpp_headers import DIALECTS, include_folders

FLAGS = (
    "-DHG_EXACT_COUNTERS -std=c++14 -O0 -ffp-contract=off -Wall -Wextra -Wshadow -Wconversion -Werror"
    " -Wno-unknown-pragmas -Wno-uninitialized -Wno-maybe-uninitialized"
)
#: Only for ac_types. Calls with ap_types compile in little more than half the time without sanitizers.
SANITIZE = {"ac": ["-fsanitize=undefined,address", "-fno-sanitize-recover=all"], "ap": []}


@dataclass(frozen=True, eq=False)
class Case:
    """A call with its input streams, each int64 (beats, lanes), with all frames in sequence.

    `takes`, `gives`: element types and lanes of the input and output streams. `frames`: number of calls. `needs`: per
    input, the beats that the process must read before it emits each beat of a frame.
    """

    call: Process
    inputs: Sequence[Array]
    takes: Sequence[tuple[IntType, int]]
    gives: Sequence[tuple[IntType, int]]
    frames: int = 1
    needs: Sequence[Array] = ()


def case_of(node: Node, inputs: Sequence[Array], frames: int = 1) -> Case:
    """Case for the process of a node."""
    takes = [(stream.type, stream.lanes) for stream in node.sources]
    gives = [(node.result.type, node.result.lanes)] * len(node.outputs)
    return Case(bind_node(node), inputs, takes, gives, frames, read_beats(node))


def run_cases(folder: Path, cases: Sequence[Case], dialect: str, *, exact: bool = False) -> list[list[Array]]:
    """Values of each output stream of each case, int64 (beats, lanes). `exact`: constants have the hardware types.

    The program fails if a process reads an empty stream, or leaves values in a stream.
    """
    compile_cases(folder, cases, dialect, exact=exact)
    return send(folder, cases)


def compile_cases(folder: Path, cases: Sequence[Case], dialect: str, *, exact: bool = False) -> None:
    """Compile the program of `run_cases`. It accepts any inputs with the same numbers of beats."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in headers_used({f"{case.call.header}.hpp" for case in cases}):
        (folder / "hg").mkdir(exist_ok=True)
        (folder / "hg" / name).write_text(library_text("cpp/hg", name))
    for part in ("csim", "csim_ac"):
        (folder / part).mkdir(exist_ok=True)
        for name in ("hls_stream.h", "ap_axi_sdata.h") if part == "csim" else ("ap_int.h", "ap_fixed.h"):
            (folder / part / name).write_text(library_text(f"cpp/{part}", name))
    (folder / "cases.cpp").write_text(_program(cases))
    includes = [flag for path in include_folders(dialect) for flag in ("-isystem", str(path))]
    dialect_folders = ["-I.", "-Icsim"] + (["-Icsim_ac"] if dialect == "ac" else [])
    compiler = ["ccache", "g++"] if shutil.which("ccache") else ["g++"]
    exact_types = ["-DHG_EXACT"] if exact else []
    flags = [*FLAGS.split(), *exact_types, *SANITIZE[dialect], *dialect_folders, *includes]
    # ccache caches object files only.
    for command in ([*compiler, *flags, "-c", "cases.cpp"], ["g++", *SANITIZE[dialect], "cases.o", "-o", "cases"]):
        completed = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert completed.returncode == 0, completed.stderr[-6000:]


def send(folder: Path, cases: Sequence[Case]) -> list[list[Array]]:
    """Run the program compiled for these cases on their inputs."""
    with open(folder / "sent.txt", "w") as inputs_file:
        for case in cases:
            for values in case.inputs:
                np.savetxt(inputs_file, values.reshape(1, -1), fmt="%d")
    completed = subprocess.run(
        ["./cases"], cwd=folder, capture_output=True, text=True, env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    )
    assert completed.returncode == 0, completed.stderr[-3000:]
    lines = iter(completed.stdout.splitlines())
    outputs = []
    for case in cases:
        outputs.append([np.array(next(lines).split(), np.int64).reshape(-1, lanes) for _, lanes in case.gives])
        reads = np.array(next(lines).split(), np.int64).reshape(-1, len(case.takes))
        for needed, read in zip(case.needs, reads.T, strict=bool(case.needs)):
            assert np.array_equal(read, needed), case.call
    return outputs


def _program(cases: Sequence[Case]) -> str:
    headers = sorted({case.call.header for case in cases})
    parts = [_TRACE, *(f'#include "hg/{name}.hpp"' for name in headers), _HELPERS]
    for n, case in enumerate(cases):
        names = {suffix: f"case{n}_{suffix}" for suffix in case.call.tables}
        parts += [f"static const {rom_text(names[suffix], table)}" for suffix, table in case.call.tables.items()]
        streams = [*case.takes, *case.gives]
        types = [f"hg::vec<{type_text(type_)}, {lanes}>" for type_, lanes in streams]
        body = [f'    hls::stream<{text} > s{k}("case {n}, stream {k}");' for k, text in enumerate(types)]
        body += [f"    take(s{k}, {len(values)});" for k, values in enumerate(case.inputs)]
        parts.append(case.call.shape_text(f"case{n}_shape"))
        call = case.call.head(f"case{n}_shape")
        arguments_of_call = ", ".join([*(f"s{k}" for k in range(len(streams))), *names.values()])
        input_sizes = "".join(f"[&] {{ return s{k}.size(); }}, " for k in range(len(case.takes)))
        body += [
            f"    inputs = {{{input_sizes}}};",
            f'    output = "case {n}, stream {len(case.takes)}";',
            "    traced = true;",
        ]
        body += [f"    trace(nullptr);\n    {call}({arguments_of_call});", "    traced = false;"]
        body += [f"    for (int frame = 1; frame < {case.frames}; frame++) {call}({arguments_of_call});"]
        body += [f"    give(s{k});" for k in range(len(case.takes), len(streams))]
        body += ["    give_reads();"]
        parts += [f"static void case{n}() {{", *body, "}"]
    return "\n".join([*parts, "int main() {", *(f"    case{n}();" for n in range(len(cases))), "}", ""])


_TRACE = """#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>
static bool traced = false;
static const char *output = "";
static std::vector<std::function<std::size_t()> > inputs;
static std::vector<std::size_t> sizes, reads;
static void trace(const char *name) {
    if (!name) {
        sizes.clear();
        for (const auto &size : inputs) sizes.push_back(size());
    } else if (traced && !std::strcmp(name, output)) {
        for (std::size_t n = 0; n < inputs.size(); n++) reads.push_back(sizes[n] - inputs[n]());
    }
}
#define HG_TRACE(name, value) trace(name)
static void give_reads() {
    for (std::size_t count : reads) std::printf("%lu ", static_cast<unsigned long>(count));
    std::printf("\\n");
    reads.clear();
}
"""

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

__all__ = ["DIALECTS", "Case", "case_of", "compile_cases", "run_cases", "send"]
