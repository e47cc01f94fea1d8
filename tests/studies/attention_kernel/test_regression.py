from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.utils import parameters_to_vector

from overfit_cli.core.training import logged_steps
from overfit_cli.studies.attention_kernel import engine, lemmas, reference, spectra, theory
from overfit_cli.studies.attention_kernel.data import draw_problem, token_values
from overfit_cli.studies.attention_kernel.parameters import (
    KERNELS,
    LAYERS,
    KernelRegressionParameters,
)
from overfit_cli.studies.attention_kernel.study import study
from tests.studies.attention_kernel import regression_oracle as oracle
from tests.training import cell_of, train

SMALL = {"n": 3, "tokens": 3, "d": 11, "d_h": 4, "heads": 2, "training_steps": 40}


def settings(**values: object) -> KernelRegressionParameters:
    return KernelRegressionParameters(**{**SMALL, **values})  # type: ignore[arg-type]


def measured(parameters: object = None, seed: int = 0, **values: object) -> Mapping[str, float]:
    """What a cell measures; of these values where no parameters are given."""
    [result] = train(study, cell_of(study, parameters or settings(**values), seed))
    return result.measurements


def at_start(
    parameters: KernelRegressionParameters, seed: int = 0
) -> tuple[engine.Constants, engine.Projections, engine.ForwardPass]:
    fixed, state = engine.set_up([parameters], [draw_problem(parameters, seed)], "cpu")
    return fixed, state, engine.forward(fixed, state)


@pytest.mark.parametrize(
    ("kernel", "what"),
    [
        *((kernel, "all") for kernel in KERNELS),
        *(("softmax", "query"), ("gaussian", "value")),
        *itertools.product(("softmax", "gaussian"), LAYERS),
    ],
)
def test_the_engine_takes_the_steps_that_autograd_takes(kernel: str, what: str) -> None:
    rate = 1e-4 if what in LAYERS else 0.05
    parameters = settings(kernel=kernel, trained=what, target="mixed-sign", learning_rate=rate)
    [result] = train(study, cell_of(study, parameters, 3), trajectories=True)
    plain = list(reference.plain_descent(parameters, 3))
    assert plain[-1][0] < 0.999 * plain[0][0], "it must learn"
    logged = result.trajectory
    assert logged["step"][-1] == parameters.training_steps
    for row, step in enumerate(logged["step"]):
        loss, gradients = plain[int(step)]
        assert logged["train_loss"][row] == pytest.approx(loss, rel=1e-10)
        moved = [gradients[name] for name in reference.TRAINED.get(what, gradients)]
        length = float(parameters_to_vector(moved).norm())
        assert logged["gradient"][row] == pytest.approx(length, rel=1e-9)
    if what in LAYERS:
        assert result.measurements["gradient"] == pytest.approx(length, rel=1e-9)
        return
    for name in ("query", "key"):
        start = result.measurements[f"gradient_{name}_start"]
        assert start == pytest.approx(float(plain[0][1][name].norm()), rel=1e-10)


def test_single_precision_follows_the_same_path() -> None:
    how: Any = {"kernel": "gaussian", "trained": "all", "learning_rate": 0.05}
    double, single = (measured(**how, dtype=dtype) for dtype in ("float64", "float32"))
    assert single["train_loss"] == pytest.approx(double["train_loss"], rel=1e-4)


def test_a_condition_that_no_size_meets_is_infinitely_far() -> None:
    found = measured({"instance": "example", "weights": "identity", "training_steps": 2})
    assert (found["condition_12"], found["log10_gamma"]) == (math.inf, -math.inf)


@pytest.mark.parametrize("target", ["below", "inside", "mixed-sign"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_no_query_weights_bring_the_loss_below_its_floor(kernel: str, target: str) -> None:
    parameters = settings(kernel=kernel, target=target)
    problem = draw_problem(parameters, 5)
    floor = theory.loss_floor(KERNELS[kernel], problem)
    fixed, state, _ = at_start(parameters, 5)
    draws = torch.Generator().manual_seed(1)
    for scale in (0.1, 1.0, 10.0, 100.0):
        query = scale * torch.randn(state.query.shape, generator=draws, dtype=torch.float64)
        loss = float(engine.forward(fixed, engine.Projections(query, state.key, state.value)).loss)
        assert loss >= floor * (1 - 1e-12)


def test_targets_lie_where_they_are_said_to() -> None:
    for seed, target in itertools.product(range(5), ("below", "inside", "mixed-sign")):
        problem = draw_problem(settings(target=target), seed)
        values = token_values(problem)
        assert values.min() > 1 - 1e-9 and values.max() < 2 + 1e-9
        low, high = values.min(-1).sum(-1)[:, None], values.max(-1).sum(-1)[:, None]
        inside = (problem.labels > low) & (problem.labels < high)
        assert inside.all() == (target == "inside")
        assert (problem.labels < low).all() == (target != "inside")
        assert bool((problem.labels < 0).any()) == (target == "mixed-sign")


@pytest.mark.parametrize("kernel", KERNELS)
def test_singular_values_are_those_of_the_matrices_written_out(kernel: str) -> None:
    parameters = settings(kernel=kernel)
    problem = draw_problem(parameters, 2)
    fixed, state, out = at_start(parameters, 2)
    b = np.linalg.svd(oracle.mixed_tokens(problem, kernel), compute_uv=False)
    assert float(spectra.smallest_of_b(fixed, out)) == pytest.approx(b[-1], rel=1e-9)
    deltas = [
        np.linalg.svd(oracle.score_jacobian(problem, kernel, head), compute_uv=False)[-1]
        for head in range(2)
    ]
    assert spectra.smallest_of_scores(fixed, state)[0].tolist() == pytest.approx(deltas, rel=1e-8)


def test_a_step_is_stable_up_to_the_curvature() -> None:
    """At 0.99 of two over the largest curvature in W_V the loss falls; just above two it grows."""
    base: dict[str, Any] = {"kernel": "softmax", "trained": "value", "training_steps": 60}
    fixed, _, out = at_start(settings(**base))
    curvature = float(spectra.curvatures(fixed, out)[1])
    for share, falls in ((1.98, True), (2.05, False)):
        found = measured(**base, learning_rate=share / curvature)
        assert found["stability"] == pytest.approx(share)
        assert (found.get("relative_loss", math.inf) < 1) == falls


def test_a_balance_changes_the_conditions_and_neither_the_values_nor_the_steps_of_w_v() -> None:
    """(8) and (46) take W_O and W_V apart; (12) takes them together, whatever remark 6 says."""
    c = 1e6
    plain, balanced = (
        measured(kernel="softmax", trained="value", training_steps=30, balance=each)
        for each in (1, c)
    )
    for name in ("relative_loss", "stability", "rate_margin", "condition_12"):
        assert balanced[name] == pytest.approx(plain[name], rel=1e-9)
    assert balanced["rate_paper"] == pytest.approx(c**2 * plain["rate_paper"])
    fall = plain["condition_8"] - balanced["condition_8"]
    assert fall == pytest.approx(2 * math.log10(c))
    assert balanced["condition_46"] < plain["condition_46"] - 5


@pytest.mark.parametrize("kernel", ["softmax", "gaussian"])
@pytest.mark.parametrize("heads", [1, 3])
def test_w_v_alone_is_least_squares_whose_loss_can_stop_at_zero_alone(
    kernel: str, heads: int
) -> None:
    """The residual is (I − ηK)^t r₀, and no eigenvalue of K is below min_h ‖W_O,h‖² λ_B² > 0."""
    parameters = settings(kernel=kernel, trained="value", heads=heads, learning_rate=0.01)
    problem = draw_problem(parameters, 3)
    lengths, smallest = oracle.lengths(problem), oracle.smallest(problem, kernel)
    curvature = oracle.curvature(problem, kernel, lengths)
    assert np.linalg.eigvalsh(curvature)[0] >= lengths.min() * smallest**2 * (1 - 1e-9) > 0
    fixed, state, out = at_start(parameters, 3)
    expected = out.residual.flatten().numpy()
    for _ in range(5):
        state = engine.next_state(fixed, engine.step_at(fixed, state))
        expected = expected - 0.01 * curvature @ expected
    after = engine.forward(fixed, state).residual.flatten().numpy()
    assert after == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("heads", [1, 2, 4])
def test_the_slowest_rate_is_twice_the_least_eigenvalue_of_the_papers_curvature(heads: int) -> None:
    parameters = settings(kernel="softmax", trained="value", heads=heads, d=24)
    problem = draw_problem(parameters, 1)
    lengths = oracle.lengths(problem)
    slowest = 2 * np.linalg.eigvalsh(oracle.curvature(problem, "softmax", lengths))[0]
    expected = slowest / (lengths.sum() * oracle.smallest(problem, "softmax") ** 2)
    assert measured(parameters, 1)["rate_margin"] == pytest.approx(expected, rel=1e-6)
    assert heads > 1 or expected == pytest.approx(2)


def test_too_wide_a_problem_has_no_delta_and_another_kernel_no_lemma() -> None:
    wide = measured(n=2, tokens=50, d=100, d_h=2, heads=1, training_steps=1)
    assert not {"delta", "lemma_gradients"} & {*wide}
    assert math.isfinite(wide["train_loss"])
    assert "lemma_gradients" not in measured(kernel="gaussian-eq11", training_steps=1)


def test_the_conditions_are_the_formulas_of_the_paper() -> None:
    """At weights so small that (12)'s exponential can be written out."""
    problem = draw_problem(settings(sigma_w=0.05), 0)
    norms = theory.norms_of(problem)
    weights = (problem.query, problem.key, problem.value)
    q, k, v = (np.linalg.norm(each, 2, axis=(1, 2)) for each in weights)
    x, o = np.linalg.norm(problem.inputs), np.linalg.norm(problem.output)
    residual, lambda_b, deltas = 1.7, 0.3, (0.02, 0.004)
    left = 3**2 * math.sqrt(3 * 2) * x**5 * (q**2 + k**2).sum()
    right = o * lambda_b**2 / 54
    eight = left * v.max() * residual / (right * min(*q, *k, lambda_b))
    assert 10 ** theory.condition_8(norms, residual, lambda_b) == pytest.approx(eight)
    smallest = np.abs(token_values(problem)).min()
    twelve = 3 * x**5 * (q + k) * np.exp(9 / 4 * x**2 * (q**2 + k**2)) * v.max() * o * residual
    twelve /= smallest**2 * np.minimum(deltas, q) / 8
    assert 10 ** theory.condition_12(norms, residual, deltas) == pytest.approx(twelve.max())
    fortysix = left * x * 2 / 3 * (1 + v.max()) / (right * min(*q, *k, 1, lambda_b))
    assert 10 ** theory.condition_46(norms, lambda_b) == pytest.approx(fortysix)
    kappa = math.exp(-9 / 4 * x**2 * (q**2 + k**2).max())
    gamma = 0.5 * deltas[1] ** 2 * kappa**2 * smallest**2
    assert 10 ** theory.log10_gamma(norms, deltas[1]) == pytest.approx(gamma)
    assert theory.condition_8(norms, residual, 0.0) == math.inf
    assert theory.condition_12(norms, residual, (0.02, 0.0)) == math.inf


def test_violations_are_counted_at_every_step() -> None:
    """Held to the losses of the plain loop, bound by bound."""
    parameters = settings(kernel="softmax", trained="value", learning_rate=0.4, heads=2)
    found = measured(parameters)
    losses = [loss for loss, _ in reference.plain_descent(parameters, 0)]
    for kind in ("paper", "corrected"):
        factor = 1 - 0.4 * found[f"rate_{kind}"]
        above = [loss > factor**step * losses[0] * (1 + 1e-9) for step, loss in enumerate(losses)]
        assert found[f"violations_{kind}"] == sum(above)


def test_steps_to_a_share_of_the_first_loss_are_counted() -> None:
    small = {"kernel": "softmax", "trained": "value", "n": 1, "tokens": 2, "training_steps": 80}
    parameters = settings(**small, learning_rate=1.87)
    found = measured(parameters, 2)
    losses = [loss for loss, _ in reference.plain_descent(parameters, 2)]
    for share, name in ((1e-6, "steps_to_millionth"), (1e-12, "steps_to_trillionth")):
        first = next(step for step, loss in enumerate(losses) if loss <= share * losses[0])
        assert found[name] == first > 1


@pytest.mark.parametrize("seed", range(3))
def test_the_examples_gradient_is_exactly_zero_for_softmax_alone(seed: int) -> None:
    example = {"instance": "example", "training_steps": 50}
    stuck = measured({**example, "kernel": "softmax"}, seed)
    gaussian = measured({**example, "kernel": "gaussian"}, seed)
    escaped = measured({**example, "kernel": "softmax", "value_gap": 1.0}, seed)
    assert stuck["gradient_query_start"] == stuck["gradient_key_start"] == 0
    assert stuck["start_loss"] == stuck["train_loss"] == 1
    assert not {"descent", "lemma_outputs", "lemma_change"} & set(stuck), "nothing falls"
    assert gaussian["gradient_query_start"] > 0
    assert escaped["gradient_query_start"] > 0
    assert escaped["relative_loss"] < 1


def test_the_examples_label_and_weights_can_be_told() -> None:
    told = {"instance": "example", "label": 2.995, "weights": "identity", "sigma_w": 0.1}
    problem = draw_problem(KernelRegressionParameters.model_validate(told), 3)
    assert (problem.labels == 2.995).all()
    assert np.array_equal(problem.query, 0.1 * np.eye(2)[None])
    assert np.array_equal(problem.query, problem.key)


@pytest.mark.parametrize(
    ("kernel", "what"), [("softmax", "query"), ("gaussian", "query"), ("softmax", "all")]
)
def test_descent_and_ratios_of_changes_are_those_of_the_plain_loop(kernel: str, what: str) -> None:
    """To 1e-8: a change is a difference, and loses digits."""
    parameters = settings(kernel=kernel, trained=what, learning_rate=0.2, training_steps=30)
    found = measured(parameters, 4)
    path = list(oracle.plain_path(parameters, 4))
    squares = np.cumsum([float(gradient.square().sum()) for *_, gradient in path])
    falls = [(path[0][0] - path[t][0]) / (0.2 * squares[t - 1]) for t in range(1, 31)]
    assert found["descent"] == pytest.approx(min(falls), rel=1e-9)
    trained = reference.TRAINED[what]
    length = 0.2 * sum(float(gradient.norm()) for *_, gradient in path)
    norms = theory.norms_of(draw_problem(parameters, 4), trained, length)
    constants = lemmas.lipschitz_constants(norms, KERNELS[kernel], trained)
    outputs, gradients = [], []
    for step in logged_steps(30)[:-1]:
        (_, earlier, slope), (_, later, other) = path[step], path[step + 1]
        length = 0.2 * float(slope.norm())
        outputs.append(float((later - earlier).norm()) / length)
        gradients.append(float((other - slope).norm()) / length)
    ratios = max(outputs) / constants[0], max(gradients) / constants[1]
    assert found["lemma_outputs"] == pytest.approx(ratios[0], rel=1e-8, abs=0)
    assert found["lemma_change"] == pytest.approx(ratios[1], rel=1e-8, abs=0)


def test_lemma_2_is_measured_as_autograd_and_the_paper_have_it() -> None:
    """(1, 2) bound the change of attention, (4, 5) a sample's gradients in W_Q and W_K."""
    parameters = settings(kernel="softmax", trained="all")
    problem = draw_problem(parameters, 7)
    sizes = theory.norms_of(problem)
    fixed, state, out = at_start(parameters, 7)
    scores, gradients = [], []
    for i, size in enumerate(sizes.x):
        norms = np.max([oracle.norms_of_attention(problem, i, head) for head in range(2)], axis=0)
        for which, norm, other in (("query", norms[0], sizes.k), ("key", norms[1], sizes.q)):
            largest = np.linalg.norm(other)
            scores.append(norm / (3 / math.sqrt(4) * size**2 * largest))
            bound = 3 * math.sqrt(2) * size**3 * sizes.o * largest * sizes.v
            gradient = oracle.gradient(problem, "softmax", which, np.s_[i : i + 1])
            gradients.append(np.linalg.norm(gradient) / (bound * float(out.residual[0, i].norm())))
    ratios = lemmas.gradient_ratios(fixed, state, out, [problem])
    assert ratios.tolist() == pytest.approx([max(gradients)], rel=1e-9)
    assert max(scores + gradients) < 1


def test_lemma_7_is_measured_as_autograd_and_the_paper_have_it() -> None:
    """(1, 2) bound the change of scores, (3) the gradient in them from below, (4) that in W_Q."""
    parameters = settings(kernel="gaussian", trained="all", n=2, d=7)
    problem = draw_problem(parameters, 7)
    sizes = theory.norms_of(problem)
    fixed, state, out = at_start(parameters, 7)
    scores, gradients, least = [], [], []
    values = token_values(problem)
    for i, size in enumerate(sizes.x):
        residual = float(out.residual[0, i].norm())
        slopes = oracle.gradient(problem, "gaussian", "query", np.s_[i : i + 1])
        for head in range(2):
            first, second = oracle.norms_of_gaussian_scores(problem, i, head)
            bound = math.sqrt(2 * 3 / 4) * size**2 * math.hypot(sizes.q[head], sizes.k[head])
            scores += [first / bound, second / (math.sqrt(3) * size**2)]
            bound *= size * sizes.o * sizes.v * residual
            gradients.append(np.linalg.norm(slopes[head]) / bound)
        slope = engine.gradient_in_scores(fixed, state, out)[0, :, i].norm()
        smallest = np.abs(values[i]).min() * float(out.attention[0, :, i].min())
        least.append(float(slope) / (smallest * residual))
    ratios = lemmas.gradient_ratios(fixed, state, out, [problem])
    assert ratios.tolist() == pytest.approx([max(gradients)], rel=1e-9)
    assert max(scores + gradients) < 1 < min(least)


def one_of_each(sizes: theory.Norms) -> tuple[float, ...]:
    """The norms of X, y, W_Q, W_K, W_V and W_O of one sample and head, and its tokens."""
    [x], [y], [q], [k] = sizes.x, sizes.y, sizes.q, sizes.k
    return x, y, q, k, sizes.v, sizes.o, 3


def test_the_constants_of_lemma_3_are_those_of_its_proof() -> None:
    """Equations (87) to (99) for one head and one sample, where no maximum is taken."""
    problem = draw_problem(settings(n=1, heads=1), 2)
    sizes = theory.norms_of(problem)
    x, y, q, k, v, o, n = one_of_each(sizes)
    phi, psi = n / 2 * x**2 * k, n / 2 * x**2 * q
    z = math.sqrt((n * x**3 * o * v) ** 2 * (q**2 + k**2) + (n * x * o) ** 2)
    reach = n * v * x * o + y
    p = z * x * v * o + reach * x * o
    l_query = n * p + 2 * reach * o * x * v * n * math.hypot(phi, psi)
    l_value = math.hypot(phi, psi) * x * o * reach + n * o * z
    outputs, gradients = lemmas.lipschitz_constants(sizes, KERNELS["softmax"], engine.ALL)
    assert outputs == pytest.approx(z)
    assert gradients == pytest.approx(2 * l_query + l_value)
    alone, _ = lemmas.lipschitz_constants(sizes, KERNELS["softmax"], ("query",))
    assert alone == pytest.approx(n * x**3 * o * k * v)


def test_the_constants_of_lemma_8_are_those_of_its_proof() -> None:
    problem = draw_problem(settings(n=1, heads=1, kernel="gaussian"), 2)
    sizes = theory.norms_of(problem, ("query",), 0.5)
    assert sizes.q[0] == pytest.approx(theory.norms_of(problem).q[0] + 0.5)
    x, y, q, k, v, o, n = one_of_each(sizes)
    z = math.sqrt(2 * n / 4) * x**3 * o * v * math.hypot(q, k)
    reach = n * v * x * o + y
    largest = reach * o * x * v
    p = z * x * v * o + reach * x * o
    spread = math.sqrt(n) * x**2 * (q + k)
    outputs, gradients = lemmas.lipschitz_constants(sizes, KERNELS["gaussian"], ("query",))
    assert outputs == pytest.approx(z)
    expected = largest * math.sqrt(n) * x**2 + spread * (p + largest * spread)
    assert gradients == pytest.approx(expected)
    assert np.isnan(lemmas.lipschitz_constants(sizes, KERNELS["gaussian"], engine.ALL)).all()
