"""The Vision Transformer of section 6 on images: attention layers of four heads, then an MLP.

    x ← E patch + P;    x ← x + W_o softmax(q kᵀ / √(d/H)) v, layer by layer;
    logits = W₂ relu(W₁ mean over tokens of x)

The paper names attention layers, heads and the MLP. Residual paths and the mean are the usual ones;
layer normalisation, which is usual too, is an option: it hides how strong a patch is.

The loss is the mean cross-entropy −log softmax(logits)_y of the training samples. Adam trains on
minibatches, and ends after the first pass at whose end the loss is at most ε.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.core.classification import Rows, gradient_steps, minibatches
from overfit_cli.core.training import Training, failure, known_numbers, named_rng
from overfit_cli.studies.benign_vit.images_data import CLASSES, SIZE, image_task
from overfit_cli.studies.benign_vit.images_study import BenignVitImagesParameters

P = BenignVitImagesParameters
POSITION_DEVIATION = 0.02
NEAR = 3.0
"""The mean loss of a pass's minibatches, over ε, from which on the training loss is measured."""

_EVALUATED = 1000


def _norm(kind: str, d: int) -> nn.Module:
    return nn.LayerNorm(d) if kind == "layer" else nn.Identity()


class AttentionLayer(nn.Module):
    """Multi-head softmax attention with a residual path; its input may be normalised."""

    def __init__(self, d: int, heads: int, normalisation: str) -> None:
        super().__init__()
        self.heads = heads
        self.norm = _norm(normalisation, d)
        self.project = nn.Linear(d, 3 * d)
        self.output = nn.Linear(d, d)

    def forward(self, x: Tensor) -> Tensor:
        """Return x + W_o softmax(q kᵀ / √(d/H)) v; x has shape (samples, tokens, d)."""
        samples, tokens, d = x.shape
        H = self.heads
        qkv = self.project(self.norm(x))  # (samples, tokens, 3 d)
        qkv = qkv.view(samples, tokens, 3, H, d // H)  # (samples, tokens, 3, heads, d/H)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)  # each (samples, heads, tokens, d/H)
        by_head = functional.scaled_dot_product_attention(q, k, v)  # (samples, heads, tokens, d/H)
        joined = by_head.transpose(1, 2).reshape(samples, tokens, d)  # (samples, tokens, d)
        added: Tensor = self.output(joined)  # (samples, tokens, d)
        return x + added


class ImageTransformer(nn.Module):
    """The classifier of digits.

    The seed's first weights are uniform in ±1/√inputs, positions normal, and biases zero.
    """

    def __init__(self, parameters: P, seed: int) -> None:
        super().__init__()
        patch, d = parameters.patch, parameters.d
        tokens = (SIZE // patch) ** 2
        self.patch = patch
        self.embed = nn.Linear(patch * patch, d)
        self.positions = nn.Parameter(torch.zeros(tokens, d))  # P, (tokens, d)
        self.attention = nn.ModuleList(
            AttentionLayer(d, parameters.heads, parameters.normalisation)
            for _ in range(parameters.layers)
        )
        self.norm = _norm(parameters.normalisation, d)
        self.hidden = nn.Linear(d, parameters.hidden)
        self.classes = nn.Linear(parameters.hidden, CLASSES)
        self._draw(seed)

    def _draw(self, seed: int) -> None:
        for name, module in self.named_modules():
            if isinstance(module, nn.Linear):
                bound = module.in_features**-0.5
                weight = named_rng(seed, "init", name).uniform(
                    -bound, bound, module.weight.shape
                )  # (outputs, inputs)
                module.weight.data = torch.from_numpy(weight).to(module.weight.dtype)
                nn.init.zeros_(module.bias)
        P = named_rng(seed, "init", "positions").standard_normal(self.positions.shape)
        self.positions.data = torch.from_numpy(POSITION_DEVIATION * P).float()  # (tokens, d)

    def forward(self, pixels: Tensor) -> Tensor:
        """Return logits, (samples, 10), of images, (samples, 28, 28)."""
        columns = functional.unfold(pixels[:, None], self.patch, stride=self.patch)
        patches = columns.mT  # (samples, tokens, patch²)
        x = self.embed(patches) + self.positions  # E patch + P, (samples, tokens, d)
        for layer in self.attention:
            x = layer(x)  # (samples, tokens, d)
        mean = self.norm(x).mean(1)  # (samples, d)
        units = functional.relu(self.hidden(mean))  # relu(W₁ mean), (samples, hidden)
        logits: Tensor = self.classes(units)  # W₂ relu(W₁ mean), (samples, 10)
        return logits


def train_cell(cell: Cell[P], training: Training) -> CellResult[P]:
    """Train one cell; the training loss is measured after a pass, when it may be small enough."""
    p, dtype = cell.parameters, getattr(torch, cell.parameters.dtype)
    task = image_task(p, cell.seed)
    model = ImageTransformer(p, cell.seed).to(training.device, dtype)
    train, test = (
        (
            torch.from_numpy(digits.pixels).to(training.device, dtype),  # (samples, 28, 28)
            torch.from_numpy(digits.labels).to(training.device),  # 0 to 9, (samples,)
        )
        for digits in (task.train, task.test)
    )

    def measure() -> dict[str, float]:
        of_train, of_test = evaluate(model, *train), evaluate(model, *test)
        losses = {"train_loss": of_train[0], "test_loss": of_test[0]}
        return losses | {"train_error": of_train[1], "test_error": of_test[1]}

    if training.logs:
        training.log(cell, 0, measure())
    epoch, reason = 0, ""
    for epoch, mean_loss in enumerate(_passes(model, p, *train, cell.seed), start=1):
        if reason := failure(mean_loss):
            break
        if training.logs:
            training.log(cell, epoch * -(-p.n // p.batch_size), measure())
        is_last = epoch == p.max_epochs
        near = mean_loss <= NEAR * p.epsilon or is_last
        reason = failure(evaluate(model, *train)[0], p.epsilon) if near else "step limit"
        if not reason or is_last:
            break
    measured = known_numbers(measure() | {"epochs": float(epoch)})
    return CellResult(cell, measured, epoch * -(-p.n // p.batch_size), reason)


def _passes(
    model: ImageTransformer, p: P, pixels: Tensor, labels: Tensor, seed: int
) -> Iterator[float]:
    """Go through all samples once when the next loss is wanted: the mean of the minibatches'."""
    optimiser = torch.optim.Adam(model.parameters(), lr=p.learning_rate, fused=True)

    def loss_of(rows: Rows) -> Tensor:
        chosen = torch.from_numpy(rows).to(labels.device)  # (minibatch,)
        logits = model(pixels[chosen])  # (minibatch, 10)
        return functional.cross_entropy(logits, labels[chosen])

    batches = minibatches(p.n, p.batch_size, seed, equal=False)
    losses = gradient_steps(optimiser, loss_of, batches)
    while True:
        total = torch.zeros((), device=labels.device)  # Σ over samples of their loss
        for first in range(0, p.n, p.batch_size):
            total += next(losses) * min(p.batch_size, p.n - first)
        yield float(total) / p.n


def evaluate(model: ImageTransformer, pixels: Tensor, labels: Tensor) -> tuple[float, float]:
    """Return the mean cross-entropy and the share that is wrong."""
    loss, wrong = 0.0, 0
    with torch.inference_mode():
        for first in range(0, len(labels), _EVALUATED):
            part = labels[first : first + _EVALUATED]  # (part,)
            logits: Tensor = model(pixels[first : first + _EVALUATED])  # (part, 10)
            loss += float(functional.cross_entropy(logits, part, reduction="sum"))
            wrong += int((logits.argmax(1) != part).sum())
    return loss / len(labels), wrong / len(labels)
