"""Variables of a TFLite file as inputs (old values) and outputs (new values) of a Model."""

from __future__ import annotations

from dataclasses import dataclass, field

from hlsgen.ir import Shape


@dataclass
class Variables:
    """Variables while the operators are imported in the order of the file.

    handles: name of a variable, by number of the tensor that is its handle. current: number of the Model's value, by
    name of the variable. new: (shape, dtype) of assigned variables, in the order of their first assignment.
    """

    handles: dict[int, str] = field(default_factory=dict)
    current: dict[str, int] = field(default_factory=dict)
    new: dict[str, tuple[Shape, str]] = field(default_factory=dict)

    def assign(self, name: str, value: int, shape: Shape, dtype: str) -> None:
        self.current[name] = value
        self.new.setdefault(name, (shape, dtype))
