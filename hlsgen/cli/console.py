"""Prints results of commands: text for people, JSON for machines, diagnostics for both."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape

from hlsgen.diagnostics import Diagnostic, HlsgenError, grouped, printable

out = Console(highlight=False, width=None if sys.stdout is not None and sys.stdout.isatty() else 150)
err = Console(stderr=True, highlight=False)


def plain(text: str) -> str:
    """Text from a model, safe to print: control characters and markup are escaped."""
    return escape(printable(text))


def emit(data: dict[str, Any]) -> None:
    """Prints one JSON object."""
    print(json.dumps(data, indent=2))


def stop(error: HlsgenError, as_json: bool, extra_fields: dict[str, Any] | None = None) -> typer.Exit:
    """Prints all diagnostics, in JSON with `extra_fields`; returns the exit to raise."""
    if as_json:
        emit({"ok": False, **(extra_fields or {}), "diagnostics": [d.as_dict() for d in error.diagnostics]})
    else:
        say_all(error.diagnostics)
        count = sum(d.severity == "error" for d in error.diagnostics)
        err.print(f"{count} problem{'s' if count != 1 else ''}.")
    usage = all(d.code == "HG040" for d in error.diagnostics if d.severity == "error")
    return typer.Exit(2 if usage else 1)


def say_all(diagnostics: Sequence[Diagnostic]) -> None:
    """Prints diagnostics; those that differ only in their node share a line."""
    for diagnostic in grouped(diagnostics):
        say(diagnostic)


def say(diagnostic: Diagnostic) -> None:
    """Prints a diagnostic in its colour."""
    colour = "yellow" if diagnostic.severity == "warning" else "red"
    err.print(f"[{colour}]{diagnostic.severity}[/] {escape(str(diagnostic))}", soft_wrap=True)
