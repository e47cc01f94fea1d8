"""Where cells train: the options that say it, and the executor that they name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, get_args

import typer

from overfit_cli.cli import completion
from overfit_cli.cli.options import read_number, read_one_of
from overfit_cli.errors import UserError

if TYPE_CHECKING:
    from overfit_cli.sweeps.executors.executor import Executor

_BACKENDS = ("loky", "threading", "dask", "ray")
Jobs = Annotated[
    str,
    typer.Option(
        metavar="N", help="Cells to train at the same time; -1 means one per core, or all workers."
    ),
]
BackendName = Annotated[
    str,
    typer.Option(
        "--backend",
        metavar="|".join(_BACKENDS),
        help="Processes (loky) or threads of this machine, or a cluster.",
        autocompletion=completion.one_of(*_BACKENDS),
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="With --backend dask: the scheduler, such as tcp://10.0.0.1:8786."
    ),
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS", help="With --backend ray: the cluster, such as 10.0.0.1:6379, or auto."
    ),
]


def read_executor(
    backend: str, jobs: str, device: str, scheduler: str | None, address: str | None
) -> Executor:
    """Return who trains, as the options say it.

    Raises:
        UserError: if one of them isn't taken, or no cluster answers.
    """
    from overfit_cli.device import Device
    from overfit_cli.sweeps.executors.choosing import Backend, executor_of

    return executor_of(
        read_one_of("--backend", backend, get_args(Backend)),
        read_jobs(jobs),
        read_one_of("--device", device, get_args(Device)),
        {"--scheduler": scheduler, "--address": address},
    )


def read_jobs(text: str) -> int:
    """Return the number of jobs that is asked for; -1 for as many as there is room for.

    Raises:
        UserError: if the text is no such number.
    """
    accepts = "a whole number of at least 1, or -1 for one per core"
    asked = int(read_number("--jobs", text, accepts, whole=True))
    if asked < -1 or asked == 0:
        raise UserError(f"--jobs {text}: it takes {accepts}.")
    return asked
