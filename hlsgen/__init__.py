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

import os
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
#: Modules of the classes, imported when needed, so that `hlsgen --help` does not wait for numpy.
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
    """This module. Its `certify` stays the function when the package of that name is imported."""

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
    """Output of a layer: codes int64 (frames, *shape), real values, number of codes that differ from the reference."""

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
    model: str | PathLike[str],
    output: str | PathLike[str],
    options: Options | None = None,
    progress: Progress | None = None,
) -> Build:
    """Compiles `model` and writes the build directory `output`; other files in it stay.

    `warnings` of the result name files that the user changed while they were replaced (HG063).
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

    A dynamically quantized model gets constant scales instead. sample: inputs of the model, frames along the first
    axis; by name where there are several. The result compares the outputs of both models on the sample. Raises HG001 to
    HG004, HG010, HG040, HG052, HG054.
    """
    from hlsgen.file_writing import replaced_file
    from hlsgen.quantization import QuantizeOptions, quantize_model

    if os.path.realpath(model) == os.path.realpath(output):
        raise fail("HG040", "--output", "the same file as the model.", "Name another file.")
    result = quantize_model(Path(model), sample, options or QuantizeOptions())
    with replaced_file(Path(output)) as stream:
        stream.write(result.model.SerializeToString())
    return result


def run(
    directory: str | PathLike[str],
    x: Array | Mapping[str, Array],
    backend: str = "reference",
    *,
    allow_changed: bool = False,
    round_input: bool = False,
    starts: Sequence[int] | None = None,
) -> Any:
    """Runs inputs of the model (of its shape, or a batch of them) through a backend; returns outputs of the model.

    x: numbers, or a mapping by name for several inputs. The result has the model's output dtype, and is a mapping by
    name for several outputs. backend: "reference"; "verilator" or "icarus" for Verilog; "cpp" or "cpp-ap" for C++ with
    the integers of ac_types or ap_types. allow_changed: simulates files that differ from the build (HG051). They are
    programs: do this only if you trust their author. round_input: rounds values between two codes of a fixed-point
    input to the nearest code; else they raise HG054. starts: for a build with states, numbers of the samples that
    start a sequence; the first one always does.
    """
    import numpy as np

    from hlsgen.interpreter import graph as reference
    from hlsgen.interpreter.frame_states import without_states
    from hlsgen.simulation.run import run_hardware
    from hlsgen.simulation.simulators import BACKENDS

    opened, codes, flags = _opened(directory, x, backend, round_input, starts)
    if backend == "reference":
        outputs = without_states(reference.run_output(opened.graph, codes), opened.graph.host_graph.output.shape)
    else:
        outputs = np.concatenate(
            [
                run_hardware(opened, Path(directory), part, BACKENDS[backend], allow_changed=allow_changed)
                for part in np.split(codes, np.flatnonzero(flags)[1:])
            ]
        )
    return _outputs(opened.graph.host_graph, outputs)


def layers(
    directory: str | PathLike[str],
    x: Array | Mapping[str, Array],
    backend: str = "reference",
    *,
    allow_changed: bool = False,
    round_input: bool = False,
    starts: Sequence[int] | None = None,
) -> list[LayerCodes]:
    """Outputs of all layers in a backend, compared with the reference. Arguments: see `run`."""
    import numpy as np

    from hlsgen.interpreter import graph as reference
    from hlsgen.ir import View
    from hlsgen.ir.evaluate import decode
    from hlsgen.simulation.run import run_layers
    from hlsgen.simulation.simulators import BACKENDS

    opened, codes, flags = _opened(directory, x, backend, round_input, starts)
    expected = reference.run_layers(opened.graph, codes)
    actual: list[Array | None] = list(expected)
    if backend != "reference":
        parts = [
            run_layers(opened, Path(directory), part, BACKENDS[backend], allow_changed=allow_changed)
            for part in np.split(codes, np.flatnonzero(flags)[1:])
        ]
        actual = [None if pieces[0] is None else np.concatenate(pieces) for pieces in zip(*parts, strict=True)]
    return [
        LayerCodes(
            layer.name,
            actual_codes,
            decode(layer.result.encoding, actual_codes),
            int((actual_codes != expected_codes).sum()),
        )
        for layer, actual_codes, expected_codes in zip(opened.graph.layers, actual, expected, strict=True)
        if actual_codes is not None and not isinstance(layer, View)
    ]


def pack(
    directory: str | PathLike[str], x: Array | Mapping[str, Array], *, round_input: bool = False
) -> bytes | dict[str, bytes]:
    """Converts model inputs (see `run`) to the bytes that a processor sends to the core, frame after frame.

    Returns a mapping by port for several input ports. `host/NAME.py` of the build gives the same bytes. Raises HG054.
    """
    from hlsgen.testbench.sample_vectors import port_words

    opened, codes, _ = _opened(directory, x, "reference", round_input)
    words = {port.name: port_words(port, codes).tobytes() for port in opened.network.inputs}
    return words if len(words) > 1 else next(iter(words.values()))


def unpack(directory: str | PathLike[str], data: bytes | Mapping[str, bytes], *, codes: bool = False) -> Any:
    """Converts whole frames of bytes from the core to model outputs (see `run`), or to codes int64 (frames, *shape).

    data: a mapping by port for several output ports, with the same number of frames each. Raises HG054.
    """
    import numpy as np

    from hlsgen.driver.build_directory import reopen
    from hlsgen.testbench.sample_vectors import output_codes

    network = reopen(Path(directory)).network
    graph = network.graph.host_graph
    name, ports = graph.model.output_name, network.outputs
    bytes_by_port = data if isinstance(data, Mapping) else {ports[0].name: data}
    if set(bytes_by_port) != {port.name for port in ports}:
        raise fail(
            "HG054", name, f"bytes of {', '.join(bytes_by_port)}.", f"Ports: {', '.join(port.name for port in ports)}."
        )
    frames = len(bytes_by_port[ports[0].name]) // ports[0].layout.frame_bytes
    for port in ports:
        size, each = len(bytes_by_port[port.name]), port.layout.frame_bytes
        if not size or size % each:
            raise fail("HG054", name, f"{size} bytes are not a whole number of frames of {each} bytes.")
        if size != frames * each:
            text = f"{size // each} frames of {port.name}, {frames} of {ports[0].name}."
            raise fail("HG054", name, text, "Give the same number of frames for each port.")
    codes_by_port = output_codes(network, [np.frombuffer(bytes_by_port[port.name], np.uint8) for port in ports])
    return _outputs(graph, codes_by_port, codes)


def package(
    directory: str | PathLike[str],
    output: str | PathLike[str],
    kinds: Sequence[str],
    *,
    device: str | None = None,
    clock_mhz: float | None = None,
    progress: Progress | None = None,
) -> tuple[list[str], list[Diagnostic]]:
    """Writes a folder with the sources of a build and project files for flows; returns its files, and warnings.

    kinds: "fusesoc", "vivado", "quartus", "yosys", "verilator", "pynq", "dma", "soc", "litex", "ci". device: for files
    that name a device. clock_mhz: for constraints; default: the clock of the device. Raises HG040, HG050, HG051, HG060.
    """
    from hlsgen.packaging.package import package_directory

    files, notes = package_directory(Path(directory), Path(output), list(kinds), device, clock_mhz, progress)
    return sorted(files), notes


def _outputs(graph: Graph, output_codes: Array, codes: bool = False) -> Any:
    """The model's output for its codes, or the codes themselves; by name for several outputs."""
    from hlsgen.interpreter import graph as reference

    if codes:
        return reference.named_codes(graph, output_codes) if graph.outputs else output_codes
    return (reference.named_outputs if graph.model.outputs else reference.decode_output)(graph, output_codes)


def _opened(
    directory: str | PathLike[str],
    x: Array | Mapping[str, Array],
    backend: str,
    round_input: bool,
    starts: Sequence[int] | None = None,
) -> tuple[Build, Array, Array]:
    """Opens a build, and encodes its input; returns it, the codes, and for each frame whether it starts a sequence.

    In a build without states only the first one does.
    """
    from hlsgen.driver.build_directory import reopen
    from hlsgen.interpreter import graph as reference
    from hlsgen.interpreter.frame_sequence import in_sequence, with_variables
    from hlsgen.interpreter.frame_states import as_sequence, starts_of
    from hlsgen.simulation.simulators import BACKENDS

    if backend not in BACKENDS:
        raise fail("HG040", "--backend", f"{backend!r}.", f"Supported: {', '.join(BACKENDS)}.")
    opened = reopen(Path(directory))
    graph = opened.graph.host_graph
    if starts is not None and graph is opened.graph:
        raise fail("HG054", "starts", "the build has no state between frames.", "Leave it out.")
    arrays, sequence = with_variables(graph, x)
    codes = reference.encode_input(graph, reference.pack_inputs(graph, arrays), round_input)
    flags = starts_of(starts, len(codes))
    codes = as_sequence(opened.graph, codes, flags)
    return opened, in_sequence(graph, codes) if sequence else codes, flags


def verify(
    directory: str | PathLike[str],
    simulators: list[str] | None = None,
    frames: int | None = None,
    seed: int = 1,
    progress: Callable[[str], None] = lambda text: None,
    *,
    allow_changed: bool = False,
    cut: str | PathLike[str] | None = None,
    oracle: str = "auto",
    cosim: bool = False,
    on_part: Callable[[str, object], None] = lambda name, part: None,
    budget: float | None = None,
    waves: str | PathLike[str] | None = None,
) -> Verdict:
    """Compares a build with its model, its file in a runtime, and its hardware in simulation.

    simulators: "verilator", "icarus" for Verilog, "ap_types", "ac_types" for C++; None: all that the build has files
    for. Changed files end the comparison before the simulation, unless `allow_changed` (see `run`). cut: a new folder
    for the first Verilog layer that differs, with its own test.

    oracle: runtime for the file: "qonnx", "onnxruntime", "onnxruntime-arm", "onnx", "none", or "auto", the runtime
    of the build. cosim: Vitis, which must be on PATH, synthesizes the C++; the result is simulated with the build's
    testbench.

    on_part: called with each part of the verdict when it is complete: "model", "oracle", "host", "changed", and the
    names of simulators. budget: seconds for everything: fewer frames run, and `ok` is false if a part does not end in
    time. waves: a waveform file, .vcd or .fst, of the single Verilog simulator.
    """
    from hlsgen.driver.build_directory import reopen
    from hlsgen.simulation.simulators import CPP, SIMULATORS, VERILOG, simulators_of
    from hlsgen.simulation.verify import VerifyRequest, verify_build
    from hlsgen.simulation.verify_verilog import prepare_weights

    for name in simulators or ():
        if name not in SIMULATORS:
            raise fail("HG040", "--sim", f"{name!r}.", f"Supported: {', '.join(SIMULATORS)}, all.")
    opened = reopen(Path(directory))
    chosen = simulators_of(opened) if simulators is None else simulators
    request = VerifyRequest(
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
        report=on_part,
    )


def certify(directory: str | PathLike[str], model: str | PathLike[str] | None = None) -> Certified:
    """Proves, without simulation, that the files of a build compute the integers of its model.

    Files that are not proven are compared with a new build of the model. model: the file that the build must have been
    made from; default: the model in the build.
    """
    from hlsgen.certify import certify as prove
    from hlsgen.driver.build_directory import refuse_special_files
    from hlsgen.driver.regenerated import regenerated_differences

    folder = Path(directory)
    refuse_special_files(folder)
    return prove(folder, None if model is None else Path(model), partial(regenerated_differences, folder))


def synth(
    directory: str | PathLike[str],
    device: str,
    *,
    bitstream: bool = False,
    seed: int = 1,
    seeds: int = 3,
    timeout: float = 3600.0,
    output: str | PathLike[str] | None = None,
    place: bool = True,
    progress: Callable[[str], None] = lambda text: None,
) -> Synthesis:
    """Synthesizes the Verilog of a build for a device, and places and routes it if open tools can.

    Saves results/synth-DEVICE.json in `directory`. output: a folder for netlist, report, log and bitstream. timeout:
    seconds for each tool. At most `seeds` placements, from `seed` on, are tried until the build's `clock_mhz` is
    reached. `fits` of the result is true if the device has enough resources.
    """
    from hlsgen.synthesis.run import synth_directory
    from hlsgen.synthesis.synthesize import Order

    order = Order(timeout, seed, bitstream, place, seeds)
    return synth_directory(Path(directory), device, order, None if output is None else Path(output), progress)


def explore(
    model: str | PathLike[str],
    executor: Executor | None = None,
    *,
    options: Options | None = None,
    device: str | None = None,
    clock_mhz: float | None = None,
    points: int = 24,
    synth: bool = False,
    timeout: float = 3600.0,
    output: str | PathLike[str] | None = None,
    jobs: int | None = None,
    cluster: str | None = None,
    progress: Progress = lambda completed, total, text: None,
) -> list[Point]:
    """Plans many networks of a model: foldings, kinds of weight memories, with and without DSP blocks. Writes no build.

    Returns all points, the fastest first. `front` marks points of the Pareto front: no other point is as fast with
    fewer resources. For a `device`, resources are the largest share of it, at most 80 % for the front. Resources are
    estimates; rates are for `clock_mhz`, by default the clock of the device, else 200.

    options: common options of all networks; explored options must keep their defaults. points: largest number of
    networks, each a point for every kind of weight memory. synth: synthesizes the front, each tool in at most `timeout`
    seconds. output: a folder for front.svg and points.jsonl, with one line for each result; a later call continues from
    it. executor: runs the work, whose functions and data can be pickled. Else `jobs` processes (1: only this one, None:
    one for each processor), or the workers of a dask.distributed scheduler at `cluster`. Scripts that start processes
    need `if __name__ == "__main__":`.
    """
    from hlsgen.driver.options import Options
    from hlsgen.explore.running import Order, place_of, run

    folder = None if output is None else Path(output)
    order = Order(place_of(device, clock_mhz), points, synth, folder, timeout, jobs, cluster)
    return run(Path(model), options or Options(), order, executor, progress).points


def report(directory: str | PathLike[str]) -> Report:
    """The report of a build directory as HTML, with the results of `verify` and `synth` in its folder results/.

    Results of other builds are only listed by name. Raises HG050.
    """
    from hlsgen.driver.results import report_of

    return report_of(Path(directory))


sys.modules[__name__].__class__ = _Face
