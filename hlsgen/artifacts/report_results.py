"""What report.html says of verification and synthesis: rows of numbers, from results that may lack any part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def verified(result: Mapping[str, Any]) -> dict[str, Any]:
    """What `verify --json` prints: a row for each of what the build was held against."""
    model, oracle = result.get("model"), result.get("oracle")
    rows = [_row("steps of the model", model)] if model else []
    if oracle and oracle.get("asked") != "none":
        name = f"the file in {oracle['ran']}" if oracle.get("ran") else "the file, not compared"
        rows.append(_row(name, {**oracle, "mismatches": oracle.get("unexplained")}))
    if host := result.get("host"):
        counts = (host.get("differences") or {}).values()
        rows.append(_row("host code", {**host, "mismatches": sum(n for n in counts if isinstance(n, int))}))
    rows += [_row(name, {**found, "frames": found.get("samples")}) for name, found in result["simulators"].items()]
    return {"ok": result.get("ok") is True, "notes": list(map(str, result.get("notes") or ())), "rows": rows}


def _row(name: object, found: Mapping[str, Any]) -> dict[str, Any]:
    cycles = found.get("cycles") or {}
    numbers = (found.get("frames"), found.get("mismatches"), cycles.get("latency"), cycles.get("interval"))
    sorts = sorted((found.get("explained") or {}).items())
    more = ", ".join(f"{_whole(count)} ({sort})" for sort, count in sorts)
    return {
        "name": str(name), "ok": found.get("ok") is True, "explained": f", explained: {more}" if more else "",
        "numbers": [_whole(number) for number in numbers],
    }  # fmt: skip


def measured(result: Mapping[str, Any]) -> dict[str, Any]:
    """What `synth --json` prints: each count beside its estimate and what the device has, and the slowest path."""
    estimate, available, kinds = (result.get(key) or {} for key in ("estimate", "available", "kinds"))
    rows = []
    for key, label in (("lut", "LUT"), ("ff", "FF"), ("bram", "BRAM"), ("dsp", "DSP")):
        have, said, there = result.get(key), estimate.get(key), available.get(key)
        if have is not None:
            most = max(have, said or 0, 1)
            rows.append({
                "label": str(kinds.get(key) or label), "have": _whole(have), "said": _whole(said), "there": _whole(there),
                "bar": 100 * have / most, "mark": None if said is None else 100 * said / most,
            })  # fmt: skip
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
    """A piece of a path: where it is, and its nanoseconds if they are there."""
    if not isinstance(part, Mapping):
        return {"where": str(part), "delay": None, "routing": None}
    names = [str(part[key]) for key in ("layer", "module") if part.get(key)]
    delay, routing = part.get("delay_ns"), part.get("routing_ns")
    return {
        "where": ", ".join(names) or str(part.get("instance") or "ports"),
        "delay": None if delay is None else f"{delay:.2f}",
        "routing": None if routing is None else f"{routing:.2f}",
    }


def _whole(number: Any) -> str:
    return "" if number is None else f"{number:,}"
