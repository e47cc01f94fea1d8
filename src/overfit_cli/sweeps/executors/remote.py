"""What travels to a worker that may share no disk with this process, and what it does there."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path

import cloudpickle

from overfit_cli import __version__
from overfit_cli.data_folder import VARIABLE
from overfit_cli.errors import UserError
from overfit_cli.functions.study import FunctionStudy
from overfit_cli.functions.travel import Luggage, packed
from overfit_cli.study import AnyStudy
from overfit_cli.sweeps.executors.stage import Stage
from overfit_cli.sweeps.tasks import Task
from overfit_cli.sweeps.worker import TaskRecord, Work, run_task, unable


@dataclass(frozen=True)
class Parcel:
    """What all tasks of a sweep share, as it travels.

    Attributes:
        version: of this package.
        work: pickled; a function's files travel along.
        token: a file in the run directory, by which a worker knows that it sees the directory.
        data: the data folder; empty where none was named.
    """

    version: str
    work: bytes
    token: str
    data: str


def parcel_of(work: Work, token: Path) -> Parcel:
    """Return a sweep's work as it travels.

    Raises:
        Exception: whatever pickling something in the study raises.
    """
    study = packed(work.study) if isinstance(work.study, FunctionStudy) else work.study
    pickled = cloudpickle.dumps((study, work.directory, work.execution, work.data))
    return Parcel(__version__, pickled, str(token), os.environ.get(VARIABLE, ""))


def run_there(parcel: Parcel, task: Task) -> TaskRecord:
    """Train a task in this process; the record carries the rows if the directory isn't seen here.

    A worker that joined late may have another version of this package.
    """
    if parcel.version != __version__:
        return unable(task, f"A worker has overfit {__version__}, and this is {parcel.version}.")
    with _STAGE.set_for(parcel, lambda: _prepare(parcel)):
        work = _opened(parcel)
        if problem := _problem_with_data(work, task):
            return unable(task, problem)
        return run_task(work, task, writes=Path(parcel.token).exists())


_STAGE = Stage()
_OWN_DATA = os.environ.get(VARIABLE, "")
"""Where this process has data, if nobody says so."""


def _prepare(parcel: Parcel) -> None:
    """Set this process up for a sweep: its data folder, and where its function imports from."""
    there = parcel.data and Path(parcel.data).exists()
    os.environ[VARIABLE] = parcel.data if there else _OWN_DATA
    if not os.environ[VARIABLE]:
        del os.environ[VARIABLE]
    study, *_ = cloudpickle.loads(parcel.work)
    if isinstance(study, Luggage):
        study.import_from()
    _opened(parcel)  # here, where no other thread does it too


@functools.lru_cache(maxsize=4)
def _opened(parcel: Parcel) -> Work:
    study, directory, execution, data = cloudpickle.loads(parcel.work)
    opened: AnyStudy = study.unpacked() if isinstance(study, Luggage) else study
    return Work(opened, directory, execution, data)


def _problem_with_data(work: Work, task: Task) -> str:
    """How the data here isn't what the sweep has read; empty where it is, or where it reads none.

    A worker keeps what it has read, so it notices too that a file has changed since.
    """
    if not work.data:
        return ""
    try:
        found = work.study.prepare([cell for _, batch in task for cell in batch])
    except UserError as error:
        return f"A worker lacks what {work.study.name} needs: {error}"
    for name, fingerprint in found.items():
        if work.data.get(name) != fingerprint:
            return (
                f"A worker has other data than this process: its {name} held something else when "
                "it was read."
            )
    return ""
