"""Workers: joblib's threads or processes, and how a worker process starts."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import joblib
from joblib.externals.loky import get_reusable_executor

from overfit_cli.display import make_streams_patient
from overfit_cli.ending import end_quickly
from overfit_cli.sweeps.interrupts import ignoring_interrupts

Backend = Literal["loky", "threading"]
Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
"""A function with its arguments, as `joblib.delayed` gives it."""

_SAFE_PATH, _OURS = "PYTHONSAFEPATH", "overfit"


@dataclass(frozen=True)
class Workforce:
    """Who trains: how many jobs, on which joblib backend."""

    jobs: int
    backend: Backend

    @property
    def has_processes(self) -> bool:
        """Whether cells are trained in other processes than this one."""
        return self.backend == "loky" and self.jobs > 1

    def for_batches(self, batches: int) -> Workforce:
        """Return those of these workers that so many batches keep busy.

        At least two where two were asked for: a cell that kills its worker is then a failed row,
        and in one job would be the end of this process.
        """
        return Workforce(min(self.jobs, max(2, batches)), self.backend)


def jobs_on(device: str, asked: int) -> int:
    """Return how many cells to train at a time; -1 is one per core.

    On a GPU that is one: a batch fills it.
    """
    if device == "cuda" and asked < 0:
        return 1
    return max(1, int(joblib.effective_n_jobs(asked)))


def in_parallel(workforce: Workforce, calls: Iterable[Call], ahead: int) -> Iterator[Any]:
    """Make the calls and give their results as they come; no process outlives an interrupt.

    Args:
        workforce: jobs and backend.
        calls: taken as they are handed out.
        ahead: how many calls per job are handed out at a time.

    Raises:
        TerminatedWorkerError: when a worker process is killed.
        KeyboardInterrupt: when interrupted; worker processes are gone then.
    """
    limits, start = {}, {}
    if workforce.has_processes:
        limits = {"inner_max_num_threads": 1}
        start = {"initializer": start_worker, "initargs": (os.getpid(),)}
    with joblib.parallel_config(backend=workforce.backend, **limits), safe_path():
        parallel = joblib.Parallel(
            n_jobs=workforce.jobs,
            return_as="generator_unordered",
            batch_size=1,
            pre_dispatch=ahead * workforce.jobs,
            **start,
        )
        # Workers start inside this call and inherit what it does with Ctrl-C: only this process
        # answers it.
        with ignoring_interrupts():
            results = parallel(calls)
        try:
            for result in results:  # noqa: UP028 (`yield from` would pass GeneratorExit on)
                yield result
        except GeneratorExit:
            # Ctrl-C came while a result was dealt with. joblib ends its workers; it would advise
            # on the tasks that it cancels.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                results.close()
            raise
        except KeyboardInterrupt:
            if workforce.has_processes:
                get_reusable_executor().shutdown(wait=False, kill_workers=True)
            raise


@contextlib.contextmanager
def safe_path() -> Iterator[None]:
    """Have processes that start inside not import what lies in the working folder.

    Somebody's `json.py` there would take the place of Python's own while a worker starts.
    """
    if _SAFE_PATH in os.environ:
        yield
        return
    os.environ[_SAFE_PATH] = _OURS
    try:
        yield
    finally:
        del os.environ[_SAFE_PATH]


def start_worker(parent: int) -> None:
    """Start a worker process: it doesn't answer Ctrl-C, and ends soon after its parent is gone.

    It must come before the first batch: a worker whose parent is killed while it waits for one
    would wait for good.
    """
    if os.environ.get(_SAFE_PATH) == _OURS:  # what a cell starts is the cell's business
        del os.environ[_SAFE_PATH]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    make_streams_patient()
    end_quickly()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
