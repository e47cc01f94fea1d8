"""The engine of multi-head attention against three ways to train its heads by autograd, one thread.

Gradient descent in float64 on the paper's data, with steps of √H. In each round all of them train
the same cell one after the other; what is printed are medians of a round's ratios. Cells are swept
to the paper's 1000 steps, with all that a user gets: draws, logged steps and test evaluation. The
others take a few steps and measure nothing, and so do the engine's steps alone.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.timing import timed
from overfit_cli.core.cell import Cell
from overfit_cli.core.training import Execution
from overfit_cli.studies.multihead.data import draw_problem
from overfit_cli.studies.multihead.engine import Gradients, HeadGradients, initial_heads
from overfit_cli.studies.multihead.reference import plain_model
from overfit_cli.studies.multihead.study import MultiheadStudy, mixture, planted
from overfit_cli.studies.multihead.training import Steps
from overfit_cli.sweeps.worker import train_all

SEED = 1
FIGURES = (1, 2, 5, 10, 20, 50)
"""The heads of the cells of figures 2 to 5."""

AGREE = 1e-9
"""How far apart, relatively, the losses of all contestants may be."""

AnyMultihead = MultiheadStudy[Any]
AnyCell = Cell[Any]
STUDIES: dict[str, AnyMultihead] = {one.name: one for one in (mixture, planted)}


@dataclass(frozen=True)
class Task:
    """What is trained.

    Attributes:
        cell: with the paper's data, heads and steps.
        steps: after how many the others stop; the study logs the loss there.
        inputs, labels: X, shape (samples, tokens, features), and y.
    """

    cell: AnyCell
    steps: int
    inputs: Tensor
    labels: Tensor

    @property
    def heads(self) -> int:
        """H."""
        return int(self.cell.parameters.heads)


@dataclass(frozen=True)
class Trained:
    """What a training took.

    Attributes:
        step: seconds a step of one cell.
        loss: the training loss after the task's steps.
    """

    step: float
    loss: float


Contestant = Callable[[Task], Trained]
"""Trains a task's heads from zero."""


def task_of(study: AnyMultihead, heads: int, steps: int) -> Task:
    """Draw a study's samples."""
    cell = cell_of(study, heads)
    samples = draw_problem(cell.parameters, SEED).train
    return Task(cell, steps, torch.tensor(samples.inputs), torch.tensor(samples.labels))


def cell_of(study: AnyMultihead, heads: int) -> AnyCell:
    """Return a study's cell as figures 3 and 4 have it."""
    given = {"heads": heads, "step_rule": "sqrt-heads"}
    return Cell(study.name, study.version, study.parameters.model_validate(given), SEED)


def swept(task: Task, heads: Iterable[int]) -> Trained:
    """Train cells to their last step as a sweep does: draws, logged steps and test evaluation."""
    study = STUDIES[task.cell.study]
    cells = [cell_of(study, one) for one in heads]
    seconds, results = timed(
        lambda: [
            result
            for batch in study.batches(cells, "cpu")
            for result in train_all(study, batch, Execution(trajectories=True))
        ]
    )
    [log] = [one.trajectory for one in results if one.cell.key == task.cell.key]
    losses = dict(zip(log["step"], log["train_loss"], strict=True))
    return Trained(seconds / sum(one.steps for one in results), losses[task.steps])


def swept_alone(task: Task) -> Trained:
    """Train one cell; its heads are one class."""
    return swept(task, [task.heads])


def swept_together(task: Task) -> Trained:
    """Train the cells of all numbers of heads of the figures."""
    return swept(task, FIGURES)


def steps_of_class(task: Task) -> Trained:
    """Take the engine's steps alone; the heads are one class."""
    return engine_steps(task, separate=False)


def steps_of_each_head(task: Task) -> Trained:
    """Take the engine's steps alone, each head by itself: what other initial weights need."""
    return engine_steps(task, separate=True)


@torch.inference_mode()
def engine_steps(task: Task, *, separate: bool) -> Trained:
    """Take the engine's steps and measure nothing but the loss."""
    settings = task.cell.parameters.model_copy(update={"separate_heads": separate})
    first = draw_problem(settings, SEED).first
    heads = initial_heads([settings], SEED, first, dtype=torch.float64, device="cpu")
    step_size, momentum = (heads.heads.new_tensor([one]) for one in (settings.step_size, 0.0))
    optimiser = Steps(settings.optimiser, step_size, momentum)
    gradients = HeadGradients(task.inputs, task.labels, *heads.counts.shape)

    def look() -> Gradients:
        scaled = optimiser.divides_by_loss
        return gradients(heads.U, heads.W, heads.mixing, heads.heads, scaled)

    def train() -> float:
        for _ in range(task.steps):
            found = look()
            optimiser.take((heads.U, heads.W), (found.projection, found.attention))
        return look().loss.item()

    seconds, loss = timed(train)
    return Trained(seconds / (task.steps + 1), loss)


def loop_over_heads(task: Task) -> Trained:
    """Train by autograd with a Python loop over heads."""
    shapes = shapes_of(task)
    projections, attentions = ([zeros(shape) for _ in range(task.heads)] for shape in shapes)
    return descend(
        task,
        [*projections, *attentions],
        lambda: plain_model(task.inputs, projections, attentions),
    )


class Head(nn.Module):
    """One attention head, which begins at zero."""

    def __init__(self, projection: tuple[int, int], attention: tuple[int, int]) -> None:
        super().__init__()
        self.projection = nn.Parameter(zeros(projection))
        self.attention = nn.Parameter(zeros(attention))

    def forward(self, x: Tensor) -> Tensor:
        """Return a head's output, (samples,), of x of shape (samples, tokens, features)."""
        weights = torch.softmax(x @ self.attention @ x.mT, -1)  # (samples, tokens, tokens)
        return (self.projection * (weights @ x)).sum((-2, -1))


def vmap_over_heads(task: Task) -> Trained:
    """Train by autograd with an ensemble of modules, `torch.func` and `torch.vmap`."""
    heads = [Head(*shapes_of(task)) for _ in range(task.heads)]
    weights, _ = torch.func.stack_module_state(heads)
    skeleton = heads[0].to("meta")

    def output(of_head: dict[str, Tensor], x: Tensor) -> Tensor:
        found: Tensor = torch.func.functional_call(skeleton, of_head, (x,))
        return found

    outputs = torch.vmap(output, in_dims=(0, None))
    root = math.sqrt(task.heads)
    return descend(
        task, list(weights.values()), lambda: outputs(weights, task.inputs).sum(0) / root
    )


def products_over_heads(task: Task) -> Trained:
    """Train by autograd with all heads in two tensors: the products in the order that is read.

    The plain `softmax(x @ w[:, None] @ x.mT, -1)` takes twice to three times as long.
    """
    x, heads = task.inputs, task.heads
    n, _, features = x.shape
    u, w = (zeros((heads, *shape)) for shape in shapes_of(task))

    def logits() -> Tensor:
        queries = torch.einsum("nta,hab->nhtb", x, w).reshape(n, -1, features)
        attention = torch.softmax(x @ queries.mT, 1)  # (samples, s, heads · t)
        return (attention.mT @ x).reshape(n, -1) @ u.view(-1) / math.sqrt(heads)

    return descend(task, [u, w], logits)


def shapes_of(task: Task) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the shapes of U and W of a head."""
    _, tokens, features = task.inputs.shape
    return (tokens, features), (features, features)


def zeros(shape: tuple[int, ...]) -> Tensor:
    """Return initial weights."""
    return torch.zeros(shape, dtype=torch.float64, requires_grad=True)


def descend(task: Task, weights: Sequence[Tensor], logits: Callable[[], Tensor]) -> Trained:
    """Take the steps by autograd."""
    optimiser = torch.optim.SGD(weights, lr=task.cell.parameters.step_size)

    def loss() -> Tensor:
        return functional.softplus(-task.labels * logits()).mean()

    def train() -> None:
        for _ in range(task.steps):
            optimiser.zero_grad()
            loss().backward()  # type: ignore[no-untyped-call]
            optimiser.step()

    seconds, _ = timed(train)
    return Trained(seconds / task.steps, loss().item())


OURS: dict[str, Contestant] = {
    "a cell as swept": swept_alone,
    "one of six cells as swept": swept_together,
    "steps of one class": steps_of_class,
    "steps of each head": steps_of_each_head,
}
OTHERS: dict[str, Contestant] = {
    "loop over heads": loop_over_heads,
    "vmap over heads": vmap_over_heads,
    "products over heads": products_over_heads,
}


def compete(task: Task, rounds: int) -> None:
    """Train with all, round by round, and print what a step takes and the ratios."""
    found: dict[str, list[Trained]] = {name: [] for name in (*OURS, *OTHERS)}
    for number in range(rounds + 1):  # The first warms up.
        for name, train in {**OURS, **OTHERS}.items():
            trained = train(task)
            if number:
                found[name].append(trained)
    times = {name: [one.step for one in of_rounds] for name, of_rounds in found.items()}
    n, tokens, features = task.inputs.shape
    print(f"{task.cell.study}: n {n}, T {tokens}, d {features}, H {task.heads}")
    for name, of_rounds in times.items():
        print(f"{name:>26}: {1e3 * statistics.median(of_rounds):8.3f} ms a step")
    loop, *batched = OTHERS
    best = min(batched, key=lambda name: statistics.median(times[name]))
    for name in OURS:
        by_loop, by_best = (ratio(times[other], times[name]) for other in (loop, best))
        print(f"{name}: {by_loop:.1f} times the {loop}, {by_best:.1f} times the {best}")
    losses = [one.loss for of_rounds in found.values() for one in of_rounds]
    apart = max(losses) / min(losses) - 1
    agreed = "as they must" if apart <= AGREE else f"more than {AGREE:.0e}"
    print(f"losses after {task.steps} steps within {apart:.1e} of each other, {agreed}", flush=True)


def ratio(slow: Sequence[float], fast: Sequence[float]) -> float:
    """Return the median over rounds of how many times as fast one is as the other."""
    return statistics.median(a / b for a, b in zip(slow, fast, strict=True))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heads", type=int, default=50, choices=FIGURES)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for study, steps in ((mixture, 60), (planted, 12)):
        compete(task_of(study, arguments.heads, steps), arguments.rounds)


if __name__ == "__main__":
    main()
