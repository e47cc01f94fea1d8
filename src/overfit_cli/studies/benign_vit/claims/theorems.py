"""Claims on Theorems 4.1 and 4.2, judged where their hypotheses hold.

A preset's cells meet items 1 and 3 to 10 of Condition 4.1, item 2 in what it does, and whatever a
claim's hypotheses say beside it: a test computes it for each of them. Of a user's own values of the
axes only those count that meet `CONDITION_41` and lie on the claim's side. "There is a T" is tested
as it stands: the loss reaches ε within the order of T steps. Whether T is tight, with all of its
powers, is a question of its own. "o(1)" is a limit: the test loss is below a guess's, and falls
with ε at least as fast as the proof says. Where d is 10¹² or more "with probability at least
1 − 1/d" is refuted by one exception; the mean over seeds is told beside it.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from overfit_cli.claims.cells import is_unknown, require_values
from overfit_cli.claims.papers import Claims, on
from overfit_cli.core.claim import not_run
from overfit_cli.studies.benign_vit.parameters import BenignVitParameters
from overfit_cli.studies.benign_vit.theory import BALANCE, BALANCE_IN_WORDS

jiang = Claims("", "Jiang et al. 2024", BenignVitParameters)

CONDITION_41 = (
    "d_h >= (n * snr**2 / epsilon)**2 and d_h >= (n / (snr**2 * epsilon))**2",
    "n * tokens / sqrt(d) <= epsilon / 100",
    "n >= log(d)",
    "output_scale >= 0.1 and output_scale <= 10",
    "learning_rate * sigma_p**2 * sqrt(d_h) <= 1",
    "learning_rate * (snr * sigma_p)**2 * sqrt(d_h) <= 1",
    "epsilon <= 1 / log(d)",
)
"""Items 1, 2 in what it does, 3, 5, 6 and 9 for `noise_per=token`: the others, whatever the axes
are, hold of what the presets fix."""

LARGE_PRODUCT = f"n * snr**2 >= 3 * {BALANCE}"
SMALL_PRODUCT = f"n * snr**2 <= {BALANCE} / 4"

MAY_VARY = ("max_steps", "test_samples", "leap", "dtype")
"""Parameters that no theorem or lemma is about: they may have any value, one in all cells."""

BENIGN = on("theorem-benign-stage3", *CONDITION_41, alike=MAY_VARY)
HARMFUL = on("theorem-harmful", *CONDITION_41, SMALL_PRODUCT, alike=MAY_VARY)

CONDITION = (
    "Condition 4.1 with constants of 1: items 1 and 3 to 10 as they are printed, with the "
    "logarithms of Ω̃ and Õ left out, and item 2 in what it does: other noise tokens turn what one "
    "learns by at most ε/100, NM/√d"
)
LARGE = f"N·SNR² is at least 3 times {BALANCE_IN_WORDS}"
BENIGN_SIDE = (
    f"{CONDITION}; N·SNR² = Ω(1): it is above 60 M² C_p², the proof's own constant (Lemma 5.2)"
)
HARMFUL_SIDE = f"{CONDITION}; N⁻¹·SNR⁻² = Ω(1): N·SNR² is at most a quarter of {BALANCE_IN_WORDS}"
PROBABILITY = "with probability at least 1 − 1/d, so that one exception refutes"
SMALL_ERROR = (
    "the error N·SNR² log(6N²M²/δ)³/√d_h of (65) and (111), with its logarithms and a constant of "
    "1, is below 1"
)
IN_CONVERGENCE = "(114) multiplies it by log(C/ε), which is above 1, and is left out"
SMALL_TEST_ERROR = (
    "‖μ‖ σ_p σ_h² d_h √(2 log(12N²M/δ)), which Lemma D.8 takes from item 2, is below 1 with a "
    "constant of 1"
)
THEOREM_41 = f"{BENIGN_SIDE}; {PROBABILITY}; {SMALL_ERROR}; {IN_CONVERGENCE}"
ON_TEST_DATA = f"{THEOREM_41}; {SMALL_TEST_ERROR}"

AT_ONE = "at one M, N, SNR, η and ‖w_O‖, where overfitting is benign,"

STEPS = "steps * learning_rate * epsilon * output_scale**2"
OVER_T = {
    "benign": f"{STEPS} * (snr * sigma_p)**2",
    "harmful": f"{STEPS} * sigma_p_tilde**2 / n",
}
"""Steps over T of Theorem 4.1, and of 4.2 with the constant (σ_p/σ̃_p)²."""
OPEN = "T's constant is open: ten is allowed, and fewer steps are as good"
FITTED = "train_loss <= epsilon on all seeds"


def ended(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells without what a failed one ended with: it has not reached ε, but stopped."""
    failed = cells["status"] != "done"
    told = ["test_signal_attention_min", "test_noise_value_max"]
    known = {name: cells[name].mask(failed) for name in told if name in cells}
    lost = failed & ~is_unknown(cells)
    return cells.assign(**known, train_loss=cells["train_loss"].mask(lost, np.inf))


LEAST_EPSILONS = 3
"""The fewest values of ε that show a limit."""


def ended_at_each_epsilon(cells: pd.DataFrame) -> pd.DataFrame:
    """Return that of cells with as many values of ε as the claim names."""
    if cells["epsilon"].nunique() < LEAST_EPSILONS:
        raise not_run(f"It takes {LEAST_EPSILONS} values of epsilon.")
    return ended(cells)


def always(quantity: str, bound: str, mean: str = "mean") -> str:
    """Return the sentence that each seed meets a bound at every setting, and so does the mean."""
    return f"{mean} of {quantity} {bound} at worst; {quantity} {bound} on all seeds"


def over_t(cells: pd.DataFrame, side: str) -> pd.DataFrame:
    """Return the cells with steps over T, in units of the seed's geometric mean."""
    if cells["epsilon"].nunique() < LEAST_EPSILONS:
        raise not_run(f"Whether T is tight takes {LEAST_EPSILONS} values of epsilon.")
    ratios = pd.Series(cells.eval(OVER_T[side]), cells.index, dtype=float)
    logs: pd.Series[float] = np.log(ratios.where(cells["status"] == "done"))
    return cells.assign(over_t=np.exp(logs - logs.groupby(cells["seed"]).transform("mean")))


def along_epsilon(cells: pd.DataFrame) -> pd.DataFrame:
    """Return what log ε multiplies in log L_D and in the test margin, between neighbouring ε.

    There is a row for each ε but the least of each seed and other setting that has every ε;
    `least_loss`, `most_loss`, `most_error`, and the least mean margin over (136)'s
    log(1/ε)/(2M²) − 1, are of all the seed's cells.
    """
    values = np.sort(cells["epsilon"].unique())
    if len(values) < LEAST_EPSILONS or values[-1] < 10 * values[0]:
        raise not_run(
            f"A limit takes {LEAST_EPSILONS} values of epsilon, the ends a factor of 10 apart."
        )
    keys = ["n", "snr", "learning_rate", "output_scale", "seed"]
    has_all = cells.groupby(keys)["epsilon"].transform("nunique") == len(values)
    if not has_all.any():
        raise not_run("It needs a setting that has every epsilon.")
    done = cells["status"] == "done"
    known = cells[["test_loss", "test_margin", "test_error"]].astype(float).where(done)
    logs = cells[keys].assign(
        loss=np.log(known["test_loss"]), margin=known["test_margin"], log=np.log(cells["epsilon"])
    )
    moved = logs[has_all].sort_values([*keys, "log"]).groupby(keys).diff()  # of neighbouring ε
    slopes = moved.div(moved["log"], axis=0).dropna(subset="log")
    chosen = cells.loc[slopes.index].assign(
        loss_power=slopes["loss"], margin_slope=slopes["margin"], status="done"
    )
    bound = -np.log(cells["epsilon"]) / (2 * cells["tokens"] ** 2) - 1
    of_seeds = known.assign(lead=known["test_margin"] - bound).groupby(cells["seed"])
    least, most = (of_seeds.agg(way, skipna=False) for way in (pd.Series.min, pd.Series.max))
    ends = {"least_loss": least["test_loss"], "most_loss": most["test_loss"]}
    ends |= {"most_error": most["test_error"], "margin_lead": least["lead"]}
    return chosen.assign(**{name: chosen["seed"].map(of) for name, of in ends.items()})


jiang.paper(
    "theorem-benign-steps",
    "Theorem 4.1.1",
    f"There is a T = Θ(η⁻¹ ε⁻¹ ‖μ‖⁻² ‖w_O‖⁻²) at which the training loss is at most ε, {AT_ONE} at "
    "each of three ε.",
    f"{always(OVER_T['benign'], '<= 10', 'geometric mean')}; {FITTED}",
    on=BENIGN,
    cells=ended_at_each_epsilon,
    hypotheses=THEOREM_41,
    number="steps to ε over T, the most of a seed's cells,",
    because=OPEN,
    target=1.0,
)
jiang.paper(
    "theorem-harmful-steps",
    "Theorem 4.2.1",
    "Where overfitting is harmful, there is a T = Θ(N η⁻¹ ε⁻¹ σ_p⁻² d⁻¹ ‖w_O‖⁻²) at which the "
    "training loss is at most ε.",
    f"{always(OVER_T['harmful'], '<= 10', 'geometric mean')}; {FITTED}",
    on=HARMFUL,
    cells=ended,
    hypotheses=f"{HARMFUL_SIDE}; {PROBABILITY}; T has the constant (σ_p/σ̃_p)², 1/(25 M) by item "
    "10, as samples are fitted by σ̃_p",
    number="steps to ε over T, the most of a seed's cells,",
    because=OPEN,
    target=1.0,
)
for side, place, formula, powers, cells, required in (
    (
        "benign", "Theorem 4.1, its T", "η⁻¹ ε⁻¹ ‖μ‖⁻² ‖w_O‖⁻²", "-2, -1, 0, -1, -2",
        on("theorem-benign", *CONDITION_41, LARGE_PRODUCT, alike=MAY_VARY),
        f"{CONDITION}; {LARGE}",
    ),
    (
        "harmful", "Theorem 4.2, its T", "N η⁻¹ ε⁻¹ σ_p⁻² d⁻¹ ‖w_O‖⁻²", "0, -1, 1, -1, -2",
        HARMFUL, HARMFUL_SIDE,
    ),
):  # fmt: skip
    jiang.sharp(
        f"theorem-{side}-powers",
        place,
        f"Where overfitting is {side}, T is tight: the number of steps to ε scales with ‖μ‖, ε, N, "
        f"η and ‖w_O‖ as {formula}, and is nowhere further from it than a tenth of a power over "
        "the range of ε, 60.",
        {
            "powers": "mean of powers of (snr, epsilon, n, learning_rate, output_scale) in steps "
            f"are ({powers}) within 0.1",
            "steps over T": "geometric mean of over_t is 1 within a factor of 1.5",
        },
        on=cells,
        cells=partial(over_t, side=side),
        hypotheses=f"{required}; ‖μ‖ ∝ SNR; T hides logarithms",
    )
jiang.paper(
    "theorem-benign-test-loss",
    "Theorem 4.1.2",
    f"The test loss at T is o(1), {AT_ONE}: it is below log 2, that of a guess, and goes to zero "
    "as ε does, at the proof's rate or faster.",
    f"{always('2 * tokens**2 * loss_power', '>= 1')}; most_loss <= log(2) on all seeds",
    on=BENIGN,
    cells=along_epsilon,
    hypotheses=ON_TEST_DATA,
    number="the least power of ε in the test loss between neighbouring ε, times 2M²,",
    because="1/(2M²) is the rate in (136) and (137)",
)
jiang.paper(
    "theorem-harmful-test-loss",
    "Theorem 4.2.2",
    "Where overfitting is harmful, the test loss at T is Θ(1): at least 0.1 (Lemma E.6) and at "
    "most 10, whatever ε is; the power of ε in it is within 0.1 of 0 at each ‖μ‖, η and ‖w_O‖. The "
    "test error may be small.",
    f"{always('least_loss', '>= 0.1')}; most_loss <= 10 on all seeds; "
    "loss_power >= -0.1 on all seeds; loss_power <= 0.1 on all seeds",
    on=HARMFUL,
    cells=along_epsilon,
    number="the least test loss of a seed's cells",
    hypotheses=f"{HARMFUL_SIDE}; {PROBABILITY}",
)
jiang.paper(
    "theorem-benign-test-margin",
    "Lemma 5.5, (136)",
    "A test sample's margin is at least log(C/ε)/C′ − 1 with probability at least 1 − δ/(N²M), "
    f"{AT_ONE} C is 1 and C′ 2M²: no test sample is wrong (here the bound is below 0), the mean "
    "margin is above the bound, and grows by log(1/ε)/(2M²) or more as ε falls.",
    f"{always('-2 * tokens**2 * margin_slope', '>= 1')}; margin_lead >= 0 on all seeds; "
    "most_error <= 0 on all seeds",
    on=BENIGN,
    cells=along_epsilon,
    hypotheses=ON_TEST_DATA,
    number="what log(1/ε) multiplies in the mean test margin, times 2M²,",
    because="1/(2M²) is the rate in (136)",
)


def along_epsilon_at_each_m(cells: pd.DataFrame) -> pd.DataFrame:
    """Return that at each M, with the seed's most steps over T and most training loss over ε."""
    tables = []
    for _, of_m in require_values(cells, tokens=(3, 4, 8)).groupby("tokens"):
        done = of_m["status"] == "done"
        most = {"most_over_t": of_m.eval(OVER_T["benign"])}
        most |= {"most_over_epsilon": of_m["train_loss"] / of_m["epsilon"]}
        known = pd.DataFrame(most, dtype=float).where(done).groupby(of_m["seed"])
        tables.append(along_epsilon(of_m).join(known.agg(pd.Series.max, skipna=False), on="seed"))
    return pd.concat(tables, ignore_index=True)


jiang.sharp(
    "theorem-benign-constant",
    "Theorem 4.1 and Lemma 5.2",
    "N·SNR² = Ω(1) needs less than the proof's own constant, 60 M² C_p²: 80 times below it and "
    "more, at every M, the training loss is at most ε by the order of T steps, the test loss is "
    "below log 2 and falls with ε at the proof's rate or faster, and no test sample is wrong.",
    f"{always('most_over_t', '<= 10', 'geometric mean')}; most_over_epsilon <= 1 on all seeds; "
    f"{always('2 * tokens**2 * loss_power', '>= 1')}; most_loss <= log(2) on all seeds; "
    "most_error <= 0 on all seeds",
    on=on(
        "theorem-small-products",
        *CONDITION_41,
        LARGE_PRODUCT,
        "80 * n * snr**2 <= 60 * (tokens * sigma_p_tilde / sigma_p)**2",
        "sigma_p_tilde >= 4.999 * sqrt(tokens) * sigma_p",
        "sigma_p_tilde <= 5.001 * sqrt(tokens) * sigma_p",
        "tokens <= 10",
        alike=MAY_VARY,
    ),
    cells=along_epsilon_at_each_m,
    number="steps to ε over T, the most of a seed's cells,",
    because="as theorem-benign-steps and theorem-benign-test-loss",
    hypotheses=f"{CONDITION}; {SMALL_ERROR}; {SMALL_TEST_ERROR}; {LARGE}; {PROBABILITY}",
)
for name, place, statement, bound in (
    (
        "lemma-d8-attention", "Lemma D.8",
        "a test sample's signal pays itself at least 1/(2M) of its attention",
        "test_signal_attention_min >= 1 / (2 * tokens)",
    ),
    (
        "lemma-d9-values", "Lemma D.9", "the value of a new noise token is at most 1",
        "test_noise_value_max <= 1",
    ),
):  # fmt: skip
    jiang.paper(
        name,
        place,
        f"When training ends, {AT_ONE} {statement}.",
        f"{bound} on all seeds",
        on=BENIGN,
        cells=ended,
        hypotheses=f"{BENIGN_SIDE}; {PROBABILITY}; {SMALL_ERROR}; {SMALL_TEST_ERROR}",
    )
