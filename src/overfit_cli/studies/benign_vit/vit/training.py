"""Training of `benign-vit`: projections, gradient descent in token space, measurements.

What is logged of a cell at each step are the quantities of section 5 and of figures 3 and 4.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch
from torch import Tensor

from overfit_cli.core.cell import Batch, Cell, CellResult, Results
from overfit_cli.core.training import (
    BatchedTraining,
    CellState,
    Row,
    Training,
    failure,
    without_gradients,
)
from overfit_cli.studies.benign_vit.vit.engine import (
    ForwardPass,
    TokenProjections,
    initial_state,
    projections_of,
)
from overfit_cli.studies.benign_vit.vit.every_token import every_token_row
from overfit_cli.studies.benign_vit.vit.parameters import TOKEN_CLASSES, BenignVitParameters
from overfit_cli.studies.benign_vit.vit.true_scale import TrueScaleTokens

P = BenignVitParameters


def logged_row(
    tokens: TrueScaleTokens, now: ForwardPass, before: ForwardPass | None = None
) -> dict[str, float]:
    """Return one row of the trajectory of a cell; `before` is the pass that was logged last."""
    test = tokens.test_pass()
    return {
        "train_loss": float(now.loss[0]),
        "test_loss": float(test.loss[0]),
        "test_error": float((test.margins[0] <= 0).double().mean()),
        "train_margin": float(now.margins[0].mean()),
        "train_margin_min": float(now.margins[0].min()),
        "attention_signal": float(now.attention[0, :, :, 0].mean()),
        "attention_noise": float(now.attention[0, :, :, 1].mean()),
        "loss_slope": float(torch.sigmoid(-now.margins[0]).mean()),
        **_values(tokens),
        **_products(tokens),
        **_value_coefficients(tokens),
        **_step_coefficients(tokens, now),
        **_attention_between_classes(now),
        **every_token_row(tokens, now, before),
    }


def _attention_between_classes(now: ForwardPass) -> dict[str, float]:
    """The mean attention of a token of each class on each class as a whole.

    That of one class adds up to 1; the rest's is nan, and that on it 0, with two tokens a sample.
    """
    a = now.attention.mean(1)[0]  # mean over samples, (tokens, tokens)
    on_class = torch.cat([a[:, :2], a[:, 2:].sum(-1, keepdim=True)], dim=-1)  # (tokens, 3)
    means = torch.cat([on_class[:2], on_class[2:].mean(0, keepdim=True)])  # (3, 3)
    return {
        f"attention_{source}_{target}": float(means[i, j])
        for i, source in enumerate(TOKEN_CLASSES)
        for j, target in enumerate(TOKEN_CLASSES)
    }


def _values(tokens: TrueScaleTokens) -> dict[str, float]:
    """Values of definition 5.2, and by how much one dominates its sample, at the worst sample.

    The signal's lead is lemma 5.2's, token 2's is lemma E.3's; a sample's signal is taken by its
    label.
    """
    values, labels = tokens.values()[0], tokens.labels[0]  # (samples, tokens), (samples,)
    plus, minus = tokens.signal_values()[0].tolist()
    signal = torch.where(labels > 0, plus, -minus)  # y μᵀ W_V w_O, (samples,)
    noise = values[:, 1:].abs()  # |ξᵀ W_V w_O|, (samples, tokens − 1)
    rivals = torch.cat([signal.abs()[:, None], noise[:, 1:]], dim=1)  # of token 2, the same shape
    return {
        "value_plus": plus,
        "value_minus": minus,
        "value_noise": float(values[:, 1].abs().mean()),
        "signal_lead": float((signal / noise.max(1).values).min()),
        "noise_lead": float((labels * values[:, 1] / rivals.max(1).values).min()),
    }


def _products(tokens: TrueScaleTokens) -> dict[str, float]:
    """Inner products of definition 5.1: of the + signal and the noise token."""
    q, k = (part[0] for part in tokens.signal_queries_and_keys())  # q₊ and k₊, (width,)
    q_2, k_2 = (part[0, :, 1] for part in tokens.queries_and_keys())  # (samples, width)
    plus = tokens.is_plus[0]  # (samples,)
    return {
        "product_signal_signal": float(q @ k),
        "product_signal_noise": float((k_2 @ q)[plus].mean()),
        "product_noise_signal": float((q_2 @ k)[plus].mean()),
        "product_noise_noise": float((q_2 * k_2).sum(-1).mean()),
    }


def _value_coefficients(tokens: TrueScaleTokens) -> dict[str, float]:
    """The coefficients of definition 5.2: both signals', and the mean noise token 2's."""
    gamma, rho = tokens.value_coefficients()  # (2,), (samples, tokens − 1)
    return {
        "gamma_plus": float(gamma[0]),
        "gamma_minus": float(gamma[1]),
        "rho_noise": float((tokens.labels[0] * rho[:, 0]).mean()),
    }


def _step_coefficients(tokens: TrueScaleTokens, now: ForwardPass) -> dict[str, float]:
    """The coefficients of definition B.3: the + signal's, and the mean noise token 2's."""
    plus = tokens.is_plus[0]  # (samples,)
    samples = torch.arange(len(plus), device=plus.device)  # indices, (samples,)
    row: dict[str, float] = {}
    for name, step in zip(("alpha", "beta"), tokens.step_coefficients(now), strict=True):
        signal, noise = step.signal[0], step.noise  # (samples, tokens), (samples, samples, tokens)
        row |= {
            f"{name}_signal_signal": float(signal[plus, 0].sum()),
            f"{name}_signal_noise": float(signal[plus, 1].mean()),
            f"{name}_noise_signal": float(noise[plus][:, plus, 0].sum(1).mean()),
            f"{name}_noise_noise": float(noise[samples, samples, 1].mean()),
        }
    return row


def train_batch(batch: Batch[P], training: Training) -> Results[P]:
    """Train a batch of one shape together; a logged run, which measures at every step, alone."""
    for part in [[cell] for cell in batch] if training.logs else [batch]:
        yield from without_gradients(partial(train_together, part, training))


def train_together(cells: Batch[P], training: Training) -> Results[P]:
    """Train cells of one shape as one tensor; each gives its result at the step where it stops."""
    yield from VitsTogether(cells, training).train()


def _projections_of_all(cells: Batch[P], device: str) -> list[TokenProjections]:
    def projections(cell: Cell[P]) -> TokenProjections:
        return projections_of(cell.parameters, cell.seed, device)

    seeds = {cell.seed: cell for cell in cells}
    if len(seeds) > 1:
        with ThreadPoolExecutor() as threads:
            list(threads.map(projections, seeds.values()))
    return [projections(cell) for cell in cells]  # kept ones, after the threads


class VitsTogether(BatchedTraining[P, CellState[P], ForwardPass]):
    """Gradient descent in token space, a stride of steps at a time.

    A cell ends when its training loss is at most its ε, isn't finite, or its steps are spent.
    """

    def __init__(self, cells: Batch[P], training: Training) -> None:
        self._projections = _projections_of_all(cells, training.device)
        self.state = initial_state([cell.parameters for cell in cells], self._projections)
        self._leaps = bool((self.state.leap > 0).any())
        self._before: ForwardPass | None = None
        logged = range(sys.maxsize if training.logs else 0)
        super().__init__([CellState(cell) for cell in cells], training, logged, last=None)

    @property
    def tokens(self) -> TrueScaleTokens:
        """The cells' tokens."""
        return TrueScaleTokens(self.state, self._projections)

    def forward(self, step: int) -> ForwardPass:
        now = self.state.forward()
        if self._before is not None and self._leaps:
            self.state.choose_stride(self._before, now)
        return now

    def ends(self, now: ForwardPass) -> list[bool]:
        state = self.state
        stops = (now.loss <= state.epsilon) | ~now.loss.isfinite()
        stops |= state.steps >= state.max_steps
        ended: list[bool] = stops.tolist()
        return ended

    def take_step(self, now: ForwardPass) -> None:
        self.state.descend(now)
        self._before = now if self._leaps or self.training.logs else None

    def select(self, kept: Sequence[int]) -> None:
        mask = self._mask(kept)
        self.state = self.state.select(mask)
        self._before = self._before and self._before.select(mask)
        self._projections = [self._projections[index] for index in kept]

    def steps_taken(self, index: int, step: int) -> float:
        return float(self.state.steps[index])

    def measure(self, step: int, now: ForwardPass, due: Sequence[int]) -> list[Row]:
        if not self.training.logs:
            return [{}] * len(due)
        return [logged_row(self.tokens, now, self._before)]

    def results(self, step: int, now: ForwardPass, rows: Mapping[int, Row]) -> Results[P]:
        mask = self._mask(list(rows))
        ended = self.state.select(mask)
        tokens = TrueScaleTokens(ended, [self._projections[index] for index in rows])
        at_end = zip(
            rows, ended.steps.tolist(), final_measurements(tokens, now.select(mask)), strict=True
        )
        for index, steps, row in at_end:
            cell = self.cells[index].cell
            reason = failure(row["train_loss"], cell.parameters.epsilon)
            yield CellResult(cell, {**row, "updates": step}, int(steps), reason)

    def _mask(self, indices: Sequence[int]) -> Tensor:
        chosen = set(indices)
        return torch.tensor(
            [index in chosen for index in range(len(self.cells))], device=self.state.steps.device
        )


def final_measurements(tokens: TrueScaleTokens, train: ForwardPass) -> Iterator[dict[str, float]]:
    """Give the measurements of each cell in turn, but for the number of its updates."""
    test, signal_values = tokens.test_pass(), tokens.signal_values()
    noise_values = tokens.values()[:, :, 1].abs().mean(1)  # (cells,)
    for cell, labels in enumerate(tokens.labels):
        on_train, on_test = (out.attention[cell].mean((0, 1)) for out in (train, test))  # (tokens,)
        yield {
            "train_loss": float(train.loss[cell]),
            "test_loss": float(test.loss[cell]),
            "test_error": float((test.margins[cell] <= 0).double().mean()),
            "train_margin": float(train.margins[cell].mean()),
            "train_margin_min": float(train.margins[cell].min()),
            "test_margin": float(test.margins[cell].mean()),
            "train_attention_signal": float(on_train[0]),
            "train_attention_noise": float(on_train[1]),
            "test_attention_signal": float(on_test[0]),
            "test_attention_noise": float(on_test[1]),
            "test_signal_attention_min": float(test.attention[cell, :, 0, 0].min()),
            "test_noise_value_max": float(test.values[cell, :, 1:].abs().max()),
            "value_plus": float(signal_values[cell, 0]),
            "value_minus": float(signal_values[cell, 1]),
            "value_noise": float(noise_values[cell]),
            "output_norm": float(tokens.output_norm()[cell]),
            "label_imbalance": abs(float(labels.mean())),
        }
