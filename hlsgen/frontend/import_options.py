"""Options of an import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class ImportOptions:
    """Options that change the imported Model; `import_model` describes them. `runtime` is resolved, not "auto"."""

    fixed_point: bool
    typed: Mapping[str, bool]
    once: bool
    pairs: bool
    runtime: str
    last_softmax_in_hardware: bool = False
