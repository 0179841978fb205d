"""Reads the top level as bytes: lines of code in plain ASCII, and emitted comments at the places where they are
emitted.

Tools interpret other text differently: carriage returns, comments that are commands, directives, attributes. All of
these are rejected. The statements in comments are compared with the design.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from hlsgen.certify.netlist_reader import broken
from hlsgen.library import LICENCE

_BEGIN, _END = "`default_nettype none", "`default_nettype wire"
#: An attribute on a line of its own, and the port that follows.
_ATTRIBUTE = re.compile(r'    \(\* (X_INTERFACE_[A-Z]+ = "[A-Za-z0-9_ :.,]*") \*\)')
_PORT = re.compile(r"    (?:input |output) wire (?:\[\d+:0\] )?(\w+),?", re.ASCII)
_CODE = re.compile(r"[A-Za-z0-9_ \[\](){},;:.#'\"-]*")
#: The comment of an instance. It cannot be a command of a tool, because of its first word.
_LAYER_COMMENT = re.compile(r"[A-Za-z0-9 ,.+*/^()-]+")
_ROUTING_COMMENT = re.compile(
    r"(\d+|border|fork|float32|max|register|reorders|selects|slice|starts|sum|windows|FIFO) ?[A-Za-z0-9 ,.]*"
)
#: How a sequence of frames starts, in the head.
_START_LINES = {
    "tuser": "{port}_tuser at the first word of a frame: it starts a sequence, as the first frame after reset does",
    "register": "bit 1 of CONTROL: the next frame starts a sequence, as the first frame after reset does",
    "reset": "the first frame after reset starts the sequence",
}


@dataclass(frozen=True)
class TopText:
    """The text of a top level in parts. Each comment precedes an instance, in their order.

    `head`: the lines before the first directive. `code`: the remaining lines, without comments and attributes.
    `attributes`: (attribute, the port that follows), in their order.
    """

    name: str
    head: tuple[str, ...]
    code: str
    comments: tuple[str, ...]
    attributes: tuple[tuple[str, str], ...] = ()


def split(data: bytes, name: str) -> TopText:
    """Split a file. Raises HG055 at the first line that hlsgen never emits."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise broken(name, f"byte {error.start} is not UTF-8 text.") from None
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
        elif attribute := _ATTRIBUTE.fullmatch(line):
            attributes.append((attribute[1], _port_after(lines, number)))
        elif not _CODE.fullmatch(line):
            raise broken(name, f"line {number} has more than wires and instances: {line[:60]!r}.")
        code.append("" if comment or attribute else line)
    return TopText(name, tuple(lines[:start]), "\n".join(code), tuple(comments), tuple(attributes))


def _port_after(lines: Sequence[str], number: int) -> str:
    """The port that the lines from `number` on declare, after other attributes; "" if there is none."""
    line = next((line for line in lines[number:] if not _ATTRIBUTE.fullmatch(line)), "")
    port = _PORT.fullmatch(line)
    return port[1] if port else ""


def check_attributes(text: TopText, ports: Iterable[tuple[str, tuple[str, ...]]]) -> None:
    """Check that each port has the attributes of its name and use, and that there are no others. Raises HG055.

    ports: (name, attributes), in the order of the file.
    """
    expected = [(attribute, name) for name, port_attributes in ports for attribute in port_attributes]
    for actual, expected_pair in zip_longest(text.attributes, expected, fillvalue=("", "")):
        if actual != expected_pair:
            raise broken(
                text.name,
                f"has attribute {actual[0][:90]!r} where {expected_pair[0][:90]!r} of {expected_pair[1]!r} belongs.",
            )


def _comment(line: str, start: str) -> bool:
    """True if every tool sees only a comment in this line: no control characters, no line continuation."""
    return line.startswith(start) and line.isprintable() and "\\" not in line


def check_comments(text: TopText, head: Sequence[str], instances: Sequence[str], layers: Mapping[str, str]) -> set[str]:
    """Check that the head fits the design, and that every instance has its comment. Raises HG055.

    Returns the instances whose comment names the layer: these compute; others only pass elements on.

    instances: between the ports, in the order of the file. layers: the certificate's layer of each instance.
    """
    for number, (actual, expected) in enumerate(zip([*text.head, ""], [*head, ""], strict=False), 1):
        if actual != expected:
            raise broken(text.name, f"line {number} is {actual[:90]!r}, expected is {expected[:90]!r}.")
    if len(text.head) != len(head) or len(instances) != len(text.comments):
        raise broken(text.name, "has other comments than a head and one for each instance.")
    computing = set()
    for instance, comment in zip(instances, text.comments, strict=True):
        prefix = f"layer {layers[instance]}: "
        names_layer = comment.startswith(prefix)
        if not (_LAYER_COMMENT if names_layer else _ROUTING_COMMENT).fullmatch(
            comment[len(prefix) :] if names_layer else comment
        ):
            raise broken(text.name, f"the comment on {instance} has a form that hlsgen never emits: {comment[:90]!r}.")
        if names_layer:
            computing.add(instance)
    return computing


def head_of(
    title: str,
    ends: tuple[list[str], list[str]],
    bus: list[str],
    loads: int,
    cycles: Mapping[str, object],
    starts: tuple[str, str],
    *,
    plain: bool = False,
) -> list[str]:
    """The lines before the module. `ends`: the contents of the input ports and of the output ports.

    `bus`: a text for the bus of each port, if there is one; `loads`: number of units with writable weights; `cycles`:
    the manifest's cycles. `starts`: how a sequence of frames starts, and the name of the port for it. `plain`:
    the ports have no handshake.
    """
    approximately, or_more = ("about ", " or more") if cycles.get("estimated") else ("", "")
    timing = [
        f"// Timing  {approximately}{cycles['latency']} cycles from the first input beat to the last output beat of "
        f"a frame,",
        f"//         a frame every {cycles['interval']} cycles{or_more}",
    ]
    if plain:
        ending = "s" if cycles["latency"] != 1 else ""
        timing = [
            "// Ports   without handshake: a frame in each cycle with in_valid; in reset and a cycle later it is lost",
            f"// Timing  out_valid and out_data follow in_valid and in_data after exactly {cycles['latency']} "
            f"cycle{ending}, for every frame",
        ]
    return [
        f"// {LICENCE}",
        f"// Core of model {title}",
        "//",
        *(f"// Input   {text}, first element in the low bits" for text in ends[0]),
        *(f"// Output  {text}, first element in the low bits" for text in ends[1]),
        *(f"// Bus     {text}" for text in bus),
        *([f"// Start   {_START_LINES[starts[0]].format(port=starts[1])}"] if starts[0] else []),
        *(
            [
                f"// Weights of {loads} units, written over s_axil while no frame is in the core: see weights in "
                f"manifest.json"
            ]
            if loads
            else []
        ),
        *timing,
        "// Memory files are read with $readmemh by their bare names.",
    ]
