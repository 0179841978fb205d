"""Formal contracts: what the modules of formal/ say of a unit, proven with Yosys and ABC.

A `Case` is a unit at one set of parameters and what becomes of every bit of every beat. `prove` builds, for each
case, the unit between streams that do anything, with assertions about its ports, and lets ABC's property directed
reachability decide whether any sequence of inputs, of any length, violates one. Nothing is assumed of the registers
before the first reset, but in a case of `powered_up`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import lcm, prod
from pathlib import Path

import pyosys
from streams import RTL
from windows import Geometry

CONTRACTS = sorted((Path(__file__).resolve().parent / "formal").glob("*.sv"))
#: A bit of an output beat: (beat taken, bit of it), the constants 0 and 1, or None for anything.
Bit = tuple[int, int] | int | None
NOT_SAID = 4095
#: Reads of memories for which synthesis may choose what is read at the edge at which a place is written
#: (no_rw_check), by module: the read, the width of a word, and when that happens.
UNDEFINED_READS = {
    "hg_replay": ("mem[place]", "WIDTH", "push && write_reg == place"),
    "hg_window": ("mem[address]", "UNIT*LANES", "take && write_reg == address"),
    "hg_unfold_store": ("mem[places[w*AW +: AW]]", "WORD", "write && write_reg == places[w*AW +: AW]"),
}


@dataclass(frozen=True)
class Link:
    """From an input to an output: `sent` has the bits of every beat of a lap, in which `beats` beats are taken."""

    source: str
    sink: str
    in_w: int
    beats: int
    sent: Sequence[Sequence[Bit]]
    need: Sequence[int]
    room: Sequence[int]
    most: int
    latency: int = 0
    through: bool = False
    others: str = "1'b1"

    def parameters(self) -> dict[str, object]:
        out_w = len(self.sent[0])
        words = [_word(bit) for beat in self.sent for bit in beat]
        return {
            "IN_W": self.in_w, "OUT_W": out_w, "IN_BEATS": self.beats, "OUT_BEATS": len(self.sent),
            "SOURCE": _packed(words, 24), "NEED": _packed(self.need, 16), "ROOM": _packed(self.room, 16),
            "MOST": self.most, "LATENCY": self.latency, "THROUGH": int(self.through),
        }  # fmt: skip


def _word(bit: Bit) -> int:
    match bit:
        case None:
            return 3
        case int():
            return 1 + bit
        case beat, place:
            return beat << 12 | place << 2


def _packed(values: Iterable[int], bits: int) -> str:
    values = list(values)
    return f"{bits * len(values)}'h{sum(value << (bits * k) for k, value in enumerate(values)):x}"


def undefined_reads(module: str) -> str:
    """The text of a module, with anything for what a memory gives of a place that is being written."""
    text = (RTL / f"{module}.v").read_text()
    assert ("(* no_rw_check *)" in text) == (module in UNDEFINED_READS), module
    if module in UNDEFINED_READS:
        read, width, when = UNDEFINED_READS[module]
        memory = text.index("(* no_rw_check *)")
        assert text.count(f"<= {read};") == 1, module
        text = text.replace(f"<= {read};", f"<= ({when}) ? anything : {read};")
        # Nothing drives it: each cycle it is what violates a contract, if that can be.
        text = f"{text[:memory]}wire [{width}-1:0] anything; {text[memory:]}"
    return text


@dataclass(frozen=True)
class Check:
    """An instance of a contract that is not one of streams; `ports`: port -> wire of the top level."""

    contract: str
    parameters: Mapping[str, object]
    ports: Mapping[str, str]


@dataclass(frozen=True)
class Case:
    """A unit; `ports` are its inputs and outputs beside clk and rst, with bits.

    `names`: what a port of a link is, if it is not called by that name. `paths`: the combinational paths between
    valid and ready ports that the unit's header names. `checks`: further contracts, with `wires` between them; they may
    use the input `mark`. `pins`: port -> wire of the unit, if that is not the port's name. `rewrites`: texts of modules
    that are replaced. `only`: the one assertion of all contracts that is looked at. `files`: memory files, in the folder
    that parameters call FOLDER. `frames`: so many cycles are proven, not all. `zeros`: all registers begin at 0.
    """

    module: str
    parameters: Mapping[str, object]
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]
    links: Sequence[Link]
    names: Mapping[str, str] = field(default_factory=dict)
    paths: frozenset[tuple[str, str]] = frozenset()
    checks: Sequence[Check] = ()
    wires: Mapping[str, int] = field(default_factory=dict)
    pins: Mapping[str, str] = field(default_factory=dict)
    rewrites: tuple[tuple[str, str], ...] = ()
    only: str = "*"
    files: Mapping[str, str] = field(default_factory=dict)
    frames: int | None = None
    zeros: bool = False

    def __str__(self) -> str:
        return self.module + "".join(f"-{value}" for value in self.parameters.values() if not isinstance(value, str))

    def broken(self, old: str, new: str, only: str = "*") -> Case:
        return replace(self, rewrites=(*self.rewrites, (old, new)), only=only)

    def unit(self) -> str:
        """The unit with all modules under it."""
        texts: dict[str, str] = {}
        todo = [self.module]
        while todo:
            module = todo.pop()
            if module not in texts:
                texts[module] = undefined_reads(module)
                todo += re.findall(r"^ *(hg_\w+) #\(", texts[module], re.MULTILINE)
        text = "".join(texts.values())
        for old, new in self.rewrites:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        return text

    def wire(self, port: str, what: str) -> str:
        """The wire of a stream at a port of a link."""
        stem, bracket, index = port.partition("[")
        name = f"{stem}_{what}"
        return self.names.get(name, name) + (bracket + index if what != "data" else "")

    def top(self) -> str:
        inputs = "".join(f", input wire [{bits - 1}:0] {name}" for name, bits in self.inputs.items())
        wires = {**self.outputs, **self.wires}
        outputs = "".join(f"    wire [{bits - 1}:0] {name};\n" for name, bits in wires.items())
        marks = "".join(f", input wire mark{k}" for k in range(len(self.links)))
        ports = {"clk": "clk", **(self.pins or {name: name for name in ("rst", *self.inputs, *self.outputs)})}
        lines = [f"module top (input wire clk, input wire rst, input wire mark{inputs}{marks});", outputs]
        lines.append(_instance(self.module, self.parameters, "dut", ports))
        for k, link in enumerate(self.links):
            ports = {"clk": "clk", "rst": "rst", "mark": f"mark{k}", "others": link.others}
            for side, port in (("s", link.source), ("m", link.sink)):
                ports |= {f"{side}_{what}": self.wire(port, what) for what in ("data", "valid", "ready")}
            lines.append(_instance("stream_contract", link.parameters(), f"link{k}", ports))
        for k, check in enumerate(self.checks):
            ports = {"clk": "clk", "rst": "rst", **check.ports}
            lines.append(_instance(check.contract, check.parameters, f"link_{k}", ports))
        return "\n".join([*lines, "endmodule\n"])


def _instance(module: str, parameters: Mapping[str, object], name: str, ports: Mapping[str, str]) -> str:
    values = ", ".join(f".{key}({value})" for key, value in parameters.items())
    return f"    {module} #({values}) {name} ({', '.join(f'.{port}({wire})' for port, wire in ports.items())});"


#: Runs in a process of its own: an error of Yosys ends the process.
_TRANSLATE = """
import sys
from pyosys import libyosys as ys
for folder in sys.argv[1].split(","):
    design = ys.Design()
    run = lambda command: ys.run_pass(command, design)
    run(f"read_verilog {folder}/unit.v")
    run(f"read_verilog -formal -sv -defer {' '.join(sys.argv[2:])} {folder}/top.sv")
    run("hierarchy -check -top top; proc; flatten; memory_map")
    run(open(f"{folder}/start").read())
    run("opt -fast")
    run(f"write_json {folder}/top.json")
    only = open(f"{folder}/only").read()
    run(f"chformal -assert -remove t:$check c:link*.{only} %d")
    run(f"select -assert-min 1 c:link*.{only}")
    run("async2sync; chformal -lower; setundef -undriven -anyseq; simplemap; techmap; opt -fast")
    run("dffunmap; setundef -anyseq; simplemap; aigmap; opt_clean")
    run(f"write_aiger -I -B -zinit -no-startoffset {folder}/top.aig")
print("DONE")
"""


def translate(cases: Sequence[Case], folder: Path) -> list[Path]:
    """A folder for each case, with its netlist (top.json) and its and-inverter graph (top.aig)."""
    folders = []
    for k, case in enumerate(cases):
        folders.append(folder / str(k))
        folders[k].mkdir()
        (folders[k] / "unit.v").write_text(case.unit())
        (folders[k] / "top.sv").write_text(case.top().replace("FOLDER", str(folders[k])))
        for name, text in case.files.items():
            (folders[k] / name).write_text(text)
        (folders[k] / "only").write_text(case.only)
        (folders[k] / "start").write_text("setundef -zero -init" if case.zeros else "")
    command = [sys.executable, "-c", _TRANSLATE, ",".join(map(str, folders)), *map(str, CONTRACTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.rstrip().endswith("DONE"), done.stdout[-2000:] + done.stderr[-3000:]
    return folders


def prove(folder: Path, frames: int | None = None, seconds: int = 300) -> str:
    """Of a folder of `translate`: "proved", "bounded" (no violation in so many frames), or ABC's words for the rest."""
    engine = f"pdr -T {seconds}" if frames is None else f"bmc3 -F {frames} -T {seconds}"
    abc = Path(str(pyosys.__file__)).parent / "yosys-abc"
    command = [str(abc), "-c", f"read_aiger {folder}/top.aig; fold; strash; write_aiger {folder}/folded.aig; {engine}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    text = done.stdout + done.stderr
    if "Property proved" in text or _never(folder / "folded.aig"):
        return "proved"
    if f"No output asserted in {frames} frames" in text:
        return "bounded"
    return "violated" if "was asserted in frame" in text else text


def _never(path: Path) -> bool:
    """Whether the outputs of a graph, what must not be, are the constant 0: ABC has nothing left to decide then."""
    header, *lines = path.read_bytes().split(b"\n")
    latches, outputs = (int(count) for count in header.split()[3:5])
    return {*lines[latches : latches + outputs]} == {b"0"}


def combinational(folder: Path, case: Case) -> set[tuple[str, str]]:
    """Pairs of a valid or ready input and a valid or ready output (or data output) that it reaches without a register."""
    module = json.loads((folder / "top.json").read_text())["modules"]["top"]
    readers: dict[object, list[Mapping[str, list[object]]]] = {}
    for cell in module["cells"].values():
        if cell["type"].startswith(("$dff", "$sdff", "$adff")) or cell["type"] in ("$scopeinfo", "$check", "$print"):
            continue
        directions, bits = cell["port_directions"], cell["connections"]
        driven = {port: bits[port] for port in bits if directions[port] == "output"}
        for port in bits:
            if directions[port] == "input":
                for bit in bits[port]:
                    readers.setdefault(bit, []).append(driven)
    names = module["netnames"]
    found = set()
    for name in case.inputs:
        if not name.endswith(("valid", "ready", "en")):
            continue
        reached, todo = set(), list(names[name]["bits"])
        while todo:
            bit = todo.pop()
            if bit not in reached:
                reached.add(bit)
                todo += [b for driven in readers.get(bit, []) for bits in driven.values() for b in bits]
        found |= {(name, out) for out in case.outputs if out in names and reached & set(names[out]["bits"])}
    return found


# The units. A stream that leaves as it came: one beat in, the same out.


def powered_up(case: Case) -> Case:
    """The unit with registers that begin at 0, as those of devices do, before a reset and without a beat: it sends none."""
    pins = {name: name for name in ("rst", *case.inputs, *case.outputs)}
    pins |= {name: "0" for name in case.inputs if name.endswith("valid")}
    checks = [Check("quiet_contract", {}, {"valid": case.wire(link.sink, "valid")}) for link in case.links]
    return replace(case, links=(), checks=checks, pins=pins, zeros=True, only="quiet")


def _plain(module: str, parameters: Mapping[str, object], width: int, link: Mapping[str, object]) -> Case:
    """One input s, one output m."""
    values: dict[str, object] = {"source": "s", "sink": "m", "in_w": width, **link}
    made = Link(**values)  # type: ignore[arg-type]
    inputs = {"s_data": width, "s_valid": 1, "m_ready": 1}
    outputs = {"s_ready": 1, "m_data": len(made.sent[0]), "m_valid": 1}
    return Case(module, parameters, inputs, outputs, [made])


def _same(width: int) -> list[list[Bit]]:
    return [[(0, bit) for bit in range(width)]]


def fifo(width: int, depth: int, ahead: bool = False) -> Case:
    """`ahead`: with the memory that is read a cycle ahead, which the library takes for large ones."""
    link = {"beats": 1, "sent": _same(width), "need": [0], "room": [depth], "most": depth}
    case = _plain("hg_fifo", {"WIDTH": width, "DEPTH": depth}, width, link)
    return case.broken("(DEPTH >= 512 ||", "(DEPTH >= 1 ||") if ahead else case


def slice_(width: int, full: bool = True) -> Case:
    depth = 1 + full
    link = {"beats": 1, "sent": _same(width), "need": [0], "room": [depth], "most": depth}
    return _plain("hg_slice", {"WIDTH": width, "FULL": int(full)}, width, link)


def replay(width: int, length: int, repeat: int) -> Case:
    stored = 4 if repeat == 1 and length > 2 else 2 * length
    beats = [(turn, k) for turn in range(repeat) for k in range(length)]
    sent: list[list[Bit]] = [[*((k, bit) for bit in range(width)), int(k == length - 1)] for _, k in beats]
    room = [stored + (k if turn == repeat - 1 else 0) for turn, k in beats]
    link = Link("s", "m", width, length, sent, [k for _, k in beats], room, length + stored + 1, latency=1)
    inputs = {"s_data": width, "s_valid": 1, "m_ready": 1}
    outputs = {"s_ready": 1, "m_data": width, "m_last": 1, "m_valid": 1}
    parameters = {"WIDTH": width, "LENGTH": length, "REPEAT": repeat}
    return Case("hg_replay", parameters, inputs, outputs, [link], names={"m_data": "{m_last, m_data}"})


def width(unit: int, lanes: tuple[int, int], groups: tuple[int, int] | None = None) -> Case:
    """Lanes and groups of the input and of the output."""
    in_group, out_group = groups or lanes
    count = lcm(in_group, out_group) if groups else lcm(*lanes)
    if not groups:
        in_group = out_group = count
    where = [
        (group * -(-in_group // lanes[0]) + k // lanes[0], k % lanes[0])
        for group in range(count // in_group)
        for k in range(in_group)
    ]
    sent: list[list[Bit]] = []
    need = []
    for start in range(0, count, out_group):
        for first in range(start, start + out_group, lanes[1]):
            elements = where[first : min(first + lanes[1], start + out_group)]
            bits: list[Bit] = [(beat, lane * unit + bit) for beat, lane in elements for bit in range(unit)]
            sent.append(bits + [0] * (lanes[1] * unit - len(bits)))
            need.append(elements[-1][0])
    beats = where[-1][0] + 1
    # While fewer than one output beat is stored, an input beat is taken.
    room = [last + 1 for last in need]
    parameters: dict[str, object] = {"UNIT": unit, "IN": lanes[0], "OUT": lanes[1]}
    if groups:
        parameters |= {"IN_GROUP": groups[0], "OUT_GROUP": groups[1]}
    most = beats + 2 * (2 * lanes[1] // lanes[0] + 2)
    link = {"beats": beats, "sent": sent, "need": need, "room": room, "most": most}
    return _plain("hg_width", parameters, unit * lanes[0], link)


def gather(width: int, block: int, loops: Sequence[tuple[int, int]]) -> Case:
    """Loops are (extent, stride), the outermost first."""
    order = [0]
    for extent, stride in loops:
        order = [base + k * stride for base in order for k in range(extent)]
    sent: list[list[Bit]] = [[(beat, bit) for bit in range(width)] for beat in order]
    parameters: dict[str, object] = {"WIDTH": width, "BLOCK": block, "DIMS": len(loops)}
    parameters |= {"EXTENTS": _packed([e for e, _ in loops], 32), "STRIDES": _packed([s for _, s in loops], 32)}
    link = {"beats": block, "sent": sent, "need": [block - 1] * len(order), "room": [2 * block] * len(order)}
    return _plain("hg_gather", parameters, width, {**link, "most": 3 * block, "latency": 1})


def _image(shape: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    return [(y, x, f) for y in range(shape[0]) for x in range(shape[1]) for f in range(shape[2])]


def _passes(case: Case, *more: tuple[str, str]) -> Case:
    """A unit without registers between data and data."""
    return replace(case, paths=frozenset({("s_valid", "m_valid"), ("m_ready", "s_ready"), *more}))


def pick(unit: int, lanes: int, places: Sequence[int]) -> Case:
    sent: list[list[Bit]] = [[(0, place * unit + bit) for place in places for bit in range(unit)]]
    parameters: dict[str, object] = {"UNIT": unit, "IN": lanes, "OUT": len(places), "MAP": _packed(places, 32)}
    link = {"beats": 1, "sent": sent, "need": [0], "room": [0], "most": 1, "through": True}
    return _passes(_plain("hg_pick", parameters, unit * lanes, link))


def take(width: int, shape: tuple[int, int, int], *ranges: tuple[int, int, int]) -> Case:
    kept = [range(*bounds) for bounds in ranges]
    beats = [k for k, place in enumerate(_image(shape)) if all(p in r for p, r in zip(place, kept, strict=True))]
    sent: list[list[Bit]] = [[(beat, bit) for bit in range(width)] for beat in beats]
    parameters: dict[str, object] = {"WIDTH": width}
    parameters |= dict(zip(("HEIGHT", "COLUMNS", "FOLDS"), shape, strict=True))
    for axis, bounds in zip("YXC", ranges, strict=True):
        parameters |= dict(zip((f"{axis}0", f"{axis}1", f"{axis}S"), bounds, strict=True))
    # A beat that is not kept is taken at once.
    link = {"beats": prod(shape), "sent": sent, "need": beats, "room": beats, "most": prod(shape), "through": True}
    return _passes(_plain("hg_take", parameters, width, link))


def pad(unit: int, lanes: int, shape: tuple[int, int, int], border: tuple[int, int, int, int], value: int) -> Case:
    """The border at the top, left, bottom and right."""
    top, left, bottom, right = border
    constant: list[Bit] = [value >> bit & 1 for _ in range(lanes) for bit in range(unit)]
    sent: list[Sequence[Bit]] = []
    need = []
    beat = 0
    for y, x, _ in _image((top + shape[0] + bottom, left + shape[1] + right, shape[2])):
        inside = top <= y < top + shape[0] and left <= x < left + shape[1]
        sent.append([(beat, bit) for bit in range(unit * lanes)] if inside else constant)
        # The first beat of the border waits for the image, the others for nothing.
        need.append(beat if inside else max(beat - 1, 0))
        beat += inside
    parameters: dict[str, object] = {"UNIT": unit, "LANES": lanes}
    parameters |= dict(zip(("HEIGHT", "COLUMNS", "FOLDS"), shape, strict=True))
    parameters |= dict(zip(("TOP", "LEFT", "BOTTOM", "RIGHT"), border, strict=True)) | {"VALUE": f"{unit}'d{value}"}
    link = {"beats": beat, "sent": sent, "need": need, "room": [0] * len(sent), "most": beat, "through": True}
    return _passes(_plain("hg_pad", parameters, unit * lanes, link))


def fork(width: int, count: int) -> Case:
    links = [
        Link("s", f"m[{k}]", width, 1, _same(width), [0], [0], 1, through=True, others="&m_ready") for k in range(count)
    ]
    inputs = {"s_data": width, "s_valid": 1, "m_ready": count}
    outputs = {"s_ready": 1, "m_data": width, "m_valid": count}
    return _passes(Case("hg_fork", {"WIDTH": width, "COUNT": count}, inputs, outputs, links))


def _pair(
    module: str, parameters: Mapping[str, object], bits: tuple[int, int], beats: tuple[int, int],
    sent: Sequence[Sequence[tuple[str, int, int] | int]], **more: object
) -> Case:  # fmt: skip
    """Inputs a and b; a bit is ("a" or "b", beat, bit)."""
    links = []
    for k, (port, other) in enumerate((("a", "b"), ("b", "a"))):
        rows: list[list[Bit]] = []
        need = []
        for beat in sent:
            row: list[Bit] = []
            for bit in beat:
                row.append(None if isinstance(bit, int) or bit[0] != port else bit[1:])
            rows.append(row)
            need.append(max((bit[0] for bit in row if isinstance(bit, tuple)), default=NOT_SAID))
        values: dict[str, object] = {"most": beats[k] + 2, "others": f"{other}_valid", **more}
        links.append(Link(port, "m", bits[k], beats[k], rows, need, [0] * len(rows), **values))  # type: ignore[arg-type]
    inputs = {"a_data": bits[0], "a_valid": 1, "b_data": bits[1], "b_valid": 1, "m_ready": 1}
    outputs = {"a_ready": 1, "b_ready": 1, "m_data": len(sent[0]), "m_valid": 1}
    paths = frozenset({("m_ready", "a_ready"), ("m_ready", "b_ready")})
    return Case(module, parameters, inputs, outputs, links, paths=paths)


def _extended(port: str, beat: int, first: int, bits: int, signed: int, wide: int) -> list[tuple[str, int, int] | int]:
    """An element of `bits` bits as one of `wide`."""
    own: list[tuple[str, int, int] | int] = [(port, beat, first + bit) for bit in range(bits)]
    return own + ([own[-1]] if signed else [0]) * (wide - bits)


def join_results(
    mode: int, lanes: int, bits: tuple[int, int], signed: tuple[int, int], constants: tuple[int, int], out: int
) -> Case:  # fmt: skip
    """MODE 0 with factors, MODE 1 with zero points."""
    types = {"LANES": lanes, "A_W": bits[0], "A_SIGNED": signed[0], "B_W": bits[1], "B_SIGNED": signed[1]}
    names = ("FA", "FB") if mode == 0 else ("ZA", "ZB")
    parameters = {**types, "OUT_W": out, "MODE": mode, **dict(zip(names, constants, strict=True))}
    case = _pair("hg_join", parameters, (lanes * bits[0], lanes * bits[1]), (1, 1), [[0] * lanes * out], latency=1)
    # Which bits a beat has is for join_contract to say; it waits for one beat of each input.
    links = [replace(link, sent=[[None] * lanes * out], need=[0]) for link in case.links]
    ports = ("mark", *case.inputs, *case.outputs)
    check = Check("join_contract", parameters, {port: port for port in ports})
    return replace(
        case, links=links, checks=[check], paths=case.paths | {("a_valid", "b_ready"), ("b_valid", "a_ready")}
    )


def join(lanes: int, a_bits: int, b_bits: int) -> Case:
    """MODE 2, in which every bit is one that came in."""
    row: list[tuple[str, int, int] | int] = []
    for lane in range(lanes):
        row += [("a", 0, lane * a_bits + bit) for bit in range(a_bits)]
        row += [("b", 0, lane * b_bits + bit) for bit in range(b_bits)]
    parameters = {"LANES": lanes, "A_W": a_bits, "B_W": b_bits, "OUT_W": a_bits + b_bits, "MODE": 2}
    case = _pair("hg_join", parameters, (lanes * a_bits, lanes * b_bits), (1, 1), [row], latency=1)
    return replace(case, paths=case.paths | {("a_valid", "b_ready"), ("b_valid", "a_ready")})


def beside(pixels: int, lanes: tuple[int, int], bits: tuple[int, int], signed: tuple[int, int], wide: int) -> Case:
    row: list[tuple[str, int, int] | int] = []
    for pixel in range(pixels):
        for k, port in enumerate("ab"):
            for lane in range(lanes[k]):
                row += _extended(port, 0, (pixel * lanes[k] + lane) * bits[k], bits[k], signed[k], wide)
    parameters = {
        "UNIT_A": bits[0], "A_SIGNED": signed[0], "UNIT_B": bits[1], "B_SIGNED": signed[1], "UNIT_OUT": wide,
        "LANES_A": lanes[0], "LANES_B": lanes[1], "PIXELS": pixels,
    }  # fmt: skip
    sizes = (pixels * lanes[0] * bits[0], pixels * lanes[1] * bits[1])
    case = _pair("hg_beside", parameters, sizes, (1, 1), [row])
    return replace(case, paths=case.paths | {("a_valid", "b_ready"), ("b_valid", "a_ready")})


def concat(lanes: int, bits: tuple[int, int], signed: tuple[int, int], wide: int, beats: tuple[int, int]) -> Case:
    sent = [
        [bit for lane in range(lanes) for bit in _extended(port, beat, lane * bits[k], bits[k], signed[k], wide)]
        for k, port in enumerate("ab")
        for beat in range(beats[k])
    ]
    parameters = {
        "UNIT_A": bits[0], "A_SIGNED": signed[0], "UNIT_B": bits[1], "B_SIGNED": signed[1], "UNIT_OUT": wide,
        "LANES": lanes, "BEATS_A": beats[0], "BEATS_B": beats[1],
    }  # fmt: skip
    case = _pair("hg_concat", parameters, (lanes * bits[0], lanes * bits[1]), beats, sent, through=True)
    return replace(case, paths=case.paths | {("a_valid", "m_valid"), ("b_valid", "m_valid")})


def axis_in(width: int, tdata: int, frame: int, cut: int = 0) -> Case:
    sent: list[list[Bit]] = [[(0, bit) for bit in range(width)]]
    link = Link("s", "m", tdata, 1, sent, [0], [1], 1 + cut)
    inputs = {"s_axis_tdata": tdata, "s_axis_tvalid": 1, "s_axis_tlast": 1, "m_ready": 1}
    outputs = {"s_axis_tready": 1, "m_data": width, "m_valid": 1, "frame_error": 1}
    parameters = {"WIDTH": width, "TDATA_W": tdata, "BEATS": frame, "CUT": cut}
    names = {f"s_{what}": f"s_axis_t{what}" for what in ("data", "valid", "ready")}
    paths = frozenset() if cut else frozenset({("m_ready", "s_axis_tready")})
    return Case("hg_axis_in", parameters, inputs, outputs, [link], names, paths)


def axis_out(width: int, tdata: int, frame: int, cut: int = 1) -> Case:
    sent: list[list[Bit]] = [
        [*((k, bit) for bit in range(width)), *[0] * (tdata - width), int(k == frame - 1)] for k in range(frame)
    ]
    link = Link("s", "m", width, frame, sent, range(frame), [k + 1 + cut for k in range(frame)], frame + 2)
    inputs = {"s_data": width, "s_valid": 1, "m_axis_tready": 1}
    outputs = {"s_ready": 1, "m_axis_tdata": tdata, "m_axis_tvalid": 1, "m_axis_tlast": 1}
    parameters = {"WIDTH": width, "TDATA_W": tdata, "BEATS": frame, "CUT": cut}
    names = {f"m_{what}": f"m_axis_t{what}" for what in ("valid", "ready")}
    names["m_data"] = "{m_axis_tlast, m_axis_tdata}"
    paths = frozenset() if cut else frozenset({("m_axis_tready", "s_ready")})
    return Case("hg_axis_out", parameters, inputs, outputs, [link], names, paths)


def _slots(width: int, tdata: int, slot: int, frame: int) -> list[list[tuple[int, int]]]:
    """Of each beat of a frame: where its bits are, (word, bit of it)."""
    places = [[beat * slot + bit for bit in range(width)] for beat in range(frame)]
    return [[(place // tdata, place % tdata) for place in beat] for beat in places]


def bus_in(width: int, tdata: int, slot: int, frame: int) -> Case:
    words = -(-frame * slot // tdata)
    sent: list[list[Bit]] = [list(beat) for beat in _slots(width, tdata, slot, frame)]
    # The last word of a slot is needed even if no bit of the beat is in it.
    need = [((beat + 1) * slot - 1) // tdata for beat in range(frame)]
    link = Link("s", "m", tdata, words, sent, need, [last + 1 for last in need], words + 4, latency=int(slot != tdata))
    case = axis_in(width, tdata, frame)
    parameters = {"WIDTH": width, "TDATA_W": tdata, "SLOT": slot, "BEATS": frame}
    paths = case.paths if slot == tdata else frozenset()
    return replace(case, module="hg_bus_in", parameters=parameters, links=[link], paths=paths)


def bus_out(width: int, tdata: int, slot: int, frame: int) -> Case:
    words = -(-frame * slot // tdata)
    sent: list[list[Bit]] = [[0] * tdata + [int(k == words - 1)] for k in range(words)]
    for beat, places in enumerate(_slots(width, tdata, slot, frame)):
        for bit, (word, place) in enumerate(places):
            sent[word][place] = beat, bit
    need = [min(frame, -(-(k + 1) * tdata // slot)) - 1 for k in range(words)]
    link = Link(
        "s",
        "m",
        width,
        frame,
        sent,
        need,
        [last + 1 for last in need],
        2 * frame + 2 * tdata // slot + 4,
        latency=int(slot != tdata),
    )
    parameters = {"WIDTH": width, "TDATA_W": tdata, "SLOT": slot, "BEATS": frame}
    return replace(axis_out(width, tdata, frame), module="hg_bus_out", parameters=parameters, links=[link])


_AXES = ("height", "width", "kh", "kw", "sh", "sw", "dh", "dw", "pt", "pl", "out_h", "out_w")


def _tap(g: Geometry, y: int, x: int, word: int, bits: int, code: int) -> list[Bit]:
    if 0 <= y < g.height and 0 <= x < g.width:
        return [((y * g.width + x) * g.pixel + word, bit) for bit in range(bits)]
    return [code >> bit & 1 for bit in range(bits)]


def window(unit: int, g: Geometry, more: int = 0, code: int = 1, late: int = 0) -> Case:
    """hg_window, `more` words deeper than needed. Its enable is what takes beats."""
    depth = g.min_depth() + more
    newest, oldest = g.newest(), g.oldest()
    sent: list[list[Bit]] = []
    owner = []
    taps = [(kh, kw, f) for kh in range(g.kh) for kw in range(g.kw) for f in range(g.folds)]
    for n, (_, y0, x0) in enumerate(g.corners()):
        for group in range(g.groups):
            for _ in range(g.repeat):
                for kh, kw, f in taps:
                    word = group * g.folds + f
                    row = _tap(g, y0 + kh * g.dh, x0 + kw * g.dw, word, unit, code)
                    sent.append([*row, int((kh, kw, f) == taps[-1])])
                    owner.append(n)
    room = [oldest[n] + depth for n in owner]
    link = Link("s", "m", unit, g.words, sent, [newest[n] for n in owner], room, 2 * g.words + depth, latency=2)
    parameters: dict[str, object] = {"UNIT": unit, "LANES": 1, **{name.upper(): getattr(g, name) for name in _AXES}}
    parameters |= {"GROUPS": g.groups, "FOLDS": g.folds, "REPEAT": g.repeat, "DEPTH": depth, "PAD": f"{unit}'d{code}"}
    parameters["LATE"] = late
    inputs = {"s_data": unit, "s_valid": 1, "en": 1}
    outputs = {"s_ready": 1, "next_valid": 1, "x": unit, "x_valid": 1, "x_last": 1}
    names = {"m_data": "{x_last, x}", "m_valid": "x_valid", "m_ready": "en"}
    return Case("hg_window", parameters, inputs, outputs, [link], names)


def unfold(unit: int, g: Geometry, columns: int = 0, windows: int = 1, pixels: int = 1, code: int = 1) -> Case:
    """hg_unfold, of `pixels` pixels in a word; `columns`, of words, where the kernel has one row."""
    rows = 1 if g.kh == 1 else (g.kh - 1) * g.dh + 1
    across = -(-g.width // pixels)
    columns = columns if g.kh == 1 else across
    depth = rows * columns * g.folds
    beats = -(-g.out_w // windows)
    # In words: a beat's windows from the first pixel of the word with the first tap on.
    left = -(-g.pl // pixels)
    reach = left * pixels - g.pl + (windows - 1) * g.sw + (g.kw - 1) * g.dw
    step = windows * g.sw // pixels
    span = replace(g, width=across, kw=reach // pixels + 1, dw=1, sw=step, pl=left, out_w=beats)
    newest, oldest = span.newest(), span.oldest()
    assert depth >= span.min_depth()
    sent: list[list[Bit]] = []
    owner = []
    for oy in range(g.out_h):
        for beat in range(beats):
            for f in range(g.folds):
                row: list[Bit] = []
                for kh in range(g.kh):
                    for kw in range(g.kw):
                        for ox in range(beat * windows, (beat + 1) * windows):
                            y, x = oy * g.sh - g.pt + kh * g.dh, ox * g.sw - g.pl + kw * g.dw
                            row += _tap(g, y, x, f, unit, code) if ox < g.out_w else [None] * unit
                if pixels > 1:
                    row = [_in_word(bit, g.width, across, pixels, unit) for bit in row]
                sent.append(row)
                owner.append(oy * beats + beat)
    room = [oldest[n] + depth for n in owner]
    parameters: dict[str, object] = {"UNIT": unit, "LANES": 1, **{name.upper(): getattr(g, name) for name in _AXES}}
    parameters |= {"FOLDS": g.folds, "ROWS": rows, "COLUMNS": columns, "PAD": f"{unit}'d{code}", "WINDOWS": windows}
    parameters |= {"PIXELS": pixels} if pixels > 1 else {}
    words = g.height * across * g.pixel
    link = {"beats": words, "sent": sent, "need": [newest[n] for n in owner], "room": room}
    return _plain("hg_unfold", parameters, pixels * unit, {**link, "most": 2 * words + depth, "latency": 2})


def _in_word(bit: Bit, width: int, across: int, pixels: int, unit: int) -> Bit:
    """A bit of a pixel as one of the word in which that pixel comes."""
    if not isinstance(bit, tuple):
        return bit
    y, x = divmod(bit[0], width)
    return y * across + x // pixels, x % pixels * unit + bit[1]


# Units that compute: how many beats leave, when, and that they hold still; what is in them is said where it is simple.


def _anything(bits: int, beats: int) -> list[list[Bit]]:
    return [[None] * bits] * beats


def rows_buffer(width: int, block: int, lag: int) -> Case:
    """Its enable is what takes beats."""
    sent: list[list[Bit]] = [[(beat, bit) for bit in range(width)] for beat in range(block)]
    room = [2 * block] * block
    link = Link("s", "m", width, block, sent, [block - 1] * block, room, 3 * block, latency=1 + lag)
    inputs = {"s_data": width, "s_valid": 1, "stat": 1, "en": 1}
    outputs = {"s_ready": 1, "take": 1, "first": 1, "last": 1, "issue": 1, "m_data": width, "m_stat": 1, "m_valid": 1}
    parameters = {"WIDTH": width, "BLOCK": block, "STAT_W": 1, "LAG": lag}
    # What computes the number reads `take`; `issue` is of use to who drives `en`.
    paths = frozenset({("s_valid", "take"), ("en", "issue")})
    return Case("hg_rows_buffer", parameters, inputs, outputs, [link], {"m_ready": "en"}, paths)


def _rows(
    module: str, parameters: Mapping[str, object], bits: tuple[int, int], beats: int, lag: int, stages: int
) -> Case:  # fmt: skip
    """Units with an hg_rows_buffer in the middle, `stages` behind its reads."""
    room = [2 * beats] * beats
    link = {"beats": beats, "sent": _anything(bits[1], beats), "need": [beats - 1] * beats, "room": room}
    return _plain(module, parameters, bits[0], {**link, "most": 3 * beats + stages - 1, "latency": lag + stages})


def rows_max(lanes: int, beats: int, bits: int, signed: int) -> Case:
    """What it sends is for rows_max_contract to say."""
    parameters = {"LANES": lanes, "BEATS": beats, "IN_W": bits, "IN_SIGNED": signed, "OUT_W": bits}
    case = _rows("hg_rows_max", parameters, (lanes * bits, lanes * bits), beats, 1, 2)
    ports = ("mark", *case.inputs, *case.outputs)
    own = {key: value for key, value in parameters.items() if key != "OUT_W"}
    return replace(case, checks=[Check("rows_max_contract", own, {port: port for port in ports})])


def rows_share(beats: int) -> Case:
    parameters = {
        "LANES": 1, "BEATS": beats, "IN_W": 1, "WEIGHT_W": 1, "NUMBER_W": 1, "SUM_W": 1 + beats, "OUT_W": 1,
        "FILE": '"FOLDER/t"',
    }  # fmt: skip
    case = _rows("hg_rows_share", parameters, (1, 1), beats, 2, 3)
    return replace(case, files={"t_0000.mem": "1 0", "t_0001.mem": "0 1"})


def rows_norm(beats: int, centered: int) -> Case:
    parameters = {
        "LANES": 1, "BEATS": beats, "IN_W": 1, "CENTERED": centered, "SUM_W": 4, "SQ_W": 4, "MEAN_W": 1, "ROOT_W": 1,
        "WEIGHT_W": 1, "BIAS_W": 1, "ACC_W": 6, "SHIFT": 0, "BITS": 2, "OUT_W": 2, "FILE": '"FOLDER/t.mem"',
    }  # fmt: skip
    case = _rows("hg_rows_norm", parameters, (1, 2), beats, 4 + 3 * centered, 8)
    return replace(case, files={"t.mem": " ".join("13"[k % 2] for k in range(beats))}, frames=30)


def softmax_rows(beats: int, masks: int = 0) -> Case:
    """Its enable is what takes beats; the marks of the first and the last beat of a row."""
    sent: list[list[Bit]] = [[None, int(beat == 0), int(beat == beats - 1)] for beat in range(beats)]
    room = [2 * beats] * beats
    link = Link("s", "m", 1, beats, sent, [beats - 1] * beats, room, 3 * beats + 2, latency=3)
    inputs = {"s_data": 1, "s_valid": 1, "en": 1}
    outputs = {"s_ready": 1, "m_data": 1, "m_valid": 1, "m_first": 1, "m_last": 1}
    parameters = {"LANES": 1, "BEATS": beats, "IN_W": 1, "LAST": 1, "D_W": 1, "MASKS": masks, "FILE": '"FOLDER/t"'}
    names = {"m_data": "{m_last, m_first, m_data}", "m_ready": "en"}
    files = {"t_mask.mem": " ".join("012"[k % 3] for k in range(masks))}
    return Case("hg_softmax_rows", parameters, inputs, outputs, [link], names, files=files)


def softmax(beats: int) -> Case:
    parameters = {"LANES": 1, "BEATS": beats, "IN_W": 1, "LAST": 1, "W": 2, "FRACTION": 1, "FILE": '"FOLDER/t"'}
    case = _rows("hg_softmax", parameters, (1, 32), beats, 0, 25 + beats)
    return replace(case, files={"t_power.mem": "2 1", "t_numerator.mem": "3f800000 3f000000"}, frames=36)


def norm_moments(beats: int, centered: int) -> Case:
    parameters = {"LANES": 1, "BEATS": beats, "X_W": 1, "Q_W": 1, "CENTERED": centered, "S_W": 1, "M_W": 1}
    link = {"beats": beats, "sent": _anything(2, 1), "need": [beats - 1], "room": [0], "most": 6 * beats, "latency": 4}
    case = _plain("hg_norm_moments", parameters, 1, link)
    return replace(case, paths=frozenset({("m_ready", "s_ready")}))


def norm_root(ways: int, gap: int) -> Case:
    """The sum goes past the root."""
    steps = 2
    sent: list[list[Bit]] = [[(0, 0), *[None] * 26]]
    parameters = {
        "M_W": 1, "S_W": 1, "E_W": 2, "W_W": 2, "STEPS": steps, "ADDEND": 2, "START": 1, "WAYS": ways, "GAP": gap,
    }  # fmt: skip
    # A row that comes too soon waits.
    link = {"beats": 1, "sent": sent, "need": [0], "room": [ways if gap == 1 else 0], "most": ways}
    return _plain("hg_norm_root", parameters, 2, {**link, "latency": steps + 4})


def norm_scale(beats: int) -> Case:
    parameters = {"LANES": 1, "BEATS": beats, "X_W": 1, "Q_W": 1, "S_W": 1, "E_W": 1, "A_W": 1}
    inputs = {"a_data": 1, "a_valid": 1, "b_data": 26, "b_valid": 1, "m_ready": 1}
    outputs = {"a_ready": 1, "b_ready": 1, "m_data": 32, "m_valid": 1}
    ports = {port: port for port in (*inputs, *outputs) if port not in ("a_data", "b_data")}
    check = Check("scale_contract", {"BEATS": beats}, ports)
    return Case("hg_norm_scale", parameters, inputs, outputs, [], paths=_TOGETHER, checks=[check])


_TOGETHER = frozenset({("m_ready", "a_ready"), ("m_ready", "b_ready"), ("a_valid", "b_ready"), ("b_valid", "a_ready")})


def _computed(
    module: str, parameters: Mapping[str, object], bits: tuple[int, int, int], beats: int, latency: int
) -> Case:  # fmt: skip
    """So many beats of a and of b, taken together, are one beat."""
    case = _pair(module, parameters, bits[:2], (beats, beats), [[0] * bits[2]], latency=latency)
    more = {"sent": _anything(bits[2], 1), "need": [beats - 1], "most": beats * (latency + 2)}
    links = [replace(link, **more) for link in case.links]  # type: ignore[arg-type]
    return replace(case, links=links, paths=_TOGETHER)


def f32_join(op: int) -> Case:
    return _computed("hg_f32_join", {"OP": op, "LANES": 1}, (32, 32, 32), 1, 5 + (op != 1))


def dynmvu(folds: int) -> Case:
    parameters = {"SIMD": 1, "PE": 1, "FOLDS": folds, "A_W": 1, "X_W": 1, "B_W": 1, "W_W": 1, "ACC_W": 1}
    return _computed("hg_dynmvu", parameters, (1, 1, 1), folds, 3)


def dynmvu_once(which: int) -> Case:
    """Every code of a (0) or b (1) comes in as 1: the result is the low bit of the other one."""
    case = dynmvu(1)
    parameters = {**case.parameters, "AB"[which] + "_SHIFT": 1, "AB"[which] + "_OFFSET": 1}
    links = list(case.links)
    links[1 - which] = replace(links[1 - which], sent=[[(0, 0)]])
    return replace(case, parameters=parameters, links=links)


# Units without streams.

_AXIL = {
    "aw": ("addr",), "w": ("data", "strb"), "ar": ("addr",), "b": ("resp",), "r": ("data", "resp"),
}  # fmt: skip
_BITS = {"data": 32, "strb": 4, "resp": 2}


def _axil(module: str, parameters: Mapping[str, object], address: int, effect: Check, more: Case) -> Case:
    """A module with an AXI4-Lite port; `effect` says what its accesses do, `more` has its other ports."""
    inputs, outputs = dict(more.inputs), dict(more.outputs)
    for channel, payload in _AXIL.items():
        own, back = (inputs, outputs) if channel in ("aw", "w", "ar") else (outputs, inputs)
        own |= {f"s_axil_{channel}{name}": _BITS.get(name, address) for name in payload}
        own[f"s_axil_{channel}valid"], back[f"s_axil_{channel}ready"] = 1, 1
    found = {"known": 1, "fresh": 1, "addr": address, "data": 32, "strb": 4, "rfresh": 1, "raddr": address}
    bus = {name.removeprefix("s_axil_"): name for name in (*inputs, *outputs) if name.startswith("s_axil_")}
    answers = {name: bus[name] for name in ("bresp", "rdata", "rresp")}
    seen = {name: name for name in (*found, *more.inputs, *more.outputs)}
    checks = [
        Check("axil_contract", {"ADDR_W": address}, {**bus, **{name: name for name in found}}),
        replace(effect, ports={**answers, **seen}),
    ]
    return Case(module, parameters, inputs, outputs, [], checks=checks, wires=found)


def axil_weights(units: int) -> Case:
    parameters = {"UNITS": units}
    effect = Check("axil_weights_contract", parameters, {})
    return _axil("hg_axil_weights", parameters, 4, effect, Case("", {}, {}, {"load": 50}, []))


def axil_regs(words: int, status: int, address: int, reset: int, mask: int) -> Case:
    bits = 32 * words
    parameters: dict[str, object] = {"WORDS": words, "STATUS": status, "ADDR_W": address}
    parameters |= {"RESET": f"{bits}'h{reset:x}", "MASK": f"{bits}'h{mask:x}"}
    effect = Check("axil_regs_contract", parameters, {})
    return _axil(
        "hg_axil_regs", parameters, address, effect, Case("", {}, {"status": 32 * status}, {"values": bits}, [])
    )  # fmt: skip


def load(unit: int, words: int, width: int, loadable: int = 1) -> Case:
    address = max(1, (words - 1).bit_length())
    parameters = {"UNIT": unit, "WORDS": words, "WIDTH": width, "LOADABLE": loadable}
    inputs, outputs = {"load": 50}, {"we": 1, "waddr": address, "wdata": width}
    ports = {port: port for port in ("mark", *inputs, *outputs)}
    check = Check("load_contract", {**parameters, "AW": address}, ports)
    return Case("hg_load", parameters, inputs, outputs, [], checks=[check])


def reset(active_low: int) -> Case:
    parameters, pins = {"ACTIVE_LOW": active_low}, {"reset_in": "asks", "rst": "resets"}
    check = Check("reset_contract", parameters, {"reset_in": "asks", "rst": "resets"})
    return Case("hg_reset", parameters, {"asks": 1}, {"resets": 1}, [], checks=[check], pins=pins)
