"""A classifier's training step beside PyTorch's own transformer of the same shape, one thread.

16 samples of 256 tokens, the default sizes of `kernel-text`, AdamW. PyTorch's `TransformerEncoder`
drops attention too where it has dropout, which forbids it its fused attention. All take turns, so
that a drifting machine slows all alike; each figure is a median.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.timing import timed
from overfit_cli.studies.attention_kernel.classifier import CLASSES, Transformer
from overfit_cli.studies.attention_kernel.classifier_parameters import KernelTextParameters

SAMPLES, TOKENS, WORDS, PADDED = 16, 256, 1000, 56
ROUNDS = 15
SIZES = KernelTextParameters()


class PyTorchs(nn.Module):
    """Embedding, PyTorch's encoder and the classifier's read-out."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, SIZES.d)
        self.position = nn.Parameter(torch.zeros(TOKENS, SIZES.d))
        layer = nn.TransformerEncoderLayer(
            SIZES.d,
            SIZES.heads,
            SIZES.hidden,
            dropout,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.encoder = nn.TransformerEncoder(layer, SIZES.layers, enable_nested_tensor=False)
        self.head = nn.Linear(SIZES.d, SIZES.hidden)
        self.classes = nn.Linear(SIZES.hidden, CLASSES)

    def forward(self, tokens: Tensor, mask: Tensor | None) -> Tensor:
        """Return logits, (samples, classes)."""
        padding = None if mask is None else ~mask
        x = self.encoder(self.embedding(tokens) + self.position, src_key_padding_mask=padding)
        logits: Tensor = self.classes(functional.relu(self.head(x.mean(1))))
        return logits


def ours(kernel: str, dropout: float) -> nn.Module:
    """Return overfit's transformer."""
    parameters = SIZES.model_copy(update={"kernel": kernel, "dropout": dropout})
    return Transformer(parameters, WORDS, TOKENS, 0)


def training_step(model: nn.Module, mask: Tensor | None) -> Callable[[], None]:
    """Return a function that takes one step on a fixed minibatch."""
    optimiser = torch.optim.AdamW(model.train().parameters(), lr=1e-4, fused=True)
    draws = torch.Generator().manual_seed(0)
    tokens = torch.randint(WORDS, (SAMPLES, TOKENS), generator=draws)
    labels = torch.randint(CLASSES, (SAMPLES,), generator=draws)

    def step() -> None:
        optimiser.zero_grad()
        torch.autograd.backward(functional.cross_entropy(model(tokens, mask), labels))
        optimiser.step()

    return step


def main() -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    models = {
        f"{name}, dropout {dropout:g}": build(dropout)
        for dropout in (0.0, 0.1)
        for name, build in {
            "softmax": lambda dropout: ours("softmax", dropout),
            "Gaussian": lambda dropout: ours("gaussian", dropout),
            "PyTorch's": PyTorchs,
        }.items()
    }
    for padded in (0, PADDED):
        mask = (torch.arange(TOKENS) < TOKENS - padded).expand(SAMPLES, -1) if padded else None
        steps = {name: training_step(model, mask) for name, model in models.items()}
        times: dict[str, list[float]] = {name: [] for name in steps}
        for _ in range(ROUNDS):
            for name, step in steps.items():
                times[name].append(timed(step)[0])
        print(f"{SAMPLES} samples of {TOKENS} tokens, {padded} of them padding")
        for name, taken in times.items():
            print(f"  {name:24s} {statistics.median(taken) * 1e3:6.1f} ms a step")


if __name__ == "__main__":
    main()
