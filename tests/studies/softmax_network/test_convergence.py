"""The networks of Cao et al. 2024, their kernels and kernel regression, against slow oracles."""

from __future__ import annotations

import itertools
import math
from functools import partial
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import optimize, stats
from torch import Tensor

from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.studies.softmax_network import Activation, data
from overfit_cli.studies.softmax_network.activations import Network, gram_matrix, limit_gram_matrix
from overfit_cli.studies.softmax_network.claims.table1 import sufficient_widths
from overfit_cli.studies.softmax_network.engine import KernelRegression, largest_drift, step_parts
from overfit_cli.studies.softmax_network.parameters import SoftmaxConvergenceParameters
from overfit_cli.studies.softmax_network.reference import plain_network, plain_training
from overfit_cli.studies.softmax_network.study import study
from overfit_cli.studies.softmax_network.theory import largest_inner
from tests.training import begins_with, cell_of, train_in_batches

ACTIVATIONS: tuple[Activation, ...] = get_args(Activation)
trained = partial(train_in_batches, study, trajectories=True)


def cell(seed: int = 0, **values: object) -> Cell[SoftmaxConvergenceParameters]:
    return cell_of(study, values, seed)


def tensors(result: CellResult[Any]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The inputs, weights, signs and labels with which a cell began."""
    problem = data.draw_problem(result.cell.parameters, result.cell.seed)
    parts = (problem.inputs, problem.weights, problem.signs, problem.labels)
    x, w, a, y = map(torch.tensor, parts)
    return x, w, a, y


def networks(
    activation: Activation, batch: int = 3, m: int = 7, d: int = 4, n: int = 5, outputs: int = 2
) -> tuple[Network, Tensor]:
    """A batch of networks of m hidden units, and n inputs of unit norm for each."""
    random = np.random.default_rng(5)
    weights = torch.tensor(random.normal(size=(batch, m, d)))
    signs = torch.tensor(random.choice([-1.0, 1.0], (batch, outputs, m)))
    x = torch.tensor(random.normal(size=(batch, n, d)))
    return Network(activation, weights, signs), x / x.norm(dim=-1, keepdim=True)


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_outputs_gradients_and_gram_matrices_are_those_of_autograd(
    activation: Activation, outputs: int
) -> None:
    """Definition 3.6: JJᵀ = m H, to 1e-12 of the largest entry; rows run over samples last."""
    net, x = networks(activation, outputs=outputs)
    out = net.forward(x)
    gradients, gram = out.gradient(out.values - 1), gram_matrix(out)
    for index in range(3):
        weights = net.weights[index].clone().requires_grad_()
        values = plain_network(activation, x[index], weights, net.signs[index])
        each = values.T.flatten()
        rows = [torch.autograd.grad(value, weights, retain_graph=True)[0] for value in each]
        jacobian = torch.stack(rows).flatten(1)
        torch.testing.assert_close(out.values[index], values.detach(), rtol=1e-12, atol=1e-12)
        expected = (each.detach() - 1) @ jacobian
        torch.testing.assert_close(gradients[index].flatten(), expected, rtol=1e-11, atol=1e-11)
        products = jacobian @ jacobian.T
        assert (products - 7 * gram[index]).abs().max() < 1e-12 * products.abs().max()


def test_the_gram_matrix_between_other_inputs_is_a_block_of_that_of_all() -> None:
    net, x = networks("softmax")
    whole = gram_matrix(net.forward(x)).view(3, 2, 5, 2, 5)
    block = gram_matrix(net.forward(x[:, :2]), net.forward(x[:, 2:])).view(3, 2, 2, 2, 3)
    torch.testing.assert_close(block, whole[:, :, :2, :, 2:], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_limit_of_wide_networks_is_what_their_kernels_come_to(activation: Activation) -> None:
    """Deviations fall as the root of the width: at 8 · 10⁵ units they are some thousandths."""
    random = np.random.default_rng(1)
    x = torch.tensor(random.normal(size=(1, 3, 2)))
    weights = torch.tensor(0.7 * random.normal(size=(1, 400_000, 2))).repeat_interleave(2, 1)
    signs = torch.tensor(random.choice([-1.0, 1.0], (1, 2, 400_000, 1)))
    signs = torch.cat([signs, -signs], -1).flatten(2)
    gram = gram_matrix(Network(activation, weights, signs).forward(x))
    limit = limit_gram_matrix(activation, x, x, torch.tensor([0.7], dtype=torch.float64), 2)
    torch.testing.assert_close(gram, limit, rtol=0.02, atol=0.02 * float(limit.abs().max()))


def test_the_limit_of_relu_is_the_arc_cosine_kernel() -> None:
    angles = torch.linspace(0, math.pi, 7, dtype=torch.float64)
    points = torch.stack([angles.cos(), angles.sin()], -1)[None]
    gram = limit_gram_matrix("relu", points[:, :1], points, torch.ones(1).double(), 1)[0, 0]
    expected = angles.cos() * (math.pi - angles) / (2 * math.pi)
    torch.testing.assert_close(gram, expected, rtol=1e-12, atol=1e-8)


def regression() -> tuple[KernelRegression, Tensor, Tensor, Tensor]:
    """Two cells of five samples: the regression, H, Y and η m."""
    random = np.random.default_rng(2)
    roots = torch.tensor(random.normal(size=(2, 5, 8)))
    gram, labels = roots @ roots.mT / 8, torch.tensor(random.normal(size=(2, 5)))
    rates = torch.tensor([0.3, 0.1], dtype=torch.float64)
    return KernelRegression.with_kernel(gram, labels, rates), gram, labels, rates


def test_regression_in_closed_form_is_its_equations_step_by_step() -> None:
    """(24), with m = 1, so that η is the rate; and the gradient of (23), which is another one."""
    fit, gram, labels, rates = regression()
    cross = torch.tensor(np.random.default_rng(3).normal(size=(2, 4, 5)))
    close = partial(torch.testing.assert_close, rtol=1e-9, atol=1e-11)
    of_24, of_23 = torch.zeros_like(labels), torch.zeros_like(labels).requires_grad_()
    for step in range(40):
        fitted, elsewhere = ((of @ of_24[..., None]).squeeze(-1) for of in (gram, cross))
        close(fit.predictions(step), fitted)
        close(fit.predictions_elsewhere(cross, step), elsewhere)
        close(fit.remaining(step).norm(dim=1), (labels - fitted).norm(dim=1))
        of_24 = of_24 - rates[:, None] * (fitted - labels)
        by_gradient = (gram @ of_23[..., None]).squeeze(-1)
        close(fit.predictions_by_gradient(step), by_gradient.detach())
        [gradient] = torch.autograd.grad((by_gradient - labels).square().sum() / 2, of_23)
        of_23 = (of_23 - (rates / fit.largest)[:, None] * gradient).detach().requires_grad_()
    assert (fit.predictions(19) - fit.predictions_by_gradient(19)).abs().max() > 0.01


def test_update_24_is_gradient_descent_in_beta_and_not_in_gamma() -> None:
    """At one γ, with m = 1: it has neither the direction nor the length of −∇ of (23)."""
    features, gamma = torch.randn(8, 5, generator=torch.Generator().manual_seed(0)), torch.ones(5)
    gram, labels = features.T @ features, torch.arange(5.0)
    update_24 = labels - gram @ gamma
    in_gamma, in_beta = gamma.requires_grad_(), (features @ gamma).detach().requires_grad_()
    loss = ((gram @ in_gamma - labels) ** 2).sum() / 2
    [gradient] = torch.autograd.grad(loss, in_gamma)
    torch.testing.assert_close(gradient, -gram @ update_24.detach())
    assert torch.cosine_similarity(update_24, -gradient, dim=0) < 0.99
    assert gradient.norm() > 2 * update_24.norm()
    [gradient] = torch.autograd.grad(((features.T @ in_beta - labels) ** 2).sum() / 2, in_beta)
    torch.testing.assert_close(features @ update_24, -gradient)


@pytest.mark.parametrize("factor", [0.5, 1.9, 2.2, 3.5])
def test_regression_tells_the_first_step_at_which_it_is_near_enough(factor: float) -> None:
    """With steps above 2/λ_max ‖F − Y‖² falls and rises again: the first step below ε counts."""
    random = np.random.default_rng(4)
    roots, labels = random.normal(size=(30, 5, 8)), torch.tensor(random.normal(size=(30, 5)))
    gram = torch.tensor(roots @ roots.transpose(0, 2, 1)) / 8
    rates = factor / torch.linalg.eigvalsh(gram)[:, -1]
    fit = KernelRegression.with_kernel(gram, labels, rates)
    squares = torch.stack([fit.remaining(step).square().sum(1) for step in range(400)])
    for epsilon in (2.0, 0.5):
        for index, steps in enumerate(fit.steps_to(epsilon)):
            below = (squares[:, index] <= epsilon).nonzero()
            slow = float(below[0]) if len(below) else math.nan
            assert steps == pytest.approx(slow, nan_ok=True) or steps >= 400
    assert fit.steps_to(1e9) == [0.0] * 30
    singular = KernelRegression.with_kernel(torch.zeros(1, 1, 1), torch.ones(1, 1), torch.ones(1))
    assert math.isnan(singular.steps_to(0.5)[0])


def test_an_eigenvalue_of_round_off_is_none() -> None:
    """Four hidden units in pairs have a kernel of rank four at most, in two dimensions."""
    narrow, wide = trained(
        *(cell(m=m, n=8, d=2, activation="relu", training_steps=20) for m in (4, 512))
    )
    for name in ("lambda_start", "kappa", "width_missing", "movement_over_bound"):
        assert name not in narrow.measurements, name
    assert "drift_share" in narrow.measurements
    x, w, a, _ = tensors(wide)
    gram = gram_matrix(Network("relu", w[None], a[None]).forward(x[None]))[0]
    assert wide.measurements["kappa"] == pytest.approx(float(torch.linalg.cond(gram)))


@pytest.mark.parametrize(
    ("activation", "initialisation"),
    [*((activation, "symmetric") for activation in ACTIVATIONS), ("softmax", "independent")],
)
def test_a_cell_trains_as_autograd_does(activation: Activation, initialisation: str) -> None:
    shape: dict[str, Any] = {"m": 40, "n": 4, "d": 3, "outputs": 2, "epsilon": 1e-4}
    [result] = trained(cell(activation=activation, initialisation=initialisation, **shape))
    x, w, a, y = tensors(result)
    targets = y + plain_network(activation, x, w, a)
    loop = plain_training(activation, x, targets, w, a, result.measurements["step_size"])
    plain = list(itertools.islice(loop, result.steps + 1))
    for step, loss in zip(result.trajectory["step"], result.trajectory["train_loss"], strict=True):
        assert loss == pytest.approx(plain[int(step)][0], rel=1e-8)
    assert plain[-1][0] * 2 <= 1e-4 < plain[-2][0] * 2
    moved = (plain[-1][1] - w).norm(dim=1).max().item()
    assert result.trajectory["movement"][-1] == pytest.approx(moved, rel=1e-8)


@pytest.mark.parametrize("sigma", [0.03, 0.3, 1.0])
def test_inner_products_are_below_b(sigma: float) -> None:
    """Lemma B.1, part 1: B is many deviations, whatever n, d and m are drawn."""
    for n, d, m in ((4, 8, 8192), (16, 8, 4096), (64, 64, 512)):
        problem = data.draw_problem(cell(n=n, d=d, m=m, sigma=sigma).parameters, 0)
        assert np.abs(problem.inputs @ problem.weights.T).max() < largest_inner(n, d, sigma)


@pytest.mark.parametrize("outputs", [1, 3])
def test_gradients_of_hidden_units_are_below_lemma_d1s_bound(outputs: int) -> None:
    """‖Δw_r‖ ≤ e^(3B) √(nd) ‖F − Y‖, with d the number of outputs."""
    [result] = trained(cell(n=4, m=256, sigma=0.03, outputs=outputs))
    x, w, a, y = tensors(result)
    out = Network("softmax", w[None], a[None]).forward(x[None])
    longest = out.gradient(out.values - y).norm(dim=-1).max()
    bound = math.exp(3 * largest_inner(4, 8, 0.03)) * math.sqrt(4 * outputs)
    assert longest < bound * (out.values - y).norm()


def test_the_stated_rate_is_held_to_every_step_that_is_more_than_round_off() -> None:
    [result] = trained(cell(m=256, n=4, epsilon=0.0, training_steps=1000))
    squares = [2 * loss for loss in result.trajectory["train_loss"]]
    assert squares[-1] < 1e-26, "round-off"
    rate = 1 - result.measurements["step_size"] * 256 * result.measurements["lambda_start"] / 2
    held = [
        square / squares[0] / rate**step
        for step, square in zip(result.trajectory["step"], squares, strict=True)
        if step and square > 1e-14 * squares[0]
    ]
    assert max(held) == pytest.approx(result.measurements["rate_ratio"], rel=1e-6)
    assert result.measurements["rate_ratio"] < 1


def test_longer_training_sets_and_wider_networks_extend_shorter_ones() -> None:
    small = data.draw_problem(cell(m=20, n=5).parameters, 3)
    large = data.draw_problem(cell(m=40, n=9).parameters, 3)
    for part in ("inputs", "labels", "weights", "signs"):
        assert begins_with(getattr(large, part), getattr(small, part)), part


def test_inputs_are_drawn_where_they_are_said_to_be() -> None:
    sphere = data.draw_problem(cell(n=500, outputs=3).parameters, 0)
    assert np.linalg.norm(sphere.inputs, axis=1) == pytest.approx(np.ones(500))
    radii = np.linalg.norm(sphere.labels, axis=1)
    assert stats.kstest(radii**3, "uniform").pvalue > 0.01, "uniform in the ball"
    ball = data.draw_problem(cell(n=500, data="ball", d=5).parameters, 0)
    assert stats.kstest(np.linalg.norm(ball.inputs, axis=1) ** 5, "uniform").pvalue > 0.01
    digits = data.draw_problem(cell(n=100, data="digits", d=10).parameters, 0)
    assert np.linalg.norm(digits.inputs, axis=1).max() <= 1
    points, kinds = data.digit_components(10)
    matched = (digits.inputs[:, None] == points).all(axis=-1).argmax(axis=1)
    assert (digits.labels[:, 0] == 1 - 2 * (kinds[matched] % 2)).all(), "an even digit's is 1"
    inputs = np.vstack([digits.inputs, digits.test_inputs])
    assert len(np.unique(inputs, axis=0)) == 164, "no digit is trained and tested on"


# Parts of a step, largest changes of the kernel, and powers of λ


def test_the_parts_of_a_step_are_those_of_lemma_e1() -> None:
    """Term by term, in loops over units; together they are the change of ‖F − Y‖², to 1e-12."""
    net, x = networks("softmax", 1, 6, 2, 3)
    y, eta = torch.ones(1, 3, 2, dtype=torch.float64), 0.01
    out = net.forward(x)
    parts = step_parts(out, out.values - y, torch.tensor([eta], dtype=torch.float64))
    gradient = out.gradient(out.values - y)[0]
    before, after = net.weights[0], net.weights[0] - eta * gradient
    v = out.values[0] - y[0]
    c0 = c1 = c2 = 0.0
    for i, point in enumerate(x[0]):
        old, new = (torch.exp(weights @ point) for weights in (before, after))
        for output, signs in enumerate(net.signs[0]):
            v0 = v1 = v2 = 0.0
            for r, sign in enumerate(signs):
                dz = float(-eta * gradient[r] @ point)
                v0 += 6 * float(sign * (1 / new.sum() - 1 / old.sum()) * new[r])
                v1 += 6 * float(sign * old[r] / old.sum()) * dz
                v2 += 6 * float(sign / old.sum() * (new[r] - old[r] * (1 + dz)))
            c0, c1, c2 = (
                total + 2 * float(v[i, output]) * part
                for total, part in ((c0, v0), (c1, v1), (c2, v2))
            )
    assert [float(parts.c0), float(parts.c1)] == pytest.approx([c0, c1], rel=1e-9)
    moved = plain_network("softmax", x[0], after, net.signs[0])
    change = (moved - y[0]).square().sum() - v.square().sum()
    c3 = (moved - out.values[0]).square().sum()
    assert c0 + c1 + c2 + float(c3) == pytest.approx(float(change), rel=1e-11)
    assert float(parts.longest) == pytest.approx(float(gradient.norm(dim=1).max()))


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["softmax", "exp"])
def test_ascent_finds_what_a_search_over_all_directions_finds(activation: Activation) -> None:
    """Three units in the plane: a general optimiser over their three angles, to 0.002."""
    net, x = networks(activation, 1, 3, 2, 3)
    gram, radius = gram_matrix(net.forward(x)), 1e-3

    def drift(angles: np.ndarray) -> float:
        step = radius * torch.tensor(np.stack([np.cos(angles), np.sin(angles)], -1))
        moved = Network(activation, net.weights + step, net.signs)
        return -float((gram_matrix(moved.forward(x)) - gram).norm())

    box = optimize.Bounds(np.zeros(3), np.full(3, 2 * math.pi))
    best = -optimize.differential_evolution(drift, box, seed=0, tol=1e-8, maxiter=60).fun
    directions = torch.tensor(np.random.default_rng(6).normal(size=(4, 1, 3, 2)))
    found = float(largest_drift(net, x, directions, radius)) * radius * 3 * 2
    assert found == pytest.approx(best, rel=2e-3)


def test_no_weights_within_r_change_relus_kernel_by_more_than_the_count() -> None:
    net, x = networks("relu", 1, 200, 2, 3)
    gram, radius = gram_matrix(net.forward(x)), 0.05
    bound = float(largest_drift(net, x, torch.empty(0), radius)) * radius * 3 * 2
    random = np.random.default_rng(7)
    found = []
    for _ in range(200):
        step = torch.tensor(random.normal(size=(1, 200, 2)))
        step = radius * step / step.norm(dim=-1, keepdim=True)
        moved = Network("relu", net.weights + step, net.signs)
        found.append(float((gram_matrix(moved.forward(x)) - gram).norm()))
    assert 0.2 * bound < max(found) <= bound


def test_a_width_suffices_from_which_on_training_is_quick_enough() -> None:
    """Ratios of 8, 4, 1 cross two half way from 20 to 40 on a scale of ratios; a limit is slow.

    Each kind of data is measured by itself.
    """
    ratios = [8.0, 4.0, 1.0, np.nan, 4.0, 1.0, 9.0, 5.0, 3.0, 1.5, 1.2, 1.0]
    cells = pd.DataFrame({"seed": np.repeat(range(4), 3), "m": [10, 20, 40] * 4})
    cells = cells.assign(steps_over_limit=ratios, activation="exp", n=4, d=2, data="sphere")
    other = cells.assign(data="digits", steps_over_limit=1.0)
    found = sufficient_widths(pd.concat([cells, other])).set_index(["data", "seed"])["width"]
    assert found["sphere"][0] == found["sphere"][1] == pytest.approx(np.sqrt(20 * 40))
    assert found["sphere"][2] == np.inf
    assert found["sphere"][3] == 0
    assert (found["digits"] == 0).all()
