"""Exact derivatives, and the bounds of section 3 that measured quantities are divided by.

With A = softmax(X W Xᵀ), G_ts = ⟨u_t, x_s⟩ and means over s under row t of A (Lemma 1),

    ∂Φ/∂u_t = x̄_t,   ∂Φ/∂W = Σ_t x_t p_tᵀ,   p_t = Σ_s A_ts (G_ts − Ḡ_t) x_s
    ∂²Φ/∂u_t ∂W = x_t ⊗ cov_t(x),
    ∂²Φ/∂W² = Σ_t x_t x_tᵀ ⊗ (Σ_s A_ts (G_ts − Ḡ_t) x_s x_sᵀ − p_t x̄_tᵀ − x̄_t p_tᵀ)

A head's parameters are U row by row, then W row by row: T d + d² of them.

The bounds of Proposition 1 and β₁ to β₃ of Corollary 1 are those of the print of TMLR (April 2024).
A later version of the paper, which corrects a miscalculation of the Hessian's bound, has d times β₃
and α(θ), and a bound in Proposition 1 that is at least √d times as large: what holds here holds
there too. What Theorems 1 and 2 require is that of the later version. Where Corollary 1 has the
norm of θ, that of U suffices (its footnote). The bounds are computed with it, so a bound that holds
here holds in the looser form of the text too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, linalg

from overfit_cli.studies.multihead.engine import Heads, log_mean_loss, loss_weights

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
class Target:
    """A target θ of Theorems 1 and 2: their bounds, and what they require of H and η.

    Constants are the appendix's; β₃, α and ρ, of which H and η depend, the later version's.
    """

    sizes: Sizes
    distance: float  # ‖θ − θ₀‖
    largest: float  # the largest norm of a head of θ
    # loss, start_loss: the training loss at θ and at θ₀
    loss: float
    start_loss: float
    steps: int  # K

    def log10_heads(self, constant: float) -> float:
        """Return log₁₀ of the least H, (constant · d β₃/2 · ‖θ − θ₀‖²)², with either's constant."""
        beta = self.sizes.features * self.sizes.beta_3(3 * self.distance + self.largest) / 2
        return 2 * (math.log10(constant * beta) + 2 * math.log10(self.distance))

    def log10_step_size(self) -> float:
        """Return log₁₀ of the largest η of both: 1, 1/ρ, ‖θ − θ₀‖² over K L̂(θ) and over L̂(θ₀).

        ρ(θ) = (2 d √(T d) R³/√H + T R²/4) α², α(θ) = 3 d √d R² (3 √T R³ ‖·‖ + 2 √T R).
        """
        T, d, r = self.sizes.tokens, self.sizes.features, self.sizes.radius
        root_t, root_d = math.sqrt(T), math.sqrt(d)
        inner = 3 * root_t * r**3 * (3 * self.distance + self.largest)
        alpha = 3 * d * root_d * r**2 * (inner + 2 * root_t * r)
        curvature = 2 * d * root_t * root_d * r**3 / math.sqrt(self.sizes.heads)
        rho = (curvature + T * r**2 / 4) * alpha**2
        limits = (self._square / (self.steps * self.loss), self._square / self.start_loss)
        return math.log10(min(1.0, 1 / rho, *limits))

    @property
    def _square(self) -> float:
        return self.distance * self.distance  # a power of a large float raises

    def bounds(self, step_size: float, samples: int) -> dict[str, float]:
        """Return the bounds on the training loss and on test less training loss (4, 5)."""
        eta, K = step_size, self.steps
        inner = 2 * K * self.loss + 9 * self._square / (4 * eta)
        return {
            "theorem1_bound": 2 * self.loss + 5 * self._square / (4 * eta * K),
            "theorem2_bound": 4 * inner / samples,
        }


HESSIAN_SAMPLES = 32
"""The number of training samples, the first ones, whose Hessians are measured for Proposition 1."""


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
    return Weights(heads.U[cell][filled], heads.W[cell][filled], heads.counts[cell][filled])


def certificates(weights: Weights, inputs: Tensor, labels: Tensor) -> dict[str, float]:
    """Return what is measured over Proposition 1's and Corollary 1's bounds, and −λ_min(∇²L̂)."""
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
    norm = float(weights.projections.flatten(1).norm(dim=1).max())  # max ‖U_h‖
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


def last_step_as_target(
    start: Weights, end: Weights, inputs: Tensor, losses: tuple[float, float], steps: int
) -> Target:
    """Return the last of K steps as a target, given the losses before the first and after it."""
    _, tokens, features = inputs.shape
    theta_start, theta_end = (
        torch.cat([weights.projections.flatten(1), weights.attentions.flatten(1)], 1)
        for weights in (start, end)
    )  # (classes, parameters)
    squares = (theta_end - theta_start).square().sum(1)  # ‖θ_h − θ₀_h‖², (classes,)
    return Target(
        Sizes(tokens, features, radius(inputs), float(end.counts.sum())),
        distance=float((end.counts * squares).sum().sqrt()),
        largest=float(theta_end.norm(dim=1).max()),
        loss=losses[1],
        start_loss=losses[0],
        steps=steps,
    )
