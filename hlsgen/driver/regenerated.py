"""Compares a build with what its model and options give, where `hlsgen certify` proves nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from hlsgen.diagnostics import Diagnostic
from hlsgen.driver.build_directory import MAX_MANIFEST_BYTES, changes, read_regular, reopen

#: Files that `hlsgen certify` proves entirely. Of the C++ it proves what is computed, and not that depths of streams suffice.
_PROVEN = re.compile(r"rtl/.*|files\.f|certificate\.json|model\.onnx")


def regenerated_differences(directory: Path) -> list[Diagnostic]:
    """HG051 for each file that is not proven and differs from a build of model.onnx with the manifest's options.

    Files that are missing, and files that are left over in folders of the build, differ too. Of the manifest the
    hashes of proven files are left out. Raises what `reopen` raises.
    """
    build = reopen(directory)
    found = changes(build.files, directory, skipped=lambda name: name == "manifest.json" or _PROVEN.fullmatch(name))
    wanted = _entries(build.files["manifest.json"])
    there = _entries(read_regular(directory / "manifest.json", MAX_MANIFEST_BYTES) or b"")
    keys = [key for key in (wanted | there) if _text(wanted.get(key)) != _text(there.get(key))]
    if keys:
        text = f"differs from what the model gives in {', '.join(keys)}."
        found.append(Diagnostic("HG051", "manifest.json", text, "Build again."))
    return found


def _entries(manifest: bytes) -> dict[str, Any]:
    """The entries of a manifest; of its files those that are not proven."""
    entries = json.loads(manifest)
    entries["files"] = {name: value for name, value in entries["files"].items() if not _PROVEN.fullmatch(name)}
    return dict(entries)


def _text(value: Any) -> str:
    """A JSON value as text, so that 1, 1.0 and true differ."""
    return json.dumps(value, sort_keys=True)
