"""Reads the top level as bytes: lines of code in plain ASCII, and the comments that are emitted, where they are emitted.

Tools do not agree on what else may mean: carriage returns, comments that are commands, directives, attributes. None
of these is accepted. The statements in comments are held against the design.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from hlsgen.certify.netlist_reader import broken

_BEGIN, _END = "`default_nettype none", "`default_nettype wire"
#: An attribute in a line of its own, and the port that follows.
_ATTRIBUTE = re.compile(r'    \(\* (X_INTERFACE_[A-Z]+ = "[A-Za-z0-9_ :.,]*") \*\)')
_PORT = re.compile(r"    (?:input |output) wire (?:\[\d+:0\] )?(\w+),?", re.ASCII)
_CODE = re.compile(r"[A-Za-z0-9_ \[\](){},;:.#'\"-]*")
#: What a comment says of an instance: no word of a tool, as the first one is one of these or a number.
_ABOUT = re.compile(r"[A-Za-z0-9 ,.+*/^()-]+")
_PLUMBING = re.compile(
    r"(\d+|border|fork|float32|max|register|reorders|selects|slice|sum|windows|FIFO) ?[A-Za-z0-9 ,.]*"
)


@dataclass(frozen=True)
class TopText:
    """The text of a top level in parts. Each comment stands in front of an instance, in their order.

    `head`: the lines in front of the first directive. `code`: the rest, with comments and attributes taken out of it.
    `attributes`: (attribute, the port that it stands in front of), in their order.
    """

    name: str
    head: tuple[str, ...]
    code: str
    comments: tuple[str, ...]
    attributes: tuple[tuple[str, str], ...] = ()


def split(data: bytes, name: str) -> TopText:
    """Takes a file apart. Raises HG055 at the first line that is not of a form that is emitted."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise broken(name, f"byte {error.start} is no text.") from None
    lines = text.split("\n")
    if lines[-2:] != [_END, ""] or _BEGIN not in lines:
        raise broken(name, f"does not begin with {_BEGIN} and end with {_END}, in lines of their own.")
    start = lines.index(_BEGIN)
    for number, line in enumerate(lines[:start], 1):
        if not _comment(line, "//"):
            raise broken(name, f"line {number} is no plain comment: {line[:60]!r}.")
    code, comments, attributes = [""] * (start + 1), [], []
    for number, line in enumerate(lines[start + 1 : -2], start + 2):
        comment = _comment(line, "    // ")
        if comment and re.match(r"    \w+ (#|\w+ )\(", lines[number]):
            comments.append(line[7:])
        elif found := _ATTRIBUTE.fullmatch(line):
            attributes.append((found[1], _port_after(lines, number)))
        elif not _CODE.fullmatch(line):
            raise broken(name, f"line {number} has more than wires and instances: {line[:60]!r}.")
        code.append("" if comment or found else line)
    return TopText(name, tuple(lines[:start]), "\n".join(code), tuple(comments), tuple(attributes))


def _port_after(lines: Sequence[str], number: int) -> str:
    """The port that the lines from `number` on declare, behind more attributes; "" if they do not."""
    line = next((line for line in lines[number:] if not _ATTRIBUTE.fullmatch(line)), "")
    found = _PORT.fullmatch(line)
    return found[1] if found else ""


def check_attributes(text: TopText, ports: Iterable[tuple[str, tuple[str, ...]]]) -> None:
    """Each port has the attributes that its name and use give, and nothing else has any. Raises HG055 otherwise.

    ports: (name, attributes), in the order of the file.
    """
    wanted = [(attribute, name) for name, own in ports for attribute in own]
    for found, right in zip_longest(text.attributes, wanted, fillvalue=("", "")):
        if found != right:
            raise broken(text.name, f"has attribute {found[0][:90]!r} where {right[0][:90]!r} of {right[1]!r} belongs.")


def _comment(line: str, start: str) -> bool:
    """True if a line is a comment and nothing else to any tool: no control characters, no line that goes on."""
    return line.startswith(start) and line.isprintable() and "\\" not in line


def check_comments(text: TopText, head: Sequence[str], instances: Sequence[str], layers: Mapping[str, str]) -> set[str]:
    """The head is the one that the design gives, and every instance has its comment. Raises HG055 otherwise.

    Gives the instances whose comment names the layer: those that compute, not those that only pass elements on.

    instances: between the ports, in the order of the file. layers: the layer that the certificate lists each at.
    """
    for number, (found, wanted) in enumerate(zip([*text.head, ""], [*head, ""], strict=False), 1):
        if found != wanted:
            raise broken(text.name, f"line {number} is {found[:90]!r}, the design gives {wanted[:90]!r}.")
    if len(text.head) != len(head) or len(instances) != len(text.comments):
        raise broken(text.name, "has other comments than a head and one for each instance.")
    named = set()
    for instance, comment in zip(instances, text.comments, strict=True):
        prefix = f"layer {layers[instance]}: "
        own = comment.startswith(prefix)
        if not (_ABOUT if own else _PLUMBING).fullmatch(comment[len(prefix) :] if own else comment):
            raise broken(text.name, f"the comment on {instance} is of no form that is emitted: {comment[:90]!r}.")
        if own:
            named.add(instance)
    return named


def head_of(
    title: str, ends: tuple[list[str], list[str]], bus: list[str], loads: int, cycles: Mapping[str, object]
) -> list[str]:
    """The lines in front of the module. `ends`: what the input ports and the output ports carry; `bus`: what is said of the
    bus of each, nothing without one; `loads`: units with weights to be written; `cycles`: what the manifest says of them."""
    about, least = ("about ", " or more") if cycles.get("estimated") else ("", "")
    return [
        f"// Core of model {title}",
        "//",
        *(f"// Input   {text}, first element in the low bits" for text in ends[0]),
        *(f"// Output  {text}, first element in the low bits" for text in ends[1]),
        *(f"// Bus     {text}" for text in bus),
        *(
            [
                f"// Weights of {loads} units, written over s_axil while no frame is in the core: see weights in manifest.json"
            ]
            if loads
            else []
        ),
        f"// Timing  {about}{cycles['latency']} cycles from the first input beat to the last output beat of a frame,",
        f"//         a frame every {cycles['interval']} cycles{least}",
        "// Memory files are read with $readmemh by their bare names.",
    ]
