"""Build directories: written at once, opened again, compared with what the model gives."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hlsgen.diagnostics import fail
from hlsgen.driver.compile import Build, compile_model
from hlsgen.driver.options import from_manifest
from hlsgen.driver.schedule import Progress


def write_build(build: Build, directory: Path) -> None:
    """Writes all files at once: into a temporary directory that then takes the place.

    An existing directory is replaced only if it is empty or a build itself. Raises HG050, HG001.
    """
    check_output(directory)
    directory = Path(os.path.abspath(directory))
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
    except OSError as error:
        raise fail("HG001", str(directory), f"cannot be written: {error.strerror}.") from None
    try:
        for name, data in build.files.items():
            file = temporary / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        temporary.chmod(0o755)
        _take_place(temporary, directory)
    except OSError as error:
        raise fail("HG001", str(directory), f"cannot be written: {error.strerror}.") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _take_place(temporary: Path, directory: Path) -> None:
    """Renames `temporary` to `directory`; what was there comes back if that fails."""
    if not directory.exists():
        os.replace(temporary, directory)
        return
    old = temporary.with_name(temporary.name + ".old")
    os.replace(directory, old)
    try:
        os.replace(temporary, directory)
    except BaseException:
        os.replace(old, directory)
        raise
    shutil.rmtree(old, ignore_errors=True)


def check_output(directory: Path) -> None:
    """Refuses what is there and is no build. Raises HG050, HG001."""
    try:
        os.lstat(directory)
        blocked = not is_replaceable(directory)
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        raise fail("HG001", str(directory), f"cannot be written: {getattr(error, 'strerror', error)}.") from None
    if blocked:
        raise fail(
            "HG050", str(directory), "exists and is not a build of hlsgen; it is left as it is.",
            "Choose another -o, or remove it.",
        )  # fmt: skip


def is_replaceable(directory: Path) -> bool:
    """Whether it is an empty directory or one with a manifest of ours."""
    if not directory.is_dir() or directory.is_symlink():
        return False
    if not any(directory.iterdir()):
        return True
    try:
        manifest = _read_manifest(directory)
    except (OSError, ValueError, RecursionError):
        return False
    return {"hlsgen", "model", "options"} <= set(manifest)


def _read_manifest(directory: Path) -> dict[str, Any]:
    manifest = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
    if not isinstance(manifest, dict):
        raise ValueError("no object")
    return manifest


def reopen(directory: Path, progress: Progress | None = None) -> Build:
    """Compiles the model of a build again, with the options of its manifest. Raises HG050."""
    hint = "Give a directory that `hlsgen build` has written."
    try:
        options = from_manifest(_read_manifest(directory)["options"])
        if options is None:
            raise ValueError("options")
    except (OSError, ValueError, KeyError, RecursionError):
        raise fail("HG050", str(directory), "has no readable manifest.json.", hint) from None
    path = directory / "model.onnx"
    if not path.is_file():
        raise fail("HG050", str(directory), "has no model.onnx.", hint)
    return compile_model(path, options, progress)


def changed_files(build: Build, directory: Path) -> list[str]:
    """Files of a build directory that are not what the model gives, or are missing or left over."""
    changed = []
    for name, data in build.files.items():
        file = directory / name
        if not file.is_file() or file.read_bytes() != data:
            changed.append(name)
    for folder in ("rtl", "tb"):
        for file in sorted((directory / folder).glob("*.*")):
            if file.is_file() and f"{folder}/{file.name}" not in build.files and file.suffix in (".v", ".mem"):
                changed.append(f"{folder}/{file.name}")
    return changed
