"""A study that is declared: its training, claims, batches and sentence come from data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
import torch

from overfit_cli import Claim, Column, Measurement, Study
from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.core.descent import Descent
from overfit_cli.core.errors import BadValue, UserError
from overfit_cli.core.figure import LINES, drawn_in
from overfit_cli.core.parameters import StudyParameters, build, describe, parameter
from overfit_cli.core.registry import why_no_study
from overfit_cli.core.study import schema_of
from overfit_cli.core.training import Execution, Row, Together, Training
from tests.training import cell_of, train, train_in_batches


class Parameters(StudyParameters):
    rate: float = parameter(0.5, "step size", r"\eta", within="(0, 10]")
    start: float = parameter(1.0, "first weight of the network, before any step", "w")
    steps_at_most: int = parameter(20, "most steps", within="[1, inf)")

    def refusals(self) -> Iterator[BadValue]:
        if self.start == 0:
            yield self.refuse("start", "it takes another number than the minimum.")


class Pass(NamedTuple):
    loss: torch.Tensor


class Slope(Descent[Pass]):
    """L(w) = w² / 2."""

    def __init__(self, p: Parameters) -> None:
        self.p, self.w = p, torch.tensor(p.start, requires_grad=True)

    def forward(self) -> Pass:
        return Pass(self.w**2 / 2)

    def step(self, now: Pass) -> None:
        assert now.loss.grad_fn is None
        self.w = self.w - self.p.rate * self.w

    def measure(self, now: Pass) -> Row:
        return {"loss": float(now.loss), "undefined": math.nan}

    def measure_last(self, now: Pass) -> Row:
        return {"share": 0.25}


def train_cell(cell: Cell[Parameters], training: Training) -> CellResult[Parameters]:
    return Slope(cell.parameters).train(cell, training, cell.parameters.steps_at_most, 1e-3)


SAID: dict[str, Any] = {
    "source": "a book",
    "statement": "It falls.",
    "holds_where": "it has fallen",
}
CLAIMS = [Claim(name="falls", measure=lambda cells: Measurement(verdict="holds"), **SAID)]


class Declared(Study[Parameters]):
    name, version, parameters = "declared", 1, Parameters
    trained_in = claims_in = __name__
    columns = (Column("loss", "loss"), Column("share", "a share", r"\phi", "share", decades=True))
    trajectory_columns = columns[:1]
    together = Together[Parameters]({"rate"}, size=lambda p: p.steps_at_most, cpu=50, cuda=100)
    shows = "η = {rate:g} brought the loss to {loss:.1e} in {steps}, {share:.0%} of it by luck."
    drawn = (drawn_in(__name__, "slope", "A slope"), LINES.showing("fall", value="loss", axes=0))


def has_slope(data: object) -> bool:
    return data == "steep"


STUDY = Declared()


def test_training_ends_at_the_target_at_the_last_step_or_where_it_diverges() -> None:
    cells = [cell_of(STUDY, values) for values in ({}, {"rate": 1.0}, {"steps_at_most": 3})]
    ends = [(one.steps, one.reason) for one in train(STUDY, *cells)]
    assert ends == [(5, ""), (1, ""), (3, "step limit")]
    [diverged] = train(STUDY, cell_of(STUDY, {"rate": 9.0, "start": 1e30, "steps_at_most": 99}))
    assert diverged.reason == "diverged"
    free = Slope(Parameters()).train(cells[0], Training(Execution()), steps=2)
    assert (free.steps, free.reason) == (2, ""), "without a target it takes all steps"


def test_steps_are_logged_where_they_are_wanted() -> None:
    [silent] = train(STUDY, cell_of(STUDY))
    [logged] = train(STUDY, cell_of(STUDY), trajectories=True)
    assert silent.trajectory == {}
    assert logged.trajectory["step"] == [0, 1, 2, 3, 4, 5]
    assert logged.trajectory["loss"] == [0.5 / 4**step for step in range(6)]
    assert silent.measurements == logged.measurements == {"loss": 0.5 / 4**5, "share": 0.25}


def test_a_result_is_given_outside_inference_mode() -> None:
    modes = []
    for _ in STUDY.train([cell_of(STUDY)], Training(Execution())):
        modes.append(torch.is_inference_mode_enabled())
    assert modes == [False]


def test_cells_that_may_be_apart_are_trained_together_up_to_a_size() -> None:
    cells = [cell_of(STUDY, {"rate": rate}, seed) for seed in (0, 1) for rate in (0.1, 0.2, 0.3)]
    assert [len(batch) for batch in STUDY.batches(cells, "cpu")] == [2, 2, 1, 1]
    assert [len(batch) for batch in STUDY.batches(cells, "cuda")] == [3, 3]
    study = Declared()
    assert study.together is not None
    study.together = replace(study.together, apart={"rate", "seed"})
    assert [len(batch) for batch in study.batches(cells, "cuda")] == [5, 1]
    assert len(train_in_batches(study, *cells)) == 6


def test_a_sentence_shows_a_trained_cell() -> None:
    [result] = train(STUDY, cell_of(STUDY, {"rate": 1.0}))
    told = "η = 1 brought the loss to 0.0e+00 in 1 step, 25 % of it by luck."
    assert STUDY.summary(result) == told
    assert STUDY.summary(replace(result, reason="diverged")).startswith("Failed (diverged)")


def test_claims_and_figures_are_found_by_their_modules() -> None:
    assert [claim.name for claim in STUDY.claims()] == ["falls"]
    slope, fall = STUDY.figures().values()
    assert (slope.name, slope.reads, slope.fits("steep"), slope.fits("flat")) == (
        *("slope", "cells"),
        *(True, False),
    )
    assert (fall.name, fall.title, fall.options.value, fall.axes) == (
        "fall",
        LINES.title,
        "loss",
        0,
    )


def test_bounds_are_an_interval_and_a_refusal_names_the_value() -> None:
    limits = {name: info.limits for name, info in describe(Parameters).items()}
    assert limits == {"rate": "> 0, ≤ 10", "start": "a number", "steps_at_most": "≥ 1"}
    with pytest.raises(BadValue, match=r"start=0.0: it takes another number than the minimum\."):
        build(Parameters, {"start": 0.0})


def test_a_label_is_a_short_meaning_or_the_name() -> None:
    labels = [info.label for info in describe(Parameters).values()]
    assert labels == ["step size", "start", "most steps"]
    schema = schema_of(STUDY)
    assert (schema["share"].label, schema["share"].decades) == ("share", True)


def test_a_study_without_a_training_is_refused() -> None:
    class Nowhere(Declared):
        trained_in = ".nowhere"

    assert why_no_study(Nowhere(), "declared").endswith("there is no module .nowhere")
    assert why_no_study(STUDY, "declared") == ""
    with pytest.raises(UserError, match="rate"):
        build(Parameters, {"rate": 11.0})
