"""Puts together the files that every target has: manifest.json, report.md, folding.yaml and tb/."""

from __future__ import annotations

import json
from typing import Any

import yaml

from hlsgen.artifacts.layer_table import layer_table
from hlsgen.artifacts.manifest import host_steps, manifest
from hlsgen.artifacts.report_md import report
from hlsgen.dataflow.backend import Emitted
from hlsgen.dataflow.network import Network, Timing
from hlsgen.testbench.sample_vectors import sample_vectors


def emit(
    network: Network,
    timing: Timing,
    emitted: Emitted,
    title: str,
    options: dict[str, Any],
    model: dict[str, str],
    version: str,
) -> dict[str, str]:
    """Relative path -> text."""
    host = {part: host_steps(network.graph, part) for part in ("head", "tail")}
    described = manifest(network, timing, emitted, options, model, version)
    return {
        "manifest.json": json.dumps(described, indent=2) + "\n",
        "report.md": report(title, layer_table(network, timing), timing, host),
        "folding.yaml": yaml.safe_dump(network.folding, sort_keys=False),
        **{f"tb/{name}": text for name, text in sample_vectors(network).items()},
    }
