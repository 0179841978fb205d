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
    """A progress line on a terminal, nothing elsewhere."""

    def __init__(self, quiet: bool) -> None:
        self.progress = Progress(
            SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=err, transient=True,
            disable=quiet or not err.is_terminal,
        )  # fmt: skip

    def __enter__(self) -> Watch:
        self.progress.start()
        self.task = self.progress.add_task("reading")
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Takes the line away while something else is printed."""
        self.progress.stop()
        try:
            yield
        finally:
            self.progress.start()

    def layer(self, done: int, total: int, name: str) -> None:
        self.progress.update(self.task, description=f"layer {done + 1} of {total}: {plain(name)}")

    def text(self, text: str) -> None:
        self.progress.update(self.task, description=plain(text))


class Bar:
    """How much of counted work is done, and how long the rest will take: on a terminal, nothing elsewhere."""

    def __init__(self, quiet: bool) -> None:
        self.progress = Progress(
            TextColumn("{task.description}"), BarColumn(30), MofNCompleteColumn(), TimeElapsedColumn(),
            TextColumn("left:"), TimeRemainingColumn(), console=err, transient=True, disable=quiet or not err.is_terminal,
        )  # fmt: skip
        self.name = ""

    def __enter__(self) -> Bar:
        self.progress.start()
        self.task = self.progress.add_task("", total=None)
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def count(self, done: int, total: int, name: str) -> None:
        """So many of `total` pieces are done; with another name other work begins."""
        if name == self.name:
            self.progress.update(self.task, completed=done)
        else:
            self.name = name
            self.progress.reset(self.task, total=total or None, completed=done, description=plain(name))
