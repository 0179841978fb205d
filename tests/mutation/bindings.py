"""Does simulation find every mistake in how the emitter binds units? Mutants of the files of real builds.

    python tests/mutation/bindings.py                     every parameter and connection of every module, in two builds
    python tests/mutation/bindings.py residual digits     only these builds
    python tests/mutation/bindings.py --sample 20 --seed 3

A mutant is a build with one change of its top level or of a memory file: a parameter, a connection, the width of a
net, a word. Three judges decide. `simulation` runs the frames and checks of `hlsgen verify`: first a plain bench at
full rate in Icarus Verilog, then the testbench of the build. `certify` runs the checker's proof. Hash and
parameters of the certificate are adapted, so that only the proof can detect the change. `equivalence`: ABC decides if
outputs of both top levels ever differ. A mutant that simulation misses must be proven equal, or have a reason in
REASONS. A mutant that simulation finds and certify misses must have a reason in TIMES. Exits with 1 otherwise.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

import certified
import certified_images
import image_nets
import onnx
from equivalence import same_tops

import hlsgen
from hlsgen.certify import certify as prove
from hlsgen.diagnostics import HlsgenError
from hlsgen.driver.build_directory import reopen
from hlsgen.driver.compile import Build
from hlsgen.simulation.cocotb_runner import simulate, time_limit
from hlsgen.simulation.directed import affordable_frames, directed
from hlsgen.simulation.frames import default_frames, frames_of
from hlsgen.simulation.verify_verilog import TESTS, failures, prepare, prepare_weights

ROOT = Path(__file__).resolve().parents[2]
#: Frames of the first, fast simulation of a mutant.
FEW = 24
#: Parameters that are 0 or 1, in addition to signedness parameters.
SWITCHES = {"ACTIVE_LOW", "CENTERED", "CONSTANTS", "EVEN", "FALLING", "PRODUCT", "SUM", "SYMMETRIC"}
#: Limit of a tool's address space in bytes.
MEMORY = 3 << 30


def _image(name: str, **options: bool) -> Callable[[Path], object]:
    return lambda folder: certified_images.build(name, folder, **options)


def _chain(name: str) -> Callable[[Path], object]:
    return lambda folder: certified.CASES[name].build(folder)


def _file(path: str, **options: object) -> Callable[[Path], object]:
    return lambda folder: hlsgen.build(ROOT / path, folder, hlsgen.Options(**options))  # type: ignore[arg-type]


def _network(kind: str, seed: int, size: int = 8, **options: object) -> Callable[[Path], object]:
    def build(folder: Path) -> object:
        path = folder.with_suffix(".onnx")
        onnx.save(image_nets.network(kind, seed, size=size), path)
        return hlsgen.build(path, folder, hlsgen.Options(**options))  # type: ignore[arg-type]

    return build


#: Builds, the smallest ones with each module first.
DESIGNS: dict[str, Callable[[Path], object]] = {
    "shift": _chain("shift"),
    "scale": _chain("scale"),
    "compare": _chain("compare"),
    "table": _chain("table"),
    "indexed": _chain("indexed"),
    "rank": _chain("rank"),
    "lane table": _chain("lane table"),
    "correct": _chain("correct"),
    "float": _chain("float"),
    "keys": _chain("keys"),
    "sum": _chain("sum"),
    "product of float32": _chain("product of float32"),
    "argmax": _chain("argmax"),
    "folded": _chain("folded"),
    "binary chain": _chain("binary"),
    "neurons": _chain("neurons"),
    "padded": _image("padded", fold=True),
    "padded whole": _image("padded", whole=True),
    "residual": _image("residual", fold=True),
    "three": _image("three", fold=True),
    "three whole": _image("three", whole=True),
    "moved": _image("moved", fold=True),
    "moved whole": _image("moved", whole=True),
    "pools": _image("pools", fold=True),
    "pools whole": _image("pools", whole=True),
    "grouped whole": _image("grouped", whole=True),
    "binary": _image("binary", fold=True),
    "product": _image("product", fold=True),
    "pair": _image("pair"),
    "loadable": _network("grouped", 3, loadable=True, target_cycles=2000),
    "loadable whole": _network("grouped", 6, loadable=True, target_cycles=8),
    "digits": _file("examples/digits/digits_mlp.onnx", target_cycles=64),
}

#: Reasons why a change makes no wrong integer, if simulation misses it and it is not proven equal. Keys are
#: "module.parameter: kind", with * for any module, or without the kind.
REASONS: dict[str, str] = {
    "*.STYLE": "the same function of other resources",
    "*.DEPTH: one more": "room for one more word changes no value; tests of the cycle model prove minimal sizes",
    "hg_table.LANES": "a lane whose outputs are left open; ABC cannot read the file of its table, which is missing",
}
#: Changes of latency, which the proof about integers ignores and only simulation compares.
TIMES: dict[str, str] = {
    "*.STAGES": "registers of a product: another latency",
    "*.EVERY": "registers of an adder tree: another latency",
}


@dataclass(frozen=True)
class Mutant:
    """A changed file of a build. `item`: "module.parameter", "module.port", "net" or "memory of module".

    `kind`: the change of the item. `file`, `data`: the changed file and its contents. `cell`, `name`, `value`: the
    parameter that the certificate must state, if a parameter changed. A value of None means that it was removed.
    """

    item: str
    kind: str
    shown: str
    file: str
    data: bytes
    cell: str = ""
    name: str = ""
    value: str | None = None

    @property
    def key(self) -> str:
        return f"{self.item}: {self.kind}"


# --------------------------------------------------------------------------- mutants

_INSTANCE = re.compile(r"^    \w+?_(hg_\w+) #\(\n(.*?)\n    \) (\w+) \(\n(.*?)\n    \);", re.MULTILINE | re.DOTALL)
_PAIR = re.compile(r"\.(\w+)\((\{[^}]*\}|[^()]*)\)")


def mutants(directory: Path, top: str = "top") -> list[Mutant]:
    """Every mutant of a build, in the order of its files."""
    file = f"rtl/{top}.v"
    text = (directory / file).read_text()
    all_mutants, texts = [], {text}
    readers: dict[str, str] = {}
    for item, kind, start, end, new, *cell in _changes(text, readers):
        changed = text[:start] + new + text[end:]
        if changed not in texts:
            texts.add(changed)
            shown = f"{' '.join(cell[:2])} {text[start:end].strip()} -> {new.strip() or 'nothing'}"
            all_mutants.append(Mutant(item, kind, shown.strip(), file, changed.encode(), *cell))
    for path in sorted((directory / "rtl").glob("*.mem")):
        module = next((m for stem, m in readers.items() if path.stem == stem or path.stem.startswith(f"{stem}_")), "")
        name, words = f"rtl/{path.name}", path.read_text()
        changed_texts = {"\n".join(changed): kind for kind, changed in _words(words.split("\n"))}
        all_mutants += [
            Mutant(f"memory of {module}", kind, name, name, changed.encode())
            for changed, kind in changed_texts.items()
            if changed != words
        ]
    return all_mutants


def _changes(text: str, readers: dict[str, str]) -> Iterator[tuple[str, ...]]:
    """Changes (item, kind, start, end, replacement); of a parameter also (instance, name, value or None)."""
    instances = list(_INSTANCE.finditer(text))
    files = [pair[2] for cell in instances for pair in _PAIR.finditer(cell[2]) if pair[1] == "FILE"]
    nets = re.findall(r"^    wire (?:\[\d+:0\] )?(\w+);", text, re.MULTILINE)
    for match in re.finditer(r"^    (?:input |output)? *wire \[(\d+):0\] (\w+)", text, re.MULTILINE):
        # A port of one bit has no range.
        yield "width of a net", "one less", *match.span(1), str(max(0, int(match[1]) - 1))  # type: ignore[misc]
    for cell in instances:
        module, name = cell[1], cell[3]
        for pair in _PAIR.finditer(cell[2]):
            start, end = (cell.start(2) + k for k in pair.span(2))
            if pair[1] == "FILE":
                readers[pair[2].strip('"').removesuffix(".mem")] = module
            for kind, value in _values(pair[1], pair[2], files):
                yield f"{module}.{pair[1]}", kind, start, end, value, name, pair[1], value  # type: ignore[misc]
            first, last = (cell.start(2) + k for k in pair.span())
            last += text[last] == ","
            if _number(_default(module, pair[1])) != _number(pair[2]):
                yield f"{module}.{pair[1]}", "left out", first, last, "", name, pair[1]  # type: ignore[misc]
        for pair in _PAIR.finditer(cell[4]):
            start, end = (cell.start(4) + k for k in pair.span(2))
            for kind, value in _connections(pair[1], pair[2], nets):
                yield f"{module}.{pair[1]}", kind, start, end, value  # type: ignore[misc]


def _values(name: str, value: str, files: Sequence[str]) -> Iterator[tuple[str, str]]:
    if value in ("0", "1") and (name in SWITCHES or name.endswith("SIGNED")):
        yield "turned", str(1 - int(value))
    elif value.startswith('"'):
        other_files = [name for name in files if name != value]
        yield "another file", other_files[0] if other_files else f'{value[:-1]}_"'
    elif "'h" in value:
        width, digits = value.split("'h")
        number, bits = int(digits, 16), int(width)
        yield "lowest bit", f"{bits}'h{number ^ 1:x}"
        if bits > 1:
            yield "highest bit", f"{bits}'h{number ^ (1 << bits - 1):x}"
    else:
        yield "one more", str(int(value) + 1)
        yield "one less", str(int(value) - 1)


def _default(module: str, parameter: str) -> str:
    """Default value of a library module's parameter."""
    text = (ROOT / "templates" / "rtl" / f"{module}.v").read_text()
    match = re.search(rf"parameter [^=;)]*\b{parameter} *= *([^,\n]+)", text)
    return match[1] if match else ""


def _number(value: str) -> int | str:
    """The number of a Verilog literal in decimal or hexadecimal digits; another text is unchanged."""
    digits, base = (value.split("'h")[1], 16) if "'h" in value else (value, 10)
    return int(digits, base) if re.fullmatch("-?[0-9a-f]+" if base == 16 else "-?[0-9]+", digits) else value


def _connections(port: str, wire: str, nets: Sequence[str]) -> Iterator[tuple[str, str]]:
    if wire:
        yield "open", ""
    if wire.startswith("{"):
        yield "turned round", "{" + ", ".join(reversed(wire[1:-1].split(", "))) + "}"
    elif wire in nets or wire.startswith(("s_ax", "m_ax")):
        suffix = wire.rpartition("_")[2]
        # Use the next net of the same kind.
        alike = [net for net in nets if net.rpartition("_")[2] == suffix]
        at = alike.index(wire) if wire in alike else -1
        if len(alike) > 1 or (alike and at < 0):
            yield "another net", alike[(at + 1) % len(alike)]
    for bit in ("1'b0", "1'b1"):
        if port.endswith(("valid", "ready", "last", "rst", "in")) and re.fullmatch(r"\w+", wire):
            yield f"stuck at {bit[-1]}", bit


def _words(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Changes of a memory file's lines. The last line is empty."""
    count = len(lines) - 1
    places = {"first": 0, "middle": count // 2, "last": count - 1}
    for position_name, k in places.items():
        for bit, digit in (("lowest", len(lines[k]) - 1), ("highest", 0)):
            number = int(lines[k][digit], 16)
            changed = f"{number ^ (1 if bit == 'lowest' else 1 << max(0, number.bit_length() - 1)):x}"
            word = lines[k][:digit] + changed + lines[k][digit + 1 :]
            yield f"{bit} bit of the {position_name} word", [*lines[:k], word, *lines[k + 1 :]]
    swap = next((k for k in range(count - 1) if lines[k] != lines[k + 1]), None)
    if swap is not None:
        yield "two words exchanged", [*lines[:swap], lines[swap + 1], lines[swap], *lines[swap + 2 :]]
    if count > 1:
        yield "without the last word", [*lines[: count - 1], ""]


# --------------------------------------------------------------------------- judges


class Judge:
    """A build, its frames, and a copy of it for mutants."""

    def __init__(self, name: str, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.name, self.folder, self.own = name, folder, folder / "own"
        DESIGNS[name](self.own)
        self.build: Build = reopen(self.own)
        self.top = self.build.design.top
        aimed = directed(self.build.graph, affordable_frames(self.build.graph), 1)
        self.codes = frames_of(
            self.build.network, aimed, default_frames(self.build.graph, self.build.timing, "icarus"), 1
        )
        self.tb = prepare(self.build.design, self.build.network, self.build.timing, self.codes, folder)
        self.core = folder / "core"
        shutil.copytree(self.own, self.core)
        self.bench = folder / "bench"
        few = self.codes[:: -(-len(self.codes) // FEW)]
        (prepare(self.build.design, self.build.network, self.build.timing, few, self.bench) / "bench.v").write_text(
            full_rate(self.build, len(few))
        )
        self.bench /= "tb"
        played = self._full_rate()
        assert played == "", f"{name}: {played}"

    def mutants(self) -> list[Mutant]:
        return mutants(self.own, self.top)

    def put(self, mutant: Mutant | None) -> None:
        """Write the mutant into the copy, or the original build if None, with a matching certificate."""
        for file in (
            "manifest.json",
            "certificate.json",
            f"rtl/{self.top}.v",
            *(f"rtl/{p.name}" for p in self.own.glob("rtl/*.mem")),
        ):
            shutil.copyfile(self.own / file, self.core / file)
        if mutant is None:
            return
        (self.core / mutant.file).write_bytes(mutant.data)
        path = self.core / "certificate.json"
        certificate = json.loads(path.read_text())
        certificate["rtl"][mutant.file] = hashlib.sha256(mutant.data).hexdigest()
        for instance in (x for layer in certificate["layers"] for x in layer["instances"]):
            if instance["instance"] == mutant.cell:
                value = mutant.value
                if value is None:
                    instance["parameters"].pop(mutant.name)
                else:
                    plain = re.fullmatch(r"-?\d+", value)
                    instance["parameters"][mutant.name] = int(value) if plain else value.strip('"')
        path.write_text(json.dumps(certificate))
        certified.list_files(self.core)

    def certify(self) -> str:
        """First problem that the checker reports for the copy, "" if all is proven."""
        try:
            problems = prove(self.core).problems
        except HlsgenError as error:
            return str(error).split("\n")[0]
        return str(problems[0]) if problems else ""

    def glance(self) -> str:
        """Failure of a few frames at full rate, "" if none."""
        return self._full_rate()

    def simulation(self) -> str:
        """Failures that `hlsgen verify` reports for the copy, "" if none."""
        build = self.build
        seconds = min(600, time_limit(build.network, build.timing, build.files, len(self.codes), "icarus"))
        work = self.folder / "sim"
        shutil.rmtree(work, ignore_errors=True)
        try:
            tests = TESTS + prepare_weights(self.build, self.codes, self.tb)
            outcome = simulate(self.core, self.tb, self.tb, work, "icarus", tests, seconds=seconds)
        except HlsgenError as error:
            return str(error).split("\n")[0]
        return "; ".join(failures(outcome))

    def equivalence(self) -> str | None:
        """Objection to equivalence, or None if both top levels are proven equal."""
        return same_tops(self.own, self.core, self.top, seconds=20)

    def _full_rate(self) -> str:
        """Run the frames at full rate, in a bench without Python."""
        sources = [str(self.core / line) for line in (self.core / "files.f").read_text().split()]
        for old in self.bench.glob("*.mem"):
            old.unlink()
        for memory in (self.core / "rtl").glob("*.mem"):
            shutil.copyfile(memory, self.bench / memory.name)
        completed = self._run(["iverilog", "-g2005", "-s", "bench", "-o", "bench.vvp", "bench.v", *sources])
        if completed.returncode:
            return f"does not compile: {(completed.stderr.strip() or 'no end').splitlines()[0][-150:]}"
        shown = self._run(["vvp", "-n", "bench.vvp"]).stdout.splitlines()
        verdicts = [line for line in shown if line.startswith("bench: ")]
        return "" if verdicts == ["bench: equal"] else (verdicts or ["bench: no end"])[0]

    def _run(self, words: Sequence[str], seconds: float = 120) -> subprocess.CompletedProcess[str]:
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))  # noqa: E731
        try:
            return subprocess.run(
                words, cwd=self.bench, capture_output=True, text=True, check=False, timeout=seconds, preexec_fn=limit
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(words, 1, "", "")


def full_rate(build: Build, frames: int) -> str:
    """Bench with the full-rate checks of test_top.py: values, tlast, frame_error, latency, interval."""
    design, timing = build.design, build.timing
    source, sink = design.inputs[0].stream, design.outputs[0].stream
    out, input_beats, output_beats = sink.port_bits, frames * source.beats, frames * sink.beats
    used = [
        min(sink.lanes, sink.group - beat % -(-sink.group // sink.lanes) * sink.lanes) for beat in range(sink.beats)
    ]
    masks = "".join(
        f"        mask[{k}] = {out}'h{(1 << count * sink.type.bits) - 1:x};\n" for k, count in enumerate(used)
    )
    lite = ", ".join(
        f".s_axil_{name}({bits}'d0)"
        for name, bits in (
            ("awaddr", 4),
            ("awvalid", 1),
            ("wdata", 32),
            ("wstrb", 4),
            ("wvalid", 1),
            ("bready", 1),
            ("araddr", 4),
            ("arvalid", 1),
            ("rready", 1),
        )
    )
    return f"""`timescale 1ns/1ps
module bench;
    localparam integer IN = {source.beats}, OUT = {sink.beats};
    localparam integer LATENCY = {timing.latency}, INTERVAL = {timing.interval};
    localparam integer PATIENCE = {4 * (timing.latency + timing.interval) + 100};
    reg clk = 0, reset = {int(not design.reset_active_low)};
    reg [{source.port_bits - 1}:0] frames [0:{input_beats - 1}];
    reg [{out - 1}:0] wanted [0:{output_beats - 1}], mask [0:OUT-1];
    integer place = 0, got = 0, cycle = 0, first = -1, ended = 0, before = 0, quiet = 0, begun = 0;
    wire ready, valid, last, error;
    wire [{out - 1}:0] data;
    {design.top} dut (
        .clk(clk), .{design.reset}(reset), .s_axis_tdata(frames[place]), .s_axis_tvalid(begun && place < {input_beats}),
        .s_axis_tready(ready), .s_axis_tlast((place + 1) % IN == 0), .m_axis_tdata(data), .m_axis_tvalid(valid),
        .m_axis_tready(begun), .m_axis_tlast(last), .frame_error(error){f", {lite}" if design.loads else ""}
    );
    task fail(input [8*40-1:0] what);
        begin
            $display("bench: %0s at beat %0d in cycle %0d", what, got, cycle);
            $finish;
        end
    endtask
    always #5 clk = !clk;
    initial begin
        $readmemh("input.hex", frames);
        $readmemh("expected.hex", wanted);
{masks}        repeat (4) @(posedge clk);
        #1 reset = {int(design.reset_active_low)};
        repeat (2) @(posedge clk);
        #1 begun = 1;
    end
    always @(negedge clk) if (begun) begin
        quiet = quiet + 1;
        if (valid === 1'b1) begin
            if (((data ^ wanted[got]) & mask[got % OUT]) !== 0) fail("another value");
            if (last !== ((got + 1) % OUT == 0)) fail("tlast");
            if ((got + 1) % OUT == 0) begin
                if (got + 1 == OUT && cycle - first != LATENCY) fail("latency");
                before = ended;
                ended = cycle;
            end
            got = got + 1;
            quiet = 0;
        end
        if (quiet > PATIENCE) fail("no beat moves");
        if (got == {output_beats}) begin
            if (ended - before != INTERVAL) fail("interval");
            if (error !== 1'b0) fail("frame_error");
            $display("bench: equal");
            $finish;
        end
    end
    always @(posedge clk) begin
        if (begun && place < {input_beats} && ready === 1'b1) begin
            if (first < 0) first = cycle;
            place <= #1 place + 1;
            quiet = 0;
        end
        cycle = cycle + 1;
    end
endmodule
"""


# --------------------------------------------------------------------------- the whole


def judge(judged: Judge, chosen: Sequence[Mutant], show: bool = True) -> Counter[str]:
    """Counts of verdicts: see `main`."""
    counts: Counter[str] = Counter()
    for mutant in chosen:
        start = time.time()
        judged.put(mutant)
        proof = judged.certify()
        counts["certify sees"] += bool(proof)
        verdict, why = _verdict(judged, mutant)
        if verdict == "killed" and not proof:
            fine = _listed(TIMES, mutant)
            verdict, why = ("killed alone", fine) if fine else ("unseen by certify", why)
        counts[verdict] += 1
        if show:
            text = f"{verdict:17} {judged.name}: {mutant.key} | {mutant.shown[:90]} | {why[:160]}"
            print(f"{text} | certify: {proof[:120] or 'proven'} | {time.time() - start:.1f} s", flush=True)
    judged.put(None)
    return counts


def unseen(judged: Judge, chosen: Sequence[Mutant]) -> list[str]:
    """Those of the mutants that a few frames at full rate find and certify misses, without a reason in TIMES."""
    missed = []
    for mutant in chosen:
        judged.put(mutant)
        failure = judged.glance()
        if failure and not judged.certify() and not _listed(TIMES, mutant):
            missed.append(f"{mutant.key} | {mutant.shown[:90]} | {failure[:160]}")
    judged.put(None)
    return missed


def _listed(table: dict[str, str], mutant: Mutant) -> str:
    name = f"*.{mutant.item.partition('.')[2]}"
    keys = (mutant.key, mutant.item, f"{name}: {mutant.kind}", name)
    return next((table[key] for key in keys if key in table), "")


def _verdict(judged: Judge, mutant: Mutant) -> tuple[str, str]:
    """Verdict and reason. The judges are independent, so the fastest runs first."""
    if failure := judged.glance():
        return "killed", failure
    if reason := _listed(REASONS, mutant):
        return "reasoned", reason
    objection = judged.equivalence()
    if objection is None:
        return "equal", "proven by ABC"
    if failure := judged.simulation():
        return "killed", f"verify: {failure}"
    return "surviving", objection


def spread(names: Sequence[str], folder: Path, builds: int) -> Iterator[tuple[Judge, list[Mutant]]]:
    """Each build with the mutants that fewer than `builds` earlier builds have had."""
    uses: Counter[str] = Counter()
    for name in names:
        judged = Judge(name, folder / name.replace(" ", "_"))
        fresh = [mutant for mutant in judged.mutants() if uses[mutant.key] < builds]
        # One mutant of each kind per build.
        chosen = list({mutant.key: mutant for mutant in fresh}.values())
        uses.update(mutant.key for mutant in chosen)
        yield judged, chosen
        shutil.rmtree(judged.folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("designs", nargs="*", help=f"builds: {', '.join(DESIGNS)}")
    parser.add_argument("--sample", type=int, metavar="N", help="about that many of all mutants")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--builds", type=int, default=2, help="number of builds in which each change is made")
    options = parser.parse_args()
    if unknown := set(options.designs) - set(DESIGNS):
        parser.error(f"no such build: {', '.join(sorted(unknown))}")
    rng = random.Random(options.seed)
    names = options.designs or list(DESIGNS)
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for judged, all_mutants in spread(names, Path(folder), options.builds):
            count = len(all_mutants) if not options.sample else min(len(all_mutants), -(-options.sample // len(names)))
            chosen = [all_mutants[k] for k in sorted(rng.sample(range(len(all_mutants)), count))]
            counts = judge(judged, chosen)
            total += counts
            print(score(judged.name, counts), flush=True)
    print(score("all", total))
    return int(total["surviving"] + total["unseen by certify"] > 0)


def score(name: str, counts: Counter[str]) -> str:
    mutants_ = counts.total() - counts["certify sees"]
    kinds = ", ".join(f"{kind} {count}" for kind, count in counts.items() if kind != "certify sees")
    return f"{name}: mutants {mutants_}, {kinds}; certify sees {counts['certify sees']}"


if __name__ == "__main__":
    sys.exit(main())
