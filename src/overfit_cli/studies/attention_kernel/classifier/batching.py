"""What a classifier's cell costs. A plan needs no torch."""

from __future__ import annotations

from overfit_cli.studies.attention_kernel.classifier.parameters import ClassifierParameters


def cost(parameters: ClassifierParameters, length: int) -> float:
    """Return about how many multiplications a cell costs, for samples of `length` tokens."""
    evaluations = parameters.training_steps / parameters.evaluate_every + 2
    samples = 3 * parameters.training_steps * parameters.batch_size
    samples_forward = samples + evaluations * parameters.test_samples
    return samples_forward * parameters.layers * layer(parameters, length)


def memory(parameters: ClassifierParameters, length: int) -> float:
    """Return about how many bytes a cell takes: what one step keeps for its gradients, and data."""
    tokens = parameters.batch_size * length
    kept = (
        parameters.layers
        * tokens
        * (14 * parameters.d + 6 * parameters.hidden + 6 * parameters.heads * length)
    )
    data = (parameters.n + parameters.test_samples) * length * 2
    return 8.0 * kept + data + _LIBRARIES


def layer(parameters: ClassifierParameters, length: int) -> float:
    """Return the multiplications of a layer on one sample; exponentials count as some."""
    linear = 4 * parameters.d**2 + 2 * parameters.d * parameters.hidden
    attention = length * (2 * parameters.d + 8 * parameters.heads)
    return length * (linear + attention)


_LIBRARIES = 3e8
