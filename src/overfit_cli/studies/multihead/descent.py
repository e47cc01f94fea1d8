"""Gradient descent from zero, its target θ, and what the proofs' lemmas say of each step.

From zero all heads stay alike: θ̃ is H copies of one head θ_h = (U row by row, W row by row), and a
distance of θ̃ is √H times that of θ_h. The target θ is at a given distance D from the start. It has
W = 0 and the U of the widest margin of the model's linear part, so that it is one of those that
Theorem 1 takes ("fix any θ").

The copies of section 6.2 leave out one sample each, and divide by n all the same:
L̂^(−i) = 1/n Σ_{j≠i} ℓ_j. They are trained beside the model, as cells with a label of zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.core.training import Training, known_numbers, logged_steps
from overfit_cli.studies.multihead import theory
from overfit_cli.studies.multihead.data import Problem, draw_problem
from overfit_cli.studies.multihead.engine import HeadGradients, logits_of, loss_weights
from overfit_cli.studies.multihead.first_phase import largest_margin
from overfit_cli.studies.multihead.parameters import MultiheadPathsParameters

P = MultiheadPathsParameters

POINTS = 33
"""Points of a segment on which the largest loss is looked for (Proposition 4)."""

FEW_POINTS = 9
"""Points of each of the K segments of Lemma 8."""

RATIO = 1.25
"""The ratio of a step whose segments are measured to the one before, after the first ten."""

LARGEST_RISE = 1 / 3
"""What Proposition 4 lets a loss rise on a segment, over the larger one of its ends."""


@dataclass(frozen=True)
class Path:
    """Steps 0 to K of gradient descent: one head of each, the same for all heads."""

    heads: Tensor  # θ_h, (steps + 1, parameters)
    gradients: Tensor  # ∂L̂/∂θ_h, (steps + 1, parameters)
    losses: Tensor  # L̂, (steps + 1,)
    copies: Tensor  # θ_h of each leave-one-out copy after step K, (copies, parameters)


@dataclass(frozen=True)
class Model:
    """The samples of a cell with its sizes T, d, R and H, and losses of any heads."""

    inputs: Tensor  # X, (samples, tokens, features)
    labels: Tensor  # y, (samples,)
    sizes: theory.Sizes

    def split(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Return U, (..., tokens, features), and W, (..., features, features), of θ_h."""
        T, d = self.inputs.shape[1:]
        shape = theta.shape[:-1]
        return theta[..., : T * d].reshape(*shape, T, d), theta[..., T * d :].reshape(*shape, d, d)

    def losses(self, theta: Tensor) -> Tensor:
        """Return losses of θ_h, (points, classes, parameters); a class has H / classes heads."""
        U, W = self.split(theta)  # (points, classes, T, d), (points, classes, d, d)
        share = math.sqrt(self.sizes.heads) / theta.shape[1]
        mixing = torch.full(theta.shape[:2], share, dtype=theta.dtype)  # (points, classes)
        margins = self.labels * logits_of(self.inputs, U, W, mixing)  # (points, samples)
        return functional.softplus(-margins).mean(-1)

    def beta_3(self, theta: Tensor) -> float:
        """Return β₃ of the largest ‖U_h‖ of θ_h, (..., parameters)."""
        U, _ = self.split(theta)
        return self.sizes.beta_3(float(U.flatten(-2).norm(dim=-1).max()))


def train_cell(cell: Cell[P], training: Training) -> CellResult[P]:
    """Train a cell and its copies, and measure its path."""
    settings = cell.parameters
    problem = draw_problem(settings.mixture(), cell.seed)
    inputs = torch.as_tensor(problem.train.inputs)  # X, (samples, tokens, features)
    _, tokens, features = inputs.shape
    sizes = theory.Sizes(tokens, features, theory.radius(inputs), float(settings.heads))
    model = Model(inputs, torch.as_tensor(problem.train.labels), sizes)
    with torch.inference_mode():
        path = descend(model, settings, training)
        if not bool(path.losses.isfinite().all()):
            return CellResult(cell, {}, settings.training_steps, "diverged")
        target = target_head(model, settings.target_distance)
        measured = _measure(model, path, target, settings, problem)
    return CellResult(cell, known_numbers(measured), settings.training_steps)


def descend(model: Model, settings: P, training: Training) -> Path:
    """Take all steps from zero; with `leave_one_out`, those of a copy without each sample too."""
    n, T, d = model.inputs.shape
    cells = 1 + n * settings.leave_one_out
    labels = model.labels.repeat(cells, 1)  # (cells, samples)
    labels[1:] *= 1 - torch.eye(n, dtype=labels.dtype)[: cells - 1]  # the i-th copy lacks sample i
    engine = HeadGradients(model.inputs, labels, cells, 1)
    theta = model.inputs.new_zeros(cells, 1, T * d + d * d)  # θ_h, (cells, 1, parameters)
    heads = torch.full((cells,), model.sizes.heads, dtype=theta.dtype)  # H, (cells,)
    mixing = heads.sqrt()[:, None]  # √H, (cells, 1)
    steps = settings.training_steps
    thetas, gradients = (theta.new_zeros(steps + 1, T * d + d * d) for _ in range(2))
    losses = theta.new_zeros(steps + 1)  # (steps + 1,)
    U, W = model.split(theta)  # views: (cells, 1, T, d), (cells, 1, d, d)
    for step in range(steps + 1):
        training.check_time()
        now = engine(U, W, mixing, heads, False)
        gradient = torch.cat([now.projection.flatten(2), now.attention.flatten(2)], 2)
        thetas[step], gradients[step], losses[step] = theta[0, 0], gradient[0, 0], now.loss[0]
        if step < steps:
            theta.sub_(gradient, alpha=settings.learning_rate)  # θ ← θ − η ∇L̂
    return Path(thetas, gradients, losses, theta[1:, 0])


def target_head(model: Model, distance: float) -> Tensor:
    """Return θ_h of the target at this distance from zero, (parameters,).

    At zero a sample's gradient in U has its mean token x̄ in each row, and that in W is zero.
    """
    T, d = model.inputs.shape[1:]
    rows = (model.labels[:, None] * model.inputs.mean(1)).numpy()  # y x̄, (samples, d)
    row = torch.as_tensor(largest_margin(rows).direction)  # of unit norm, (d,)
    U = row.repeat(T, 1) * distance / math.sqrt(T * model.sizes.heads)  # (T, d)
    return torch.cat([U.flatten(), U.new_zeros(d * d)])


def _measure(
    model: Model, path: Path, target: Tensor, settings: P, problem: Problem
) -> dict[str, float]:
    H, distance, eta = model.sizes.heads, settings.target_distance, settings.learning_rate
    goal = theory.Target(
        model.sizes,
        distance,
        largest=distance / math.sqrt(H),
        loss=float(model.losses(target[None, None])),
        start_loss=float(path.losses[0]),
        steps=settings.training_steps,
    )
    test = torch.as_tensor(problem.test.inputs), torch.as_tensor(problem.test.labels)
    return {
        "train_loss": float(path.losses[-1]),
        "mean_train_loss": float(path.losses[1:].mean()),
        "test_loss": float(Model(*test, model.sizes).losses(path.heads[-1:, None])),
        "target_loss": goal.loss,
        "theorem1_heads": goal.log10_heads(theory.THEOREM_1),
        "theorem2_heads": goal.log10_heads(theory.THEOREM_2),
        "theorem_step_size": goal.log10_step_size(),
        **goal.bounds(eta, settings.n),
        **descent_columns(model, path, eta),
        **regret_columns(model, path, target, eta),
        "segment_rise": segment_rise(model, path, target),
        **({"lemma3_bound": stability_bound(model, path, test)} if len(path.copies) else {}),
    }


def descent_columns(model: Model, path: Path, step_size: float) -> dict[str, float]:
    """Return Lemma 7's sides: (L̂_k − L̂_{k+1}) / (η/2 ‖∇L̂_k‖²), and η (β₂(θ_k) ∨ β₂(θ_{k+1}))."""
    H = model.sizes.heads
    U, _ = model.split(path.heads)  # (steps + 1, T, d)
    norms = U.flatten(1).norm(dim=1).tolist()
    betas = torch.tensor([model.sizes.beta_2(norm) for norm in norms])
    rho = step_size * torch.maximum(betas[:-1], betas[1:])  # η ρ_k, (steps,)
    squares = H * path.gradients[:-1].square().sum(1)  # ‖∇L̂‖², (steps,)
    descents = (path.losses[:-1] - path.losses[1:]) / (step_size / 2 * squares)  # (steps,)
    met = rho <= 1
    return {
        "descent_share": float(met.double().mean()),
        "descent_allowed": float(descents[met].min()) if met.any() else math.nan,
        "descent": float(descents.min()),
    }


def regret_columns(model: Model, path: Path, target: Tensor, step_size: float) -> dict[str, float]:
    """Return the sides of Lemmas 8 to 10, and Lemma 9's H; points of a segment stand for all."""
    sizes, steps = model.sizes, len(path.losses) - 1
    squares = sizes.heads * (path.heads - target).square().sum(1)  # ‖θ_k − θ‖², (steps + 1,)
    start = float(squares[0])  # ‖θ − θ₀‖²
    loss = float(model.losses(target[None, None]))
    U, _ = model.split(path.heads)  # (steps + 1, T, d)
    at_target = model.beta_3(target)
    betas = torch.tensor(
        [max(at_target, sizes.beta_3(norm)) for norm in U.flatten(1).norm(dim=1).tolist()]
    )  # β₃(θ) ∨ β₃(θ_k), (steps + 1,)
    highest = _highest(model, path.heads[:-1], target)  # (steps,)
    tau = betas[:-1] * highest / math.sqrt(sizes.heads)  # τ_k, (steps,)
    mean = float(path.losses[1:].mean())
    first = loss + start / (2 * step_size * steps)
    eighth = first + float((tau * squares[:-1]).mean()) / 2
    ninth = 2 * loss + 3 * start / (4 * step_size * steps) + float(path.losses[0]) / (2 * steps)
    needed = float((2 * betas * squares).max())  # √H of Lemma 9
    return {
        "lemma8": mean / eighth,
        "lemma9": mean / ninth,
        "lemma9_heads": 2 * math.log10(needed),
        "lemma10": math.sqrt(float(squares.max()) / start) / 3,
    }


def _highest(model: Model, heads: Tensor, target: Tensor) -> Tensor:
    shares = torch.linspace(0, 1, FEW_POINTS, dtype=heads.dtype)  # (points,)
    parts = []
    for some in torch.split(heads, 500):
        points = torch.lerp(some[:, None], target, shares[:, None])  # (steps, points, parameters)
        losses = model.losses(points.flatten(0, 1)[:, None])  # (steps · points,)
        parts.append(losses.view(len(some), -1).amax(1))
    return torch.cat(parts)


def segment_rise(model: Model, path: Path, target: Tensor) -> float:
    """Return the largest rise of the loss on a segment of Proposition 4, over what it allows.

    The segments are as long as (18) allows: 2 (β₃(θ₁) ∨ β₃(θ₂)) ‖θ₁ − θ₂‖² ≤ √H. From some steps
    one goes to the target, or so far towards it, and one has the step in its middle and the
    direction in which the loss is most concave.
    """
    steps = logged_steps(len(path.heads) - 1, ratio=RATIO)
    rises = [0.0]
    for theta in path.heads[steps]:
        towards = torch.lerp(theta, target, _allowed_share(model, theta, target))
        rises.append(_rise(model, theta[None], towards[None]))
        rises.append(_rise(model, *_most_concave(model, theta)))
    return max(rises) / LARGEST_RISE


def _allowed_share(model: Model, theta: Tensor, target: Tensor) -> float:
    """Return the share of the way to the target that (18) allows, at most 1."""
    beta = max(model.beta_3(theta), model.beta_3(target))
    root = math.sqrt(model.sizes.heads)
    length = math.sqrt(root / (2 * beta))
    distance = math.sqrt(model.sizes.heads) * float((theta - target).norm())
    return min(1.0, length / distance)


def _most_concave(model: Model, theta: Tensor) -> tuple[Tensor, Tensor]:
    """Return the ends of the segment around θ_h of least curvature, each (classes, parameters).

    From two heads on, half of the heads go one way and half the other: the outputs' changes cancel
    to first order.
    """
    H = model.sizes.heads
    head = theory.derivatives(model.inputs, *model.split(theta))
    margins = model.labels * math.sqrt(H) * head.outputs  # y Φ̃, (samples,)
    weights = loss_weights(margins[None], scaled=False)[0] / len(margins)  # −ℓ′/n, (samples,)
    hessian = head.mean_hessian(-weights * model.labels) / math.sqrt(H)  # of one head
    if H < 2:
        curved = (weights * torch.sigmoid(margins))[:, None]  # ℓ″/n, (samples, 1)
        hessian = hessian + head.gradients.T @ (curved * head.gradients)
    direction = torch.linalg.eigh(hessian).eigenvectors[:, 0]  # (parameters,)
    root = math.sqrt(H)
    U, _ = model.split(theta)
    norm = float(U.norm())
    longest = math.sqrt(root / (2 * model.sizes.beta_3(norm)))  # at least the length below
    length = math.sqrt(root / (2 * model.sizes.beta_3(norm + longest / root)))
    change = direction * length / (2 * root)  # of a head, (parameters,)
    signs = direction.new_tensor([[1.0]] if H < 2 else [[1.0], [-1.0]])  # (classes, 1)
    return theta + signs * change, theta - signs * change


def _rise(model: Model, first: Tensor, second: Tensor) -> float:
    """Return the largest loss over that at the worse end, (classes, parameters), less 1."""
    shares = torch.linspace(0, 1, POINTS, dtype=first.dtype)[:, None, None]  # (points, 1, 1)
    losses = model.losses(torch.lerp(first, second, shares))  # (points,)
    return float(losses.max() / torch.maximum(losses[0], losses[-1])) - 1


def stability_bound(model: Model, path: Path, test: tuple[Tensor, Tensor]) -> float:
    """Return Lemma 3's bound 2 G/n Σ ‖θ_K − θ_K^(−i)‖ on test less training loss.

    G is β₁ at the largest ‖U_h‖ of the model and its copies after the last step: no sample's loss
    has a larger gradient between them.
    """
    sizes = model.sizes
    distances = (path.copies - path.heads[-1]).norm(dim=1)  # of a head, (copies,)
    stability = math.sqrt(sizes.heads) * float(distances.mean())
    largest = theory.Sizes(
        sizes.tokens, sizes.features, max(sizes.radius, theory.radius(test[0])), sizes.heads
    )
    U, _ = model.split(torch.cat([path.copies, path.heads[-1:]]))  # (copies + 1, T, d)
    constant = largest.beta_1(float(np.max(U.flatten(1).norm(dim=1).numpy())))
    return 2 * constant * stability
