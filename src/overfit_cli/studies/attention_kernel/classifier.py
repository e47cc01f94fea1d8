"""The classifier of two layers of section 5, and its training.

Transformer of section 5.2 (Song et al. 2024), after Skyformer's for Long Range Arena.

    x ← E[token] + P;    x ← x + W_o S(q, k) v, then x ← x + MLP(x), each of a normalised x;
    logits = head(mean over tokens of the normalised x)

with S the attention kernel of each head, GELU in the MLP and ReLU in the head.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from overfit_cli.core.cell import Cell, CellResult
from overfit_cli.core.classification import (
    Examples,
    Rows,
    Task,
    gradient_steps,
    loss_and_accuracy,
    minibatches,
    move_to_device,
    train_with_evaluations,
)
from overfit_cli.core.matrix_products import Linear
from overfit_cli.core.training import Training, known_numbers, named_rng
from overfit_cli.studies.attention_kernel.attention import attend
from overfit_cli.studies.attention_kernel.classifier_parameters import ClassifierParameters
from overfit_cli.studies.attention_kernel.parameters import KERNELS

CLASSES = 2
EMBEDDING_DEVIATION = 0.02


class Dropout(nn.Module):
    """Dropout with a random stream of its own, which no other cell in the process disturbs."""

    def __init__(self, chance: float, draws: np.random.Generator) -> None:
        super().__init__()
        self.chance = chance
        self._draws = draws
        self._on_device: torch.Generator | None = None

    def restart(self, draws: np.random.Generator) -> None:
        """Draw from another stream from now on."""
        self._draws, self._on_device = draws, None

    def forward(self, x: Tensor) -> Tensor:
        """Drop activations while training; scale up those that stay."""
        if not self.training or self.chance == 0:
            return x
        return x * (self._kept(x) * (1 / (1 - self.chance)))

    def _kept(self, x: Tensor) -> Tensor:
        if x.device.type == "cpu":
            # Two bytes a decision: several times faster than a uniform number each.
            bits = np.frombuffer(bytearray(self._draws.bytes(2 * x.numel())), dtype=np.uint16)
            return torch.from_numpy((bits >= round(65536 * self.chance)).reshape(x.shape))
        if self._on_device is None:
            seed = int(self._draws.integers(2**63))
            self._on_device = torch.Generator(x.device).manual_seed(seed)
        # in the shape of x
        draws = torch.rand(x.shape, generator=self._on_device, device=x.device, dtype=x.dtype)
        return draws >= self.chance


class Layer(nn.Module):
    """One layer: attention and a perceptron, each on a normalised input and added to it."""

    def __init__(self, p: ClassifierParameters, dropout: Dropout) -> None:
        super().__init__()
        self.kernel, self.heads, self.dropout = KERNELS[p.kernel], p.heads, dropout
        self.attention_norm = nn.LayerNorm(p.d)
        self.query = Linear(p.d, p.d)
        self.key = Linear(p.d, p.d)
        self.value = Linear(p.d, p.d)
        self.output = Linear(p.d, p.d)
        self.perceptron_norm = nn.LayerNorm(p.d)
        self.widen = Linear(p.d, p.hidden)
        self.narrow = Linear(p.hidden, p.d)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Map (samples, tokens, d) to the same; `mask` has shape (samples, 1, 1, tokens)."""
        normed = self.attention_norm(x)
        query, key, value = (
            self.in_heads(linear(normed)) for linear in (self.query, self.key, self.value)
        )
        return self.finish(x, query, key, value, mask)

    def in_heads(self, projected: Tensor) -> Tensor:
        """Cut (samples, tokens, d) into (samples, heads, tokens, width)."""
        width = projected.shape[-1] // self.heads
        return projected.view(*projected.shape[:-1], self.heads, width).transpose(-3, -2)

    def finish(
        self, x: Tensor, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
    ) -> Tensor:
        """Return the layer's output from its input and its queries, keys and values in heads."""
        received = attend(self.kernel, query, key, value, mask)  # (samples, heads, tokens, width)
        mixed = received.transpose(-3, -2).flatten(-2)  # (samples, tokens, d)
        x = x + self.dropout(self.output(mixed))
        # (samples, tokens, hidden)
        hidden = self.dropout(functional.gelu(self.widen(self.perceptron_norm(x))))
        added: Tensor = x + self.dropout(self.narrow(hidden))
        return added


class Transformer(nn.Module):
    """The classifier; its initial weights depend on the seed and the sizes, not on the kernel."""

    def __init__(self, p: ClassifierParameters, vocabulary: int, length: int, seed: int) -> None:
        super().__init__()
        dtype = getattr(torch, p.dtype)
        self.dropout = Dropout(p.dropout, named_rng(seed, "train", "dropout"))
        self.embedding = nn.Parameter(torch.empty(vocabulary, p.d, dtype=dtype))  # E
        self.position = nn.Parameter(torch.empty(length, p.d, dtype=dtype))  # P
        self.layers = nn.ModuleList(Layer(p, self.dropout) for _ in range(p.layers))
        self.norm = nn.LayerNorm(p.d)
        self.head = Linear(p.d, p.hidden)
        self.classes = Linear(p.hidden, CLASSES)
        self.to(dtype)
        _initialise(self, seed)

    def embed(self, tokens: Tensor) -> Tensor:
        """Return the first layer's input, (samples, tokens, d), of tokens (samples, tokens)."""
        embedded: Tensor = self.dropout(self.embedding[tokens] + self.position)
        return embedded

    def read_out(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Return logits, (samples, classes), of the last layer's output (samples, tokens, d)."""
        units = functional.relu(self.head(_mean(self.norm(x), mask)))  # (samples, hidden)
        logits: Tensor = self.classes(units)
        return logits

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return logits, (samples, classes); `mask` (samples, tokens) is true where a token is."""
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, key_mask(mask))
        return self.read_out(x, mask)


def key_mask(mask: Tensor | None) -> Tensor | None:
    """Return a mask (samples, tokens) as attention takes it, (samples, 1, 1, tokens)."""
    return None if mask is None else mask[:, None, None, :]


def _mean(x: Tensor, mask: Tensor | None) -> Tensor:
    """The mean over the tokens that aren't padding, (samples, d)."""
    if mask is None:
        return x.mean(-2)
    weights = mask[..., None].to(x.dtype)  # (samples, tokens, 1)
    return (x * weights).sum(-2) / weights.sum(-2)


def _initialise(model: Transformer, seed: int) -> None:
    """Fill in initial weights: N(0, 0.02²) for embeddings, PyTorch's default for linear layers."""
    with torch.no_grad():
        for name in ("embedding", "position"):
            table = getattr(model, name)
            # in the shape of the table
            draws = named_rng(seed, "init", name).standard_normal(table.shape)
            table.copy_(torch.from_numpy(EMBEDDING_DEVIATION * draws))
        for name, module in model.named_modules():
            if isinstance(module, nn.Linear):
                bound = module.in_features**-0.5
                for part in ("weight", "bias"):
                    values = getattr(module, part)
                    # in the shape of the weight or bias
                    draws = named_rng(seed, "init", name, part).uniform(-bound, bound, values.shape)
                    values.copy_(torch.from_numpy(draws))


P = TypeVar("P", bound=ClassifierParameters)

EVALUATED_TOKENS = 2**17


def build_model(
    parameters: ClassifierParameters, task: Task, seed: int, device: str
) -> Transformer:
    """Return the transformer with a cell's initial weights."""
    length = task.train.tokens.shape[1]
    return Transformer(parameters, task.vocabulary, length, seed).to(device)


def make_optimiser(model: Transformer, parameters: ClassifierParameters) -> torch.optim.Optimizer:
    """Return the optimiser that the parameters name, with PyTorch's defaults for the rest."""
    rate = parameters.learning_rate
    if parameters.optimiser == "sgd":
        return torch.optim.SGD(model.parameters(), lr=rate)
    if parameters.optimiser == "adam":
        return torch.optim.Adam(model.parameters(), lr=rate, fused=True)
    decay = parameters.weight_decay
    return torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=decay, fused=True)


def training_steps(
    model: Transformer,
    parameters: ClassifierParameters,
    train: Examples,
    minibatch_rows: Iterator[Rows],
    device: str,
) -> Iterator[Tensor]:
    """Take a gradient step whenever the next loss, on that step's minibatch, is asked for."""

    def loss_of(rows: Rows) -> Tensor:
        model.train()
        tokens, labels, mask = move_to_device(train.take(rows), device)
        return functional.cross_entropy(model(tokens, mask), labels)

    return gradient_steps(make_optimiser(model, parameters), loss_of, minibatch_rows)


def evaluate(model: Transformer, test: Examples, device: str) -> dict[str, float]:
    """Return the loss and the accuracy on all test samples, without dropout."""
    model.eval()

    def logits_of(part: Examples) -> Tensor:
        tokens, _, mask = move_to_device(part, device)
        logits: Tensor = model(tokens, mask)  # (samples, classes)
        return logits

    at_a_time = max(1, EVALUATED_TOKENS // test.tokens.shape[1])
    loss, accuracy = loss_and_accuracy(logits_of, test, at_a_time)
    return {"test_loss": loss, "test_accuracy": accuracy}


def train_cell(cell: Cell[P], task: Task, training: Training) -> CellResult[P]:
    """Train one cell, with an evaluation every `evaluate_every` steps and after the last one."""
    parameters, device = cell.parameters, training.device
    model = build_model(parameters, task, cell.seed, device)
    rows = minibatches(len(task.train.labels), parameters.batch_size, cell.seed)
    course = train_with_evaluations(
        training_steps(model, parameters, task.train, rows, device),
        lambda: evaluate(model, task.test, device),
        parameters.training_steps,
        parameters.evaluate_every,
        partial(training.log, cell),
    )
    measured = {} if course.reason else course.measured()
    measurements = known_numbers({**measured, "shortcut_accuracy": task.shortcut}, infinite=True)
    return CellResult(cell, measurements, course.steps, course.reason)
