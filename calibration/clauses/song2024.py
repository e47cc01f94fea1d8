"""Worlds that break one clause of a claim on Song et al. 2024.

Claims that the kept cells refute are made true first, and broken in one clause then.
"""

from __future__ import annotations

from calibration.tabled import tabled

ABOVE = "pl_ratio_min=1.1*rate_paper"
BELOW = "violations_paper=0, rate_margin=1.2"
FEW_STEPS = "training_steps=2, steps=2"
STUCK = "relative_loss=0.5, train_loss=0.5*start_loss, gradient=0"

WORLDS = rf"""
[kernel-theorem1-quick]
lemma1-value-several | true in all cells | {ABOVE} | holds
lemma1-value-several | 2 heads, at every step | {ABOVE}; pl_ratio_min=0 where heads==2 and seed==3
lemma1-value-several | run has gone on | {ABOVE}; {FEW_STEPS} | not run
lemma1-value-several | run has gone on, in large steps | {ABOVE}; learning_rate=1e-6 | not run
lemma1-value-several theorem1-paper-two | λ_B > 0 | lambda_b=0 | vacuous
theorem1-paper-two | true on all draws | {BELOW} | holds
theorem1-paper-two | 4 heads, at every step | {BELOW}; violations_paper=1 where heads==4 and seed==3
theorem1-paper-two | at steps not taken, too | {BELOW}; rate_margin=0.99 where heads==2 and seed==3
theorem1-paper-two | H = 2 and 4 | {BELOW}; only where heads != 4 | not run
theorem1-paper-two | run has gone on | {BELOW}; {FEW_STEPS} | not run
[kernel-theorem2-balanced-quick]
theorem2-paper-two | true on all draws | {BELOW} | holds
theorem2-paper-two | (8) is met | condition_8=3 | vacuous
theorem2-paper-two | 2 heads, at every step | {BELOW}; violations_paper=1 where heads==2 and seed==3
theorem2-paper-two | run has gone on | {BELOW}; {FEW_STEPS} | not run
[kernel-theorem2-near-quick]
theorem2-near-four | at every step | {BELOW}; violations_paper=1 where seed==3
theorem2-near-four | (8) is met | condition_8=3 | vacuous
theorem2-near-four | at steps not taken, where (8) is met | violations_paper=0; \
    violations_paper=1, condition_8=3 where seed==3 | inconclusive
theorem2-near-four | run has gone on, in large steps | learning_rate=1e-6 | not run
[kernel-theorem2-quick]
zero-softmax-all | Gaussian | {STUCK} where kernel=='gaussian' and seed > 1
zero-softmax-all | softmax | {STUCK} where kernel=='softmax' and seed > 1 | inconclusive
zero-softmax-all | within 3000 steps | training_steps=30 | not run
zero-softmax-all | with one head | only where heads > 1 | not run
zero-softmax-all | three step sizes | only where learning_rate < 0.2 | not run
lemma2-gradients lemma7-gradients | at most Q_i times | lemma_gradients=1.1 where seed==3
lemma3-outputs | at most Z times | lemma_outputs=1.1 where heads==4 and seed==3
lemma3-gradients | at most G times | lemma_change=1.1 where heads==4 and seed==3
lemma3-outputs lemma3-gradients | a path that diverged | \
    lemma_outputs=nan, lemma_change=nan, status='failed', reason='diverged' where heads==4 | \
    not run
lemma2-gradients lemma3-outputs lemma3-gradients lemma7-gradients | every cell | \
    only where seed!=3 or heads!=2 | inconclusive
[kernel-eigenvalue-quick]
lemma1-value-several theorem1-paper-two | run has gone on | pl_ratio_min=9 | not run
eigenvalue-theorem1 | on every draw | rate_margin=1.01 where heads==16 and d==96 and seed==3
eigenvalue-theorem1 | 4 to 16 heads | only where heads < 16 | not run
eigenvalue-theorem1 | d = 2, 8 and 32 | only where d_h < 32 | not run
eigenvalue-theorem1 | λ_B > 0 | lambda_b=0 | vacuous
eigenvalue-law | for each D | rate_margin=1.4*rate_margin where d==96
eigenvalue-law | 2/H, not that of other heads | rate_margin=rate_margin*heads/(18 - heads)
eigenvalue-law | 2/H, not one rate | rate_margin=0.2*rate_margin*heads
eigenvalue-law | for each H, not in the mean | rate_margin=0.7*rate_margin where heads < 5; \
    rate_margin=1.4*rate_margin where heads > 5
eigenvalue-law | d = 32 | only where d_h < 32 | not run
[kernel-eigenvalue-balanced-quick]
eigenvalue-proved | β/4, 16 heads | rate_margin=0.3 where heads==16 and d_h==2 and seed==3
eigenvalue-proved | β, 4 heads | rate_margin=1.1 where heads==4 and d_h==2 and seed==3
eigenvalue-proved | 16 heads | only where heads != 16 | not run
eigenvalue-proved | (8) is met | condition_8=3 | vacuous
[kernel-linear-layers-quick]
corollary1-linear | linearly | steps_to_trillionth=1e6 where trained=='layers-4' and seed==3
corollary1-linear | to 1e-12 | steps_to_trillionth=nan, relative_loss=1e-8, gradient=0 where seed==3
corollary1-linear | 1, 2 or 4 layers | only where trained != 'layers-2' | not run
corollary1-linear remark2-rate | run has gone on | {FEW_STEPS} | not run
corollary1-linear remark2-rate | in large steps | learning_rate=1e-6 | not run
remark2-rate | 2 layers | steps_to_millionth=9e3 where trained=='layers-2'
remark2-rate | at each step size | steps_to_millionth=9e3 where trained!='all'; \
    steps_to_millionth=99 where trained!='all' and learning_rate < 0.007
[kernel-theorem3-near-quick]
theorem3-gaussian-zero zero-softmax-near | on every draw | {STUCK} where seed==3
zero-softmax-near | both kernels | {STUCK} where kernel=='gaussian' and seed==3
theorem3-gaussian-zero zero-softmax-near | has stopped | \
    relative_loss=0.99, train_loss=0.99*start_loss, steps=2 where seed==3 | inconclusive
theorem3-gaussian-zero zero-softmax-near theorem3-rate | run has gone on | {FEW_STEPS} | not run
theorem3-gaussian-zero | some step size | only where learning_rate > 100 | not run
zero-softmax-near | some step size | only where learning_rate < 5000 | not run
theorem3-gaussian-zero theorem3-rate zero-softmax-near | (12) is met | condition_12=2 | vacuous
theorem3-rate | at every step | violations_gamma=1 where learning_rate < 2 and seed==3
theorem3-rate | every cell | only where seed!=3 or learning_rate > 2 | inconclusive
theorem3-rate | as fast as γ | relative_loss=1-1e-6 where seed==3
[kernel-theorem3-quick]
zero-gaussian-below | inside the hull | {STUCK} where target=='inside' and seed > 1
zero-gaussian-below trapped-softmax | run has gone on | {FEW_STEPS} | not run
trapped-softmax | has stopped | steps=1, train_loss=floor+0.3*start_loss | inconclusive
trapped-softmax | has stopped, and falls no more | gradient=1e3*gradient | inconclusive
trapped-softmax | above its optimum | train_loss=floor
trapped-softmax | by 0.1 % | train_loss=floor+5e-4*start_loss
trapped-softmax | lowest of all step sizes | train_loss=floor where learning_rate==3
trapped-softmax | eight step sizes | only where learning_rate < 1 | not run
trapped-softmax | every cell | only where learning_rate < 9 or seed < 5 | inconclusive
trapped-softmax | a fifth of draws | train_loss=floor where seed > 0 | inconclusive
lemma8-outputs | at most Z' times | lemma_outputs=1.1 where seed==3
lemma8-gradients | at most G' times | lemma_change=1.1 where seed==3
[kernel-example-condition-quick]
example-gradient | (12) is met | condition_12=0.1
example-gradient | gradient in W_Q | gradient_query_start=1e-9
example-gradient | gradient in W_K | gradient_key_start=1e-9
example-gradient | loss above zero | start_loss=0, train_loss=0
example-gradient | no step lowers it | train_loss=0.99*train_loss
example-escape | leaves the point | relative_loss=1 where learning_rate > 0.5
example-escape | (12) is met | condition_12=0.1 | not run
[kernel-sizes-quick]
sizes-lambda-b | sufficient, not needed | lambda_b=0.1 where d*heads < 16 | holds
sizes-lambda-b | high probability | lambda_b=0 where d*heads==16 and seed==3
sizes-lambda-b sizes-delta | all sizes | only where d > 4 and d_h > 2 | not run
sizes-delta | true at all sizes | delta=0.1 | holds
sizes-delta | D d ≥ N n² | delta=0.1; delta=0 where d_h==8 and seed==3
[kernel-ranks-further-quick]
ranks-softmax-five | all sizes | delta=0 where d==14 and d_h==9 and seed==3
ranks-softmax-five | N, D and d | only where n==2 and d > 9 | not run
[kernel-tangent-quick]
tangent-ratio | with each n, not in the mean | \
    tangent_trace=tangent_trace*tokens**2/32 where kernel=='softmax'
tangent-ratio | n = 2 to 16 | only where tokens > 2 | not run
[kernel-tangent-steps-quick]
tangent-slower | more steps | steps_to_millionth=9, tangent_steps=9 where kernel=='softmax'
tangent-slower | as predicted, on every draw | tangent_steps=2*tangent_steps where seed==3
tangent-slower | (12) is met, by both | \
    steps_to_millionth=9e3, tangent_steps=9e3 where kernel=='softmax'; \
    condition_12=2 where kernel=='softmax' and seed < 3 | holds
tangent-slower | (12) is met | condition_12=2 | not run
tangent-slower | best of all step sizes | only where learning_rate in (4, 8192) | not run
tangent-slower | every cell | only where learning_rate!=16 or seed!=3 | inconclusive
tangent-slower | run has gone on | {FEW_STEPS} | not run
[kernel-fig2-quick]
text-gaussian-faster | in 300 steps | training_steps=30 | not run
text-gaussian-faster | three step sizes | only where learning_rate < 5e-4 | not run
text-gaussian-faster | at the best | mean_test_loss=0.8*mean_test_loss \
    where kernel=='softmax' and learning_rate > 2e-4 and learning_rate < 5e-4 | fails
text-gaussian-faster | faster, not as fast | mean_test_loss=0.5 | inconclusive
[kernel-fig3-quick]
pathfinder-above-shortcut | every cell | test_accuracy=test_accuracy+0.12; \
    only where learning_rate < 2e-3 or seed!=3 | inconclusive
pathfinder-above-shortcut | above the rule | test_accuracy=test_accuracy+0.12 | holds
[kernel-fig4-quick]
landscape-curvature | every network | rms_laplacian=nan where seed==3 | inconclusive
landscape-minima | more, not as many | interior_minima=3
landscape-curvature | flatter, not as flat | rms_laplacian=1
"""

BROKEN = (*tabled(WORLDS),)
