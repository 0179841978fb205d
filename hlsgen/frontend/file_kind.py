"""Kinds of model files: how a file says its kind, and the name of its copy in a build."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hlsgen.diagnostics import fail
from hlsgen.frontend.alir.file import is_alir
from hlsgen.frontend.tflite.schema import is_tflite


@dataclass(frozen=True)
class FileKind:
    """A kind of model files. suffix: of file names, with the dot. build_file: name of the copy in a build."""

    name: str
    suffix: str

    @property
    def build_file(self) -> str:
        return f"model{self.suffix}"


ONNX = FileKind("ONNX", ".onnx")
TFLITE = FileKind("TFLite", ".tflite")
ALIR = FileKind("ALIR", ".alir.json")
KINDS = (ONNX, TFLITE, ALIR)
#: Names of model files in builds.
BUILD_FILES = tuple(kind.build_file for kind in KINDS)
_HINT = "Give a directory that `hlsgen build` has written."


def kind_of(data: bytes) -> FileKind:
    """The kind of a file, by its content."""
    if is_tflite(data):
        return TFLITE
    return ALIR if is_alir(data) else ONNX


def model_name(path: Path) -> str:
    """The name of a model from the path of its file: without .onnx, .tflite, .alir.json or .alir.json.gz at its end."""
    name = path.name.removesuffix(".gz")
    return name.removesuffix(".json").removesuffix(".alir") if name.endswith(".json") else path.stem


def model_file_in(names: Iterable[str]) -> str:
    """The name of the model file among the files of a build."""
    return next(name for name in names if name in BUILD_FILES)


def model_entry(data: bytes) -> dict[str, str]:
    """Name and SHA-256 of a model file in a build, for manifest and certificate."""
    return {"file": kind_of(data).build_file, "sha256": hashlib.sha256(data).hexdigest()}


def model_file_of(directory: Path) -> Path:
    """The only model file of a build directory. Raises HG050 if there is none or another one, or a misnamed one."""
    present = [directory / name for name in BUILD_FILES if os.path.lexists(directory / name)]
    if not present:
        raise fail("HG050", str(directory), f"has no {' or '.join(BUILD_FILES)}.", _HINT)
    if len(present) > 1:
        raise fail("HG050", str(directory), f"has {' and '.join(BUILD_FILES)}.", "Build again in a new directory.")
    path = present[0]
    if path.is_symlink() or not path.is_file():
        raise fail("HG050", str(path), "is no plain file.", _HINT)
    with path.open("rb") as stream:
        kind = kind_of(stream.read(8))
    if kind.build_file != path.name:
        raise fail("HG050", str(path), f"is a file of kind {kind.name}.", "Build again.")
    return path
