"""Claims of section 5's lemmas on training dynamics, judged on logged steps (Jiang et al. 2024).

The cells meet Condition 4.1, as the lemmas require. Their constants are open, and so are logarithms
that they hide: powers and orders of magnitude are judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.analysis.intervals import Estimate, level_of_each, mean_estimate
from overfit_cli.claim import Claim, Measurement, inconclusive, not_run
from overfit_cli.claims.cells import varying
from overfit_cli.claims.rules import (
    Margin,
    from_logarithms,
    judged,
    judged_together,
    vacuous,
    within_a_factor,
)
from overfit_cli.parameter_values import of_row
from overfit_cli.studies.benign_vit.claims.theorem_regime import theorem_side
from overfit_cli.studies.benign_vit.columns import TOKEN_CLASSES
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory.predictions import Regime, boundary_product
from overfit_cli.studies.benign_vit.theory.steps import stage_ends

SAME = within_a_factor(1.0, 1.25, "means over samples stand for samples", 5)
AT_MOST = Margin(most=1.5, because="‖ξ‖² is at most 3/2 of σ̃_p² d, lemma C.4", fewest_seeds=5)
LEAD = Margin(least=1.0, because="the lemma's", fewest_seeds=5)
LINEAR = Margin(least=0.9, because="the lemma's 1, less a tenth", fewest_seeds=5)
QUADRATIC = Margin(least=1.9, because="the lemma's 2, less a tenth", fewest_seeds=5)
NEAR_ONE = Margin(least=0.9, because="nearly 1: nine tenths of all attention", fewest_seeds=5)

_MAY_VARY = {"max_steps", "test_samples", "leap", "dtype"}
_ALIKE = [name for name in BenignVitParameters.model_fields if name not in _MAY_VARY]

OfCell = Callable[[pd.DataFrame, BenignVitParameters], float]
"""A number of one cell: from its logged steps, in order, and its parameters."""


def _of_seeds(steps: pd.DataFrame, side: Regime, number: OfCell) -> pd.Series[float]:
    """Return a number for each seed, the mean over its cells that meet the lemmas' conditions."""
    chosen = theorem_side(steps.drop_duplicates("key"), side)
    if chosen.empty:
        raise not_run(
            "It needs logged steps of cells with initialisation=condition that meet Condition 4.1, "
            f"as in `overfit sweep theorem-dynamics-{side}`."
        )
    if several := varying(chosen, _ALIKE):
        raise not_run(f"It needs cells of one value of {', '.join(several)}.")
    if (failed := int((chosen["status"] != "done").sum())) > 0:
        raise inconclusive(f"{failed} of {len(chosen)} cells failed before they were fitted.")
    found = {}
    for key, of_cell in steps[steps["key"].isin(chosen["key"])].groupby("key"):
        ordered = of_cell.sort_values("step")
        if ordered["step"].iloc[-1] != ordered["steps"].iloc[-1]:
            raise inconclusive("Some cells weren't logged to the end.")
        row = ordered.iloc[0]
        found[int(row["seed"]), key] = number(ordered, of_row(BenignVitParameters, row))
    numbers = pd.Series(found)
    if (unknown := int(numbers.isna().sum())) > 0:
        raise inconclusive(f"{unknown} of {len(numbers)} cells have too few logged steps to tell.")
    return numbers.groupby(level=0).mean()


def _judge(
    number: OfCell,
    margin: Margin,
    side: Regime = "benign",
    *,
    note: str,
    logs: bool = False,
    details: Mapping[str, OfCell] | None = None,
) -> Callable[[pd.DataFrame], Measurement]:
    """Return what measures a number's mean over seeds; with `logs` that of its logarithm."""

    def measure(steps: pd.DataFrame) -> Measurement:
        found = mean_estimate(_of_seeds(steps, side, number))
        more = {name: float(_of_seeds(steps, side, one).mean()) for name, one in _items(details)}
        return judged(from_logarithms(found) if logs else found, margin, note=note, details=more)

    return measure


def _items(details: Mapping[str, OfCell] | None) -> Iterable[tuple[str, OfCell]]:
    return () if details is None else details.items()


def _signal_update(steps: pd.DataFrame, parameters: BenignVitParameters) -> float:
    """The median over steps of what a step adds to γ₊ − γ₋, over lemma 5.1's, as a logarithm."""
    added = _per_step(steps, "gamma_plus") - _per_step(steps, "gamma_minus")
    predicted = parameters.signal_norm**2 / parameters.tokens
    return _median_logarithm(added, predicted * _attended(steps, parameters, "signal"), parameters)


def _noise_update(steps: pd.DataFrame, parameters: BenignVitParameters) -> float:
    """The median over steps of what a step adds to y_n ρ_n,2, over lemma 5.1's, as a logarithm."""
    predicted = parameters.strong_noise_norm**2 / (parameters.n * parameters.tokens)
    attended = _attended(steps, parameters, "noise")
    return _median_logarithm(_per_step(steps, "rho_noise"), predicted * attended, parameters)


def _attended(steps: pd.DataFrame, parameters: BenignVitParameters, target: str) -> np.ndarray:
    """−ℓ′ times the attention of all tokens on one, between logged steps; (steps − 1,)."""
    weights = {"signal": 1, "noise": 1, "rest": parameters.tokens - 2}
    attention = sum(
        weight * steps[f"attention_{source}_{target}"]
        for source, weight in weights.items()
        if weight
    )
    product = (steps["loss_slope"] * attention).to_numpy(dtype=np.float64)
    return np.asarray((product[1:] + product[:-1]) / 2)


def _per_step(steps: pd.DataFrame, column: str) -> np.ndarray:
    """What a step adds to a column, between logged ones; (steps − 1,)."""
    values = steps[["step", column]].to_numpy(dtype=np.float64)
    moved = np.diff(values, axis=0)
    return np.asarray(moved[:, 1] / moved[:, 0])


def _median_logarithm(
    added: np.ndarray, predicted: np.ndarray, parameters: BenignVitParameters
) -> float:
    ratio = added / (parameters.learning_rate * predicted)
    if not len(ratio) or np.isnan(ratio).any():
        return float("nan")
    return float(np.log(max(np.median(ratio), NOTHING)))


def _lead(steps: pd.DataFrame, parameters: BenignVitParameters, side: Regime) -> float:
    """The logarithm of the lead over 3M, the largest until stage 2 ends."""
    ends = stage_ends(steps, parameters.tokens, side)
    until = steps[~(steps["step"] > ends.second)]
    most = until["signal_lead" if side == "benign" else "noise_lead"].max()
    return float(np.log(max(most, NOTHING) / (3 * parameters.tokens)))


def _steps_to_lead(steps: pd.DataFrame, parameters: BenignVitParameters, side: Regime) -> float:
    return stage_ends(steps, parameters.tokens, side).first


def _lead_of_signal(steps: pd.DataFrame) -> Measurement:
    """Measure lemma 5.2's lead; it is vacuous where the lemma's T₁ isn't positive."""
    found = _judge(
        partial(_lead, side="benign"),
        LEAD,
        logs=True,
        note="The largest lead until stage 2 ends, over 3M; T₁ is taken as where N·SNR² is large.",
        details={
            "steps until the lead is 3M, mean": partial(_steps_to_lead, side="benign"),
            "those over T₁, mean": _over_first_stage,
        },
    )(steps)
    short = float(_of_seeds(steps, "benign", _decades_short).mean())
    if short <= 0:
        return found
    why = "As the lemma has it, T₁ is positive only where N·SNR² is above 60 M² C_p²."
    return vacuous(found, why, {"decades by which N·SNR² is below 60 M² C_p²": short})


def _over_first_stage(steps: pd.DataFrame, parameters: BenignVitParameters) -> float:
    """The steps until the lead is 3M, over T₁ of lemma 5.2 where N·SNR² is large."""
    tokens, parts = parameters.tokens, parameters.learning_rate * parameters.output_scale**2
    first = (
        10 * tokens * (3 * tokens + 1) / (parts * parameters.d_h**0.25 * parameters.signal_norm**2)
    )
    return float(stage_ends(steps, tokens, "benign").first / first)


def _decades_short(steps: pd.DataFrame, parameters: BenignVitParameters) -> float:
    """By how many decades N·SNR² is below 60 M² C_p², where T₁ of lemma 5.2 turns positive."""
    needed = 60 * (parameters.tokens * parameters.strong_noise) ** 2
    return float(np.log10(needed / boundary_product(parameters.n, parameters.snr)))


def _stage_2_value(steps: pd.DataFrame, parameters: BenignVitParameters) -> float:
    """The power of t − T₁ in the signal's value over stage 2."""
    return _power(_stage(steps, parameters, 2), _signal_value)


def _stage_2_products(steps: pd.DataFrame, parameters: BenignVitParameters) -> float:
    """The power of t − T₁ in exp(Λ) − exp(Λ(T₁)) over stage 2, Λ = ⟨q₊, k₊⟩ − ⟨q₊, k₂⟩."""

    def grown(part: pd.DataFrame) -> np.ndarray:
        difference = part["product_signal_signal"] - part["product_signal_noise"]
        return np.asarray(np.exp(difference.to_numpy(dtype=np.float64)))

    return _power(_stage(steps, parameters, 2), grown)


def _stage_3_value(steps: pd.DataFrame, parameters: BenignVitParameters) -> float:
    """The power of t − T₂ in exp(value) − exp(value at T₂) over stage 3."""
    return _power(_stage(steps, parameters, 3), lambda part: np.exp(_signal_value(part)))


def _signal_value(steps: pd.DataFrame) -> np.ndarray:
    """The mean of μ₊ᵀW_V w_O and −μ₋ᵀW_V w_O."""
    values = (steps["value_plus"] - steps["value_minus"]) / 2
    return np.asarray(values.to_numpy(dtype=np.float64))


def _stage(steps: pd.DataFrame, parameters: BenignVitParameters, stage: int) -> pd.DataFrame:
    """The logged steps of stage 2, or of stage 3; none where the stage before doesn't end."""
    ends = stage_ends(steps, parameters.tokens, "benign")
    if stage == 2:
        return steps[(steps["step"] >= ends.first) & ~(steps["step"] > ends.second)]
    return steps[steps["step"] >= ends.second]


def _power(part: pd.DataFrame, of: Callable[[pd.DataFrame], np.ndarray]) -> float:
    """The power with which what is added since the stage began scales with the steps since then.

    It is fitted to the stage's second half, where what came before counts least.
    """
    if len(part) < LEAST_LOGGED:
        return float("nan")
    since, added = part["step"].to_numpy(dtype=np.float64), of(part)
    since, added = (values[1:] - values[0] for values in (since, added))
    late = (since >= since[-1] / 2) & (added > 0)
    if late.sum() < LEAST_LOGGED // 2:
        return float("nan")
    return float(np.polyfit(np.log(since[late]), np.log(added[late]), 1)[0])


NOTHING = 1e-12
"""What a ratio is taken as that is zero or below it, as a logarithm is averaged."""

LEAST_LOGGED = 8
"""The fewest logged steps of a stage that tell a power."""


def _stage_3_attention(steps: pd.DataFrame) -> Measurement:
    """Measure the attention of each class of token on the signal when training ends."""
    level = level_of_each(len(TOKEN_CLASSES))

    def at_end(source: str) -> Estimate:
        def last(of_cell: pd.DataFrame, parameters: BenignVitParameters) -> float:
            return float(of_cell[f"attention_{source}_signal"].iloc[-1])

        return mean_estimate(_of_seeds(steps, "benign", last), level)

    words = {"signal": "the signal", "noise": "token 2", "rest": "tokens 3 to M"}
    return judged_together(
        {
            f"attention of {words[one]} on the signal": (at_end(one), NEAR_ONE)
            for one in TOKEN_CLASSES
        },
        note="When training ends, mean over seeds.",
    )


def _claim(
    name: str,
    source: str,
    statement: str,
    holds_where: str,
    measure: Callable[[pd.DataFrame], Measurement],
    side: Regime = "benign",
) -> Claim:
    return Claim(
        name=name,
        source=f"Jiang et al. 2024, {source}",
        statement=statement,
        holds_where=holds_where,
        measure=measure,
        figure="dynamics",
        preset=f"theorem-dynamics-{side}",
        reads="trajectories",
    )


LEMMAS = (
    _claim(
        "lemma51-signal",
        "Lemma 5.1 (B.2)",
        "A step adds η‖μ‖²/(NM) Σ −ℓ′ Σ_s softmax(⟨q_s, k_±⟩) to the signal's value: −ℓ′ and the "
        "attention on the signal decide how fast it is learned.",
        SAME.in_words("what a step adds to γ₊ − γ₋ over that, the median over steps,"),
        _judge(_signal_update, SAME, logs=True, note="The median over logged steps."),
    ),
    _claim(
        "lemma51-noise",
        "Lemma 5.1 (B.2)",
        "The median step adds at most η 3/2 σ̃_p² d/(NM) (−ℓ′) Σ_s softmax(⟨q_s, k_2⟩) to token 2's "
        "value.",
        AT_MOST.in_words("what a step adds to y ρ over that, the median over steps,"),
        _judge(_noise_update, AT_MOST, logs=True, note="The median over logged steps."),
    ),
    _claim(
        "lemma52-lead",
        "Lemma 5.2",
        "By the end of stage 2 the signal's value is 3M times any other of its sample.",
        LEAD.in_words("the lead over 3M, at the worst sample,"),
        _lead_of_signal,
    ),
    _claim(
        "lemma-e3-lead",
        "Lemma E.3",
        "Where overfitting is harmful, token 2's value is 3M times any other of its sample by the "
        "end of stage 2.",
        LEAD.in_words("the lead over 3M, at the worst sample,"),
        _judge(
            partial(_lead, side="harmful"),
            LEAD,
            "harmful",
            logs=True,
            note="The largest lead until stage 2 ends, over 3M.",
            details={"steps until the lead is 3M, mean": partial(_steps_to_lead, side="harmful")},
        ),
        "harmful",
    ),
    _claim(
        "lemma53-values",
        "Lemma 5.3",
        "In stage 2 the signal's value grows at least linearly in the steps since T₁.",
        LINEAR.in_words("the power of t − T₁"),
        _judge(_stage_2_value, LINEAR, note="Fitted to the second half of stage 2."),
    ),
    _claim(
        "lemma53-products",
        "Lemma 5.3",
        "In stage 2 exp(⟨q₊, k₊⟩ − ⟨q₊, k₂⟩) grows at least as the square of the steps since T₁.",
        QUADRATIC.in_words("the power of t − T₁"),
        _judge(_stage_2_products, QUADRATIC, note="Fitted to the second half of stage 2."),
    ),
    _claim(
        "stage3-attention",
        "section 5.3, stage 3",
        "In stage 3 the attention of all tokens on the signal is nearly 1.",
        NEAR_ONE.in_words("the attention of each class of token"),
        _stage_3_attention,
    ),
    _claim(
        "lemma54-values",
        "Lemma 5.4",
        "In stage 3 the exponential of the signal's value grows at least linearly in the steps "
        "since T₂.",
        LINEAR.in_words("the power of t − T₂"),
        _judge(_stage_3_value, LINEAR, note="Fitted to the second half of stage 3."),
    ),
)
