"""Rewrites a core's C++ so that its processes run concurrently, between streams of the depths that it requests.

g++ would call the processes in sequence: streams would then hold whole frames, and a depth would never be too small.
"""

from __future__ import annotations

import re

#: Depth of a stream without a pragma: the default of HLS tools.
DEFAULT_DEPTH = 2
_STREAM = re.compile(r" {4}hls::stream<(?P<type>.*)> (?P<name>\w+)\(\"\w+\"\);")
_PRAGMA = re.compile(r"#pragma HLS STREAM variable=(?P<name>\w+) depth=(?P<depth>\d+)")
#: Begins the body of a region that may have no stream of its own.
_REGION = "#pragma HLS DATAFLOW"
_CALL = re.compile(r" {4}(?P<call>\w+(<.*>)?\(.*\));")


def with_processes(text: str) -> str:
    """C++ in which each dataflow region of calls starts its calls as processes and waits for all of them.

    A stream without a depth in its type or a pragma gets DEFAULT_DEPTH.
    """
    lines: list[str] = []
    function: list[str] = []
    for line in text.split("\n"):
        function.append(line)
        if line == "}":
            lines += _function(function)
            function = []
    return "\n".join([*lines, *function])


def _function(lines: list[str]) -> list[str]:
    """The lines of a function and the lines before it, rewritten; the same lines if it is no such region."""
    first_stream = next((n for n, line in enumerate(lines) if _STREAM.fullmatch(line) or line == _REGION), None)
    start = next((n for n in reversed(range(first_stream or 0)) if lines[n].endswith(") {")), None)
    if start is None:
        return lines
    rewritten = [*lines[: start + 1], "    hg::native::Region region;"]
    for line in lines[start + 1 : -1]:
        if stream := _STREAM.fullmatch(line):
            rewritten += [
                line,
                *([] if _has_depth(stream["type"]) else [f"    {stream['name']}.bound({DEFAULT_DEPTH});"]),
            ]
        elif pragma := _PRAGMA.fullmatch(line):
            rewritten.append(f"    {pragma['name']}.bound({pragma['depth']});")
        elif call := _CALL.fullmatch(line):
            rewritten.append(f"    region.add([&] {{ {call['call']}; }});")
        else:
            rewritten.append(line)
    return [*rewritten, "    region.run();", lines[-1]]


def _has_depth(arguments: str) -> bool:
    """True if a stream's type has a depth: a comma outside all brackets."""
    level = 0
    for letter in arguments:
        level += (letter in "<(") - (letter in ">)")
        if letter == "," and level == 0:
            return True
    return False
