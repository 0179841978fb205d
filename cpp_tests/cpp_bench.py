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

from hlsgen.dataflow.units import Node
from hlsgen.hls.binding.units import bind_node
from hlsgen.hls.depths import needs
from hlsgen.hls.emit import rom_text
from hlsgen.hls.process import Process, type_text
from hlsgen.library import headers_used, library_text
from hlsgen.numerics.fixed import Array, IntType
from hlsgen.simulation.cpp_headers import DIALECTS, include_folders

FLAGS = "-std=c++14 -O0 -ffp-contract=off -Wall -Wextra -Werror -Wno-unknown-pragmas -Wno-uninitialized -Wno-maybe-uninitialized"
#: With ac_types; with ap_types, the same calls compile in little more than half the time without.
SANITIZE = {"ac": ["-fsanitize=undefined,address", "-fno-sanitize-recover=all"], "ap": []}


@dataclass(frozen=True, eq=False)
class Case:
    """A call with its streams: each int64 (beats, lanes) of a type; all frames one after the other.

    `takes`, `gives`: types of the elements of the input and output streams and their lanes. `frames`: calls. `needs`: for
    each input, how many beats the process reads before each beat of a frame if it reads none that it could do without.
    """

    call: Process
    inputs: Sequence[Array]
    takes: Sequence[tuple[IntType, int]]
    gives: Sequence[tuple[IntType, int]]
    frames: int = 1
    needs: Sequence[Array] = ()


def case_of(node: Node, inputs: Sequence[Array], frames: int = 1) -> Case:
    """The process of a node with its streams."""
    takes = [(stream.type, stream.lanes) for stream in node.sources]
    gives = [(node.result.type, node.result.lanes)] * len(node.outputs)
    return Case(bind_node(node), inputs, takes, gives, frames, needs(node))


def run_cases(folder: Path, cases: Sequence[Case], dialect: str, *, exact: bool = False) -> list[list[Array]]:
    """What each output stream of each case has: int64 (beats, lanes). `exact`: with constants of hardware's types.

    Streams seem empty at random, and always while the first frame is on its way. The program ends with an error if a
    process reads what is not there, or leaves something.
    """
    compile_cases(folder, cases, dialect, exact=exact)
    return send(folder, cases)


def compile_cases(folder: Path, cases: Sequence[Case], dialect: str, *, exact: bool = False) -> None:
    """The program of `run_cases`, for any inputs of as many beats."""
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
    own = ["-I.", "-Icsim"] + (["-Icsim_ac"] if dialect == "ac" else [])
    compiler = ["ccache", "g++"] if shutil.which("ccache") else ["g++"]
    exact_types = ["-DHG_EXACT"] if exact else []
    flags = [*FLAGS.split(), *exact_types, *SANITIZE[dialect], *own, *includes]
    # ccache keeps objects only.
    for command in ([*compiler, *flags, "-c", "cases.cpp"], ["g++", *SANITIZE[dialect], "cases.o", "-o", "cases"]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-6000:]


def send(folder: Path, cases: Sequence[Case]) -> list[list[Array]]:
    """Runs a program that was compiled of these calls, on their inputs."""
    with open(folder / "sent.txt", "w") as sent:
        for case in cases:
            for values in case.inputs:
                np.savetxt(sent, values.reshape(1, -1), fmt="%d")
    done = subprocess.run(
        ["./cases"], cwd=folder, capture_output=True, text=True, env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = iter(done.stdout.splitlines())
    found = []
    for case in cases:
        found.append([np.array(next(lines).split(), np.int64).reshape(-1, lanes) for _, lanes in case.gives])
        reads = np.array(next(lines).split(), np.int64).reshape(-1, len(case.takes))
        for needed, read in zip(case.needs, reads.T, strict=bool(case.needs)):
            assert np.array_equal(read, needed), case.call
    return found


def _program(cases: Sequence[Case]) -> str:
    headers = sorted({case.call.header for case in cases})
    parts = [_TRACE, *(f'#include "hg/{name}.hpp"' for name in headers), _HELPERS]
    for n, case in enumerate(cases):
        names = {end: f"case{n}_{end}" for end in case.call.tables}
        parts += [f"static const {rom_text(names[end], table)}" for end, table in case.call.tables.items()]
        streams = [*case.takes, *case.gives]
        types = [f"hg::vec<{type_text(type_)}, {lanes}>" for type_, lanes in streams]
        body = [f'    hls::stream<{text} > s{k}("case {n}, stream {k}");' for k, text in enumerate(types)]
        body += [f"    take(s{k}, {len(values)});" for k, values in enumerate(case.inputs)]
        arguments = ", ".join(f"{text} /* {name} */" for name, text in case.call.arguments)
        call = f"{case.call.function}<{arguments}>" if arguments else case.call.function
        given = ", ".join([*(f"s{k}" for k in range(len(streams))), *names.values()])
        left = "".join(f"[&] {{ return s{k}.size(); }}, " for k in range(len(case.takes)))
        body += [f"    inputs = {{{left}}};", f'    output = "case {n}, stream {len(case.takes)}";', "    lazy = true;"]
        body += [f"    trace(nullptr);\n    {call}({given});", "    lazy = false;"]
        body += [f"    for (int frame = 1; frame < {case.frames}; frame++) {call}({given});"]
        body += [f"    give(s{k});" for k in range(len(case.takes), len(streams))]
        body += ["    give_reads();"]
        parts += [f"static void case{n}() {{", *body, "}"]
    return "\n".join([*parts, "int main() {", *(f"    case{n}();" for n in range(len(cases))), "}", ""])


_TRACE = """#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>
static bool lazy = false;
static const char *output = "";
static std::vector<std::function<std::size_t()> > inputs;
static std::vector<std::size_t> sizes, reads;
static void trace(const char *name) {
    if (!name) {
        sizes.clear();
        for (const auto &size : inputs) sizes.push_back(size());
    } else if (lazy && !std::strcmp(name, output)) {
        for (std::size_t n = 0; n < inputs.size(); n++) reads.push_back(sizes[n] - inputs[n]());
    }
}
#define HG_PAUSE (lazy || std::rand() % 3 == 0)
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
