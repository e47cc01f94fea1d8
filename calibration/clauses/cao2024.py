"""Worlds that break one clause of a claim on Cao et al. 2024."""

from __future__ import annotations

from calibration.tabled import tabled

TABLE = r"""
[softmax-drift-quick]
softmax-linear-rate | at every step | rate_ratio=2.0 where seed == 3 and m == 512
softmax-linear-rate softmax-lemma51 | absent cells | only where m <= 512 or seed == 3 | inconclusive
softmax-lemma51 | at most R n d | drift_share=1.1 where seed == 3 and m == 512
softmax-step-bounds | C₀ | c0_over_bound=1.1 where seed == 3 and m == 512
softmax-step-bounds | C₁ | c1=-1.5 where seed == 3 and m == 512
softmax-step-bounds | λ_min(H) | lambda_lost=.6 where seed == 3 and m == 512
softmax-step-bounds | η ‖Δw_r‖ | step_length=.02 where seed == 3 and m == 512
softmax-equation-24 | up to a twentieth | train_gap=train_gap + .1 where m == 512
softmax-drift-symmetric | falls as 1/m | kernel_drift=m**-(1 + NOISE) | holds
softmax-drift-symmetric softmax-drift-independent | of each network | \
    kernel_drift=m**-(1 + NOISE + (activation == 'exp') / 2)
softmax-drift-relu-symmetric | falls as 1/m | kernel_drift=m**-(.7 + NOISE)
softmax-gap-symmetric | falls as 1/m | test_gap=m**-(1 + NOISE) | holds
softmax-gap-relu-symmetric | falls as 1/m | test_gap=m**-(1.3 + NOISE)
[softmax-small-weights-quick]
softmax-theorem42 | at every step | \
    width_missing=-1.0; step_size_beyond=-1.0; rate_ratio=1.1 where seed < 24
softmax-theorem42 | absent cells | \
    width_missing=-1.0; step_size_beyond=-1.0; only where seed > 8 or m > 999 | inconclusive
softmax-theorem42 | m as stated | width_missing=-1.0; rate_ratio=1.1 | vacuous
softmax-lemma53-bound | D | movement_over_bound=.1 where seed < 24
softmax-movement-tight | the hypotheses, at all cells but one | \
    rate_ratio=2.0 where seed == 3 and m == 2048 | inconclusive
softmax-movement-tight | at all m | movement=BENT
softmax-drift-tight | at all m | kernel_drift=BENT / 1e3
softmax-drift-tight | no faster | kernel_drift=1e-3 / m | holds
softmax-gap-tight | at all m | test_gap=BENT
softmax-gap-tight | no faster | test_gap=1 / m | holds
softmax-theorem-f2-tight | doesn't fall | test_gap_most=kernel_drift / m**.2
softmax-theorem-f2-tight | at all m | test_gap_most=kernel_drift * BENT * m
softmax-theorem-f2-bound | 10 | gap_over_bound=10.1 where seed == 3
[softmax-perturbation-quick]
softmax-lemma51-bound | R of 0.001 | worst_drift=3e4
softmax-lemma51-bound | R of 0.009 | worst_drift_far=3e4
softmax-lemma51-bound | with probability 1 − δ | worst_drift=3e4 where seed == 3 and m == 256
softmax-lemma51-bound softmax-lemma51-worst | absent cells | only where seed != 3 or m != 256 | \
    inconclusive
softmax-lemma51-worst | R of 0.001 | worst_drift=10.1 where seed == 3 and m == 256 and n == 16
softmax-lemma51-worst | R of 0.009 | worst_drift_far=10.1 where seed == 3 and m == 256 and n == 16
softmax-lemma51-linear | linear | worst_drift_far=worst_drift * (1 + NOISE) | holds
softmax-lemma51-linear | at fixed width | \
    worst_drift_far=worst_drift * (1 + NOISE + .3 * (m == 1024))
softmax-drift-constant-softmax-16 | R n | worst_drift=1.1 where seed == 3
softmax-drift-constant-softmax-4 | R n | worst_drift=.9 | holds
softmax-drift-constant-exp | n = 16 | worst_drift=2.0; worst_drift=3.1 where n == 16 and seed == 3
[softmax-outputs-quick]
softmax-linear-rate-outputs | at every step | rate_ratio=1.1 where seed == 3
softmax-lemma51-outputs | at most R n d | drift_share=1.1 where seed == 3
softmax-lemma53-bound-outputs | D | movement_over_bound=.1 where seed < 24
[softmax-table1-paper-quick]
softmax-steps-paper | of each two | steps_to_epsilon=steps_to_epsilon * 3 where activation == 'exp'
softmax-steps-without-lambda | the same | steps_to_epsilon=100.0 | holds
[softmax-table1-quick]
softmax-steps | of each two | steps_to_epsilon=steps_to_epsilon * 4 where activation == 'relu'
softmax-widths | the same | steps_over_limit=1 + 30 / m | holds
[softmax-lambda-steps-quick]
softmax-steps-collapse | one constant | \
    steps_to_epsilon=steps_to_epsilon * 4 where activation == 'exp' and n == 3 and d == 16
softmax-steps-lambda-power | λ⁻² | steps_to_epsilon=99 / lambda_start**(1.6 + NOISE)
[softmax-lambda-widths-quick]
softmax-steps-condition-power | ∝ κ | steps_to_epsilon=9 * kappa**(.6 + NOISE)
[softmax-scores-quick]
diffusion-falls | up to the largest n | \
    score_error=score_error * 9 where model == 'relu' and n == 1000
diffusion-alike | as exp networks do | denoiser_error=denoiser_error * 9 where model == 'exp'
[softmax-scores-gd-quick]
diffusion-gd | a factor of two | denoiser_error=denoiser_error * 5 where optimiser == 'gd'
diffusion-theorem66 | the first term | \
    width_missing=-1.0; step_size_beyond=-1.0; bound_over_error=-1.0 where seed < 2
""".replace("BENT", "1e-3 * (m / 2048)**(-.5 - (m > 2048))")
TABLE = TABLE.replace("NOISE", ".001 * (seed % 5)")

BROKEN = (*tabled(TABLE),)
