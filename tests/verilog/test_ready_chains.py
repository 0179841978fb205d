"""Chains of ready signals: their length in the netlists of builds, read without knowing how they were cut."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import certified
import certified_images
import numpy as np
import onnx
import pytest
from builds import assert_verified
from models import Net
from paths import needs_icarus

import hlsgen
from hlsgen.adder_graph import AdderGraph, find
from hlsgen.dataflow.units import AdderMatVec, Port
from hlsgen.verilog.unit_table import latency

pytest.importorskip("pyosys")

#: Longest combinational ready path, in streams after the first. The second limit holds for cores with streams of more
#: than 64 bits, where slices are expensive.
LONGEST, LONGEST_WIDE = 1, 7
_NETLIST = """
import sys
from pyosys import libyosys as ys
out, top, *files = sys.argv[1:]
design = ys.Design()
for command in [*(f"read_verilog -defer {file}" for file in files), f"hierarchy -top {top}", "proc", "flatten",
                "opt_clean", f"write_json {out}"]:
    ys.run_pass(command, design)
print("DONE")
"""
#: What keeps the combinational paths of a cell apart: its outputs follow from registers, or from its address alone.
_REGISTERS = ("dff", "$mem", "$meminit", "$sdff")


def netlist(directory: Path, work: Path) -> dict[str, Any]:
    """The flat top level of a build, as Yosys writes it."""
    files = sorted(map(str, (directory / "rtl").glob("*.v")))
    top = json.loads((directory / "manifest.json").read_text())["top"]["module"]
    command = [sys.executable, "-c", _NETLIST, str(work / "top.json"), top, *files]
    process = subprocess.run(command, cwd=directory / "rtl", capture_output=True, text=True, check=False)
    assert process.stdout.rstrip().endswith("DONE"), process.stdout[-2000:] + process.stderr[-2000:]
    module: dict[str, Any] = json.loads((work / "top.json").read_text())["modules"][top]
    return module


def chains(module: dict[str, Any]) -> dict[str, int]:
    """The ready signals of other streams on which each stream's ready signal depends combinationally, in series."""
    sources: dict[int, list[int]] = defaultdict(list)
    for cell in module["cells"].values():
        if any(kind in cell["type"] for kind in _REGISTERS):
            continue
        ins = [
            bit
            for port, bits in cell["connections"].items()
            if cell["port_directions"][port] == "input"
            for bit in bits
        ]
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "output":
                for bit in bits:
                    sources[bit] += [x for x in ins if isinstance(x, int)]
    names = {
        net["bits"][0]: name
        for name, net in module["netnames"].items()
        if name.endswith("_ready") and "." not in name and isinstance(net["bits"][0], int)
    }
    # Ready signals on the path to each bit, itself included.
    hops_before: dict[int, int] = {}
    for start in names:
        todo = [start]
        while todo:
            bit = todo[-1]
            waits = [x for x in sources[bit] if x not in hops_before]
            if waits:
                todo += waits
                continue
            todo.pop()
            hops_before[bit] = max((hops_before[x] for x in sources[bit]), default=0) + (bit in names)
    return {name: hops_before[bit] - 1 for bit, name in names.items()}


def paths(module: dict[str, Any]) -> set[tuple[str, str]]:
    """(input, output) of the core: the output waits for the input in the same cycle."""
    sources: dict[int, list[int]] = defaultdict(list)
    for cell in module["cells"].values():
        if any(kind in cell["type"] for kind in ("dff", "$mem")):
            # A memory is read without a clock: its word follows from the address.
            read = cell["type"].startswith("$memrd") and not int(cell["parameters"]["CLK_ENABLE"], 2)
            ends = ("ADDR", "DATA") if read else None
        else:
            ends = None if "$meminit" in cell["type"] else ("", "")
        if ends is None:
            continue
        ins, outs = (
            [
                bit
                for port, bits in cell["connections"].items()
                if cell["port_directions"][port] == direction and port in (name or port)
                for bit in bits
                if isinstance(bit, int)
            ]
            for name, direction in zip(ends, ("input", "output"), strict=True)
        )
        for bit in outs:
            sources[bit] += ins
    ports = module["ports"]
    input_bits = {bit: name for name, port in ports.items() if port["direction"] == "input" for bit in port["bits"]}
    connections: set[tuple[str, str]] = set()
    for name, port in ports.items():
        if port["direction"] == "output":
            visited = todo = {bit for bit in port["bits"] if isinstance(bit, int)}
            while todo:
                todo = {x for bit in todo for x in sources[bit]} - visited
                visited = visited | todo
            connections |= {(input_bits[bit], name) for bit in visited if bit in input_bits}
    return connections


def longest(module: dict[str, Any]) -> int:
    """The bound of a core, by the widest of its streams."""
    bits = [len(net["bits"]) for name, net in module["netnames"].items() if name.endswith("_data") and "." not in name]
    return LONGEST if max(bits) <= 64 else LONGEST_WIDE


def builds() -> list[tuple[str, bool, bool]]:
    return [(name, True, False) for name in certified_images.IMAGES] + [
        (name, False, True) for name in certified_images.WHOLE
    ]


@pytest.mark.sweep
@pytest.mark.cases(1)
@pytest.mark.parametrize(("name", "fold", "whole"), builds())
def test_chains_of_images(name: str, fold: bool, whole: bool, tmp_path: Path) -> None:
    module = netlist(certified_images.build(name, tmp_path / "b", fold, whole), tmp_path)
    found = chains(module)
    assert len(found) > 2
    assert max(found.values()) <= longest(module), found
    assert paths(module) == set()


@pytest.mark.sweep
@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["folded", "float"])
def test_chains_of_functions(name: str, tmp_path: Path) -> None:
    module = netlist(certified.CASES[name].build(tmp_path / "b"), tmp_path)
    found = chains(module)
    assert 0 < max(found.values()) <= longest(module), found
    assert paths(module) == set()


@pytest.mark.sweep
def test_enables_that_go_far(tmp_path: Path) -> None:
    """48 codes of 4 bits and as many weights move on one enable: it depends on registers, that of 6 codes need not."""
    net = Net((1, 48)).quant(0.5, bits=4.0)
    net.linear(6, 48, name="far").quant(4.0, bits=4.0).linear(4, 6, name="near").quant(4.0, bits=4.0)
    folding = {"far": {"pe": 1, "simd": 48}, "near": {"pe": 1, "simd": 2}}
    onnx.save(net.model(), tmp_path / "net.onnx")
    hlsgen.build(tmp_path / "net.onnx", tmp_path / "b", hlsgen.Options(folding=folding, top="top"))
    found = chains(netlist(tmp_path / "b", tmp_path))
    assert (found["far_ready"], found["near_ready"]) == (0, 1), found


@pytest.mark.sweep
def test_a_slice_stands_behind_few_bits(tmp_path: Path) -> None:
    """The enable that goes far follows from that of the quantizer, and both from a register: sums have no slice."""
    net = Net((1, 48)).quant(0.5, bits=4.0)
    net.linear(6, 48, name="far").quant(4.0, bits=2.0).linear(4, 6, name="near").quant(4.0, bits=4.0)
    folding = {"far": {"pe": 1, "simd": 48}, "near": {"pe": 1, "simd": 2}}
    onnx.save(net.model(), tmp_path / "net.onnx")
    hlsgen.build(tmp_path / "net.onnx", tmp_path / "b", hlsgen.Options(folding=folding, top="top"))
    found = chains(netlist(tmp_path / "b", tmp_path))
    assert (found["far_ready"], found["IntQuant_t3_ready"]) == (1, 0), found
    assert "far_slice_ready" not in found
    assert "IntQuant_t3_slice_ready" in found


@pytest.mark.sim
@needs_icarus
def test_ready_goes_through_one_unit_of_adders_at_a_fast_clock(tmp_path: Path) -> None:
    """Each of them moves thousands of bits: a slice stands between any two, and behind the input port.

    Beats come in the predicted cycles, with and without stalls.
    """
    rng, net = np.random.default_rng(5), Net((1, 10)).quant(0.5, bits=8.0)
    for rows, columns in ((16, 10), (12, 16)):
        weight = rng.integers(-8, 8, (columns, rows)).astype(np.float32) / 8
        net.linear(rows, columns, weight, f"fc{rows}", scale=0.125).then("Relu")
        net.quant(0.37, bits=5.0, signed=0, narrow=0)
    onnx.save(net.model(), tmp_path / "net.onnx")
    found = {}
    for name, clock in (("slow", None), ("fast", 150.0)):
        options = hlsgen.Options(target_cycles=1, device="ecp5-85k", clock_mhz=clock, top="top")
        hlsgen.build(tmp_path / "net.onnx", tmp_path / name, options)
        module = netlist(tmp_path / name, tmp_path)
        assert paths(module) == set()
        found[name] = max(length for wire, length in chains(module).items() if wire != "s_axis_ready")
    assert found == {"slow": 3, "fast": 1}
    assert_verified(tmp_path / "fast", "icarus", 8)
    assert certified.messages(tmp_path / "fast") == []


@pytest.mark.cases(1)
@pytest.mark.sim
@needs_icarus
@pytest.mark.parametrize("bus", [None, "128"])
@pytest.mark.parametrize("rows", [24, 5])
def test_ready_is_cut_at_the_narrower_end(rows: int, bus: str | None, tmp_path: Path) -> None:
    """Beats of 32 bits become such of 192, a frame a cycle: the input port keeps ready apart, if they fit a word.

    With 5 rows it is the output port. Beats come in the predicted cycles, with and without stalls.
    """
    net = Net((1, 8)).quant(0.5, bits=4.0)
    net.linear(rows, 8, name="fc")
    onnx.save(net.model(), tmp_path / "net.onnx")
    hlsgen.build(tmp_path / "net.onnx", tmp_path / "b", hlsgen.Options(target_cycles=1, bus_width=bus, top="top"))
    text = (tmp_path / "b/rtl/top.v").read_text()
    assert re.findall(r"\.CUT\((\d)\)", text) == (["1", "0"] if rows == 24 and bus is None else [])
    module = netlist(tmp_path / "b", tmp_path)
    assert paths(module) == set()
    assert chains(module)["s_axis_ready"] <= 2
    assert_verified(tmp_path / "b", "icarus", 8)
    assert certified.messages(tmp_path / "b") == []


@pytest.mark.cases(1)
@pytest.mark.sim
@needs_icarus
@pytest.mark.parametrize("last", ["codes", "wide codes"])
def test_slices_of_one_register_and_open_codes(last: str, tmp_path: Path) -> None:
    """Behind products in two words a slice is one register; codes of 4 bits have none in front of the output port.

    In simulation beats come in the predicted cycles, with and without stalls.
    """
    net = Net((1, 48)).quant(0.5, bits=4.0)
    net.linear(6, 48, name="far").quant(0.75, bits=4.0 if last == "codes" else 5.0)
    onnx.save(net.model(), tmp_path / "net.onnx")
    options = hlsgen.Options(folding={"far": {"pe": 2, "simd": 24}}, realize={"": "correct"}, top="top")
    hlsgen.build(tmp_path / "net.onnx", tmp_path / "b", options)
    top = (tmp_path / "b/rtl/top.v").read_text()
    assert re.findall(r"hg_slice #\(\s*\.WIDTH\(\d+\),\s*\.FULL\((\d)\)", top) == ["0"]
    assert re.findall(r"\.OPEN\((\d)\)", top)[-1] == str(int(last == "codes"))
    assert_verified(tmp_path / "b", "icarus", 8)


@pytest.mark.sim
@needs_icarus
def test_ready_goes_around_adders(tmp_path: Path) -> None:
    """Of three layers with wide sums in front of hg_shift, ready goes through the quantizers and the last adders only."""
    rng, net = np.random.default_rng(7), Net((1, 12)).quant(1.0, 0.0, 4.0, signed=1, narrow=0)
    for n in range(4):
        weight = rng.integers(-3, 4, (12, 12)).astype(np.float32)
        net.linear(12, 12, weight, f"fc{n}", scale=1.0, bits=3.0)
        if n < 3:
            net.then("Relu").quant(4.0, 0.0, 4.0, signed=0, narrow=0)
    onnx.save(net.model(), tmp_path / "net.onnx")
    options = hlsgen.Options(target_cycles=1, realize={"": "shift"}, top="top")
    hlsgen.build(tmp_path / "net.onnx", tmp_path / "b", options)
    adders = [path.read_text() for path in sorted((tmp_path / "b/rtl").glob("top_*_adders.v"))]
    assert [".JOINED(1)" in text for text in adders] == [True, True, True, False]
    assert max(chains(netlist(tmp_path / "b", tmp_path)).values()) <= 4
    assert_verified(tmp_path / "b", "icarus", 8)


@pytest.mark.sweep
def test_adders_of_three_terms(tmp_path: Path) -> None:
    """Few, as trees have a level more where that takes no cycle and fewer tables; and kept apart from others in their stage."""
    rng, net = np.random.default_rng(3), Net((1, 16)).quant(1.0, 0.0, 8.0, signed=1, narrow=0)
    for n in range(2):
        weight = np.clip(np.round(rng.normal(0, 4.2, (16, 16))), -15, 15).astype(np.float32)
        net.linear(16, 16, weight, f"fc{n}", scale=1.0, bits=5.0)
        if not n:
            net.then("Relu").quant(64.0, 0.0, 6.0, signed=0, narrow=0)
    onnx.save(net.model(), tmp_path / "net.onnx")
    build = hlsgen.build(tmp_path / "net.onnx", tmp_path / "b", hlsgen.Options(target_cycles=1, top="top"))
    first, last = (node.unit for node in build.network.nodes if isinstance(node.unit, AdderMatVec))
    # Codes come out of the small memory of the input port, and out of a register of the quantizer.
    assert build.network.nodes[0].unit == Port(cuts_ready=True)
    assert (first.producer_ps > 0, last.producer_ps) == (True, 0)
    for unit, fewer in ((first, True), (last, False)):
        assert isinstance(unit.graph, AdderGraph)
        rebuilt = find(unit.matrix.weight.reshape(16, 16)[:, unit.matrix.order], unit.graph.inputs)
        assert latency(unit) == latency(replace(unit, graph=rebuilt))
        assert (unit.graph.bits < rebuilt.bits) == fewer


def test_a_level_more_only_for_fewer_tables(tmp_path: Path) -> None:
    """Here it would take one more."""
    weight = np.clip(np.round(np.random.default_rng(1).normal(0, 0.84, (12, 12))), -3, 3).astype(np.float32)
    net = Net((1, 12)).quant(1.0, 0.0, 8.0, signed=1, narrow=0).linear(12, 12, weight, scale=1.0, bits=3.0)
    onnx.save(net.model(), tmp_path / "net.onnx")
    nodes = hlsgen.check(tmp_path / "net.onnx", hlsgen.Options(target_cycles=1)).network.nodes
    (unit,) = (node.unit for node in nodes if isinstance(node.unit, AdderMatVec))
    assert isinstance(unit.graph, AdderGraph)
    fewest, one_level_more = (find(weight.T.astype(np.int64), unit.graph.inputs, levels) for levels in (0, 1))
    assert unit.graph.bits == fewest.bits < one_level_more.bits


def test_a_chain_is_seen() -> None:
    """Two cells behind a register, and one in front of it."""

    def gate(a: int, y: int, kind: str = "$not") -> dict[str, Any]:
        return {"type": kind, "port_directions": {"A": "input", "Y": "output"}, "connections": {"A": [a], "Y": [y]}}

    cells = {"u": gate(2, 3), "v": gate(3, 4), "w": gate(4, 5), "r": gate(5, 6, "$dff"), "t": gate(6, 7)}
    nets = {f"{name}_ready": {"bits": [bit]} for name, bit in zip("abcde", (2, 4, 5, 6, 7), strict=True)}
    assert chains({"cells": cells, "netnames": nets}) == {
        "a_ready": 0,
        "b_ready": 1,
        "c_ready": 2,
        "d_ready": 0,
        "e_ready": 1,
    }
