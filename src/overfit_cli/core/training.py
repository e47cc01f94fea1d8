"""What every training shares: the device, random streams, the log of steps, reasons of failure.

All randomness of a cell derives from its seed and the name of a stream. PyTorch is imported only
where a tensor is made, or where there may be a GPU.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from overfit_cli.core.text import UserError
from overfit_cli.core.values import DeviceChoice

if TYPE_CHECKING:
    from overfit_cli.core.cell import Cell


def resolve_device(asked: DeviceChoice, *, here: bool = True) -> Literal["cpu", "cuda"]:
    """Return the device for `asked`; `auto` is a GPU where there is one.

    Args:
        asked: what `--device` says.
        here: whether this machine trains; of another one only that is known what is asked for.

    Raises:
        UserError: if `cuda` is asked for and there is none.
    """
    if not here:
        return "cuda" if asked == "cuda" else "cpu"
    if asked == "cpu" or (asked == "auto" and not _may_have_gpu()):
        return "cpu"
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if asked == "cuda":
        raise UserError(
            "--device cuda: PyTorch finds no CUDA device here; --device takes auto, cpu, or cuda "
            "on a machine with an NVIDIA GPU and a CUDA build of PyTorch."
        )
    return "cpu"


def _may_have_gpu() -> bool:
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/dxg").exists()


def named_rng(seed: int, *names: str) -> np.random.Generator:
    """Return the generator of the stream `names` of a cell's `seed`.

    Streams of different names or seeds are independent; the same seed and names always give the
    same numbers. By convention the first name is `init`, `train` or `test`, so training and test
    draws never share a stream. Draws are made on the CPU whatever the device that trains.
    """
    words = tuple(zlib.crc32(name.encode()) for name in names)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=words)))


@contextlib.contextmanager
def torch_draws(draws: np.random.Generator, device: str = "cpu") -> Iterator[None]:
    """Have PyTorch's one generator draw from a stream inside, and outside as it would have.

    It is for code of others that draws from that generator. On a GPU draws are made there.
    """
    import torch

    with torch.random.fork_rng(devices=[torch.cuda.current_device()] if device == "cuda" else []):
        torch.manual_seed(int(draws.integers(2**63)))
        yield


Device = Literal["cpu", "cuda"]
Row = Mapping[str, float]

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Execution:
    """How cells are trained, not what is trained: nothing in here changes a number.

    Attributes:
        device: `cpu` or `cuda`.
        trajectories: whether steps are logged.
        on_step: called with each logged row (`step` and the trajectory columns) as it comes.
        fail_fast: whether a failed cell ends the task that it is in, and the sweep.
    """

    device: Device = "cpu"
    trajectories: bool = False
    on_step: Callable[[Row], None] | None = None
    fail_fast: bool = False


class Training:
    """One batch being trained: its device, and the log of its cells' steps.

    Args:
        execution: how.
    """

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._logged: dict[str, dict[str, list[Any]]] = {}
        self._steps: dict[str, int] = {}

    @property
    def device(self) -> Device:
        """Where to train."""
        return self._execution.device

    @property
    def logs(self) -> bool:
        """Whether steps are wanted. What is costly to measure may be left out where they aren't."""
        return self._execution.trajectories

    def log(self, cell: Cell[Any], step: float, row: Row) -> None:
        """Log a step of a cell; without effect where no steps are wanted.

        Args:
            cell: one of the batch.
            step: which step; larger than the one before.
            row: values by the names of the study's `trajectory_columns`.
        """
        self._steps[cell.key] = int(step)
        if not self.logs:
            return
        columns = self._logged.setdefault(cell.key, {"step": []})
        before = len(columns["step"])
        for name, value in {"step": step, **row}.items():
            columns.setdefault(name, [None] * before).append(value)
        for values in columns.values():
            values.extend([None] * (before + 1 - len(values)))
        if self._execution.on_step is not None:
            self._execution.on_step({"step": step, **row})

    def trajectory(self, cell: Cell[Any]) -> Mapping[str, Sequence[float]]:
        """Return what was logged of a cell, by `step` and column; empty where nothing was."""
        return self._logged.get(cell.key, {})

    def steps_logged(self, cell: Cell[Any]) -> int:
        """Return the last step of a cell that was logged, or would have been; 0 without any."""
        return self._steps.get(cell.key, 0)


def logged_steps(steps: int, first: int = 10, ratio: float = 1.08) -> list[int]:
    """Return the steps to log of a training of so many: the first ones, then by ratio, the last.

    Args:
        steps: how many are taken.
        first: up to which step every one is logged.
        ratio: of a logged step to the one before.
    """
    chosen = list(range(min(first, steps) + 1))
    while chosen[-1] < steps:
        chosen.append(min(max(chosen[-1] + 1, round(chosen[-1] * ratio)), steps))
    return chosen


def finite(row: Row) -> dict[str, float]:
    """Return a row without what isn't finite: a value that a cell doesn't have is left out."""
    return {name: float(value) for name, value in row.items() if math.isfinite(value)}


def without_nan(row: Row) -> dict[str, float]:
    """Return a row without nan, where infinity is a value: a bound that nothing meets."""
    return {name: value for name, value in row.items() if not math.isnan(value)}


def failure(loss: float, at_most: float = math.inf) -> str:
    """Return why a training has failed that ended with this loss; empty where it hasn't.

    `diverged` where the loss isn't finite, `step limit` where it isn't down to `at_most`.
    """
    if not math.isfinite(loss):
        return "diverged"
    return "" if loss <= at_most else "step limit"


@contextlib.contextmanager
def training_conditions() -> Iterator[None]:
    """Have numerical libraries compute on one thread while inside, and not warn of overflows.

    More threads would sum in another order and change the last bits of a result; the cores are for
    jobs. PyTorch reads a variable of the environment where it is imported inside, for the first
    time. A training that overflows is a failed cell, which says enough.
    """
    from threadpoolctl import threadpool_limits

    before = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    torch: Any = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch else 0
    try:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            if torch:
                torch.set_num_threads(1)
            yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        if torch:
            torch.set_num_threads(threads)
