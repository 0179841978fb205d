"""Rows of report.html on verification and synthesis, from results in which any part may be missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def verified(result: Mapping[str, Any]) -> dict[str, Any]:
    """Rows for the output of `verify --json`: one for each comparison."""
    model, oracle = result.get("model"), result.get("oracle")
    rows = [_row("layers of the model", model)] if model else []
    if oracle and oracle.get("asked") != "none":
        name = f"the file in {oracle['ran']}" if oracle.get("ran") else "the file, not compared"
        rows.append(_row(name, {**oracle, "mismatches": oracle.get("unexplained")}))
    if host := result.get("host"):
        counts = (host.get("differences") or {}).values()
        rows.append(_row("host code", {**host, "mismatches": sum(n for n in counts if isinstance(n, int))}))
    rows += [
        _row(name, {**simulator, "frames": simulator.get("samples")})
        for name, simulator in result["simulators"].items()
    ]
    return {"ok": result.get("ok") is True, "notes": list(map(str, result.get("notes") or ())), "rows": rows}


def _row(name: object, part: Mapping[str, Any]) -> dict[str, Any]:
    cycles = part.get("cycles") or {}
    numbers = (part.get("frames"), part.get("mismatches"), cycles.get("latency"), cycles.get("interval"))
    sorts = sorted((part.get("explained") or {}).items())
    sorts_text = ", ".join(f"{_thousands(count)} ({sort})" for sort, count in sorts)
    return {
        "name": str(name),
        "ok": part.get("ok") is True,
        "explained": f", explained: {sorts_text}" if sorts_text else "",
        "numbers": [_thousands(number) for number in numbers],
    }


def measured(result: Mapping[str, Any]) -> dict[str, Any]:
    """Rows for the output of `synth --json`: used, estimated and available resources, and the critical path."""
    estimate, available, kinds = (result.get(key) or {} for key in ("estimate", "available", "kinds"))
    rows = []
    for key, label in (("lut", "LUT"), ("ff", "FF"), ("bram", "BRAM"), ("dsp", "DSP")):
        used, estimated, in_device = result.get(key), estimate.get(key), available.get(key)
        if used is not None:
            scale = max(in_device or 0, used, estimated or 0, 1)
            rows.append(
                {
                    "label": str(kinds.get(key) or label),
                    "have": _thousands(used),
                    "said": _thousands(estimated),
                    "there": _thousands(in_device),
                    "bar": 100 * used / scale,
                    "mark": None if estimated is None else 100 * estimated / scale,
                }
            )
    fmax, rate = result.get("fmax_mhz"), result.get("frames_per_second")
    return {
        "device": str(result["device"]),
        "fmax": None if fmax is None else f"{fmax:.1f}",
        "rate": None if rate is None else f"{rate:,.0f}",
        "placed": result.get("placed") is True,
        "why": str(result.get("why_not_placed") or "only counts of cells"),
        "rows": rows,
        "path": [_part(part) for part in result.get("critical_path") or ()],
    }


def _part(part: object) -> dict[str, Any]:
    """A piece of a path: its place, and its nanoseconds if they are known."""
    if not isinstance(part, Mapping):
        return {"where": str(part), "delay": None, "routing": None}
    names = [str(part[key]) for key in ("layer", "module") if part.get(key)]
    delay, routing = part.get("delay_ns"), part.get("routing_ns")
    return {
        "where": ", ".join(names) or str(part.get("instance") or "ports"),
        "delay": None if delay is None else f"{delay:.2f}",
        "routing": None if routing is None else f"{routing:.2f}",
    }


def _thousands(number: Any) -> str:
    return "" if number is None else f"{number:,}"
