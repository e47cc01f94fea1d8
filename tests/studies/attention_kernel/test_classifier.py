"""The transformer of both classification studies is what its formulas say, and trains alike."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from overfit_cli.core.cell import CellResult
from overfit_cli.core.classification import Examples, minibatches
from overfit_cli.core.training import named_rng
from overfit_cli.studies.attention_kernel import classifier, reference
from overfit_cli.studies.attention_kernel.attention import attend, attention
from overfit_cli.studies.attention_kernel.classifier import Dropout, Shape, Transformer
from overfit_cli.studies.attention_kernel.parameters import KERNELS
from overfit_cli.studies.attention_kernel.reference import attention_by_definition
from overfit_cli.studies.attention_kernel.text.data import text_task
from overfit_cli.studies.attention_kernel.text.parameters import KernelTextParameters
from overfit_cli.studies.attention_kernel.text.study import study
from tests.training import cell_of, train

SHAPE = Shape(vocabulary=11, length=6, layers=2, heads=2, d=6, hidden=5)
SMALL = {
    "tokens": 12,
    "n": 40,
    "test_samples": 20,
    "d": 8,
    "hidden": 12,
    "batch_size": 8,
    "training_steps": 6,
    "evaluate_every": 2,
    "dtype": "float64",
}


def settings(**values: object) -> KernelTextParameters:
    return KernelTextParameters.model_validate({**SMALL, **values})


def build(kernel: str, dropout: float = 0.0, seed: int = 0) -> Transformer:
    return Transformer(SHAPE, kernel, dropout, seed, torch.float64)


def shaken(kernel: str) -> Transformer:
    """A model all of whose weights matter: the normalisations' start at one and zero."""
    model, draws = build(kernel), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for values in model.parameters():
            values.add_(torch.randn(values.shape, generator=draws, dtype=values.dtype), alpha=0.3)
    return model.eval()


def samples(count: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Tokens, and a mask that leaves 6, 5, 4, ... of them."""
    tokens = np.random.default_rng(2).integers(0, SHAPE.vocabulary, (count, SHAPE.length))
    return tokens, np.arange(SHAPE.length) < (SHAPE.length - np.arange(count))[:, None]


# The model


@pytest.mark.parametrize("kernel", KERNELS)
def test_logits_are_those_of_the_loop_over_samples_heads_and_tokens(kernel: str) -> None:
    model = shaken(kernel)
    tokens, lengths = samples()
    mask = None if kernel == "softmax" else lengths
    slow = reference.logits(reference.weights_of(model), kernel, SHAPE.heads, tokens, mask)
    fast = model(torch.tensor(tokens), None if mask is None else torch.tensor(mask))
    assert np.abs(slow).max() > 0.1
    assert fast.detach().numpy() == pytest.approx(slow, abs=1e-10, rel=1e-10)


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_stands_in_the_padding_has_no_influence(kernel: str) -> None:
    model = shaken(kernel)
    tokens, mask = (torch.tensor(each) for each in samples())
    other = torch.where(mask, tokens, (tokens + 1) % SHAPE.vocabulary)
    assert not torch.equal(tokens, other)
    assert torch.equal(model(tokens, mask), model(other, mask))
    assert not torch.allclose(model(tokens), model(other))


def test_every_kernel_of_a_seed_starts_from_the_same_weights() -> None:
    first = build("softmax").state_dict()
    for kernel in KERNELS:
        state = build(kernel).state_dict()
        assert state.keys() == first.keys()
        assert all(torch.equal(state[name], first[name]) for name in state)
    other = build("softmax", seed=1).state_dict()
    assert not torch.equal(other["embedding"], first["embedding"])
    assert not torch.equal(other["head.weight"], first["head.weight"])


def test_initial_weights_are_drawn_as_they_are_said_to_be() -> None:
    shape = Shape(vocabulary=200, length=100, layers=1, heads=2, d=64, hidden=128)
    model = Transformer(shape, "softmax", 0.1, 0, torch.float64)
    first = model.state_dict()
    for name in ("embedding", "position"):
        assert float(first[name].std()) == pytest.approx(0.02, rel=0.03)
    for name, into in (("head", 64), ("classes", 128), ("layers.0.narrow", 128)):
        weight, bound = first[f"{name}.weight"], into**-0.5
        assert weight.shape[1] == into
        assert float(weight.abs().max()) <= bound
        assert float(weight.std()) == pytest.approx(bound / math.sqrt(3), rel=0.1)


# Dropout


@pytest.mark.parametrize("chance", [0.1, 0.5])
def test_dropout_drops_its_share_and_keeps_the_mean(chance: float) -> None:
    dropout = Dropout(chance, named_rng(0, "train", "dropout"))
    dropped = dropout(torch.ones(1000, 200, dtype=torch.float64))
    assert float((dropped == 0).double().mean()) == pytest.approx(chance, abs=0.004)
    assert float(dropped.mean()) == pytest.approx(1, abs=0.01)
    assert dropped.max() == pytest.approx(1 / (1 - chance))
    dropout.eval()
    assert torch.equal(dropout(dropped), dropped)


def test_dropout_depends_on_the_seed_alone_and_each_pass_drops_anew() -> None:
    dropout = Dropout(0.5, named_rng(0, "a"))
    first, second = dropout(torch.ones(99)), dropout(torch.ones(99))
    assert not torch.equal(first, second)
    assert not torch.equal(Dropout(0.5, named_rng(1, "a"))(torch.ones(99)), first)
    torch.manual_seed(7)
    dropout.restart(named_rng(0, "a"))
    assert torch.equal(dropout(torch.ones(99)), first)


# Training


def test_the_last_step_is_evaluated_though_it_is_no_multiple() -> None:
    [result] = train(study, cell_of(study, settings(training_steps=5)), trajectories=True)
    assert result.trajectory["step"] == [0, 2, 4, 5]
    [result] = train(study, cell_of(study, settings(evaluate_every=100)), trajectories=True)
    assert result.trajectory["step"] == [0, 6]


@pytest.mark.parametrize(("optimiser", "decay"), [("sgd", 0.0), ("adam", 0.0), ("adamw", 0.4)])
def test_a_step_goes_down_the_gradient_of_the_minibatch_and_adams_first_down_its_sign(
    optimiser: str, decay: float
) -> None:
    """By autograd; AdamW alone shrinks the weights too."""
    parameters = settings(optimiser=optimiser, learning_rate=0.01, dropout=0.0, weight_decay=0.4)
    task = text_task(parameters, 0)
    model = classifier.build_model(parameters, task, 0, "cpu")
    batch = task.train.take(next(minibatches(parameters.n, parameters.batch_size, 0)))
    before = [value.detach().clone() for value in model.parameters()]
    logits = model(torch.tensor(batch.tokens.astype(np.int64)))
    loss = functional.cross_entropy(logits, torch.tensor(batch.labels))
    gradients = torch.autograd.grad(loss, list(model.parameters()))
    every = minibatches(parameters.n, parameters.batch_size, 0)
    actual = next(classifier.training_steps(model, parameters, task.train, every, "cpu"))
    assert float(actual) == pytest.approx(loss.item(), rel=1e-12)
    for start, gradient, after in zip(before, gradients, model.parameters(), strict=True):
        direction = gradient if optimiser == "sgd" else gradient / (gradient.abs() + 1e-8)
        expected = start * (1 - 0.01 * decay) - 0.01 * direction
        assert torch.allclose(after, expected, rtol=1e-7, atol=1e-7)


# Evaluation


def evaluated(model: Transformer, count: int = 4) -> classifier.Evaluation:
    tokens, mask = samples(count)
    examples = Examples(tokens, np.arange(count) % 2, mask.sum(1))
    return classifier.evaluate(model, examples, "cpu")


def test_an_evaluation_is_what_the_logits_say(monkeypatch: pytest.MonkeyPatch) -> None:
    model = shaken("gaussian")
    tokens, mask = samples()
    logits = reference.logits(reference.weights_of(model), "gaussian", SHAPE.heads, tokens, mask)
    labels = np.arange(4) % 2
    evaluation = evaluated(model)
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    assert evaluation.loss == pytest.approx(
        -np.log(chances[np.arange(4), labels]).mean(), rel=1e-10
    )
    assert evaluation.accuracy == (logits.argmax(1) == labels).mean()
    monkeypatch.setattr(classifier, "EVALUATED_TOKENS", SHAPE.length)
    piecewise = evaluated(model)
    assert piecewise.loss == pytest.approx(evaluation.loss, rel=1e-12)
    assert (piecewise.accuracy, piecewise.silent) == (evaluation.accuracy, evaluation.silent)


def test_units_that_no_sample_moves_count_as_silent() -> None:
    model = shaken("softmax")
    with torch.no_grad():
        model.head.bias[:] = 1e6
        assert evaluated(model).silent == 0
        model.head.bias[:2] = -1e6
        assert evaluated(model).silent == pytest.approx(2 / 5)
        model.head.bias[:] = -1e6
    evaluation = evaluated(model)
    assert evaluation.silent == 1
    labels = torch.arange(4) % 2
    constant = functional.cross_entropy(model.classes.bias.expand(4, 2), labels)
    assert evaluation.loss == pytest.approx(constant.item())


def test_a_unit_that_one_sample_alone_moves_is_not_silent() -> None:
    model = shaken("softmax")
    tokens, mask = (torch.tensor(each) for each in samples())
    with torch.no_grad():
        model.head.bias[:] = 100  # No unit is cut off, so that each one's values can be read.
        highest = model.hidden(tokens, mask)[:, 0].sort().values - 100
        model.head.bias[:] = -1e6
        model.head.bias[0] = -float(highest[-2:].mean())
        assert int((model.hidden(tokens, mask) > 0).sum()) == 1
    assert evaluated(model).silent == pytest.approx(4 / 5)


def test_a_summary_names_accuracy_shortcut_and_a_dead_head() -> None:
    got = {"test_accuracy": 0.7512, "shortcut_accuracy": 0.6, "silent_head": 0.5}
    told = study.summary(CellResult(cell_of(study, settings()), got, 6))
    assert told == "Test accuracy 75.1 % after 6 steps; the shortcut rule has 60.0 %."
    dead = CellResult(cell_of(study, settings()), {**got, "silent_head": 1.0}, 6)
    assert "The head is dead" in study.summary(dead)


# Attention by each kernel


SHORT, LONG = 7, 150
TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5}


def problem(tokens: int, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Queries, keys and values, (samples, heads, tokens, width), and a gradient by the output."""
    draws = np.random.default_rng(tokens)
    parts = draws.standard_normal((4, 3, 2, tokens, 6))
    query, key, value, by_output = torch.from_numpy(parts).to(dtype)
    return query, key, value, by_output


def padding(tokens: int) -> Tensor:
    """Samples of all tokens, of all but one, and of one, (samples, 1, 1, tokens)."""
    lengths = torch.tensor([tokens, tokens - 1, 1])
    return (torch.arange(tokens) < lengths[:, None])[:, None, None]


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_is_what_its_definition_says(kernel: str) -> None:
    [query, key] = np.random.default_rng(1).standard_normal((2, 5, 3))
    fast = attention(KERNELS[kernel], torch.tensor(query), torch.tensor(key))
    assert np.allclose(fast, attention_by_definition(kernel, query, key), rtol=1e-13)


def test_a_masked_key_gets_no_attention() -> None:
    query, key = torch.tensor(np.random.default_rng(2).standard_normal((2, 4, 3)))
    mask = torch.tensor([True, False, True, True])
    for kernel in KERNELS.values():
        masked = attention(kernel, query, key, mask)
        assert (masked[:, 1] == 0).all()
        without = attention(kernel, query, key[mask])
        scale = kernel.scale(4) / kernel.scale(3)
        assert torch.allclose(masked[:, mask], without * scale, rtol=1e-13)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    ("tokens", "padded", "dtype"),
    [
        (SHORT, False, torch.float64),
        (SHORT, True, torch.float32),
        (LONG, False, torch.float32),
        (LONG, True, torch.float64),
    ],
)
def test_what_is_received_and_its_gradients_are_those_of_weights_times_values(
    kernel: str, tokens: int, padded: bool, dtype: torch.dtype
) -> None:
    mask = padding(tokens) if padded else None
    *inputs, by_output = problem(tokens, dtype)
    fast = [part.clone().requires_grad_() for part in inputs]
    slow = [part.double().requires_grad_() for part in inputs]
    found = attend(KERNELS[kernel], fast[0], fast[1], fast[2], mask)
    expected = attention(KERNELS[kernel], slow[0], slow[1], mask) @ slow[2]
    torch.autograd.backward(found, by_output)
    torch.autograd.backward(expected, by_output.double())
    pairs = [(found, expected), *((a.grad, b.grad) for a, b in zip(fast, slow, strict=True))]
    for mine, exact in pairs:
        assert mine is not None and exact is not None
        worst = (mine.double() - exact).detach().abs().max()
        assert worst <= TOLERANCE[dtype] * exact.detach().abs().max()


@pytest.mark.parametrize("tokens", [SHORT, LONG])
@pytest.mark.parametrize("kernel", KERNELS)
def test_distances_too_long_for_any_attention_give_zero_and_no_samples_receive_nothing(
    kernel: str, tokens: int
) -> None:
    query, key, value, by_output = problem(tokens, torch.float32)
    query.mul_(1e4).requires_grad_()
    received = attend(KERNELS[kernel], query, key, value, padding(tokens))
    torch.autograd.backward(received, by_output)
    assert query.grad is not None
    assert received.isfinite().all() and query.grad.isfinite().all()
    if not KERNELS[kernel].normalised:
        assert (received == 0).all() and (query.grad == 0).all()
    assert attend(KERNELS[kernel], query[:0], key[:0], value[:0]).shape == query[:0].shape
