"""Worlds that break one clause of a claim on Deora et al. 2024."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from calibration.clauses import Broken, Change
from calibration.tabled import tabled
from overfit_cli.core.claim import Verdict

TABLE = r"""
[heads-fig2-quick]
mixture-constant-slower | from 1 to 50 | only where heads != 5 | not run
mixture-constant-rate | for each H | log10_train_loss=log10_train_loss / 2 where heads == 5
[heads-fig3-quick]
mixture-sqrt-faster mixture-adam-faster | 50 heads arrive | steps_to_target=nan where heads == 50
mixture-sqrt-catapult | above 2 | train_loss=train_loss / 3 where heads < 10
mixture-sqrt-catapult | higher | train_loss=50 / heads where train_loss > 3
mixture-sqrt-catapult | first | train_loss=.6 where step < 10; train_loss=heads where step > 10
mixture-sqrt-catapult | at 0.001 | train_loss=.01 where step == 10 and heads == 20
mixture-sqrt-by-five | take at most a quarter | \
    steps_to_target=13.0 where heads == 5; steps_to_target=40.0 where heads == 1
mixture-sqrt-by-five | no fewer than 0.8 times | steps_to_target=40 / heads**.7
mixture-sqrt-by-five | they arrive | steps_to_target=nan where heads == 5
mixture-sqrt-smaller | at least half | steps_to_target=40 / heads**.5
mixture-sqrt-smaller | absent cells | only where learning_rate > .5 or heads != 50 | inconclusive
mixture-loss-below-one | at most 1 | train_loss=1.0 where train_loss > 1 | holds
mixture-loss-below-one | at most 1 | train_loss=.9; train_loss=1.1 where seed == 3 and heads == 5
[heads-fig6-quick]
sst2-faster | falls with H | \
    mean_train_loss=.5 + .1 * abs(log(learning_rate / .001)) + heads * (.01 + .001 * (seed % 3))
sst2-generalises-faster | falls with H | \
    mean_test_loss=.5 + .1 * abs(log(learning_rate / .001)) + heads * (.01 + .001 * (seed % 3))
[heads-planted-quick]
planted-gd-faster | 50 heads arrive | steps_to_target=nan where heads == 50
planted-momentum-sooner | at each H | \
    steps_to_target=900.0 where optimiser == 'momentum' and heads == 5
planted-momentum-sooner | heads are found | \
    steps_to_target=nan where optimiser == 'momentum' and heads == 20
[heads-gap-quick]
planted-gap-rate | each H | test_loss=train_loss + n**(-1.2 + (heads == 5) / 2)
planted-gap-power | each H | test_loss=train_loss + n**(-1 - (heads == 5) / 2)
planted-gap-power | as 1/n | test_loss=train_loss + 1 / n | holds
[heads-first-phase-quick]
mixture-lemma2-quarter | 1/√n₁ | first_deviation=1 / first_samples**.3
[heads-sparsity-quick]
mixture-margins-ordered | ≥, not > | EQUAL | holds
mixture-margins-ordered | γ⋆ ≥ γ_lin | EQUAL; gamma_linear=gamma_linear * 9 where SOME
mixture-margins-ordered | absent cells | EQUAL; only where relevant != 2 or seed != 3 | inconclusive
[heads-certificates-quick]
mixture-proposition3 | (10) | optimal_missed=1.1 where seed == 3; optimal_noise=.9
mixture-proposition3 | (11) | optimal_margin=1.1 where seed == 3; optimal_noise=.9
mixture-proposition3 | Z ≤ S²/8 | optimal_noise=1.1 | vacuous
[heads-descent-quick]
paths-descent | each step | descent_allowed=.99 where seed == 3
paths-quasi-convexity | at most | segment_rise=1.01 where seed == 3
paths-lemma8 | at most | lemma8=1.01 where seed == 3
paths-lemma8 | absent cells | only where seed != 3 or learning_rate <= .9 | inconclusive
paths-lemma8 | failed cells | status='failed' where seed == 3 and learning_rate > .9 | inconclusive
[heads-largest-step-quick]
paths-largest-step | does not depend on H | \
    descent=1 - 2 * learning_rate / heads**(.2 + .001 * (seed % 5))
paths-largest-step | H⁰ | descent=1 - 1.4 * learning_rate / heads**(.001 * (seed % 5)) | holds
paths-largest-step-range | 0.4 | \
    descent=-.1 where seed == 3 and heads == 5 and learning_rate == .4
paths-largest-step-range | 3 | \
    descent=.1 where seed == 3 and heads == 5 and learning_rate > 2.9
paths-largest-step-range | a tenth of it | \
    descent_share=.05 where seed == 3 and heads == 50 and learning_rate == .04
paths-largest-step-range | absent cells | only where seed != 3 or learning_rate != .4 | inconclusive
[heads-regret-quick]
paths-lemma9 | at most | lemma9=1.01 where seed == 3
paths-lemma10 | no iterate | lemma10=1.01 where seed == 3
paths-lemma9 paths-lemma10 | absent cells | only where seed != 3 or learning_rate <= .9 | \
    inconclusive
[heads-theorem1-quick]
paths-theorem1 | the mean | theorem1_bound=.6; mean_train_loss=.55 + .1 * (seed == 3)
paths-theorem1 | the last | theorem1_bound=.69; mean_train_loss=train_loss * (1 - .01 * (seed == 3))
paths-theorem2 | at most | test_loss=train_loss + 2 * theorem2_bound where seed == 3
paths-theorem2 | absent cells | only where seed != 3 or heads == 1 | inconclusive
paths-lemma3 | 2 G | test_loss=train_loss + 1.1 * lemma3_bound
[heads-random-attention-quick]
mixture-random-attention-over-first-phase | with 10 heads | \
    ntk_margin=1.5 * ntk_margin_first where heads == 10
[heads-least-quick]
mixture-least-heads-condition | from one head on | \
    mean_train_loss=1.1 * theorem1_bound where seed == 3 and heads == 1
[heads-least-margin-quick]
mixture-least-heads-margin | three decades | tangent_heads=tangent_heads - 5
[heads-margin-quick]
mixture-margin-approached | with 5 heads | \
    margin_share=.1 where heads == 5 and training_steps == 10000
mixture-margin-10000 | within a twentieth | margin_share=margin_share + .07 | holds
mixture-margin-10000 | within a twentieth | margin_share=.94 + .001 * (seed % 5)
[heads-normalised-quick]
mixture-normalised-margin | for every H | margin_share=margin_share - .1 where heads == 5
""".replace("EQUAL", "ntk_margin_constructed=gamma_attention * (1 + 1e-12)")
TABLE = TABLE.replace("SOME", "relevant == 2 and seed == 3")

TURNS = {"four times faster to H = 5": (200, 80, 50, 100, 200, 400), "all alike": (9,) * 6}
TURNS |= {"a jump at the end": (60, 60, 60, 60, 60, 300)}
TURNS |= {"up and down": (50, 200, 60, 240, 80, 300), "the last alone": (90, 80, 70, 60, 50, 300)}
FALLS = {"five of six rise": (100, 105, 110, 120, 130, 6), "turns": (400, 200, 80, 40, 100, 400)}
FALLS |= {"a jump at the start": (300, 60, 60, 60, 60, 60)}
FALLS |= {"turns late": (400, 200, 80, 40, 20, 320), "up and down": (200, 40, 180, 50, 150, 30)}
SMALL = {"back at the last H": (1, 0.57, 0.28, 0.16, 1), "turns": (1, 0.3, 0.8, 0.25, 0.2)}
SMALL |= {"rises, then drops once": (1, 1.04, 1.08, 1.12, 0.01)}
ALONG_HEADS = (
    ("fig2", "mixture-constant-slower", "steps_to_target", TURNS),
    ("fig3", "mixture-sqrt-faster mixture-adam-faster", "steps_to_target", FALLS),
    ("fig3", "mixture-sqrt-test-faster mixture-adam-test-faster", "test_loss", FALLS),
    ("fig3", "mixture-sqrt-margin-falls", "margin_share", {"turns": FALLS["up and down"]}),
    ("planted", "planted-gd-faster", "steps_to_target", FALLS),
    ("concavity", "mixture-concavity-falls", "concavity", SMALL),
)


def along(column: str, numbers: tuple[float, ...]) -> Change:
    """Give a column these numbers along H, up to noise; a test loss falls to 0.001 at these."""

    def change(frame: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
        at = frame["heads"].map(dict(zip(sorted(frame["heads"].unique()), numbers, strict=True)))
        new = at * np.exp(0.01 * random.standard_normal(len(frame)))
        falling = 0.001 * new / frame["step"].clip(lower=0.5) if column == "test_loss" else new
        return frame.assign(**{column: falling})

    return change


def phase(power: float, fewest: int = 1) -> Change:
    """Have ‖p‖ about ζ/2 u⋆ fall as this power of n₁, with as many heads or more."""

    def change(frame: pd.DataFrame, random: np.random.Generator) -> pd.DataFrame:
        powers = np.where(frame["heads"] >= fewest, power, -0.5)
        length = 2 * frame["first_samples"].astype(float) ** powers
        quarter = frame["relevant"] / frame["tokens"] * frame["strength"] / math.sqrt(8)
        deviation = np.hypot(length, quarter)
        return frame.assign(first_coefficient=0.5, first_deviation=deviation)

    return change


def worlds() -> Iterator[Broken]:
    """Yield all worlds."""
    yield from tabled(TABLE)
    for run, claims, column, lines in ALONG_HEADS:
        for clause, numbers in lines.items():
            right: tuple[Verdict, ...] = (
                ("fails", "inconclusive") if len({*numbers}) < 3 else ("fails",)
            )
            yield Broken(claims, clause, f"heads-{run}-quick", along(column, numbers), right)
    for power, fewest in ((-0.5, 1), (-0.3, 1), (-0.26, 1), (-0.2, 1000)):
        clause = f"as 1/√n₁, not n₁^{power}, at each H"
        right = ("holds",) if power == -0.5 else ("fails",)
        yield Broken(
            "mixture-lemma2", clause, "heads-first-phase-quick", phase(power, fewest), right
        )


BROKEN = (*worlds(),)
