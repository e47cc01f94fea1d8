"""Parameters of `multihead-paths`."""

from __future__ import annotations

from collections.abc import Iterator

from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import StudyParameters, parameter
from overfit_cli.studies.multihead.mixture.parameters import MultiheadMixtureParameters


class MultiheadPathsParameters(StudyParameters):
    """Gradient descent from zero on data model DM1, with a target θ and leave-one-out copies."""

    heads: int = parameter(1, "attention heads", symbol="H", at_least=1, at_most=9 * 10**18)
    learning_rate: float = parameter(
        1.0, "step size", symbol=r"\eta", label="step size", above=0, at_most=1e6
    )
    training_steps: int = parameter(
        200, "gradient steps of a cell", symbol="K", at_least=1, at_most=10**6
    )
    target_distance: float = parameter(
        0.5,
        "distance of the target θ from the start, along the linear part's widest margin",
        symbol=r"\|\theta - \theta_0\|",
        label="distance of the target",
        above=0,
        at_most=1e6,
    )
    leave_one_out: bool = parameter(
        False,
        "train a copy without each sample beside it",
        label="leave-one-out copies",
    )
    n: int = parameter(20, "training samples", symbol="n", at_least=2, at_most=10**4)
    test_samples: int = parameter(300, "test samples", at_least=1, at_most=10**6)
    tokens: int = parameter(2, "tokens of a sample", symbol="T", at_least=2, at_most=1000)
    d: int = parameter(3, "features of a token", symbol="d", at_least=1, at_most=1000)
    relevant: int = parameter(
        1,
        "relevant tokens of a sample, ζT",
        symbol=r"\zeta T",
        label="relevant tokens of a sample",
        at_least=1,
        at_most=1000,
    )
    patterns: int = parameter(
        1,
        "patterns that say nothing about the label",
        symbol="M",
        label="irrelevant patterns",
        at_least=1,
        at_most=1000,
    )
    strength: float = parameter(1.0, "length of all patterns", symbol="S", above=0, at_most=1000)
    sigma: float = parameter(
        0.0,
        "deviation of the noise on irrelevant tokens",
        symbol=r"\sigma",
        label="deviation of the noise",
        at_least=0,
        at_most=100,
    )

    def refusals(self) -> Iterator[BadValue]:
        """Give the sentences of the mixture on patterns and tokens for which there is no room."""
        yield from self.mixture().refusals()

    def mixture(self) -> MultiheadMixtureParameters:
        """Return the parameters of the mixture whose samples these are."""
        names = ("n", "test_samples", "tokens", "d", "relevant", "patterns", "strength", "sigma")
        values = {name: getattr(self, name) for name in names}
        return MultiheadMixtureParameters.model_construct(**values, first_samples=1)
