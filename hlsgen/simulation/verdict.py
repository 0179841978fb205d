"""Results of a verification."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hlsgen.diagnostics import Diagnostic
from hlsgen.interpreter.equivalence import Comparison
from hlsgen.simulation.file_verdict import OracleVerdict
from hlsgen.simulation.host_selftest import HostVerdict


@dataclass(frozen=True)
class SimulatorVerdict:
    """Result of one simulator.

    - samples: frames that were compared, out of `asked` requested frames. mismatches: differing output beats.
    - cycles: measured latency and interval, or None for C++.
    - failures: messages of failed tests.
    - coverage: number of `streams` with ports, names of the streams that were `never_stalled` (valid and not ready) and
      `never_starved` (ready and not valid) in long_stalls. It is None if that test did not end.
    - tests: for Verilog, whether each test that ended passed.
    - late: its time was up before its end.
    """

    samples: int
    mismatches: int
    cycles: dict[str, int | None] | None
    failures: list[str]
    first_divergence: dict[str, Any] | None
    coverage: dict[str, Any] | None = None
    asked: int = 0
    tests: dict[str, bool] = field(default_factory=dict)
    late: bool = False

    @property
    def ok(self) -> bool:
        """True if no test failed and no beat differs."""
        return not self.failures and not self.mismatches


@dataclass(frozen=True)
class Verdict:
    """Result of a verification. `ok` only if all files are unchanged, all integers equal, and all predicted cycles
    correct.

    If files are changed, nothing is simulated unless that was allowed, and `simulators` is empty.

    - model: the hardware's integers, compared step by step with the model of the file.
    - oracle: the same, compared with the ONNX model in an independent executor.
    - notes: checks that were not made.
    - host: the host code of the build, run in Python and C.
    """

    ok: bool
    model: Comparison
    oracle: OracleVerdict
    changes: list[Diagnostic]
    predicted: dict[str, int | bool]
    simulators: dict[str, SimulatorVerdict] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    host: HostVerdict | None = None

    @property
    def changed(self) -> list[str]:
        """Files that differ from the build's, or do not belong to it."""
        return [change.node for change in self.changes]

    @property
    def first_divergence(self) -> dict[str, Any] | None:
        """The first difference that a simulator found; None without one."""
        return next((s.first_divergence for s in self.simulators.values() if s.first_divergence), None)

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """Problems that no simulator reports: HG057, HG058, HG059, HG064, HG051."""
        difference = self.model.difference
        diagnostics = [Diagnostic("HG057", difference.layer, f"{difference.describe()}.")] if difference else []
        diagnostics += self.oracle.diagnostics
        diagnostics += self.host.diagnostics if self.host else []
        return [*diagnostics, *self.changes]
