"""The project files of each flow, rendered from templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from hlsgen.devices import Device, devices
from hlsgen.diagnostics import counted, fail
from hlsgen.driver.compile import Build
from hlsgen.frontend.runtimes import ALIR, TFLITE
from hlsgen.host.text import plain
from hlsgen.installation import pinned_repository
from hlsgen.library import render
from hlsgen.packaging.core import Core
from hlsgen.packaging.dma import channels_of, dma_files, dma_values
from hlsgen.packaging.litex import litex_files
from hlsgen.packaging.ports import vhdl_name
from hlsgen.packaging.soc import soc_files
from hlsgen.packaging.vectors import bench_vectors
from hlsgen.packaging.vitis import vitis_files
from hlsgen.synthesis import harness, nextpnr, output_registers, programs, yosys

#: Default devices by vendor; "": of the open tools.
DEFAULTS = {"AMD": "xc7z020", "Intel": "cyclonev-5csema5", "": "ecp5-25k"}
#: Prefix of the parts that the block design supports.
ZYNQ = "xc7z"
#: Flows whose files name a device, with the vendor of the device; "": any vendor.
VENDORS = {"vivado": "AMD", "pynq": "AMD", "quartus": "Intel", "yosys": "", "vitis": "AMD"}


def _file(path: str) -> str:
    return PurePosixPath(path).name


def _engines(core: Core) -> list[str]:
    """Names of the DMA engines of a block design. Each serves at most one input and one output."""
    count = max(len(core.inputs), len(core.outputs))
    return ["dma"] if count == 1 else [f"dma_{number}" for number in range(count)]


def _rendered(core: Core, **templates: str) -> dict[str, bytes]:
    """Path in the package -> rendered template; `NAME` in a path becomes the name of the core."""
    values: dict[str, Any] = {
        "core": core,
        "name": core.name,
        "plain": plain,
        "vhdl": vhdl_name,
        "file": _file,
        "engines": _engines(core),
        "dma_width": lambda bits: 1 << max(bits - 1, 7).bit_length(),
        "host_text": core.build.files[f"host/{core.name}.py"].decode(),
        "dma_sources": [path for path in dma_files(core) if path.endswith(".v")] if core.has_dma else [],
        **(dma_values(core, channels_of(core)) if core.has_dma else {"channels": ()}),
    }
    return {
        path.replace("NAME", core.name): render(f"project/{template}", **values).encode()
        for template, path in templates.items()
    }


def common_files(core: Core) -> dict[str, bytes]:
    """Files of every package: sources, memories, host code and instantiation templates."""
    files = {path: core.build.files[path] for path in (*core.sources, *core.memories)}
    files |= {path: data for path, data in core.build.files.items() if path.startswith("host/")}
    return files | _from(core, "instance.v.j2", "NAME_instance.v") | _from(core, "instance.vhd.j2", "NAME_instance.vhd")


def _from(core: Core, template: str, path: str) -> dict[str, bytes]:
    return _rendered(core, **{template: path})


def _bench(core: Core) -> dict[str, bytes]:
    vectors, timing = bench_vectors(core.build.network), core.build.timing
    words = sum(port.layout.words for port in (*core.inputs, *core.outputs))
    values = {
        "core": core,
        "name": core.name,
        "vectors": vectors,
        "inputs": core.inputs,
        "outputs": core.outputs,
        "frames": counted(vectors.frames, "frame"),
        "limit": 1000 + 20 * (timing.latency + vectors.frames * (timing.interval + words)),
    }
    texts = {
        f"tb/{core.name}_tb.sv": render("project/bench.sv.j2", **values),
        f"tb/{core.name}_tb.cpp": render("project/bench.cpp.j2", **values),
        **{f"tb/{core.name}_{name}": text for name, text in vectors.files.items()},
    }
    return {path: text.encode() for path, text in texts.items()}


def _fusesoc(core: Core) -> dict[str, bytes]:
    """Files for FuseSoC, whose targets for two vendors have one device each."""
    amd, intel = cores_of("fusesoc", core)
    values = {"core": core, "name": core.name, "plain": plain, "amd": amd.device, "intel": intel.device}
    return {
        f"{core.name}.core": render("project/core.yaml.j2", file=_file, **values).encode(),
        **_from(amd, "core.xdc.j2", "NAME.xdc"),
        **_from(intel, "core.sdc.j2", "NAME.sdc"),
        **_bench(core),
    }


def cores_of(kind: str, core: Core) -> tuple[Core, ...]:
    """The core for each device that the files of a flow name: none, one, or one of each vendor for FuseSoC."""
    if kind == "fusesoc":
        fits = (core.device.family.vendor == vendor for vendor in ("AMD", "Intel"))
        vendor_devices = (devices()[DEFAULTS[vendor]] for vendor in ("AMD", "Intel"))
        return tuple(
            core if fits_vendor else replace(core, device=device)
            for fits_vendor, device in zip(fits, vendor_devices, strict=True)
        )
    return (core,) if kind in VENDORS else ()


def _verilator(core: Core) -> dict[str, bytes]:
    return _bench(core) | _from(core, "bench.mk.j2", "tb/Makefile")


def _vivado(core: Core) -> dict[str, bytes]:
    return (
        _from(core, "package_ip.tcl.j2", "package_ip.tcl")
        | _from(core, "out_of_context.tcl.j2", "out_of_context.tcl")
        | _from(core, "core.xdc.j2", "NAME.xdc")
    )


def _quartus(core: Core) -> dict[str, bytes]:
    return _from(core, "core.qip.j2", "NAME.qip") | _from(core, "core.sdc.j2", "NAME.sdc")


def _pynq(core: Core) -> dict[str, bytes]:
    if not core.device.part.startswith(ZYNQ):
        text = f"the block design is for Zynq-7000; {core.device.name} is {core.device.part}."
        raise fail("HG040", "--for pynq", text, "Give --device xc7z020, or use --for vivado and your own block design.")
    for port in () if core.has_dma else core.streams:
        bits = core.width(f"{port}_tdata")
        if bits & (bits - 1):
            text = f"{port}_tdata has {bits} bits; a DMA engine needs a power of two."
            raise fail("HG040", "--for pynq", text, "Build with --bus-width 32, or another power of two.")
    return (
        _vivado(core)
        | _from(core, "block_design.tcl.j2", "block_design.tcl")
        | _from(core, "pynq_dma.py.j2" if core.has_dma else "pynq.py.j2", "host/NAME_pynq.py")
    )


def _ci(core: Core) -> dict[str, bytes]:
    runtime = core.build.model.runtime
    runtimes = ["tflite"] if runtime in TFLITE else [] if runtime == ALIR else ["oracle"]
    needs_headers = "hls" in core.build.options.target or runtime == ALIR
    extras = ",".join(["sim", *runtimes, *(["csim"] if needs_headers else [])])
    pinned = pinned_repository(extras)
    requirement = pinned or f"./wheels/hlsgen-{core.version}-py3-none-any.whl[{extras}]"
    text = render("project/verify.yml.j2", core=core, name=core.name, pinned=pinned, requirement=requirement)
    return {f".github/workflows/{core.name}.yml": text.encode()}


def _yosys(core: Core) -> dict[str, bytes]:
    text = core.build.files[f"rtl/{core.name}.v"].decode()
    device = core.device
    pins = nextpnr.constraints(device, harness.PORTS)
    names = [PurePosixPath(path).name for path in core.sources]
    script = yosys.passes(device, [*names, harness.FILE], harness.TOP, dsp=core.build.options.prefer == "dsp")
    command = nextpnr.arguments(device, core.clock_mhz, 1, bitstream=bool(device.family.pack))
    values = {
        "core": core,
        "name": core.name,
        "device": device,
        "netlist": yosys.NETLIST,
        "routed": nextpnr.ROUTED,
        "place": " ".join(command),
        "pack": " ".join(nextpnr.pack_arguments(device, f"{core.name}.$(SUFFIX)")) if device.family.pack else "",
        "suffix": nextpnr.SUFFIX.get(device.family.pack, ""),
        "harness": harness.FILE,
        "names": programs.names,
        "registers": output_registers.FILE if device.family.name == "ecp5" else "",
        "top": harness.TOP,
    }
    files = {
        "Makefile": render("project/Makefile.j2", **values).encode(),
        "synth.ys": ("\n".join(script) + "\n").encode(),
        harness.FILE: harness.harness(core.name, harness.ports_of(core.name, text), core.clock).encode(),
    }
    if values["registers"]:
        files[output_registers.FILE] = output_registers.source()
    return files | ({nextpnr.CONSTRAINTS: pins.encode()} if pins else {})


#: Flows of packages, and the files that each adds to `common_files`.
KINDS: Mapping[str, Callable[[Core], dict[str, bytes]]] = {
    "fusesoc": _fusesoc,
    "vivado": _vivado,
    "quartus": _quartus,
    "yosys": _yosys,
    "verilator": _verilator,
    "pynq": _pynq,
    "dma": dma_files,
    "soc": soc_files,
    "litex": litex_files,
    "vitis": vitis_files,
    "ci": _ci,
}


#: Flows for cores without handshake: the others move frames over streams.
PLAIN_KINDS = ("vivado", "quartus", "yosys", "ci")


def device_for(kind: str, build: Build, named: Device | None) -> Device:
    """The device of a flow: --device, else the device of the build, else the default of the vendor. Raises HG040."""
    vendor = VENDORS.get(kind, "")
    device = named or build.options.chosen_device
    if device is None:
        return devices()[DEFAULTS[vendor]]
    if vendor and device.family.vendor != vendor:
        whose = "--device names" if named else "the build is for"
        text = f"needs a device of {vendor}, but {whose} {device.name}, of {device.family.vendor}."
        fits = (candidate for candidate in devices().values() if candidate.family.vendor == vendor)
        names = ", ".join(candidate.name for candidate in fits if kind != "pynq" or candidate.part.startswith(ZYNQ))
        clock_note = "" if named else "; its clock is used unless --clock-mhz is given"
        raise fail("HG040", f"--for {kind}", text, f"Give --device with one of {names}{clock_note}.")
    return device
