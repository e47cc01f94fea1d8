"""The transformer of both classification studies is what its formulas say, and trains alike."""

from __future__ import annotations

from typing import Any

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
from overfit_cli.studies.attention_kernel.classifier import Dropout, Transformer
from overfit_cli.studies.attention_kernel.classifier_parameters import KernelTextParameters
from overfit_cli.studies.attention_kernel.classifiers import text as study
from overfit_cli.studies.attention_kernel.parameters import KERNELS
from overfit_cli.studies.attention_kernel.reviews import text_task
from tests.training import cell_of, train

WORDS, TOKENS, HEADS = 11, 6, 2
SMALL = {
    **{"tokens": 12, "n": 40, "test_samples": 20, "d": 8, "hidden": 12, "batch_size": 8},
    **{"training_steps": 6, "evaluate_every": 2, "dtype": "float64"},
}


def settings(**values: object) -> KernelTextParameters:
    return KernelTextParameters.model_validate({**SMALL, **values})


def build(kernel: str, seed: int = 0, **more: Any) -> Transformer:
    sizes = {"layers": 2, "heads": HEADS, "d": 6, "hidden": 5, "dropout": 0.0, **more}
    return Transformer(settings(kernel=kernel, **sizes), WORDS, TOKENS, seed)


def shaken(kernel: str, **more: Any) -> Transformer:
    """A model all of whose weights matter: the normalisations' start at one and zero."""
    model, draws = build(kernel, **more), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for values in model.parameters():
            values.add_(torch.randn(values.shape, generator=draws, dtype=values.dtype), alpha=0.3)
    return model.eval()


def samples(count: int = 4) -> tuple[Tensor, Tensor]:
    """Tokens, and a mask that leaves 6, 5, 4, ... of them."""
    tokens = np.random.default_rng(2).integers(0, WORDS, (count, TOKENS))
    mask = np.arange(TOKENS) < (TOKENS - np.arange(count))[:, None]
    return torch.tensor(tokens), torch.tensor(mask)


# The model


@pytest.mark.parametrize("kernel", KERNELS)
def test_logits_are_those_of_the_loop_over_samples_heads_and_tokens(kernel: str) -> None:
    """In which padding is left out."""
    model, (tokens, lengths) = shaken(kernel), samples()
    for mask in (None, lengths):
        slow = reference.logits(model.state_dict(), kernel, HEADS, tokens, mask)
        assert slow.abs().max() > 0.1
        assert torch.allclose(model(tokens, mask), slow, atol=1e-10, rtol=1e-10)


def test_every_kernel_of_a_seed_starts_from_the_same_weights() -> None:
    first = build("softmax").state_dict()
    for kernel in KERNELS:
        state = build(kernel).state_dict()
        assert state.keys() == first.keys()
        assert all(torch.equal(state[name], first[name]) for name in state)
    other = build("softmax", seed=1).state_dict()
    assert not torch.equal(other["embedding"], first["embedding"])
    assert not torch.equal(other["head.weight"], first["head.weight"])


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


def test_an_evaluation_is_what_the_logits_say(monkeypatch: pytest.MonkeyPatch) -> None:
    model, (tokens, mask), labels = shaken("gaussian"), samples(), torch.arange(4) % 2
    logits = reference.logits(model.state_dict(), "gaussian", HEADS, tokens, mask)
    examples = Examples(tokens.numpy(), labels.numpy(), mask.sum(1).numpy())
    for most in (classifier.EVALUATED_TOKENS, TOKENS):  # together, and one by one
        monkeypatch.setattr(classifier, "EVALUATED_TOKENS", most)
        found = classifier.evaluate(model, examples, "cpu")
        assert found["test_loss"] == pytest.approx(
            functional.cross_entropy(logits, labels).item(), rel=1e-10
        )
        assert found["test_accuracy"] == (logits.argmax(1) == labels).double().mean()


def test_a_summary_names_the_accuracy_and_the_shortcut() -> None:
    got = {"test_accuracy": 0.7512, "shortcut_accuracy": 0.6}
    told = study.summary(CellResult(cell_of(study, settings()), got, 6))
    assert told == "Test accuracy 75.1 % after 6 steps; the shortcut rule has 60.0 %."


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
@pytest.mark.parametrize("tokens", [SHORT, LONG])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCE)
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
