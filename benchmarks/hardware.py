"""Size and clock of workloads beside the figures of other tools: `make bench-hardware`.

    python benchmarks/hardware.py [NAME ...] [--route] [--seeds 1 2] [--again] [--seconds N]
    python benchmarks/hardware.py --stale [NAME ...]
    python benchmarks/hardware.py --list | --digests [NAME ...]

Builds each workload of workloads.py and synthesizes it with Yosys for Xilinx 7 series, into data/hardware.json; with
--route builds those that are small for ECP5 at 150 MHz as well, and places and routes these with nextpnr, into
data/routed.json. Then page.py writes docs/benchmarks.md of the data. What was measured of the same Verilog is kept,
without --again; what cannot be measured, or takes a tool longer than so many seconds, keeps its former row, and the
last lines say so. A digest in these files is that of the design that was measured, independent of names and comments:
nothing but a measurement writes it. --stale builds without measuring, and the page then names the rows whose design
has changed.
"""

from __future__ import annotations

import argparse
import functools
import json
import operator
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import onnx
import page
from synthesis.packing import shared_sites
from synthesis.timing import longest_path
from synthesis.yosys import Netlist, Size, synthesize
from workloads import ASKED_ON, WORKLOADS, Model, Workload

import hlsgen
from hlsgen.driver.compile import Build
from hlsgen.driver.summary import estimate

#: What is asked for when a core is routed.
ROUTED_FOR = {"device": "ecp5-85k", "clock_mhz": 150.0}
Row = dict[str, Any]


def build_of(model: Model, work: Workload, folder: Path, **options: Any) -> tuple[Build, list[Path]]:
    """A build in `folder`, and its Verilog files."""
    folder.mkdir()
    if isinstance(model, onnx.ModelProto):
        onnx.save(model, folder / "model.onnx")
        model = folder / "model.onnx"
    prefer = "dsp" if work.dsp else "lut"
    if work.clock_mhz is not None:
        options = {"device": ASKED_ON, "clock_mhz": work.clock_mhz, **options}
    options |= {"target_cycles": work.cycles, "input": work.reads, "ports": work.ports, "merge_layers": work.merges}
    chosen = hlsgen.Options(top="top", prefer=prefer, **options)
    build = hlsgen.build(model, folder / "core", chosen)
    return build, sorted((folder / "core" / "rtl").glob("*.v"))


def build_routed(work: Workload, folder: Path) -> tuple[Build, list[Path]]:
    """A build for ROUTED_FOR, and its Verilog files."""
    return build_of(work.model(), work, folder, **ROUTED_FOR)


def todays_digest(path: Path, name: str, folder: Path) -> str:
    """Digest of what today's compiler writes for a row of page.SIZES or page.ROUTED."""
    work = WORKLOADS[name]
    return digest((build_routed(work, folder) if path == page.ROUTED else build_of(work.model(), work, folder))[1])


def digest(files: list[Path]) -> str:
    """Digest of all Verilog and memory files of a build, independent of names, comments and white space."""
    from canonical_verilog import digest as digest_of  # of tests/support, which workloads.py puts on the path

    return digest_of({path.name: path.read_bytes() for path in files[0].parent.iterdir()})


def share(netlist: Netlist, times: int, first: bool, last: bool) -> Size:
    """What a piece brings to the whole: its units so many times, and the port that the whole has there."""
    sizes = netlist.instances()
    ports = [sizes.pop(port, Size()) for port in ("port_in", "port_out")]
    inside = functools.reduce(operator.add, [*sizes.values()] * times, Size())
    return inside + (ports[0] if first else Size()) + (ports[1] if last else Size())


def measure(work: Workload, known: Row, folder: Path, seconds: float) -> Row:
    """Size, clock and cycles of a workload; `known` if that is of the same Verilog."""
    build, files = build_of(work.model(), work, folder / "whole")
    row: Row = {"rtl": digest(files), "estimate": estimate(build)["lut"]}
    row |= {"latency": build.timing.latency, "interval": build.timing.interval}
    if known.get("rtl") == row["rtl"]:
        return known
    pieces = [(1, files)]
    if work.pieces:
        pieces = [(n, build_of(own(), work, folder / f"piece{k}")[1]) for k, (n, own) in enumerate(work.pieces)]
    size, shared, paths = Size(), 0, []
    for k, (times, own) in enumerate(pieces):
        print(f"  built, {row['estimate']} LUT estimated; Yosys: piece {k + 1} of {len(pieces)}", flush=True)
        netlist = synthesize(own, folder, dsp=work.dsp, units=1, seconds=seconds)
        last = k == len(pieces) - 1
        size += share(netlist, times, k == 0, last) if work.pieces else netlist.size()
        shared += times * shared_sites(netlist.flat)
        paths.append(longest_path(netlist.flat))
    worst = max(paths, key=lambda path: path.ns)
    print(f"  {size.lut} LUT; longest path {worst.start} -> {worst.end}", flush=True)
    found = {**asdict(size), "packed": size.lut - shared, "ns": worst.ns, "levels": worst.tables + worst.carries}
    return found | row | ({"pieces": True} if work.pieces else {})


def measure_routed(work: Workload, known: Row, folder: Path, seeds: list[int], seconds: float) -> Row:
    """What nextpnr makes of a workload for ROUTED_FOR: seeds are added to `known` if that is of the same Verilog."""
    built = folder / "routed"
    build, files = build_routed(work, built)
    row: Row = {"rtl": digest(files), "latency": build.timing.latency, "interval": build.timing.interval, "mhz": {}}
    if known.get("rtl") == row["rtl"]:
        row = known
    for seed in seeds:
        if str(seed) not in row["mhz"]:
            print(f"  for ECP5: Yosys and nextpnr, seed {seed}", flush=True)
            routed = hlsgen.synth(built / "core", str(ROUTED_FOR["device"]), seed=seed, timeout=seconds)
            if routed.fmax_mhz is None:
                raise RuntimeError("nextpnr reports no clock")
            mhz = {**row["mhz"], str(seed): round(routed.fmax_mhz, 2)}
            counts = {kind: getattr(routed, kind) for kind in ("lut", "ff", "bram", "dsp")}
            row = {**row, **counts, "asked": ROUTED_FOR["clock_mhz"], "mhz": mhz}
    return row


def attempt(name: str, arguments: argparse.Namespace) -> list[str]:
    """Measures a workload into the data. Returns what could not be measured, and why."""
    steps = {page.SIZES: lambda known, folder: measure(WORKLOADS[name], known, folder, arguments.seconds)}
    if arguments.route and WORKLOADS[name].routed:
        steps[page.ROUTED] = lambda known, folder: measure_routed(
            WORKLOADS[name], known, folder, arguments.seeds, arguments.seconds
        )
    failed = []
    for path, step in steps.items():
        data, start = page.load(path), time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = step({} if arguments.again else data.get(name, {}), Path(folder))
            except FileNotFoundError as error:
                return [f"{name}: {error}"]
            except (RuntimeError, ImportError, hlsgen.HlsgenError) as error:
                failed.append(f"{name}: {path.stem}: {str(error)[-500:]}")
                continue
        same = found == data.get(name)
        # Others may have written in the meantime.
        page.save(path, {**page.load(path), name: found})
        page.save_built(path, name, found["rtl"])
        print(f"  {path.stem}: {'as it was' if same else found}, {time.perf_counter() - start:.0f} s", flush=True)
    return failed


def todays_digests(name: str) -> dict[str, str]:
    """Digest of today's Verilog of each measured row of a workload, by name of the data file."""
    digests = {}
    for path in (page.SIZES, page.ROUTED):
        if name in page.load(path):
            with tempfile.TemporaryDirectory() as folder:
                digests[path.stem] = todays_digest(path, name, Path(folder) / "core")
    return digests


def find_stale(name: str) -> list[str]:
    """Builds the rows of a workload into page.BUILT, without measuring. Returns what cannot be built, and why."""
    try:
        digests = todays_digests(name)
    except FileNotFoundError as error:
        return [f"{name}: {error}"]
    for path in (page.SIZES, page.ROUTED):
        if path.stem in digests:
            page.save_built(path, name, digests[path.stem])
            print(f"{page.label(path, name)} ({path.stem})", flush=True)
    return []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--route", action="store_true", help="route the small ones for ECP5, too")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1], help="of the placement")
    parser.add_argument("--again", action="store_true", help="measure what is known of the same Verilog, too")
    parser.add_argument("--seconds", type=float, default=1800, help="longest that a tool may take")
    parser.add_argument("--stale", action="store_true", help="measure nothing, find the rows whose Verilog has changed")
    parser.add_argument("--list", action="store_true", help="print what is in the data, and measure nothing")
    parser.add_argument(
        "--digests", action="store_true", help="print digests of today's Verilog as JSON, write nothing"
    )
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.names if name not in WORKLOADS]:
        parser.error(f"no such workload: {', '.join(unknown)}. There are: {'; '.join(WORKLOADS)}")
    if arguments.digests:
        print(json.dumps({name: todays_digests(name) for name in arguments.names or WORKLOADS}, indent=1))
        return
    skipped = []
    for name in arguments.names or WORKLOADS:
        if arguments.stale:
            skipped += find_stale(name)
            continue
        if not arguments.list:
            print(f"{name}: being built", flush=True)
            skipped += attempt(name, arguments)
        print(page.line(name), flush=True)
    if not arguments.list:
        page.write()
    for text in skipped:
        print(f"not measured: {text}")


if __name__ == "__main__":
    main()
