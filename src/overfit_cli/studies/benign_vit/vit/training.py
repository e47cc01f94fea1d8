"""Training of `benign-vit`, and its dynamics.

Quantities logged of a cell at each step: those of section 5 and of figures 3 and 4.

Token classes: the signal (token 1), the noise (token 2, the strong one) and the rest (3 to M).

The path from cells to results: projections, gradient descent in token space, measurements.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from overfit_cli.core.cell import CellResult, Cells, Results
from overfit_cli.core.training import Training, failure
from overfit_cli.studies.benign_vit.vit.engine import (
    ForwardPass,
    TokenSpace,
    initial_state,
    projections_of,
)
from overfit_cli.studies.benign_vit.vit.parameters import TOKEN_CLASSES, BenignVitParameters
from overfit_cli.studies.benign_vit.vit.true_scale import TrueScaleTokens


def logged(tokens: TrueScaleTokens, now: ForwardPass) -> dict[str, float]:
    """Return one row of the trajectory of a cell.

    Args:
        tokens: of the only cell.
        now: its forward pass over the training samples.
    """
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
    }


def _attention_between_classes(now: ForwardPass) -> dict[str, float]:
    """The mean attention of a token of each class on each class as a whole.

    That of one class adds up to 1; the rest's is nan, and that on it 0, with two tokens a sample.
    """
    attention = now.attention.mean(1)[0]  # (tokens, tokens)
    onto = torch.cat([attention[:, :2], attention[:, 2:].sum(-1, keepdim=True)], dim=-1)
    means = torch.cat([onto[:2], onto[2:].mean(0, keepdim=True)])  # (3, 3)
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
    of_signal = torch.where(labels > 0, plus, -minus)
    noise = values[:, 1:].abs()
    others = torch.cat([of_signal.abs()[:, None], noise[:, 1:]], dim=1)
    return {
        "value_plus": plus,
        "value_minus": minus,
        "value_noise": float(values[:, 1].abs().mean()),
        "signal_lead": float((of_signal / noise.max(1).values).min()),
        "noise_lead": float((labels * values[:, 1] / others.max(1).values).min()),
    }


def _products(tokens: TrueScaleTokens) -> dict[str, float]:
    """Inner products of definition 5.1: of the + signal and the noise token."""
    query, key = (part[0] for part in tokens.signal_queries_and_keys())  # (width,)
    noise_query, noise_key = (part[0, :, 1] for part in tokens.queries_and_keys())
    plus = tokens.is_plus[0]
    return {
        "product_signal_signal": float(query @ key),
        "product_signal_noise": float((noise_key @ query)[plus].mean()),
        "product_noise_signal": float((noise_query @ key)[plus].mean()),
        "product_noise_noise": float((noise_query * noise_key).sum(-1).mean()),
    }


def _value_coefficients(tokens: TrueScaleTokens) -> dict[str, float]:
    """The coefficients of definition 5.2: both signals', and the mean noise token 2's."""
    gamma, rho = tokens.value_coefficients()
    return {
        "gamma_plus": float(gamma[0]),
        "gamma_minus": float(gamma[1]),
        "rho_noise": float((tokens.labels[0] * rho[:, 0]).mean()),
    }


def _step_coefficients(tokens: TrueScaleTokens, now: ForwardPass) -> dict[str, float]:
    """The coefficients of definition B.3: the + signal's, and the mean noise token 2's."""
    plus = tokens.is_plus[0]
    own = torch.arange(len(plus), device=plus.device)
    found: dict[str, float] = {}
    for name, step in zip(("alpha", "beta"), tokens.step_coefficients(now), strict=True):
        signal, noise = step.signal[0], step.noise  # (samples, tokens), (samples, samples, tokens)
        found |= {
            f"{name}_signal_signal": float(signal[plus, 0].sum()),
            f"{name}_signal_noise": float(signal[plus, 1].mean()),
            f"{name}_noise_signal": float(noise[plus][:, plus, 0].sum(1).mean()),
            f"{name}_noise_noise": float(noise[own, own, 1].mean()),
        }
    return found


def train_batch(
    batch: Cells[BenignVitParameters], training: Training
) -> Results[BenignVitParameters]:
    """Train a batch: on a CPU any cells, on a GPU cells of one shape.

    On a CPU one cell at a time is faster than many (they fall out of cache), and so is a logged
    run, which measures at every step; on a GPU all train together.
    """
    together = training.device != "cpu" and not training.logs
    with torch.inference_mode():
        for part in [batch] if together else [[cell] for cell in batch]:
            yield from train_together(part, training)


def train_together(
    cells: Cells[BenignVitParameters], training: Training
) -> Results[BenignVitParameters]:
    """Train cells of one shape as one tensor; each gives its result at the step where it stops."""
    projections = [projections_of(cell.parameters, cell.seed, training.device) for cell in cells]
    initial = initial_state([cell.parameters for cell in cells], projections)
    for updates, (state, now, stops) in enumerate(descend_until_fitted(initial)):
        if training.logs:
            row = logged(TrueScaleTokens(state, projections), now)
            training.log(cells[0], float(state.steps[0]), row)
        if bool(stops.any()):
            stopped = state.select(stops)
            places = stopped.indices.tolist()
            tokens = TrueScaleTokens(stopped, [projections[place] for place in places])
            rows = measured(tokens, now.select(stops))
            for place, steps, row in zip(places, stopped.steps.tolist(), rows, strict=True):
                reason = failure(row["train_loss"], cells[place].parameters.epsilon)
                yield CellResult(cells[place], {**row, "updates": updates}, int(steps), reason)


def descend_until_fitted(state: TokenSpace) -> Iterator[tuple[TokenSpace, ForwardPass, Tensor]]:
    """Train all cells; after each stride give (state, forward pass, which of them stop here).

    A cell stops when its training loss is at most its ε, isn't finite, or its steps are spent. The
    state is changed in place by the next stride.
    """
    leaps = bool((state.leap > 0).any())
    now = state.forward()
    while True:
        stops = (now.loss <= state.epsilon) | ~now.loss.isfinite()
        stops |= state.steps >= state.max_steps
        yield state, now, stops
        if bool(stops.any()):
            if bool(stops.all()):
                return
            state, now = state.select(~stops), now.select(~stops)
        state.descend(now)
        before, now = now, state.forward()
        if leaps:
            state.choose_stride(before, now)


def measured(tokens: TrueScaleTokens, train: ForwardPass) -> Iterator[dict[str, float]]:
    """Give the measurements of each cell in turn, but for the number of its updates.

    Args:
        tokens: of the cells.
        train: their forward pass over the training samples.
    """
    test, signal_values = tokens.test_pass(), tokens.signal_values()
    noise_values = tokens.values()[:, :, 1].abs().mean(1)  # (cells,)
    for cell, labels in enumerate(tokens.labels):
        on_train, on_test = (one.attention[cell].mean((0, 1)) for one in (train, test))  # (tokens,)
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
            "value_plus": float(signal_values[cell, 0]),
            "value_minus": float(signal_values[cell, 1]),
            "value_noise": float(noise_values[cell]),
            "output_norm": float(tokens.output_norm()[cell]),
            "label_imbalance": abs(float(labels.mean())),
        }
