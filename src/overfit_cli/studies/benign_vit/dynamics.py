"""What is logged of a cell at each step: the quantities of section 5 and figures 3 and 4.

Token classes: the signal (token 1), the noise (token 2, the strong one) and the rest (3 to M).
"""

from __future__ import annotations

import torch
from torch import Tensor

from overfit_cli.studies.benign_vit.coefficients import step_coefficients, value_coefficients
from overfit_cli.studies.benign_vit.columns import TOKEN_CLASSES
from overfit_cli.studies.benign_vit.engine import Pass, TokenSpace
from overfit_cli.studies.benign_vit.evaluation import signal_values
from overfit_cli.studies.benign_vit.start import Start


def logged(state: TokenSpace, now: Pass, test: Pass, start: Start) -> dict[str, float]:
    """Return one row of the trajectory of the only cell of `state`.

    Args:
        state: the cell's state.
        now: its forward pass over the training samples.
        test: its forward pass over the test samples.
        start: its start.
    """
    row = {
        "train_loss": float(now.loss[0]),
        "test_loss": float(test.loss[0]),
        "test_error": float((test.margins[0] <= 0).double().mean()),
        "train_margin": float(now.margins[0].mean()),
        "train_margin_min": float(now.margins[0].min()),
        "attention_signal": float(now.attention[0, :, :, 0].mean()),
        "attention_noise": float(now.attention[0, :, :, 1].mean()),
        "loss_slope": float(torch.sigmoid(-now.margins[0]).mean()),
        **_products(state, start),
        **_coefficients(state, now, start),
    }
    means = attention_between_classes(now)[0]
    for i, source in enumerate(TOKEN_CLASSES):
        for j, target in enumerate(TOKEN_CLASSES):
            row[f"attention_{source}_{target}"] = float(means[i, j])
    return row


def attention_between_classes(now: Pass) -> Tensor:
    """Return the mean attention of a token of each class on each class as a whole, (cells, 3, 3).

    Rows sum to 1; the row and column of the rest are nan and 0 where a sample has two tokens.
    """
    attention = now.attention.mean(1)
    onto = torch.cat([attention[..., :2], attention[..., 2:].sum(-1, keepdim=True)], dim=-1)
    return torch.cat([onto[:, :2], onto[:, 2:].mean(1, keepdim=True)], dim=1)


def _products(state: TokenSpace, start: Start) -> dict[str, float]:
    """Values and inner products of definitions 5.1 and 5.2, of the + signal and the noise token."""
    rows, width = state.query.shape[1:]
    samples, tokens = state.labels.shape[1], state.scales.shape[1]
    signal_scale, noise_scale = (state.scales[0, :2] * state.head_scale[0]).tolist()
    gram = start.signal_gram[:, :rows]
    query = (start.signal_query[:, :width] + gram @ state.query_coefficients[0])[0] * signal_scale
    key = (start.signal_key[:, :width] + gram @ state.key_coefficients[0])[0] * signal_scale
    by_sample = (samples, tokens, width)
    noise_query = state.query[0].view(by_sample)[:, 1] * noise_scale
    noise_key = state.key[0].view(by_sample)[:, 1] * noise_scale
    values = state.value[0].view(samples, tokens) * state.scales[0]
    plus, minus = signal_values(state, [start])[0].tolist()
    positive = start.labels[:samples] > 0
    return {
        "value_plus": plus,
        "value_minus": minus,
        "value_noise": float(values[:, 1].abs().mean()),
        **_leads(plus, minus, values, state.labels[0]),
        "product_signal_signal": float(query @ key),
        "product_signal_noise": float((noise_key @ query)[positive].mean()),
        "product_noise_signal": float((noise_query @ key)[positive].mean()),
        "product_noise_noise": float((noise_query * noise_key).sum(-1).mean()),
    }


def _leads(plus: float, minus: float, values: Tensor, labels: Tensor) -> dict[str, float]:
    """By how much one token's value dominates the others' of its sample, at the worst sample.

    The signal's in lemma 5.2, token 2's in lemma E.3; a sample's signal is taken by its label.
    """
    of_signal = torch.where(labels > 0, plus, -minus)
    noise = values[:, 1:].abs()
    others = torch.cat([of_signal.abs()[:, None], noise[:, 1:]], dim=1)
    return {
        "signal_lead": float((of_signal / noise.max(1).values).min()),
        "noise_lead": float((labels * values[:, 1] / others.max(1).values).min()),
    }


def _coefficients(state: TokenSpace, now: Pass, start: Start) -> dict[str, float]:
    """The coefficients of definitions 5.2 and B.3: the + signal's, and the mean noise token 2's."""
    samples = state.labels.shape[1]
    own = torch.arange(samples, device=state.labels.device)
    positive = start.labels[:samples] > 0
    value = value_coefficients(state, start)
    step = step_coefficients(state, now, start)
    row = {
        "gamma_plus": float(value.gamma[0]),
        "gamma_minus": float(value.gamma[1]),
        "rho_noise": float((state.labels[0] * value.rho[:, 0]).mean()),
    }
    for name, signal, noise in (
        ("alpha", step.alpha_signal[0], step.alpha_noise),
        ("beta", step.beta_signal[0], step.beta_noise),
    ):
        row |= {
            f"{name}_signal_signal": float(signal[positive, 0].sum()),
            f"{name}_signal_noise": float(signal[positive, 1].mean()),
            f"{name}_noise_signal": float(noise[positive][:, positive, 0].sum(1).mean()),
            f"{name}_noise_noise": float(noise[own, own, 1].mean()),
        }
    return row
