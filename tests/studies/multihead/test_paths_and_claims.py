"""Gradient descent's path against loops written out."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch.nn import functional

from overfit_cli.core.training import Execution, Training
from overfit_cli.studies.multihead import descent as training
from overfit_cli.studies.multihead import reference, theory
from overfit_cli.studies.multihead.claims.training import steps_to_test_loss
from overfit_cli.studies.multihead.data import Problem, Samples, draw_problem
from overfit_cli.studies.multihead.parameters import (
    MultiheadMixtureParameters,
    MultiheadPathsParameters,
)
from overfit_cli.studies.multihead.study import mixture
from overfit_cli.studies.multihead.study import paths as study
from tests.training import cell_of, train

SETTINGS: dict[str, Any] = {"heads": 3, "n": 6, "sigma": 0.3, "learning_rate": 0.7}
SETTINGS |= {"training_steps": 15, "leave_one_out": True, "test_samples": 10}


def path_of(**changed: Any) -> tuple[Problem, training.Model, training.Path]:
    """The problem of seed 0, its model, and gradient descent on it."""
    parameters = MultiheadPathsParameters.model_validate(SETTINGS | changed)
    problem = draw_problem(parameters.mixture(), 0)
    x, y = torch.tensor(problem.train.inputs), torch.tensor(problem.train.labels)
    model = training.Model(x, y, theory.Sizes(2, 3, theory.radius(x), float(parameters.heads)))
    return problem, model, training.descend(model, parameters, Training(Execution()))


def plain_descent(problem: Problem, left_out: int | None = None) -> reference.PlainStep:
    """All heads after 15 steps, one by one; the loss leaves a sample out of its sum over six."""
    kept = [sample for sample in range(6) if sample != left_out]
    few = Samples(problem.train.inputs[kept], problem.train.labels[kept])
    settings = MultiheadMixtureParameters(
        heads=3, tokens=2, d=3, patterns=1, learning_rate=0.7 * len(kept) / 6, training_steps=15
    )
    *_, last = reference.plain_training(settings, replace(problem, train=few), 0)
    return last


def joined(step: reference.PlainStep) -> torch.Tensor:
    return torch.cat([weights.flatten() for weights in (*step.projections, *step.attentions)])


def test_copies_are_those_of_training_without_a_sample() -> None:
    problem, model, _ = path_of()
    whole, *copies = (plain_descent(problem, left_out) for left_out in (None, *range(6)))
    radius = max(model.sizes.radius, theory.radius(torch.tensor(problem.test.inputs)))
    largest = max(float(U.norm()) for step in (whole, *copies) for U in step.projections)
    constant = replace(model.sizes, radius=radius).beta_1(largest)
    distances = [float((joined(copy) - joined(whole)).norm()) for copy in copies]
    [result] = train(study, cell_of(study, SETTINGS))
    expected = 2 * constant * float(np.mean(distances))
    assert result.measurements["lemma3_bound"] == pytest.approx(expected, rel=1e-9)
    assert result.measurements["train_loss"] == pytest.approx(whole.loss, rel=1e-9)


def test_sides_of_the_lemmas_are_those_of_their_formulas() -> None:
    _, model, path = path_of(leave_one_out=False)
    target = training.target_head(model, 0.5)
    assert math.sqrt(3) * float(target.norm()) == pytest.approx(0.5)
    three_heads = ([weights] * 3 for weights in model.split(target))
    logits = reference.plain_model(model.inputs, *three_heads)
    of_target = float(functional.softplus(-model.labels * logits).mean())
    got = training.regret_columns(model, path, target, 0.7)
    losses = path.losses.numpy()
    ninth = 2 * of_target + 3 * 0.25 / (4 * 0.7 * 15) + losses[0] / 30
    assert got["lemma9"] == pytest.approx(losses[1:].mean() / ninth)
    full = (path.heads - target).norm(dim=1).numpy() * math.sqrt(3)
    assert got["lemma10"] == pytest.approx(full.max() / 1.5)
    norms = model.split(path.heads)[0].flatten(1).norm(dim=1).tolist()
    descents = training.descent_columns(model, path, 0.7)
    squares = 3 * path.gradients.square().sum(1).numpy()
    ratios = (losses[:-1] - losses[1:]) / (0.35 * squares[:-1])
    beta_2 = model.sizes.beta_2
    rho = [0.7 * max(beta_2(a), beta_2(b)) for a, b in itertools.pairwise(norms)]
    assert descents["descent"] == pytest.approx(ratios.min())
    assert descents["descent_share"] == np.mean(np.array(rho) <= 1)


def test_segments_are_as_long_as_the_proposition_allows() -> None:
    _, model, path = path_of(heads=50)
    for theta in path.heads[[0, 5, 15]]:
        first, second = training._most_concave(model, theta)
        square = 50 / len(first) * float((first - second).square().sum())
        beta = max(model.beta_3(first), model.beta_3(second))
        assert 0.3 * math.sqrt(50) < 2 * beta * square <= math.sqrt(50) * (1 + 1e-9)


@pytest.mark.parametrize("size", [0.1, 1.0, 10.0, 100.0])
def test_no_weights_exceed_the_bounds_of_proposition_1_and_corollary_1(size: float) -> None:
    settings = {"heads": 2, "initialisation": "gaussian", "sigma_init": size, "certify": True}
    settings |= {"training_steps": 1, "test_samples": 10}
    for result in train(mixture, *(cell_of(mixture, settings, seed) for seed in range(5))):
        bounded = ("model_gradient", "model_hessian", "loss_gradient", "loss_hessian")
        for name in (*bounded, "loss_concavity"):
            assert 0 <= result.measurements[name] <= 1, name


@pytest.mark.parametrize(
    ("mark", "losses", "expected"),
    [(0.001, [0.7, 1e-4, 1e-5], 1), (0.05, [1.0, 0.1, 0.01], 2), (0.001, [1, 1, 1], np.nan)],
)
def test_steps_to_a_test_loss_lie_between_logged_steps(
    mark: float, losses: list[float], expected: float
) -> None:
    rows = pd.DataFrame({"heads": 1, "seed": 0, "step": [0, 1, 10], "test_loss": losses})
    found = steps_to_test_loss(rows, mark)["steps_to_target"].item()
    assert found == pytest.approx(expected, nan_ok=True)
