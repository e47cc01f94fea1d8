"""Training: the device, random streams, the log of steps, and several cells as one tensor.

All randomness of a cell derives from its seed and the name of a stream. PyTorch is imported only
to make a tensor, or where the machine may have a GPU.

A study whose cells of one shape are faster as one tensor groups them with `group_cells`, and
derives its training from `BatchedTraining`. At every step the loop runs

    forward pass → which cells end → measure and log those that are due → results of those that
    ended → gradient step → go on with the others

The study gives the forward pass, the measurements, the results, the step, and the selection of the
cells that go on. What it remembers of a cell is one object in `cells`, so that it leaves with it.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
import os
import platform
import sys
import time
import warnings
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import numpy as np

from overfit_cli.core.cell import Batch, Batches, Cell, CellResult, P, Results
from overfit_cli.core.errors import BadValue
from overfit_cli.core.files import keeping_variables
from overfit_cli.core.options import DeviceChoice
from overfit_cli.core.processes import alarm

Device = Literal["cpu", "cuda"]


def resolve_device(choice: DeviceChoice) -> Device:
    """Return the device of this machine for `choice`; `auto` is a GPU where it has one."""
    may_have_gpu = any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/dxg").exists()
    if choice == "cpu" or (choice == "auto" and not may_have_gpu):
        return "cpu"
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if choice == "cuda":
        raise BadValue("device", choice, "PyTorch finds no CUDA device here; it takes auto or cpu.")
    return "cpu"


_CPU_INFO = Path("/proc/cpuinfo")


@functools.cache
def _processor() -> Mapping[str, str]:
    text = _CPU_INFO.read_text("utf-8", "replace") if _CPU_INFO.exists() else ""
    split = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, _, value in split}


def processor_name() -> str:
    """Return the processor's maker and model, as far as the system names them."""
    described = [_processor().get(name, "") for name in ("vendor_id", "model name")]
    return " ".join(described).strip() or platform.processor() or platform.machine()


@functools.cache
def product_library() -> Literal["PyTorch", "oneDNN"]:
    """Return the library of large matrix products on this processor: see `matrix_products.py`."""
    described = _processor()
    is_amd = described.get("vendor_id") == "AuthenticAMD"
    is_wide = is_amd and int(described.get("cpu family") or 0) >= _ZEN_5
    return "oneDNN" if is_wide and "avx512f" in described.get("flags", "").split() else "PyTorch"


_ZEN_5 = 26
"""AMD's first family of processors that compute all 512 bits of a vector at once."""


def named_rng(seed: int, *names: str) -> np.random.Generator:
    """Return the generator of the stream `names` of a cell's `seed`.

    Streams of different names or seeds are independent. By convention the first name is `init`,
    `train` or `test`, so training and test draws never share a stream. Draws are made on the CPU,
    on every device.
    """
    words = tuple(zlib.crc32(name.encode()) for name in names)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=words)))


Row = Mapping[str, float]

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Execution:
    """The execution of a training: no attribute changes a number of its result.

    Attributes:
        on_step: called with each logged row (`step` and the trajectory columns).
        fail_fast: whether a failed cell ends its task and the sweep.
        on_task: called with what a training does next, in words, where it may take long.
        on_error: called with what a study has raised.
        on_result: called with the result of each cell.
    """

    device: Device = "cpu"
    trajectories: bool = False
    on_step: Callable[[Row], None] | None = None
    fail_fast: bool = False
    on_error: Callable[[BaseException], None] | None = None
    on_task: Callable[[str], None] | None = None
    on_result: Callable[[CellResult], None] | None = None
    time_limit: float | None = None


TIME_LIMIT = "time limit"
"""The reason of a cell that took longer than it may."""


class TimeLimitReached(BaseException):
    """A training takes longer than it may; it is no `Exception`, which a function may catch."""


class Training:
    """The training of a batch: its device, its deadline, and the log of its cells' steps."""

    def __init__(self, execution: Execution) -> None:
        self._execution = execution
        self._logged: dict[str, list[Row]] = {}
        self._steps: dict[str, int] = {}
        limit = execution.time_limit
        self._deadline = math.inf if limit is None else time.monotonic() + limit

    @property
    def device(self) -> Device:
        """The device to train on."""
        return self._execution.device

    @property
    def logs(self) -> bool:
        """Whether steps are logged. Costly measurements may be left out where they are not."""
        return self._execution.trajectories

    def say(self, task: str) -> None:
        """Say what comes next that may take long and logs no step: `Drawing the samples`."""
        if self._execution.on_task is not None:
            self._execution.on_task(task)

    def check_time(self) -> None:
        """Raise if the time is over; a loop over steps calls it, as threads take no signal."""
        if self._deadline < math.inf and time.monotonic() > self._deadline:
            raise TimeLimitReached

    def limited(self) -> contextlib.AbstractContextManager[None]:
        """Return a context that ends with `TimeLimitReached` when the time is over."""
        return alarm(self._deadline, TimeLimitReached)

    def log(self, cell: Cell[Any], step: float, row: Row) -> None:
        """Log a step of a cell, larger than the one before, where steps are logged.

        The row has values by the names of the study's `trajectory_columns`.
        """
        self._steps[cell.key] = int(step)
        if self.logs:
            logged = {"step": step, **row}
            self._logged.setdefault(cell.key, []).append(logged)  # whole, whenever a signal comes
            if self._execution.on_step is not None:
                self._execution.on_step(logged)
        self.check_time()

    def trajectory(self, cell: Cell[Any]) -> Mapping[str, Sequence[float]]:
        """Return the logged values of a cell by column, `step` among them; empty without any."""
        rows = self._logged.get(cell.key, [])
        names = dict.fromkeys(name for row in rows for name in row)
        return {name: [row.get(name) for row in rows] for name in names}  # type: ignore[misc]

    def steps_logged(self, cell: Cell[Any]) -> int:
        """Return the last step of a cell that `log` was called with; 0 without any."""
        return self._steps.get(cell.key, 0)


def logged_steps(steps: int, first: int = 10, ratio: float = 1.08) -> list[int]:
    """Return the steps to log of a training of so many: the first ones, then by ratio, the last."""
    chosen_steps = list(range(min(first, steps) + 1))
    while chosen_steps[-1] < steps:
        chosen_steps.append(min(max(chosen_steps[-1] + 1, round(chosen_steps[-1] * ratio)), steps))
    return chosen_steps


def known_numbers(row: Row, *, infinite: bool = False) -> dict[str, float]:
    """Return the finite numbers of a row: what a cell does not have is left out.

    With `infinite`, infinity is a number too: a bound that no number meets.
    """
    known = {name: float(value) for name, value in row.items() if not math.isnan(value)}
    return {name: value for name, value in known.items() if infinite or math.isfinite(value)}


def failure(loss: float, at_most: float = math.inf) -> str:
    """Return the reason of failure for a final loss; empty where the training has succeeded.

    It is `diverged` where the loss is not finite, and `step limit` where it is above `at_most`.
    """
    if not math.isfinite(loss):
        return "diverged"
    return "" if loss <= at_most else "step limit"


@contextlib.contextmanager
def training_conditions() -> Iterator[None]:
    """Limit numerical libraries to one thread inside, without warnings of overflows.

    More threads would sum in another order and change the last bits of a result; the cores are for
    jobs. The variables of the environment limit a PyTorch that is first imported inside. A training
    that overflows is a failed cell, so a warning adds nothing.
    """
    from threadpoolctl import threadpool_limits

    torch: Any = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch else 0
    try:
        quiet = warnings.catch_warnings(action="ignore", category=RuntimeWarning)
        with keeping_variables(*_THREAD_VARIABLES), threadpool_limits(1), quiet:
            os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
            if torch:
                torch.set_num_threads(1)
            yield
    finally:
        if torch:
            torch.set_num_threads(threads)


BYTES_OF_LIBRARIES = 3e8
"""The memory of PyTorch in a process before it computes anything."""


def without_gradients(train: Callable[[], Results[P]]) -> Results[P]:
    """Give the results of a training in which PyTorch records nothing for gradients."""
    import torch

    with torch.inference_mode():
        left = iter(train())
    yield from iter(torch.inference_mode()(lambda: next(left, None)), None)


def group_cells(
    cells: Batch[P],
    key: Callable[[Cell[P]], Any],
    size: Callable[[Cell[P]], float],
    most: float,
    cost: Callable[[Cell[P]], float] | None = None,
) -> Batches[P]:
    """Group cells that can be trained as one tensor.

    Args:
        key: what the cells of a batch share; batches are ordered by it.
        most: the largest size of a batch; a cell larger than that is a batch of its own.
        cost: the cells of a batch have about the same; the costliest batches come first.
    """
    batches: Batches[P] = []
    for _, group in itertools.groupby(sorted(cells, key=key), key=key):
        taken = math.inf
        for cell in group:
            if taken + size(cell) > most:
                batches.append([])
                taken = 0.0
            batches[-1].append(cell)
            taken += size(cell)
    if cost is not None:
        batches.sort(key=lambda batch: -cost(batch[0]) * len(batch))
    return batches


def shared_values(cell: Cell[P], apart: Container[str]) -> tuple[str, ...]:
    """Return the values of all parameters but those in which cells of a batch may differ."""
    values = cell.parameters.model_dump()
    return tuple(str(value) for name, value in values.items() if name not in apart)


@dataclass(frozen=True)
class Together(Generic[P]):
    """Which cells are trained as one tensor.

    Attributes:
        apart: the parameters in which they may differ, and `seed` where their seeds may.
        size: the size of a cell, in any unit.
        cpu, cuda: the largest size of a batch on such a device.
    """

    apart: Container[str]
    size: Callable[[P], float]
    cpu: float
    cuda: float

    def batches(self, cells: Batch[P], device: str, cost: Callable[[Cell[P]], float]) -> Batches[P]:
        """Split cells into batches, the costliest first."""

        def shared(cell: Cell[P]) -> tuple[object, ...]:
            return "seed" not in self.apart and cell.seed, *shared_values(cell, self.apart)

        by_seed = sorted(cells, key=lambda cell: cell.seed)
        most = self.cuda if device == "cuda" else self.cpu
        return group_cells(by_seed, shared, lambda cell: self.size(cell.parameters), most, cost)


@dataclass
class CellState(Generic[P]):
    """A cell in training; a study adds what it remembers of it."""

    cell: Cell[P]


State = TypeVar("State", bound=CellState[Any])
Pass = TypeVar("Pass")


class BatchedTraining(ABC, Generic[P, State, Pass]):
    """Cells of one shape in training. `cells` are those that go on, in the order of the tensors.

    A study whose cells all take all steps needs neither `ends` nor `select`: they end at step
    `last`, which is None where `ends` says so of each. PyTorch records nothing for gradients.
    """

    def __init__(
        self,
        cells: Sequence[State],
        training: Training,
        logged: Container[int] | None = None,
        last: int | None = None,
    ) -> None:
        self.cells = list(cells)
        self.training = training
        if logged is None:
            logged = frozenset(logged_steps(last or 0) if training.logs else ())
        self._logged, self._last = logged, last

    @abstractmethod
    def forward(self, step: int) -> Pass:
        """Return the forward pass at a step, and count what is counted at every step."""

    @abstractmethod
    def measure(self, step: int, now: Pass, due: Sequence[int]) -> Sequence[Row]:
        """Return what is logged of some cells, a row each, before the gradient step.

        What isn't finite in a row, and an empty row, isn't logged.
        """

    @abstractmethod
    def results(self, step: int, now: Pass, rows: Mapping[int, Row]) -> Results[P]:
        """Give the results of cells that end, from what was measured there, by their indices."""

    @abstractmethod
    def take_step(self, now: Pass) -> None:
        """Take a gradient step with all cells."""

    def ends(self, now: Pass) -> Sequence[bool]:
        """Return for each cell whether it ends here: it is fitted, or has diverged."""
        return [False] * len(self.cells)

    def select(self, kept: Sequence[int]) -> None:
        """Go on, after a step, with the cells at these indices; the loop sees to `cells`."""
        raise NotImplementedError

    def steps_taken(self, index: int, step: int) -> float:
        """Return the step under which a cell is logged: one may take several as one."""
        return step

    def keep(self, row: Row) -> Row:
        """Return what is logged of a row: by default what is finite."""
        return known_numbers(row)

    def train(self) -> Results[P]:
        """Take all steps, and give the results in the order in which the cells end."""
        return without_gradients(self._all_steps)

    def _all_steps(self) -> Results[P]:
        for step in itertools.count():
            self.training.check_time()
            now = self.forward(step)
            ended = [True] * len(self.cells) if step == self._last else self.ends(now)
            over = any(ended)
            if over or step in self._logged:
                yield from self._measured(step, now, ended)
            if over and all(ended):
                return
            self.take_step(now)
            if over:
                kept = [index for index, end in enumerate(ended) if not end]
                self.select(kept)
                self.cells = [self.cells[index] for index in kept]

    def _measured(self, step: int, now: Pass, ended: Sequence[bool]) -> Results[P]:
        due = [index for index, end in enumerate(ended) if step in self._logged or end]
        rows = dict(zip(due, self.measure(step, now, due), strict=True))
        for index, row in rows.items():
            if row:
                steps = self.steps_taken(index, step)
                self.training.log(self.cells[index].cell, steps, self.keep(row))
        if any(ended):
            yield from self.results(step, now, {p: row for p, row in rows.items() if ended[p]})
