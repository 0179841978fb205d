"""What a runtime says of a build: how the numbers of the ONNX file, run whole, differ from hlsgen's."""

from __future__ import annotations

from dataclasses import dataclass, field

from hlsgen.diagnostics import Diagnostic


@dataclass(frozen=True)
class Case:
    """One element that differs: the node that gives it, frame, index, both values, and why they differ.

    `exact`: the exact number before a quantizer in units of its codes, as a fraction, else the value of the exact
    computation; `rounded`: the runtime's float there, in the same units. Both are "" where they are not known.
    """

    node: str
    frame: int
    index: tuple[int, ...]
    ours: str
    executor: str
    why: str
    exact: str = ""
    rounded: str = ""


@dataclass
class OracleVerdict:
    """The comparison with a runtime.

    `ran`: its name and version, "" if the file was not compared; then `reason` says why. `outputs`: elements of the
    file's outputs in all frames, of which `outputs_differ` differ. `compared`: tensors, inner ones after quantizers
    and the outputs, each computed from the runtime's own values; `elements` of them. Of these, `integers_differ` codes
    and `floats_differ` of `floats` float outputs differ, by `last_places` units in the last place at most. `explained`:
    elements that differ, by reason. `unexplained`: how many without one. `cases`: the first of each reason. `left`:
    nodes whose values were taken from the runtime, and why.
    """

    asked: str
    ran: str = ""
    reason: str = ""
    frames: int = 0
    outputs: int = 0
    outputs_differ: int = 0
    compared: int = 0
    elements: int = 0
    integers_differ: int = 0
    floats: int = 0
    floats_differ: int = 0
    last_places: int = 0
    explained: dict[str, int] = field(default_factory=dict)
    unexplained: int = 0
    cases: dict[str, list[Case]] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """No difference is left without an explanation; the file ran, unless no comparison was requested."""
        return not self.unexplained and (bool(self.ran) or self.asked == "none")

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """HG058 for each node, HG059."""
        if not self.ok and not self.ran:
            return [
                Diagnostic(
                    "HG059", self.asked, f"the file was not compared: {self.reason}.",
                    "Choose another --oracle; `--oracle none` verifies without the file.",
                )
            ]  # fmt: skip
        first: dict[str, Case] = {}
        for case in self.cases.get("unexplained", []):
            first.setdefault(case.node, case)
        return [
            Diagnostic(
                "HG058", name,
                f"element {list(case.index)}, frame {case.frame}: {self.ran} gives {case.executor}, hlsgen "
                f"{case.ours}; {case.why}.",
                "Please report it, with the model.",
            )
            for name, case in first.items()
        ]  # fmt: skip

    @property
    def summary(self) -> str:
        """The differences in words."""
        if not self.ok:
            return f"{self.outputs_differ} of {self.outputs} outputs differ, {self.unexplained} differences unexplained"
        if not self.explained:
            return "equal"
        reasons = ", ".join(sorted(self.explained))
        count = self.elements - self.floats
        parts = [f"{self.integers_differ} of {count} integers differ" if self.integers_differ else "integers equal"]
        if self.floats_differ:
            distance = "in" if self.last_places <= 1 else f"by at most {self.last_places} units in"
            parts.append(
                f"{self.floats_differ} of {self.floats} float outputs differ {distance} the last place of float32"
            )
        return f"{'; '.join(parts)} ({reasons})"
