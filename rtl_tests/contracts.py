"""Formal contracts: proofs of the assertions in formal/ about a unit, with Yosys and ABC.

A `Case` is a unit with one set of parameters, and the source of every output bit. For each case, `prove` connects the
unit to unconstrained streams and adds assertions about its ports. ABC's property directed reachability then decides
whether any input sequence, of any length, violates one. Registers have arbitrary values before the first reset,
except in cases of `powered_up`.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import lcm, prod
from pathlib import Path

import pyosys
from streams import RTL
from windows import Geometry

CONTRACTS = sorted((Path(__file__).resolve().parent / "formal").glob("*.sv"))
#: Source of an output bit: (input beat, bit of it), the constants 0 and 1, or None for any value.
Bit = tuple[int, int] | int | None
NOT_SAID = 4095
#: Memory reads whose value synthesis may choose if the address is written at the same edge (no_rw_check).
#: By module: the read expression, the width of a word, and the condition.
UNDEFINED_READS = {
    "hg_replay": ("mem[place]", "WIDTH", "push && write_reg == place"),
    "hg_window": ("mem[address]", "UNIT*LANES", "take && write_reg == address"),
    "hg_unfold_store": ("mem[places[w*AW +: AW]]", "WORD", "write && write_reg == places[w*AW +: AW]"),
}


@dataclass(frozen=True)
class Link:
    """A stream from input to output. `output_bits`: sources of the bits of every output beat of a lap.

    `beats`: input beats of a lap. For the other fields see formal/stream_contract.sv.
    """

    source: str
    sink: str
    in_w: int
    beats: int
    output_bits: Sequence[Sequence[Bit]]
    need: Sequence[int]
    room: Sequence[int]
    max_ahead: int
    latency: int = 0
    through: bool = False
    other_ports_ready: str = "1'b1"

    def parameters(self) -> dict[str, object]:
        out_w = len(self.output_bits[0])
        words = [_word(bit) for beat in self.output_bits for bit in beat]
        return {
            "IN_W": self.in_w,
            "OUT_W": out_w,
            "IN_BEATS": self.beats,
            "OUT_BEATS": len(self.output_bits),
            "SOURCE": _packed(words, 24),
            "NEED": _packed(self.need, 16),
            "ROOM": _packed(self.room, 16),
            "MOST": self.max_ahead,
            "LATENCY": self.latency,
            "THROUGH": int(self.through),
        }


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
    """Text of a module in which reads of an address that is being written give an arbitrary value."""
    text = (RTL / f"{module}.v").read_text()
    assert ("(* no_rw_check *)" in text) == (module in UNDEFINED_READS), module
    if module in UNDEFINED_READS:
        read, width, when = UNDEFINED_READS[module]
        memory = text.index("(* no_rw_check *)")
        assert text.count(f"<= {read};") == 1, module
        text = text.replace(f"<= {read};", f"<= ({when}) ? anything : {read};")
        # Undriven: the solver chooses a value in each cycle that violates a contract, if one exists.
        text = f"{text[:memory]}wire [{width}-1:0] anything; {text[memory:]}"
    return text


@dataclass(frozen=True)
class Check:
    """An instance of another contract than stream_contract. `ports`: port -> wire of the top level."""

    contract: str
    parameters: Mapping[str, object]
    ports: Mapping[str, str]


@dataclass(frozen=True)
class Case:
    """A unit. `inputs`, `outputs`: bits of its ports other than clk and rst.

    `names`: wires of link ports with other names. `paths`: the combinational paths between valid and ready ports that
    the unit's header names. `checks`: further contracts, with `wires` between them; they may use the input `mark`.
    `pins`: port -> wire of the unit, if the names differ. `rewrites`: replaced texts of modules. `only`: the single
    assertion to check, or all. `files`: memory files, in the folder that parameters call FOLDER. `frames`: number of
    cycles to prove, if limited. `zeros`: all registers begin at 0.
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
        """Text of the unit and all its submodules."""
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

    def wire(self, port: str, signal: str) -> str:
        """Wire of a link's port for "data", "valid" or "ready"."""
        stem, bracket, index = port.partition("[")
        name = f"{stem}_{signal}"
        return self.names.get(name, name) + (bracket + index if signal != "data" else "")

    def top(self) -> str:
        inputs = "".join(f", input wire [{bits - 1}:0] {name}" for name, bits in self.inputs.items())
        wires = {**self.outputs, **self.wires}
        outputs = "".join(f"    wire [{bits - 1}:0] {name};\n" for name, bits in wires.items())
        marks = "".join(f", input wire mark{k}" for k in range(len(self.links)))
        ports = {"clk": "clk", **(self.pins or {name: name for name in ("rst", *self.inputs, *self.outputs)})}
        lines = [f"module top (input wire clk, input wire rst, input wire mark{inputs}{marks});", outputs]
        lines.append(_instance(self.module, self.parameters, "dut", ports))
        for k, link in enumerate(self.links):
            ports = {"clk": "clk", "rst": "rst", "mark": f"mark{k}", "others": link.other_ports_ready}
            for side, port in (("s", link.source), ("m", link.sink)):
                ports |= {f"{side}_{signal}": self.wire(port, signal) for signal in ("data", "valid", "ready")}
            lines.append(_instance("stream_contract", link.parameters(), f"link{k}", ports))
        for k, check in enumerate(self.checks):
            ports = {"clk": "clk", "rst": "rst", **check.ports}
            lines.append(_instance(check.contract, check.parameters, f"link_{k}", ports))
        return "\n".join([*lines, "endmodule\n"])


def _instance(module: str, parameters: Mapping[str, object], name: str, ports: Mapping[str, str]) -> str:
    values = ", ".join(f".{key}({value})" for key, value in parameters.items())
    return f"    {module} #({values}) {name} ({', '.join(f'.{port}({wire})' for port, wire in ports.items())});"


#: Runs in a separate process, because an error of Yosys ends the process.
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
    """Create a folder for each case, with its netlist (top.json) and its and-inverter graph (top.aig)."""
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
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.stdout.rstrip().endswith("DONE"), completed.stdout[-2000:] + completed.stderr[-3000:]
    return folders


def prove(folder: Path, frames: int | None = None, seconds: int = 300) -> str:
    """Verdict for a `translate` folder: "proved", "bounded" (no violation in `frames`), "violated", or ABC's output.

    seconds: of processor time, after which ABC is ended.
    """
    engine = "pdr" if frames is None else f"bmc3 -F {frames}"
    abc = Path(str(pyosys.__file__)).parent / "yosys-abc"
    command = [str(abc), "-c", f"read_aiger {folder}/top.aig; fold; strash; write_aiger {folder}/folded.aig; {engine}"]
    limited = partial(resource.setrlimit, resource.RLIMIT_CPU, (seconds, seconds))
    completed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, preexec_fn=limited)
    text = completed.stdout + completed.stderr
    if "Property proved" in text or _never(folder / "folded.aig"):
        return "proved"
    if f"No output asserted in {frames} frames" in text:
        return "bounded"
    return "violated" if "was asserted in frame" in text else text


def _never(path: Path) -> bool:
    """True if all outputs of a graph, the violations, are constant 0. ABC then has nothing left to decide."""
    header, *lines = path.read_bytes().split(b"\n")
    latches, outputs = (int(count) for count in header.split()[3:5])
    return {*lines[latches : latches + outputs]} == {b"0"}


def combinational(folder: Path, case: Case) -> set[tuple[str, str]]:
    """Pairs of a valid or ready input and an output that it reaches without a register."""
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
    paths = set()
    for name in case.inputs:
        if not name.endswith(("valid", "ready", "en")):
            continue
        reached, todo = set(), list(names[name]["bits"])
        while todo:
            bit = todo.pop()
            if bit not in reached:
                reached.add(bit)
                todo += [b for driven in readers.get(bit, []) for bits in driven.values() for b in bits]
        paths |= {(name, out) for out in case.outputs if out in names and reached & set(names[out]["bits"])}
    return paths


# The units. First those with one output beat per input beat, unchanged.


def powered_up(case: Case) -> Case:
    """The unit with registers that begin at 0, as in devices, before a reset. It must emit no beat without input."""
    pins = {name: name for name in ("rst", *case.inputs, *case.outputs)}
    pins |= {name: "0" for name in case.inputs if name.endswith("valid")}
    checks = [Check("quiet_contract", {}, {"valid": case.wire(link.sink, "valid")}) for link in case.links]
    return replace(case, links=(), checks=checks, pins=pins, zeros=True, only="quiet")


def _plain(module: str, parameters: Mapping[str, object], width: int, link: Mapping[str, object]) -> Case:
    """Case with one input s and one output m."""
    values: dict[str, object] = {"source": "s", "sink": "m", "in_w": width, **link}
    stream_link = Link(**values)  # type: ignore[arg-type]
    inputs = {"s_data": width, "s_valid": 1, "m_ready": 1}
    outputs = {"s_ready": 1, "m_data": len(stream_link.output_bits[0]), "m_valid": 1}
    return Case(module, parameters, inputs, outputs, [stream_link])


def _unchanged(width: int) -> list[list[Bit]]:
    return [[(0, bit) for bit in range(width)]]


def fifo(width: int, depth: int, ahead: bool = False) -> Case:
    """`ahead`: with the memory that is read one cycle ahead, which the library uses for large depths."""
    link = {"beats": 1, "output_bits": _unchanged(width), "need": [0], "room": [depth], "max_ahead": depth}
    case = _plain("hg_fifo", {"WIDTH": width, "DEPTH": depth}, width, link)
    return case.broken("(DEPTH >= 512 ||", "(DEPTH >= 1 ||") if ahead else case


def slice_(width: int, full: bool = True) -> Case:
    depth = 1 + full
    link = {"beats": 1, "output_bits": _unchanged(width), "need": [0], "room": [depth], "max_ahead": depth}
    return _plain("hg_slice", {"WIDTH": width, "FULL": int(full)}, width, link)


def replay(width: int, length: int, repeat: int) -> Case:
    stored = 4 if repeat == 1 and length > 2 else 2 * length
    beats = [(turn, k) for turn in range(repeat) for k in range(length)]
    output_bits: list[list[Bit]] = [[*((k, bit) for bit in range(width)), int(k == length - 1)] for _, k in beats]
    room = [stored + (k if turn == repeat - 1 else 0) for turn, k in beats]
    link = Link("s", "m", width, length, output_bits, [k for _, k in beats], room, length + stored + 1, latency=1)
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
    element_places = [
        (group * -(-in_group // lanes[0]) + k // lanes[0], k % lanes[0])
        for group in range(count // in_group)
        for k in range(in_group)
    ]
    output_bits: list[list[Bit]] = []
    need = []
    for start in range(0, count, out_group):
        for first in range(start, start + out_group, lanes[1]):
            elements = element_places[first : min(first + lanes[1], start + out_group)]
            bits: list[Bit] = [(beat, lane * unit + bit) for beat, lane in elements for bit in range(unit)]
            output_bits.append(bits + [0] * (lanes[1] * unit - len(bits)))
            need.append(elements[-1][0])
    beats = element_places[-1][0] + 1
    # While less than one output beat is stored, the unit accepts an input beat.
    room = [last + 1 for last in need]
    parameters: dict[str, object] = {"UNIT": unit, "IN": lanes[0], "OUT": lanes[1]}
    if groups:
        parameters |= {"IN_GROUP": groups[0], "OUT_GROUP": groups[1]}
    max_ahead = beats + 2 * (2 * lanes[1] // lanes[0] + 2)
    link = {"beats": beats, "output_bits": output_bits, "need": need, "room": room, "max_ahead": max_ahead}
    return _plain("hg_width", parameters, unit * lanes[0], link)


def gather(width: int, block: int, loops: Sequence[tuple[int, int]]) -> Case:
    """Loops are (extent, stride), the outermost first."""
    order = [0]
    for extent, stride in loops:
        order = [base + k * stride for base in order for k in range(extent)]
    output_bits: list[list[Bit]] = [[(beat, bit) for bit in range(width)] for beat in order]
    parameters: dict[str, object] = {"WIDTH": width, "BLOCK": block, "DIMS": len(loops)}
    parameters |= {"EXTENTS": _packed([e for e, _ in loops], 32), "STRIDES": _packed([s for _, s in loops], 32)}
    link = {
        "beats": block,
        "output_bits": output_bits,
        "need": [block - 1] * len(order),
        "room": [2 * block] * len(order),
    }
    return _plain("hg_gather", parameters, width, {**link, "max_ahead": 3 * block, "latency": 1})


def _image(shape: tuple[int, int, int]) -> list[tuple[int, int, int]]:
    return [(y, x, f) for y in range(shape[0]) for x in range(shape[1]) for f in range(shape[2])]


def _with_through_paths(case: Case, *further_paths: tuple[str, str]) -> Case:
    """The case with combinational paths from valid to valid and from ready to ready."""
    return replace(case, paths=frozenset({("s_valid", "m_valid"), ("m_ready", "s_ready"), *further_paths}))


def pick(unit: int, lanes: int, places: Sequence[int]) -> Case:
    output_bits: list[list[Bit]] = [[(0, place * unit + bit) for place in places for bit in range(unit)]]
    parameters: dict[str, object] = {"UNIT": unit, "IN": lanes, "OUT": len(places), "MAP": _packed(places, 32)}
    link = {"beats": 1, "output_bits": output_bits, "need": [0], "room": [0], "max_ahead": 1, "through": True}
    return _with_through_paths(_plain("hg_pick", parameters, unit * lanes, link))


def take(width: int, shape: tuple[int, int, int], *ranges: tuple[int, int, int]) -> Case:
    ranges_kept = [range(*bounds) for bounds in ranges]
    beats = [k for k, place in enumerate(_image(shape)) if all(p in r for p, r in zip(place, ranges_kept, strict=True))]
    output_bits: list[list[Bit]] = [[(beat, bit) for bit in range(width)] for beat in beats]
    parameters: dict[str, object] = {"WIDTH": width}
    parameters |= dict(zip(("HEIGHT", "COLUMNS", "FOLDS"), shape, strict=True))
    for axis, bounds in zip("YXC", ranges, strict=True):
        parameters |= dict(zip((f"{axis}0", f"{axis}1", f"{axis}S"), bounds, strict=True))
    # A dropped beat is consumed at once.
    link = {
        "beats": prod(shape),
        "output_bits": output_bits,
        "need": beats,
        "room": beats,
        "max_ahead": prod(shape),
        "through": True,
    }
    return _with_through_paths(_plain("hg_take", parameters, width, link))


def pad(unit: int, lanes: int, shape: tuple[int, int, int], border: tuple[int, int, int, int], value: int) -> Case:
    """The border at the top, left, bottom and right."""
    top, left, bottom, right = border
    constant: list[Bit] = [value >> bit & 1 for _ in range(lanes) for bit in range(unit)]
    output_bits: list[Sequence[Bit]] = []
    need = []
    beat = 0
    for y, x, _ in _image((top + shape[0] + bottom, left + shape[1] + right, shape[2])):
        inside = top <= y < top + shape[0] and left <= x < left + shape[1]
        output_bits.append([(beat, bit) for bit in range(unit * lanes)] if inside else constant)
        # The first beat of the border waits for the image, the others do not wait.
        need.append(beat if inside else max(beat - 1, 0))
        beat += inside
    parameters: dict[str, object] = {"UNIT": unit, "LANES": lanes}
    parameters |= dict(zip(("HEIGHT", "COLUMNS", "FOLDS"), shape, strict=True))
    parameters |= dict(zip(("TOP", "LEFT", "BOTTOM", "RIGHT"), border, strict=True)) | {"VALUE": f"{unit}'d{value}"}
    link = {
        "beats": beat,
        "output_bits": output_bits,
        "need": need,
        "room": [0] * len(output_bits),
        "max_ahead": beat,
        "through": True,
    }
    return _with_through_paths(_plain("hg_pad", parameters, unit * lanes, link))


def fork(width: int, count: int) -> Case:
    links = [
        Link("s", f"m[{k}]", width, 1, _unchanged(width), [0], [0], 1, through=True, other_ports_ready="&m_ready")
        for k in range(count)
    ]
    inputs = {"s_data": width, "s_valid": 1, "m_ready": count}
    outputs = {"s_ready": 1, "m_data": width, "m_valid": count}
    return _with_through_paths(Case("hg_fork", {"WIDTH": width, "COUNT": count}, inputs, outputs, links))


def _pair(
    module: str,
    parameters: Mapping[str, object],
    bits: tuple[int, int],
    beats: tuple[int, int],
    output_bits: Sequence[Sequence[tuple[str, int, int] | int]],
    **link_options: object,
) -> Case:
    """Case with inputs a and b. The source of a bit is ("a" or "b", beat, bit)."""
    links = []
    for k, (port, other_port) in enumerate((("a", "b"), ("b", "a"))):
        rows: list[list[Bit]] = []
        need = []
        for beat in output_bits:
            row: list[Bit] = []
            for bit in beat:
                row.append(None if isinstance(bit, int) or bit[0] != port else bit[1:])
            rows.append(row)
            need.append(max((bit[0] for bit in row if isinstance(bit, tuple)), default=NOT_SAID))
        values: dict[str, object] = {
            "max_ahead": beats[k] + 2,
            "other_ports_ready": f"{other_port}_valid",
            **link_options,
        }
        links.append(Link(port, "m", bits[k], beats[k], rows, need, [0] * len(rows), **values))  # type: ignore[arg-type]
    inputs = {"a_data": bits[0], "a_valid": 1, "b_data": bits[1], "b_valid": 1, "m_ready": 1}
    outputs = {"a_ready": 1, "b_ready": 1, "m_data": len(output_bits[0]), "m_valid": 1}
    paths = frozenset({("m_ready", "a_ready"), ("m_ready", "b_ready")})
    return Case(module, parameters, inputs, outputs, links, paths=paths)


def _extended(
    port: str, beat: int, first: int, bits: int, signed: int, out_bits: int
) -> list[tuple[str, int, int] | int]:
    """Sources of the `out_bits` bits of an extended element of `bits` bits."""
    bits_of_element: list[tuple[str, int, int] | int] = [(port, beat, first + bit) for bit in range(bits)]
    return bits_of_element + ([bits_of_element[-1]] if signed else [0]) * (out_bits - bits)


def join_results(
    mode: int, lanes: int, bits: tuple[int, int], signed: tuple[int, int], constants: tuple[int, int], out: int
) -> Case:
    """hg_join_sum with factors (mode 0), hg_join_product with zero points (mode 1)."""
    types = {"LANES": lanes, "A_W": bits[0], "A_SIGNED": signed[0], "B_W": bits[1], "B_SIGNED": signed[1]}
    names = ("FA", "FB") if mode == 0 else ("ZA", "ZB")
    parameters = {**types, "OUT_W": out, **dict(zip(names, constants, strict=True))}
    module = ("hg_join_sum", "hg_join_product")[mode]
    case = _pair(module, parameters, (lanes * bits[0], lanes * bits[1]), (1, 1), [[0] * lanes * out], latency=1)
    # join_contract checks the bits of a beat. The beat waits for one beat of each input.
    links = [replace(link, output_bits=[[None] * lanes * out], need=[0]) for link in case.links]
    ports = ("mark", *case.inputs, *case.outputs)
    check = Check("join_contract", {**parameters, "MODE": mode}, {port: port for port in ports})
    return replace(
        case, links=links, checks=[check], paths=case.paths | {("a_valid", "b_ready"), ("b_valid", "a_ready")}
    )


def join(lanes: int, a_bits: int, b_bits: int) -> Case:
    """hg_join_pair, in which every output bit is an input bit."""
    row: list[tuple[str, int, int] | int] = []
    for lane in range(lanes):
        row += [("a", 0, lane * a_bits + bit) for bit in range(a_bits)]
        row += [("b", 0, lane * b_bits + bit) for bit in range(b_bits)]
    parameters = {"LANES": lanes, "A_W": a_bits, "B_W": b_bits}
    case = _pair("hg_join_pair", parameters, (lanes * a_bits, lanes * b_bits), (1, 1), [row], latency=1)
    return replace(case, paths=case.paths | {("a_valid", "b_ready"), ("b_valid", "a_ready")})


def concat_channels(
    pixels: int, lanes: tuple[int, int], bits: tuple[int, int], signed: tuple[int, int], out_bits: int
) -> Case:
    row: list[tuple[str, int, int] | int] = []
    for pixel in range(pixels):
        for k, port in enumerate("ab"):
            for lane in range(lanes[k]):
                row += _extended(port, 0, (pixel * lanes[k] + lane) * bits[k], bits[k], signed[k], out_bits)
    parameters = {
        "UNIT_A": bits[0],
        "A_SIGNED": signed[0],
        "UNIT_B": bits[1],
        "B_SIGNED": signed[1],
        "UNIT_OUT": out_bits,
        "LANES_A": lanes[0],
        "LANES_B": lanes[1],
        "PIXELS": pixels,
    }
    sizes = (pixels * lanes[0] * bits[0], pixels * lanes[1] * bits[1])
    case = _pair("hg_beside", parameters, sizes, (1, 1), [row])
    return replace(case, paths=case.paths | {("a_valid", "b_ready"), ("b_valid", "a_ready")})


def concat(lanes: int, bits: tuple[int, int], signed: tuple[int, int], out_bits: int, beats: tuple[int, int]) -> Case:
    output_bits = [
        [bit for lane in range(lanes) for bit in _extended(port, beat, lane * bits[k], bits[k], signed[k], out_bits)]
        for k, port in enumerate("ab")
        for beat in range(beats[k])
    ]
    parameters = {
        "UNIT_A": bits[0],
        "A_SIGNED": signed[0],
        "UNIT_B": bits[1],
        "B_SIGNED": signed[1],
        "UNIT_OUT": out_bits,
        "LANES": lanes,
        "BEATS_A": beats[0],
        "BEATS_B": beats[1],
    }
    case = _pair("hg_concat", parameters, (lanes * bits[0], lanes * bits[1]), beats, output_bits, through=True)
    return replace(case, paths=case.paths | {("a_valid", "m_valid"), ("b_valid", "m_valid")})


def axis_in(width: int, tdata: int, frame: int, cut: int = 0) -> Case:
    output_bits: list[list[Bit]] = [[(0, bit) for bit in range(width)]]
    link = Link("s", "m", tdata, 1, output_bits, [0], [1], 1 + cut)
    inputs = {"s_axis_tdata": tdata, "s_axis_tvalid": 1, "s_axis_tlast": 1, "m_ready": 1}
    outputs = {"s_axis_tready": 1, "m_data": width, "m_valid": 1, "frame_error": 1}
    parameters = {"WIDTH": width, "TDATA_W": tdata, "BEATS": frame, "CUT": cut}
    names = {f"s_{signal}": f"s_axis_t{signal}" for signal in ("data", "valid", "ready")}
    paths = frozenset() if cut else frozenset({("m_ready", "s_axis_tready")})
    return Case("hg_axis_in", parameters, inputs, outputs, [link], names, paths)


def axis_out(width: int, tdata: int, frame: int, cut: int = 1) -> Case:
    output_bits: list[list[Bit]] = [
        [*((k, bit) for bit in range(width)), *[0] * (tdata - width), int(k == frame - 1)] for k in range(frame)
    ]
    link = Link("s", "m", width, frame, output_bits, range(frame), [k + 1 + cut for k in range(frame)], frame + 2)
    inputs = {"s_data": width, "s_valid": 1, "m_axis_tready": 1}
    outputs = {"s_ready": 1, "m_axis_tdata": tdata, "m_axis_tvalid": 1, "m_axis_tlast": 1}
    parameters = {"WIDTH": width, "TDATA_W": tdata, "BEATS": frame, "CUT": cut}
    names = {f"m_{signal}": f"m_axis_t{signal}" for signal in ("valid", "ready")}
    names["m_data"] = "{m_axis_tlast, m_axis_tdata}"
    paths = frozenset() if cut else frozenset({("m_axis_tready", "s_ready")})
    return Case("hg_axis_out", parameters, inputs, outputs, [link], names, paths)


def _slots(width: int, tdata: int, slot: int, frame: int) -> list[list[tuple[int, int]]]:
    """Positions (word, bit of it) of the bits of each beat of a frame."""
    places = [[beat * slot + bit for bit in range(width)] for beat in range(frame)]
    return [[(place // tdata, place % tdata) for place in beat] for beat in places]


def bus_in(width: int, tdata: int, slot: int, frame: int) -> Case:
    words = -(-frame * slot // tdata)
    output_bits: list[list[Bit]] = [list(beat) for beat in _slots(width, tdata, slot, frame)]
    # The last word of a slot is needed even if no bit of the beat is in it.
    need = [((beat + 1) * slot - 1) // tdata for beat in range(frame)]
    link = Link(
        "s", "m", tdata, words, output_bits, need, [last + 1 for last in need], words + 4, latency=int(slot != tdata)
    )
    case = axis_in(width, tdata, frame)
    parameters = {"WIDTH": width, "TDATA_W": tdata, "SLOT": slot, "BEATS": frame}
    paths = case.paths if slot == tdata else frozenset()
    return replace(case, module="hg_bus_in", parameters=parameters, links=[link], paths=paths)


def bus_out(width: int, tdata: int, slot: int, frame: int) -> Case:
    words = -(-frame * slot // tdata)
    output_bits: list[list[Bit]] = [[0] * tdata + [int(k == words - 1)] for k in range(words)]
    for beat, places in enumerate(_slots(width, tdata, slot, frame)):
        for bit, (word, place) in enumerate(places):
            output_bits[word][place] = beat, bit
    need = [min(frame, -(-(k + 1) * tdata // slot)) - 1 for k in range(words)]
    link = Link(
        "s",
        "m",
        width,
        frame,
        output_bits,
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


def window(unit: int, g: Geometry, extra_words: int = 0, code: int = 1, late: int = 0) -> Case:
    """hg_window, `extra_words` words deeper than needed. Its enable serves as m_ready."""
    depth = g.min_depth() + extra_words
    newest, oldest = g.newest(), g.oldest()
    output_bits: list[list[Bit]] = []
    owner = []
    taps = [(kh, kw, f) for kh in range(g.kh) for kw in range(g.kw) for f in range(g.folds)]
    for n, (_, y0, x0) in enumerate(g.corners()):
        for group in range(g.groups):
            for _ in range(g.repeat):
                for kh, kw, f in taps:
                    word = group * g.folds + f
                    row = _tap(g, y0 + kh * g.dh, x0 + kw * g.dw, word, unit, code)
                    output_bits.append([*row, int((kh, kw, f) == taps[-1])])
                    owner.append(n)
    room = [oldest[n] + depth for n in owner]
    link = Link("s", "m", unit, g.words, output_bits, [newest[n] for n in owner], room, 2 * g.words + depth, latency=2)
    parameters: dict[str, object] = {"UNIT": unit, "LANES": 1, **{name.upper(): getattr(g, name) for name in _AXES}}
    parameters |= {"GROUPS": g.groups, "FOLDS": g.folds, "REPEAT": g.repeat, "DEPTH": depth, "PAD": f"{unit}'d{code}"}
    parameters["LATE"] = late
    inputs = {"s_data": unit, "s_valid": 1, "en": 1}
    outputs = {"s_ready": 1, "next_valid": 1, "x": unit, "x_valid": 1, "x_last": 1}
    names = {"m_data": "{x_last, x}", "m_valid": "x_valid", "m_ready": "en"}
    return Case("hg_window", parameters, inputs, outputs, [link], names)


def unfold(unit: int, g: Geometry, columns: int = 0, windows: int = 1, pixels: int = 1, code: int = 1) -> Case:
    """hg_unfold with `pixels` pixels per word. `columns`: stored words, if the kernel has one row."""
    rows = 1 if g.kh == 1 else (g.kh - 1) * g.dh + 1
    across = -(-g.width // pixels)
    columns = columns if g.kh == 1 else across
    depth = rows * columns * g.folds
    beats = -(-g.out_w // windows)
    # In words: the windows of a beat, starting at the first pixel of the word with the first tap.
    left_words = -(-g.pl // pixels)
    reach = left_words * pixels - g.pl + (windows - 1) * g.sw + (g.kw - 1) * g.dw
    step = windows * g.sw // pixels
    span = replace(g, width=across, kw=reach // pixels + 1, dw=1, sw=step, pl=left_words, out_w=beats)
    newest, oldest = span.newest(), span.oldest()
    assert depth >= span.min_depth()
    output_bits: list[list[Bit]] = []
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
                output_bits.append(row)
                owner.append(oy * beats + beat)
    room = [oldest[n] + depth for n in owner]
    parameters: dict[str, object] = {"UNIT": unit, "LANES": 1, **{name.upper(): getattr(g, name) for name in _AXES}}
    parameters |= {"FOLDS": g.folds, "ROWS": rows, "COLUMNS": columns, "PAD": f"{unit}'d{code}", "WINDOWS": windows}
    parameters |= {"PIXELS": pixels} if pixels > 1 else {}
    words = g.height * across * g.pixel
    link = {"beats": words, "output_bits": output_bits, "need": [newest[n] for n in owner], "room": room}
    return _plain("hg_unfold", parameters, pixels * unit, {**link, "max_ahead": 2 * words + depth, "latency": 2})


def _in_word(bit: Bit, width: int, across: int, pixels: int, unit: int) -> Bit:
    """The position of a pixel's bit in the word that holds the pixel."""
    if not isinstance(bit, tuple):
        return bit
    y, x = divmod(bit[0], width)
    return y * across + x // pixels, x % pixels * unit + bit[1]


# Computing units: number and time of output beats, and their stability. Their data is checked where that is simple.


def _anything(bits: int, beats: int) -> list[list[Bit]]:
    return [[None] * bits] * beats


def rows_buffer(width: int, block: int, lag: int) -> Case:
    """The enable serves as m_ready."""
    output_bits: list[list[Bit]] = [[(beat, bit) for bit in range(width)] for beat in range(block)]
    room = [2 * block] * block
    link = Link("s", "m", width, block, output_bits, [block - 1] * block, room, 3 * block, latency=1 + lag)
    inputs = {"s_data": width, "s_valid": 1, "stat": 1, "en": 1}
    outputs = {"s_ready": 1, "take": 1, "first": 1, "last": 1, "issue": 1, "m_data": width, "m_stat": 1, "m_valid": 1}
    parameters = {"WIDTH": width, "BLOCK": block, "STAT_W": 1, "LAG": lag}
    # The statistic's logic reads `take`; the logic that drives `en` reads `issue`.
    paths = frozenset({("s_valid", "take"), ("en", "issue")})
    return Case("hg_rows_buffer", parameters, inputs, outputs, [link], {"m_ready": "en"}, paths)


def _rows(
    module: str, parameters: Mapping[str, object], bits: tuple[int, int], beats: int, lag: int, stages: int
) -> Case:
    """Case of a unit with an hg_rows_buffer, followed by `stages` stages."""
    room = [2 * beats] * beats
    link = {"beats": beats, "output_bits": _anything(bits[1], beats), "need": [beats - 1] * beats, "room": room}
    return _plain(module, parameters, bits[0], {**link, "max_ahead": 3 * beats + stages - 1, "latency": lag + stages})


def rows_max(lanes: int, beats: int, bits: int, signed: int) -> Case:
    """rows_max_contract checks the output data."""
    parameters = {"LANES": lanes, "BEATS": beats, "IN_W": bits, "IN_SIGNED": signed, "OUT_W": bits}
    case = _rows("hg_rows_max", parameters, (lanes * bits, lanes * bits), beats, 1, 2)
    ports = ("mark", *case.inputs, *case.outputs)
    contract_parameters = {key: value for key, value in parameters.items() if key != "OUT_W"}
    return replace(case, checks=[Check("rows_max_contract", contract_parameters, {port: port for port in ports})])


def rows_share(beats: int) -> Case:
    parameters = {
        "LANES": 1,
        "BEATS": beats,
        "IN_W": 1,
        "WEIGHT_W": 1,
        "NUMBER_W": 1,
        "SUM_W": 1 + beats,
        "OUT_W": 1,
        "FILE": '"FOLDER/t"',
    }
    case = _rows("hg_rows_share", parameters, (1, 1), beats, 2, 3)
    return replace(case, files={"t_0000.mem": "1 0", "t_0001.mem": "0 1"})


def rows_fixed_share(beats: int) -> Case:
    """The smallest sum that the module supports; its products are the real ones."""
    parameters = {"LANES": 1, "BEATS": beats, "IN_W": 1, "SUM_W": 21, "OUT_W": 1, "FILE": '"FOLDER/t.mem"'}
    case = _rows("hg_rows_fixed_share", parameters, (1, 1), beats, 32, 6)
    return replace(case, files={"t.mem": "7fffffff 40000000"})


def rows_norm(beats: int, centered: int) -> Case:
    parameters = {
        "LANES": 1,
        "BEATS": beats,
        "IN_W": 1,
        "CENTERED": centered,
        "SUM_W": 4,
        "SQ_W": 4,
        "MEAN_W": 1,
        "ROOT_W": 1,
        "WEIGHT_W": 1,
        "BIAS_W": 1,
        "ACC_W": 6,
        "SHIFT": 0,
        "BITS": 2,
        "OUT_W": 2,
        "FILE": '"FOLDER/t.mem"',
    }
    case = _rows("hg_rows_norm", parameters, (1, 2), beats, 4 + 3 * centered, 8)
    return replace(case, files={"t.mem": " ".join("13"[k % 2] for k in range(beats))}, frames=30)


def softmax_rows(beats: int, masks: int = 0) -> Case:
    """The enable serves as m_ready. Output bits mark the first and the last beat of a row."""
    output_bits: list[list[Bit]] = [[None, int(beat == 0), int(beat == beats - 1)] for beat in range(beats)]
    room = [2 * beats] * beats
    link = Link("s", "m", 1, beats, output_bits, [beats - 1] * beats, room, 3 * beats + 2, latency=3)
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
    link = {
        "beats": beats,
        "output_bits": _anything(2, 1),
        "need": [beats - 1],
        "room": [0],
        "max_ahead": 6 * beats,
        "latency": 4,
    }
    case = _plain("hg_norm_moments", parameters, 1, link)
    return replace(case, paths=frozenset({("m_ready", "s_ready")}))


def norm_root(rows_in_flight: int, gap: int) -> Case:
    """The sum is passed on unchanged."""
    steps = 2
    output_bits: list[list[Bit]] = [[(0, 0), *[None] * 26]]
    parameters = {
        "M_W": 1,
        "S_W": 1,
        "E_W": 2,
        "W_W": 2,
        "STEPS": steps,
        "ADDEND": 2,
        "START": 1,
        "WAYS": rows_in_flight,
        "GAP": gap,
    }
    # A row that arrives too early waits.
    link = {
        "beats": 1,
        "output_bits": output_bits,
        "need": [0],
        "room": [rows_in_flight if gap == 1 else 0],
        "max_ahead": rows_in_flight,
    }
    return _plain("hg_norm_root", parameters, 2, {**link, "latency": steps + 4})


def norm_scale(beats: int) -> Case:
    parameters = {"LANES": 1, "BEATS": beats, "X_W": 1, "Q_W": 1, "S_W": 1, "E_W": 1, "A_W": 1}
    inputs = {"a_data": 1, "a_valid": 1, "b_data": 26, "b_valid": 1, "m_ready": 1}
    outputs = {"a_ready": 1, "b_ready": 1, "m_data": 32, "m_valid": 1}
    ports = {port: port for port in (*inputs, *outputs) if port not in ("a_data", "b_data")}
    check = Check("scale_contract", {"BEATS": beats}, ports)
    return Case("hg_norm_scale", parameters, inputs, outputs, [], paths=_JOINT_PATHS, checks=[check])


_JOINT_PATHS = frozenset(
    {("m_ready", "a_ready"), ("m_ready", "b_ready"), ("a_valid", "b_ready"), ("b_valid", "a_ready")}
)


def _computed(
    module: str, parameters: Mapping[str, object], bits: tuple[int, int, int], beats: int, latency: int
) -> Case:
    """Case where `beats` beats of a and of b, consumed together, give one beat."""
    case = _pair(module, parameters, bits[:2], (beats, beats), [[0] * bits[2]], latency=latency)
    link_options = {"output_bits": _anything(bits[2], 1), "need": [beats - 1], "max_ahead": beats * (latency + 2)}
    links = [replace(link, **link_options) for link in case.links]  # type: ignore[arg-type]
    return replace(case, links=links, paths=_JOINT_PATHS)


def f32_join(op: int) -> Case:
    return _computed("hg_f32_join", {"OP": op, "LANES": 1}, (32, 32, 32), 1, 5 + (op != 1))


def dynmvu(folds: int) -> Case:
    parameters = {"SIMD": 1, "PE": 1, "FOLDS": folds, "A_W": 1, "X_W": 1, "B_W": 1, "W_W": 1, "ACC_W": 1}
    return _computed("hg_dynmvu", parameters, (1, 1, 1), folds, 3)


def dynmvu_once(which: int) -> Case:
    """Every code of a (0) or b (1) becomes 1: the result is the low bit of the other operand."""
    case = dynmvu(1)
    parameters = {**case.parameters, "AB"[which] + "_SHIFT": 1, "AB"[which] + "_OFFSET": 1}
    links = list(case.links)
    links[1 - which] = replace(links[1 - which], output_bits=[[(0, 0)]])
    return replace(case, parameters=parameters, links=links)


# Units without streams.

_AXIL = {
    "aw": ("addr",),
    "w": ("data", "strb"),
    "ar": ("addr",),
    "b": ("resp",),
    "r": ("data", "resp"),
}
_BITS = {"data": 32, "strb": 4, "resp": 2}


def _axil(module: str, parameters: Mapping[str, object], address: int, effect: Check, other_ports: Case) -> Case:
    """Case of a module with an AXI4-Lite port. `effect`: contract of its accesses. `other_ports`: its other ports."""
    inputs, outputs = dict(other_ports.inputs), dict(other_ports.outputs)
    for channel, payload in _AXIL.items():
        driven, back = (inputs, outputs) if channel in ("aw", "w", "ar") else (outputs, inputs)
        driven |= {f"s_axil_{channel}{name}": _BITS.get(name, address) for name in payload}
        driven[f"s_axil_{channel}valid"], back[f"s_axil_{channel}ready"] = 1, 1
    effect_wires = {"known": 1, "fresh": 1, "addr": address, "data": 32, "strb": 4, "rfresh": 1, "raddr": address}
    bus = {name.removeprefix("s_axil_"): name for name in (*inputs, *outputs) if name.startswith("s_axil_")}
    answers = {name: bus[name] for name in ("bresp", "rdata", "rresp")}
    effect_ports = {name: name for name in (*effect_wires, *other_ports.inputs, *other_ports.outputs)}
    checks = [
        Check("axil_contract", {"ADDR_W": address}, {**bus, **{name: name for name in effect_wires}}),
        replace(effect, ports={**answers, **effect_ports}),
    ]
    return Case(module, parameters, inputs, outputs, [], checks=checks, wires=effect_wires)


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
    )


def dma_regs(address: int, word_bits: int) -> Case:
    parameters: dict[str, object] = {"ADDR_W": address, "WORD_BITS": word_bits}
    flags = ("active", "read_failed", "write_failed", "misplaced")
    inputs = {**dict.fromkeys(flags, 1), "sent": 32, "received": 32}
    outputs = {"start": 1, "source": address, "target": address, "count": 32, "sequence_start": 1, "irq": 1}
    other_ports = Case("", {}, inputs, outputs, [])
    return _axil("hg_dma_regs", parameters, 6, Check("dma_regs_contract", parameters, {}), other_ports)


def kernel_regs(pointers: int, word_bits: int) -> Case:
    parameters: dict[str, object] = {"POINTERS": pointers, "WORD_BITS": word_bits}
    inputs = dict.fromkeys(("active", "read_failed", "write_failed", "misplaced"), 1)
    outputs = {"start": 1, "pointers": 64 * pointers, "count": 32, "sequence_start": 1, "irq": 1}
    effect = Check("kernel_regs_contract", parameters, {})
    return _axil("hg_kernel_regs", parameters, 12, effect, Case("", {}, inputs, outputs, []))


def dma_bursts(address: int, width: int, words: int, burst: int, count: int) -> Case:
    """Jobs of less than 2^count frames."""
    parameters: dict[str, object] = {"ADDR_W": address, "DATA_W": width, "WORDS": words, "BURST": burst}
    inputs = {"start": 1, "base": address, "count": 32, "m_ready": 1}
    outputs = {"left": 1, "m_addr": address, "m_words": burst.bit_length(), "m_valid": 1}
    ports = {name: name for name in (*inputs, *outputs)}
    check = Check("dma_bursts_contract", {**parameters, "COUNT_W": count}, ports)
    return Case("hg_dma_bursts", parameters, inputs, outputs, [], checks=[check])


def _frame(words: int, width: int) -> list[list[Bit]]:
    """A frame unchanged, with tlast above the data of each word."""
    return [[*((word, bit) for bit in range(width)), int(word == words - 1)] for word in range(words)]


def dma_read(width: int, words: int, burst: int, count: int) -> Case:
    """Jobs of less than 2^count frames, in the first cycles after power-up."""
    parameters: dict[str, object] = {"ADDR_W": 13, "DATA_W": width, "WORDS": words, "BURST": burst}
    inputs = {"start": 1, "base": 13, "count": 32, "m_axi_arready": 1, "m_axi_rdata": width, "m_axi_rresp": 2}
    inputs |= {"m_axi_rvalid": 1, "m_axis_tready": 1}
    outputs = {"sent": 32, "failed": 1, "m_axi_araddr": 13, "m_axi_arlen": 8, "m_axi_arvalid": 1, "m_axi_rready": 1}
    outputs |= {"m_axis_tdata": width, "m_axis_tvalid": 1, "m_axis_tlast": 1}
    steps = range(words)
    link = Link("r", "m", width, words, _frame(words, width), steps, [0] * words, 2 * burst + words, latency=1)
    names = {f"r_{name}": f"m_axi_r{name}" for name in ("data", "valid", "ready")}
    names |= {f"m_{name}": f"m_axis_t{name}" for name in ("valid", "ready")} | {
        "m_data": "{m_axis_tlast, m_axis_tdata}"
    }
    ports = {name: name for name in ("start", "count", "sent")}
    ports |= {name: f"m_axi_{name}" for name in ("arlen", "araddr", "arvalid", "arready", "rvalid")}
    ports |= {name: f"m_axis_{name}" for name in ("tvalid", "tready", "tlast")}
    check = Check("dma_read_contract", {"WORDS": words, "BURST": burst, "COUNT_W": count}, ports)
    return Case("hg_dma_read", parameters, inputs, outputs, [link], names, checks=[check], frames=14)


def dma_write(width: int, words: int, burst: int, count: int) -> Case:
    """Jobs of less than 2^count frames, in the first cycles after power-up."""
    parameters: dict[str, object] = {"ADDR_W": 13, "DATA_W": width, "WORDS": words, "BURST": burst}
    inputs = {"start": 1, "base": 13, "count": 32, "m_axi_awready": 1, "m_axi_wready": 1, "m_axi_bresp": 2}
    inputs |= {"m_axi_bvalid": 1, "s_axis_tdata": width, "s_axis_tvalid": 1, "s_axis_tlast": 1}
    outputs = {"active": 1, "received": 32, "failed": 1, "misplaced": 1, "m_axi_awaddr": 13, "m_axi_awlen": 8}
    outputs |= {"m_axi_awvalid": 1, "m_axi_wdata": width, "m_axi_wstrb": width // 8, "m_axi_wlast": 1}
    outputs |= {"m_axi_wvalid": 1, "m_axi_bready": 1, "s_axis_tready": 1}
    link = Link("s", "w", width, 1, _unchanged(width), [NOT_SAID], [0], 2 * burst + 1, other_ports_ready="1'b0")
    names = {f"s_{name}": f"s_axis_t{name}" for name in ("data", "valid", "ready")}
    names |= {f"w_{name}": f"m_axi_w{name}" for name in ("data", "valid", "ready")}
    ports = {name: name for name in ("start", "count", "active")}
    axi = ("awlen", "awaddr", "awvalid", "awready", "wvalid", "wready", "wlast", "bvalid")
    ports |= {name: f"m_axi_{name}" for name in axi}
    check = Check("dma_write_contract", {"WORDS": words, "COUNT_W": count}, ports)
    return Case("hg_dma_write", parameters, inputs, outputs, [link], names, checks=[check], frames=14)


def state(width: int, beats: int, initial: int) -> Case:
    value = f"{width}'d{initial}"
    parameters: dict[str, object] = {"WIDTH": width, "BEATS": beats, "INITIAL": value}
    inputs = {"a_data": 1, "a_valid": 1, "b_data": width, "b_valid": 1, "m_ready": 1}
    outputs = {"a_ready": 1, "b_ready": 1, "m_data": width, "m_valid": 1}
    check = Check("state_contract", parameters, {port: port for port in (*inputs, *outputs)})
    return Case("hg_state", parameters, inputs, outputs, [], checks=[check])


def frame_start(beats: int, words: int) -> Case:
    parameters: dict[str, object] = {"WIDTH": 1, "BEATS": beats, "WORDS": words}
    inputs = dict.fromkeys(("word_valid", "word_ready", "fresh", "s_data", "s_valid", "m_ready"), 1)
    outputs = {"begins": 1, "s_ready": 1, "m_data": 1, "m_valid": 1}
    ports = {port: port for port in ("mark", *inputs, *outputs) if port != "s_data"}
    check = Check("frame_start_contract", {"BEATS": beats, "WORDS": words}, ports)
    paths = frozenset(
        {("s_valid", "m_valid"), ("m_ready", "s_ready"), ("word_valid", "begins"), ("word_ready", "begins")}
    )
    return Case("hg_frame_start", parameters, inputs, outputs, [], paths=paths, checks=[check])


def load(unit: int, words: int, width: int) -> Case:
    address = max(1, (words - 1).bit_length())
    parameters = {"UNIT": unit, "WORDS": words, "WIDTH": width}
    inputs, outputs = {"load": 50}, {"we": 1, "waddr": address, "wdata": width}
    ports = {port: port for port in ("mark", *inputs, *outputs)}
    check = Check("load_contract", {**parameters, "AW": address}, ports)
    return Case("hg_load", parameters, inputs, outputs, [], checks=[check])


def reset(active_low: int) -> Case:
    parameters, pins = {"ACTIVE_LOW": active_low}, {"reset_in": "asks", "rst": "resets"}
    check = Check("reset_contract", parameters, {"reset_in": "asks", "rst": "resets"})
    return Case("hg_reset", parameters, {"asks": 1}, {"resets": 1}, [], checks=[check], pins=pins)
