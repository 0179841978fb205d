"""Reads and writes files of the command line: arrays in .npy, named arrays in .npz, and bytes."""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hlsgen.diagnostics import HlsgenError, fail
from hlsgen.file_writing import replaced_file
from hlsgen.numerics.fixed import Array

_HINT = "Save the array with numpy.save."
_TEXT = "numpy converts a table of numbers: numpy.save('x.npy', numpy.loadtxt({0!r}, delimiter={1!r}))."
#: Hints for files of other kinds, by suffix.
_HINTS = {
    ".csv": _TEXT.format("x.csv", ","),
    ".tsv": _TEXT.format("x.tsv", "\t"),
    ".txt": _TEXT.format("x.txt", " "),
    ".pt": "Save it with numpy.save('x.npy', tensor.numpy()).",
    ".pb": "Save onnx.numpy_helper.to_array of it with numpy.save.",
}


def read_array(path: Path) -> Any:
    """An array, or several by name. Raises HG001, for pipes and devices too."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise fail("HG001", str(path), "is not a regular file.", "Save the array with numpy.save.")
        with path.open("rb") as stream:
            magic = stream.read(6)
        if not magic.startswith((b"\x93NUMPY", b"PK")):
            raise fail("HG001", str(path), "is not a .npy or .npz file.", _HINTS.get(path.suffix.lower(), _HINT))
        data = np.load(path, allow_pickle=False)
        if isinstance(data, np.lib.npyio.NpzFile):
            return {name: data[name] for name in data.files} if len(data.files) > 1 else data[data.files[0]]
        return data
    except HlsgenError:
        raise
    except FileNotFoundError:
        raise fail("HG001", str(path), "no such file.", "Give the path of a .npy or .npz file.") from None
    except OSError as error:
        raise fail("HG001", str(path), f"cannot be read: {error.strerror or error}.") from None
    except Exception as error:  # numpy passes on errors of zipfile, zlib, struct and tokenize
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise fail("HG001", str(path), f"cannot be read as an array: {text}", "Save it with numpy.save.") from None


def write_array(path: Path, array: Array, tensor: str) -> None:
    """Writes one array, in .npz under the name `tensor`. Raises HG001."""
    if path.suffix == ".npz":
        write_arrays(path, {tensor: array})
        return
    with replaced_file(path) as stream:
        np.lib.format.write_array(stream, array)


def write_outputs(path: Path, arrays: Any, tensor: str) -> None:
    """Writes the model's output as `write_array` does, or several by name into .npz. Raises HG001."""
    if not isinstance(arrays, dict):
        write_array(path, arrays, tensor)
    elif path.suffix != ".npz":
        raise fail("HG001", str(path), f"{len(arrays)} outputs ({', '.join(arrays)}).", "Give a file .npz.")
    else:
        write_arrays(path, arrays)


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Writes a .npz file; names may be any text. Raises HG001."""
    with replaced_file(path) as stream, zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, array)


def read_bytes(path: Path) -> bytes:
    """The content of a file. Raises HG001."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise fail("HG001", str(path), f"cannot be read: {getattr(error, 'strerror', error)}.") from None


def port_files(path: Path, ports: Iterable[str]) -> dict[str, Path]:
    """One file for each port: NAME.bin becomes NAME_a.bin for s_axis_a or m_axis_a."""
    return {port: path.with_name(f"{path.stem}_{port.split('_axis_', 1)[1]}{path.suffix}") for port in ports}


def write_bytes(path: Path, data: bytes) -> None:
    """Writes bytes to a file. Raises HG001."""
    with replaced_file(path) as stream:
        stream.write(data)
