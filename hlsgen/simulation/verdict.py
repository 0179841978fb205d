"""What a verification found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hlsgen.diagnostics import Diagnostic
from hlsgen.interpreter.equivalence import Comparison
from hlsgen.simulation.file_verdict import OracleVerdict
from hlsgen.simulation.host_selftest import HostVerdict


@dataclass(frozen=True)
class SimulatorVerdict:
    """What one simulator said. `failures`: messages of failed tests. `cycles`: what was measured; None for C++.

    `coverage`: the number of `streams`, ports included, and the names of those that were `never_stalled` (valid and
    not ready) and `never_starved` (ready and not valid) in long_stalls; None if it did not come to its end.
    `late`: its time was up before its end. `samples`: frames that were compared, of those `asked`. `tests`: of Verilog, whether each test that has ended has passed.
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
        return not self.failures and not self.mismatches


@dataclass(frozen=True)
class Verdict:
    """`ok` only if every file is as built, all integers are equal and all cycles as predicted, where they are.

    If files are changed, nothing is simulated unless that was allowed, and `simulators` is empty.
    `model`: the integers that the hardware stands for, against the model of the file, step by step. `oracle`: the same
    against the file itself, as an executor that is not ours runs it. `notes`: what was not looked at.
    `host`: the host code of the build, as Python and C run it.
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
        """The files that are not as the model gives them, or none of the build's."""
        return [change.node for change in self.changes]

    @property
    def first_divergence(self) -> dict[str, Any] | None:
        return next((s.first_divergence for s in self.simulators.values() if s.first_divergence), None)

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """What of it is no matter of simulation: HG057, HG058, HG059, HG064, HG051."""
        difference = self.model.difference
        found = [Diagnostic("HG057", difference.layer, f"{difference.where()}.")] if difference else []
        found += self.oracle.diagnostics
        found += self.host.diagnostics if self.host else []
        return [*found, *self.changes]
