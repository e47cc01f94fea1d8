"""Exact derivatives, and the bounds of section 3 that measured quantities are divided by.

With A = softmax(X W Xᵀ), G_ts = ⟨u_t, x_s⟩ and means over s under row t of A (Lemma 1),

    ∂Φ/∂u_t = x̄_t,   ∂Φ/∂W = Σ_t x_t p_tᵀ,   p_t = Σ_s A_ts (G_ts − Ḡ_t) x_s
    ∂²Φ/∂u_t ∂W = x_t ⊗ cov_t(x),
    ∂²Φ/∂W² = Σ_t x_t x_tᵀ ⊗ (Σ_s A_ts (G_ts − Ḡ_t) x_s x_sᵀ − p_t x̄_tᵀ − x̄_t p_tᵀ)

A head's parameters are U row by row, then W row by row: T d + d² of them.

The bounds are β₁ to β₃ (Corollary 1), Proposition 1, and those of Theorems 1 and 2. They are those
of the print of TMLR (April 2024). A later version of the paper, which corrects a miscalculation of
the Hessian's bound, has d times β₃ and α(θ), and a bound in Proposition 1 that is at least √d times
as large: what holds here holds there too. Where Corollary 1 has the norm of θ, that of U suffices
(its footnote). The bounds are computed with it, so a bound that holds here holds in the looser form
of the text too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, linalg

from overfit_cli.studies.multihead.engine import Heads, full_matrices, log_mean_loss, loss_weights

THEOREM_1, THEOREM_2 = 36.0, 256.0
"""The constants with which each theorem requires many heads (the appendix's restatements)."""


@dataclass(frozen=True)
class Derivatives:
    """First and second derivatives of one head's output Φ(X; U, W) in its parameters."""

    outputs: Tensor  # Φ, (samples,)
    gradients: Tensor  # ∇Φ, (samples, parameters)
    _inputs: Tensor  # X, (samples, tokens, features)
    _covariances: Tensor  # cov_t(x), (samples, tokens, features, features)
    _curvatures: Tensor  # the bracket in ∂²Φ/∂W², in the same shape

    def first(self, count: int) -> Derivatives:
        """Return the derivatives of the first samples alone."""
        return Derivatives(
            self.outputs[:count],
            self.gradients[:count],
            self._inputs[:count],
            self._covariances[:count],
            self._curvatures[:count],
        )

    def hessians(self) -> Tensor:
        """Return the Hessian of each sample's output, (samples, parameters, parameters)."""
        X = self._inputs
        in_UW = torch.einsum("nta,ntjb->ntjab", X, self._covariances)  # (samples, T, d, d, d)
        in_WW = torch.einsum("nta,ntc,ntbe->nabce", X, X, self._curvatures)  # (samples, d, d, d, d)
        return _join(in_UW, in_WW)

    def mean_hessian(self, weights: Tensor) -> Tensor:
        """Return the Hessian of a weighted sum of outputs, (parameters, parameters)."""
        X, weighted = self._inputs, weights[:, None, None] * self._inputs  # each (samples, T, d)
        in_UW = torch.einsum("nta,ntjb->tjab", weighted, self._covariances)  # (T, d, d, d)
        in_WW = torch.einsum("nta,ntc,ntbe->abce", weighted, X, self._curvatures)  # (d, d, d, d)
        return _join(in_UW[None], in_WW[None])[0]


def _join(in_UW: Tensor, in_WW: Tensor) -> Tensor:
    """Join the blocks of Hessians, (samples, parameters, parameters); ∂²Φ/∂U² is zero.

    The blocks are ∂²Φ/∂u_tj ∂W_ab, (samples, t, j, a, b), and ∂²Φ/∂W_ab ∂W_ce, (samples, a, b, c,
    e).
    """
    n, T, d = in_UW.shape[:3]
    size_U, size_W = T * d, d**2
    UW = in_UW.reshape(n, size_U, size_W)  # (samples, T d, d²)
    hessians = UW.new_zeros(n, *(2 * [size_U + size_W]))  # (samples, parameters, parameters)
    hessians[:, :size_U, size_U:] = UW
    hessians[:, size_U:, :size_U] = UW.mT
    hessians[:, size_U:, size_U:] = in_WW.reshape(n, size_W, size_W)
    return hessians


def derivatives(inputs: Tensor, U: Tensor, W: Tensor) -> Derivatives:
    """Return the derivatives of a head's output at X, (samples, T, d), U, (T, d), and W, (d, d)."""
    X = inputs
    A = (X @ W @ X.mT).softmax(-1)  # (samples, t, s)
    G = U @ X.mT  # (samples, t, s)
    G_mean = (A * G).sum(-1)  # Ḡ, (samples, t)
    spread = A * (G - G_mean[..., None])  # A_ts (G_ts − Ḡ_t), (samples, t, s)
    means = A @ X  # x̄_t, (samples, t, d)
    pulls = spread @ X  # p_t, (samples, t, d)
    squares = torch.einsum("nsa,nsb->nsab", X, X)  # x_s x_sᵀ, (samples, s, d, d)
    second = torch.einsum("nts,nsab->ntab", A, squares)  # (samples, t, d, d)
    crossed = pulls[..., :, None] * means[..., None, :]  # p_t x̄_tᵀ, (samples, t, d, d)
    curvatures = (
        torch.einsum("nts,nsab->ntab", spread, squares) - crossed - crossed.mT
    )  # (samples, t, d, d)
    in_W = torch.einsum("nta,ntb->nab", X, pulls)  # ∂Φ/∂W, (samples, d, d)
    return Derivatives(
        outputs=G_mean.sum(-1),
        gradients=torch.cat([means.flatten(1), in_W.flatten(1)], 1),
        _inputs=X,
        _covariances=second - means[..., :, None] * means[..., None, :],  # (samples, t, d, d)
        _curvatures=curvatures,
    )


@dataclass(frozen=True)
class LossCurvature:
    """Derivatives of the training loss in the weights of all heads, over the loss."""

    log_loss: float  # the logarithm of the loss L
    gradient: float  # ‖∇L‖ / L
    largest: float  # the largest eigenvalue of ∇²L, over L
    smallest: float  # the smallest one, over L


def loss_curvature(by_class: list[Derivatives], counts: Tensor, labels: Tensor) -> LossCurvature:
    """Return the curvature of the loss for heads in classes.

    The Hessian of all heads needs no matrix of their size. Within a class it is the same block for
    every head, plus the same rank-n part for every pair of heads. So its eigenvalues are those on
    the classes' means, and, for changes of heads against each other, those of each class's block.
    The counts are the heads of each class.
    """
    H = counts.sum()  # a number
    logits = sum(
        count / H.sqrt() * head.outputs for count, head in zip(counts, by_class, strict=True)
    )
    margins = torch.as_tensor(logits) * labels  # (samples,)
    weights = loss_weights(margins[None], scaled=True)[0] / len(margins)  # −ℓ′ / (n L), (samples,)
    curved = weights * torch.sigmoid(margins)  # ℓ″ / (n L), as ℓ″ = −ℓ′ σ(margin), (samples,)

    # Σ_i ℓ′ ∇²Φ / √H by class, and Σ_i ℓ″ ∇Φ ∇Φᵀ over all classes
    roots = (counts / H).sqrt()  # (classes,)
    blocks = [head.mean_hessian(-weights * labels) / H.sqrt() for head in by_class]
    gradients = torch.cat(
        [root * head.gradients for root, head in zip(roots, by_class, strict=True)], 1
    )  # (samples, classes · parameters)
    diagonal: Tensor = torch.block_diag(*blocks)  # type: ignore[no-untyped-call]
    # ∇²L / L on the classes, (classes · parameters, the same)
    hessian = diagonal + gradients.T @ (curved[:, None] * gradients)
    spectra = [torch.linalg.eigvalsh(hessian)]
    spectra += [
        torch.linalg.eigvalsh(block)
        for block, count in zip(blocks, counts, strict=True)
        if count > 1
    ]
    eigenvalues = torch.cat(spectra)  # of ∇²L / L
    gradient = gradients.T @ (weights * labels)  # −∇L / L, (classes · parameters,)
    return LossCurvature(
        log_loss=float(log_mean_loss(margins)),
        gradient=float(gradient.norm()),
        largest=float(eigenvalues.max()),
        smallest=float(eigenvalues.min()),
    )


@dataclass(frozen=True)
class Sizes:
    """The sizes that the bounds depend on."""

    tokens: int  # T
    features: int  # d
    radius: float  # R, at least 1 and at least the length of every token
    heads: float  # H

    def beta_1(self, norm: float) -> float:
        """Return β₁ of the largest ‖U_h‖: the loss bounds its gradient by it (Corollary 1, 1)."""
        return math.sqrt(self.tokens) * self.radius * (2 * self.radius**2 * norm + 1)

    def beta_2(self, norm: float) -> float:
        """Return β₂, which bounds the Hessian's norm (Corollary 1, 2)."""
        return self.beta_3(norm) / math.sqrt(self.heads) + self.beta_1(norm) ** 2 / 4

    def beta_3(self, norm: float) -> float:
        """Return β₃ (Corollary 1, 3); the later version has d times as much."""
        root = math.sqrt(self.features)
        factor = 2 * math.sqrt(self.tokens) * root * self.radius**3
        return factor * (3 * root * self.radius**2 * norm + 1)


def gradient_bound(inputs: Tensor, U: Tensor) -> Tensor:
    """Return Proposition 1's 2 ‖X‖²_{2,∞} Σ_t ‖X u_t‖_∞ + √T ‖X‖_{2,∞} on ‖∇Φ‖, (samples,)."""
    T = inputs.shape[1]
    longest: Tensor = linalg.vector_norm(inputs, dim=-1).amax(-1)  # ‖X‖_{2,∞}, (samples,)
    return 2 * longest**2 * _largest_outputs(inputs, U) + math.sqrt(T) * longest


def hessian_bound(inputs: Tensor, U: Tensor) -> Tensor:
    """Return Proposition 1's bound on ‖∇²Φ‖ of one head's output, (samples,).

    It is 6 d ‖X‖²_{2,∞} ‖X‖²_{1,∞} Σ_t ‖X u_t‖_∞ + 2 √(T d) ‖X‖²_{2,∞} ‖X‖_{1,∞}; the later version
    of the paper has 6 d² ‖X‖_{2,∞} ‖X‖³_{1,∞} Σ_t ‖X u_t‖_∞ + 2 d √(T d) ‖X‖_{2,∞} ‖X‖²_{1,∞}.
    """
    _, T, d = inputs.shape
    longest: Tensor = linalg.vector_norm(inputs, dim=-1).amax(-1)  # ‖X‖_{2,∞}, (samples,)
    largest = inputs.abs().amax((-2, -1))  # ‖X‖_{1,∞}, (samples,)
    first = 6 * d * longest**2 * largest**2 * _largest_outputs(inputs, U)
    return first + 2 * math.sqrt(T * d) * longest**2 * largest


def _largest_outputs(inputs: Tensor, U: Tensor) -> Tensor:
    """Return Σ_t ‖X u_t‖_∞, (samples,)."""
    outputs = inputs @ U.T  # (samples, s, t)
    return outputs.abs().amax(-2).sum(-1)


@dataclass(frozen=True)
class Hypotheses:
    """The requirements of Theorems 1 and 2 on H and η for one target θ, and their bounds.

    Constants are the appendix's; β₃, α and ρ are those of the print of April 2024.
    """

    sizes: Sizes
    distance: float  # ‖θ − θ₀‖
    largest: float  # the largest norm of a head of θ
    # target_loss, start_loss: the training loss at θ and at θ₀
    target_loss: float
    start_loss: float
    steps: int  # K

    def log10_heads_needed(self, constant: float) -> float:
        """Return the decimal logarithm of the least H, with the constant of either theorem."""
        beta = self.sizes.beta_3(3 * self.distance + self.largest) / 2
        return 2 * (math.log10(constant * beta) + 2 * math.log10(self.distance))

    def log10_largest_step_size(self) -> float:
        """Return the decimal logarithm of the largest η that both theorems allow."""
        sizes = self.sizes
        root_t, root_d = math.sqrt(sizes.tokens), math.sqrt(sizes.features)
        inner = 3 * root_t * sizes.radius**3 * (3 * self.distance + self.largest)
        alpha = 3 * root_d * sizes.radius**2 * (inner + 2 * root_t * sizes.radius)
        curvature = 2 * root_t * root_d * sizes.radius**3 / math.sqrt(sizes.heads)
        log_rho = math.log10(curvature + sizes.tokens * sizes.radius**2 / 4) + 2 * math.log10(alpha)
        log_square = 2 * math.log10(self.distance)
        limits = [0.0, -log_rho]
        for loss in (self.start_loss, self.steps * self.target_loss):
            if loss > 0:
                limits.append(log_square - math.log10(loss))
        return min(limits)

    @property
    def _square(self) -> float:
        return self.distance * self.distance  # a power of a large float raises

    def training_bound(self, step_size: float) -> float:
        """Return Theorem 1's bound on the training loss after K steps (equation 4)."""
        return 2 * self.target_loss + 5 * self._square / (4 * step_size * self.steps)

    def generalisation_bound(self, step_size: float, samples: int) -> float:
        """Return Theorem 2's bound on test less training loss (equation 5)."""
        inner = 2 * self.steps * self.target_loss + 9 * self._square / (4 * step_size)
        return 4 * inner / samples


def largest_norm(projection: Tensor, counts: Tensor) -> Tensor:
    """Return the largest norm of a head's U, (cells,); classes without heads don't count."""
    norms = projection.square().sum((-2, -1)).sqrt()  # (cells, classes)
    return torch.where(counts > 0, norms, 0.0).amax(-1)


HESSIAN_SAMPLES = 32
"""The number of training samples, the first ones, whose Hessians are measured for Proposition 1."""

RATIOS = ("model_gradient", "model_hessian", "loss_gradient", "loss_hessian", "loss_concavity")
"""Measured quantities over their bounds: Proposition 1's two, and Corollary 1's three."""


def radius(inputs: Tensor) -> float:
    """Return R of Assumption 1: the length of the longest token, and at least 1."""
    return max(1.0, float(inputs.norm(dim=-1).max()))


@dataclass(frozen=True)
class Weights:
    """One cell's heads, a class at a time, at a step."""

    projections: Tensor  # U, (classes, tokens, features)
    attentions: Tensor  # W, (classes, features, features)
    counts: Tensor  # how many heads each class has, (classes,)


def weights_of_cell(heads: Heads, cell: int) -> Weights:
    """Return the classes of one cell that have heads, given the cell's index."""
    filled = heads.counts[cell] > 0  # (classes,)
    U, W = full_matrices(heads.weights)
    return Weights(U[cell][filled], W[cell][filled], heads.counts[cell][filled])


def certificates(weights: Weights, inputs: Tensor, labels: Tensor) -> dict[str, float]:
    """Return measured quantities over their bounds, by the names of `RATIOS`, and −λ_min(∇²L̂)."""
    by_class = [
        derivatives(inputs, U, W)
        for U, W in zip(weights.projections, weights.attentions, strict=True)
    ]
    model = [
        _proposition_1(head, U, inputs)
        for head, U in zip(by_class, weights.projections, strict=True)
    ]
    _, T, d = inputs.shape
    sizes = Sizes(T, d, radius(inputs), float(weights.counts.sum()))
    norm = float(largest_norm(weights.projections, weights.counts))
    curvature = loss_curvature(by_class, weights.counts, labels)
    largest = max(curvature.largest, -curvature.smallest)
    return {
        "model_gradient": max(gradient for gradient, _ in model),
        "model_hessian": max(hessian for _, hessian in model),
        "loss_gradient": curvature.gradient / sizes.beta_1(norm),
        "loss_hessian": math.exp(curvature.log_loss) * largest / sizes.beta_2(norm),
        "loss_concavity": -curvature.smallest * math.sqrt(sizes.heads) / sizes.beta_3(norm),
        "concavity": -curvature.smallest * math.exp(curvature.log_loss),
    }


def _proposition_1(head: Derivatives, U: Tensor, inputs: Tensor) -> tuple[float, float]:
    gradients = head.gradients.norm(dim=1) / gradient_bound(inputs, U)  # (samples,)
    first = head.first(HESSIAN_SAMPLES)
    norms = torch.linalg.eigvalsh(first.hessians()).abs().amax(1)  # (samples,)
    hessians = norms / hessian_bound(inputs[:HESSIAN_SAMPLES], U)  # (samples,)
    return float(gradients.max()), float(hessians.max())


def hypotheses(
    start: Weights, end: Weights, inputs: Tensor, losses: tuple[float, float], steps: int
) -> Hypotheses:
    """Return the hypotheses of Theorems 1 and 2 with the last of K steps as target θ."""
    _, tokens, features = inputs.shape
    theta_start, theta_end = (
        torch.cat([weights.projections.flatten(1), weights.attentions.flatten(1)], 1)
        for weights in (start, end)
    )  # (classes, parameters)
    squares = (theta_end - theta_start).square().sum(1)  # ‖θ_h − θ₀_h‖², (classes,)
    return Hypotheses(
        Sizes(tokens, features, radius(inputs), float(end.counts.sum())),
        distance=float((end.counts * squares).sum().sqrt()),
        largest=float(theta_end.norm(dim=1).max()),
        target_loss=losses[1],
        start_loss=losses[0],
        steps=steps,
    )


def theorem_columns(hypotheses: Hypotheses, step_size: float, samples: int) -> dict[str, float]:
    """Return Theorem 1's and 2's bounds, and the decimal logarithms of what they require."""
    if not 0 < hypotheses.distance < math.inf:
        return {}
    return {
        "theorem1_bound": hypotheses.training_bound(step_size),
        "theorem1_heads": hypotheses.log10_heads_needed(THEOREM_1),
        "theorem2_bound": hypotheses.generalisation_bound(step_size, samples),
        "theorem2_heads": hypotheses.log10_heads_needed(THEOREM_2),
        "theorem_step_size": hypotheses.log10_largest_step_size(),
    }
