"""The Vision Transformer of section 6: attention layers of four heads, then an MLP with ReLU.

    x ← E patch + P;    x ← x + W_o softmax(q kᵀ / √(d/H)) v, layer by layer;
    logits = W₂ relu(W₁ mean over tokens of x)

The paper names attention layers, heads and the MLP. Residual paths and the mean are the usual ones;
layer normalisation, which is usual too, is an option: it hides how strong a patch is.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from overfit_cli.core.training import named_rng
from overfit_cli.studies.benign_vit.images.digits import CLASSES, SIZE
from overfit_cli.studies.benign_vit.images.parameters import BenignVitImagesParameters

POSITION_DEVIATION = 0.02


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

    def __init__(self, parameters: BenignVitImagesParameters, seed: int) -> None:
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
