"""Reads processes back: the heads of functions, the library call in each process, streams, and their two ends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hlsgen.certify.cpp.tokens import Beats, Reader
from hlsgen.certify.netlist_reader import broken

#: Functions that contain a network of processes: their caller is a dataflow region.
_NETWORKS = frozenset(
    f"hg::{name}"
    for name in (
        "rows_max",
        "rows_share",
        "rows_fixed_share",
        "rows_norm",
        "softmax",
        "softmax_products",
        "softmax_masked",
        "softmax_products_masked",
    )
)
#: Functions that make the bit of a frame, without and with TUSER. Each gets a bit that its caller keeps.
FIRST_FRAME, FRAME_START = "hg::first_frame", "hg::frame_start"
_WITH_LATER = (FIRST_FRAME, FRAME_START)
#: The function that emits a state between frames. Its stream has a bit for each frame.
FIND, FLAG = "hg::find", Beats(1, False, 1)


@dataclass(frozen=True)
class StateArray:
    """The array of a state, as a parameter: its number of beats; `const` if the process only reads it."""

    beats: Beats
    count: int
    const: bool


@dataclass(frozen=True)
class Call:
    """A process: the library function that it calls, the arguments as they are written, its tables.

    `inputs`, `outputs`: beats of its streams, in order. `state_array`: the state that it reads or writes. `later`: True
    if it gets a bit that it keeps between frames, 0 at reset.
    """

    name: str
    function: str
    arguments: dict[str, str]
    tables: tuple[str, ...]
    inputs: tuple[Beats, ...]
    outputs: tuple[Beats, ...]
    state_array: StateArray | None = None
    later: bool = False

    def number(self, name: str, minimum: int = 0) -> int:
        """An argument that is a plain integer, at least `minimum`. Raises HG055."""
        text = self.arguments.get(name, "")
        match = re.fullmatch(r"(-?\d{1,18})(?:LL)?", text, re.ASCII)
        if match is None or int(match[1]) < minimum:
            raise broken(self.name, f"argument {name} of {self.function} is {text or 'missing'}.")
        return int(match[1])

    def flag(self, name: str) -> bool:
        text = self.arguments.get(name)
        if text not in ("true", "false"):
            raise broken(self.name, f"argument {name} of {self.function} is {text or 'missing'}.")
        return text == "true"

    def only(self, names: str) -> None:
        """Check that the arguments are exactly these, in this order. Raises HG055."""
        if list(self.arguments) != names.split():
            raise broken(self.name, f"{self.function} has the arguments {list(self.arguments)}, not {names.split()}.")


@dataclass(frozen=True)
class ProcessHead:
    """The head of a function: its name, and its parameters in order."""

    name: str
    parameters: dict[str, Beats | StateArray]

    @property
    def streams(self) -> dict[str, Beats]:
        return {name: beats for name, beats in self.parameters.items() if isinstance(beats, Beats)}

    @property
    def arrays(self) -> dict[str, StateArray]:
        return {name: array for name, array in self.parameters.items() if isinstance(array, StateArray)}


def read_head(reader: Reader, types: Mapping[str, Beats], words: Mapping[str, tuple[str, Beats]]) -> ProcessHead:
    """Read from `static void` to the first directive. `words`: the word type of each process at a port."""
    reader.all("static void")
    name = reader.identifier()
    known_types = dict(types) | (dict([words[name]]) if name in words else {})
    parameters: dict[str, Beats | StateArray] = {}
    reader.next("(")
    while True:
        parameter_name, parameter = _parameter(reader, name, known_types)
        if parameter_name in parameters:
            raise broken(reader.name, f"{name} has two parameters {parameter_name}.")
        parameters[parameter_name] = parameter
        if reader.next(",", ")") == ")":
            break
    reader.next("{")
    reader.line("#pragma HLS INLINE off")
    return ProcessHead(name, parameters)


def _parameter(reader: Reader, name: str, types: Mapping[str, Beats]) -> tuple[str, Beats | StateArray]:
    """Name and type of a parameter: a stream or an array."""
    if reader.peek() == "hls::stream":
        reader.all("hls::stream <")
        type_ = known_type(reader, name, types)
        reader.all("> &")
        return reader.identifier(), type_
    const = reader.peek() == "const"
    if const:
        reader.next()
    type_ = known_type(reader, name, types)
    reader.all("( &")
    array_name = reader.identifier()
    reader.all(") [")
    count = reader.number()
    reader.next("]")
    return array_name, StateArray(type_, count, const)


def known_type(reader: Reader, name: str, types: Mapping[str, Beats]) -> Beats:
    """A type of beats that was declared before. Raises HG055."""
    beats = types.get(reader.identifier())
    if beats is None:
        raise broken(reader.name, f"{name} has a stream or an array of an unknown type.")
    return beats


def read_names(reader: Reader) -> list[str]:
    """The arguments of a call, with the parentheses."""
    reader.next("(")
    arguments = [reader.identifier()]
    while reader.next(",", ")") == ",":
        arguments.append(reader.identifier())
    return arguments


def read_shape(reader: Reader) -> tuple[str, dict[str, str]]:
    """Read a structure of named constants, if one comes: its name, and the text of each constant."""
    if reader.peek() != "struct":
        return "", {}
    reader.next()
    name, constants = reader.identifier(), dict[str, str]()
    reader.next("{")
    while reader.peek() == "static":
        reader.all("static const")
        is_long = reader.next("int", "long") == "long"
        if is_long:
            reader.next("long")
        while True:
            constant = reader.identifier()
            reader.next("=")
            text = reader.next()
            if constant in constants or not re.fullmatch(
                r"-?\d{1,9}" if not is_long else r"-?\d{1,18}(LL)?", text, re.ASCII
            ):
                raise broken(reader.name, f"{name}: constant {constant} is given twice, or {text}.")
            constants[constant] = text
            if reader.next(",", ";") == ";":
                break
    reader.all("} ;")
    return name, constants


def read_process(
    reader: Reader, head: ProcessHead, shape_name: str = "", shape: Mapping[str, str] | None = None
) -> Call:
    """Read the body of a process: the call of a library function, which may be a network of processes.

    `shape_name`, `shape`: the structure before the process. Its constants are arguments, too.
    """
    name = head.name
    network = reader.peek() == "#pragma HLS DATAFLOW disable_start_propagation"
    if network:
        reader.next()
    later = reader.peek() == "static"
    if later:
        reader.all("static bool later = false ;")
        reader.line("#pragma HLS RESET variable=later")
    function = reader.identifier()
    if later != (function in _WITH_LATER):
        raise broken(reader.name, f"{name} calls {function}, and keeps {'a' if later else 'no'} bit between frames.")
    if network != (function in _NETWORKS):
        raise broken(reader.name, f"{name} calls {function}, and is {'a' if network else 'no'} dataflow region.")
    arguments: dict[str, str] = {}
    if reader.peek() == "<":
        reader.next("<")
        while True:
            tokens, depth = list[str](), 0
            while depth or not reader.peek().startswith("/*"):
                tokens.append(reader.next())
                depth += (tokens[-1] == "<") - (tokens[-1] == ">")
            title = reader.next()[3:-3]
            if title in arguments or not tokens:
                raise broken(reader.name, f"{name}: argument {title} is given twice, or empty.")
            arguments[title] = "".join(tokens).replace(" ", "")
            if reader.next(",", ">") == ">":
                break
    if arguments.pop("SHAPE", "") != shape_name or shape_name not in ("", f"{name}_shape"):
        raise broken(reader.name, f"{name} is not called with the constants before it.")
    arguments |= shape or {}
    call_arguments = read_names(reader)
    reader.all("; }")
    streams, arrays = head.streams, head.arrays
    in_names = [n for n in streams if n in ("s", "a", "b")]
    out_names = [n for n in streams if n not in in_names]
    in_order = out_names == (
        ["m"] if len(out_names) == 1 else [f"m{n}" for n in range(len(out_names))]
    ) and in_names in (["s"], ["a", "b"])
    if arrays:
        in_order = list(head.parameters) in (["found", "m"], ["s", "left"], ["found", "s", "m"])
    passed = [*head.parameters, *(["later"] if later else [])]
    if not in_order or call_arguments[: len(passed)] != passed or "later" in head.parameters:
        raise broken(reader.name, f"{name} does not pass its streams on in order.")
    tables = tuple(call_arguments[len(passed) :])
    call = Call(
        name,
        function,
        arguments,
        tables,
        tuple(streams[n] for n in in_names),
        tuple(streams[n] for n in out_names),
        next(iter(arrays.values()), None),
        later,
    )
    if call.state_array:
        _check_state_array(call, call.state_array)
    return call


def _check_state_array(call: Call, array: StateArray) -> None:
    """Check a process that emits a state from its array, or stores it there. Raises HG055."""
    call.only("BEATS")
    reads, between_frames = bool(call.outputs), call.function == FIND
    flag, tables = ((FLAG,), (f"{call.name}_initial",)) if between_frames else ((), ())
    expected = (
        (FIND if between_frames else "hg::recall") if reads else "hg::remember",
        tables,
        (*flag, array.beats),
        reads,
        array.count,
    )
    if (call.function, call.tables, (*call.inputs, *call.outputs), array.const, call.number("BEATS", 1)) != expected:
        raise broken(call.name, f"{call.function} does not fit its array of {array.count} beats.")


def read_streams(reader: Reader, types: Mapping[str, Beats], used_names: Mapping[str, object]) -> dict[str, Beats]:
    """The streams that a function declares. Raises HG055 if a name is already used, also in `used_names`."""
    wires: dict[str, Beats] = {}
    while reader.peek() == "hls::stream":
        reader.all("hls::stream <")
        type_ = reader.identifier()
        reader.next(">")
        name = reader.identifier()
        reader.all(f'( "{name}" ) ;')
        match = re.fullmatch(rf"#pragma HLS STREAM variable={name} depth=([1-9]\d*)", reader.next())
        if match is None or type_ not in types or name in wires or name in used_names:
            raise broken(reader.name, f"{name} is no new stream of a known type with a depth.")
        wires[name] = types[type_]
    return wires


class StreamWiring:
    """Follows the calls in order: each consumes streams that were sent before and are not consumed yet, and sends its
    own.
    """

    def __init__(self, reader: Reader, wires: Mapping[str, Beats], open_streams: Mapping[str, Beats]) -> None:
        self.reader, self.wires = reader, wires
        self.open = dict(open_streams)
        self.sent = set[str]()

    def take(self, name: str, streams: tuple[str, ...], expected: tuple[Beats, ...]) -> None:
        """Consume streams. Raises HG055 if a stream was not sent before, is consumed twice, or has another type."""
        if tuple(self.open.pop(n, None) for n in streams) != expected:
            text = f"{name} reads {streams}: not sent before, read by another process, or of another type."
            raise broken(self.reader.name, text)

    def send(
        self,
        name: str,
        streams: tuple[str, ...],
        expected: tuple[Beats, ...],
        allowed: Mapping[str, Beats] | None = None,
    ) -> None:
        """Send streams. Raises HG055 if a stream is sent twice or has another type.

        `allowed`: streams that it may send, if not all.
        """
        allowed = self.wires if allowed is None else allowed
        if (
            tuple(allowed.get(n) for n in streams) != expected
            or self.sent & set(streams)
            or len(set(streams)) < len(streams)
        ):
            raise broken(self.reader.name, f"{name} writes {streams}: written by another process, or of another type.")
        self.open |= {n: allowed[n] for n in streams}
        self.sent |= set(streams)
