"""Worlds that break one clause of a claim on Cao et al. 2024."""

from __future__ import annotations

from calibration.tabled import tabled

TABLE = """
drift | softmax-linear-rate | at every step | rate_ratio = 2.0 where seed == 3 and m == 512 => fails
drift | softmax-linear-rate softmax-lemma51 | absent cells \\
    | drop where m > 512 and seed != 3 => inconclusive
drift | softmax-lemma51 | at most R n d | drift_share = 1.1 where seed == 3 and m == 512 => fails
drift | softmax-step-bounds | C₀ | c0_over_bound = 1.1 where seed == 3 and m == 512 => fails
drift | softmax-step-bounds | C₁ | c1 = -1.5 where seed == 3 and m == 512 => fails
drift | softmax-step-bounds | λ_min(H) | lambda_lost = .6 where seed == 3 and m == 512 => fails
drift | softmax-step-bounds | η ‖Δw_r‖ | step_length = .02 where seed == 3 and m == 512 => fails
drift | softmax-equation-24 | up to a twentieth | train_gap + .1 where m == 512 => fails
drift | softmax-drift-symmetric | falls as 1/m | kernel_drift = m**-(1 + NOISE) => holds
drift | softmax-drift-symmetric softmax-drift-independent | of each network \\
    | kernel_drift = m**-(1 + NOISE + (activation == 'exp') / 2) => fails
drift | softmax-drift-relu-symmetric | falls as 1/m | kernel_drift = m**-(.7 + NOISE) => fails
drift | softmax-gap-symmetric | falls as 1/m | test_gap = m**-(1 + NOISE) => holds
drift | softmax-gap-relu-symmetric | falls as 1/m | test_gap = m**-(1.3 + NOISE) => fails
small-weights | softmax-theorem42 | at every step \\
    | width_missing = -1.0; step_size_beyond = -1.0; rate_ratio = 1.1 where seed < 24 => fails
small-weights | softmax-theorem42 | absent cells \\
    | width_missing = -1.0; step_size_beyond = -1.0; drop where seed < 9 and m < 999 => inconclusive
small-weights | softmax-theorem42 | m as stated | width_missing = -1.0; rate_ratio = 1.1 => vacuous
small-weights | softmax-lemma53-bound | D | movement_over_bound = .1 where seed < 24 => fails
small-weights | softmax-movement-tight | the hypotheses, at all cells but one \\
    | rate_ratio = 2.0 where seed == 3 and m == 2048 => inconclusive
small-weights | softmax-movement-tight | at all m | movement = BENT => fails
small-weights | softmax-drift-tight | at all m | kernel_drift = BENT / 1e3 => fails
small-weights | softmax-drift-tight | no faster | kernel_drift = 1e-3 / m => holds
small-weights | softmax-gap-tight | at all m | test_gap = BENT => fails
small-weights | softmax-gap-tight | no faster | test_gap = 1 / m => holds
small-weights | softmax-theorem-f2-tight | doesn't fall \\
    | test_gap_most = kernel_drift / m**.2 => fails
small-weights | softmax-theorem-f2-tight | at all m \\
    | test_gap_most = kernel_drift * BENT * m => fails
small-weights | softmax-theorem-f2-bound | 10 | gap_over_bound = 10.1 where seed == 3 => fails
perturbation | softmax-lemma51-bound | R of 0.001 | worst_drift = 3e4 => fails
perturbation | softmax-lemma51-bound | R of 0.009 | worst_drift_far = 3e4 => fails
perturbation | softmax-lemma51-bound | with probability 1 − δ \\
    | worst_drift = 3e4 where seed == 3 and m == 256 => fails
perturbation | softmax-lemma51-bound softmax-lemma51-worst | absent cells \\
    | drop where seed == 3 and m == 256 => inconclusive
perturbation | softmax-lemma51-worst | R of 0.001 \\
    | worst_drift = 10.1 where seed == 3 and m == 256 and n == 16 => fails
perturbation | softmax-lemma51-worst | R of 0.009 \\
    | worst_drift_far = 10.1 where seed == 3 and m == 256 and n == 16 => fails
perturbation | softmax-lemma51-linear | linear \\
    | worst_drift_far = worst_drift * (1 + NOISE) => holds
perturbation | softmax-lemma51-linear | at fixed width \\
    | worst_drift_far = worst_drift * (1 + NOISE + .3 * (m == 1024)) => fails
perturbation | softmax-drift-constant-softmax-16 | R n | worst_drift = 1.1 where seed == 3 => fails
perturbation | softmax-drift-constant-softmax-4 | R n | worst_drift = .9 => holds
perturbation | softmax-drift-constant-exp | n = 16 \\
    | worst_drift = 2.0; worst_drift = 3.1 where n == 16 and seed == 3 => fails
outputs | softmax-linear-rate-outputs | at every step | rate_ratio = 1.1 where seed == 3 => fails
outputs | softmax-lemma51-outputs | at most R n d | drift_share = 1.1 where seed == 3 => fails
outputs | softmax-lemma53-bound-outputs | D | movement_over_bound = .1 where seed < 24 => fails
table1-paper | softmax-steps-paper | of each two \\
    | steps_to_epsilon * 3 where activation == 'exp' => fails
table1-paper | softmax-steps-without-lambda | the same | steps_to_epsilon = 100.0 => holds
table1 | softmax-steps | of each two | steps_to_epsilon * 4 where activation == 'relu' => fails
table1 | softmax-widths | the same | steps_over_limit = 1 + 30 / m => holds
lambda-steps | softmax-steps-collapse | one constant \\
    | steps_to_epsilon * 4 where activation == 'exp' and n == 3 and d == 16 => fails
lambda-steps | softmax-steps-lambda-power | λ⁻² \\
    | steps_to_epsilon = 99 / lambda_start**(1.6 + NOISE) => fails
lambda-widths | softmax-steps-condition-power | ∝ κ \\
    | steps_to_epsilon = 9 * kappa**(.6 + NOISE) => fails
scores | diffusion-falls | up to the largest n \\
    | score_error * 9 where model == 'relu' and n == 1000 => fails
scores | diffusion-alike | as exp networks do | denoiser_error * 9 where model == 'exp' => fails
scores-gd | diffusion-gd | a factor of two | denoiser_error * 5 where optimiser == 'gd' => fails
scores-gd | diffusion-theorem66 | the first term \\
    | width_missing = -1.0; step_size_beyond = -1.0; bound_over_error = -1.0 where seed < 2 => fails
""".replace("BENT", "1e-3 * (m / 2048)**(-.5 - (m > 2048))")
TABLE = TABLE.replace("NOISE", ".001 * (seed % 5)")

BROKEN = (*tabled(TABLE, "softmax"),)
