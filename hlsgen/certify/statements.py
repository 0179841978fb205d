"""What a certificate says: what is proven of a build, and what that rests on. docs/certificate.md lists all of it."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Statement:
    """`name` never changes its meaning. `where`: nodes or entries that it is about, if not about the whole build."""

    name: str
    text: str
    where: tuple[str, ...] = ()


#: Of every build that is certified. With the file that the user trusts comes `_MODEL`.
_PROVEN = (
    Statement("files", "rtl/ and files.f hold the files that the design needs and no others, with the hashes that certificate.json lists."),
    Statement("modules", "Modules of the library are those of the installed version, byte for byte."),
    Statement("top-level", "The top level has ports, wires and instances in the form in which they are emitted, and nothing else."),
    Statement("wiring", "Every stream has one sender and one taker, and all lead from s_axis to m_axis."),
    Statement("elements", "Every unit gets the elements of its layer, and m_axis sends those of the output, in the order that the manifest says."),
    Statement("weights", "Memories and modules of adders hold the model's integer weights, and every weight meets its element."),
    Statement("reach", "No accumulator overflows, and no function gets an input that it is not proven for."),
    Statement("functions", "Every function of every quantizer gives the model's code on every reachable input."),
    Statement("numbers", "The numbers of all nodes that `read-once` does not list were read by two programs, with the same result."),
    Statement("certificate", "Every entry of certificate.json is what the model and the files give."),
    Statement("manifest", "Every entry of manifest.json is what the model and the files give, but for those that assumptions name."),
)  # fmt: skip
_MODEL = Statement("model", "model.onnx is the model that was given, byte by byte; external data is inside of it.")
#: Of every build.
_ASSUMED = (
    Statement("library", "Modules of the library compute what their heads say; rtl_tests/ shows that in two simulators."),
    Statement("tools", "Simulators and synthesis tools read Verilog-2005 and $readmemh files as the standard says, and find the memories of rtl/ by their names."),
    Statement("arithmetic", "The model's operations are evaluated right in numpy; other tests compare that with ONNX runtimes."),
    Statement("lowering", "The passes turn the steps of the model into the integer layers that they mean; `hlsgen verify` compares both."),
    Statement("reading", "The frontend reads right which node takes what, and the shapes and types at both ends."),
    Statement("input-range", "Input codes are in the range that the manifest gives for s_axis.", ("input.range",)),
    Statement("options", "These options are those that were asked for.",
              ("options.input", "options.add", "options.reset_active_low", "options.loadable", "options.top", "options.name")),
    Statement("wishes", "These options only ask for something; what became of it is in other entries.",
              ("options.target", "options.lanes", "options.target_cycles", "options.folding", "options.prefer", "options.realize",
               "options.weights", "options.max_lut", "options.max_dsp", "options.max_bram")),
    Statement("cycles", "Handshakes, cycles and depths of FIFOs are what the manifest says; `hlsgen verify` measures them.",
              ("cycles.latency", "cycles.interval", "layers[].cycles", "fifos[].critical")),
    Statement("estimates", "What the compiler says of other realizations, and the number of steps where they are not listed, is information.",
              ("layers[].tried", "layers[].realization")),
    Statement("other-files", "Other files of the build, and their hashes in the manifest, are not read; `hlsgen verify` compares them.",
              ("report.md", "folding.yaml", "tb/", "files.report.md", "files.folding.yaml", "files.tb/")),
)  # fmt: skip
_ONCE = Statement("read-once", "The frontend alone has read what these nodes say.")
_ANY_MODEL = Statement(
    "model", "model.onnx in the build is the model that was meant; `--model` proves that.", ("model.onnx",)
)
_WRITTEN = Statement(
    "written-weights", "Weights are those of the files, until others are written over s_axil.", ("weights",)
)


def proven(*, model: bool) -> list[Statement]:
    """What holds of a build without problems. `model`: it was held against a file that the user gave."""
    return [*_PROVEN, *([_MODEL] if model else [])]


def assumed(*, model: bool, loadable: bool, once: tuple[str, ...]) -> list[Statement]:
    """What that rests on. `once`: nodes that only the frontend has read."""
    return [
        *_ASSUMED,
        *([replace(_ONCE, where=once)] if once else []),
        *([] if model else [_ANY_MODEL]),
        *([_WRITTEN] if loadable else []),
    ]
