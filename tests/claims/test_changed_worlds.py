"""Verdicts on cells that are changed or dropped, all or some, from where a claim is true.

Worlds that break a clause of a claim are in `calibration.clauses`: here it is held to its settings,
its hypotheses and what it leaves open, and to what it allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import filter as matching
from typing import Any

import numpy as np
import pandas as pd
import pytest

from calibration.clauses import Broken
from calibration.tabled import tabled
from overfit_cli.core.registry import claims_of, installed_studies
from tests.judged import (
    all_claims,
    changed,
    claims_by_name,
    design,
    lines,
    measure,
    true_cells,
)

MADE = r"""
theorem1-paper-two: lambda_b=0.1 stability=0.4 rate_margin=1.5 violations_paper=0
theorem2-paper-two: lambda_b=0.1 stability=0.4 condition_8=-1 rate_margin=1.5 violations_paper=0
corollary1-linear: lambda_b=0.1 relative_loss=1e-13 train_loss=1 gradient=0 steps=3000 \
    steps_to_millionth=1000 steps_to_trillionth=2100
remark2-rate: steps=3000 steps_to_millionth=1000
theorem3-gaussian-zero: condition_12=-1 relative_loss=1e-9 start_loss=2 train_loss=1 gradient=0 \
    steps=60000
theorem3-rate: condition_12=-1 relative_loss=1e-4 log10_gamma=-6 violations_gamma=0 descent=0.9 \
    steps=60000
zero-gaussian-below: relative_loss=1e-9
trapped-softmax: floor=0.4 start_loss=1 train_loss=0.4 gradient=0 steps=3000
example-gradient: condition_12=-1 gradient_query_start=0 gradient_key_start=0 start_loss=1 \
    train_loss=1
sizes-delta: delta=0.1
ranks-softmax-five: delta=0.1
tangent-slower: condition_12=-1 steps_to_millionth=100 tangent_steps=100
lemma8-outputs: lemma_outputs=0.1
text-gaussian-faster: mean_test_loss=0.5
landscape-curvature: rms_laplacian=1
landscape-minima: interior_minima=1
pathfinder-above-shortcut: mean_test_loss=0.5 test_accuracy=0.7 shortcut_accuracy=0.6
theorem-harmful-test-loss: test_loss=0.5 test_margin=-0.5
mixture-least-heads-margin: ntk_margin=2 gamma_tangent=3 tangent_heads=7
fig2-fitted: test_loss=0.1 train_loss=0.001
sst2-faster: mean_train_loss=0.6, mean_train_loss=0.5 where learning_rate == 0.001, \
    mean_train_loss=0.4 where learning_rate == 0.001 and heads > 1
"""
"""What the cells of a preset have, of claims whose made-up worlds lack what they derive it from."""

CASES = r"""
# Jiang et al. 2024: cells that meet the hypotheses are those of a preset
theorem-* lemma5[234]-* lemma-[de]* stage3-* harmful-*: d=1e6 => not run
theorem-[!h]* theorem-harmful-[ps]* theorem-harmful-test-loss lemma5[234]-* lemma-[de]* stage3-* \
    harmful-[!es]* harmful-every-*: initialisation=gaussian => not run
theorem-harmful-test-error harmful-error-law: initialisation=condition => not run
theorem-benign-steps theorem-benign-test-* lemma5[234]-* lemma-[de]* stage3-*: snr=17 => not run
scores-rise-* norms-stay-* stray-products-* largest-scores-* values-until-*: snr=17 => not run
theorem-benign-steps theorem-benign-powers: \
    status=failed reason=step_limit steps=1000 where snr > 36 => inconclusive
theorem-transition: test_loss=0.69 => inconclusive
theorem-transition: drop where snr.rank(method='dense') % 2 == 0 => inconclusive
theorem-*-steps theorem-*-powers theorem-transition wide-heads-test-loss: leap=0.07 => holds
attention-deficit-formula: leap=0.07 => holds
fig1-sides fig1-contour fig1-exponent fig1-fitted: d=512 => not run
fig1-sides fig1-contour fig1-exponent: drop where snr > 5 => inconclusive
fig1-*: drop where n != 5 => not run
fig1-contour: test_loss=0.6 where seed < 4 and n > 8 => holds
fig1-contour: status=failed reason=diverged test_loss=nan where seed < 2 => holds
fig1-contour: status=failed reason=diverged where seed < 9 => inconclusive
fig1-contour: test_loss=inf where seed == 3 and n == 8 => inconclusive
fig1-fitted: train_loss=0.3 where n == 3 and seed < 1 => holds
fig1-fitted: train_loss=0.3 where n == 3 and seed < 18 => fails
fig1-fitted: status=failed reason=step_limit train_loss=nan => fails
cnn-fewer-samples: test_loss=0.05 where model == 'vit' => holds
fig1-fitted: drop where n == 3 and seed % 2 == 0 => inconclusive
fig2-fitted: drop where n.rank(method='dense') > 2 => not run
theorem-harmful-test-loss: drop where epsilon.rank(method='dense') > 2 => not run

# and what no broken clause refutes
attention-deficit-constant: train_attention_signal=0.9999, \
    train_attention_signal=0.9998 where seed % 2 == 0 => fails
cnn-fewer-samples-any-loss: test_loss=0.69 where model == 'vit' => fails
even-attention-until-t1-*: attention_off=0.6, attention_off=0.7 where seed % 2 == 0 => fails
harmful-noise-products: noise_query=1, noise_query=1.1 where seed % 2 == 0 => fails

# and one wrong token of one seed, where there is no exception
scores-rise-*: rise=nan where seed == seed.min() + 3 => inconclusive
norms-stay-*: norm_change=1e-8 => holds by far
stray-products-*: move=1e-4 => holds by far

# Song et al. 2024: hypotheses that are missed, and cells of other settings
theorem[12]*-two theorem[12]*-four corollary1-linear: lambda_b=0 => vacuous
eigenvalue-proved: rate_margin=0.2 => holds
lemma2-gradients lemma7-gradients: lemma_gradients=1e-4 => holds by far
zero-gaussian-below: heads=2 => not run
example-gradient: weights=drawn => not run
text-imdb-gaussian-faster: training_steps=100 => not run
text-imdb-gaussian-faster pathfinder-lra-gaussian-more-accurate landscape-real-*: \
    source=generated => not run
text-imdb-gaussian-faster pathfinder-lra-gaussian-faster: \
    mean_test_loss=0.1 where kernel == 'softmax' => fails
text-imdb-gaussian-more-accurate pathfinder-lra-gaussian-more-accurate: \
    test_accuracy=9 where kernel == 'softmax' => fails
pathfinder-lra-gaussian-steadier-epochs: distance=9 where kernel == 'gaussian' => fails
landscape-real-curvature: rms_laplacian=9 where kernel == 'gaussian' => fails
landscape-real-minima: interior_minima=9 where kernel == 'gaussian' => fails
landscape-minima landscape-curvature: task=pathfinder => not run

# Deora et al. 2024: each lemma is held to its own conditions
paths-lemma10: target_loss=0.4 => vacuous
paths-theorem1 paths-lemma10: theorem1_heads=30 => vacuous
paths-lemma9: lemma9_heads=30 => vacuous
paths-lemma8 paths-lemma9 paths-lemma10: descent=0.9 => vacuous
paths-theorem1: theorem_step_size=-9 => vacuous
paths-theorem1: theorem1_bound=1 => vacuous
mixture-constant-slower mixture-sqrt-margin-falls planted-gd-faster planted-gap-rate: \
    heads=2 => not run
planted-gd-faster: steps_to_target=nan where heads == 50 and seed < 4 => holds
paths-lemma9: lemma9=0.4 => vacuous
paths-lemma9: lemma9=0.4, lemma9=0.5 where seed < 9 => inconclusive
paths-lemma9: lemma9=0.4, lemma9=0.5 where seed < 10 => holds
paths-lemma10: lemma10=0.5 steps=10000 target_distance=11.7 => holds
paths-lemma10: lemma10=0.5 steps=10000 target_distance=12.87 => vacuous
mixture-least-heads-margin: ntk_margin=nan where heads == heads.min() => inconclusive
sst2-faster: batch_size=16 => not run
sst2-faster: weights=pretrained => holds
sst2-faster: drop where heads == 8 => holds
sst2-faster: mean_train_loss=0.4 where heads == 1 and learning_rate == 0.002 => inconclusive

# Cui et al. 2024: a limit of one solution says nothing on the other's cells
semantic-theta-solved: theta=0.9 where start == 'positional' => holds

# Cao et al. 2024: the constant of an order is no reason to fail; float32 decides nothing
softmax-theorem42 softmax-steps softmax-lemma51-bound: dtype=float32 => not run
softmax-lemma51-bound: worst_drift=30 => holds
softmax-lemma51-bound: worst_drift=20 worst_drift_far=20 => holds by far
softmax-lemma53-bound*: movement_over_bound=9 movement=0.02 => vacuous
softmax-theorem-f2-bound: gap_over_bound=1.01 => holds
softmax-theorem-f2-bound: gap_over_bound=20 kernel_drift=0.9 => vacuous
softmax-lemma53-bound-outputs: movement_over_bound=9 where sigma == 1 => holds
softmax-steps softmax-steps-paper: status=failed reason=step_limit steps_to_epsilon=nan \
    where activation == 'softmax' and m == m.max() and seed < 10 => inconclusive
softmax-steps softmax-steps-paper: status=failed reason=worker_killed steps_to_epsilon=nan \
    where m == m.max() and seed == 0 => holds
softmax-drift-tight: rate_ratio=2 => vacuous
softmax-steps-collapse: lambda_start=0.1 where activation == 'relu', \
    status=failed reason=step_limit steps_to_epsilon=nan where seed == 0 and n == 3 => inconclusive
softmax-steps-lambda-power: \
    status=failed reason=step_limit steps_to_epsilon=nan where seed == 0 and n == 3 => inconclusive
diffusion-falls: m=1024 training_steps=10000 samples=10000 => holds
diffusion-theorem66: bound_over_error=3.1 => holds by far

# A theorem says that there is a step size: one that is allowed serves
theorem1-paper-two: violations_paper=7 where learning_rate > 0.05 => holds
theorem1-paper-two: violations_paper=7, stability=0.9 where learning_rate < 0.05 => fails
theorem1-paper-two: stability=0.9 => not run
theorem1-paper-two: status=failed reason=diverged violations_paper=nan => fails
theorem1-paper-two: status=failed reason=worker_killed violations_paper=nan \
    where seed == 3 and learning_rate > 0.05 => holds
theorem2-paper-two: rate_margin=0.9 => inconclusive

# A loss goes to zero, stops above it, or still falls
theorem3-gaussian-zero: relative_loss=0.5 where learning_rate > 1 => holds
theorem3-gaussian-zero: status=failed reason=diverged relative_loss=nan where learning_rate > 1 \
    => holds
theorem3-gaussian-zero: status=failed reason=diverged relative_loss=nan => inconclusive
theorem3-gaussian-zero: relative_loss=0.5 gradient=0.1 where seed < 3 => inconclusive
theorem3-gaussian-zero: relative_loss=0.5 gradient=1e-6 start_loss=1.0000000001 => inconclusive
zero-gaussian-below: relative_loss=0.5 where learning_rate != 1 => holds
zero-gaussian-below: relative_loss=0.5 where seed > 8 => inconclusive

# and linearly, or more slowly
corollary1-linear: steps_to_trillionth=100000 where learning_rate > 0.005 => holds
corollary1-linear: steps_to_trillionth=nan relative_loss=1e-7 gradient=1 => inconclusive
corollary1-linear: steps_to_trillionth=nan relative_loss=1e-7 gradient=1 steps=100000 => fails
corollary1-linear: status=failed reason=diverged relative_loss=nan steps_to_trillionth=nan \
    => inconclusive
remark2-rate: steps_to_millionth=nan steps=1500 where trained == 'layers-1' => inconclusive

# γ is a slow rate; a step above its bound refutes it where the step size is small
theorem3-rate: log10_gamma=-9 => holds by far
theorem3-rate: violations_gamma=3 where learning_rate > 1 => holds
theorem3-rate: violations_gamma=3 descent=0.1 => inconclusive
theorem3-rate: status=failed reason=diverged violations_gamma=nan => inconclusive

# Above the optimum, for some labels, at every step size
trapped-softmax: train_loss=0.5 => holds
trapped-softmax: train_loss=0.5 where target == 'inside' => holds
trapped-softmax: train_loss=0.5 where seed < 10 => holds

# Sizes, and lemmas along a path that ends
sizes-delta: delta=0 where d * d_h < n * tokens**2 => holds
ranks-softmax-five: delta=0 where d_h < 3 or d < 4 => holds
lemma8-outputs: status=failed reason=diverged lemma_outputs=nan where learning_rate > 1 => holds
lemma8-outputs: status=failed reason=diverged lemma_outputs=1.1 where seed == 3 => fails

# Two kernels, each at its best step size
tangent-slower: steps_to_millionth=nan where kernel == 'softmax' and learning_rate < 9e3, \
    steps_to_millionth=50 tangent_steps=50 where kernel == 'gaussian' and learning_rate == 8 \
    => holds
tangent-slower: steps_to_millionth=50 tangent_steps=50 \
    where kernel == 'softmax' and learning_rate > 9e3 => fails
text-gaussian-faster: mean_test_loss=0.4 where kernel == 'gaussian' and learning_rate < 2e-4 \
    => holds
pathfinder-above-shortcut: mean_test_loss=0.4 test_accuracy=0.5 where learning_rate > 2e-3 => fails
pathfinder-above-shortcut: mean_test_loss=0.4 test_accuracy=0.5 \
    where learning_rate > 2e-3 and kernel == 'softmax' => holds

# A flat surface has the least curvature of all
landscape-curvature: rms_laplacian=0 where kernel == 'gaussian' => holds
landscape-curvature: rms_laplacian=2 where kernel == 'softmax' and pair == 0 => holds
landscape-minima: interior_minima=0 where kernel == 'gaussian' => holds
"""

KEPT = r"""
[dimension-quick]
dimension-constant | a constant beyond the grid may be any | \
    test_loss=0.69 / (1 + n * snr**2 / 400); test_loss=0.69 where d > 1e8 | inconclusive
dimension-constant | several N | only where n == n.min() | not run
dimension-constant | many dimensions | only where d < 1e4 | not run
[dynamics-quick]
dynamics-benign-value-growth dynamics-harmful-value-growth dynamics-benign-products \
    | a single step tells no growth | only where step == 0 | inconclusive
[heads-fig2-quick]
mixture-constant-rate | from step 500 on | log10_train_loss=0.0 where step < 500 | holds
[heads-first-phase-quick]
mixture-lemma2 | at many samples, too | first_coefficient=0.8 + 0.001 * (seed % 5); \
    first_coefficient=0.2 + 0.001 * (seed % 5) where first_samples > 1000; \
    first_deviation=0.7 * abs(first_coefficient - 0.25)
[heads-gap-quick]
planted-gap-rate | a gap below zero is as small as any | \
    test_loss=train_loss + 10 / n**1.2; test_loss=train_loss - 0.001 where n == 2000 | holds
planted-gap-power | a gap below zero is as small as any | \
    test_loss=train_loss + 10 / n**1.2; test_loss=train_loss - 0.001 where n == 2000
[positional-published-quick]
transition | a seed's lies below the sampled α | \
    train_loss=1e3 * train_loss where seed == 0 and start == 'positional' | inconclusive
"""
"""Changes of kept cells, of claims that derive their numbers from them."""


STUDY_OF = {claim.name: study for study in installed_studies() for claim in claims_of(study)}
CLAIMS = claims_by_name(*{study.name for study in STUDY_OF.values()})
"""By name, with the functions that derive numbers from cells."""


def made_cells(name: str, columns: str) -> pd.DataFrame:
    """The cells of a claim's preset with these columns, a little other from seed to seed."""
    measured = [column.name for column in STUDY_OF[name].columns]
    cells = design(CLAIMS[name].preset).assign(steps=0.0, **dict.fromkeys(measured, np.nan))
    made = changed(cells, columns)
    if name.startswith(("text-", "pathfinder-", "landscape-curvature", "tangent-", "sst2-")):
        spread = 1 + 1e-4 * made["seed"] * np.where(made.get("kernel", "") == "softmax", 2, 1)
        shown = [name for name in measured if made[name].notna().any()]
        made[shown] = made[shown].mul(spread, axis=0)
    return made


def cases() -> Iterator[Any]:
    """The name of a claim, what is changed, and the verdict; of a pattern one name is quick."""
    for line in lines(CASES):
        names, _, rest = line.partition(": ")
        changes, _, verdict = rest.rpartition("=> ")
        for pattern in names.split():
            found = matching(all_claims(), pattern)
            assert found, pattern
            for name in found:
                is_slow = name != found[0] or name.startswith("ranks-")
                marks = [pytest.mark.slow] if is_slow else []
                yield pytest.param(name, changes.strip(), verdict, marks=marks)


@pytest.mark.parametrize(
    "world", [*tabled(KEPT)], ids=lambda world: f"{world.claim}: {world.clause}"
)
def test_a_change_of_kept_cells_has_its_verdict(world: Broken) -> None:
    for name in world.claim.split():
        measured = world.judge(name)
        assert measured.verdict in world.verdicts, (name, measured.note)


@pytest.mark.parametrize(("name", "changes", "verdict"), list(cases()))
def test_a_change_has_its_verdict(name: str, changes: str, verdict: str) -> None:
    made = dict(line.split(": ") for line in lines(MADE)).get(name)
    if made:
        measured = CLAIMS[name].judge(changed(made_cells(name, made), changes))
    else:
        measured = measure(name, changed(true_cells(name), changes))
    assert measured.verdict == verdict, measured.note


def test_curves_are_as_steady_as_they_are_at_the_same_step() -> None:
    """Curves that rise as one are steady, however far they rise; the start does not count."""
    claim = CLAIMS["pathfinder-lra-gaussian-steadier-epochs"]
    cells = design(claim.preset, claim.profile)
    apart = np.array([-0.022, -0.02, -0.018, 0.018, 0.02, 0.022])[cells["seed"]]
    calm = np.where(cells["kernel"] == "gaussian", 0.1 * apart, apart)
    logged = [
        cells.assign(step=step, test_accuracy=0.5 + rise + wobble)
        for step, rise, wobble in ((0, 0.0, 9 * apart), (50, 0.1, calm), (100, 0.3, calm))
    ]
    measured = claim.judge(pd.concat(logged, ignore_index=True))
    assert measured.verdict == "holds"
    assert measured.value == pytest.approx(0.018)
