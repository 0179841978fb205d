"""A progress line on a terminal."""

from __future__ import annotations

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

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

    def layer(self, done: int, total: int, name: str) -> None:
        self.progress.update(self.task, description=f"layer {done + 1} of {total}: {plain(name)}")

    def text(self, text: str) -> None:
        self.progress.update(self.task, description=plain(text))
