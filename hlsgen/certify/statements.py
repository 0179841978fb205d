"""What a certificate says: what is proven of a build, and what that rests on. docs/certificate.md lists all of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Statement:
    """`name` never changes its meaning. `where`: nodes or entries that it is about, if not about the whole build."""

    name: str
    text: str
    where: tuple[str, ...] = ()


#: Of the Verilog of a build that is certified.
_VERILOG = (
    Statement(
        "files",
        "rtl/ and files.f hold the files that the design needs and no others, with the hashes that certificate.json lists.",
    ),
    Statement("modules", "Modules of the library are those of the installed version, byte for byte."),
    Statement(
        "top-level",
        "The top level has ports, wires and instances in the form in which they are emitted, and nothing else.",
    ),
    Statement("wiring", "Every stream has one sender and one taker, and all lead from s_axis to m_axis."),
    Statement(
        "elements",
        "Every unit gets the elements of its layer, and m_axis sends those of the output, in the order that the manifest says.",
    ),
    Statement(
        "weights",
        "Memories, tables of sums and modules of adders hold the model's integer weights, and every weight meets its element.",
    ),
    Statement("reach", "No accumulator overflows, and no function gets an input that it is not proven for."),
    Statement("functions", "Every function of every quantizer gives the model's code on every reachable input."),
    Statement("certificate", "Every entry of certificate.json is what the model and the files give."),
    Statement(
        "manifest",
        "Every entry of manifest.json is what the model and the files give, but for those that assumptions name.",
    ),
)
#: Of its C++.
_CPP = (
    Statement(
        "cpp-files",
        "hls/ holds the headers that the core includes and no others, and the hashes of hls/certificate.json.",
    ),
    Statement("cpp-headers", "Headers of the library are those of the installed version, byte for byte."),
    Statement(
        "cpp-text",
        "The core has types, streams, processes that each call one function of the library, loops of such, and nothing else.",
    ),
    Statement(
        "cpp-wiring",
        "Every stream has one sender and one taker, each process moves a frame, and all lead from s_axis to m_axis.",
    ),
    Statement(
        "cpp-elements",
        "Every process gets the elements of its layer, and m_axis sends those of the output, in the order that the manifest says.",
    ),
    Statement(
        "cpp-constants",
        "weights.hpp holds the model's integer weights, in C simulation and in hardware, and every weight meets its element.",
    ),
    Statement("cpp-reach", "No sum overflows its type, and no function gets an input that it is not proven for."),
    Statement("cpp-functions", "Every function of every quantizer gives the model's code on every reachable input."),
    Statement("cpp-certificate", "Every entry of hls/certificate.json is what the model and the files give."),
)
_NUMBERS = Statement(
    "numbers",
    "The numbers of all nodes that `read-once` does not list were read by two programs, with the same result.",
)
#: With the file that the user trusts.
_MODEL = Statement("model", "model.onnx is the model that was given, byte by byte; external data is inside of it.")
#: Of all that nothing is proven of, where it was compared.
_REGENERATED = Statement(
    "regenerated",
    "All other files of the build, those of hls/ too, and manifest.json but for the hashes of certified files, are what this version of hlsgen makes of the model and the options, byte for byte.",
)
#: Of every build.
_ASSUMED = (
    Statement(
        "arithmetic",
        "The model's operations are evaluated right in numpy; other tests compare that with ONNX runtimes.",
    ),
    Statement(
        "lowering",
        "The passes turn the steps of the model into the integer layers that they mean; `hlsgen verify` compares both.",
    ),
    Statement("reading", "The frontend reads right which node takes what, and the shapes and types at both ends."),
    Statement("input-range", "Input codes are in the range that the manifest gives for s_axis.", ("input.range",)),
    Statement(
        "options",
        "These options are those that were asked for.",
        (
            "options.input",
            "options.outputs",
            "options.add",
            "options.runtime",
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
        "These options only ask for something; what became of it is in other entries.",
        (
            "options.target",
            "options.lanes",
            "options.target_cycles",
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
        "What the compiler says of sizes, of kinds of units and of other realizations, and the number of steps where they are not listed, is information.",
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
            "units[].bram18",
            "units[].dsp",
        ),
    ),
)
#: Of files that nothing is proven of: where they were compared, and where they were not.
_USER_FILES = Statement(
    "user-files",
    "What manifest.json does not list, outside of the folders of the build, is no part of it and is not read; so are results, and what running test benches and tools leaves.",
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
#: Of its Verilog, behind those.
_OF_VERILOG = (
    Statement(
        "library", "Modules of the library compute what their heads say; rtl_tests/ shows that in two simulators."
    ),
    Statement(
        "tools",
        "Simulators and synthesis tools read Verilog-2005 and $readmemh files as the standard says, and find the memories of rtl/ by their names.",
    ),
    Statement(
        "cycles",
        "Handshakes, cycles and depths of FIFOs are what the manifest says; `hlsgen verify` measures them. Cycles that it calls estimated nobody has predicted.",
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
#: Of its C++.
_OF_CPP = (
    Statement(
        "cpp-library",
        "Functions of the C++ library compute what their heads say; cpp_tests/ shows that with two sets of headers.",
    ),
    Statement(
        "cpp-tools",
        "The HLS tool gives C++14, ap_int and ap_fixed their documented meaning; C simulation shows it, no HLS tool was run.",
    ),
    Statement(
        "cpp-cycles",
        "The HLS tool schedules the core: its cycles, and that depths of streams suffice, are not proven; `hlsgen verify` runs it with these depths.",
        ("cycles", "fifos"),
    ),
)
#: Of its C++, where other files are not compared.
_CPP_OTHERS = (
    Statement(
        "cpp-manifest",
        "Of manifest.json the C++ needs only the options; without Verilog, nothing else of it is held.",
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
_ONCE = Statement("read-once", "The frontend alone has read what these nodes say.")
_ANY_MODEL = Statement(
    "model", "model.onnx in the build is the model that was meant; `--model` proves that.", ("model.onnx",)
)
_WRITTEN = Statement(
    "written-weights", "Weights are those of the files, until others are written over s_axil.", ("weights",)
)


def proven(*, model: bool, targets: Collection[str], compared: bool = True) -> list[Statement]:
    """What holds of a build of these targets without problems.

    model: it was compared with a file that the user gave. compared: so were files that nothing is proven of.
    """
    found = [*(_VERILOG if "verilog" in targets else []), *(_CPP if "hls" in targets else []), _NUMBERS]
    return [*found, *([_REGENERATED] if compared else []), *([_MODEL] if model else [])]


def assumed(
    *, model: bool, loadable: bool, once: tuple[str, ...], targets: Collection[str], compared: bool = True
) -> list[Statement]:
    """What that rests on. `once`: nodes that only the frontend has read. model, compared: as of `proven`."""
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
