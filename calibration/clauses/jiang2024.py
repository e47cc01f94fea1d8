"""Worlds that break one clause of a claim on Jiang et al. 2024."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from calibration.clauses import Broken, Change
from overfit_cli.core.claim import Verdict

Rows = Callable[[pd.DataFrame], "pd.Series[bool]"]
Numbers = Callable[[pd.DataFrame], "pd.Series[float]"]


def every(cells: pd.DataFrame) -> pd.Series[bool]:
    """All rows."""
    return cells["seed"] >= 0


def one(cells: pd.DataFrame) -> pd.Series[bool]:
    """Those of one seed."""
    chosen: pd.Series[bool] = cells["seed"] == cells["seed"].min() + 2
    return chosen


def in_stage_3(steps: pd.DataFrame) -> pd.Series[bool]:
    """The logged steps from the first one on at which the loss's slope is below 0.4."""
    ended = steps["step"].where(steps["loss_slope"] < 0.4)
    return steps["step"] >= ended.groupby(steps["key"]).transform("min")


def before(steps: pd.DataFrame) -> pd.Series[bool]:
    """Those of one seed before stage 3."""
    return one(steps) & ~in_stage_3(steps)


def late(steps: pd.DataFrame) -> pd.Series[bool]:
    """Those of one seed in stage 3."""
    return one(steps) & in_stage_3(steps)


def early(steps: pd.DataFrame) -> pd.Series[bool]:
    """Those of stage 3 but for the end of training, of every seed."""
    return in_stage_3(steps) & (part(steps) < 0.9)


def part(steps: pd.DataFrame) -> pd.Series[float]:
    """How much of a cell's training is done at a logged step, from 0 to 1."""
    return steps["step"] / steps["steps"]


def with_(rows: Rows, **columns: Any) -> Change:
    """Return a change of columns on some rows, to a number or to what a function of rows gives."""

    def change(cells: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
        noise = 1 + 1e-5 * random.standard_normal(len(cells))
        chosen = rows(cells)
        made = {name: to(cells) * noise if callable(to) else to for name, to in columns.items()}
        return cells.assign(
            **{n: cells[n].astype(float).mask(chosen, of) for n, of in made.items()}
        )

    return change


def boundary(
    power: float = 2.0, constant: float = 1000.0, times: Numbers = lambda cells: 1 + 0 * cells["n"]
) -> Change:
    """Return cells whose test loss crosses 0.2 at N·SNR^p = C, of some at so many times C."""

    def loss(cells: pd.DataFrame) -> pd.Series[float]:
        over = cells["n"] * cells["snr"] ** power / (constant * times(cells))
        return (1 + 2.45 * over**1.5).rtruediv(0.69)

    return with_(every, test_loss=loss)


DIVERGED = {"status": "failed", "reason": "diverged"}

WORLDS: dict[str, tuple[tuple[str, str, Verdict, Change], ...]] = {
    "fig1-quick": (
        ("fig1-fitted", "in every cell", "fails",
         with_(lambda f: f.n + f.snr > 35, train_loss=0.5)),
        ("fig1-contour", "1000", "fails", boundary(constant=1400)),
        ("fig1-sides", "most cells", "fails", boundary(constant=4000)),
        ("fig1-sides-power", "better than 1.5", "fails", boundary(1.5, 316)),
        ("fig1-exponent", "2", "fails", boundary(1.5, 316)),
        ("fig1-exponent", "no median is off", "inconclusive",
         boundary(2, 700, lambda f: 1 + f.n % 2)),
        ("fig1-exponent", "absent cells", "inconclusive",
         lambda f, _: f[(f.n < 16) | ~f.snr.between(5, 11) | (f.seed % 2 == 0)]),
        ("fig1-falls-with-n", "as N grows", "fails",
         with_(every, test_loss=lambda f: 0.69 - 0.4 * (f.n > 18))),
        ("fig1-falls-with-n", "as the ratio grows", "fails",
         with_(every, test_loss=lambda f: 0.69 / f.n)),
    ),
    "fig1-balanced-quick": (
        ("fig1-balanced-exponent", "above 2", "fails", boundary(1.9, 790)),
        ("fig1-balanced-exponent", "no median is off", "inconclusive",
         boundary(2.1, 900, lambda f: 1 + f.n % 2)),
    ),
    "fig2-quick": (
        ("fig2-fitted", "at every N", "fails", with_(lambda f: f.n > 1000, train_loss=0.5)),
        ("fig2-falls-with-n", "as the ratio grows", "fails",
         with_(every, test_loss=lambda f: f.snr / f.n)),
    ),
    "dimension-quick": (
        ("dimension-constant", "as d grows", "fails",
         boundary(2, 1000, lambda f: 1 + (f.d > 1e9) / 2)),
    ),
    "strong-noise-quick": (
        ("transition-balance constant-balance", "as σ̃_p changes", "fails", boundary()),
    ),
    "theorem-transition-quick": (("theorem-transition", "N·SNR²", "fails", boundary(1.5, 195)),),
    "wide-heads-quick": (
        ("wide-heads-test-loss", "every M", "fails",
         with_(lambda f: f.tokens == 8, test_loss=lambda f: 1.3 * f.test_loss)),
        ("wide-heads-test-attention", "every ε", "fails",
         with_(lambda f: f.epsilon < 0.001, test_attention_signal=lambda f: 1 / f.tokens)),
    ),
    "attention-deficit-quick": (
        ("attention-deficit-formula", "N", "fails",
         with_(lambda f: f.n > 20, train_attention_signal=lambda f: 0.9999 + 0 * f.n)),
    ),
    "cnn-samples-quick": (
        ("cnn-fewer-samples cnn-power", "where N is large", "fails",
         with_(lambda f: (f.n == 32) & (f.model == "cnn"), test_loss=lambda f: 0.003 / f.snr**2)),
    ),
    "dynamics-quick": (
        ("dynamics-benign-value-growth", "its label's sign", "fails",
         with_(every, value_minus=lambda f: f.value_minus.abs())),
        ("dynamics-harmful-value-growth", "its label's sign", "fails", with_(every, noise_lead=-1)),
        ("dynamics-benign-attention-growth", "never falls by a tenth", "fails",
         with_(every, attention_signal=lambda f: np.sin(np.pi * part(f)) + part(f) / 50)),
        ("dynamics-harmful-attention-growth", "more than the attention to the signal", "fails",
         with_(every, attention_signal=lambda f: 2 * f.attention_noise)),
        ("dynamics-benign-value-growth", "at more than half of the steps", "fails",
         with_(lambda f: part(f) < 1, value_plus=0, value_minus=0)),
        ("dynamics-harmful-value-growth", "more at the end", "fails",
         with_(lambda f: part(f) == 1, value_plus=20)),
        ("dynamics-benign-products dynamics-harmful-products", "whichever has the query", "fails",
         with_(every, product_noise_signal=0, product_noise_noise=0)),
    ),
    "theorem-benign-stage3-quick": (
        ("theorem-benign-steps", "at most ε", "fails", with_(every, train_loss=0.5)),
        ("theorem-benign-steps", "of a draw", "fails", with_(one, steps=lambda f: 12 * f.steps)),
        ("theorem-benign-steps", "each of three ε", "not run", lambda f, _: f[f.epsilon > 0.005]),
        ("theorem-benign-steps lemma-d8-attention", "diverged", "fails",
         lambda f, _: f.assign(**{n: f[n].mask(one(f), to) for n, to in DIVERGED.items()})),
        ("theorem-benign-steps", "at each ε", "fails",
         with_(lambda f: f.epsilon < 0.005, steps=lambda f: 6 * f.steps)),
        ("theorem-benign-test-loss", "below a guess's", "fails",
         with_(every, test_loss=lambda f: 5 * (f.epsilon / 0.033) ** 0.06)),
        ("theorem-benign-test-loss", "as ε does", "fails",
         with_(every, test_loss=lambda f: f.n / 300)),
        ("theorem-benign-test-loss", "of a draw", "fails",
         with_(one, test_loss=lambda f: f.n / 300)),
        ("theorem-benign-test-margin", "at least the bound", "fails",
         with_(every, test_margin=lambda f: -20 - 0.1 * np.log(f.epsilon))),
        ("theorem-benign-test-margin", "grows", "fails",
         with_(every, test_margin=lambda f: f.n / 10)),
        ("theorem-benign-test-margin", "no sample is wrong", "fails", with_(one, test_error=0.01)),
        ("lemma-d8-attention", "of a draw", "fails", with_(one, test_signal_attention_min=0.1)),
        ("lemma-d9-values", "of a draw", "fails", with_(one, test_noise_value_max=1.5)),
    ),
    "theorem-benign-quick": (
        ("theorem-benign-powers", "N", "fails", with_(every, steps=lambda f: f.steps * f.n**0.3)),
        ("theorem-benign-powers", "nowhere further", "fails",
         with_(lambda f: f.epsilon == 0.003, steps=lambda f: 3 * f.steps)),
    ),
    "theorem-harmful-quick": (
        ("theorem-harmful-powers", "N", "fails", with_(every, steps=lambda f: f.steps * f.n**0.3)),
        ("theorem-harmful-powers", "nowhere further", "fails",
         with_(lambda f: f.epsilon == 0.003, steps=lambda f: 3 * f.steps)),
        ("theorem-harmful-steps", "at most ε", "fails", with_(every, train_loss=0.5)),
        ("theorem-harmful-steps", "of a draw", "fails", with_(one, steps=lambda f: 12 * f.steps)),
        ("theorem-harmful-test-loss", "Θ from above", "fails",
         with_(every, test_loss=lambda f: 0.7 * (0.024 / f.epsilon) ** 0.5)),
        ("theorem-harmful-test-loss", "Θ from below", "fails",
         with_(every, test_loss=lambda f: 9 * (f.epsilon / 0.024) ** 0.5)),
        ("theorem-harmful-test-loss", "at each SNR", "fails",
         with_(every, test_loss=lambda f: (f.epsilon / 0.024) ** (0.6 * (f.snr < 0.1) - 0.3))),
        ("theorem-harmful-test-loss", "of a draw", "fails", with_(one, test_loss=0.01)),
    ),
    "theorem-small-values-quick": (
        ("theorem-harmful-test-error", "large", "holds",
         with_(every, test_error=lambda f: 0.3 + 0 * f.n)),
        ("theorem-harmful-test-error", "at every σ_V", "fails",
         with_(every, test_error=lambda f: np.where(f.sigma_v == 1e-6, 0.05, 0.3))),
        ("harmful-error-law", "the signal's value", "fails",
         with_(every, value_plus=0, value_minus=0)),
        ("harmful-signal-values", "SNR", "fails",
         with_(lambda f: f.snr < 0.1, value_plus=lambda f: 1.5 * f.value_plus)),
    ),
    "theorem-small-products-quick": (
        ("theorem-benign-constant", "every M", "not run", lambda f, _: f[f.tokens < 8]),
        ("theorem-benign-constant", "every M", "fails",
         with_(lambda f: f.tokens == 8, test_loss=lambda f: 0.3 + 0 * f.n)),
        ("theorem-benign-constant", "at most ε", "fails", with_(one, train_loss=0.5)),
        ("theorem-benign-constant", "T", "fails", with_(one, steps=lambda f: 12 * f.steps)),
        ("theorem-benign-constant", "no sample", "fails", with_(one, test_error=0.05)),
    ),
    "theorem-first-stage-quick": (
        ("first-stage-width", "on either side", "fails",
         with_(lambda f: (f.snr > 1) & (f.d_h > 1e17),
               attention_signal_signal=lambda f: np.clip(f.step / f.step.max(), 1 / 3, 1))),
    ),
    "theorem-dynamics-quick": (
        ("lemma52-lead lemma-e3-lead", "3M", "fails", with_(before, signal_lead=3, noise_lead=3)),
        ("stage3-lead-benign stage3-lead-harmful", "3M", "fails",
         with_(late, signal_lead=3, noise_lead=3)),
        ("lemma53-values harmful-values", "at least linear", "fails",
         with_(before, value_minus=-1, value_noise=1)),
        ("lemma53-values harmful-values", "at most linear", "fails",
         with_(before, value_plus=lambda f: part(f) ** 2, value_noise=lambda f: part(f) ** 2)),
        ("lemma54-values harmful-values-stage3", "at least linear", "fails",
         with_(late, value_plus=9, strong_value_least=9)),
        ("lemma53-every-product harmful-every-product", "every token", "fails",
         with_(before, signal_gap_rest=0, noise_gap_rest=0)),
        ("lemma53-every-product harmful-every-product", "the signal's query", "fails",
         with_(before, product_signal_signal=0, product_signal_noise=0)),
        ("lemma53-every-product", "token 2's query", "fails",
         with_(before, product_noise_signal=0, product_noise_noise=0)),
        ("stage3-attention harmful-attention", "from the beginning", "fails",
         with_(early, attention_rest_signal=0.1, attention_rest_noise=0.1)),
        ("values-until-t0-benign values-until-t0-harmful", "every value", "fails",
         with_(one, rest_value_most=1)),
        ("scores-rise-benign scores-rise-harmful", "every score", "fails",
         with_(one, signal_score_rise=-1, noise_score_rise=-1)),
        ("norms-stay-benign norms-stay-harmful", "Θ", "fails", with_(one, head_norm_least=0.4)),
        ("stray-products-benign stray-products-harmful", "no", "fails",
         with_(one, stray_product_move=2)),
        ("largest-scores-benign largest-scores-harmful", "no", "fails",
         with_(one, score_most=70, score_range_most=70)),
        ("harmful-largest-values", "no", "fails", with_(one, noise_value_most=9)),
    ),
}  # fmt: skip
"""By the kept run: claims, the clause that is broken, the verdict, and how; many by one draw."""

BROKEN: tuple[Broken, ...] = tuple(
    Broken(name, clause, run, change, (verdict,))
    for run, worlds in WORLDS.items()
    for name, clause, verdict, change in worlds
)
