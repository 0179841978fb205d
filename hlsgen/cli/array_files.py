"""Array files of the command line: .npy, and .npz with the names of tensors."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hlsgen.diagnostics import fail
from hlsgen.numerics.fixed import Array


def read_array(path: Path) -> Any:
    """An array, or several by name. Raises HG001."""
    try:
        data = np.load(path, allow_pickle=False)
        if isinstance(data, np.lib.npyio.NpzFile):
            return {name: data[name] for name in data.files} if len(data.files) > 1 else data[data.files[0]]
        return data
    except Exception as error:  # numpy lets errors of zipfile, zlib, struct and tokenize through
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise fail("HG001", str(path), f"is no array file: {text}", "Save it with numpy.save.") from None


def write_array(path: Path, array: Array, directory: Path) -> None:
    """The output of the build in `directory`, in .npz under its tensor's name. Raises HG001."""
    if path.suffix == ".npz":
        manifest = json.loads((directory / "manifest.json").read_text())
        write_arrays(path, {manifest["output"]["tensor"]: array})
        return
    try:
        with path.open("wb") as stream:
            np.save(stream, array)
    except OSError as error:
        raise fail("HG001", str(path), f"cannot be written: {error.strerror}.") from None


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """A .npz file; names may be any text. Raises HG001."""
    try:
        with zipfile.ZipFile(path, "w") as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w") as stream:
                    np.lib.format.write_array(stream, array)
    except OSError as error:
        raise fail("HG001", str(path), f"cannot be written: {error.strerror}.") from None
