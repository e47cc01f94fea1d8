"""Verdicts on worlds in which a claim is true but for what is changed or dropped, all or some."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import filter as matching

import pytest

from tests.judged import all_claims, changed, lines, measure, true_cells

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
theorem-benign-steps: status=failed reason=diverged where snr > 36 => fails
theorem-transition: test_loss=0.69 => inconclusive
theorem-transition: drop where snr.rank(method='dense') % 2 == 0 => inconclusive
theorem-*-steps theorem-*-powers theorem-transition wide-heads-test-loss: leap=0.07 => holds
attention-deficit-formula: leap=0.07 => holds
fig1-sides fig1-contour fig1-exponent fig1-fitted: d=512 => not run
fig1-sides fig1-contour fig1-exponent: drop where snr > 5 => inconclusive
fig1-*: drop where n != 5 => not run
fig1-contour: test_loss=0.6 where seed < 4 and n > 8 => holds
fig1-contour: test_loss=0.6 where seed < 22 and n > 8 => inconclusive
fig1-contour: test_loss=1.5 => fails
fig1-exponent: test_loss=1.5 => inconclusive
fig1-fitted: train_loss=0.3 where n == 3 and seed < 1 => holds
fig1-fitted: train_loss=0.3 where n == 3 and seed < 18 => fails
fig1-fitted: status=failed reason=step_limit train_loss=nan => fails
cnn-fewer-samples: test_loss=0.05 where model == 'vit' => holds
cnn-fewer-samples: test_loss=0.5 where model == 'vit' => fails
cnn-fewer-samples: test_loss=0.05 => inconclusive

# and one wrong token of one seed, where there is no exception
scores-rise-*: rise=-1e-12 where seed == seed.min() + 3 => fails
scores-rise-*: rise=nan where seed == seed.min() + 3 => inconclusive
norms-stay-*: norm_change=1e-8 => holds by far
norms-stay-*: norm_change=1.1 where seed == seed.min() + 3 => fails
norms-stay-*: norm_change=nan where seed == seed.min() + 3 => inconclusive
stray-products-*: move=1e-4 => holds by far
stray-products-*: move=1.1 where seed == seed.min() + 3 => fails
largest-scores-*: score_over_bound=1.1 where seed == seed.min() + 3 => fails
harmful-largest-values: value_over_bound=1.1 where seed == seed.min() + 3 => fails

# Song et al. 2024: hypotheses that are missed, and cells of other settings
theorem3-gaussian-zero theorem3-rate: condition_12=800 => vacuous
theorem[12]*-two theorem[12]*-four corollary1-linear: lambda_b=0 => vacuous
theorem2-*-two theorem2-*-four: condition_8=18 => vacuous
zero-softmax-near: condition_12=800 where seed != 4 => inconclusive
eigenvalue-theorem1 eigenvalue-proved: rate_margin=1.01 => fails
eigenvalue-theorem1: rate_margin=nan => inconclusive
eigenvalue-theorem1: lambda_b=0 => vacuous
eigenvalue-proved: condition_8=20 => vacuous
eigenvalue-proved: rate_margin=0.3 => fails
eigenvalue-proved: rate_margin=0.2 => holds
lemma1-value-several: pl_ratio_min=0.9 rate_paper=1 => fails
lemma1-value-several: lambda_b=0 => vacuous
lemma2-gradients lemma7-gradients: lemma_gradients=1e-4 => holds by far
lemma3-outputs lemma8-outputs: lemma_outputs=1.1 where seed == 3 => fails
zero-gaussian-below: heads=2 => not run
example-gradient: weights=drawn => not run
text-imdb-gaussian-faster: tokens=32 => not run
text-imdb-gaussian-faster: training_steps=100 => not run
landscape-minima landscape-curvature: task=pathfinder => not run
landscape-minima landscape-curvature: source=imdb => not run
landscape-real-minima landscape-real-curvature: learning_rate=1e-3 => not run

# Deora et al. 2024: each lemma is held to its own conditions
paths-theorem1: mean_train_loss=2 => fails
paths-theorem1: train_loss=0.3 => fails
paths-lemma8: lemma8=2 => fails
paths-lemma9: lemma9=2 => fails
paths-lemma10: lemma10=2 => fails
paths-lemma10: target_loss=0.4 => vacuous
paths-theorem1 paths-lemma10: theorem1_heads=30 => vacuous
paths-lemma9: lemma9_heads=30 => vacuous
paths-lemma8 paths-lemma9 paths-lemma10: descent=0.9 => vacuous
paths-theorem1: theorem_step_size=-9 => vacuous
paths-theorem1: theorem1_bound=1 => vacuous
mixture-constant-slower mixture-sqrt-margin-falls planted-gd-faster planted-gap-rate: \
    heads=2 => not run
mixture-constant-slower planted-gd-faster: drop where heads == 50 => not run
planted-gd-faster: steps_to_target=1e60 where heads > 10 => fails
planted-gd-faster: steps_to_target=nan where heads == 50 and seed < 4 => holds
planted-gd-faster: steps_to_target=nan where heads == 50 and seed < 26 => inconclusive
mixture-constant-slower: steps_to_target=nan where heads == 50 and seed < 5 => holds
mixture-adam-faster: steps_to_target=1e60 where heads == 50 => fails
mixture-constant-slower: steps_to_target=0.5 where heads == 50 => fails

# Cui et al. 2024: a limit of one solution says nothing on the other's cells
semantic-theta-solved: theta=0.9 where start == 'positional' => holds

# Cao et al. 2024: the constant of an order is no reason to fail; float32 decides nothing
softmax-theorem42 softmax-steps softmax-lemma51-bound: dtype=float32 => not run
softmax-theorem42: rate_ratio=20 => fails
softmax-theorem42: rate_ratio=20 width_missing=3 => vacuous
softmax-lemma51-bound: worst_drift=3e4 => fails
softmax-lemma51-bound: worst_drift_far=3e4 where seed < 1 => fails
softmax-lemma51-bound: worst_drift_far=nan where seed < 1 => inconclusive
softmax-lemma51-bound: worst_drift=30 => holds
softmax-lemma51-bound: worst_drift=20 worst_drift_far=20 => holds by far
softmax-lemma53-bound*: movement_over_bound=0.1 => fails
softmax-lemma53-bound*: movement_over_bound=9 movement=0.02 => vacuous
softmax-theorem-f2-bound: gap_over_bound=1.01 => holds
softmax-theorem-f2-bound: gap_over_bound=11 => fails
softmax-theorem-f2-bound: gap_over_bound=20 kernel_drift=0.9 => vacuous
softmax-lemma53-bound-outputs: movement_over_bound=9 where sigma == 1 => holds
softmax-linear-rate-outputs: rate_ratio=2 => fails
softmax-steps-collapse: lambda_start=0.1 where activation == 'relu' => fails
softmax-steps softmax-steps-paper: status=failed reason=step_limit steps_to_epsilon=nan \
    where activation == 'softmax' and m == m.max() and seed < 10 => inconclusive
softmax-steps softmax-steps-paper: status=failed reason=worker_killed steps_to_epsilon=nan \
    where m == m.max() and seed == 0 => holds
softmax-steps softmax-steps-paper: status=failed reason=absent steps_to_epsilon=nan \
    where activation == 'softmax' and m == m.max() => inconclusive
softmax-lemma51: drift_share=5000 => fails
softmax-drift-tight: rate_ratio=2 where m == 512 and seed == 0 => inconclusive
softmax-drift-tight: rate_ratio=2 => vacuous
diffusion-falls: score_error=0.2 denoiser_error=0.2 where n == 1000 => fails
diffusion-falls: m=1024 training_steps=10000 samples=10000 => holds
diffusion-theorem66: bound_over_error=-0.0086 => fails
diffusion-theorem66: bound_over_error=3.1 => holds by far
"""


def cases() -> Iterator[tuple[str, str, str]]:
    """The names of claims, what is changed, and the verdict, of each line."""
    for line in lines(CASES):
        names, _, rest = line.partition(": ")
        changes, _, verdict = rest.partition(" => ")
        for pattern in names.split():
            found = matching(all_claims(), pattern)
            assert found, pattern
            yield from ((name, changes, verdict) for name in found)


@pytest.mark.parametrize(("name", "changes", "verdict"), list(cases()))
def test_a_change_has_its_verdict(name: str, changes: str, verdict: str) -> None:
    measured = measure(name, changed(true_cells(name), changes))
    assert measured.verdict == verdict, measured.note
