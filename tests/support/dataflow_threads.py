"""A core whose processes run at the same time, between streams that hold as many beats as the core says.

C simulation calls one process after the other, between streams without an end. Here every call of a dataflow region is
a thread, and so is every call of the library's networks; who reads an empty stream or writes to a full one waits. If
all of them wait, the program ends with "deadlock".
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from hlsgen.driver.build_directory import reopen
from hlsgen.simulation.cpp_headers import include_folders

#: In the place of csim/hls_stream.h.
_STREAMS = """
#ifndef BOUNDED_HLS_STREAM_H
#define BOUNDED_HLS_STREAM_H
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace bounded {
static std::mutex lock;
static std::condition_variable changed;
static std::set<const std::function<bool()> *> waiting;
static int running = 1, frames = 0;

static void look() {
    if (static_cast<int>(waiting.size()) < running || waiting.empty()) return;
    for (const auto *ready : waiting)
        if ((*ready)()) return;
    std::puts("deadlock");
    std::fflush(stdout);
    std::_Exit(3);
}
static void until(std::unique_lock<std::mutex> &held, const std::function<bool()> &ready) {
    while (!ready()) {
        waiting.insert(&ready);
        look();
        changed.wait(held);
        waiting.erase(&ready);
    }
}

class region {
    std::vector<std::thread> threads;
    std::vector<std::function<void()>> calls;
    std::size_t left;

public:
    void add(std::function<void()> call) { calls.push_back(call); }
    ~region() {
        {
            std::lock_guard<std::mutex> held(lock);
            left = calls.size();
            running += static_cast<int>(left) - 1;
        }
        for (auto &call : calls)
            threads.emplace_back([this, &call] {
                call();
                std::lock_guard<std::mutex> held(lock);
                if (--left == 0) return;  // the thread that waits for all of these runs again
                running--;
                look();
            });
        for (auto &one : threads) one.join();
    }
};
}  // namespace bounded

namespace hls {
template <typename T, int DEPTH = 0>
class stream;
template <typename T>
class stream<T, 0> {
    std::deque<T> values;
    std::size_t depth;

public:
    explicit stream(const char *, std::size_t depth = 1 << 30) : depth(depth) {}
    bool empty() {
        std::lock_guard<std::mutex> held(bounded::lock);
        return values.empty();
    }
    T read() {
        std::unique_lock<std::mutex> held(bounded::lock);
        bounded::until(held, [this] { return !values.empty(); });
        const T value = values.front();
        values.pop_front();
        bounded::changed.notify_all();
        return value;
    }
    void write(const T &value) {
        std::unique_lock<std::mutex> held(bounded::lock);
        bounded::until(held, [this] { return values.size() < depth; });
        values.push_back(value);
        bounded::changed.notify_all();
    }
};
template <typename T, int DEPTH>
class stream : public stream<T, 0> {
public:
    explicit stream(const char *name) : stream<T, 0>(name, DEPTH) {}
};
}  // namespace hls
#endif
"""
#: Sends the words of all frames, then compares what comes.
_MAIN = """
#include "TOP.cpp"
#include <fstream>
#include <string>

static std::vector<unsigned long long> words(const char *name) {
    std::ifstream file(name);
    std::vector<unsigned long long> found;
    for (std::string line; file >> line;) found.push_back(std::stoull(line, nullptr, 16));
    return found;
}
int main() {
    const auto sent = words("../tb/input.hex"), wanted = words("../tb/expected.hex");
    bounded::frames = static_cast<int>(sent.size()) / BEATS;
    hls::stream<TOP_input_t> ways_in("s");
    hls::stream<TOP_output_t> ways_out("m");
    for (const auto word : sent) {
        TOP_input_t beat;
        beat.data = word;
        ways_in.write(beat);
    }
    TOP(ways_in, ways_out);
    int wrong = 0;
    for (const auto word : wanted) wrong += static_cast<unsigned long long>(ways_out.read().data.to_uint64()) != word;
    std::printf("%d frames, %d wrong\\n", bounded::frames, wrong + !ways_out.empty());
    return 0;
}
"""
_STREAM = re.compile(r'^( {4}hls::stream<.+> \w+\("\w+")\);\n(?:#pragma HLS STREAM variable=\w+ depth=(\d+)\n)?', re.M)
_CALL = re.compile(r"^ {4}(\w+(?:<[^;]*?>)?\([^;]*\));\n", re.M)


def _threads(body: str, repeated: bool) -> str:
    """The body of a region: its streams with their depths, and a thread for each of its calls."""
    body = _STREAM.sub(lambda m: f"{m[1]}, {m[2]});\n" if m[2] else f"{m[1]});\n", body)
    first = _CALL.search(body)
    assert first
    body = (
        body[: first.start()] + "    bounded::region region;\n" + body[first.start() :]
    )  # it ends before the streams do
    times = "for (int f = 0; f < bounded::frames; f++) " if repeated else ""
    return _CALL.sub(lambda m: f"    region.add([&] {{ {times}{m[1]}; }});\n", body)


def threaded(text: str) -> str:
    """A source in which every function that has streams of its own runs its calls in threads."""

    def changed(match: re.Match[str]) -> str:
        head, body = match[1], match[2]
        own = _STREAM.search(body) is not None
        return head + (_threads(body, "#pragma HLS INTERFACE" in body) if own else body)

    return re.sub(r"^(\w[^;{}]*\) \{)(\n.*?^\}\n)", changed, text, flags=re.M | re.S)


def simulated(core: Path, top: str, work: Path, depth: int | None = None) -> str:
    """What the frames of a core's test bench give, with threads. `depth`: of all streams, if not that of the core."""
    work.mkdir()
    (port,) = reopen(core).network.inputs
    hls = core / "hls"
    for name in (f"{top}.cpp", *(f"hg/{path.name}" for path in (hls / "hg").iterdir())):
        text = (hls / name).read_text()
        if depth is not None:
            text = re.sub(r"depth=\d+", f"depth={depth}", text)
        (work / name).parent.mkdir(exist_ok=True)
        (work / name).write_text(threaded(text))
    for name in (f"{top}.hpp", "weights.hpp"):
        (work / name).write_text((hls / name).read_text())
    (work / "hls_stream.h").write_text(_STREAMS)
    (work / "main.cpp").write_text(_MAIN.replace("TOP", top).replace("BEATS", str(port.stream.beats)))
    headers = [f"-isystem{folder}" for folder in include_folders("ac")]
    folders = ["-I.", f"-I{hls / 'csim'}", f"-I{hls / 'csim_ac'}", *headers]
    command = ["g++", "-std=c++14", "-O1", "-w", "-pthread", "-ffp-contract=off", *folders, "main.cpp", "-o", "main"]
    subprocess.run(command, cwd=work, check=True)
    done = subprocess.run([work / "main"], cwd=core / "hls", capture_output=True, text=True, timeout=120)
    return done.stdout
