"""A progress line on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from hlsgen.cli.console import err, plain


class Watch:
    """A progress line on a terminal; prints nothing elsewhere."""

    def __init__(self, quiet: bool) -> None:
        self.progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=err,
            transient=True,
            disable=quiet or not err.is_terminal,
        )

    def __enter__(self) -> Watch:
        self.progress.start()
        self.task = self.progress.add_task("reading")
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Hides the line while something else is printed."""
        self.progress.stop()
        try:
            yield
        finally:
            self.progress.start()

    def layer(self, completed: int, total: int, name: str) -> None:
        """Shows that the work on layer number `completed` (from 0) begins."""
        self.progress.update(self.task, description=f"layer {completed + 1} of {total}: {plain(name)}")

    def text(self, text: str) -> None:
        self.progress.update(self.task, description=plain(text))


class Bar:
    """A progress bar of counted work with the remaining time, on a terminal; prints nothing elsewhere."""

    def __init__(self, quiet: bool) -> None:
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(30),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left:"),
            TimeRemainingColumn(),
            console=err,
            transient=True,
            disable=quiet or not err.is_terminal,
        )
        self.name = ""

    def __enter__(self) -> Bar:
        self.progress.start()
        self.task = self.progress.add_task("", total=None)
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def count(self, completed: int, total: int, name: str) -> None:
        """Shows that `completed` of `total` pieces are complete; a new name starts new work."""
        if name == self.name:
            self.progress.update(self.task, completed=completed)
        else:
            self.name = name
            self.progress.reset(self.task, total=total or None, completed=completed, description=plain(name))
