from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import nnls
from torch import Tensor
from torch.autograd import functional as autograd

from overfit_cli.core.cell import Cell
from overfit_cli.core.study import AnyStudy
from overfit_cli.studies.multihead import data, engine, first_phase, reference, theory, training
from overfit_cli.studies.multihead.data import draw_problem, patterns
from overfit_cli.studies.multihead.parameters import MISSED, MultiheadParameters, Optimiser
from overfit_cli.studies.multihead.parameters import MultiheadMixtureParameters as Mixture
from overfit_cli.studies.multihead.parameters import MultiheadPlantedParameters as Planted
from overfit_cli.studies.multihead.study import mixture, planted
from tests.training import begins_with, cell_of, train_in_batches

STEPS = 80
NAMES: tuple[Optimiser, ...] = ("gd", "momentum", "adam", "loss-normalised")
OPTIMISERS = dict(zip(NAMES, (1.0, 0.3, 0.06, 0.1), strict=True))
"""A step size for each."""

trained = partial(train_in_batches, trajectories=True)


def cell(study: AnyStudy, seed: int = 0, **values: object) -> Cell[Any]:
    return cell_of(study, values, seed)


def plain_steps(parameters: MultiheadParameters, seed: int) -> list[reference.PlainStep]:
    return [*reference.plain_training(parameters, draw_problem(parameters, seed), seed)]


@pytest.mark.parametrize(
    ("optimiser", "first_phase"),
    [*((one, "none") for one in OPTIMISERS), ("gd", "signs"), ("adam", "uniform")],
)
@pytest.mark.one_in(2)
def test_classes_of_heads_train_as_all_heads_do_one_by_one(
    optimiser: Optimiser, first_phase: str
) -> None:
    """80 steps in float64, all losses to 1e-12 of themselves, and a margin's last bits."""
    how = {"optimiser": optimiser, "learning_rate": OPTIMISERS[optimiser], "training_steps": STEPS}
    sizes = {"heads": 3, "n": 40, "test_samples": 10}
    sample_cell = cell(mixture, 3, first_phase=first_phase, **how, **sizes)
    [result] = trained(mixture, sample_cell)
    plain = plain_steps(sample_cell.parameters, 3)
    expected = np.log([plain[int(step)].loss for step in result.trajectory["step"]])
    logs = np.array(result.trajectory["log10_train_loss"]) * math.log(10)
    assert logs == pytest.approx(expected, abs=1e-12, rel=1e-14)
    if first_phase == "none":  # heads that begin alike stay alike
        for first, *others in (plain[-1].projections, plain[-1].attentions):
            assert first.norm() > 0
            assert all(torch.equal(head, first) for head in others)


@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.one_in(3)
def test_heads_trained_by_themselves_are_the_classes_again(optimiser: Optimiser) -> None:
    settings: dict[str, Any] = {"heads": 4, "training_steps": STEPS, "first_phase": "signs"}
    settings |= {"optimiser": optimiser, "learning_rate": OPTIMISERS[optimiser]}
    together = cell(mixture, **settings)
    apart = cell(mixture, **settings, separate_heads=True)
    first, second = trained(mixture, together, apart)
    for name, value in second.measurements.items():  # the first phase is measured together alone
        assert first.measurements[name] == pytest.approx(value, rel=1e-10, abs=1e-13), name
    assert {"train_loss", "attention", "margin"} <= second.measurements.keys()


@pytest.mark.parametrize("scaled", [False, True])
def test_samples_taken_some_at_a_time_give_the_gradients_of_all(
    scaled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """23 samples in parts of 5, against autograd over every head of two cells of two classes."""
    monkeypatch.setitem(engine._PART_NUMBERS, "cpu", 5 * 4**2 * 4)
    random = np.random.default_rng(0)
    x = torch.tensor(random.normal(size=(23, 4, 3)))
    y = torch.tensor(random.choice([-1.0, 1.0], 23))
    u, w = (torch.tensor(random.normal(size=(2, 2, rows, 3))) for rows in (4, 3))
    counts = torch.tensor([[1.0, 2.0], [4.0, 3.0]], dtype=torch.float64)
    of_all = counts.sum(1)
    mixing = counts / of_all.sqrt()[:, None]
    actual = engine.HeadGradients(x, y, 2, 2)(u, w, mixing, of_all, scaled=scaled)
    for index, repeats in enumerate(counts.long()):
        each = [item[index].repeat_interleave(repeats, 0).requires_grad_() for item in (u, w)]
        logits = reference.plain_model(x, list(each[0]), list(each[1]))
        loss = torch.nn.functional.softplus(-y * logits).mean()
        firsts = torch.tensor([0, repeats[0]])
        torch.testing.assert_close(actual.logits[index], logits.detach(), rtol=1e-12, atol=1e-14)
        torch.testing.assert_close(actual.loss[index], loss.detach(), rtol=1e-12, atol=0)
        size = loss.item() if scaled else 1.0
        of_u, of_w = (gradient[firsts] for gradient in torch.autograd.grad(loss, each))
        close = partial(torch.testing.assert_close, rtol=1e-10, atol=1e-13)
        close(actual.projection[index] * size, of_u)
        close(actual.attention[index] * size, of_w)
    logits = engine.logits_of(x, u, w, mixing)
    torch.testing.assert_close(logits, actual.logits, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("margin", [-800.0, -3.0, 0.0, 3.0, 19.99, 20.01, 40.0, 800.0])
def test_log_losses_are_those_of_high_precision(margin: float) -> None:
    with localcontext(prec=800):
        expected = float((1 + (-Decimal(margin)).exp()).ln().ln())
    actual = float(engine.log_logistic_loss(torch.tensor([margin], dtype=torch.float64)))
    assert actual == pytest.approx(expected, rel=1e-14, abs=1e-15)


def split(weights: Tensor) -> tuple[Tensor, Tensor]:
    """U and W of a head for four tokens in three features."""
    return weights[:12].view(4, 3), weights[12:].view(3, 3)


def phi(weights: Tensor, x: Tensor) -> Tensor:
    """One head's output for one sample."""
    projection, attention = split(weights)
    return reference.plain_model(x[None], [projection], [attention])[0]


def derivatives_by_autograd(of: Callable[[Tensor], Tensor], at: Tensor) -> tuple[Tensor, Tensor]:
    return autograd.jacobian(of, at), autograd.hessian(of, at)  # type: ignore[no-untyped-call]


def random_heads(count: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(count)
    inputs = torch.randn(6, 4, 3, generator=generator, dtype=torch.float64)
    labels = torch.tensor([1.0, -1.0, 1.0, 1.0, -1.0, -1.0], dtype=torch.float64)
    weights = torch.randn(count, 4 * 3 + 3 * 3, generator=generator, dtype=torch.float64)
    return inputs, labels, weights


def derivatives_of(inputs: Tensor, weights: Tensor) -> theory.Derivatives:
    return theory.derivatives(inputs, *split(weights))


def test_derivatives_of_a_head_are_those_of_autograd() -> None:
    inputs, _, [weights] = random_heads(1)
    actual = derivatives_of(inputs, weights)
    for index, x in enumerate(inputs):
        gradient, hessian = derivatives_by_autograd(partial(phi, x=x), weights)
        torch.testing.assert_close(actual.gradients[index], gradient, rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(actual.hessians()[index], hessian, rtol=1e-10, atol=1e-12)
    mean = torch.linspace(-1, 1, 6, dtype=torch.float64)
    whole = torch.einsum("n,nab->ab", mean, actual.hessians())
    torch.testing.assert_close(actual.mean_hessian(mean), whole, rtol=1e-10, atol=1e-12)


def test_the_curvature_of_classes_is_that_of_all_heads() -> None:
    """Three heads of one class and two of another, against the whole Hessian by autograd."""
    inputs, labels, weights = random_heads(2)
    repeated = weights.repeat_interleave(torch.tensor([3, 2]), 0).flatten()

    def loss(of_all: Tensor) -> Tensor:
        projections, attentions = zip(*map(split, of_all.view(5, -1)), strict=True)
        logits = reference.plain_model(inputs, projections, attentions)
        return torch.nn.functional.softplus(-labels * logits).mean()

    value = float(loss(repeated))
    gradient, hessian = derivatives_by_autograd(loss, repeated)
    eigenvalues = torch.linalg.eigvalsh(hessian) / value
    by_class = [derivatives_of(inputs, item) for item in weights]
    actual = theory.loss_curvature(by_class, torch.tensor([3.0, 2.0]).double(), labels)
    assert actual.log_loss == pytest.approx(math.log(value), rel=1e-12)
    assert actual.gradient == pytest.approx(float(gradient.norm()) / value, rel=1e-10)
    assert actual.largest == pytest.approx(float(eigenvalues.max()), rel=1e-9)
    assert actual.smallest == pytest.approx(float(eigenvalues.min()), rel=1e-9)


def test_the_mixture_is_that_of_the_paper() -> None:
    settings = Mixture(n=4000, tokens=8, relevant=2, sigma=0.1, d=5, patterns=3)
    samples = draw_problem(settings, 0).train
    assert samples.relevant is not None
    assert (samples.relevant.sum(1) == 2).all()
    means = patterns(settings)
    assert np.array_equal(means @ means.T, 4 * np.eye(5))
    of_label = np.where(samples.labels[:, None] > 0, means[0], means[1])
    for x, pattern, relevant in zip(samples.inputs, of_label, samples.relevant, strict=True):
        assert (x[relevant] == pattern).all()
    others = samples.inputs[~samples.relevant]  # (tokens, features)
    nearest = (others @ means[2:].T).argmax(1)
    noise = others - means[2:][nearest]
    assert noise.std() == pytest.approx(0.1, rel=0.02)
    assert np.bincount(nearest) / len(nearest) == pytest.approx(np.full(3, 1 / 3), abs=0.01)
    assert samples.labels.mean() == pytest.approx(0, abs=0.05)


def test_more_samples_extend_fewer_and_no_stream_is_shared() -> None:
    for model in (Mixture, Planted):
        few, many = (draw_problem(model(n=n), 1) for n in (20, 50))
        assert begins_with(many.train.inputs, few.train.inputs)
        assert begins_with(many.train.labels, few.train.labels)
        assert not np.array_equal(few.train.inputs, few.test.inputs[:20])
        assert not np.array_equal(few.train.inputs, few.first.inputs[:20])


def test_the_planted_head_labels_its_samples_with_room() -> None:
    problem = draw_problem(Planted(n=300), 4)
    assert problem.planted is not None
    assert np.linalg.norm(problem.planted.projection) == pytest.approx(1)
    for samples in (problem.train, problem.test, problem.first):
        logits = data.logits(problem.planted, samples.inputs)
        assert (samples.labels * logits > 0.2).all()
        u, w = map(torch.tensor, (problem.planted.projection, problem.planted.attention))
        plain = reference.plain_model(torch.tensor(samples.inputs), [u], [w])
        assert plain.numpy() == pytest.approx(logits, rel=1e-12)


def test_measures_are_those_of_their_definitions() -> None:
    """Five heads in two classes, three and two, each measure written out head by head."""
    generator = torch.Generator().manual_seed(0)
    normals = partial(torch.randn, generator=generator, dtype=torch.float64)
    u, w = normals(1, 2, 10, 4), normals(1, 2, 4, 4)
    counts = torch.tensor([[3.0, 2.0]]).double(), torch.tensor([5.0]).double()
    actual = engine.Heads(u, w, *counts)
    us, ws = ([weights[0, index] for index in (0, 0, 0, 1, 1)] for weights in (u, w))
    sizes = training.norms(actual)
    assert float(sizes["norm_w"]) == pytest.approx(sum(float(w.norm()) for w in ws) / 5)
    assert float(sizes["norm_u"]) == pytest.approx(sum(float(u.norm()) for u in us) / math.sqrt(5))
    problem = draw_problem(Mixture(n=7), 0)
    x, y = torch.tensor(problem.train.inputs), torch.tensor(problem.train.labels)
    relevant = torch.tensor(problem.train.relevant).double()
    scores = torch.stack([torch.softmax(x @ w @ x.mT, -1) for w in ws])
    on_relevant = float((scores * relevant[:, None]).sum(-1).mean())
    assert float(training.attention_on_relevant(actual, x, relevant)) == pytest.approx(on_relevant)
    logits = reference.plain_model(x, us, ws)
    tested = training.on_test(actual, x, y)
    loss = float(torch.nn.functional.softplus(-y * logits).mean())
    assert float(tested["test_loss"]) == pytest.approx(loss)
    assert float(tested["test_error"]) == pytest.approx(float((y * logits < 0).double().mean()))
    squares = engine.squared_norm(actual.U, actual.counts)
    assert float(squares) == pytest.approx(float(torch.stack(us).square().sum()))
    head = data.draw_head(10, 4, 0)
    target = torch.tensor(head.attention)
    inner = sum(float((w * target).sum()) for w in ws)
    cosine = inner / float(torch.stack(ws).norm() * math.sqrt(5) * target.norm())
    assert float(training.alignments(actual, head)["alignment_w"]) == pytest.approx(cosine)


def test_no_direction_has_a_larger_margin_and_inseparable_vectors_have_none() -> None:
    """By duality: the direction is a sum of the vectors that have the margin, with weights ≥ 0."""
    random = np.random.default_rng(0)
    for dimensions, count in ((3, 20), (8, 40), (30, 12)):
        away = random.standard_normal(dimensions)
        vectors = random.standard_normal((count, dimensions)) + 2 * away
        margin = first_phase.largest_margin(vectors)
        assert np.linalg.norm(margin.direction) == pytest.approx(1)
        active = vectors[vectors @ margin.direction <= margin.margin * (1 + 1e-9)]
        assert nnls(active.T, margin.direction)[1] < 1e-9
        assert (vectors @ margin.direction).min() == pytest.approx(margin.margin)
    inseparable = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    assert first_phase.largest_margin(inseparable).margin < 1e-12


def test_margins_depend_on_sparsity_as_by_algebra() -> None:
    """Attention's margin is S √(T/2) at each ζ, up to 2 ε; the linear one is ζ times that."""
    gaps = []
    for relevant in range(1, 10):
        settings = Mixture(relevant=relevant, sigma=0.0, n=40)
        problem = draw_problem(settings, 0)
        stated = first_phase.mixture_margins(problem.train, patterns(settings), 0.0)
        got = first_phase.proposition_3(problem, stated)
        assert got["margin_attention"] == pytest.approx(problem.margin, rel=2 * MISSED)
        linear = settings.sparsity * problem.margin
        assert got["margin_linear"] == pytest.approx(linear, rel=1e-12)
        gaps.append(got["margin_attention"] - got["margin_linear"])
    assert gaps == sorted(gaps, reverse=True)


def test_gradients_of_saturated_attention_keep_their_digits() -> None:
    """Where softmax is 1 but for 1e-40, against sums over pairs of tokens, which cancel nothing."""
    settings = Mixture(n=6)
    samples = draw_problem(settings, 0).train
    assert samples.relevant is not None
    x, y = samples.inputs, samples.labels
    oracle = np.tile([1.0, -1.0, 0.0, 0.0], (10, 1))
    attention = 100 * first_phase.optimal_attention(patterns(settings))
    scores = x @ attention @ x.swapaxes(1, 2)  # (n, t, s)
    softmax = np.exp(scores - scores.max(-1, keepdims=True))
    softmax /= softmax.sum(-1, keepdims=True)
    assert softmax[~(scores == scores.max(-1, keepdims=True))].max() < 1e-40
    outputs = oracle @ x.swapaxes(1, 2)  # G, (n, t, s)
    differences = outputs[..., :, None] - outputs[..., None, :]  # G_s − G_r
    spread = (softmax[..., :, None] * softmax[..., None, :] * differences).sum(-1)
    margins_of = y * (softmax * outputs).sum((1, 2))
    weights = -y / (1 + np.exp(margins_of)) / len(y)
    expected = np.einsum("n,nts,nta,nsb->ab", weights, spread, x, x)
    loss = np.log1p(np.exp(-margins_of)).mean()
    u, w, one = (torch.tensor(each)[None, None] for each in (oracle, attention, 1.0))
    actual = engine.HeadGradients(torch.tensor(x), torch.tensor(y), 1, 1)(
        u, w, one.double(), one.double()[0], scaled=True
    )
    assert np.abs(expected).max() < 1e-30
    assert actual.attention[0, 0].numpy() * loss == pytest.approx(expected, rel=1e-6, abs=1e-60)


@pytest.mark.parametrize("phase", ["signs", "uniform"])
def test_margins_after_the_first_phase_are_those_of_all_heads_written_out(phase: str) -> None:
    """Features of 6 heads side by side, against the collapse by the means of |α| and α²."""
    settings = Mixture.model_validate({"heads": 6, "n": 12, "sigma": 0.05, "first_phase": phase})
    problem = draw_problem(settings, 0)
    alphas = engine.first_step_sizes(settings, 0)
    x, y = torch.tensor(problem.train.inputs), problem.train.labels
    u, w = torch.tensor(engine.first_gradient(problem.first).copy()), torch.zeros(4, 4).double()
    by_head = [theory.derivatives(x, alpha * u, w) for alpha in alphas]
    features = np.hstack([head.gradients.numpy() for head in by_head]) / math.sqrt(6)
    best = first_phase.largest_margin(y[:, None] * features)
    got = first_phase.first_phase_columns(problem, phase, engine.first_steps(settings, 0))
    assert got["ntk_margin"] == pytest.approx(math.sqrt(2) * best.margin, rel=1e-7)
    means = patterns(settings)
    oracle = np.tile(means[0] - means[1], (10, 1)) / (2 * math.sqrt(20))
    attention = first_phase.optimal_attention(means)
    target = [np.append(oracle, np.sign(alpha) * attention) for alpha in alphas]
    constructed = (y * (features @ np.concatenate(target) / math.sqrt(6))).min()
    assert got["ntk_margin_constructed"] == pytest.approx(constructed, rel=1e-9)
    norm = max(abs(alphas)) * float(u.norm())
    largest = math.sqrt(10) * (2 + got["first_deviation"])
    assert norm <= largest, "Proposition 2 on P1, by the triangle inequality"


def test_training_comes_to_a_limit_in_the_number_of_heads() -> None:
    few: dict[str, Any] = {"training_steps": 100, "n": 20, "test_samples": 10}
    many, most = trained(mixture, *(cell(mixture, heads=h, **few) for h in (10**9, 9 * 10**18)))
    losses = [result.measurements["train_loss"] for result in (many, most)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)


def test_above_a_hundred_thousand_heads_uniform_step_sizes_are_a_thousand() -> None:
    """Their classes have all heads, and the margin is that of a million sizes, one for each."""
    settings: dict[str, Any] = {"first_phase": "uniform", "n": 12, "sigma": 0.05}
    few, most = (Mixture(heads=heads, **settings) for heads in (10**6, 10**18))
    problem = draw_problem(few, 0)
    assert (few.classes, most.classes) == (1000, 1000)
    steps = engine.first_steps(few, 0)
    assert steps.counts.sum() == 10**6
    assert engine.first_steps(most, 0).counts.sum() == pytest.approx(1e18)
    assert steps.mean(np.abs(steps.sizes)) == pytest.approx(0.5, abs=0.002)
    assert steps.mean(steps.sizes**2) == pytest.approx(1 / 3, abs=0.002)
    by_head = engine.FirstSteps(engine.first_step_sizes(few, 0), np.ones(10**6))
    columns = partial(first_phase.first_phase_columns, problem, "uniform")
    levels, each = columns(steps), columns(by_head)
    for name in ("ntk_margin", "ntk_margin_constructed"):
        assert levels[name] == pytest.approx(each[name], rel=5e-3), name
    sample_cell = cell(mixture, heads=10**12, training_steps=3, test_samples=10, **settings)
    [result] = trained(mixture, sample_cell)
    assert result.measurements["ntk_margin"] == pytest.approx(levels["ntk_margin"], rel=5e-3)
    assert math.isfinite(result.measurements["train_loss"])


def test_attention_has_half_of_its_tangent_margin_where_sizes_are_half_as_large() -> None:
    margins = first_phase.MixtureMargins(10, 0.1, 2.0, 2, 0, 0, 0, deviation=0.01)
    halved = first_phase.MixtureMargins(10, 0.1, 2.0, 2, 0, 0, 0, 0.01, mean_size=0.5)
    of_attention = [each.tangent() - each.linear() for each in (margins, halved)]
    assert of_attention[1] == pytest.approx(of_attention[0] / 2)


def test_a_planted_head_without_a_least_logit_has_no_share_of_its_margin() -> None:
    few = {"n": 30, "test_samples": 10, "training_steps": 3}
    [result] = trained(planted, cell(planted, least_logit=0.0, **few))
    assert "margin" in result.measurements
    assert "margin_share" not in result.measurements


def test_steps_are_counted_to_the_target_that_is_set_and_training_ends_at_its_loss() -> None:
    settings: dict[str, Any] = {"n": 15, "test_samples": 10, "training_steps": 150, "heads": 2}
    [near, far, ended] = trained(
        mixture,
        cell(mixture, **settings, target_loss=0.1),
        cell(mixture, **settings),
        cell(mixture, **settings, target_loss=0.1, epsilon=0.1),
    )
    plain = plain_steps(near.cell.parameters, 0)
    first = next(number for number, step in enumerate(plain) if step.loss < 0.1)
    assert near.measurements["steps_to_target"] == ended.steps == first < near.steps
    assert near.measurements["steps_to_target"] < far.measurements["steps_to_target"]
    assert (ended.status, ended.measurements["steps_to_target"]) == ("done", first)


@pytest.mark.parametrize("learning_rate", [30.0, 1e6])
def test_steps_that_are_far_too_large_end_in_a_row(learning_rate: float) -> None:
    shared: dict[str, Any] = {"initialisation": "gaussian", "heads": 2}
    shared |= {"learning_rate": learning_rate, "training_steps": 20, "test_samples": 10}
    for result in trained(mixture, *(cell(mixture, seed, **shared) for seed in range(2))):
        assert result.reason in ("", "diverged")
