"""Assembles the files of every target: manifest.json, report.html, report.md, folding.yaml and tb/."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import yaml

from hlsgen.artifacts.layer_table import Estimator, layer_table
from hlsgen.artifacts.manifest import host_steps, manifest
from hlsgen.artifacts.report_html import page
from hlsgen.artifacts.report_md import report
from hlsgen.artifacts.unit_table import loops_of
from hlsgen.dataflow.backend import Emitted
from hlsgen.dataflow.network import Network, Timing
from hlsgen.devices import devices, resource_names
from hlsgen.host.emit import host_files
from hlsgen.testbench.sample_vectors import sample_codes, sample_vectors

#: Certificates with the functions of quantizers: of Verilog, else of C++.
CERTIFICATES = ("certificate.json", "hls/certificate.json")


def emit(
    network: Network,
    timing: Timing,
    emitted: Emitted,
    title: str,
    options: dict[str, Any],
    model: dict[str, str],
    version: str,
    target_files: Mapping[str, bytes],
    estimator: Estimator,
) -> dict[str, bytes]:
    """Relative path -> content of all files of a build.

    target_files: files of the targets, and the model. estimator: of a target.
    """
    samples = sample_codes(network)
    name = next(iter(emitted.top.values()))
    host = {part: host_steps(network.graph.host_graph, part) for part in ("head", "tail")}
    described = manifest(network, timing, emitted, options, model, version, estimator)
    certificate = next((target_files[name] for name in CERTIFICATES if name in target_files), b"{}")
    texts = {
        "report.html": page(described, json.loads(certificate)),
        "report.md": report(
            title,
            layer_table(network, timing, estimator),
            timing,
            estimator(network.nodes, network.choices),
            host,
            resource_names(devices().get(str(options["device"]))),
            emitted.note,
            loops_of(described["units"]),
        ),
        "folding.yaml": yaml.safe_dump(network.folding, sort_keys=False),
        **{f"tb/{name}": text for name, text in sample_vectors(network, *samples).items()},
    }
    files = {place: text.encode() for place, text in texts.items()}
    files |= {**host_files(network, name, title, *samples), **target_files}
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())}
    described["files"] = hashes
    files["manifest.json"] = (json.dumps(described, indent=2) + "\n").encode()
    return dict(sorted(files.items()))
