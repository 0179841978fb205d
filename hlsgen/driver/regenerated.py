"""Compares those files of a build that `hlsgen certify` does not prove with a new build of its model."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hlsgen.diagnostics import Diagnostic
from hlsgen.driver.build_directory import MAX_MANIFEST_BYTES, changes, read_regular, reopen

#: Files that `hlsgen certify` proves completely. For C++ it proves the results, but not that stream depths suffice.
_PROVEN = re.compile(r"rtl/.*|files\.f|certificate\.json|model\.(onnx|tflite|alir\.json)")


def regenerated_differences(directory: Path) -> list[Diagnostic]:
    """HG051 for each file that is not proven and differs from a build of its model with the manifest's options.

    Missing files, and files that do not belong to the build, differ too. Hashes of proven files in the manifest are
    left out. Raises the errors of `reopen`.
    """
    build = reopen(directory)
    differences = changes(
        build.files, directory, skipped=lambda name: name == "manifest.json" or _PROVEN.fullmatch(name)
    )
    expected = _entries(build.files["manifest.json"])
    present = _entries(read_regular(directory / "manifest.json", MAX_MANIFEST_BYTES) or b"")
    keys = [key for key in (expected | present) if _text(expected.get(key)) != _text(present.get(key))]
    if keys:
        text = f"differs from a new build of the model in {', '.join(keys)}."
        differences.append(Diagnostic("HG051", "manifest.json", text, "Build again."))
    return differences


def _entries(manifest: bytes) -> dict[str, Any]:
    """Entries of a manifest without the hashes of proven files."""
    entries = json.loads(manifest)
    entries["files"] = {name: value for name, value in entries["files"].items() if not _PROVEN.fullmatch(name)}
    return dict(entries)


def _text(value: Any) -> str:
    """A JSON value as text, so that 1, 1.0 and true differ."""
    return json.dumps(value, sort_keys=True)
