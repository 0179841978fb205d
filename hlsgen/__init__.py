"""hlsgen: quantized ONNX models to fixed-point hardware that equals the model's integers.

The verbs of the command line, as functions:

    from hlsgen import build, certify, check, run, verify
    build("model.onnx", "out")
    y = run("out", x, backend="verilator")
    assert verify("out").ok
    assert certify("out").ok

All raise `HlsgenError` with every problem found.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from os import PathLike
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from hlsgen.diagnostics import Diagnostic, HlsgenError, fail

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from hlsgen.certify import Certified
    from hlsgen.driver.compile import Build
    from hlsgen.driver.options import Options
    from hlsgen.driver.results import Report
    from hlsgen.driver.schedule import Progress
    from hlsgen.explore.points import Point
    from hlsgen.ir import Graph
    from hlsgen.numerics.fixed import Array
    from hlsgen.quantization import Quantized, QuantizeOptions
    from hlsgen.simulation.verdict import Verdict
    from hlsgen.synthesis.result import Synthesis

__all__ = [
    "Build",
    "Certified",
    "Diagnostic",
    "HlsgenError",
    "Options",
    "Point",
    "QuantizeOptions",
    "Report",
    "Verdict",
    "build",
    "certify",
    "check",
    "explore",
    "layers",
    "pack",
    "package",
    "quantize",
    "report",
    "run",
    "synth",
    "unpack",
    "verify",
]
#: Where the classes are. Modules are imported when they are needed, as `hlsgen --help` does not wait for numpy.
_CLASSES = {
    "Build": "hlsgen.driver.compile",
    "Certified": "hlsgen.certify",
    "Options": "hlsgen.driver.options",
    "Point": "hlsgen.explore.points",
    "QuantizeOptions": "hlsgen.quantization",
    "Report": "hlsgen.driver.results",
    "Verdict": "hlsgen.simulation.verdict",
}


class _Face(ModuleType):
    """This module. `certify` in it is the function, also when the package of that name is imported."""

    def __setattr__(self, name: str, value: object) -> None:
        if name not in __all__ or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("hlsgen.library").tool_version()
    if name not in _CLASSES:
        raise AttributeError(f"module 'hlsgen' has no attribute {name!r}")
    return getattr(import_module(_CLASSES[name]), name)


@dataclass(frozen=True, eq=False)
class LayerCodes:
    """Codes int64 (frames, *shape) behind a layer, their real values, and how many differ from the reference."""

    name: str
    codes: Array
    values: Array
    differing: int


def check(model: str | PathLike[str], options: Options | None = None, progress: Progress | None = None) -> Build:
    """Compiles without writing anything."""
    from hlsgen.driver.compile import compile_model
    from hlsgen.driver.options import Options

    return compile_model(Path(model), options or Options(), progress)


def build(
    model: str | PathLike[str], output: str | PathLike[str], options: Options | None = None,
    progress: Progress | None = None,
) -> Build:  # fmt: skip
    """Compiles `model` and writes the build directory `output`; files in it that no build has written stay.

    `warnings` of the result name what the user changed while it was written (HG063).
    """
    from hlsgen.driver.build_directory import check_output, write_build
    from hlsgen.driver.compile import compile_model
    from hlsgen.driver.options import Options

    directory = Path(output)
    check_output(directory)
    result = compile_model(Path(model), options or Options(), progress)
    return replace(result, warnings=[*result.warnings, *write_build(result, directory)])


def quantize(
    model: str | PathLike[str],
    sample: Array | Mapping[str, Array],
    output: str | PathLike[str],
    options: QuantizeOptions | None = None,
) -> Quantized:
    """Writes `output`, an ONNX file with QuantizeLinear and DequantizeLinear, made from a float model by onnxruntime.

    A dynamically quantized model gets constant scales instead. sample: inputs of the model, frames along the first axis; by
    name where there are several. The result compares the outputs of both models on the sample. Raises HG001 to HG004, HG010,
    HG040, HG052, HG054.
    """
    from hlsgen.file_writing import replaced_file
    from hlsgen.quantization import QuantizeOptions, quantize_model

    result = quantize_model(Path(model), sample, options or QuantizeOptions())
    with replaced_file(Path(output)) as stream:
        stream.write(result.model.SerializeToString())
    return result


def run(
    directory: str | PathLike[str], x: Array | Mapping[str, Array], backend: str = "reference", *,
    allow_changed: bool = False, round_input: bool = False,
) -> Any:  # fmt: skip
    """Model inputs (the model's shape, or a batch of them) -> model outputs, through a backend.

    Of models with several inputs `x` is a mapping from their names; of those with several outputs, so is the result.

    backend: "reference"; "verilator" or "icarus" for Verilog; "cpp" or "cpp-ap" for C++, with the integers of ac_types or
    ap_types. x: numbers; y: the model's output dtype.
    allow_changed: files that differ from what the model gives (HG051) are simulated all the same. They are programs:
    only if you trust whoever changed them.
    round_input: values that lie between two codes of a fixed-point input are rounded to the nearest; else HG054.
    """
    from hlsgen.interpreter import graph as reference
    from hlsgen.simulation.run import run_hardware
    from hlsgen.simulation.simulators import BACKENDS

    found, codes = _opened(directory, x, backend, round_input)
    if backend == "reference":
        outputs = reference.run_output(found.graph, codes)
    else:
        outputs = run_hardware(found, Path(directory), codes, BACKENDS[backend], allow_changed=allow_changed)
    return _outputs(found.graph, outputs)


def layers(
    directory: str | PathLike[str], x: Array | Mapping[str, Array], backend: str = "reference", *,
    allow_changed: bool = False, round_input: bool = False,
) -> list[LayerCodes]:  # fmt: skip
    """What is behind every layer, by the reference and by a backend; arguments as of `run`."""
    from hlsgen.interpreter import graph as reference
    from hlsgen.ir import View
    from hlsgen.ir.evaluate import decode
    from hlsgen.simulation.run import run_layers
    from hlsgen.simulation.simulators import BACKENDS

    found, codes = _opened(directory, x, backend, round_input)
    wanted = reference.run_layers(found.graph, codes)
    got: list[Array | None] = list(wanted)
    if backend != "reference":
        got = run_layers(found, Path(directory), codes, BACKENDS[backend], allow_changed=allow_changed)
    return [
        LayerCodes(layer.name, own, decode(layer.result.encoding, own), int((own != right).sum()))
        for layer, own, right in zip(found.graph.layers, got, wanted, strict=True)
        if own is not None and not isinstance(layer, View)
    ]


def pack(
    directory: str | PathLike[str], x: Array | Mapping[str, Array], *, round_input: bool = False
) -> bytes | dict[str, bytes]:  # fmt: skip
    """Model inputs (as of `run`) -> the bytes that a processor sends to the core's input port, frame after frame.

    Of a core with several input ports by the names of the ports. The same as `host/NAME.py` of the build gives. Raises HG054.
    """
    from hlsgen.testbench.sample_vectors import port_words

    found, codes = _opened(directory, x, "reference", round_input)
    sent = {port.name: port_words(port, codes).tobytes() for port in found.network.inputs}
    return sent if len(sent) > 1 else next(iter(sent.values()))


def unpack(directory: str | PathLike[str], data: bytes | Mapping[str, bytes], *, codes: bool = False) -> Any:
    """Bytes of whole frames from the core's output port -> model outputs (as of `run`); `codes`: int64 (frames, *shape).

    Of a core with several output ports by the names of the ports, as many frames of each. Raises HG054.
    """
    import numpy as np

    from hlsgen.driver.build_directory import reopen
    from hlsgen.testbench.sample_vectors import output_codes

    network = reopen(Path(directory)).network
    name, ports = network.graph.model.output_name, network.outputs
    given = data if isinstance(data, Mapping) else {ports[0].name: data}
    if set(given) != {port.name for port in ports}:
        raise fail("HG054", name, f"bytes of {', '.join(given)}.", f"Ports: {', '.join(port.name for port in ports)}.")
    frames = len(given[ports[0].name]) // ports[0].layout.frame_bytes
    for port in ports:
        size, each = len(given[port.name]), port.layout.frame_bytes
        if not size or size % each:
            raise fail("HG054", name, f"{size} bytes are no whole frames of {each}.")
        if size != frames * each:
            text = f"{size // each} frames of {port.name}, {frames} of {ports[0].name}."
            raise fail("HG054", name, text, "Give as many of each.")
    got = output_codes(network, [np.frombuffer(given[port.name], np.uint8) for port in ports])
    return _outputs(network.graph, got, codes)


def package(
    directory: str | PathLike[str], output: str | PathLike[str], kinds: Sequence[str], *, device: str | None = None,
    clock_mhz: float | None = None, progress: Progress | None = None,
) -> tuple[list[str], list[Diagnostic]]:  # fmt: skip
    """Writes a folder with the sources of a build and project files for flows: its files, and warnings.

    kinds: "fusesoc", "vivado", "quartus", "yosys", "verilator", "pynq", "ci". device: of files that name one. clock_mhz: of
    constraints; without it that of the device. Raises HG040, HG050, HG051, HG060.
    """
    from hlsgen.packaging.package import package_directory

    files, notes = package_directory(Path(directory), Path(output), list(kinds), device, clock_mhz, progress)
    return sorted(files), notes


def _outputs(graph: Graph, got: Array, codes: bool = False) -> Any:
    """The model's output of its codes, or the codes; by name where there are several."""
    from hlsgen.interpreter import graph as reference

    if codes:
        return reference.named_codes(graph, got) if graph.outputs else got
    return (reference.named_outputs if graph.model.outputs else reference.decode_output)(graph, got)


def _opened(
    directory: str | PathLike[str], x: Array | Mapping[str, Array], backend: str, round_input: bool
) -> tuple[Build, Array]:
    """The build, and the codes of its input."""
    from hlsgen.driver.build_directory import reopen
    from hlsgen.interpreter import graph as reference
    from hlsgen.simulation.simulators import BACKENDS

    if backend not in BACKENDS:
        raise fail("HG040", "--backend", f"{backend!r}.", f"Supported: {', '.join(BACKENDS)}.")
    found = reopen(Path(directory))
    arrays = x if isinstance(x, Mapping) else {found.graph.model.input_name: x}
    return found, reference.encode_input(found.graph, reference.packed(found.graph, arrays), round_input)


def verify(
    directory: str | PathLike[str], simulators: list[str] | None = None, frames: int | None = None, seed: int = 1,
    progress: Callable[[str], None] = lambda text: None, *, allow_changed: bool = False,
    cut: str | PathLike[str] | None = None, oracle: str = "auto", cosim: bool = False,
    found: Callable[[str, object], None] = lambda name, part: None, budget: float | None = None,
    waves: str | PathLike[str] | None = None,
) -> Verdict:  # fmt: skip
    """Holds a build against its model: its integers, every file, and the hardware in simulation.

    simulators: "verilator", "icarus" for Verilog, "ap_types", "ac_types" for C++; None: all of what the build has.

    Files that differ end it before the simulation, unless `allow_changed` (as of `run`). cut: a new folder that takes
    the first layer of Verilog that differs, with a test of its own.

    oracle: the executor that the ONNX file itself runs in: "qonnx", "onnxruntime", "onnx", "none", or "auto", which
    takes the one that fits the file if it is installed. cosim: the C++ is synthesized by Vitis, which must be on PATH,
    and what comes out is simulated with the build's test bench.

    found: told each part of the verdict as soon as it is there: "model", "oracle", "changed", and the names of simulators.
    budget: seconds for all of it: fewer frames; what does not end in time is no proof, and `ok` is false.
    waves: a file .vcd or .fst that takes the waves of the simulator, which must be one of Verilog and the only one.
    """
    from hlsgen.driver.build_directory import reopen
    from hlsgen.simulation.simulators import CPP, SIMULATORS, VERILOG, simulators_of
    from hlsgen.simulation.verify import Request, verify_build
    from hlsgen.simulation.verify_verilog import prepare_weights

    for name in simulators or ():
        if name not in SIMULATORS:
            raise fail("HG040", "--sim", f"{name!r}.", f"Supported: {', '.join(SIMULATORS)}, all.")
    opened = reopen(Path(directory))
    chosen = simulators_of(opened) if simulators is None else simulators
    request = Request(
        simulators=chosen,
        frames=frames,
        seed=seed,
        oracle=oracle,
        allow_changed=allow_changed,
        cut=None if cut is None else Path(cut),
        cosim=cosim,
        budget=budget,
        waves=None if waves is None else Path(waves),
    )
    return verify_build(
        opened.model,
        opened.network,
        opened.timing,
        opened.files,
        Path(directory),
        request,
        design=opened.design if set(chosen) & set(VERILOG) else None,
        cpp=opened.cpp if cosim or set(chosen) & set(CPP) else None,
        prepare_weights=partial(prepare_weights, opened),
        progress=progress,
        report=found,
    )


def certify(directory: str | PathLike[str], model: str | PathLike[str] | None = None) -> Certified:
    """Proves, without simulation, that the files of a build compute what its model does.

    All files of which nothing is proven are compared with what the model and the options give.
    model: the file that the build must have been made from; without it, that in the build is taken for the right one.
    """
    from hlsgen.certify import certify as prove
    from hlsgen.driver.build_directory import refuse_special_files
    from hlsgen.driver.regenerated import regenerated_differences

    folder = Path(directory)
    refuse_special_files(folder)
    return prove(folder, None if model is None else Path(model), partial(regenerated_differences, folder))


def synth(
    directory: str | PathLike[str], device: str, *, bitstream: bool = False, seed: int = 1, timeout: float = 3600.0,
    output: str | PathLike[str] | None = None, place: bool = True, progress: Callable[[str], None] = lambda text: None,
) -> Synthesis:  # fmt: skip
    """Synthesizes the Verilog of a build for a device, and places and routes it where open tools can.

    Saves results/synth-DEVICE.json in `directory`; a folder `output` takes netlist, report, log and bitstream too.
    timeout: seconds for each tool. The result says whether the device has what the network takes (`fits`).
    """
    from hlsgen.synthesis.run import synth_directory
    from hlsgen.synthesis.synthesize import Order

    order = Order(timeout, seed, bitstream, place)
    return synth_directory(Path(directory), device, order, None if output is None else Path(output), progress)


def explore(
    model: str | PathLike[str], executor: Executor | None = None, *, options: Options | None = None,
    device: str | None = None, clock_mhz: float | None = None, points: int = 24, synth: bool = False,
    timeout: float = 3600.0, output: str | PathLike[str] | None = None, jobs: int | None = None,
    cluster: str | None = None, progress: Progress = lambda done, total, text: None,
) -> list[Point]:  # fmt: skip
    """Many networks of a model: foldings, kinds of weight memories, and DSP or not. Nothing is built.

    Gives all points, the fastest first; `front` of a point says that no other one is as fast and takes no more. On a
    `device` that is the largest share of it, of which a point of the front takes at most 80 %. Counts are estimates,
    and so are rates: at `clock_mhz`, by default that of the device, or 200.

    options: what all networks have in common; what is tried must be as by default. points: at most so many networks, each
    a point for every kind of weight memory. synth: synthesizes the front, each tool in at most `timeout` seconds.
    output: a folder for points.jsonl, a line for each result as it comes, from which a later call goes on; and front.svg.
    executor: does the work; its pieces are functions and data that can be pickled. Else `jobs` processes, 1: none but this
    one, None: as many as there are processors; or the workers of a scheduler of dask.distributed at `cluster`. Scripts that
    start processes need `if __name__ == "__main__":`.
    """
    from hlsgen.driver.options import Options
    from hlsgen.explore.running import Order, place_of, run

    folder = None if output is None else Path(output)
    order = Order(place_of(device, clock_mhz), points, synth, folder, timeout, jobs, cluster)
    return run(Path(model), options or Options(), order, executor, progress).points


def report(directory: str | PathLike[str]) -> Report:
    """The report of a build directory as HTML, with the results of `verify` and `synth` in its folder results/.

    Of results about other files than those of this build it names the files, and no more. Raises HG050.
    """
    from hlsgen.driver.results import report_of

    return report_of(Path(directory))


sys.modules[__name__].__class__ = _Face
