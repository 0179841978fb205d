"""Rewrites a core's C++ so that its processes run beside each other, between streams of the depths that it asks for.

Called one after the other, as g++ would do it, processes need streams of whole frames, and no depth is too small.
"""

from __future__ import annotations

import re

#: Values that a stream holds for which no pragma asks: what HLS tools take.
DEFAULT_DEPTH = 2
_STREAM = re.compile(r" {4}hls::stream<(?P<type>.*)> (?P<name>\w+)\(\"\w+\"\);")
_PRAGMA = re.compile(r"#pragma HLS STREAM variable=(?P<name>\w+) depth=(?P<depth>\d+)")
_CALL = re.compile(r" {4}(?P<call>\w+(<.*>)?\(.*\));")


def with_processes(text: str) -> str:
    """C++ in which every function that has streams of its own starts its calls as processes, and waits for all.

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
    """A function, with what is in front of it; the same if it has no streams."""
    first = next((n for n, line in enumerate(lines) if _STREAM.fullmatch(line)), None)
    start = next((n for n in reversed(range(first or 0)) if lines[n].endswith(") {")), None)
    if start is None:
        return lines
    found = [*lines[: start + 1], "    hg::native::Region region;"]
    for line in lines[start + 1 : -1]:
        if stream := _STREAM.fullmatch(line):
            found += [line, *([] if _has_depth(stream["type"]) else [f"    {stream['name']}.bound({DEFAULT_DEPTH});"])]
        elif pragma := _PRAGMA.fullmatch(line):
            found.append(f"    {pragma['name']}.bound({pragma['depth']});")
        elif call := _CALL.fullmatch(line):
            found.append(f"    region.add([&] {{ {call['call']}; }});")
        else:
            found.append(line)
    return [*found, "    region.run();", lines[-1]]


def _has_depth(arguments: str) -> bool:
    """Whether the arguments of a stream's type have a comma between them that is in no brackets: its depth."""
    level = 0
    for letter in arguments:
        level += (letter in "<(") - (letter in ">)")
        if letter == "," and level == 0:
            return True
    return False
