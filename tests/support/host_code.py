"""Host code of graphs compiled by gcc with UBSan, many in one program, and loaded in Python: both given the same
frames.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlsgen.dataflow.bus import bus_layout
from hlsgen.dataflow.network import CorePort
from hlsgen.dataflow.units import FLOAT_WORD, INPUT, Node, Port, Stream, stream_of
from hlsgen.host.emit import host_files
from hlsgen.host.plan import plan_head, plan_tail
from hlsgen.ir import FloatKey, Graph, Value
from hlsgen.testbench.sample_vectors import port_words

Array = NDArray[Any]
CFLAGS = (
    "-std=c99 -O0 -Wall -Wextra -Werror -pedantic -fsanitize=undefined,float-cast-overflow -fno-sanitize-recover=all"
).split()


@dataclass(frozen=True)
class Core:
    """What host code is made for: a graph, and how both ports carry it, on a bus of `width` bits if there is one."""

    graph: Graph
    input: Stream
    output: Stream
    orders: list[Array]
    width: int | None = None

    @property
    def inputs(self) -> tuple[CorePort, ...]:
        return (self._port("s_axis", self.input, self.graph.input, 0),)

    @property
    def outputs(self) -> tuple[CorePort, ...]:
        return (self._port("m_axis", self.output, self.graph.output, -1),)

    def _port(self, name: str, stream: Stream, value: Value, number: int) -> CorePort:
        unit = Port(bus_layout(stream.bits, stream.beats, self.width))
        wires = (INPUT,) if number == 0 else ("last",)
        return CorePort(Node(name, unit, wires, (stream,), (name,), stream), number, 0, value, self.orders[number])

    def files(self, name: str) -> dict[str, bytes]:
        rng = np.random.default_rng(7)
        codes = [rng.integers(v.type.lo, v.type.hi + 1, (3, *v.shape)) for v in (self.graph.input, self.graph.output)]
        return host_files(self, name, f'the "{name}" */ model\\', *codes)  # type: ignore[arg-type]


def core_of(
    graph: Graph,
    lanes: int = 1,
    group: int | None = None,
    axes: tuple[int, ...] | None = None,
    width: int | None = None,
) -> Core:
    """A graph with streams of so many lanes; both run through the axes as said."""

    def port(value: Value) -> tuple[Stream, Array]:
        type_ = FLOAT_WORD if isinstance(value.encoding, FloatKey) else value.type
        order = np.arange(value.size)
        if axes is not None and len(axes) == len(value.shape):
            order = order.reshape(value.shape).transpose(axes).ravel()
        chosen = group if group is not None and value.size % group == 0 else value.size
        return stream_of(type_, lanes, value.size, chosen), order

    (source, first), (result, last) = port(graph.input), port(graph.output)
    return Core(graph, source, result, [first, last], width)


@dataclass(frozen=True)
class Given:
    """What host code gave for frames: codes and bytes of the input, codes of the output, numbers of the tail."""

    wrong: Array
    codes: Array
    data: Array
    read: Array
    numbers: Array


def run_in_c(
    cores: Mapping[str, Core], frames: Mapping[str, tuple[list[Array], Array]], folder: Path
) -> dict[str, Given]:
    """All cores in one program. frames: by name, the numbers of the head (none without a head) and codes of the
    output.
    """
    sources, calls, fed = [], [], b""
    for name, core in cores.items():
        for path, data in core.files(name).items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_bytes(data)
        head, tail = plan_head(core.graph), plan_tail(core.graph)
        numbers, codes = frames[name]
        sources.append(_driver(name, core, len(numbers)))
        calls.append(f"    run_{name}({len(codes)});")
        sent = bytes_out(core, codes)
        fed += b"".join(
            b"".join(np.ascontiguousarray(x[n]).tobytes() for x in numbers) + sent[n].tobytes()
            for n in range(len(codes))
        )
        assert head.makes_codes == bool(numbers), name
        assert tail.end.shape, name
    includes = "".join(f'#include "host/{name}.h"\n' for name in cores)
    main = "\n".join(
        ["#include <stdio.h>", includes, _TAKE, *sources, "int main(void)\n{", *calls, "    return 0;\n}", ""]
    )
    (folder / "main.c").write_text(main)
    own = [str(folder / "host" / f"{name}.c") for name in cores]
    command = ["gcc", *CFLAGS, str(folder / "main.c"), *own, "-lm", "-o", str(folder / "main")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]
    ran = subprocess.run([str(folder / "main")], input=fed, capture_output=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    found, at = {}, 0

    def take(shape: tuple[int, ...], dtype: Any) -> Array:
        nonlocal at
        array = np.frombuffer(ran.stdout, dtype, math.prod(shape), at).reshape(shape)
        at += array.nbytes
        return array

    for name, core in cores.items():
        numbers, codes = frames[name]
        rows = []
        tail = plan_tail(core.graph)
        for _ in codes:
            head_part = (
                (
                    take((1,), np.uint64),
                    take(core.graph.input.shape, np.int64),
                    take((core.inputs[0].layout.frame_bytes,), np.uint8),
                )
                if numbers
                else (np.zeros(1), np.zeros(1), np.zeros(1))
            )
            rows.append((*head_part, take(core.graph.output.shape, np.int64), take(tail.end.shape, tail.end.dtype)))
        found[name] = Given(*(np.stack(column) for column in zip(*rows, strict=True)))
    assert at == len(ran.stdout)
    return found


_TAKE = """static void take(void *to, size_t size)
{
    if (fread(to, 1, size, stdin) != size)
        puts("short");
}
"""


def _driver(name: str, core: Core, inputs: int) -> str:
    head, tail, upper = plan_head(core.graph), plan_tail(core.graph), name.upper()
    stored = {"bool": "uint8_t", "float32": "float", "float64": "double"}
    kind, end = (stored.get(t.dtype, f"{t.dtype}_t") for t in (head.start, tail.end))
    names = [f"numbers{n}" for n in range(inputs)]
    first = f"""
        static {name}_input_code codes[{upper}_INPUT_ELEMENTS];
        static uint8_t sent[{upper}_INPUT_BYTES];
        static {kind} {", ".join(f"{n}[{upper}_HEAD_ELEMENTS]" for n in names)};
        uint64_t wrong;
        {" ".join(f"take({n}, sizeof {n});" for n in names)}
        wrong = {name}_head({", ".join(names)}, codes);
        {name}_pack(codes, sent);
        fwrite(&wrong, 8, 1, stdout);
        for (size_t i = 0; i < {upper}_INPUT_ELEMENTS; i++) {{ int64_t code = (int64_t)codes[i]; fwrite(&code, 8, 1, stdout); }}
        fwrite(sent, 1, sizeof sent, stdout);"""
    return f"""static void run_{name}(int frames)
{{
    for (int frame = 0; frame < frames; frame++) {{{first if inputs else ""}
        static uint8_t data[{upper}_OUTPUT_BYTES];
        static {name}_output_code read[{upper}_OUTPUT_ELEMENTS];
        static {end} results[{upper}_TAIL_ELEMENTS];
        take(data, sizeof data);
        {name}_unpack(data, read);
        {name}_tail(read, results);
        for (size_t i = 0; i < {upper}_OUTPUT_ELEMENTS; i++) {{ int64_t code = (int64_t)read[i]; fwrite(&code, 8, 1, stdout); }}
        fwrite(results, 1, sizeof results, stdout);
    }}
}}
"""


def module_of(folder: Path, name: str) -> ModuleType:
    """host/NAME.py of a folder."""
    spec = spec_from_file_location(f"host_code_{name}", folder / "host" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def self_tests(folder: Path, name: str) -> list[str]:
    """What both self-tests of host code print; they must pass. Python runs isolated from hlsgen."""
    host = folder / "host"
    command = [
        "gcc",
        *CFLAGS,
        str(host / f"{name}.c"),
        str(host / f"{name}_selftest.c"),
        "-lm",
        "-o",
        str(host / "selftest"),
    ]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr[:4000]
    block = "import sys, runpy; sys.modules['hlsgen'] = None; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    runs = [
        [str(host / "selftest"), str(host / f"{name}_vectors.bin")],
        [sys.executable, "-c", block, str(host / f"{name}.py"), "--self-test"],
    ]
    texts = []
    for run in runs:
        done = subprocess.run(run, capture_output=True, text=True)
        assert done.returncode == 0, (run, done.stdout, done.stderr[-2000:])
        texts.append(done.stdout)
    return texts


def bytes_of(core: Core, codes: Array) -> Array:
    """Codes of the input as the bus carries them, by the codec of the test bench: uint8 (frames, bytes of a frame)."""
    return port_words(core.inputs[0], codes).reshape(len(codes), -1)


def bytes_out(core: Core, codes: Array) -> Array:
    """The same of the output."""
    return port_words(core.outputs[0], codes).reshape(len(codes), -1)


__all__ = ["Core", "Given", "bytes_of", "core_of", "module_of", "run_in_c", "self_tests"]


def self_tested(folder: Path, top: str) -> None:
    """Compiles the C of a build in `folder` with its self-test, and runs this on the vectors of the build."""
    sources = [f"{top}.c", f"{top}_selftest.c"]
    command = ["cc", *"-std=c99 -Wall -Wextra -Werror -O1".split(), *sources, "-lm", "-o", "selftest"]
    subprocess.run(command, cwd=folder / "host", check=True)
    subprocess.run(["./selftest", f"{top}_vectors.bin"], cwd=folder / "host", check=True)
