"""Builds of C++ that are changed, and what `hlsgen certify` says of them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np

from hlsgen.certify import certify as prove


def problems(core: Path) -> list[str]:
    """What the proof alone finds wrong, with the hashes in hls/certificate.json and in the manifest made to agree."""
    path = core / "hls" / "certificate.json"
    certificate = json.loads(path.read_text())
    certificate["cpp"] = {n: hashlib.sha256((core / n).read_bytes()).hexdigest() for n in certificate["cpp"]}
    path.write_text(json.dumps(certificate))
    manifest = json.loads((core / "manifest.json").read_text())
    manifest["files"] |= certificate["cpp"] | {"hls/certificate.json": hashlib.sha256(path.read_bytes()).hexdigest()}
    (core / "manifest.json").write_text(json.dumps(manifest))
    return [str(problem) for problem in prove(core).problems]


def agree(core: Path) -> None:
    """Makes every hash in the manifest that of the file."""
    path = core / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["files"] = {name: hashlib.sha256((core / name).read_bytes()).hexdigest() for name in manifest["files"]}
    path.write_text(json.dumps(manifest))


def others(number: str) -> list[str]:
    """Other numbers of no more bits: one nearby, and one that is not."""
    if "." in number:
        return [str(np.format_float_scientific(np.nextafter(np.float32(number), np.float32(1e9)), unique=True))]
    value = int(number)
    return [str(value - 1 if value > 0 else value + 1), str(value // 2 if value > 0 else -(-value // 2))]
