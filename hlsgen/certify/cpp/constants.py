"""Reads weights.hpp back: arrays of numbers, each with its type in hardware. Any other text is an error."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hlsgen.certify.cpp.tokens import source
from hlsgen.certify.netlist_reader import broken
from hlsgen.numerics.fixed import Array, IntType

_NATIVE = {"char": 8, "short": 16, "int": 32, "long long": 64}
_HEAD = re.compile(
    r"static const HG_ROM\((signed|unsigned) (char|short|int|long long), (ap_int|ap_uint)<(\d{1,3})>\) "
    r"(\w+)((?:\[\d+\])+) =\n"
    r"    (\{[-0-9, \n{}UL]*\});\n",
    re.ASCII,
)
_FLOATS = re.compile(
    r"static const float (\w+)((?:\[\d+\])+) =\n    (\{[-+.0-9ef, \n{}]*\});\n",
    re.ASCII,
)


@dataclass(frozen=True, eq=False)
class Constants:
    """An array of integers (int64), with its bits and sign in hardware; or an array of float32 numbers, of 32 bits."""

    name: str
    values: Array
    bits: int
    signed: bool


def read_constants(path: Path, name: str, guard: str) -> dict[str, Constants]:
    """All arrays of a file, by name. Raises HG055 for any other text in the file."""
    text = source(path, name)
    head, end = f'#ifndef {guard}\n#define {guard}\n\n#include "hg/types.hpp"\n\n', "#endif\n"
    if not (text.startswith(head) and text.endswith(end)):
        raise broken(name, "does not begin or end as hlsgen emits it.")
    at, arrays = len(head), dict[str, Constants]()
    stop = len(text) - len(end)
    while at < stop:
        if match := _HEAD.match(text, at):
            constants = _array(match, name)
        elif match := _FLOATS.match(text, at):
            constants = _numbers(match, name)
        else:
            raise broken(name, f"has text that hlsgen never emits: {text[at : at + 60]!r}.")
        if constants.name in arrays:
            raise broken(name, f"{constants.name} is declared twice.")
        arrays[constants.name] = constants
        at = match.end()
        if text[at] == "\n":
            at += 1
    return arrays


def _array(match: re.Match[str], file_name: str) -> Constants:
    sign, native, kind, width, name, extents, body = match.groups()
    bits, signed = int(width), kind == "ap_int"
    shape = tuple(int(n) for n in re.findall(r"\d+", extents))
    numbers = body.translate(str.maketrans("", "", "{} \n")).replace("ULL", "").replace("LL", "").split(",")
    if math.prod(shape) != len(numbers) or body.translate(str.maketrans("", "", "-0123456789 \nUL")) != _braces(shape):
        raise broken(file_name, f"{name} has {len(numbers)} values, not {extents}.")
    try:
        values = np.array(numbers, np.int64)
    except (ValueError, OverflowError):
        raise broken(file_name, f"{name} has values that are no integers of 64 bits.") from None
    for bits_and_sign, place in (
        ((_NATIVE[native], sign == "signed"), "in C simulation"),
        ((bits, signed), "in hardware"),
    ):
        type_ = _type(*bits_and_sign)
        if not 1 <= bits_and_sign[0] <= 64 or values.min() < type_.lo or values.max() > type_.hi:
            raise broken(file_name, f"{name} has values of {values.min()}..{values.max()}, {type_} {place}.")
    return Constants(name, values.reshape(shape), bits, signed)


def _numbers(match: re.Match[str], file_name: str) -> Constants:
    """An array of float32 numbers, each the shortest decimal: a compiler may round other texts differently."""
    name, extents, body = match.groups()
    shape = tuple(int(n) for n in re.findall(r"\d+", extents))
    texts = body.translate(str.maketrans("", "", "{} \n")).split(",")
    if math.prod(shape) != len(texts) or body.translate(str.maketrans("", "", "-+.0123456789ef \n")) != _braces(shape):
        raise broken(file_name, f"{name} has {len(texts)} values, not {extents}.")
    try:
        values = np.array([float(text.removesuffix("f")) for text in texts], np.float32)
    except ValueError:
        raise broken(file_name, f"{name} has values that are no numbers.") from None
    for text, value in zip(texts, values, strict=True):
        if text != f"{np.format_float_scientific(value, unique=True)}f":
            raise broken(file_name, f"{name} has the value {text}, which is not the shortest decimal of {value!r}.")
    return Constants(name, values.reshape(shape), 32, True)


def _type(bits: int, signed: bool) -> IntType:
    return IntType(-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else IntType(0, (1 << bits) - 1)


def _braces(shape: tuple[int, ...]) -> str:
    text = "," * (shape[-1] - 1)
    for extent in reversed(shape[:-1]):
        text = ",".join([f"{{{text}}}"] * extent)
    return f"{{{text}}}"
