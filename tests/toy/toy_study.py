"""A study that trains nothing and can be told to misbehave, to test the machine with.

It is found as a third party's would be: by the entry point in the folder beside it.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from overfit_cli import Claim, Column, Measurement, Study
from overfit_cli.core.cell import Batch, Batches, Cell, CellResult, Paper, Results
from overfit_cli.core.figure import CURVES, HEATMAP, Figure, FigureOptions, collect_figures
from overfit_cli.core.parameters import StudyParameters, parameter
from overfit_cli.core.training import Training, named_rng

KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # on Windows os.kill ends a process with any

Ends = Literal["raises", "exits", "interrupts", "closes", "prints", "kills", "kills-once"]
Yields = Literal["diverges", "nothing", "text", "other-cell", "wordy"]
Numbers = Literal["nan", "word", "huge", "other-column", "no-numbers"]
Steps = Literal["wordy-step", "numberless-step", "other-step"]

NUMBERS: dict[str, Any] = {
    "nan": {"test_loss": math.nan},
    "word": {"test_loss": "low"},
    "huge": {"test_loss": 10**400},
    "no-numbers": None,
    "other-column": {"tset_loss": 0.5},
}
STEPS: dict[str, tuple[Any, dict[str, Any]]] = {
    "numberless-step": ("last", {"train_loss": 0.5}),
    "wordy-step": (1, {"train_loss": "low"}),
    "other-step": (1, {"tset_loss": 0.5}),
}


class ToyParameters(StudyParameters):
    n: int = parameter(4, "samples", symbol="N", at_least=1, at_most=1000)
    snr: float = parameter(1.0, "signal-to-noise ratio", above=0)
    pause: float = parameter(0.0, "time a cell takes", unit="s", at_least=0, at_most=60)
    mood: Literal["well", Ends, Yields, Numbers, Steps] = parameter("well", "what goes wrong")


class Toy(Study[ToyParameters]):
    name = "toy"
    version = 1
    title = "A toy"
    paper = Paper("Nobody", 2024, "On nothing")
    parameters = ToyParameters
    columns = (Column("test_loss", "test loss", diverges=True), Column("draw", "a random number"))
    trajectory_columns = (Column("train_loss", "training loss", diverges=True),)

    def figures(self) -> Mapping[str, Figure]:
        options = FigureOptions(x="snr", y="n", value="test_loss")
        return collect_figures(replace(HEATMAP, options=options), CURVES)

    def claims(self) -> Sequence[Claim]:
        said: dict[str, Any] = {"source": "nowhere", "holds_where": "the loss is above 0.1"}
        said["statement"] = "Nothing is learned."
        return [Claim(name="toy-claim", measure=measure, **said)]

    def batches(self, cells: Batch[ToyParameters], device: str) -> Batches[ToyParameters]:
        by_row: dict[tuple[int, int], list[Cell[ToyParameters]]] = {}
        for cell in cells:
            by_row.setdefault((cell.seed, cell.parameters.n), []).append(cell)
        return list(by_row.values())

    def cost(self, cell: Cell[ToyParameters]) -> float:
        return 1.0 + cell.parameters.pause

    def memory(self, cell: Cell[ToyParameters]) -> float:
        return 1e6

    def train(self, batch: Batch[ToyParameters], training: Training) -> Results[ToyParameters]:
        for cell in batch:
            settings = cell.parameters
            time.sleep(float(os.environ.get("TOY_PAUSE", settings.pause)))
            misbehave(settings.mood)
            if settings.mood == "diverges" and settings.n % 2:
                yield CellResult(cell, reason="diverged")
                continue
            draw = float(named_rng(cell.seed, "train").random(settings.n)[-1])
            loss = 1 / (1 + settings.n * settings.snr**2)
            training.log(cell, 0, {"train_loss": 1.0})
            training.log(cell, *STEPS.get(settings.mood, (1, {"train_loss": loss})))
            numbers = {"test_loss": loss, "draw": draw}
            yield from spoilt(CellResult(cell, numbers, steps=1), settings.mood)

    def summary(self, result: CellResult[ToyParameters]) -> str:
        return f"A loss of {result.measurements['test_loss']:.3f}."


def measure(cells: Any) -> Measurement:
    loss = float(cells["test_loss"].min())
    return Measurement(verdict="fails" if loss < 0.1 else "holds", value=loss, note="Measured.")


def misbehave(mood: str) -> None:
    """Do what the mood says; `kills-once` kills the first worker that comes by and no other."""
    errors: dict[str, BaseException] = {
        "raises": RuntimeError("the toy\nis broken"),
        "exits": SystemExit("enough"),
        "closes": GeneratorExit(),
        "interrupts": KeyboardInterrupt(),
    }
    if mood in errors:
        raise errors[mood]
    if mood == "prints":
        print("a study may print", flush=True)  # noqa: T201
    if mood == "kills":
        os.kill(os.getpid(), KILL)
    if mood == "kills-once" and not (mark := Path(os.environ["TOY_MARK"])).exists():
        mark.touch()
        os.kill(os.getpid(), KILL)


def spoilt(result: CellResult, mood: str) -> Iterator[Any]:
    """Give the result, or what a careless study gives in its place."""
    if mood == "text":
        yield "a loss of 0.5"
    elif mood == "other-cell":
        yield replace(result, cell=replace(result.cell, seed=99))
    elif mood == "wordy":
        yield CellResult(result.cell, reason="so it goes\n" * 1000)
    elif mood != "nothing":
        yield replace(result, measurements=NUMBERS.get(mood, result.measurements))


study = Toy()
