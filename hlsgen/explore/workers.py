"""Runs the work: in this process, in child processes, in a given executor, or on a cluster of dask.distributed."""

from __future__ import annotations

import multiprocessing
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeVar

from hlsgen.diagnostics import fail
from hlsgen.explore.work import begin
from hlsgen.installation import install_command

T = TypeVar("T")
#: Seconds within which a cluster must answer.
PATIENCE = 30
#: Names of the exceptions of concurrent.futures and dask.distributed for work whose worker is lost.
_LOST = ("BrokenProcessPool", "BrokenThreadPool", "CancelledError", "KilledWorker", "FutureCancelledError")


def processors() -> int:
    """Number of processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def results(
    executor: Executor | None, function: Callable[..., T], calls: Sequence[tuple[object, ...]]
) -> Iterator[tuple[int, T]]:
    """(index, result) of each call, in the order of completion.

    executor None: sequentially in this process. Raises HG075.
    """
    if executor is None:
        for n, arguments in enumerate(calls):
            yield n, function(*arguments)
        return
    futures = {}
    try:
        try:
            futures = {executor.submit(function, *arguments): n for n, arguments in enumerate(calls)}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except Exception as error:
            if type(error).__name__ not in _LOST:
                raise
            text = "the process that did the work has ended: killed, or out of memory."
            hint = (
                "Use fewer --jobs, so that each has more memory. Results are kept with -o: the next run does the rest."
            )
            raise fail("HG075", "worker", text, hint) from None
    finally:
        for future in futures:
            future.cancel()


@contextmanager
def processes(count: int, data: bytes) -> Iterator[Executor]:
    """A pool of `count` processes that have the model.

    They end with this process; at an exception they are terminated at once.
    """
    earlier_children = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), begin, (data,))
    completed = False
    try:
        yield pool
        completed = True
    finally:
        if not completed:
            children = set(multiprocessing.active_children()) - earlier_children
            pool.shutdown(wait=False, cancel_futures=True)
            for child in children:
                child.terminate()
            for child in children:
                child.join(5)
                child.kill()
                while child.is_alive():  # join returns at once while the pool's own thread is collecting the process
                    time.sleep(0.01)
        pool.shutdown()


@contextmanager
def cluster(address: str) -> Iterator[Executor]:
    """The workers of a scheduler of dask.distributed. Raises HG052 if it is not installed, HG075 if it does not
    answer."""
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        hint = f"{install_command('cluster')}."
        raise fail("HG052", "--cluster", "needs dask.distributed, which is not installed.", hint) from None
    try:
        client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        text = f"{address}: {' '.join(str(error).split()) or type(error).__name__}."
        hint = "Start `dask scheduler` and `dask worker`, and give tcp://HOST:PORT."
        raise fail("HG075", "--cluster", text, hint) from None
    with client, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sending large graph")  # each task includes the model
        yield client.get_executor(pure=False)
