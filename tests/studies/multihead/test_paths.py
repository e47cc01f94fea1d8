"""Gradient descent's path against loops written out, and its claims on doctored cells."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from calibration.multihead_paths import MET
from calibration.rates import design
from overfit_cli.core.training import Execution, Training
from overfit_cli.studies.multihead import reference, theory
from overfit_cli.studies.multihead.mixture.data import draw_problem
from overfit_cli.studies.multihead.paths import bounds, training
from overfit_cli.studies.multihead.paths.parameters import MultiheadPathsParameters
from overfit_cli.studies.multihead.paths.study import study
from tests.judged import all_claims, measure
from tests.training import cell_of, train

SETTINGS = {
    "heads": 3,
    "n": 6,
    "sigma": 0.3,
    "learning_rate": 0.7,
    "training_steps": 15,
    "leave_one_out": True,
    "test_samples": 10,
}


def plain_descent(
    x: torch.Tensor, y: torch.Tensor, heads: int, left_out: int | None
) -> list[torch.Tensor]:
    """All heads one by one from zero by autograd; the loss leaves a sample out of its sum."""
    n, tokens, features = x.shape
    projections = [torch.zeros(tokens, features, dtype=x.dtype) for _ in range(heads)]
    attentions = [torch.zeros(features, features, dtype=x.dtype) for _ in range(heads)]
    trained = [matrix.requires_grad_() for matrix in (*projections, *attentions)]
    kept = [i for i in range(n) if i != left_out]
    for _ in range(15):
        outputs = reference.plain_model(x, projections, attentions)
        loss = functional.softplus(-y * outputs)[kept].sum() / n
        gradients = torch.autograd.grad(loss, trained)
        with torch.no_grad():
            for matrix, gradient in zip(trained, gradients, strict=True):
                matrix.sub_(0.7 * gradient)
    pairs = zip(projections, attentions, strict=True)
    return [torch.cat([u.detach().flatten(), w.detach().flatten()]) for u, w in pairs]


def test_copies_are_those_of_training_without_a_sample() -> None:
    parameters = MultiheadPathsParameters.model_validate(SETTINGS)
    problem = draw_problem(parameters.mixture(), 0)
    x, y = torch.tensor(problem.train.inputs), torch.tensor(problem.train.labels)
    whole = torch.stack(plain_descent(x, y, 3, None))
    copies = [torch.stack(plain_descent(x, y, 3, i)) for i in range(6)]
    distances = [float((copy - whole).norm()) for copy in copies]
    [result] = train(study, cell_of(study, SETTINGS, 0))
    radius = max(theory.radius(x), theory.radius(torch.tensor(problem.test.inputs)))
    norms = [float(U.norm()) for theta in (whole, *copies) for U in _heads(theta, x)[0]]
    constant = theory.Sizes(2, 3, radius, 3.0).beta_1(max(norms))
    expected = 2 * constant * float(np.mean(distances))
    assert result.measurements["lemma3_bound"] == pytest.approx(expected, rel=1e-9)
    loss = functional.softplus(-y * reference.plain_model(x, *_heads(whole, x))).mean()
    assert result.measurements["train_loss"] == pytest.approx(float(loss), rel=1e-9)


def _heads(theta: torch.Tensor, x: torch.Tensor) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    tokens, d = x.shape[1:]
    size = tokens * d
    return [t[:size].view(tokens, d) for t in theta], [t[size:].view(d, d) for t in theta]


def test_sides_of_the_lemmas_are_those_of_their_formulas() -> None:
    parameters = MultiheadPathsParameters.model_validate(SETTINGS | {"leave_one_out": False})
    problem = draw_problem(parameters.mixture(), 0)
    x, y = torch.tensor(problem.train.inputs), torch.tensor(problem.train.labels)
    sizes = theory.Sizes(2, 3, theory.radius(x), 3.0)
    model = training.Model(x, y, sizes)
    path = training.descend(model, parameters, Training(Execution()))
    target = training.target_head(model, 0.5)
    assert math.sqrt(3) * float(target.norm()) == pytest.approx(0.5)
    got = training.regret_columns(model, path, target, 0.7)
    losses = path.losses.numpy()
    full = (path.heads - target).norm(dim=1).numpy() * math.sqrt(3)
    of_target = float(
        functional.softplus(-y * reference.plain_model(x, *_heads(target.repeat(3, 1), x))).mean()
    )
    ninth = 2 * of_target + 3 * 0.25 / (4 * 0.7 * 15) + losses[0] / 30
    assert got["lemma9"] == pytest.approx(losses[1:].mean() / ninth)
    assert got["lemma10"] == pytest.approx(full.max() / 1.5)
    norms = model.split(path.heads)[0].flatten(1).norm(dim=1).tolist()
    descents = training.descent_columns(model, path, 0.7)
    squares = 3 * path.gradients.square().sum(1).numpy()
    ratios = (losses[:-1] - losses[1:]) / (0.35 * squares[:-1])
    rho = [0.7 * max(sizes.beta_2(a), sizes.beta_2(b)) for a, b in itertools.pairwise(norms)]
    assert descents["descent"] == pytest.approx(ratios.min())
    assert descents["descent_share"] == np.mean(np.array(rho) <= 1)


def test_segments_are_as_long_as_the_proposition_allows() -> None:
    parameters = MultiheadPathsParameters.model_validate(SETTINGS | {"heads": 50})
    problem = draw_problem(parameters.mixture(), 0)
    x, y = torch.tensor(problem.train.inputs), torch.tensor(problem.train.labels)
    model = training.Model(x, y, theory.Sizes(2, 3, theory.radius(x), 50.0))
    path = training.descend(model, parameters, Training(Execution()))
    for theta in path.heads[[0, 5, 15]]:
        first, second = training._most_concave(model, theta)
        square = 50 / len(first) * float((first - second).square().sum())
        beta = max(model.beta_3(first), model.beta_3(second))
        assert 0.3 * math.sqrt(50) < 2 * beta * square <= math.sqrt(50) * (1 + 1e-9)


@pytest.mark.parametrize("name", ["theorem1", "lemma8", "lemma9", "lemma10"])
def test_cells_that_miss_the_conditions_decide_nothing(name: str) -> None:
    cells = design(all_claims()[f"paths-{name}"].preset)
    ratios = dict.fromkeys(("lemma8", "lemma9", "lemma10"), 2.0)
    columns = {**MET, **ratios, "mean_train_loss": 2.0}
    broken = cells.assign(steps=10_000, **columns)
    assert measure(f"paths-{name}", broken).verdict == "fails"
    missed = broken.assign(theorem1_heads=30.0, theorem2_heads=30.0, lemma9_heads=30.0)
    missed = missed.assign(descent=0.9) if name == "lemma8" else missed
    assert measure(f"paths-{name}", missed).verdict == "vacuous"


def test_lemmas_are_held_to_their_own_conditions() -> None:
    """Steps may be larger than Theorem 1's; Lemma 10 asks for (73) in its place."""
    cells = design("heads-regret").assign(steps=200, **{**MET, "lemma9": 0.5, "lemma10": 0.5})
    large = cells.assign(theorem_step_size=-9.0)
    for name in ("lemma9", "lemma10"):
        assert measure(f"paths-{name}", large).verdict == "holds"
        assert measure(f"paths-{name}", cells.assign(descent=0.9)).verdict == "vacuous"
    few = cells.assign(theorem1_heads=30.0)
    assert measure("paths-lemma9", few).verdict == "holds"
    assert measure("paths-lemma10", few).verdict == "vacuous"
    missed = cells.assign(target_loss=0.4)  # η K L̂(θ) is 40 or more, ‖θ − θ₀‖² at most 36
    assert measure("paths-lemma10", missed).verdict == "vacuous"
    assert measure("paths-lemma10", cells.assign(target_loss=0.15)).verdict == "holds"


def test_cells_that_descent_alone_keeps_are_no_evidence() -> None:
    """Nine seeds whose bound is below the start's loss are one too few, whatever the others."""
    cells = design("heads-regret").assign(steps=200, **MET)
    for seeds, verdict in ((9, "inconclusive"), (10, "holds")):
        ratio = np.where(cells["seed"] < seeds, 0.5, 0.4)  # bounds of 0.6 and 0.75
        assert measure("paths-lemma9", cells.assign(lemma9=ratio)).verdict == verdict


@pytest.mark.parametrize("name", ["lemma8", "lemma9", "theorem1"])
def test_a_bound_above_the_loss_at_the_start_says_nothing(name: str) -> None:
    columns = {"lemma8": 0.4, "lemma9": 0.4}
    preset = all_claims()[f"paths-{name}"].preset
    cells = design(preset).assign(steps=10_000, **{**MET, **columns})
    above = cells.assign(theorem1_bound=1.0)
    assert measure(f"paths-{name}", above).verdict == "vacuous"
    below = cells.assign(lemma8=0.5, lemma9=0.5)
    assert measure(f"paths-{name}", below).verdict == "holds"


def test_a_distance_that_steps_can_reach_is_judged() -> None:
    """√(2 η K log 2) is at most 23.5 with the steps of the preset."""
    preset = all_claims()["paths-lemma10"].preset
    cells = design(preset).drop_duplicates(["seed", "heads", "learning_rate"])
    cells = cells.assign(steps=10_000, **MET, lemma10=0.5)
    with pytest.MonkeyPatch.context() as patch:
        for distance, verdict in ((11.7, "holds"), (12.87, "vacuous")):
            patch.setitem(bounds.SETTINGS[preset], "target_distance", distance)
            moved = cells.assign(target_distance=distance)
            assert measure("paths-lemma10", moved).verdict == verdict
