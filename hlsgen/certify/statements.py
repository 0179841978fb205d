"""The statements of a certificate: the proven facts of a build, and their assumptions. docs/certificate.md lists them
all.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Statement:
    """`name` never changes its meaning. `where`: the nodes or entries it is about, if not the entire build."""

    name: str
    text: str
    where: tuple[str, ...] = ()


#: Proven for the Verilog of a certified build.
_VERILOG = (
    Statement(
        "files",
        "rtl/ and files.f hold exactly the files of the design, with the hashes in certificate.json.",
    ),
    Statement("modules", "Library modules equal the installed version, byte for byte."),
    Statement(
        "top-level",
        "The top level holds only ports, wires and instances, in the form that hlsgen emits.",
    ),
    Statement(
        "wiring",
        "Every stream has one producer and one consumer, and all streams lead from input ports to output ports.",
    ),
    Statement(
        "elements",
        "Every unit gets the elements of its layer, and the output ports send the elements of the output, in the "
        "manifest's order.",
    ),
    Statement(
        "weights",
        "Memories, DA tables and modules of adders hold the model's integer weights, and every weight meets its "
        "element.",
    ),
    Statement("reach", "No accumulator overflows, and no function gets an input for which it is not proven."),
    Statement("functions", "Every function of every quantizer gives the model's code on every reachable input."),
    Statement("certificate", "Every entry of certificate.json follows from the model and the files."),
    Statement(
        "manifest",
        "Every entry of manifest.json follows from the model and the files, except entries that an assumption names.",
    ),
)
#: Proven for ports without handshake.
_PLAIN = Statement(
    "no-waiting",
    "No unit ever waits: every word that comes outside reset leaves after exactly `cycles.latency` cycles.",
)
#: Proven for its C++.
_CPP = (
    Statement(
        "cpp-files",
        "hls/ holds exactly the headers that the core includes, and its files have the hashes in hls/certificate.json.",
    ),
    Statement("cpp-headers", "Library headers equal the installed version, byte for byte."),
    Statement(
        "cpp-text",
        "The core holds only types, streams, processes that each call one library function, and loops of processes.",
    ),
    Statement(
        "cpp-wiring",
        "Every stream has one producer and one consumer, each process moves one frame, and all streams lead from "
        "s_axis to m_axis.",
    ),
    Statement(
        "cpp-elements",
        "Every process gets the elements of its layer, and m_axis sends the elements of the output, in the "
        "manifest's order.",
    ),
    Statement(
        "cpp-constants",
        "weights.hpp holds the model's integer weights, in C simulation and in hardware, and every weight meets its "
        "element.",
    ),
    Statement("cpp-reach", "No sum overflows its type, and no function gets an input for which it is not proven."),
    Statement("cpp-functions", "Every function of every quantizer gives the model's code on every reachable input."),
    Statement("cpp-certificate", "Every entry of hls/certificate.json follows from the model and the files."),
)
_NUMBERS = Statement(
    "numbers",
    "Two programs read the numbers of all nodes that `read-once` does not list, with the same result.",
)
#: Proven if the user gives a trusted file.
_MODEL = Statement("model", "The build's model file equals the given one, byte for byte; external data is inside it.")
#: Proven for all other files if they were compared.
_REGENERATED = Statement(
    "regenerated",
    "All other files of the build, including hls/ and manifest.json, equal what this version of hlsgen generates "
    "from the model and the options, byte for byte; the hashes of certified files in manifest.json are excepted.",
)
#: Assumed for every build.
_ASSUMED = (
    Statement(
        "arithmetic",
        "numpy evaluates the model's operations correctly; other tests compare it with ONNX runtimes.",
    ),
    Statement(
        "lowering",
        "The passes turn the steps of the model into equivalent integer layers; `hlsgen verify` compares both.",
    ),
    Statement(
        "reading",
        "The frontend correctly reads the inputs of each node, and the shapes and types of the model's inputs and "
        "outputs.",
    ),
    Statement(
        "input-range",
        "Input codes are in the manifest's range for the input, and each in the range of its element.",
        ("input.range", "input.element_ranges"),
    ),
    Statement(
        "options",
        "These options are the requested ones.",
        (
            "options.input",
            "options.source",
            "options.outputs",
            "options.add",
            "options.runtime",
            "options.softmax",
            "options.merge_layers",
            "options.state",
            "options.state_start",
            "options.recurrence",
            "options.ports",
            "options.reset_active_low",
            "options.loadable",
            "options.tkeep",
            "options.control",
            "options.bus_width",
            "options.clock_name",
            "options.reset_name",
            "options.top",
            "options.name",
        ),
    ),
    Statement(
        "wishes",
        "These options are only requests; other entries state the result.",
        (
            "options.target",
            "options.lanes",
            "options.target_cycles",
            "options.latency_cycles",
            "options.folding",
            "options.prefer",
            "options.realize",
            "options.weights",
            "options.device",
            "options.clock_mhz",
            "options.max_lut",
            "options.max_dsp",
            "options.max_bram",
        ),
    ),
    Statement(
        "estimates",
        "Sizes, kinds of units, other realizations, and numbers of steps that are not listed are only information "
        "from the compiler.",
        (
            "estimate",
            "layers[].estimate",
            "layers[].tried",
            "layers[].realization",
            "units[].unit",
            "units[].layer",
            "units[].lanes",
            "units[].lut",
            "units[].ff",
            "units[].bram",
            "units[].dsp",
        ),
    ),
)
#: Assumed for files without a proof: the first always, the second if they were not compared.
_USER_FILES = Statement(
    "user-files",
    "Files that manifest.json does not list, outside the folders of the build, are not read. The same holds for "
    "results, and for files that test benches and tools leave.",
    (
        "results/",
        "tb/sim_build/",
        "tb/__pycache__/",
        "hls/csim.exe",
        "hls/csim_ac.exe",
        "hls/csim_catapult.exe",
        "hls/work",
        "hls/logs/",
        "hls/vitis_hls.log",
        "hls/vitis-run",
        "hls/.Xil/",
    ),
)
_OTHER_FILES = Statement(
    "other-files",
    "Other files of the build, and their hashes in the manifest, are not read; `hlsgen verify` compares them.",
    (
        "report.html",
        "report.md",
        "folding.yaml",
        "tb/",
        "host/",
        "files.report.html",
        "files.report.md",
        "files.folding.yaml",
        "files.tb/",
        "files.host/",
        "host.left",
    ),
)
#: Assumed for its Verilog.
_OF_VERILOG = (
    Statement("library", "Library modules compute what their heads state; rtl_tests/ tests this in two simulators."),
    Statement(
        "tools",
        "Simulators and synthesis tools read Verilog-2005 and $readmemh files as the standard defines, and find the "
        "memories of rtl/ by their names.",
    ),
    Statement(
        "cycles",
        "Handshakes, cycles and FIFO depths are as the manifest states; `hlsgen verify` measures them. Cycles "
        "marked as estimated are not exact.",
        (
            "cycles.latency",
            "cycles.interval",
            "cycles.estimated",
            "layers[].cycles",
            "fifos[].critical",
            "units[].beats",
            "units[].cycles",
        ),
    ),
)
#: Assumed for its C++.
_OF_CPP = (
    Statement(
        "cpp-library",
        "Functions of the C++ library compute what their heads state; cpp_tests/ tests this with two sets of headers.",
    ),
    Statement(
        "cpp-tools",
        "The HLS tool gives C++14, ap_int and ap_fixed their documented meaning. Only C simulation was run, no HLS "
        "tool.",
    ),
    Statement(
        "cpp-cycles",
        "The HLS tool schedules the core: its cycles and sufficient stream depths are not proven; `hlsgen verify` "
        "runs it with these depths.",
        ("cycles", "cpp", "fifos"),
    ),
)
#: Assumed for its C++ if other files are not compared.
_CPP_OTHERS = (
    Statement(
        "cpp-manifest",
        "The C++ needs only the options of manifest.json. If there is no Verilog, the other entries are not checked.",
        ("manifest.json",),
    ),
    Statement(
        "cpp-other-files",
        "The test bench, the files for tools and the stand-ins of C simulation are not read.",
        (
            "hls/tb/",
            "hls/csim/",
            "hls/csim_ac/",
            "hls/catapult/",
            "hls/Makefile",
            "hls/hls_config.cfg",
            "hls/run_hls.tcl",
            "hls/catapult.tcl",
            "files.hls/",
        ),
    ),
)
_ONCE = Statement("read-once", "Only the frontend has read these nodes.")
_ANY_MODEL = Statement("model", "The model file of the build is the intended model; `--model` proves that.")
_WRITTEN = Statement(
    "written-weights", "Weights equal the files until other weights are written over s_axil.", ("weights",)
)


def proven(*, model: bool, targets: Collection[str], compared: bool = True, plain: bool = False) -> list[Statement]:
    """The statements that hold for a build of these targets without problems.

    model: it was compared with a file that the user gave. compared: files without a proof were compared.
    plain: the ports have no handshake.
    """
    verilog = [*_VERILOG, *([_PLAIN] if plain else [])]
    statements = [*(verilog if "verilog" in targets else []), *(_CPP if "hls" in targets else []), _NUMBERS]
    return [*statements, *([_REGENERATED] if compared else []), *([_MODEL] if model else [])]


def assumed(
    *, model: bool, loadable: bool, once: tuple[str, ...], targets: Collection[str], compared: bool = True
) -> list[Statement]:
    """The assumptions of `proven`. `once`: nodes that only the frontend has read. model, compared: as in `proven`."""
    return [
        *(_OF_VERILOG if "verilog" in targets else []),
        *(_OF_CPP if "hls" in targets else []),
        *(_CPP_OTHERS if "hls" in targets and not compared else []),
        *_ASSUMED,
        *([] if compared else [_OTHER_FILES]),
        _USER_FILES,
        *([replace(_ONCE, where=once)] if once else []),
        *([] if model else [_ANY_MODEL]),
        *([_WRITTEN] if loadable else []),
    ]
