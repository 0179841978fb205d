"""Runs an exploration: what is known is read, the rest is shared out, and every result is kept as it comes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hlsgen.devices import CLOCK_MHZ, device
from hlsgen.diagnostics import Collector, Diagnostic, HlsgenError, fail
from hlsgen.driver.declaration import declared
from hlsgen.driver.fit import SHARE
from hlsgen.driver.options import Options
from hlsgen.explore import drawing, workers
from hlsgen.explore.front import marked
from hlsgen.explore.points import ANSWERED, VARIED, Place, Point, said
from hlsgen.explore.records import Records, write_picture
from hlsgen.explore.settings import settings, split
from hlsgen.explore.work import Outcome, Source, graph_of, key_of, measure, price, source_of
from hlsgen.frontend import self_contained
from hlsgen.library import tool_version

#: Networks that are tried by default.
NETWORKS = 24
_LEAVE = "Leave the option out; a device is an argument of the exploration itself."
#: Most seconds that a tool may take.
MAX_SECONDS = 7 * 86400
#: Problems that every network has: what an option asks for, and tools that are not there.
_HOPELESS = ("HG040", "HG052")
#: Called with the pieces of work that are done, with all of them, and what they are.
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Order:
    """What is to be explored: where networks are to fit, how many are tried, whether the front is synthesized.

    output: the folder for results, None: none is written. seconds: that each tool of a synthesis may take. jobs: processes, None: one for each processor.
    cluster: address of a scheduler of dask.distributed, instead of processes.
    """

    place: Place = field(default_factory=Place)
    networks: int = NETWORKS
    synth: bool = False
    output: Path | None = None
    seconds: float = 3600.0
    jobs: int | None = None
    cluster: str | None = None


@dataclass
class Exploration:
    """What has been found so far: points in the order in which they are told, and warnings.

    networks: those that are tried. known: points that an earlier sweep has left.
    """

    points: list[Point] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)
    networks: int = 0
    known: int = 0


def place_of(name: str | None, clock_mhz: float | None) -> Place:
    """A device by name, with its clock unless there is another. Raises HG040."""
    if clock_mhz is not None and not 0 < clock_mhz <= 1e6:
        raise fail("HG040", "--clock-mhz", f"{clock_mhz}.", "Supported: a number greater than 0, to 1e6.")
    found = None if name is None else device(name)
    return Place(found, clock_mhz or (found.clock_mhz if found else CLOCK_MHZ))


def run(
    path: Path, base: Options, order: Order, executor: Executor | None = None,
    progress: Progress = lambda done, total, text: None, found: Exploration | None = None,
) -> Exploration:  # fmt: skip
    """Explores a model. `found` has what was found, however this ends.

    Raises HG001, HG040, HG060, HG075, what the model gives, and what networks give if none can be made.
    """
    found = Exploration() if found is None else found
    _check(base, order)
    progress(0, 0, "reading the model")
    source = source_of(path, self_contained(path))
    graph, found.warnings[:] = graph_of(source, base)
    networks = settings(graph, base, order.place, order.networks)
    points = {key_of(source, point, order.place): point for network in networks for point in split(network)}
    with ExitStack() as stack:
        records = Records(order.output)
        stack.callback(records.close)
        found.networks, found.known = len(networks), sum(key in records.found for key in points)
        try:
            sweep = _Sweep(source, order, executor, progress, records, found.warnings)
            sweep.price(networks)
            if order.synth:
                sweep.measure([p.options for p in _points(points, order.place, records) if p.front])
        finally:
            found.points[:] = _points(points, order.place, records)
            if order.output is not None and found.points:
                write_picture(order.output, drawing.picture(found.points, path.stem))
    if not found.points:
        raise HlsgenError([replace(problem, severity="error") for problem in found.warnings])
    return found


def _check(base: Options, order: Order) -> None:
    """Raises HG040, every problem that is there without a model."""
    problems = Collector()
    for one in declared(Options):
        if one.name in (*VARIED, *ANSWERED) and getattr(base, one.name) != one.default:
            flag = one.declaration.flag or one.name
            problems.error("HG040", flag, "an exploration tries what there is.", _LEAVE)
    if order.networks < 1:
        problems.error("HG040", "--points", f"{order.networks}.", "Supported: 1 and greater.")
    if order.jobs is not None and order.jobs < 1:
        problems.error("HG040", "--jobs", f"{order.jobs}.", "Supported: 1 and greater.")
    if order.cluster is not None and order.jobs is not None:
        problems.error("HG040", "--jobs", "given together with --cluster.", "The workers of a cluster are what it has.")
    if order.synth and order.place.device is None:
        problems.error("HG040", "--synth", "needs a device.", "Name one with --device.")
    if not 0 < order.seconds <= MAX_SECONDS:
        problems.error("HG040", "--timeout", f"{order.seconds:g}.", f"Supported: above 0, to {MAX_SECONDS}.")
    problems.finish()


@dataclass
class _Sweep:
    """What an exploration has to be done, and where the results go."""

    source: Source
    order: Order
    executor: Executor | None
    progress: Progress
    records: Records
    warnings: list[Diagnostic]

    def price(self, networks: Sequence[Options]) -> None:
        """Prices the networks of which not all points are known."""
        open_ = [n for n in networks if any(self._key(point) not in self.records.found for point in split(n))]
        calls = [(network, self.order.place) for network in open_]
        self._work("networks", price, calls, [split(network) for network in open_], len(networks))

    def measure(self, points: Sequence[Options]) -> None:
        """Synthesizes the points that are not measured yet."""
        open_ = [point for point in points if self._key(point) not in self.records.measured]
        calls = [(point, self.order.place, self.order.seconds) for point in open_]
        self._work("syntheses", measure, calls, [[point] for point in open_], len(points))

    def _work(
        self, name: str, function: Callable[..., Outcome], calls: Sequence[tuple[object, ...]],
        points: Sequence[Sequence[Options]], total: int,
    ) -> None:  # fmt: skip
        """Makes the calls, each of which gives a record for each of its points. Raises HG040, HG052, HG075."""
        done = total - len(calls)
        self.progress(done, total, name)
        with ExitStack() as stack:
            source, executor = self._workers(stack, len(calls))
            for n, outcome in workers.results(executor, function, [(source, *call) for call in calls]):
                self._take(points[n], outcome)
                done += 1
                self.progress(done, total, name)

    def _workers(self, stack: ExitStack, pieces: int) -> tuple[Source, Executor | None]:
        """Who does so many pieces of work, and the model as they are told it. None: this process."""
        if self.executor is not None or not pieces:
            return self.source, self.executor
        if self.order.cluster is not None:
            return self.source, stack.enter_context(workers.cluster(self.order.cluster))
        jobs = min(self.order.jobs or workers.processors(), pieces)
        if jobs == 1:
            return self.source, None
        assert self.source.data is not None
        return replace(self.source, data=None), stack.enter_context(workers.processes(jobs, self.source.data))

    def _take(self, points: Sequence[Options], outcome: Outcome) -> None:
        """Keeps what came of a piece of work."""
        if outcome.version != tool_version():
            text = f"a worker has hlsgen {outcome.version}, this is {tool_version()}."
            raise fail("HG075", "worker", text, "Install the same version on all machines.")
        if any(problem.code in _HOPELESS for problem in outcome.problems):
            raise HlsgenError(list(outcome.problems))
        new = [replace(problem, severity="warning") for problem in outcome.problems]
        self.warnings += [problem for problem in new if problem not in self.warnings]
        if outcome.records:
            self.records.add(self._line(*both) for both in zip(points, outcome.records, strict=True))

    def _line(self, point: Options, record: Mapping[str, Any]) -> dict[str, Any]:
        """What is kept of a point; the key comes first."""
        device = None if self.order.place.device is None else self.order.place.device.name
        about = {"model": self.source.stem, "sha256": self.source.sha256, "version": tool_version(), "device": device}
        return {"key": self._key(point), **about, "options": said(point), **record}

    def _key(self, point: Options) -> str:
        return key_of(self.source, point, self.order.place)


def _points(points: dict[str, Options], place: Place, records: Records) -> list[Point]:
    """What is known of the points that were asked for, the front marked."""
    return marked(
        [
            Point(options, place, **records.found[key], measured=records.measured.get(key))
            for key, options in points.items()
            if key in records.found
        ]
    )


def none_fits(points: Sequence[Point]) -> None:
    """Raises HG070 if there is a device and no point fits it."""
    if points and not any(point.fits for point in points):
        least = min(points, key=lambda point: point.share or 0.0)
        device, kind = least.place.device, least.scarcest
        assert device is not None
        raise fail(
            "HG070",
            device.name,
            f"none of {len(points)} networks takes at most {100 * SHARE:.0f} % of it; the one that takes the least has about "
            f"{least.counts[kind]} of {getattr(device, kind)} {least.place.kinds[kind]}, with {least.flags}.",
            "Choose a larger device.",
        )
