"""Result of a comparison with a runtime: how the numbers of the ONNX model differ from hlsgen's."""

from __future__ import annotations

from dataclasses import dataclass, field

from hlsgen.diagnostics import Diagnostic


@dataclass(frozen=True)
class Case:
    """One differing element: the node that produces it, frame, index, both values, and the reason.

    - exact: the exact number before a quantizer in units of its codes, as a fraction. For other nodes, the value of the
      exact computation.
    - rounded: the runtime's float there, in the same units.

    `exact` and `rounded` are "" if they are not known.
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

    - asked: the requested runtime. ran: name and version of the runtime, "" if the file was not compared. reason: then
      the reason for that.
    - frames: number of compared frames.
    - left_out: number of frames with NaN or infinities on which the runtime fails. left_out_because: its first message.
    - outputs: elements of the file's outputs in all frames. outputs_differ: how many of them differ.
    - compared: tensors, inner ones after quantizers and the outputs, each computed from the runtime's own values.
      elements: their number of elements.
    - integers_differ: differing codes. floats_differ: differing float outputs, out of `floats`. last_places: their
      largest distance, in units in the last place.
    - explained: differing elements by reason. unexplained: differing elements without one. cases: the first of each
      reason.
    - left: nodes that were not compared, whose values come from the runtime, with the reason.
    """

    asked: str
    ran: str = ""
    reason: str = ""
    frames: int = 0
    left_out: int = 0
    left_out_because: str = ""
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
        """True if every difference is explained, and the file ran unless no comparison was requested."""
        return not self.unexplained and (bool(self.ran) or self.asked == "none")

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """HG058 for each node with an unexplained difference, HG059 if the file was not compared."""
        if not self.ok and not self.ran:
            return [
                Diagnostic(
                    "HG059",
                    self.asked,
                    f"the file was not compared: {self.reason}.",
                    "Choose another --oracle; `--oracle none` verifies without the file.",
                )
            ]
        first_cases: dict[str, Case] = {}
        for case in self.cases.get("unexplained", []):
            first_cases.setdefault(case.node, case)
        return [
            Diagnostic(
                "HG058",
                name,
                f"element {list(case.index)}, frame {case.frame}: {self.ran} gives {case.executor}, hlsgen "
                f"{case.ours}; {case.why}.",
                "Please report it, with the model.",
            )
            for name, case in first_cases.items()
        ]

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
