"""Diagnostics: every problem of a model, option or build, collected and then reported at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

#: Every stable code and what it stands for. docs/diagnostics.md explains each.
CODES: dict[str, str] = {
    "HG001": "file cannot be read",
    "HG002": "not an ONNX model",
    "HG003": "external data refused",
    "HG004": "model too large",
    "HG010": "operator not supported",
    "HG011": "operator domain not supported",
    "HG012": "shape unknown",
    "HG013": "attribute missing or invalid",
    "HG014": "input missing",
    "HG015": "graph form not supported",
    "HG020": "parameter not constant",
    "HG021": "bit width not supported",
    "HG022": "scale not valid",
    "HG023": "parameter shape not supported",
    "HG024": "zero point not valid",
    "HG025": "rounding mode unknown",
    "HG026": "tensor type not supported",
    "HG027": "constant not finite",
    "HG028": "declared type differs from the computed one",
    "HG030": "float operation stuck between quantizers",
    "HG031": "weights are not quantized",
    "HG032": "input of a linear layer is not quantized",
    "HG033": "accumulator too wide",
    "HG034": "scale differs along the summed axis",
    "HG035": "data order that no buffer makes",
    "HG036": "model not quantized",
    "HG037": "step function not realizable",
    "HG040": "option not valid",
    "HG041": "folding not valid",
    "HG042": "input encoding not possible",
    "HG050": "not a build directory",
    "HG051": "build differs from what its model gives",
    "HG052": "tool not available",
    "HG053": "tool failed",
    "HG054": "input array does not fit the model",
    "HG055": "certificate does not hold",
    "HG056": "weights cannot be loaded",
    "HG057": "integers differ from the model",
    "HG058": "integers differ from the file",
    "HG059": "file not compared",
    "HG060": "file of the user in the way",
    "HG061": "input is not known",
    "HG063": "file of the user overtaken",
    "HG064": "host code differs from the interpreter",
    "HG070": "network does not fit",
    "HG075": "workers not available",
    "HG090": "assumption made",
    "HG098": "internal form not legal",
    "HG099": "internal error",
}


#: What to do about a code where its place in the program says nothing more specific.
_HINTS: dict[str, str] = {
    "HG001": "Check the path, its permissions and the space on the disk.",
    "HG004": "Make the model smaller, or cut it into parts.",
    "HG010": "docs/operators.md lists the supported operators and their conditions.",
    "HG012": "Export the model with fixed shapes.",
    "HG013": "Correct the attribute: the operator's page at onnx.ai says what it may be.",
    "HG014": "Add the input: the operator's page at onnx.ai lists them.",
    "HG020": "Make it an initializer, or compute it from constants only.",
    "HG023": "Correct the shape in the export; docs/operators.md says which ones are supported.",
    "HG027": "Every constant must be a finite number that the operator can use.",
    "HG034": "Use one scale for the whole tensor, or one for each output channel.",
    "HG037": "Choose another implementation of this quantizer: --realize.",
    "HG052": "Install the tool, or name another one.",
    "HG053": "Read the tool's log; another tool can be named.",
    "HG054": "Give numbers of the shape and type that `hlsgen report` shows for the input.",
    "HG056": "Give weights of the shape and type of the layer, as the model has them.",
}

#: Longest node name and message that are shown.
MAX_NAME, MAX_MESSAGE = 200, 4000


def printable(text: str, keep: str = "") -> str:
    """`text` with control characters, lone surrogates and the like as escapes, on one line."""
    return "".join(c if c.isprintable() or c in keep else ascii(c)[1:-1] for c in text)


def counted(number: int, noun: str) -> str:
    """A number of things: "1 word", "2 words"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."


@dataclass(frozen=True)
class Diagnostic:
    """One problem: where, what, what is supported instead, what to do.

    `node` names the ONNX node, tensor, option or file. `severity` is "error" or "warning".
    Text that comes from a file is made printable and cut to a sensible length.
    """

    code: str
    node: str
    message: str
    hint: str = ""
    severity: str = "error"

    def __post_init__(self) -> None:
        assert self.code in CODES, self.code
        if not self.hint and self.severity == "error":
            object.__setattr__(self, "hint", _HINTS.get(self.code, ""))
        object.__setattr__(self, "node", _cut(printable(self.node), MAX_NAME))
        object.__setattr__(self, "message", _cut(printable(self.message, keep="\n"), MAX_MESSAGE))
        object.__setattr__(self, "hint", _cut(printable(self.hint, keep="\n"), MAX_MESSAGE))

    def __str__(self) -> str:
        where = f" {self.node}:" if self.node else ""
        hint = f" {self.hint}" if self.hint else ""
        return f"{self.code}{where} {self.message}{hint}"

    def as_dict(self) -> dict[str, str]:
        """Plain dictionary for `--json`."""
        return {**asdict(self), "title": CODES[self.code]}


#: Names of nodes that one line lists.
_LISTED = 3


def grouped(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """The diagnostics in order; those that differ by their node alone are one, with the first names and a count."""
    nodes: dict[tuple[str, ...], list[str]] = {}
    for one in diagnostics:
        nodes.setdefault((one.code, one.message, one.hint, one.severity), []).append(one.node)
    return [
        Diagnostic(code, _listed(names), message, hint, severity)
        for (code, message, hint, severity), names in nodes.items()
    ]


def _listed(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    shown = ", ".join(_cut(name, MAX_NAME // (_LISTED + 1)) for name in names[:_LISTED])
    return f"{shown} and {len(names) - _LISTED} more" if len(names) > _LISTED else shown


class HlsgenError(Exception):
    """Raised once, with all diagnostics that were collected."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        self.diagnostics = diagnostics
        super().__init__("\n".join(map(str, grouped(diagnostics))))


def fail(code: str, node: str, message: str, hint: str = "") -> HlsgenError:
    """An error with a single diagnostic, to be raised by the caller."""
    return HlsgenError([Diagnostic(code, node, message, hint)])


def stuck(node: str, kind: str) -> Diagnostic:
    """A float operation that only the host can do, where hardware comes before and after it."""
    return Diagnostic(
        "HG030", node, f"{kind} stands between quantizers.",
        "Only the host computes it, before the first or behind the last layer of hardware: move or replace it. "
        "Arithmetic and functions of single elements can stand there (docs/operators.md).",
    )  # fmt: skip


class Collector:
    """Gathers diagnostics; `finish` raises if there was an error among them."""

    def __init__(self) -> None:
        self.items: list[Diagnostic] = []

    def error(self, code: str, node: str, message: str, hint: str = "") -> None:
        self.items.append(Diagnostic(code, node, message, hint))

    def warn(self, code: str, node: str, message: str, hint: str = "") -> None:
        self.items.append(Diagnostic(code, node, message, hint, "warning"))

    @contextmanager
    def catching(self) -> Iterator[None]:
        """Keeps the diagnostics of an `HlsgenError` raised inside, each once, and goes on."""
        try:
            yield
        except HlsgenError as error:
            for diagnostic in error.diagnostics:
                if diagnostic not in self.items:
                    self.items.append(diagnostic)

    @property
    def warnings(self) -> list[Diagnostic]:
        return [d for d in self.items if d.severity == "warning"]

    @property
    def errors(self) -> list[Diagnostic]:
        return [d for d in self.items if d.severity == "error"]

    def finish(self) -> None:
        if self.errors:
            raise HlsgenError(list(self.items))
