"""Quantities logged of a cell at each step: those of section 5 and of figures 3 and 4.

Token classes: the signal (token 1), the noise (token 2, the strong one) and the rest (3 to M).
"""

from __future__ import annotations

import torch

from overfit_cli.studies.benign_vit.columns import TOKEN_CLASSES
from overfit_cli.studies.benign_vit.engine.token_space import ForwardPass
from overfit_cli.studies.benign_vit.engine.true_scale import TrueScaleTokens


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
