"""A build through the tools: its Verilog through Yosys and nextpnr, or Vivado or Quartus; its C++ through Vitis."""

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
from hlsgen.driver.compile import Build
from hlsgen.driver.summary import device_estimate
from hlsgen.simulation.child_process import failed, work_folder
from hlsgen.simulation.core_copy import write_core
from hlsgen.synthesis import harness, nextpnr, output_registers, quartus, vitis_hls, vivado
from hlsgen.synthesis.netlist import Size, size
from hlsgen.synthesis.programs import available, run, run_yosys, tool_version
from hlsgen.synthesis.result import PathPart, Synthesis, over
from hlsgen.synthesis.yosys import NETLIST, passes

#: Larger netlists are not read.
MAX_NETLIST_BYTES = 1 << 31


@dataclass(frozen=True)
class Order:
    """What is to be done: seconds that each tool may take, the seed of placement, a bitstream or not.

    place: place and route, where there is a nextpnr for the device.
    """

    seconds: float = 3600.0
    seed: int = 1
    bitstream: bool = False
    place: bool = True


def synthesize(
    build: Build, files: Mapping[str, bytes], device: Device, order: Order, progress: Callable[[str], None]
) -> tuple[Synthesis, dict[str, bytes]]:
    """What the files of a build take, by relative path; and the files that the tools wrote: netlist, report, bitstream.

    A build of C++ alone goes through Vitis. Raises HG040 if the device has no open bitstream; HG052, HG053.
    """
    began, family = time.monotonic(), device.family
    if order.bitstream and not family.pack:
        known = "ECP5, iCE40 and Gowin have."
        raise fail("HG040", "--bitstream", f"{device.name} has no open tools that make one.", f"Devices of {known}")
    if "hls" in build.designs and "verilog" not in build.designs:
        return _by_vitis(build, files, device, order, progress)
    top = build.design.top
    for tool in (vivado, quartus):
        if order.place and family.vendor == tool.VENDOR and tool.on_path():
            return _by_vendor(tool, build, files, device, order, progress)
    place = order.place and bool(family.place)
    if order.bitstream and not place:
        raise fail("HG040", "--bitstream", "needs placement and routing.", "Leave --no-place out.")
    for program in [*([family.place] if place else []), *([family.pack] if order.bitstream else [])]:
        if not available(program):
            raise fail("HG052", program, "is not installed.", "pip install 'hlsgen[synth]', or put it on PATH.")
    pins = place and (order.bitstream or not nextpnr.places_without_pins(device))
    rtl = {name: data for name, data in files.items() if name.startswith("rtl/")}
    versions = {"yosys": tool_version("yosys")} if available("yosys") else {}
    written: dict[str, bytes] = {}
    with work_folder("yosys") as work:
        folder = write_core(rtl, work) / "rtl"
        names = sorted(Path(name).name for name in rtl if name.endswith(".v"))
        if pins:
            text = harness.harness(top, rtl[f"rtl/{top}.v"].decode(), _clock(build))
            (folder / harness.FILE).write_text(text, encoding="utf-8")
            (folder / nextpnr.CONSTRAINTS).write_text(nextpnr.constraints(device, harness.PORTS), encoding="utf-8")
            names.append(harness.FILE)
            top = harness.TOP
        progress(f"yosys: {family.synthesis.split()[0]}")
        run_yosys(passes(device, names, top, dsp=build.options.prefer == "dsp"), folder, order.seconds)
        netlist = _netlist(folder)
        module = netlist["modules"][top]
        if family.name == "ecp5" and output_registers.absorb(module):
            (folder / NETLIST).write_text(json.dumps(netlist), encoding="utf-8")
        found = size(netlist["modules"], top, family.name)
        luts, registers = harness.own_cells(module) if pins else (0, 0)
        found = Size(found.lut - luts, found.ff - registers, found.bram, found.dsp)
        del netlist, module
        routed, why = None, "" if place else "no open placer for this family" if not family.place else "not asked for"
        counts = {"lut": found.lut, "ff": found.ff, "bram": found.bram, "dsp": found.dsp}
        if place and over(device, counts):
            why = "it does not fit"
        elif place:
            versions[family.place] = tool_version(family.place)
            progress(f"{family.place}: {found.lut} {family.lut}")
            arguments = nextpnr.arguments(
                device, build.options.clock_mhz or device.clock_mhz, order.seed, bitstream=order.bitstream, pins=pins
            )
            done = run(family.place, arguments, folder, order.seconds)
            if done.code:
                raise failed(family.place, "placement and routing failed", done.log)
            report = (folder / nextpnr.REPORT).read_text(encoding="utf-8")
            written[nextpnr.REPORT] = report.encode()
            written["nextpnr.log"] = done.log.encode()
            routed = nextpnr.read_report(report, family.name)
            lut, ff, bram, dsp = routed.used
            # A logic cell of an iCE40 holds a table or a register: those of the harness have a cell each.
            spent = max(luts, registers) if family.name == "ice40" else luts
            found = Size(
                found.lut if lut is None else lut - spent,
                found.ff if ff is None else ff - registers,
                found.bram if bram is None else bram,
                found.dsp if dsp is None else dsp,
            )
        if order.bitstream and routed is not None:
            versions[family.pack] = tool_version(family.pack)
            progress(family.pack)
            name = f"{build.design.top}.{nextpnr.SUFFIX[family.pack]}"
            done = run(family.pack, nextpnr.pack_arguments(device, name), folder, order.seconds)
            if done.code or not (folder / name).is_file():
                raise failed(family.pack, "no bitstream", done.log)
            written[name] = (folder / name).read_bytes()
        written[NETLIST] = (folder / NETLIST).read_bytes()
        for name in (harness.FILE,) if pins else ():
            written[name] = (folder / name).read_bytes()
    return Synthesis(
        device, found.lut, found.ff, found.bram, found.dsp, device_estimate(build, device), build.timing.interval,
        routed is not None, routed.fmax_mhz if routed else None, _named(build, routed), round(time.monotonic() - began, 1),
        versions, {name: hashlib.sha256(data).hexdigest() for name, data in sorted(rtl.items())},
        {"seed": order.seed, "prefer": build.options.prefer, "harness": pins}, why,
    ), written  # fmt: skip


def _by_vendor(
    tool: ModuleType,
    build: Build,
    files: Mapping[str, bytes],
    device: Device,
    order: Order,
    progress: Callable[[str], None],
) -> tuple[Synthesis, dict[str, bytes]]:
    """As `synthesize`, by `tool` alone: module vivado or quartus."""
    began, rtl = time.monotonic(), {name: data for name, data in files.items() if name.startswith("rtl/")}
    with work_folder(tool.PROGRAM) as work:
        folder = write_core(rtl, work) / "rtl"
        names = sorted(Path(name).name for name in rtl if name.endswith(".v"))
        progress(f"{tool.PROGRAM}: {device.part}")
        dsp = build.options.prefer == "dsp"
        routed = tool.route(
            device, names, build.design.top, _clock(build), device.clock_mhz, dsp, folder, order.seconds
        )  # fmt: skip
        written = {name: (folder / name).read_bytes() for name in tool.FILES if (folder / name).is_file()}
    lut, ff, bram, dsp_blocks = (count or 0 for count in routed.used)
    return Synthesis(
        device, lut, ff, bram, dsp_blocks, device_estimate(build, device), build.timing.interval, True, routed.fmax_mhz,
        _named(build, routed), round(time.monotonic() - began, 1), {tool.PROGRAM: shutil.which(tool.PROGRAM) or ""},
        {name: hashlib.sha256(data).hexdigest() for name, data in sorted(rtl.items())},
        {"seed": order.seed, "prefer": build.options.prefer, "harness": False},
    ), written  # fmt: skip


def _by_vitis(
    build: Build, files: Mapping[str, bytes], device: Device, order: Order, progress: Callable[[str], None]
) -> tuple[Synthesis, dict[str, bytes]]:
    """As `synthesize`, of a build of C++ alone, by Vitis HLS: its estimates."""
    if device.family.vendor != "AMD":
        text = f"the build has C++ alone; {device.name} is not of AMD, for whose devices Vitis synthesizes C++."
        raise fail("HG040", "--device", text, "Build with --target verilog,hls.")
    if not vitis_hls.on_path():
        text = (
            "the build has C++ alone, and Vitis, which would synthesize it, is not on PATH; it has not seen this code."
        )
        hint = "Source settings64.sh of Vitis first, or build with --target verilog,hls."
        raise fail("HG052", vitis_hls.PROGRAM, text, hint)
    began = time.monotonic()
    cpp = {name: data for name, data in files.items() if name.startswith("hls/")}
    vectors = {name: build.files[name] for name in ("tb/input.hex", "tb/expected.hex")}
    progress(f"vitis: {device.part}")
    counts, period, report = vitis_hls.synthesize_cpp(cpp | vectors, device, device.clock_mhz, order.seconds)
    return Synthesis(
        device, *counts, device_estimate(build, device), build.timing.interval, False, None, (),
        round(time.monotonic() - began, 1), {"vitis": shutil.which(vitis_hls.PROGRAM) or ""},
        {name: hashlib.sha256(data).hexdigest() for name, data in sorted(cpp.items())},
        {"seed": order.seed, "prefer": build.options.prefer, "harness": False},
        f"Vitis HLS estimates all of it, and a period of {period:g} ns",
    ), {"csynth.xml": report}  # fmt: skip


def _clock(build: Build) -> str:
    """The name of the clock port."""
    return str(json.loads(build.files["manifest.json"])["top"]["clock"])


def _netlist(folder: Path) -> dict[str, dict[str, dict[str, dict[str, object]]]]:
    """The netlist that Yosys wrote. Raises HG053."""
    file = folder / NETLIST
    if not file.is_file() or file.stat().st_size > MAX_NETLIST_BYTES:
        raise failed("yosys", "no netlist that can be read", "")
    found: dict[str, dict[str, dict[str, dict[str, object]]]] = json.loads(file.read_bytes())
    return found


def _named(build: Build, routed: nextpnr.Routed | None) -> tuple[PathPart, ...]:
    """The slowest path by layers and modules of the build."""
    layers = {node.name: node.layer for node in build.network.nodes}
    modules = {instance.name: instance.module for instance in build.design.instances}
    return tuple(
        PathPart(layers.get(s.instance, ""), modules.get(s.instance, ""), s.instance, s.delay_ns, s.routing_ns)
        for s in (routed.path if routed else ())
    )
