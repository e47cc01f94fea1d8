"""Parameters of `multihead-paths`."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from overfit_cli.core.errors import BadValue
from overfit_cli.core.parameters import StudyParameters, Value, parameter
from overfit_cli.studies.multihead.mixture.parameters import MultiheadMixtureParameters


def _as_in_mixture(name: str, default: Value | None = None) -> Any:
    """A parameter as `multihead-mixture` declares it, with another default where one is given."""
    field = deepcopy(MultiheadMixtureParameters.model_fields[name])
    if default is not None:
        field.default = default
    return field


class MultiheadPathsParameters(StudyParameters):
    """Gradient descent from zero on data model DM1, with a target θ and leave-one-out copies."""

    heads: int = _as_in_mixture("heads")
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
    test_samples: int = _as_in_mixture("test_samples")
    tokens: int = _as_in_mixture("tokens", 2)
    d: int = _as_in_mixture("d", 3)
    relevant: int = _as_in_mixture("relevant")
    patterns: int = _as_in_mixture("patterns", 1)
    strength: float = _as_in_mixture("strength", 1.0)
    sigma: float = _as_in_mixture("sigma", 0.0)

    def refusals(self) -> Iterator[BadValue]:
        """Give the sentences of the mixture on patterns and tokens for which there is no room."""
        yield from self.mixture().refusals()

    def mixture(self) -> MultiheadMixtureParameters:
        """Return the parameters of the mixture whose samples these are."""
        names = ("n", "test_samples", "tokens", "d", "relevant", "patterns", "strength", "sigma")
        values = {name: getattr(self, name) for name in names}
        return MultiheadMixtureParameters.model_construct(**values, first_samples=1)
