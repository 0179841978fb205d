"""The tasks of a worker, in any process on any machine: estimates a network, or synthesizes it. Plain data in and
out."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from hlsgen.diagnostics import Collector, Diagnostic, HlsgenError, fail
from hlsgen.driver.backends import planning_backend
from hlsgen.driver.compile import compile_model, lowered, targets_of
from hlsgen.driver.options import Options, check_options, check_options_for
from hlsgen.driver.smaller_networks import plan_smallest
from hlsgen.explore.points import Place
from hlsgen.explore.settings import split
from hlsgen.frontend.file_kind import kind_of
from hlsgen.ir import Graph
from hlsgen.library import tool_version
from hlsgen.synthesis.synthesize import Order, synthesize


@dataclass(frozen=True)
class Source:
    """A model as one file: its name without suffix, and its bytes. data None: the bytes that `begin` has stored
    here."""

    stem: str
    sha256: str
    data: bytes | None

    def __repr__(self) -> str:
        return f"Source({self.stem!r}, {self.sha256!r})"


def source_of(path: Path, data: bytes) -> Source:
    """The model at that path, with these bytes."""
    return Source(path.stem, hashlib.sha256(data).hexdigest(), data)


@dataclass(frozen=True)
class Outcome:
    """The result of a task: a record for each point, or the problems why there is none. version: version of hlsgen."""

    records: tuple[dict[str, Any], ...]
    problems: tuple[Diagnostic, ...]
    version: str


_lock = threading.Lock()
#: The graph of the last model, with the key that it was made from.
_lowered: tuple[tuple[str, object, str], Graph] | None = None
#: The model that this process works on.
_data: bytes | None = None


def begin(data: bytes) -> None:
    """Starts a child process: stores the model, leaves Ctrl-C to the parent, and ends when the parent ends."""
    global _data
    _data = data
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Waits for the end of the parent, then ends this process."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)  # this also ends running tools
        time.sleep(10)
        os._exit(1)


def graph_of(source: Source, options: Options) -> tuple[Graph, list[Diagnostic]]:
    """The layers of a model, with the warnings about it. Raises every problem found."""
    problems = Collector()
    with problems.catching():
        check_options(options)
    with _file(source) as path:
        options, _, graph = lowered(path, options, problems)
    check_options_for(options, graph)
    return graph, problems.warnings


@contextmanager
def _file(source: Source) -> Iterator[Path]:
    """The model as a temporary file with its name. Raises HG001."""
    try:
        with tempfile.TemporaryDirectory(prefix="hlsgen-") as folder:
            data = source.data or _data or b""
            path = Path(folder) / f"{source.stem}{kind_of(data).suffix}"
            path.write_bytes(data)
            yield path
    except OSError as error:
        raise fail("HG001", "temporary files", f"cannot be written: {error.strerror}.", "Set TMPDIR.") from None


def _graph(source: Source, options: Options) -> Graph:
    """The layers of a model: imported and lowered once per process, as an exploration has one model."""
    global _lowered
    key = (source.sha256, str(options.input), options.add)
    with _lock:
        if _lowered is None or _lowered[0] != key:
            _lowered = key, graph_of(source, options)[0]
        return _lowered[1]


def price(source: Source, network: Options, place: Place) -> Outcome:
    """Cycles of a network, and its resources with each kind of weight memory."""
    try:
        backend = planning_backend(network.target)
        graph = _graph(source, network)
        planned, timing = plan_smallest(graph, targets_of(network), backend)
    except HlsgenError as error:
        return Outcome((), tuple(error.diagnostics), tool_version())
    records = []
    for options in split(network):
        targets = replace(targets_of(options), family=place.family)
        cost = backend.network_cost(planned.nodes, planned.choices, targets)
        records.append({**timing.cycles, **place.counts(cost)})
    return Outcome(tuple(records), (), tool_version())


def measure(source: Source, options: Options, place: Place, seconds: float) -> Outcome:
    """Synthesizes a point, with at most `seconds` for each tool: a record with the output of `hlsgen synth --json`."""
    assert place.device is not None
    try:
        with _file(source) as path:
            build = compile_model(path, options)
        synthesis, _ = synthesize(build, build.files, place.device, Order(seconds), lambda text: None)
    except HlsgenError as error:
        return Outcome((), tuple(error.diagnostics), tool_version())
    return Outcome(({"synthesis": synthesis.as_dict()},), (), tool_version())


def key_of(source: Source, options: Options, place: Place) -> str:
    """The key of a result: the model, all options, the kinds of resources, the version of hlsgen."""
    device = None if place.device is None else place.device.name
    data = {"model": source.sha256, "options": asdict(options), "device": device, "version": tool_version()}
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
