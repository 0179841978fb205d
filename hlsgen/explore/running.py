"""Runs an exploration: reads known results, distributes the remaining work, and stores every result as it arrives."""

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
from hlsgen.explore.points import ANSWERED, VARIED, Place, Point, changed_options
from hlsgen.explore.records import Records, write_picture
from hlsgen.explore.settings import settings, split
from hlsgen.explore.work import Outcome, Source, graph_of, key_of, measure, price, source_of
from hlsgen.frontend import self_contained
from hlsgen.library import tool_version

#: Default number of networks.
NETWORKS = 24
_LEAVE = "Leave the option out; a device is an argument of the exploration itself."
#: Largest time limit of a tool, in seconds.
MAX_SECONDS = 7 * 86400
#: Codes of problems that every network would have: impossible options, missing tools.
_HOPELESS = ("HG040", "HG052")
#: Called with the number of finished tasks, the number of all tasks, and their kind.
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Order:
    """The request of an exploration.

    - place: device and clock. networks: number of networks that are tried. synth: synthesize the front.
    - output: the folder for results, or None to write nothing. seconds: time limit of each tool of a synthesis.
    - jobs: processes, or None for one per processor. cluster: address of a scheduler of dask.distributed, instead of
      processes.
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
    """The results so far: points in the order of `order`, and warnings.

    networks: number of networks that are tried. stored: number of points that an earlier sweep has stored.
    """

    points: list[Point] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)
    networks: int = 0
    stored: int = 0


def place_of(name: str | None, clock_mhz: float | None) -> Place:
    """The device with this name, with its clock unless another one is given. Raises HG040."""
    if clock_mhz is not None and not 0 < clock_mhz <= 1e6:
        raise fail("HG040", "--clock-mhz", f"{clock_mhz}.", "Supported: a number greater than 0, to 1e6.")
    named_device = None if name is None else device(name)
    return Place(named_device, clock_mhz or (named_device.clock_mhz if named_device else CLOCK_MHZ))


def run(
    path: Path,
    base: Options,
    order: Order,
    executor: Executor | None = None,
    progress: Progress = lambda finished, total, text: None,
    exploration: Exploration | None = None,
) -> Exploration:
    """Explores a model. `exploration` receives the results, even if this raises.

    Raises HG001, HG040, HG060, HG075, the problems of the model, and the problems of the networks if none is possible.
    """
    exploration = Exploration() if exploration is None else exploration
    _check(base, order)
    progress(0, 0, "reading the model")
    source = source_of(path, self_contained(path))
    graph, exploration.warnings[:] = graph_of(source, base)
    networks = settings(graph, base, order.place, order.networks)
    points = {key_of(source, point, order.place): point for network in networks for point in split(network)}
    with ExitStack() as stack:
        records = Records(order.output)
        stack.callback(records.close)
        exploration.networks, exploration.stored = len(networks), sum(key in records.priced for key in points)
        try:
            sweep = _Sweep(source, order, executor, progress, records, exploration.warnings)
            sweep.price(networks)
            if order.synth:
                sweep.measure([p.options for p in _points(points, order.place, records) if p.front])
        finally:
            exploration.points[:] = _points(points, order.place, records)
            if order.output is not None and exploration.points:
                write_picture(order.output, drawing.picture(exploration.points, path.stem))
    if not exploration.points:
        raise HlsgenError([replace(problem, severity="error") for problem in exploration.warnings])
    return exploration


def _check(base: Options, order: Order) -> None:
    """Raises HG040 with every problem that can be found before reading the model."""
    problems = Collector()
    for option in declared(Options):
        if option.name in (*VARIED, *ANSWERED) and getattr(base, option.name) != option.default:
            flag = option.declaration.flag or option.name
            problems.error("HG040", flag, "an exploration chooses it itself.", _LEAVE)
    if order.networks < 1:
        problems.error("HG040", "--points", f"{order.networks}.", "Supported: 1 and greater.")
    if order.jobs is not None and order.jobs < 1:
        problems.error("HG040", "--jobs", f"{order.jobs}.", "Supported: 1 and greater.")
    if order.cluster is not None and order.jobs is not None:
        problems.error(
            "HG040", "--jobs", "given together with --cluster.", "Leave out --jobs: the cluster has its own workers."
        )
    if order.synth and order.place.device is None:
        problems.error("HG040", "--synth", "needs a device.", "Name one with --device.")
    if not 0 < order.seconds <= MAX_SECONDS:
        problems.error("HG040", "--timeout", f"{order.seconds:g}.", f"Supported: above 0, to {MAX_SECONDS}.")
    problems.finish()


@dataclass
class _Sweep:
    """The parameters of an exploration in progress, and the destination of its results."""

    source: Source
    order: Order
    executor: Executor | None
    progress: Progress
    records: Records
    warnings: list[Diagnostic]

    def price(self, networks: Sequence[Options]) -> None:
        """Estimates the networks that have a point without a result."""
        open_ = [n for n in networks if any(self._key(point) not in self.records.priced for point in split(n))]
        calls = [(network, self.order.place) for network in open_]
        self._work("networks", price, calls, [split(network) for network in open_], len(networks))

    def measure(self, points: Sequence[Options]) -> None:
        """Synthesizes the points that are not measured yet."""
        open_ = [point for point in points if self._key(point) not in self.records.measured]
        calls = [(point, self.order.place, self.order.seconds) for point in open_]
        self._work("syntheses", measure, calls, [[point] for point in open_], len(points))

    def _work(
        self,
        name: str,
        function: Callable[..., Outcome],
        calls: Sequence[tuple[object, ...]],
        points: Sequence[Sequence[Options]],
        total: int,
    ) -> None:
        """Makes the calls, each of which returns a record for each of its points. Raises HG040, HG052, HG075."""
        finished = total - len(calls)
        self.progress(finished, total, name)
        with ExitStack() as stack:
            source, executor = self._workers(stack, len(calls))
            for n, outcome in workers.results(executor, function, [(source, *call) for call in calls]):
                self._take(points[n], outcome)
                finished += 1
                self.progress(finished, total, name)

    def _workers(self, stack: ExitStack, pieces: int) -> tuple[Source, Executor | None]:
        """The executor for `pieces` tasks, and the model as its tasks receive it. None: this process."""
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
        """Stores the result of a task."""
        if outcome.version != tool_version():
            text = f"a worker has hlsgen {outcome.version}, this is {tool_version()}."
            raise fail("HG075", "worker", text, "Install the same version on all machines.")
        if any(problem.code in _HOPELESS for problem in outcome.problems):
            raise HlsgenError(list(outcome.problems))
        new = [replace(problem, severity="warning") for problem in outcome.problems]
        self.warnings += [problem for problem in new if problem not in self.warnings]
        if outcome.records:
            self.records.add(self._line(*pair) for pair in zip(points, outcome.records, strict=True))

    def _line(self, point: Options, record: Mapping[str, Any]) -> dict[str, Any]:
        """The stored line of a point; the key comes first."""
        device = None if self.order.place.device is None else self.order.place.device.name
        origin = {"model": self.source.stem, "sha256": self.source.sha256, "version": tool_version(), "device": device}
        return {"key": self._key(point), **origin, "options": changed_options(point), **record}

    def _key(self, point: Options) -> str:
        return key_of(self.source, point, self.order.place)


def _points(points: dict[str, Options], place: Place, records: Records) -> list[Point]:
    """The points with a result, with the front marked."""
    return marked(
        [
            Point(options, place, **records.priced[key], measured=records.measured.get(key))
            for key, options in points.items()
            if key in records.priced
        ]
    )


def none_fits(points: Sequence[Point]) -> None:
    """Raises HG070 if there is a device and no point fits it."""
    if points and not any(point.fits for point in points):
        smallest = min(points, key=lambda point: point.share or 0.0)
        device, kind = smallest.place.device, smallest.scarcest
        assert device is not None
        raise fail(
            "HG070",
            device.name,
            f"none of {len(points)} networks takes at most {100 * SHARE:.0f} % of it; the smallest needs about "
            f"{smallest.counts[kind]} of {getattr(device, kind)} {smallest.place.kinds[kind]}, with {smallest.flags}.",
            "Choose a larger device.",
        )
