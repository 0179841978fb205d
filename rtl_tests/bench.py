"""Many units with any number of ports in one simulation, recorded cycle by cycle.

`simulate` drives every input with its words and every output with a separate ready. Each phase begins with a
reset; phases differ in how often a source pauses and a sink stalls. Tests check the recorded traces afterwards, in
numpy. The stimulus is fixed beforehand, so both simulators must agree in every cycle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from streams import RTL, memory
from verilated import POWER_UP, call, compile_model

Array = npt.NDArray[np.int64]

#: Probabilities that a source pauses and that a sink stalls, the same for all ports. In phases with None they are
#: random per port, so that each port is the slowest one in some phase.
PHASES: tuple[tuple[float, float] | None, ...] = (
    (0.0, 0.0),
    (0.4, 0.4),
    None,
    (0.5, 0.0),
    (0.0, 0.5),
    (0.1, 0.8),
    None,
    None,
    None,
)
#: Number of first phases that Icarus runs, where Verilator runs all: Icarus takes fifty times as long.
_SLOW_PHASES = 3


@dataclass(frozen=True)
class Unit:
    """A module. `inputs`: words of each port. `widths`: data bits of every port.

    A port name is the prefix of its _data, _valid and _ready signals. "m[i]" is bit i of m_valid and m_ready, with
    m_data in common.
    """

    module: str
    parameters: Mapping[str, object]
    inputs: Mapping[str, Sequence[int]]
    widths: Mapping[str, int]

    @property
    def outputs(self) -> list[str]:
        return [port for port in self.widths if port not in self.inputs]


@dataclass(frozen=True)
class Port:
    """Trace of a port in each cycle of a phase: valid, ready, and the data where it is valid (otherwise 0)."""

    valid: npt.NDArray[np.bool_]
    ready: npt.NDArray[np.bool_]
    data: npt.NDArray[np.object_]

    @property
    def accepted(self) -> Array:
        """Cycles in which beats are accepted."""
        return np.flatnonzero(self.valid & self.ready)

    @property
    def words(self) -> list[int]:
        """The accepted beats."""
        return list(self.data[self.accepted])

    @property
    def offered(self) -> Array:
        """Cycles in which beats are first offered, including a last beat that is never accepted."""
        fresh = np.concatenate([[True], (self.valid & self.ready)[:-1] | ~self.valid[:-1]])
        return np.flatnonzero(self.valid & fresh)

    @property
    def enabled(self) -> npt.NDArray[np.bool_]:
        """Per cycle: the output is free or accepted."""
        return self.ready | ~self.valid

    def holds_still(self) -> bool:
        """True if every offered beat is stable until accepted."""
        waits = (self.valid & ~self.ready)[:-1]
        return bool(np.all(self.valid[1:][waits]) and np.all((self.data[1:] == self.data[:-1])[waits]))


Trace = dict[str, Port]


def simulate(
    units: Sequence[Unit],
    folder: Path,
    cycles: int = 500,
    simulators: Sequence[str] = ("icarus", "verilator"),
    phases: int = len(PHASES),
) -> list[list[Trace]]:
    """Traces of the first `phases` for each unit, from the last simulator. Asserts that the other simulators agree."""
    rng = np.random.default_rng(len(units))
    sources = [(n, port) for n, unit in enumerate(units) for port in unit.inputs]
    sinks = [(n, port) for n, unit in enumerate(units) for port in unit.outputs]
    for n, port in sources:
        (folder / f"u{n}_{port}.mem").write_text(memory([*units[n].inputs[port], 0]))
    control: list[int] = []
    ends: list[int] = []
    for phase in PHASES[:phases]:
        # Two to three cycles of reset, during which sources and sinks continue.
        reset_cycles, ports = int(rng.integers(2, 4)), len(sources) + len(sinks)
        chances = [phase[0]] * len(sources) + [phase[1]] * len(sinks) if phase else rng.choice([0, 0.2, 0.8], ports)
        bits = rng.random((reset_cycles + cycles, ports)) >= chances
        for k, row in enumerate(bits):
            control.append(sum(int(bit) << (place + 1) for place, bit in enumerate(row)) | int(k < reset_cycles))
        ends.append(len(control))
    (folder / "control.mem").write_text(memory(control))
    (folder / "bench.v").write_text(_bench(units, sources, sinks, len(control)))
    read = []
    for simulator in simulators:
        count = min(_SLOW_PHASES, phases) if simulator != simulators[-1] else phases
        lines = _run(simulator, folder, ends[count - 1])
        assert len(lines) == count * cycles
        rows = [int(line, 16) for line in lines]
        read.append([_read(units, rows[n * cycles : (n + 1) * cycles]) for n in range(count)])
    for other_traces in read[:-1]:
        assert all(
            np.array_equal(getattr(trace[port], signal), getattr(other_trace[port], signal))
            for first, second in zip(read[-1], other_traces, strict=False)
            for trace, other_trace in zip(first, second, strict=True)
            for port in trace
            for signal in ("valid", "ready", "data")
        ), "the simulators differ"
    return [[phase[n] for phase in read[-1]] for n in range(len(units))]


def _name(port: str) -> str:
    """Signal name prefix of a port: "m[1]" becomes m1."""
    return port.replace("[", "").replace("]", "")


def _bench(units: Sequence[Unit], sources: list[tuple[int, str]], sinks: list[tuple[int, str]], cycles: int) -> str:
    bits = 1 + len(sources) + len(sinks)
    lines = [
        "module clock; reg clk = 0; always #1 clk = !clk; bench bench (clk); endmodule",
        "module bench (input clk);",
        f"reg [{bits - 1}:0] controls [0:{cycles - 1}];",
        'initial $readmemh("control.mem", controls);',
        "integer cycle = 0;",
        "integer noise = 1;",
        f"wire [{bits - 1}:0] control = controls[cycle];",
        "wire rst = control[0];",
    ]
    shown = []
    for n, unit in enumerate(units):
        ports = [f".clk(clk), .rst(rst), .{port}_data(u{n}_{port}_data)" for port in unit.inputs]
        outputs: dict[str, list[str]] = {}
        for port, width in unit.widths.items():
            name, wire = f"u{n}_{_name(port)}", "reg" if port in unit.inputs else "wire"
            lines.append(f"wire [{width - 1}:0] {name}_data; {wire} {name}_valid; wire {name}_ready;")
            shown += [f"{{{width}{{{name}_valid}}}} & {name}_data", f"{name}_ready", f"{name}_valid"]
            outputs.setdefault(port.split("[")[0], []).append(name)
        ports = [".clk(clk)", ".rst(rst)"]
        for port, names in outputs.items():
            ports.append(f".{port}_data({names[0]}_data)")
            ports += [
                f".{port}_{signal}({{{', '.join(f'{x}_{signal}' for x in reversed(names))}}})" for signal in _SIGNALS
            ]
            lines += [f"assign {name}_data = {names[0]}_data;" for name in names[1:]]
        values = ", ".join(f".{name}({value})" for name, value in unit.parameters.items())
        lines.append(f"{unit.module} #({values}) u{n} ({', '.join(ports)});")
    for index, (n, port) in enumerate([*sources, *sinks], 1):
        name, width = f"u{n}_{_name(port)}", units[n].widths[port]
        if index > len(sources):
            lines.append(f"assign {name}_ready = control[{index}];")
            continue
        count = len(units[n].inputs[port])
        lines += [
            f"reg [{width - 1}:0] {name}_words [0:{count}];",
            f'initial $readmemh("{name}.mem", {name}_words);',
            f"integer {name}_place = 0;",
            f"wire {name}_taken = {name}_valid && {name}_ready;",
            f"assign {name}_data = {name}_valid ? {name}_words[{name}_place] : {{{width}{{noise[{index % 32}]}}}};",
            "always @(posedge clk) begin",
            f"if ({name}_taken) {name}_place <= {name}_place + 1;",
            f"if ({name}_taken || {name}_valid !== 1'b1)",
            f"{name}_valid <= control[{index}] && {name}_place + ({name}_taken === 1'b1 ? 1 : 0) < {count};",
            f"if (rst) begin {name}_place <= 0; {name}_valid <= control[{index}]; end",
            "end",
        ]
    lines += [
        "always @(posedge clk) begin",
        f'if (!rst) $display("%h", {{{", ".join(reversed(shown))}}});',
        "noise <= noise * 1664525 + 1013904223;",
        "cycle <= cycle + 1;",
        "if (cycle == `CYCLES - 1) $finish;",
        "end",
        "endmodule",
    ]
    return "\n".join(lines) + "\n"


_SIGNALS = ("valid", "ready")
_MAIN = """
int main(int argc, char** argv) {
    VerilatedContext context;
    context.commandArgs(argc, argv);
    Vdut bench(&context);
    while (!context.gotFinish()) {
        bench.clk = !bench.clk;
        bench.eval();
        context.timeInc(1);
    }
    bench.final();
}
"""


def _run(simulator: str, folder: Path, cycles: int) -> list[str]:
    """Lines that the bench prints in `cycles` cycles, one per cycle without reset."""
    if simulator == "icarus":
        options = ["-g2005", "-y", str(RTL), "-s", "clock", f"-DCYCLES={cycles}", "-o", "bench.vvp", "bench.v"]
        call(["iverilog", *options], folder)
        output = call(["vvp", "-n", "bench.vvp"], folder)
    else:
        options = ["--no-timing", *POWER_UP, "-y", str(RTL), "--top-module", "bench"]
        compile_model([*options, f"-DCYCLES={cycles}", "bench.v"], _MAIN, folder / "bench", "-O0")
        output = call([str(folder / "bench"), "+verilator+rand+reset+2", "+verilator+seed+7"], folder)
    return [line for line in output.splitlines() if line and not line.startswith("-") and ".v:" not in line]


def _read(units: Sequence[Unit], rows: list[int]) -> list[Trace]:
    position, traces = 0, []
    for unit in units:
        trace: Trace = {}
        for port, width in unit.widths.items():
            data = np.array([row >> position & ((1 << width) - 1) for row in rows], object)
            ready, valid = (np.array([bool(row >> (position + width + k) & 1) for row in rows]) for k in (0, 1))
            trace[port] = Port(valid, ready, data)
            position += width + 2
        traces.append(trace)
    return traces
