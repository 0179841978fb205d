"""Diagnostics: all problems of a model, its options or a build are collected, then reported together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

#: Every stable code and its title. docs/diagnostics.md explains each.
CODES: dict[str, str] = {
    "HG001": "file cannot be read",
    "HG002": "not a model file",
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
    "HG030": "float operation between quantizers",
    "HG031": "weights are not quantized",
    "HG032": "input of a linear layer is not quantized",
    "HG033": "accumulator too wide",
    "HG034": "scale differs along the summed axis",
    "HG035": "data order not supported",
    "HG036": "model not quantized",
    "HG037": "quantizer not implementable",
    "HG040": "option not valid",
    "HG041": "folding not valid",
    "HG042": "input encoding not possible",
    "HG043": "state not possible",
    "HG044": "ports without handshake not possible",
    "HG050": "not a build directory",
    "HG051": "build differs from its model",
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
    "HG063": "file of the user replaced",
    "HG064": "host code differs from the interpreter",
    "HG070": "network does not fit",
    "HG075": "workers not available",
    "HG090": "assumption made",
    "HG098": "internal form not legal",
    "HG099": "internal error",
}


#: Default hints of codes, used if the place that raises them gives none.
_HINTS: dict[str, str] = {
    "HG001": "Check the path, its permissions and the space on the disk.",
    "HG004": "Make the model smaller, or cut it into parts.",
    "HG010": "docs/operators.md lists the supported operators and their conditions.",
    "HG012": "Export the model with fixed shapes.",
    "HG013": "Correct the attribute: the operator's page at onnx.ai lists its values.",
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
    """`text` on one line, with control characters and lone surrogates as escapes."""
    return "".join(c if c.isprintable() or c in keep else ascii(c)[1:-1] for c in text)


def counted(number: int, noun: str) -> str:
    """A number with its noun: "1 word", "2 words"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."


@dataclass(frozen=True)
class Diagnostic:
    """One problem: its place, the problem itself, and a hint with supported values and a way out.

    node: ONNX node, tensor, option or file. severity: "error" or "warning". Text from files is made printable and
    shortened.
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
        place = f" {self.node}:" if self.node else ""
        hint = f" {self.hint}" if self.hint else ""
        return f"{self.code}{place} {self.message}{hint}"

    def as_dict(self) -> dict[str, str]:
        """Plain dictionary for `--json`."""
        return {**asdict(self), "title": CODES[self.code]}


#: Names of nodes that one line lists.
_LISTED = 3


def grouped(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Merges diagnostics that differ only in their node: one remains, with the first names and a count."""
    nodes: dict[tuple[str, ...], list[str]] = {}
    for diagnostic in diagnostics:
        nodes.setdefault((diagnostic.code, diagnostic.message, diagnostic.hint, diagnostic.severity), []).append(
            diagnostic.node
        )
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
    """Raised once, with all collected diagnostics."""

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        self.diagnostics = diagnostics
        super().__init__("\n".join(map(str, grouped(diagnostics))))


def fail(code: str, node: str, message: str, hint: str = "") -> HlsgenError:
    """An error with a single diagnostic, to be raised by the caller."""
    return HlsgenError([Diagnostic(code, node, message, hint)])


def stuck(node: str, kind: str) -> Diagnostic:
    """HG030 for a float operation that only the host supports, between layers of hardware."""
    return Diagnostic(
        "HG030",
        node,
        f"{kind} is between quantizers.",
        "Only the host computes it, before the first or after the last layer of hardware: move or replace it. "
        "Arithmetic and functions of single elements are supported there (docs/operators.md).",
    )


class Collector:
    """Collects diagnostics; `finish` raises them if one is an error."""

    def __init__(self) -> None:
        self.items: list[Diagnostic] = []

    def error(self, code: str, node: str, message: str, hint: str = "") -> None:
        self.items.append(Diagnostic(code, node, message, hint))

    def warn(self, code: str, node: str, message: str, hint: str = "") -> None:
        self.items.append(Diagnostic(code, node, message, hint, "warning"))

    @contextmanager
    def catching(self) -> Iterator[None]:
        """Collects the diagnostics of an `HlsgenError` raised inside, without duplicates, and continues."""
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
