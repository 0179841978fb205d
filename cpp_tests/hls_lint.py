"""Lint for C++ text: constructs that HLS tools reject or misread, by our own rules, as no such tool is available."""

from __future__ import annotations

import re

#: Directives with their options, each a pattern. `variable` and `port` must be names in the same function.
_PRAGMAS = (
    r"PIPELINE (II=1 style=flp|off)",
    r"UNROLL",
    r"INLINE( off)?",
    r"DATAFLOW( disable_start_propagation)?",
    r"ARRAY_PARTITION variable=\w+ complete( dim=[0-3])?",
    r"ARRAY_RESHAPE variable=\w+ complete dim=[1-3]",
    r"AGGREGATE variable=\w+",
    r"BIND_STORAGE variable=\w+ type=rom_np",
    r"STREAM variable=\w+ depth=\d+",
    r"DEPENDENCE variable=\w+ type=inter direction=RAW distance=\d+ dependent=true",
    r"INTERFACE (axis port=\w+|ap_ctrl_none port=return)",
)
#: Directives of Catapult, each before a loop.
_CATAPULT = ("#pragma hls_pipeline_init_interval 1", "#pragma hls_unroll yes")
#: Constructs that synthesizable code must not contain, and the reason.
_WORDS = {
    r"\b(new|delete|malloc|calloc|realloc)\b": "memory is allocated at run time",
    r"\bstd::": "the standard library",
    r"\b(virtual|dynamic_cast|typeid)\b": "calls are resolved at run time",
    r"\b(throw|try|catch)\b": "exceptions",
    r"\b(goto|asm|volatile|thread_local|longjmp)\b": "control flow that tools do not support",
    r"\b(printf|cout|assert|abort)\b": "output, which belongs to test benches",
    r"\blong double\b|\bdouble\b": "double precision",
    r"\(\s*\*\s*\w+\s*\)\s*\(": "pointers to functions",
}


def complaints(text: str) -> list[str]:
    """Problems of a header or a source, each as "line N: text"."""
    problems = []
    lines = text.split("\n")
    code = [re.sub(r"//.*", "", line) for line in lines]
    for n, (line, plain) in enumerate(zip(lines, code, strict=True), 1):
        if len(line) > 120 or not line.isascii() or line != line.rstrip():
            problems.append(f"line {n}: more than 120 columns, other characters than ASCII, or spaces at the end")
        problems += [f"line {n}: {why}" for word, why in _WORDS.items() if re.search(word, plain)]
        is_known = any(re.fullmatch(f"#pragma HLS {form}", plain) for form in _PRAGMAS) or plain in _CATAPULT
        if plain.startswith("#pragma") and not is_known:
            problems.append(f"line {n}: {plain} is no directive that is used here")
        if re.match(r"\s+static (?!const\b|constexpr\b)[\w:<>, ]+\w+\s*(=|;|\[)", plain):
            problems.append(f"line {n}: a variable that keeps its value from frame to frame")
        if re.match(r"\s*(for|while) .*[^{]$", plain) and not plain.rstrip().endswith(("{", "}", ";", ",", "||", "&&")):
            problems.append(f"line {n}: a loop without braces")
        if re.search(r"\bfor \(;|\bwhile \((true|1)\)|; *;", plain):
            problems.append(f"line {n}: a loop without an end")
    problems += _pragma_names(code)
    return problems


def _pragma_names(code: list[str]) -> list[str]:
    """Directives with names that the function does not declare."""
    problems, start = [], 0
    for n, line in enumerate(code):
        if line and not line[0].isspace() and not line.startswith(("#", "}")):
            start = n if n == 0 or not code[n - 1] or code[n - 1].startswith(("}", "#")) else start
        name = re.search(r"(?:variable|port)=(\w+)", line)
        if line.startswith("#pragma") and name and name[1] != "return":
            preceding_code = "\n".join(code_line for code_line in code[start:n] if not code_line.startswith("#"))
            if not re.search(rf"\b{name[1]}\b", preceding_code):
                problems.append(f"line {n + 1}: {name[1]} is declared nowhere above in this function")
    return problems
