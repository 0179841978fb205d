"""Estimates the interval of an emitted C++ core from its own loops, without the prediction of hlsgen.

C simulation counts the iterations of every loop in every process. `hls_schedule` gives the cycles of an iteration and
its latency. A process takes its iterations, and then empties its pipeline, before it begins the next frame.
"""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from hls_schedule import BUDGET, LoopDelay, call_graph, ir_of, loop_delays_of

from hlsgen.simulation.cpp_headers import include_folders

_COUNTS = """
#include <cstdio>
#include <map>
#include <string>
namespace hg_count {
inline const char *&process() { static const char *name = ""; return name; }
struct table {
    std::map<std::string, unsigned long> rows;
    ~table() {
        std::FILE *file = std::fopen("counts.txt", "w");
        for (const auto &row : rows) std::fprintf(file, "%lu %s\\n", row.second, row.first.c_str());
        std::fclose(file);
    }
    static table &all() { static table only; return only; }
};
}
#define HG_COUNT(PLACE) do { \\
    static const char *of = 0; static unsigned long *count = 0; \\
    if (of != hg_count::process()) { \\
        of = hg_count::process(); \\
        count = &hg_count::table::all().rows[std::string(of) + " " + __func__ + " " + PLACE + __PRETTY_FUNCTION__]; \\
    } \\
    ++*count; } while (0)
"""


@dataclass(frozen=True)
class ProcessLoops:
    """Loops of a process.

    `iterations`: of its longest loop, per frame. `interval`: cycles of an iteration of its slowest one. `latency`:
    cycles of its longest iteration. `worst`: ns of the slowest recurrence.
    """

    name: str
    iterations: float
    interval: int
    latency: int
    worst: float

    def cycles(self, calls: int = 1) -> float:
        """Cycles of a frame: all iterations, and after each call the time in which the last one ends."""
        return self.iterations * self.interval + calls * self.latency


def _counted(text: str, header: str) -> str:
    """Source that counts the iterations of pipelined loops, and notes the process that runs."""
    lines = []
    for number, line in enumerate(text.split("\n")):
        lines.append(line)
        if re.match(r"#pragma HLS PIPELINE II", line):
            lines.append(f'HG_COUNT("{header}:{number} ");')
    text = "\n".join(lines)
    return re.sub(
        r"^(static void (\w+)\([^{]*\{\n#pragma HLS INLINE off\n)",
        r'\1    hg_count::process() = "\2";\n',
        text,
        flags=re.MULTILINE,
    )


def iterations_of(core: Path, top: str, vectors: Path) -> dict[tuple[str, str], float]:
    """Iterations of a frame by process and function, of the longest loop with that name. Runs the core's own bench."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy = folder / "hls"
        shutil.copytree(core, copy)
        for source in (copy / f"{top}.cpp", *copy.glob("hg/*.hpp")):
            source.write_text(_counted(source.read_text(), source.name))
        (folder / "counts.hpp").write_text(_COUNTS)
        (include,) = include_folders("ap")
        sources = [f"{top}.cpp", f"tb/{top}_tb.cpp"]
        command = ["g++", "-std=c++14", "-O1", "-w", "-ffp-contract=off", "-include", str(folder / "counts.hpp")]
        command += ["-I.", "-Icsim", "-isystem", str(include), *sources, "-o", "count.exe"]
        subprocess.run(command, cwd=copy, check=True, capture_output=True, text=True)
        done = subprocess.run(["./count.exe", str(vectors)], cwd=copy, check=True, capture_output=True, text=True)
        frames = int(re.match(r"\d+", done.stdout)[0])
        counts: dict[tuple[str, str], float] = {}
        for line in (copy / "counts.txt").read_text().splitlines():
            count, process, function, _ = line.split(" ", 3)
            key = process, function
            counts[key] = max(counts.get(key, 0.0), int(count) / frames)
        return counts


def processes_of(core: Path, top: str, counts: dict[tuple[str, str], float]) -> dict[str, ProcessLoops]:
    """Loops of every process of a build's folder hls/, by name. `counts`: from `iterations_of`."""
    ir = ir_of(core, top)
    calls = call_graph(ir)
    loops: dict[str, list[LoopDelay]] = defaultdict(list)
    for loop in loop_delays_of(ir, core):
        loops[loop.instance].append(loop)
    result = {}
    for process in dict.fromkeys(name for name, _ in counts):
        (function,) = (name for name in calls if re.match(rf"_ZL{len(process)}{process}RK?[NA]", name))
        own = [loop for name in (function, *calls[function]) for loop in loops[name]]
        assert own, f"{process}: its code is not in the IR"
        result[process] = ProcessLoops(
            process,
            max(count for (name, called), count in counts.items() if name == process and called != "renew"),
            max(math.ceil(max(loop.ratio, 0.01) / BUDGET) for loop in own),
            max(math.ceil(loop.latency / BUDGET) for loop in own),
            max(loop.ratio for loop in own),
        )
    return result


def _steps(text: str) -> dict[str, tuple[int, dict[str, list[str]]]]:
    """Steps of a frame, and processes of a step, of each loop of a core.

    Each process has the earlier ones that it shares a stream with: it reads what they write.
    """
    result = {}
    for loop, body in re.findall(r"^static void (\w+)_step\([^{]*\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL):
        caller = re.search(rf"^static void {loop}\([^{{]*\{{\n(.*?)^\}}", text, re.MULTILINE | re.DOTALL)
        steps = re.search(r"step < (\d+)", caller[1]) if caller else None
        processes: dict[str, list[str]] = {}
        user: dict[str, str] = {}
        for process, arguments in re.findall(r"^    (\w+)\(([^;]*)\);", body, re.MULTILINE):
            streams = re.findall(r"\w+", arguments)
            processes[process] = [user[stream] for stream in streams if stream in user]
            user |= dict.fromkeys(streams, process)
        result[loop] = int(steps[1]) if steps else 1, processes
    return result


def interval_of(core: Path, top: str, vectors: Path) -> tuple[float, str, dict[str, ProcessLoops]]:
    """Cycles between two frames, the process or loop that decides, and the loops of all processes.

    `core`: the folder hls/ of a build. `vectors`: the folder with its hexadecimal test vectors.
    """
    counts = iterations_of(core, top, vectors)
    processes = processes_of(core, top, counts)
    cycles = {name: process.cycles() for name, process in processes.items()}
    for loop, (steps, members) in _steps((core / f"{top}.cpp").read_text()).items():
        copies = sum(counts.get((member, "renew"), 0.0) for member in members)
        ends: dict[str, float] = {}
        for member, before in members.items():
            ends[member] = max((ends[name] for name in before), default=0.0) + processes[member].cycles(steps)
        cycles[loop] = cycles.get(loop, 0.0) + copies + max(ends.values())
    slowest = max(cycles, key=lambda name: cycles[name])
    return cycles[slowest], slowest, processes
