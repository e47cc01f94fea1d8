"""Steps that compute in place against the same formulas with a new array for each, one thread.

`multihead`: logits and gradients by classes of heads, in float64, at random weights, of the cells
that a study trains together: one cell, figure 3's or 4's six, and one whose heads are trained one
by one. `kernel-text`: 2^(q·k) v of heads in float32, forwards and backwards.

Both ways take turns, so that a drifting machine slows both. What is printed are medians of a
round's ratios. The numbers must be the same bit by bit.
"""

from __future__ import annotations

import argparse
import math
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from benchmarks.heads import FIGURES, SEED, STUDIES, AnyMultihead, cell_of, task_of
from benchmarks.timing import timed
from overfit_cli.core.matrix_products import product
from overfit_cli.studies.attention_kernel.attention import _PowerAttention
from overfit_cli.studies.multihead.data import draw_problem
from overfit_cli.studies.multihead.engine import HeadGradients, _Part, initial_heads

SECONDS = 0.05
"""About how long a way computes in a round."""

LENGTHS = ((64, 256), (16, 512), (8, 1024), (4, 2048), (2, 4096))
"""Heads of all samples and tokens; the kernel's width is 18 features."""

Work = Callable[[], Sequence[Tensor]]


class PlainGradients(HeadGradients):
    """The engine's gradients with a new array for each formula."""

    def __init__(self, inputs: Tensor, labels: Tensor, cells: int, classes: int) -> None:
        super().__init__(inputs, labels, cells, classes)
        samples = torch.split(inputs, self._parts[0].size)
        unused = [self._parts[0]._first.flatten()] * 2
        self._parts = [PlainPart(x, unused, cells, classes) for x in samples]


class PlainPart(_Part):
    """The formulas of `_Part` one by one."""

    def logits(self, U: Tensor, W: Tensor, mixing: Tensor) -> Tensor:
        """Return Φ̃, (cells, samples)."""
        cells, classes, T, d = U.shape
        C, n = cells * classes, self.size
        W_columns = W.reshape(C, d, d).transpose(0, 1).reshape(d, -1)  # (d, C · d)
        queries = (self._X_rows @ W_columns).view(n, T * C, d)  # (samples, t · C, d)
        S = (self._X @ queries.mT).transpose(0, 1).contiguous()  # (s, samples, t · C)
        self._E = (S - S.amax(0)).exp()  # (s, samples, t · C)
        self._E_sum = self._E.sum(0)  # (samples, t · C)
        U_rows = U.reshape(C, T, d).transpose(0, 1).reshape(T * C, d)  # (t · C, d)
        self._G = (self._X_columns @ U_rows.T).view(T, n, T * C)  # (s, samples, t · C)
        self._G_mean = (self._E * self._G).sum(0) / self._E_sum  # (samples, t · C)
        outputs = self._G_mean.view(n, T, cells, classes).sum(1)  # (samples, cells, classes)
        return (mixing * outputs).sum(-1).T

    def gradients(self, weights: Tensor, scaled: bool) -> tuple[Tensor, Tensor]:
        """Return the gradients in U and in W; not for gradients that are divided by the loss."""
        T, n, columns = self._E.shape
        cells, d = len(weights), self._X.shape[-1]
        C = columns // T
        totals = self._E_sum.view(n, T, cells, -1)  # (samples, t, cells, classes)
        ratios = (weights.T[:, None, :, None] / totals).view(n, columns)  # w / Σ_s E
        wA = self._E * ratios  # (s, samples, t · C)
        grad_U = self._X_columns.T @ wA.view(-1, columns)  # (d, t · C)
        grad_S = (self._G - self._G_mean) * wA  # (s, samples, t · C)
        pulls = self._X.mT @ grad_S.transpose(0, 1)  # (samples, d, t · C)
        pulls = pulls.view(n, d, T, C).permute(0, 2, 3, 1)  # (samples, t, C, d)
        grad_W = self._X_rows.T @ pulls.reshape(n * T, -1)  # (d, C · d)
        return (
            grad_U.view(d, T, C).permute(2, 1, 0).reshape(cells, -1, T, d),
            grad_W.view(d, C, d).transpose(0, 1).reshape(cells, -1, d, d),
        )


class PlainPowers(Function):
    """2^(q·k) v head by head, with a new array for the powers and for their gradients."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Return 2^(q·k) v; all have shape (heads, tokens, width)."""
        powers, outputs = [], []
        for q, k, v in zip(query, key, value, strict=True):
            powers.append(torch.exp2(product(q, k.mT)))  # (tokens, tokens)
            outputs.append(product(powers[-1], v))  # (tokens, width)
        ctx.save_for_backward(query, key, value, *powers)
        return torch.stack(outputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_outputs: Tensor) -> tuple[Tensor, ...]:
        """Return the gradients in queries, keys and values."""
        query, key, value, *powers = ctx.saved_tensors
        by_head = []
        for q, k, v, power, grad in zip(query, key, value, powers, grad_outputs, strict=True):
            in_C = product(grad * math.log(2), v.mT) * power  # (tokens, tokens)
            by_head.append((product(in_C, k), product(in_C.mT, q), product(power.mT, grad)))
        return tuple(torch.stack(parts) for parts in zip(*by_head, strict=True))


def gradients_of_heads(
    study: AnyMultihead, heads: Sequence[int], *, separate: bool
) -> tuple[Work, Work]:
    """Return the gradients of a study's cells, one for each number of heads, both ways."""
    settings = [
        cell_of(study, count).parameters.model_copy(update={"separate_heads": separate})
        for count in heads
    ]
    first = draw_problem(settings[0], SEED).first
    drawn = initial_heads(settings, SEED, first, dtype=torch.float64, device="cpu")
    normals = torch.Generator().manual_seed(SEED)
    U, W = (
        torch.randn(weights.shape, dtype=torch.float64, generator=normals)
        for weights in (drawn.U, drawn.W)
    )  # (cells, classes, T, d), (cells, classes, d, d)
    task = task_of(study, heads[0], 0)

    def work(kind: type[HeadGradients]) -> Work:
        gradients = kind(task.inputs, task.labels, *drawn.counts.shape)

        @torch.inference_mode()
        def compute() -> Sequence[Tensor]:
            now = gradients(U, W, drawn.mixing, drawn.heads, scaled=False)
            return now.logits, now.loss, now.projection, now.attention

        return compute

    return work(HeadGradients), work(PlainGradients)


def powers_of_heads(heads: int, tokens: int) -> tuple[Work, Work]:
    """Return 2^(q·k) v of so many heads with its gradients, both ways."""
    normals = torch.Generator().manual_seed(SEED)
    drawn = [0.3 * torch.randn(heads, tokens, 18, generator=normals) for _ in range(3)]

    def work(kind: type[Function]) -> Work:
        def compute() -> Sequence[Tensor]:
            leaves = [tensor.clone().requires_grad_() for tensor in drawn]
            outputs = kind.apply(*leaves)  # type: ignore[no-untyped-call]
            return outputs.detach(), *torch.autograd.grad(outputs.sum(), leaves)

        return compute

    return work(_PowerAttention), work(PlainPowers)


def compete(name: str, ways: tuple[Work, Work], rounds: int) -> None:
    """Let both ways take turns, and print how many times as long the plain one takes."""
    in_place, plain = ways
    timed(in_place)
    seconds, numbers = timed(in_place)
    same = all(torch.equal(*pair) for pair in zip(numbers, plain(), strict=True))
    repeats = max(1, round(SECONDS / seconds))

    def seconds_of(way: Work) -> float:
        return timed(lambda: [way() for _ in range(repeats)])[0] / repeats

    times = [[seconds_of(way) for way in ways] for _ in range(rounds)]
    ratio = statistics.median(slow / quick for quick, slow in times)
    milliseconds = 1e3 * statistics.median(quick for quick, _ in times)
    agreed = "the same numbers" if same else "OTHER NUMBERS"
    print(f"{name}: in place {milliseconds:.2f} ms, plain {ratio:.2f} times; {agreed}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=31)
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    for study in STUDIES.values():
        for words, heads, separate in (
            ("a cell of 50 heads", FIGURES[-1:], False),
            ("six cells", FIGURES, False),
            ("50 heads one by one", FIGURES[-1:], True),
        ):
            ways = gradients_of_heads(study, heads, separate=separate)
            compete(f"{study.name}, {words}", ways, rounds)
    for heads_of_all, tokens in LENGTHS:
        compete(f"powers, {tokens} tokens", powers_of_heads(heads_of_all, tokens), rounds)


if __name__ == "__main__":
    main()
