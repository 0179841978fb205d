"""Checks that a build has the files of its targets, and no files of other targets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hlsgen.certify.netlist_reader import broken
from hlsgen.diagnostics import Collector

#: Files and folders of each target that can be certified. A folder ends with a slash.
PLACES = {"verilog": ("rtl/", "files.f", "certificate.json"), "hls": ("hls/",)}


def check(directory: Path, targets: Sequence[str], listed: Any, collector: Collector) -> None:
    """Report files of targets that the option does not name: in the directory, and in the manifest's list.

    `listed`: the manifest's hashes by name. Raises HG055 if `targets` are not known targets, each once.
    """
    if not targets or not set(targets) <= PLACES.keys() or len(set(targets)) < len(targets):
        raise broken("manifest.json", f"option target is {','.join(targets)!r}.")
    names = [name for name in listed if isinstance(name, str)] if isinstance(listed, dict) else []
    for target, places in PLACES.items():
        for place in places if target not in targets else ():
            text = f"belongs to the target {target}; the option target is {','.join(targets)!r}."
            if os.path.lexists(directory / place.rstrip("/")):
                collector.error("HG055", place, text, "Remove it, or build with that target.")
            if any(name == place or (place.endswith("/") and name.startswith(place)) for name in names):
                collector.error("HG055", "manifest.json", f"files: {place} {text}", "Build again.")
