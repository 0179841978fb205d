"""Everything of a build besides rtl/: manifest, report, folding file, testbench with sample vectors."""

from __future__ import annotations

import json
from typing import Any

import yaml

from hlsgen.artifacts.layer_table import layer_table
from hlsgen.artifacts.manifest import host_steps, manifest
from hlsgen.artifacts.report_md import report
from hlsgen.dataflow.network import Schedule
from hlsgen.library import library_text
from hlsgen.testbench.config import testbench_config
from hlsgen.testbench.sample_vectors import sample_vectors
from hlsgen.verilog.netlist import Design


def emit(
    design: Design, schedule: Schedule, options: dict[str, Any], model: dict[str, str], version: str
) -> dict[str, str]:
    """Relative path -> text."""
    return {
        "manifest.json": _json(manifest(design, schedule, options, model, version)),
        "report.md": report(
            design.title or design.top,
            layer_table(schedule),
            schedule,
            {part: host_steps(schedule.graph, part) for part in ("head", "tail")},
        ),
        "folding.yaml": yaml.safe_dump(schedule.folding, sort_keys=False),
        "tb/config.json": _json(testbench_config(design, schedule)),
        **{f"tb/{name}": library_text("tb", name) for name in ("test_top.py", "run.py", "Makefile")},
        **{f"tb/{name}": text for name, text in sample_vectors(schedule).items()},
    }


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"
