"""Synthesizes a build: Verilog by Yosys and nextpnr, or by Vivado or Quartus; C++ by Vitis."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from hlsgen.devices import Device
from hlsgen.diagnostics import fail
from hlsgen.driver.compile import Build, device_estimate
from hlsgen.installation import install_command
from hlsgen.simulation.child_process import failed, work_folder
from hlsgen.simulation.core_copy import write_core
from hlsgen.synthesis import harness, nextpnr, output_registers, quartus, vitis_hls, vivado
from hlsgen.synthesis.netlist import Size, size
from hlsgen.synthesis.programs import available, run, run_yosys, tool_version
from hlsgen.synthesis.result import PathPart, Synthesis, over
from hlsgen.synthesis.yosys import NETLIST, passes

#: Most placements of one synthesis.
MAX_SEEDS = 100
#: Larger netlists are rejected.
MAX_NETLIST_BYTES = 1 << 31


@dataclass(frozen=True)
class Order:
    """Settings of a synthesis. seconds: limit for each tool. seed: of the first placement. bitstream: make one.

    place: place and route, if there is a nextpnr or a vendor tool for the device. At most `seeds` placements of nextpnr
    are tried until the clock that the build asks for is reached.
    """

    seconds: float = 3600.0
    seed: int = 1
    bitstream: bool = False
    place: bool = True
    seeds: int = 3


def synthesize(
    build: Build, files: Mapping[str, bytes], device: Device, order: Order, progress: Callable[[str], None]
) -> tuple[Synthesis, dict[str, bytes]]:
    """Synthesizes the files of a build; returns the measurements and the files that the tools wrote.

    files: by relative path. The written files are netlist, report, log, bitstream. A build with C++ only is synthesized
    by Vitis. Raises HG040 if no bitstream can be made for the device; HG052, HG053.
    """
    family = device.family
    if not 1 <= order.seeds <= MAX_SEEDS:
        raise fail("HG040", "--seeds", f"{order.seeds}.", f"Supported: 1 to {MAX_SEEDS}.")
    if order.bitstream and not family.pack:
        text = f"{device.name} has no open tools that make one."
        raise fail("HG040", "--bitstream", text, "Devices of ECP5, iCE40, Gowin and GateMate have.")
    if "hls" in build.designs and "verilog" not in build.designs:
        return _by_vitis(build, files, device, order, progress)
    for tool in (vivado, quartus):
        if order.place and family.vendor == tool.VENDOR and tool.on_path():
            return _by_vendor(tool, build, files, device, order, progress)
    return _by_open_tools(build, files, device, order, progress)


def _by_open_tools(
    build: Build, files: Mapping[str, bytes], device: Device, order: Order, progress: Callable[[str], None]
) -> tuple[Synthesis, dict[str, bytes]]:
    """As `synthesize`, by Yosys, nextpnr and the packer of the family."""
    began, family, top = time.monotonic(), device.family, build.design.top
    place = order.place and bool(family.place)
    if order.bitstream and not place:
        raise fail("HG040", "--bitstream", "needs placement and routing.", "Leave --no-place out.")
    for program in [*([family.place] if place else []), *([family.pack] if order.bitstream else [])]:
        if not available(program):
            raise fail("HG052", program, "is not installed.", f"{install_command('synth')}, or put it on PATH.")
    rtl = _rtl(files)
    versions = {"yosys": tool_version("yosys")} if available("yosys") else {}
    written: dict[str, bytes] = {}
    with work_folder("yosys") as work:
        folder = write_core(rtl, work) / "rtl"
        names = _verilog_names(rtl)
        if place:
            ports = harness.ports_of(top, rtl[f"rtl/{top}.v"].decode())
            (folder / harness.FILE).write_text(harness.harness(top, ports, _clock(build)), encoding="utf-8")
            (folder / nextpnr.CONSTRAINTS).write_text(nextpnr.constraints(device, harness.PORTS), encoding="utf-8")
            names.append(harness.FILE)
            top = harness.TOP
        progress(f"yosys: {family.synthesis.split()[0]}")
        run_yosys(passes(device, names, top, dsp=build.options.prefer == "dsp"), folder, order.seconds)
        core, harness_size = _sizes(folder, top, family.name, place)
        why = _reason_not_placed(device, order, core)
        routed, seed = None, order.seed
        if not why:
            versions[family.place] = tool_version(family.place)
            progress(f"{family.place}: {core.lut} {family.lut}")
            routed, seed, reports = _place(build, device, order, folder, progress)
            written |= reports
            core = _placed_size(core, harness_size, routed, family.name)
        if order.bitstream and routed is not None:
            versions[family.pack] = tool_version(family.pack)
            progress(family.pack)
            bitstream = f"{build.design.top}.{nextpnr.SUFFIX[family.pack]}"
            written[bitstream] = _pack(device, order, folder, bitstream)
        for name in (NETLIST, *((harness.FILE,) if place else ())):
            written[name] = (folder / name).read_bytes()
    synthesis = Synthesis(
        device,
        core.lut,
        core.ff,
        core.bram,
        core.dsp,
        device_estimate(build, device),
        build.timing.interval,
        routed is not None,
        routed.fmax_mhz if routed else None,
        _path_parts(build, routed),
        round(time.monotonic() - began, 1),
        versions,
        _hashes(rtl),
        {"seed": seed, "prefer": build.options.prefer, "harness": place},
        why,
    )
    return synthesis, written


def _sizes(folder: Path, top: str, family: str, harnessed: bool) -> tuple[Size, Size]:
    """Sizes of the core and of the harness, if it has one, in the netlist that Yosys wrote. Raises HG053.

    On the ECP5, registers first move into block RAMs and multipliers, and the netlist is written again.
    """
    netlist = _netlist(folder)
    module = netlist["modules"][top]
    if family == "ecp5" and output_registers.absorb(module):
        (folder / NETLIST).write_text(json.dumps(netlist), encoding="utf-8")
    total = size(netlist["modules"], top, family)
    luts, registers = harness.harness_cells(module) if harnessed else (0, 0)
    core = Size(total.lut - luts, total.ff - registers, total.bram, total.dsp)
    return core, Size(luts, registers, 0, 0)


def _reason_not_placed(device: Device, order: Order, core: Size) -> str:
    """Reason for not placing a core; empty if it is to be placed."""
    if not device.family.place:
        return "no open placer for this family"
    if not order.place:
        return "--no-place"
    counts = {"lut": core.lut, "ff": core.ff, "bram": core.bram, "dsp": core.dsp}
    return "it does not fit" if over(device, counts) else ""


def _place(
    build: Build, device: Device, order: Order, folder: Path, progress: Callable[[str], None]
) -> tuple[nextpnr.Routed, int, dict[str, bytes]]:
    """Places and routes with further seeds until the clock that the build asks for is reached.

    Returns the fastest result, its seed, and report and log. Raises HG053.
    """
    asked_mhz = build.options.clock_mhz
    best: tuple[nextpnr.Routed, int, dict[str, bytes]] | None = None
    last_seed = order.seed + (order.seeds if asked_mhz else 1) - 1
    for seed in range(order.seed, last_seed + 1):
        routed, written = _place_once(build, device, order, seed, folder)
        if best is None or (routed.fmax_mhz or 0) > (best[0].fmax_mhz or 0):
            best = routed, seed, written
        if routed.fmax_mhz is None or routed.fmax_mhz >= (asked_mhz or 0):
            break
        if seed < last_seed:
            progress(f"{device.family.place}: {routed.fmax_mhz:.1f} MHz; now seed {seed + 1}")
    assert best is not None
    if order.bitstream and best[1] != seed:
        _place_once(build, device, order, best[1], folder)
    return best


def _place_once(
    build: Build, device: Device, order: Order, seed: int, folder: Path
) -> tuple[nextpnr.Routed, dict[str, bytes]]:
    """Places and routes the netlist; returns the contents of the report, and report and log. Raises HG053."""
    program = device.family.place
    clock_mhz = build.options.clock_mhz or device.clock_mhz
    arguments = nextpnr.arguments(device, clock_mhz, seed, bitstream=order.bitstream)
    ended = run(program, arguments, folder, order.seconds)
    if ended.code:
        raise failed(program, "placement and routing failed", ended.log)
    report = (folder / nextpnr.REPORT).read_text(encoding="utf-8")
    written = {nextpnr.REPORT: report.encode(), "nextpnr.log": ended.log.encode()}
    return nextpnr.read_report(report, device.family.name), written


def _placed_size(netlist_size: Size, harness_size: Size, routed: nextpnr.Routed, family: str) -> Size:
    """The size of the core by nextpnr's counts without the harness; the netlist's counts if nextpnr has none."""
    lut, ff, bram, dsp = routed.used
    # A logic cell of an iCE40 holds a LUT or a register: each LUT or register of the harness has a cell.
    harness_luts = max(harness_size.lut, harness_size.ff) if family == "ice40" else harness_size.lut
    return Size(
        netlist_size.lut if lut is None else lut - harness_luts,
        netlist_size.ff if ff is None else ff - harness_size.ff,
        netlist_size.bram if bram is None else bram,
        netlist_size.dsp if dsp is None else dsp,
    )


def _pack(device: Device, order: Order, folder: Path, bitstream: str) -> bytes:
    """Packs the routed design into a bitstream, the file `bitstream` in `folder`. Raises HG053."""
    program = device.family.pack
    ended = run(program, nextpnr.pack_arguments(device, bitstream), folder, order.seconds)
    if ended.code or not (folder / bitstream).is_file():
        raise failed(program, "no bitstream", ended.log)
    return (folder / bitstream).read_bytes()


def _by_vendor(
    tool: ModuleType,
    build: Build,
    files: Mapping[str, bytes],
    device: Device,
    order: Order,
    progress: Callable[[str], None],
) -> tuple[Synthesis, dict[str, bytes]]:
    """As `synthesize`, by a vendor's tool: `tool` is module vivado or quartus."""
    began, rtl = time.monotonic(), _rtl(files)
    with work_folder(tool.PROGRAM) as work:
        folder = write_core(rtl, work) / "rtl"
        progress(f"{tool.PROGRAM}: {device.part}")
        use_dsp = build.options.prefer == "dsp"
        routed = tool.route(
            device,
            _verilog_names(rtl),
            build.design.top,
            _clock(build),
            device.clock_mhz,
            use_dsp,
            folder,
            order.seconds,
        )
        written = {name: (folder / name).read_bytes() for name in tool.FILES if (folder / name).is_file()}
    lut, ff, bram, dsp = (count or 0 for count in routed.used)
    synthesis = Synthesis(
        device,
        lut,
        ff,
        bram,
        dsp,
        device_estimate(build, device),
        build.timing.interval,
        True,
        routed.fmax_mhz,
        _path_parts(build, routed),
        round(time.monotonic() - began, 1),
        {tool.PROGRAM: shutil.which(tool.PROGRAM) or ""},
        _hashes(rtl),
        {"seed": order.seed, "prefer": build.options.prefer, "harness": False},
    )
    return synthesis, written


def _by_vitis(
    build: Build, files: Mapping[str, bytes], device: Device, order: Order, progress: Callable[[str], None]
) -> tuple[Synthesis, dict[str, bytes]]:
    """As `synthesize`, for a build with C++ only: estimates of Vitis HLS."""
    if device.family.vendor != "AMD":
        text = f"the build has C++ only; {device.name} is not an AMD device, and Vitis synthesizes C++ only for these."
        raise fail("HG040", "--device", text, "Build with --target verilog,hls.")
    if not vitis_hls.on_path():
        text = "the build has C++ only, and Vitis is not on PATH. This code has not been run through Vitis."
        hint = "Source settings64.sh of Vitis first, or build with --target verilog,hls."
        raise fail("HG052", vitis_hls.PROGRAM, text, hint)
    began = time.monotonic()
    cpp = {name: data for name, data in files.items() if name.startswith("hls/")}
    vectors = {name: build.files[name] for name in ("tb/input.hex", "tb/expected.hex")}
    progress(f"vitis: {device.part}")
    counts, period, report = vitis_hls.synthesize_cpp(cpp | vectors, device, device.clock_mhz, order.seconds)
    synthesis = Synthesis(
        device,
        *counts,
        device_estimate(build, device),
        build.timing.interval,
        False,
        None,
        (),
        round(time.monotonic() - began, 1),
        {"vitis": shutil.which(vitis_hls.PROGRAM) or ""},
        _hashes(cpp),
        {"seed": order.seed, "prefer": build.options.prefer, "harness": False},
        f"Vitis HLS estimates these counts, and a clock period of {period:g} ns",
    )
    return synthesis, {"csynth.xml": report}


def _rtl(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files in rtl/, by relative path."""
    return {name: data for name, data in files.items() if name.startswith("rtl/")}


def _verilog_names(rtl: Mapping[str, bytes]) -> list[str]:
    """Names of the Verilog files, without folder."""
    return sorted(Path(name).name for name in rtl if name.endswith(".v"))


def _hashes(files: Mapping[str, bytes]) -> dict[str, str]:
    """SHA-256 of each file, by relative path."""
    return {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())}


def _clock(build: Build) -> str:
    """The name of the core's clock port."""
    return str(json.loads(build.files["manifest.json"])["top"]["clock"])


def _netlist(folder: Path) -> dict[str, dict[str, dict[str, dict[str, object]]]]:
    """The netlist that Yosys wrote. Raises HG053."""
    file = folder / NETLIST
    if not file.is_file() or file.stat().st_size > MAX_NETLIST_BYTES:
        raise failed("yosys", "it wrote no netlist, or one that is too large to read", "")
    netlist: dict[str, dict[str, dict[str, dict[str, object]]]] = json.loads(file.read_bytes())
    return netlist


def _path_parts(build: Build, routed: nextpnr.Routed | None) -> tuple[PathPart, ...]:
    """The slowest path by layers and library modules of the build; empty without one."""
    layers = {node.name: node.layer for node in build.network.nodes}
    modules = {instance.name: instance.module for instance in build.design.instances}
    return tuple(
        PathPart(
            layers.get(segment.instance, ""),
            modules.get(segment.instance, ""),
            segment.instance,
            segment.delay_ns,
            segment.routing_ns,
        )
        for segment in (routed.path if routed else ())
    )
